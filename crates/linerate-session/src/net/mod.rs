//! Socket functions that both servers and both clients (linerate's own
//! and iperf3's) share: listening, connecting, stops and deadlines.
//!
//! This module contains nothing of either protocol.

mod dial;
mod listen;
mod socket;
mod stop;
mod wait;

pub(crate) use dial::{begin, connected_unless, socket};
pub(crate) use listen::{ListenError, addresses, listen};
pub(crate) use socket::{hasten, timespec, tune};
pub use stop::Stop;
pub(crate) use wait::{HEED, WaitError, wait, wait_unless};
