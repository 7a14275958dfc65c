//! System calls of linerate, safe on the outside.

pub mod namespace;
pub mod packet;
pub mod process;
pub mod shared;
