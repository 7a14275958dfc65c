//! InfiniBand networks: the datagrams that manage them, the network that replies show, and what is wrong with it.
//!
//! Owns management datagrams ([`mad`]), the walk that sends requests to every node ([`walk`]), the network that it
//! found ([`network`]), findings ([`finding`]), and what a host lacks before RDMA works ([`guide`]). Sends nothing
//! itself: a `MadPort` of `linerate-host` does.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod guide;

pub mod capture;
pub mod finding;
pub mod mad;
pub mod network;
pub mod walk;

// The fake network is compiled here for the tests of this crate, and in `linerate-sim` for the tests of other crates.
#[cfg(test)]
extern crate self as linerate_fabric;
#[cfg(test)]
#[path = "tests/fake/mod.rs"]
pub mod fake;
