//! Ceilings: the most goodput that each part of a path allows, computed from its hardware.
//!
//! Each kind of hardware has a file here: it computes the capacity of the hardware, and the cost of a payload byte,
//! a packet or an operation. A case file and a run describe their paths with the same [parts](part);
//! [`part::Description::path`] makes a [`Path`] of them, and [`Path::solve`] shares its capacity among the groups
//! of streams. [`fingerprint`] names the hardware whose ceiling a measured rate may be.
//! Nothing here is measured or guessed: an unknown input gives an interval of all its possible values.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bounds;
mod build;
mod relation;
mod resource;
mod solve;

pub mod bond;
pub mod cpu;
pub mod ethernet;
pub mod fingerprint;
pub mod infiniband;
pub mod latency;
pub mod link;
pub mod memory;
pub mod part;
pub mod pci;
pub mod pcie;
pub mod roce;
pub mod storage;
pub mod usb;

pub use bounds::{Bounds, End};
pub use link::Link;
pub use relation::Relation;
pub use resource::{Cost, Demand, Input, Packet, Path, Resource, Source, StreamGroup};
pub use solve::{Ceiling, Next, Solution};
