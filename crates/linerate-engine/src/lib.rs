//! Everything that accesses the machine: readings of the host, transports and load patterns, the sampler, and
//! sessions with a peer.
//!
//! The central trait is [`link::Link`]: two ends of a path, ready to run the steps of a plan. A real link is a
//! session with a peer; a virtual link is the simulated path. `run` drives either.
#![forbid(unsafe_code)]

pub mod change;
pub mod end;
pub mod event;
pub mod fabric;
mod guests;
pub mod host;
pub mod iperf3;
pub mod link;
pub mod load;
mod net;
pub mod peer;
pub mod rights;
pub mod run;
mod sheet;
pub mod store;
mod strangers;
