//! System calls of linerate, behind safe functions.
//!
//! This is the only crate with `unsafe` code: small wrappers of calls that rustix lacks, each with its reason.

pub mod array;
pub mod chain;
pub mod clock;
pub mod datagram;
pub mod ethtool;
pub mod ibverbs;
pub mod memfd;
pub mod memory;
pub mod namespace;
pub mod netlink;
pub mod packet;
pub mod plain;
pub mod process;
pub mod shared;
pub mod socket;
pub mod thread;
pub mod umad;
pub mod uring;
pub mod zerocopy;
