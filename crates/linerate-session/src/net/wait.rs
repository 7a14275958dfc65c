//! Waits for a socket that end early at a deadline or when a stop is requested.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::socket::timespec;
use super::stop::Stop;

/// Longest time until a stop is noticed while a connection is made.
pub(crate) const HEED: Duration = Duration::from_millis(100);

/// Why a wait ended before the socket was ready.
#[derive(Debug)]
pub(crate) enum WaitError {
    /// The deadline has passed.
    TimedOut,
    /// A stop was requested.
    Stopped,
    /// The system call failed.
    Io(io::Error),
}

/// Waits until `fd` is ready, the deadline has passed, or a stop was requested.
pub(crate) fn wait(
    fd: &impl AsFd,
    events: PollFlags,
    stop: Option<&Stop>,
    deadline: Instant,
) -> Result<(), WaitError> {
    loop {
        let mut fds = vec![PollFd::new(fd, events)];
        fds.extend(stop.map(|s| PollFd::new(s, PollFlags::IN)));
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut fds, Some(&timespec(left))) {
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(WaitError::Io(e.into())),
            Ok(_) if fds.get(1).is_some_and(|f| !f.revents().is_empty()) => {
                return Err(WaitError::Stopped);
            }
            Ok(_) if !fds[0].revents().is_empty() => return Ok(()),
            Ok(_) if left.is_zero() => return Err(WaitError::TimedOut),
            Ok(_) => {}
        }
    }
}

/// Waits for a socket until the deadline; once `stopped` returns true, for at most [`HEED`] longer.
pub(crate) fn wait_unless(
    fd: &impl AsFd,
    events: PollFlags,
    deadline: Instant,
    stopped: &dyn Fn() -> bool,
) -> Result<(), WaitError> {
    loop {
        if stopped() {
            return Err(WaitError::Stopped);
        }
        let now = Instant::now();
        match wait(fd, events, None, deadline.min(now + HEED)) {
            Err(WaitError::TimedOut) if now < deadline => {}
            went => return went,
        }
    }
}
