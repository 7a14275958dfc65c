//! The peer: a server on the far host, and the client that makes a link of it.
//!
//! One port serves control and data. What both say is defined in [`linerate_core::wire`]; here are
//! the sockets, the cryptography, the threads and the deadlines. Nothing here knows how payload is
//! moved: that is the business of [`crate::end::LocalEnd`], of which each side owns one.

pub mod address;
pub(crate) mod channel;
pub mod client;
mod datagrams;
pub(crate) mod descriptors;
mod error;
mod handshake;
pub mod keys;
pub mod server;
mod stop;
#[cfg(test)]
mod tests;

use crate::host::Machine;

pub use error::PeerError;
pub use stop::Stop;

/// Default port of `linerate serve`, for TCP and, when transports need it, UDP.
///
/// IANA lists 5365-5396 as unassigned. It lies below the ephemeral ports of Linux (from 32768 on),
/// so that no outgoing connection takes it, and needs no privilege.
pub const PORT: u16 = 5377;

/// The boot id of a machine; empty when it cannot be read.
fn boot_id(machine: &dyn Machine) -> String {
    machine
        .file("/proc/sys/kernel/random/boot_id")
        .map(|id| String::from_utf8_lossy(&id).trim().to_owned())
        .unwrap_or_default()
}
