//! System calls of linerate, safe on the outside.

pub mod namespace;
pub mod process;
