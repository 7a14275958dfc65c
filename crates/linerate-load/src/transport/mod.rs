//! Transports move bytes. Each transport is one file or folder here, and has one row in the table `TRANSPORTS`.

mod abort;
mod connect;
mod file;
pub(crate) mod icmp;
pub(crate) mod line;
pub mod memory;
mod null;
pub mod program;
mod rdma;
mod shm;
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod udp;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

use linerate_facts::{Gap, HostFacts};
use linerate_plan::path::Side;
use linerate_plan::subject::Subject;
use linerate_plan::transport::{DSCP, PatternKind, TransportInfo};
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_sys::socket;
use linerate_units::Bytes;

use super::application::WORK_MAX_PS;
use super::{LoadError, Worker};
use linerate_facts::Level;

/// All transports.
pub static TRANSPORTS: &[&dyn Transport] = &[
    &tcp::Tcp,
    &udp::Udp,
    &connect::Connect,
    &shm::Shm,
    &rdma::Rdma,
    &program::Program,
    &memory::Memory,
    &file::File,
    &null::Null,
];

/// Returns the transport with this name.
pub fn transport(name: &str) -> Option<&'static dyn Transport> {
    TRANSPORTS.iter().find(|t| t.info().name == name).copied()
}

/// A note for the user before a run.
#[derive(Debug, Clone)]
pub struct Notice {
    /// The severity of the note.
    pub level: Level,
    /// The problem, its reason, and the command that would help.
    pub gap: Gap,
}

impl Notice {
    /// Makes notices of resources that a host refuses or grants only partly. The run continues without them.
    pub(crate) fn hints(gaps: Vec<Gap>) -> Vec<Self> {
        let hint = |gap| Self { level: Level::Hint, gap };
        gaps.into_iter().map(hint).collect()
    }
}

/// Callback that configures the socket of each stream; its first argument is the stream's number.
pub type ConfigureEach<'a> = &'a mut dyn FnMut(u32, &OwnedFd) -> Result<(), LoadError>;

/// Makes a session's data connections. The near end connects to the far end, and the far end accepts the connections;
/// both prove that they belong to the session.
pub trait Lines: Send {
    /// Makes the connections of the `streams` streams of `set`, in the order of streams. `configure` is applied to each
    /// socket: on the near end before it is connected, on the far end after it was accepted.
    fn lines(
        &mut self,
        set: u32,
        streams: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError>;
    /// Returns a socket for datagrams of `stream` of `set`. It is connected to the other end's socket, which has proved
    /// that it belongs to the session and can be reached. `configure` is applied to the socket before any datagram is
    /// received.
    fn datagrams(
        &mut self,
        set: u32,
        stream: u32,
        configure: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<Datagrams, LoadError>;
    /// Returns what the load accesses, if it needs no connection: a file or the host.
    fn subject(&self) -> &Subject {
        &Subject::Host
    }
    /// Returns whether the set was cancelled. A transport that waits for the other end itself must check this.
    fn given_up(&self) -> bool {
        false
    }
}

/// Closes the files of our own in which loads measured disks, so that their space is free again.
pub fn forget_files() {
    file::forget();
}

/// Returns the address with this TCP or UDP port. An IPv4-mapped IPv6 address becomes an IPv4 address.
pub fn at_port(address: SocketAddr, port: u16) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_none() => {
            let mut same = v6;
            same.set_port(port);
            same.into()
        }
        other => SocketAddr::new(other.ip().to_canonical(), port),
    }
}

/// A blocking datagram socket that is connected to the other end's socket.
#[derive(Debug)]
pub struct Datagrams {
    /// Datagram socket of this end.
    pub fd: OwnedFd,
    /// Tag that this end writes into its datagrams; only the two ends know it.
    pub own: u64,
    /// Tag that the other end writes into its datagrams.
    pub other: u64,
}

/// `Lines` without connections, for transports that have no program at a far end. It contains what the load accesses.
#[derive(Debug, Clone, Copy)]
pub struct NoLines<'a>(pub &'a Subject);

impl Lines for NoLines<'_> {
    fn subject(&self) -> &Subject {
        self.0
    }

    fn lines(
        &mut self,
        set: u32,
        streams: u32,
        _: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        (0..streams).map(|stream| Err(no_far_end(set, stream))).collect()
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

/// What one end sends to the other before they connect: addresses, keys, queue numbers. Its format depends on the
/// transport.
pub type Offer = Vec<u8>;

/// Refuses plans that the transport cannot carry out, and plans that need more memory or time of an end than a
/// measurement should. A plan may come from the other end, so it is not trusted. The error is the reason, as a
/// lowercase fragment.
pub fn possible(transport: &dyn Transport, plan: &SetPlan) -> Result<(), String> {
    let (info, knobs) = (transport.info(), &plan.knobs);
    let kind = plan.pattern.kind();
    if !info.carries(kind) {
        return Err(lacks(kind).to_owned());
    }
    knobs.options.check(info.options, kind)?;
    let work = knobs.extra_work;
    if work.sender_ps_per_byte.max(work.receiver_ps_per_byte) > WORK_MAX_PS {
        return Err(format!("extra work over {WORK_MAX_PS} ps per byte"));
    }
    if let Pattern::PingPong { interval, .. } = plan.pattern
        && knobs.open_loop
        && interval.0 == 0
    {
        return Err("an open loop needs a time from one message to the next".to_owned());
    }
    info.check(knobs)?;
    transport.bounds(plan)
}

/// Returns the reason why a transport cannot run a pattern that it lacks.
const fn lacks(kind: PatternKind) -> &'static str {
    match kind {
        PatternKind::Stream => "it carries no stream of payload",
        PatternKind::RoundTrips => "it times no round trips",
        PatternKind::Operations => "it has no reads, writes and copies",
    }
}

