//! Loads: the work of a thread in a step, and the transports that move its bytes.
//!
//! A [`transport`] is a way to move bytes, and one folder. A pattern decides when bytes are moved, and is written once
//! for all transports. Knows no session: how two ends meet is `linerate-session`.
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
// One byte tells whether an operation failed. Without it the compiler keeps that in the capacity of a string, and compares
// eight bytes after each call of the loop.
#[repr(u8)]
pub enum LoadError {
    /// A system call failed.
    #[error("{call} failed on stream {stream}: {source}")]
    Call {
        /// Name of the call.
        call: &'static str,
        /// Stream of the set.
        stream: u32,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// The other end broke the protocol of the transport.
    #[error("{what}")]
    Protocol {
        /// Failure that was noticed.
        what: String,
    },
    /// The transport does not support a feature that the plan needs.
    #[error("{what}")]
    Unsupported {
        /// Requested feature that the transport lacks.
        what: String,
    },
    /// A failure that only its transport knows, such as a device or a right that is missing, or a path that drops its
    /// packets.
    #[error("{what}")]
    Failed {
        /// What failed or is missing.
        what: String,
        /// The command or change that helps; empty if there is none.
        hint: &'static str,
    },
    /// The host's settings cannot be changed as the plan asks.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The set has no connections: never connected, in use, or lost in an earlier step.
    #[error("set {set} is not connected")]
    NotConnected { set: u32 },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl LoadError {
    /// Returns whether the other end was waited for in vain.
    pub fn is_late(&self) -> bool {
        matches!(self, Self::Call { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
    }

    /// Returns the command or change that helps; empty if there is none.
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

/// Returns whether a call failed because no descriptors are left.
fn used_up(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

/// Most operations that a worker is offered at once.
pub const BATCH: usize = 32;

/// One operation handed to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Send as many bytes of payload as given.
    Send(u32),
    /// Receive at most as many bytes of payload as given.
    Receive(u32),
    /// Access as much of the worker's memory as the worker handles in one call.
    Access(Access),
}

/// One completed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Kind of the operation.
    pub op: Op,
    /// Payload that was moved, in bytes; less than requested if the worker was stopped, or at an end mark.
    pub bytes: u32,
}

/// Times of a step that a worker measured: values in nanoseconds, ascending, with their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timed {
    /// Round-trip times, with their counts.
    pub trips: Vec<(u64, u64)>,
    /// What is known of these times to the nanosecond.
    pub exact: Option<Exact>,
    /// Number of round trips that stand for messages that were due and were not answered.
    pub unanswered: u64,
    /// Number of further messages that were sent and never answered.
    pub lost: u64,
    /// Times that answers waited in the kernel before they were read.
    pub unread: Vec<(u64, u64)>,
    /// Times between two sends of a paced sender.
    pub gaps: Vec<(u64, u64)>,
}

/// One thread's share of a set. It is made on the session's thread, then moved to its own.
///
/// Synchronous transports do the work in `submit` and return the result in `reap`.
pub trait Worker: Send {
    /// Prepares a step. It is called on the worker's own thread before the first operation, so that buffers are
    /// allocated where they are used. The sampler keeps `advice` up to date while the step runs.
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError>;
    /// Accepts operations, at most [`BATCH`] of one kind; returns how many were accepted (0: full, reap first). A
    /// worker that makes one system call per operation accepts only the first, and the others are offered again. May
    /// block, but for at most 100 ms at a time, so that a stop is noticed.
    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError>;
    /// Appends completed operations to `done`, waiting up to `wait` for at least `min`. An operation that could move
    /// nothing in that time completes with zero bytes.
    fn reap(&mut self, min: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError>;
    /// Continues to the end of the step. A sender sends the end mark behind the payload of this step, and returns
    /// true once it is sent; payload that moves until then is reaped as usual. A receiver returns true once the other
    /// end's mark was read. Blocks no longer than `submit`.
    fn finish(&mut self) -> Result<bool, LoadError>;
    /// Takes the worker's gaps: resources that it did not get when the step began, and does without.
    fn lacks(&mut self) -> Vec<Gap> {
        Vec::new()
    }
    /// Takes the times of this step out of the worker. Called once the step is over.
    fn timed(&mut self) -> Timed {
        Timed::default()
    }
    /// Returns the payload of this step by stream, if one thread moves several; empty if it moves a single one.
    /// Called when the step is over.
    fn moved(&self) -> Vec<(u32, u64)> {
        Vec::new()
    }
    /// Returns the process that moves the payload in place of this thread, if there is one.
    fn process(&self) -> Option<u32> {
        None
    }
    /// Returns probes with which other threads read the counters of the worker's connections (TCP_INFO ...) while it
    /// works, one for each connection.
    fn probes(&self) -> Vec<Box<dyn Probe>>;
}

/// Reads a worker's own counters from the sampler's thread.
pub trait Probe: Send {
    /// Appends one row to the probe's tables, from the answers of `machine`. `at` returns the time since the step
    /// began, in nanoseconds. It is called after each reply, because the kernel may delay the reply until a send in
    /// progress has ended.
    fn observe(&mut self, _machine: &dyn Machine, _at: &dyn Fn() -> u64) {}
    /// Takes the tables since the last call. A table that ended early or could not be read is a gap.
    fn take(&mut self, _gaps: &mut Vec<Gap>) -> Vec<Table> {
        Vec::new()
    }
    /// Returns the packets of the connection that were lost or reordered, as counted at this end up to the last row;
    /// `None` if it does not count them.
    fn setbacks(&self) -> Option<u64> {
        None
    }
    /// Shuts the connection down, so that a blocked worker returns. Used to abort.
    fn abort(&self);
}
