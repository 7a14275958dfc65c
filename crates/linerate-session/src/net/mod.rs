//! Sockets and waits that both servers and both clients share: listening, dialling, stops and deadlines.
//!
//! This room knows no protocol.

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
