//! Engines: ways to move bytes. One engine is one file or folder here and one row in the table `ENGINES`.

pub mod sim;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::facts::{Gap, HostFacts};
use linerate_core::path::Side;
use linerate_core::plan::SetPlan;
use linerate_core::record::{SetEnd, Table};
use linerate_core::units::Bytes;

use crate::change::ChangeError;
use crate::event::Level;
use crate::host::Machine;

mod advice;
pub(crate) mod application;
mod connect;
pub(crate) mod icmp;
mod line;
mod null;
pub(crate) mod pace;
pub(crate) mod pages;
pub(crate) mod spin;
pub(crate) mod tcp;
mod times;
pub(crate) mod udp;

pub use advice::Advice;

/// Every engine.
pub static ENGINES: &[&dyn Engine] = &[&tcp::Tcp, &udp::Udp, &connect::Connect, &null::Null];

/// The engine with this name.
pub(crate) fn engine(name: &str) -> Option<&'static dyn Engine> {
    ENGINES.iter().find(|e| e.name() == name).copied()
}

/// What an engine can do: asked, never assumed.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent answers to independent questions"
)]
pub struct Caps {
    /// It carries a stream of payload one way.
    pub stream: bool,
    /// It times round trips.
    pub ping_pong: bool,
    /// It has a far end.
    pub far_end: bool,
    /// It can receive without copying to the user ([`linerate_core::plan::Receive::Discard`]).
    pub discard: bool,
    /// Payload may be lost on the way: what one end sent and the other received may differ.
    pub lossy: bool,
}

/// Something to tell the user before a run.
#[derive(Debug, Clone)]
pub struct Notice {
    /// How grave.
    pub level: Level,
    /// What, why, and what helps.
    pub gap: Gap,
}

impl Notice {
    /// What a host will not give, or not in full: the run goes on without.
    pub(crate) fn hints(gaps: Vec<Gap>) -> Vec<Self> {
        let hint = |gap| Self {
            level: Level::Hint,
            gap,
        };
        gaps.into_iter().map(hint).collect()
    }
}

/// Why an engine could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A system call failed.
    #[error("{call} failed on stream {stream}: {source}")]
    Call {
        /// Name of the call.
        call: &'static str,
        /// Stream of the set.
        stream: u32,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The other end broke the protocol of the engine.
    #[error("{what}")]
    Protocol {
        /// What was seen.
        what: String,
    },
    /// This engine cannot do what the plan asks.
    #[error("{what}")]
    Unsupported {
        /// What was asked.
        what: String,
    },
    /// Datagrams do not get through where connections do.
    #[error("no datagram gets through to {address} (UDP)")]
    NoDatagrams {
        /// Where they were sent to.
        address: SocketAddr,
    },
    /// Connections get through to the far end's port, but not to one of its own for this stream.
    #[error("no connection gets through to {address} (TCP)")]
    NoConnections {
        /// Where it was tried.
        address: SocketAddr,
    },
    /// The host cannot be made as the plan asks.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The set is not there: never connected, in use, or lost in an earlier step.
    #[error("set {set} is not connected")]
    NotConnected { set: u32 },
}

impl LoadError {
    /// What helps; empty when nothing does.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Call { source, .. } if used_up(source) => {
                "ask for fewer --streams, or raise the hard limit of open files (`ulimit -Hn` shows it: nofile in \
                 /etc/security/limits.conf, LimitNOFILE= of a service)"
            }
            Self::NoDatagrams { .. } => {
                "let UDP through to the far host, to the ports of net.ipv4.ip_local_port_range there; \
                 or measure with --engine tcp"
            }
            Self::NoConnections { .. } => {
                "let TCP through to the far host, to the ports of net.ipv4.ip_local_port_range there"
            }
            Self::Change(error) => error.hint(),
            _ => "",
        }
    }
}

/// The same host at another port; an IPv4 address as such, however the socket tells it.
pub(crate) fn at_port(address: SocketAddr, port: u16) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_none() => {
            let mut same = v6;
            same.set_port(port);
            same.into()
        }
        other => SocketAddr::new(other.ip().to_canonical(), port),
    }
}

/// Whether a call failed for want of descriptors.
fn used_up(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

/// Most operations that a worker is offered at once.
pub const BATCH: usize = 32;

/// One operation handed to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Send this many bytes of payload.
    Send(u32),
    /// Receive at most this many bytes of payload.
    Receive(u32),
}

/// One operation that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// What it was.
    pub op: Op,
    /// Payload moved; less than asked for when the worker was told to stop, or at an end mark.
    pub bytes: u32,
}

/// What a worker timed in a step: times in nanoseconds, ascending, with how often each was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timed {
    /// Round trips.
    pub trips: Vec<(u64, u64)>,
    /// How many of these are of messages that were due and were not answered.
    pub unanswered: u64,
    /// Messages beside these that were sent and whose answers never came.
    pub lost: u64,
    /// How long answers were with the kernel before they were read.
    pub unread: Vec<(u64, u64)>,
    /// From one send to the next, of a sender that keeps a rate.
    pub gaps: Vec<(u64, u64)>,
}

/// What is done to the socket of each stream, by its number.
pub type ConfigureEach<'a> = &'a mut dyn FnMut(u32, &OwnedFd) -> Result<(), LoadError>;

