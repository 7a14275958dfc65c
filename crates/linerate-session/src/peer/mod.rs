//! Sessions between two hosts: a server on the far host, and the client that provides a link.
//!
//! One TCP port serves control and data connections. [`linerate_record::wire`] defines the messages of both ends; this
//! module contains the sockets, the cryptography, the threads and the deadlines. It does not know how payload is moved:
//! on each side, a [`crate::end::LocalEnd`] does that.

pub mod address;
pub(crate) mod channel;
pub mod client;
mod datagrams;
pub(crate) mod descriptors;
mod error;
mod handshake;
pub mod keys;
pub mod server;
#[cfg(test)]
mod tests;

use linerate_host::Machine;

pub use crate::net::Stop;
pub use error::PeerError;

/// Default port of `linerate serve`, for TCP and, when transports need it, UDP.
///
/// IANA lists 5365-5396 as unassigned. The port is below the ephemeral ports of Linux (from 32768 on), so that no
/// outgoing connection uses it, and it needs no privilege.
pub const PORT: u16 = 5377;

/// Returns the boot id of a machine; empty if it cannot be read.
fn boot_id(machine: &dyn Machine) -> String {
    machine
        .file("/proc/sys/kernel/random/boot_id")
        .map(|id| String::from_utf8_lossy(&id).trim().to_owned())
        .unwrap_or_default()
}
