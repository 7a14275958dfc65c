//! What touches the machine: readings of the host, transports and patterns of loads, the sampler, the peer.
//!
//! The heart is [`link::Link`]: two ends of a path, ready to run the steps of a plan. The real one
//! is a peer session, the virtual one is the simulated path. `run` drives either.
#![forbid(unsafe_code)]

pub mod change;
pub mod end;
pub mod event;
mod guests;
pub mod host;
pub mod iperf3;
pub mod link;
pub mod load;
pub mod peer;
pub mod rights;
pub mod run;
mod sheet;
pub mod store;
mod strangers;
