//! Reads, for the sampler, a worker's counts of its datagrams and the kernel's counts for its socket.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use linerate_facts::Gap;
use linerate_facts::metric::{
    Metric, SOCKET_DROPS, UDP_DATAGRAMS, UDP_DROPS, UDP_DUPLICATED, UDP_ERRORS, UDP_JITTER,
    UDP_LATE, UDP_LOST, UDP_MESSAGES, UDP_REFUSED, UDP_REORDERED, UDP_STRAY,
};
use linerate_facts::parse::mem_info;
use linerate_record::Table;
use linerate_sys::datagram::BATCH;
use linerate_sys::socket;
use linerate_units::stats::Arrivals;

use super::line::Line;
use crate::Probe;
use linerate_host::sheet::Sheet;
use linerate_host::{Machine, SocketAsk, SocketQuery};

/// Counters of a worker for one step, in a pair of cache lines of their own. Only the worker writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counts {
    datagrams: AtomicU64,
    lost: AtomicU64,
    reordered: AtomicU64,
    duplicated: AtomicU64,
    late: AtomicU64,
    stray: AtomicU64,
    messages: AtomicU64,
    refused: AtomicU64,
    errors: AtomicU64,
    uncut: AtomicBool,
    fragments: AtomicBool,
    jitter: AtomicU64,
}

impl Counts {
    /// Resets the counters when a step begins.
    pub(super) fn clear(&self) {
        self.stray.store(0, Relaxed);
        self.refused.store(0, Relaxed);
        self.messages.store(0, Relaxed);
        self.errors.store(0, Relaxed);
        self.arrived(&Arrivals::default());
    }

    /// Sets the total number of datagrams sent.
    pub(super) fn sent(&self, datagrams: u64) {
        self.datagrams.store(datagrams, Relaxed);
    }

    /// Stores the number of messages that have no answer yet.
    pub(super) fn unanswered(&self, messages: u64) {
        self.lost.store(messages, Relaxed);
    }

    /// Stores the numbers of datagrams that were received, lost, reordered, duplicated or late so far.
    pub(super) fn arrived(&self, arrivals: &Arrivals) {
        self.datagrams.store(arrivals.taken(), Relaxed);
        self.lost.store(arrivals.missing(), Relaxed);
        self.reordered.store(arrivals.reordered(), Relaxed);
        self.duplicated.store(arrivals.duplicated(), Relaxed);
        self.late.store(arrivals.late(), Relaxed);
    }

    /// Stores the jitter of the datagrams received, in nanoseconds.
    pub(super) fn jitter(&self, nanos: u64) {
        self.jitter.store(nanos, Relaxed);
    }

    /// Sets the number of received datagrams that do not belong to this step.
    pub(super) fn strays(&self, datagrams: u64) {
        self.stray.store(datagrams, Relaxed);
    }

    /// Counts a received datagram that does not belong to this step.
    pub(super) fn stray(&self) {
        // Only this thread writes the counter, so no atomic addition is needed.
        self.stray.store(self.stray.load(Relaxed) + 1, Relaxed);
    }

    /// Counts messages that were read. A message consists of one or several datagrams that the kernel joined.
    pub(super) fn read(&self, messages: usize) {
        let all = self.messages.load(Relaxed) + messages as u64;
        self.messages.store(all, Relaxed);
    }

    /// Counts datagrams that this host refused to send.
    pub(super) fn refused(&self, datagrams: u64) {
        let all = self.refused.load(Relaxed) + datagrams;
        self.refused.store(all, Relaxed);
    }

    /// Counts an ICMP error that the path reported for a datagram.
    pub(super) fn count_error(&self) {
        self.errors.store(self.errors.load(Relaxed) + 1, Relaxed);
    }

    /// Stores that datagrams are sent in fragments from now on; returns whether they already were.
    pub(super) fn fragments(&self) -> bool {
        self.fragments.swap(true, Relaxed)
    }

    /// Stores that the kernel cannot segment messages on this route.
    pub(super) fn uncut(&self) {
        self.uncut.store(true, Relaxed);
    }

    fn value(&self, metric: Metric) -> Option<i64> {
        let count = match metric.name {
            n if n == UDP_DATAGRAMS.name => &self.datagrams,
            n if n == UDP_LOST.name => &self.lost,
            n if n == UDP_REORDERED.name => &self.reordered,
            n if n == UDP_DUPLICATED.name => &self.duplicated,
            n if n == UDP_LATE.name => &self.late,
            n if n == UDP_STRAY.name => &self.stray,
            n if n == UDP_REFUSED.name => &self.refused,
            n if n == UDP_MESSAGES.name => &self.messages,
            n if n == UDP_ERRORS.name => &self.errors,
            n if n == UDP_JITTER.name => &self.jitter,
            _ => return None,
        };
        Some(count.load(Relaxed) as i64)
    }
}

