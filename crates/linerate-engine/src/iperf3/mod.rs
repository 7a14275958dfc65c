//! The other side of iperf3's protocol: a client for its servers, and a server for its clients.
//!
//! What is said stands in [`linerate_core::iperf3`]; here are the sockets, the threads and the
//! deadlines. Payload is iperf3's own, a bare stream of bytes, so it is moved by loops of this
//! room (`streams`); they take their sizes, CPUs and socket options by the rules of a run.

pub mod client;
mod control;
mod cpu;
pub mod server;
mod streams;
#[cfg(test)]
mod tests;
