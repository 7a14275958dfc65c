//! Loads: what a thread does in a step, and the transports that move its bytes.
//!
//! A [`transport`] is a way to move bytes; each has its own module. A pattern decides when bytes are moved, and is
//! written once for all transports. This crate knows no sessions: `linerate-session` connects the two ends.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;
use linerate_plan::Access;
use linerate_record::Table;
use linerate_units::stats::Exact;

use linerate_host::Machine;
use linerate_host::change::ChangeError;

mod advice;
pub mod application;
pub mod framing;
pub(crate) mod pace;
pub(crate) mod pages;
mod pattern;
pub(crate) mod spin;
mod times;
pub mod transport;

pub use advice::Advice;

/// Why a transport could not do its work.
#[derive(Debug, thiserror::Error)]
// With this attribute, one byte shows whether an operation failed. Otherwise the compiler encodes that in the capacity
// of a string, and compares eight bytes after each call in the loop of operations.
#[repr(u8)]
pub enum LoadError {
    /// A system call failed.
    #[error("{call} failed on stream {stream}: {source}")]
    Call {
        /// Name of the system call.
        call: &'static str,
        /// Number of the stream in its set.
        stream: u32,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// The other end broke the protocol of the transport.
    #[error("{what}")]
    Protocol {
        /// What was wrong.
        what: String,
    },
    /// The transport does not support a feature that the plan needs.
    #[error("{what}")]
    Unsupported {
        /// The feature that the transport lacks.
        what: String,
    },
    /// A failure that is specific to the transport, such as a missing device or right, or a path that drops its
    /// packets.
    #[error("{what}")]
    Failed {
        /// What failed or is missing.
        what: String,
        /// The command or action that would help; empty if there is none.
        hint: &'static str,
    },
    /// The host's settings cannot be changed as the plan requires.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The set has no connections: it was never connected, is in use, or was lost in an earlier step.
    #[error("set {set} is not connected")]
    NotConnected { set: u32 },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl LoadError {
    /// Returns whether the error is a timeout of a system call: the other end did not respond.
    pub fn is_late(&self) -> bool {
        matches!(self, Self::Call { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
    }

    /// Returns the command or action that would help; empty if there is none.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Call { source, .. } if used_up(source) => {
                "use fewer --streams, or raise the hard limit of open files (`ulimit -Hn` shows it: nofile in \
                 /etc/security/limits.conf, LimitNOFILE= of a service)"
            }
            Self::Failed { hint, .. } => hint,
            Self::Change(error) => error.hint(),
            _ => "",
        }
    }
}

/// Returns whether a call failed because the process may open no more files.
fn used_up(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

/// Most operations that are offered to a worker at once.
pub const BATCH: usize = 32;

/// One operation that a worker is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Send so many bytes of payload.
    Send(u32),
    /// Receive at most so many bytes of payload.
    Receive(u32),
    /// Access as much of the worker's memory as the worker handles in one call.
    Access(Access),
}

/// One completed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The operation, as it was offered.
    pub op: Op,
    /// Payload that was moved, in bytes. It is less than requested if the worker was stopped or reached an end mark.
    pub bytes: u32,
}

/// Times of a step that a worker measured. Each list has values in nanoseconds, ascending, with their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timed {
    /// Round-trip times.
    pub trips: Vec<(u64, u64)>,
    /// Exact figures of the round-trip times, to the nanosecond.
    pub exact: Option<Exact>,
    /// Number of those round-trip times that belong to messages that were due but not answered.
    pub unanswered: u64,
    /// Number of other messages that were sent and never answered; they have no time.
    pub lost: u64,
    /// Times that answers waited in the kernel before they were read.
    pub unread: Vec<(u64, u64)>,
    /// Times between two successive sends of a paced sender.
    pub gaps: Vec<(u64, u64)>,
}

/// One thread's part of a set. It is made on the session's thread, then moved to its own thread.
///
/// Synchronous transports do the work in `submit` and return the result in `reap`.
pub trait Worker: Send {
    /// Prepares a step. It is called on the worker's own thread before the first operation, so that buffers are
    /// allocated where they are used. The sampler keeps `advice` up to date while the step runs.
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError>;
    /// Accepts operations, at most [`BATCH`] of one kind; returns how many were accepted. Zero means that the worker is
    /// full: `reap` must be called first. A worker that makes one system call per operation accepts only the first
    /// operation, and the others are offered again. May block, but at most 100 ms at a time, so that a stop is noticed.
    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError>;
    /// Appends completed operations to `done`, after waiting up to `wait` for at least `min` of them. An operation that
    /// could move no payload in that time completes with zero bytes.
    fn reap(&mut self, min: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError>;
    /// Continues to the end of the step. A sender sends the end mark behind the payload of this step, and returns true
    /// once the mark is sent; payload moved until then is reaped as usual. A receiver returns true once the other end's
    /// end mark was read. Blocks no longer than `submit`.
    fn finish(&mut self) -> Result<bool, LoadError>;
    /// Takes the gaps of the worker: resources that it did not get when the step began and works without.
    fn lacks(&mut self) -> Vec<Gap> {
        Vec::new()
    }
    /// Takes the times of this step out of the worker. It is called after the step.
    fn timed(&mut self) -> Timed {
        Timed::default()
    }
    /// Returns the payload of this step for each stream, if one thread moves several streams; empty if it moves one. It
    /// is called after the step.
    fn moved(&self) -> Vec<(u32, u64)> {
        Vec::new()
    }
    /// Returns the id of the process that moves the payload instead of this thread, if there is one.
    fn process(&self) -> Option<u32> {
        None
    }
    /// Returns the kernel's ids of other threads of this process that make calls for this one, whose CPU time belongs to
    /// the step too.
    fn helpers(&self) -> Vec<i32> {
        Vec::new()
    }
    /// Returns probes, one for each connection of the worker. With them, other threads read the counters of the
    /// connections (TCP_INFO ...) while the worker runs.
    fn probes(&self) -> Vec<Box<dyn Probe>>;
}

/// Reads the counters of one connection of a worker, on the sampler's thread.
pub trait Probe: Send {
    /// Appends one row to the probe's tables, from replies of `machine`. `at` returns the time since the step began, in
    /// nanoseconds. It is called after each reply, because the kernel may delay a reply until a send in progress has
    /// ended.
    fn observe(&mut self, _machine: &dyn Machine, _at: &dyn Fn() -> u64) {}
    /// Takes the tables since the last call. Adds a gap for each table that ended early or could not be read.
    fn take(&mut self, _gaps: &mut Vec<Gap>) -> Vec<Table> {
        Vec::new()
    }
    /// Returns how many packets of the connection were lost or reordered, as counted at this end up to the last row;
    /// `None` if this end does not count them.
    fn setbacks(&self) -> Option<u64> {
        None
    }
    /// Shuts the connection down, so that a blocked worker returns. It is used to abort a step.
    fn abort(&self);
}
