//! Patterns determine when messages are sent and which times are measured. Each pattern is written once, for all
//! transports that support it.
//!
//! A transport moves messages and answers ([`Asker`], [`Answerer`]) and knows no schedule; a pattern knows no sockets.
//! A pattern calls its transport without dynamic dispatch: a round trip through memory is so short that a dynamic call
//! would lengthen it.

pub(crate) mod answers;
pub(crate) mod closed_loop;
pub(crate) mod echo;
pub(crate) mod open_loop;
pub(crate) mod operations;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use std::time::Duration;

use linerate_plan::Knobs;
use linerate_units::Nanos;

use self::closed_loop::ClosedLoop;
use self::open_loop::OpenLoop;
use super::{LoadError, Probe, Worker};

/// Messages that are due within this time, in nanoseconds, are announced to the other end together.
const ANNOUNCED_NANOS: u64 = 10_000_000;

/// An answer that was received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// Number of the message to which this is the answer.
    pub(crate) number: u64,
    /// Time at which the answer was received, on this host's monotonic clock.
    pub(crate) at: u64,
    /// Nanoseconds that the answer waited in the kernel, if the kernel reports it.
    pub(crate) unread: Option<u64>,
}

/// The near end of round trips of one stream. All messages and answers have one size. The messages of a step are
/// numbered from 0.
pub(crate) trait Asker: Send {
    /// Shortest and longest timeout for an answer, in nanoseconds. `None` if neither messages nor answers can be lost;
    /// then answers are received in the order of their messages.
    const PATIENCE: Option<(u64, u64)>;
    /// Whether messages and answers may be lost. If so, a message is sent whole or not at all.
    const LOSSY: bool = Self::PATIENCE.is_some();

    /// Whether answers contain how long they waited in the kernel.
    const SAYS_UNREAD: bool = false;

    /// Returns the size of each message and of each answer, in bytes.
    fn size(&self) -> u32;

    /// Allocates buffers, and begins a step.
    fn begin(&mut self) -> Result<(), LoadError>;

    /// Announces messages to the other end, if the transport requires that: at least one, at most `most`. With `wait`
    /// it may block briefly. Returns true once the next message may be sent.
    fn announce(&mut self, most: impl FnOnce() -> u64, wait: bool) -> Result<bool, LoadError>;

    /// Returns the number of messages that were announced to the other end and not sent yet.
    fn announced(&self) -> u64;

    /// Sends the next message, or the rest of it. With `wait` it may block briefly. Returns true once all bytes of the
    /// message are sent.
    fn send(&mut self, wait: bool) -> Result<bool, LoadError>;

    /// Passes the available answers to `take`. `wait` determines how the first answer is waited for. `take` returns
    /// whether the message of an answer was waited for.
    fn receive(&mut self, wait: Wait, take: impl FnMut(Answer) -> bool) -> Result<(), LoadError>;

    /// Waits, at most for `most`, until an answer can be received or, if `wanted`, until a message can be sent. Returns
    /// whether an answer can be received, and whether a message can be sent.
    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError>;

    /// Returns whether the current message is known to be lost.
    fn is_lost(&self) -> bool {
        false
    }

    /// Stores for the probes how many messages have no answer yet.
    fn unanswered(&self, _: u64) {}

    /// Continues to the end of the step, once no message is in flight. Returns true once the end was announced to the
    /// other end.
    fn finish(&mut self) -> Result<bool, LoadError>;

    /// Returns the probes, as [`Worker::probes`] does.
    fn probes(&self) -> Vec<Box<dyn Probe>>;
}

/// How a thread waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It does not wait.
    No,
    /// It sleeps, but no longer than a call may block.
    Asleep,
    /// It polls many times without sleeping.
    Busy,
}

impl Wait {
    /// Returns `Busy` or `Asleep`.
    pub(crate) const fn of(busy: bool) -> Self {
        if busy { Self::Busy } else { Self::Asleep }
    }
}

/// Makes the worker of the near end of round trips. With the settings `knobs`, messages are sent in open loop every
/// `interval`, or in closed loop.
pub(crate) fn round_trips<A: Asker + 'static>(
    asker: A,
    interval: Nanos,
    knobs: &Knobs,
) -> Box<dyn Worker> {
    if knobs.open_loop {
        Box::new(OpenLoop::new(asker, interval, knobs.busy_poll))
    } else {
        Box::new(ClosedLoop::new(asker, interval, knobs.busy_poll))
    }
}

/// The far end of round trips of one stream: it answers each message with one of the same size.
pub(crate) trait Answerer: Send {
    /// Returns the size of each message and of each answer, in bytes.
    fn size(&self) -> u32;

    /// Allocates buffers, and begins a step.
    fn begin(&mut self) -> Result<(), LoadError>;

    /// Receives and answers the next message, or continues with it; returns its size once it is answered, otherwise
    /// zero. Blocks at most for 100 ms.
    fn answer(&mut self) -> Result<u32, LoadError>;

    /// Returns whether the step is over: the end mark of the near end was read.
    fn ended(&self) -> bool;

    /// Returns the probes, as [`Worker::probes`] does.
    fn probes(&self) -> Vec<Box<dyn Probe>>;
}
