//! io_uring: sends from pages that are registered once, and a receive that stays active.
//!
//! A ring belongs to one stream, and has at most one send or one receive in flight,
//! since the bytes of a stream must stay in order. Every wait has a time limit. If
//! an operation is still in flight at the limit, it continues and completes later.
//= man io_uring(7), io_uring_enter(2), io_uring_prep_send_zc(3), io_uring_prep_recv_multishot(3)

mod file;
mod provided;
mod receive;
mod send;

use std::io;
use std::time::Duration;

use io_uring::IoUring;
use io_uring::types::{SubmitArgs, Timespec};

pub use file::{Access, Completion, FileRing};
pub use receive::Receiver;
pub use send::{SendCompletions, Sender};

use crate::zerocopy::Memory;

/// Checks whether this process may send with io_uring; returns the kernel's error if not.
pub fn may_send() -> io::Result<()> {
    Sender::new(Memory::new(1)?).map(drop)
}

/// Checks whether the kernel supports receives that stay active (multishot).
pub fn may_receive() -> io::Result<()> {
    Receiver::new(1, 2).map(drop)
}

/// Submits the queued entries, and waits up to `most` for a completion.
fn enter(ring: &IoUring, most: Duration) -> io::Result<()> {
    let time = Timespec::from(most);
    let args = SubmitArgs::new().timespec(&time);
    match ring.submitter().submit_with_args(1, &args) {
        Err(e) if !is_pause(&e) => Err(e),
        _ => Ok(()),
    }
}

/// Returns whether an error only means that the time was over, a signal arrived, or the kernel has no room at the
/// moment. This is no failure: entries that the kernel did not accept are still queued.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

fn full<E>(_: E) -> io::Error {
    io::Error::other("the ring has no room")
}

/// Converts a negative result in a completion to an error.
fn failed(result: i32) -> io::Error {
    io::Error::from_raw_os_error(-result)
}

#[cfg(test)]
mod tests;
