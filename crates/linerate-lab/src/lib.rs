//! Two-host networks in namespaces with planted faults, for `linerate demo` and for tests; virtual machines ([`vm`])
//! for features that namespaces lack; and simulated InfiniBand networks ([`ib`]).
//!
//! A lab needs only the right to create user namespaces, and no other programs. It leaves nothing behind, even if its
//! owner is killed: its processes live in a PID namespace whose init, the *agent*, ends when the socket to the owner
//! closes.
#![forbid(unsafe_code)]

mod agent;
mod cell;
mod error;
mod fault;
mod folder;
mod forward;
pub mod ib;
mod lab;
mod message;
mod netlink;
mod program;
mod random;
mod spec;
mod tool;
pub mod vm;

pub use cell::{CELLS, Cell, CellKind, Company, HEALTHY, Path};
pub use error::LabError;
pub use fault::{
    Burden, Depth, Fault, FaultDirection, FaultError, Manner, Origin, Rhythm, Role, Share,
    ShareError,
};
pub use lab::Lab;
pub use program::{Finished, Output, Program, Running};
pub use rustix::process::Signal;
pub use spec::{Addresses, Forwarded, Host, PortStatus, Queue, Spec, Topology};