/// Metrics of a worker that sends a stream of datagrams.
pub(super) const SENDS: &[Metric] = &[UDP_DATAGRAMS, UDP_REFUSED, UDP_ERRORS];
/// Metrics of a worker that receives a stream of datagrams.
pub(super) const RECEIVES: &[Metric] = &[
    UDP_DATAGRAMS,
    UDP_LOST,
    UDP_REORDERED,
    UDP_DUPLICATED,
    UDP_LATE,
    UDP_STRAY,
    UDP_MESSAGES,
    UDP_ERRORS,
    UDP_DROPS,
];
/// Metrics of a worker that receives a stream of datagrams with iperf3's headers.
pub(super) const RECEIVES_BARE: &[Metric] = &[
    UDP_DATAGRAMS,
    UDP_LOST,
    UDP_REORDERED,
    UDP_DUPLICATED,
    UDP_LATE,
    UDP_STRAY,
    UDP_JITTER,
    UDP_MESSAGES,
    UDP_ERRORS,
    UDP_DROPS,
];
/// Metrics of a worker that sends messages and measures round trips.
pub(super) const ASKS: &[Metric] = &[UDP_DATAGRAMS, UDP_LOST, UDP_STRAY, UDP_ERRORS, UDP_DROPS];
/// Metrics of a worker that answers messages.
pub(super) const ANSWERS: &[Metric] = &[UDP_DATAGRAMS, UDP_STRAY, UDP_ERRORS, UDP_DROPS];

/// Probe of the counters of a worker and of its socket.
pub(super) struct DatagramProbe {
    line: Line,
    metrics: &'static [Metric],
    sheet: Sheet,
    /// Gaps to report: the event after which the table was ended.
    gaps: Vec<Gap>,
}

impl DatagramProbe {
    pub(super) fn new(line: Line, metrics: &'static [Metric]) -> Self {
        let subject = format!("s{}/{}", line.set, line.stream);
        Self { line, metrics, sheet: Sheet::new(UDP_DATAGRAMS.source, subject), gaps: Vec::new() }
    }

    fn drops(&self, machine: &dyn Machine) -> Option<i64> {
        let query =
            SocketQuery { set: self.line.set, stream: self.line.stream, ask: SocketAsk::MemInfo };
        let mut room = [0; mem_info::ROOM];
        let got = machine.socket(&query, self.line.fd(), &mut room).ok()?;
        let raw = room.get(..got)?;
        mem_info::values(raw)
            .find(|(metric, _)| metric.name == SOCKET_DROPS.name)
            .and_then(|(_, value)| value)
    }
}

impl Probe for DatagramProbe {
    fn observe(&mut self, machine: &dyn Machine, at: &dyn Fn() -> u64) {
        let row: Vec<_> = self
            .metrics
            .iter()
            .map(|metric| match metric.name {
                n if n == UDP_DROPS.name => (*metric, self.drops(machine)),
                _ => (*metric, self.line.counts.value(*metric)),
            })
            .collect();
        self.gaps.extend(self.sheet.push(at(), row));
    }

    fn take(&mut self, gaps: &mut Vec<Gap>) -> Vec<Table> {
        gaps.append(&mut self.gaps);
        let Line { stream, set, .. } = self.line;
        let of = format!("stream {stream} of set {set}");
        let mut tell = |what: &str, why: String| {
            gaps.push(Gap { what: format!("set.{what}"), why, hint: String::new() });
        };
        if self.line.counts.uncut.load(Relaxed) {
            let why = format!(
                "the kernel does not segment messages (UDP_SEGMENT) on the route of {of}: each \
                 datagram was sent by itself, at most {BATCH} in a burst, which costs more CPU time"
            );
            tell("segmentation", why);
        }
        if self.line.counts.fragments.load(Relaxed) {
            let why = format!(
                "the path no longer carried datagrams of {of} in one packet: they were fragmented \
                 since then, and losing one fragment loses all of a datagram"
            );
            tell("fragments", why);
        }
        self.sheet.take().into_iter().collect()
    }

    fn abort(&self) {
        // A socket that is closed already needs no shutdown.
        let _ = socket::shutdown(self.line.fd());
    }
}
