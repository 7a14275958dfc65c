//! A request to stop that a thread blocked in `poll` notices at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Request that a server and all its sessions end. Clones share one request; it cannot be withdrawn.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requested: AtomicBool,
    // Event descriptor that is readable once the stop was requested.
    // It is never read, so it stays readable for all threads.
    event: OwnedFd,
}

impl Stop {
    /// Makes a stop request that is not set yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Inner {
            requested: AtomicBool::new(false),
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })))
    }

    /// Requests the stop.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Release);
        // The write fails only if the counter is full, and then the descriptor is already readable.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
    }

    /// Returns whether the stop was requested.
    pub fn requested(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