/// Data connections of a session: dialled on the near end, waited for on the far end; proved to
/// belong to the session either way.
pub trait Lines: Send {
    /// The connections for so many streams of `set`, in their order. `configure` is applied to each
    /// socket before it is connected on the near end, and after it was accepted on the far end.
    fn lines(
        &mut self,
        set: u32,
        streams: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError>;
    /// A socket for datagrams of `stream` of `set`, connected to the other end's, which has proved
    /// itself and is reached by them. `configure` is applied to the socket before anything comes to it.
    fn datagrams(
        &mut self,
        set: u32,
        stream: u32,
        configure: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<Datagrams, LoadError>;
    /// Whether nobody wants the set any more: an engine that waits for the other end by itself asks.
    fn given_up(&self) -> bool {
        false
    }
}

/// A socket for datagrams, connected to that of the other end. It blocks.
#[derive(Debug)]
pub struct Datagrams {
    /// The socket.
    pub fd: OwnedFd,
    /// What marks the datagrams that this end sends; nobody else but the other end knows it.
    pub own: u64,
    /// What marks those of the other end.
    pub other: u64,
}

/// No connections: for engines without a far end.
#[derive(Debug, Clone, Copy)]
pub struct NoLines;

impl Lines for NoLines {
    fn lines(
        &mut self,
        set: u32,
        streams: u32,
        _: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        (0..streams)
            .map(|stream| Err(no_far_end(set, stream)))
            .collect()
    }

    fn datagrams(
        &mut self,
        set: u32,
        stream: u32,
        _: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<Datagrams, LoadError> {
        Err(no_far_end(set, stream))
    }
}

fn no_far_end(set: u32, stream: u32) -> LoadError {
    let what = format!("stream {stream} of set {set} has no far end to connect to");
    LoadError::Unsupported { what }
}

/// An offer of one end to the other: addresses, keys, queue numbers. Opaque to all but its engine.
pub type Offer = Vec<u8>;

/// What an end of a set does without, or has less of than was asked for.
fn refused(what: &str, why: &str) -> Gap {
    Gap {
        what: format!("set.{what}"),
        why: why.to_owned(),
        hint: String::new(),
    }
}

/// A way to move bytes.
pub trait Engine: Sync {
    /// Its name on the command line and in records.
    fn name(&self) -> &'static str;
    /// What it can do.
    fn caps(&self) -> Caps;
    /// What the user should know before `plan` is run, this end of it on a host with these facts.
    fn check(&self, side: Side, facts: &HostFacts, plan: &SetPlan) -> Vec<Notice>;
    /// Refuses what it cannot do, and what would cost an end more memory or time than a measurement needs:
    /// plans come from the other end. The reason is told.
    fn bounds(&self, plan: &SetPlan) -> Result<(), String>;
    /// Buffers that each thread of one end of a set makes, where they do not follow from the sizes of its
    /// operations: a server counts them before it prepares the set.
    fn room(&self, _: Side, _: &SetPlan) -> Option<Bytes> {
        None
    }
    /// Descriptors that it holds for each stream, if payload is copied: a server counts them as well.
    fn descriptors(&self) -> u32 {
        1
    }
    /// Prepares one end of a set that is within [`Engine::bounds`]: what it offers to the other end, which is
    /// nothing where connections are all that it needs.
    fn prepare(&self, _: Side, plan: &SetPlan) -> Result<Offer, LoadError> {
        let unsupported = |what| LoadError::Unsupported { what };
        self.bounds(plan).map_err(unsupported)?;
        Ok(Offer::new())
    }
    /// Connects one end of a set to the other end's offer: one worker for each thread, and what
    /// was got.
    fn connect(
        &self,
        side: Side,
        plan: &SetPlan,
        offer: &Offer,
        lines: &mut dyn Lines,
    ) -> Result<(Vec<Box<dyn Worker>>, SetEnd), LoadError>;
}

/// One thread's share of a set. Made on the session's thread, then moved to its own.
///
/// Synchronous engines do the work in `submit` and hand the result over in `reap`.
pub trait Worker: Send {
    /// Called on the worker's own thread before the first operation of a step: buffers are made
    /// here, where they are used. `advice` is kept up to date by the sampler while the step runs.
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError>;
    /// Takes operations, at most [`BATCH`] of a kind; returns how many were taken (0: full, reap first). One
    /// that makes a call for each takes the first: what is left is offered again. May block, but for no longer
    /// than 100 ms at a time, so that a stop is noticed.
    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError>;
    /// Appends operations that have ended to `done`, waiting up to `wait` for at least `min`. One
    /// that could move nothing in time ends with zero bytes.
    fn reap(&mut self, min: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError>;
    /// Sender: works towards the in-band end mark behind the payload of this step, true once it is
    /// sent; payload moved on the way is reaped as ever. Receiver: true once the other end's mark
    /// was read. Blocks no longer than `submit`.
    fn finish(&mut self) -> Result<bool, LoadError>;
    /// What it timed in this step; nothing of it is left. Called once the step is over.
    fn timed(&mut self) -> Timed {
        Timed::default()
    }
    /// Payload of this step by stream, where one thread moves several; empty where what it moved is of one.
    /// Called once the step is over.
    fn moved(&self) -> Vec<(u32, u64)> {
        Vec::new()
    }
    /// Probes that other threads may use to read the worker's own counters (TCP_INFO ...) while it
    /// works, one for each connection.
    fn probes(&self) -> Vec<Box<dyn Probe>>;
}

/// Reads a worker's own counters from the sampler's thread.
pub trait Probe: Send {
    /// Appends one row to the probe's tables, of what `machine` answers. `at` tells the time since the step began in
    /// nanoseconds; it is asked after each reply, because the kernel may make the reader wait for
    /// a send in progress.
    fn observe(&mut self, machine: &dyn Machine, at: &dyn Fn() -> u64);
    /// The tables read since the last call; what ended early, or could not be read, is a gap.
    fn take(&mut self, gaps: &mut Vec<Gap>) -> Vec<Table>;
    /// Shuts the connection down, so that a blocked worker returns. Used to abort.
    fn abort(&self);
}
