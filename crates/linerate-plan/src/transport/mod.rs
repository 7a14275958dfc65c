//! Transports: the ways to move the bytes of a load. Each transport has a row with all that is known of it without
//! looking at a machine.

mod feature;
pub mod file;
mod info;
mod knob;
mod options;
pub mod rdma;
mod varied;

pub use feature::Feature;
pub use file::FILE;
pub use info::{
    CONNECT, FarEnd, MEMORY, NULL, OTHER, PROGRAM, PatternKind, RDMA, SHM, TCP, TRANSPORTS,
    TransportInfo, UDP, USUAL, named, of, options_of, with_option,
};
pub use knob::Knob;
pub use options::{
    ACCESS, BIND, DSCP, Kind, MEMORY_NODE, OptionInfo, Options, PRELOAD, RING, RING_DEFAULT,
    Setting,
};
pub use varied::Swept;
