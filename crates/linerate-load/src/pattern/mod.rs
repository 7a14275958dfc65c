//! Patterns determine when messages are sent, and which times are measured. Each is written once, for all transports
//! that support it.
//!
//! A transport moves messages and answers ([`Asker`], [`Answerer`]) and knows nothing of schedules; a pattern knows
//! nothing of sockets. Both are combined without dynamic calls, since a round trip through memory is so short that
//! such a call would affect it.

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

/// Period whose messages are announced to the other end at once, in nanoseconds.
const ANNOUNCED_NANOS: u64 = 10_000_000;

/// An answer that was received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// Number of the message that is answered.
    pub(crate) number: u64,
    /// Time at which the answer was received, on the clock of all times.
    pub(crate) at: u64,
    /// Time that the answer waited in the kernel, if the kernel reports it.
    pub(crate) unread: Option<u64>,
}

/// The near end of a stream of messages and answers, all of one size. Messages of a step are numbered from 0.
pub(crate) trait Asker: Send {
    /// Shortest and longest timeout of an answer, in nanoseconds. `None` if neither messages nor answers can be lost;
    /// answers are then received in the order of their messages.
    const PATIENCE: Option<(u64, u64)>;
    /// Whether messages and answers may be lost. A message is then sent whole or not at all.
    const LOSSY: bool = Self::PATIENCE.is_some();

    /// Whether answers include the time that they waited in the kernel.
    const SAYS_UNREAD: bool = false;

    /// Returns the size of a message, and of its answer.
    fn size(&self) -> u32;

    /// Allocates buffers, and begins a step.
    fn begin(&mut self) -> Result<(), LoadError>;

    /// Announces messages to the other end, if it must know of them: at least one, at most `most`. With `wait` it may
    /// block briefly. Returns true once the next message may be sent.
    fn announce(&mut self, most: impl FnOnce() -> u64, wait: bool) -> Result<bool, LoadError>;

    /// Returns the number of messages that were announced to the other end and not sent.
    fn announced(&self) -> u64;

    /// Sends the next message, or the rest of it. With `wait` it may block briefly. Returns true once all of it is
    /// sent.
    fn send(&mut self, wait: bool) -> Result<bool, LoadError>;

    /// Passes the available answers to `take`; `wait` says how the first is awaited. `take` returns whether the
    /// answer was awaited.
    fn receive(&mut self, wait: Wait, take: impl FnMut(Answer) -> bool) -> Result<(), LoadError>;

    /// Waits, no longer than `most`, until an answer is available, or until a message can be sent if that is
    /// `wanted`; returns both states.
    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError>;

    /// Returns whether the current message is known to be lost.
    fn is_lost(&self) -> bool {
        false
    }

    /// Stores for the probes how many messages were not answered.
    fn unanswered(&self, _: u64) {}

    /// Continues to the end of the step, when no message is in flight. Returns true once the other end knows of the
    /// end.
    fn finish(&mut self) -> Result<bool, LoadError>;

    /// Returns the probes, as [`Worker::probes`] does.
    fn probes(&self) -> Vec<Box<dyn Probe>>;
}

/// How an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Do not wait.
    No,
    /// Sleep, for no longer than a call may block.
    Asleep,
    /// Spin for many polls.
    Busy,
}

impl Wait {
    /// Returns how a thread waits that is `busy` or not.
    pub(crate) const fn of(busy: bool) -> Self {
        if busy { Self::Busy } else { Self::Asleep }
    }
}

/// Makes the near end of round trips with the settings `knobs`: messages are due every `interval`, or one after the
/// other.
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

/// The far end of one stream: answers each message with one of the same size.
pub(crate) trait Answerer: Send {
    /// Returns the size of a message, and of its answer.
    fn size(&self) -> u32;

    /// Allocates buffers, and begins a step.
    fn begin(&mut self) -> Result<(), LoadError>;

    /// Answers the next message, or continues with it; returns its size once it is answered, otherwise zero. Blocks
    /// for no longer than 100 ms.
    fn answer(&mut self) -> Result<u32, LoadError>;

    /// Returns whether the step is over: the near end's end mark was read.
    fn ended(&self) -> bool;

    /// Returns the probes, as [`Worker::probes`] does.
    fn probes(&self) -> Vec<Box<dyn Probe>>;
}
