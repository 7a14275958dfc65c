//! Ceilings: the most goodput that each part of a path leaves, from what it is made of.
//!
//! One kind of part is one file here: it turns hardware into a capacity and into what a payload
//! byte, a packet or an operation costs of it. [`Path`] puts the parts together and [`Path::solve`]
//! shares them among the flows. Nothing here is measured, and nothing is guessed: an input that is
//! not known makes an interval of all that it could be.

mod bounds;
mod resource;
mod solve;

pub mod bond;
pub mod cpu;
pub mod ethernet;
pub mod fingerprint;
pub mod infiniband;
pub mod latency;
pub mod memory;
pub mod pci;
pub mod pcie;
pub mod roce;
pub mod storage;
pub mod usb;

pub use bounds::{Bounds, End};
pub use resource::{Cost, Demand, Flow, Input, Packet, Path, Resource, Source};
pub use solve::{Ceiling, Next, Solution};