/// Refuses a plan whose number of streams is not within 1 to `most`.
fn streams(plan: &SetPlan, most: u32) -> Result<(), String> {
    let streams = plan.knobs.streams;
    if (1..=most).contains(&streams) {
        return Ok(());
    }
    Err(format!("{streams} streams: 1 to {most} are possible"))
}

/// Largest operation and message, in bytes, for transports in which each thread allocates its operation.
const SIZE_MAX: u64 = 16 << 20;

/// Refuses operations and messages over [`SIZE_MAX`], and empty messages.
fn sizes(plan: &SetPlan) -> Result<(), String> {
    for (name, size) in [("write", plan.knobs.write_size), ("read", plan.knobs.read_size)] {
        if size.0 > SIZE_MAX {
            return Err(format!("a {name} size of {size} is over 16 MiB"));
        }
    }
    match plan.pattern {
        Pattern::PingPong { size, .. } => message(size),
        _ => Ok(()),
    }
}

/// Refuses a message that is empty or over [`SIZE_MAX`].
fn message(size: Bytes) -> Result<(), String> {
    if (1..=SIZE_MAX).contains(&size.0) {
        return Ok(());
    }
    Err(format!("a message of {size}: allowed are 1 B to 16 MiB"))
}

/// Sets the DSCP of a socket's packets that `knobs` request; `None` if they request none.
pub(crate) fn marked(fd: BorrowedFd<'_>, knobs: &Knobs) -> Option<io::Result<()>> {
    let dscp = knobs.options.number(DSCP.key)?;
    Some(socket::set_dscp(fd, dscp.min(63) as u8))
}

/// Makes a gap for an option of a set that an end refuses, or grants only partly.
fn refused(what: &str, why: &str) -> Gap {
    Gap { what: format!("set.{what}"), why: why.to_owned(), hint: String::new() }
}

/// A way to move bytes.
pub trait Transport: Sync {
    /// Returns the transport's row in the table of transports of the core.
    fn info(&self) -> &'static TransportInfo;
    /// Returns what the user should know before `plan` runs, if this end is on a host with these facts.
    fn check(&self, _side: Side, _facts: &HostFacts, _plan: &SetPlan) -> Vec<Notice> {
        Vec::new()
    }
    /// Checks the limits that only this transport has, as a part of [`possible`]. Knobs that it does not support are
    /// listed in its row of the table.
    fn bounds(&self, plan: &SetPlan) -> Result<(), String>;
    /// Returns how many bytes of buffers each thread of this end allocates; `None` if the sizes of operations determine
    /// that. A server adds them up before it prepares the set.
    fn room(&self, _: Side, _: &SetPlan) -> Option<Bytes> {
        None
    }
    /// Returns the number of descriptors that each stream needs if payload is copied. A server adds them up too.
    fn descriptors(&self) -> u32 {
        1
    }
    /// Prepares one end of a set whose plan is [`possible`].
    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError>;
}

/// One end of a set before it is connected. Dropping it releases all its resources.
pub trait Prepared: Send {
    /// Returns this end's offer to the other end; empty if the transport needs only connections.
    fn offer(&self) -> Offer;
    /// Connects this end to the other end, whose offer is `offer`.
    fn connect(
        self: Box<Self>,
        offer: &Offer,
        lines: &mut dyn Lines,
    ) -> Result<Connected, LoadError>;
}

/// One end of a set that is ready for steps.
pub struct Connected {
    /// Workers of the set, one for each thread.
    pub workers: Vec<Box<dyn Worker>>,
    /// Settings in force, some of which may be smaller than the plan requested.
    pub end: SetEnd,
}

/// Function that connects an end that needs no preparation.
type Connect = fn(Side, &SetPlan, &mut dyn Lines) -> Result<Connected, LoadError>;

/// An end that needs no preparation before it is connected.
struct Unmade {
    side: Side,
    plan: SetPlan,
    connect: Connect,
}

/// Makes an end that needs no preparation, and that `connect` will connect.
fn unmade(side: Side, plan: &SetPlan, connect: Connect) -> Box<dyn Prepared> {
    Box::new(Unmade { side, plan: plan.clone(), connect })
}

impl Prepared for Unmade {
    fn offer(&self) -> Offer {
        Offer::new()
    }

    fn connect(self: Box<Self>, _: &Offer, lines: &mut dyn Lines) -> Result<Connected, LoadError> {
        (self.connect)(self.side, &self.plan, lines)
    }
}
