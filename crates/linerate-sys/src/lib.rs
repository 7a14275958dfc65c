//! System calls of linerate, safe on the outside.

pub mod namespace;
pub mod packet;
pub mod process;
//!
//! The only crate with `unsafe` code: small wrappers of what rustix lacks, each with its reason.

pub mod clock;
pub mod socket;
pub mod thread;
pub mod shared;
