//! The other side of iperf3's protocol: a client for its servers, and a server for its clients.
//!
//! [`linerate_record::iperf3`] defines the messages; this module has the sockets, the threads and the deadlines.
//! The workers of a run move the payload, in iperf3's framing ([`linerate_load`]).

pub mod client;
mod control;
pub(crate) mod counted;
pub(crate) mod cpu;
pub mod link;
pub mod server;
#[cfg(test)]
mod tests;
