//! Queries an InfiniBand network: sends the requests of a walk through a management port, and receives the replies.

mod capture;
mod ibsim;
mod umad;

use std::borrow::Cow;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use std::{io, thread};

use linerate_fabric::mad::{Get, LEN};
use linerate_fabric::walk::Walk;
use linerate_units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub use capture::{Capturing, Replay};
pub use ibsim::Ibsim;
pub use umad::{Name, Umad, UmadError, Wanted};

/// A port through which management datagrams are sent and received.
pub trait MadPort {
    /// Returns the most requests without a reply that the port permits at one time.
    fn window(&self) -> usize;

    /// Returns the most requests that the port sends per second.
    fn pace(&self) -> u32;

    /// Returns the time since the port was opened.
    fn now(&self) -> Nanos;

    /// Sends a request. `transaction` identifies its reply.
    fn send(&mut self, transaction: u32, get: &Get) -> Result<(), PortError>;

    /// Waits up to `wait` for a datagram, or for a report that a request was lost. `None` if nothing arrived.
    fn receive(&mut self, wait: Duration) -> Result<Option<Arrival>, PortError>;

    /// Waits between two parts of a walk.
    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

/// What a port received, or a request that failed.
#[derive(Debug, Clone)]
pub enum Arrival {
    /// A management datagram.
    Mad(Box<[u8; LEN]>),
    /// The request of this transaction was not delivered.
    Lost(u32),
    /// This host cannot send the request of this transaction.
    NotPossible(u32),
}

/// Why a management port cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A system call failed.
    #[error("{what} failed")]
    Call {
        /// The call and what it was applied to.
        what: String,
        /// Error of the call.
        #[source]
        source: io::Error,
    },
    /// The simulator refused the request.
    #[error("ibsim refused {what}")]
    Refused {
        /// The request that was refused.
        what: String,
        /// Command or action that would help.
        hint: &'static str,
    },
    /// The simulator does not run.
    #[error("no ibsim answers to the name {name}")]
    NoSimulator {
        /// Name of the simulator's sockets.
        name: String,
    },
    /// No InfiniBand port of this host can be used.
    #[error(transparent)]
    Umad(#[from] UmadError),
}

impl PortError {
    fn call(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Call { what: what.into(), source: source.into() }
    }

    /// Returns the command or action that would help; empty if none is known.
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Self::Call { .. } => "".into(),
            Self::Refused { hint, .. } => (*hint).into(),
            Self::NoSimulator { .. } => "ibsim -s -n NETFILE, or unset IBSIM_SOCKNAME".into(),
            Self::Umad(error) => error.hint(),
        }
    }
}

impl<P: MadPort + ?Sized> MadPort for Box<P> {
    fn window(&self) -> usize {
        (**self).window()
    }

    fn pace(&self) -> u32 {
        (**self).pace()
    }

    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn send(&mut self, transaction: u32, get: &Get) -> Result<(), PortError> {
        (**self).send(transaction, get)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Arrival>, PortError> {
        (**self).receive(wait)
    }

    fn pause(&mut self, time: Duration) {
        (**self).pause(time);
    }
}

/// Returns the time since a port was opened.
fn since(opened: Instant) -> Nanos {
    Nanos(u64::try_from(opened.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Waits up to `wait` until `fd` is readable or has an error. Returns the events that occurred.
fn polled(fd: &impl AsFd, wait: Duration) -> Result<PollFlags, PortError> {
    let most = Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    };
    let mut requested = [PollFd::new(fd, PollFlags::IN)];
    match poll(&mut requested, Some(&most)) {
        Ok(_) | Err(Errno::INTR) => Ok(requested[0].revents()),
        Err(e) => Err(PortError::call("poll", e)),
    }
}

/// Whether a part of a walk was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every request was answered or given up after its retries.
    Whole,
    /// The time was over, or the user wanted to stop.
    Early,
}

/// Sends the requests of a walk until none is left or `until` has passed. `stop` returns whether the user wants to
/// stop.
pub fn drive(
    port: &mut dyn MadPort,
    walk: &mut Walk,
    until: Nanos,
    stop: &dyn Fn() -> bool,
) -> Result<Ended, PortError> {
    /// Longest time between two calls of `stop`.
    const LOOK: Nanos = Nanos::from_millis(100);
    walk.pace(port.pace());
    loop {
        let now = port.now();
        walk.expire(now);
        while let Some((transaction, get)) = walk.request(now, port.window()) {
            port.send(transaction, &get)?;
        }
        if walk.is_done() {
            return Ok(Ended::Whole);
        }
        if now >= until || stop() {
            return Ok(Ended::Early);
        }
        let next = walk.deadline().unwrap_or(until).min(until).min(Nanos(now.0 + LOOK.0));
        let wait = Duration::from_nanos(next.0.saturating_sub(now.0));
        match port.receive(wait)? {
            Some(Arrival::Mad(mad)) => {
                walk.receive(port.now(), &mad[..]);
            }
            Some(Arrival::Lost(transaction)) => walk.lost(transaction),
            Some(Arrival::NotPossible(transaction)) => walk.cannot_send(transaction),
            None => {}
        }
    }
}
