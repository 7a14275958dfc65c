//! The other side of iperf3's protocol: a client for its servers, and a server for its clients.
//!
//! What is said stands in [`linerate_core::iperf3`]; here are the sockets, the threads and the
//! deadlines. Payload is moved by the workers of a run, in iperf3's framing ([`crate::load`]).

pub mod client;
mod control;
pub(crate) mod counted;
pub(crate) mod cpu;
pub mod server;
#[cfg(test)]
mod tests;
