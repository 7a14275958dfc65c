//! Both sides of iperf3's protocol: a client for iperf3 servers, and a server for iperf3 clients.
//!
//! [`linerate_record::iperf3`] defines the messages. This module contains the sockets, the threads and the deadlines.
//! The workers of a run move the payload, in iperf3's framing ([`linerate_load`]).

pub mod client;
mod control;
pub(crate) mod counted;
pub(crate) mod cpu;
pub mod link;
pub mod server;
#[cfg(test)]
mod tests;
