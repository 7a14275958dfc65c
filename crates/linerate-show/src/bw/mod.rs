//! The result of `linerate bw`, as text and as JSON: one measurement of throughput, with linerate or iperf3 as the
//! far end.

mod datagrams;
mod iperf3;
mod json;
mod memory;
pub(super) mod own;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod search;
pub(super) mod text;

use linerate_explain::Headline;
use linerate_facts::Gap;
use linerate_facts::rdma::RdmaEnd;
use linerate_judge::figure::{
    CPU, Entry, Figure, GOODPUT, LOSS, MESSAGES, RETRANSMITS, Subject, Summary, Value,
};
use linerate_judge::model::{Counted, Estimate, MemoryLoad};
use linerate_plan::Handover;
use linerate_plan::path::{Direction, Side};
use linerate_plan::search::Search;
use linerate_plan::transport::Options;
use linerate_record::SetEnd;
use linerate_units::stats::Histogram;
use linerate_units::{Bytes, Nanos, Rate};
use schemars::JsonSchema;
use serde::Serialize;

pub use json::json;
pub(super) use json::{Output, output};
pub use text::page;

use super::flows::Look;
pub use iperf3::Connections;

/// The program that serves at the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FarEnd {
    /// The far end runs `linerate serve`.
    Linerate,
    /// The far end is an iperf3 server.
    Iperf3,
    /// No far end: a load of this host's memory.
    None,
}

/// The result of a measurement of throughput.
#[derive(Debug)]
pub struct Probe {
    target: String,
    far_end: FarEnd,
    /// Address and port of the far end.
    address: String,
    /// Name of the transport.
    engine: String,
    /// The options of the transport that are set.
    options: Options,
    /// The ports of RDMA devices that carry the load, near first; none for other transports.
    rdma: Vec<(Side, RdmaEnd)>,
    /// The load of this host's memory; `None` if a path was measured.
    memory: Option<MemoryLoad>,
    streams: u32,
    /// The requested time to measure.
    time: Nanos,
    /// Measured time: shorter than planned if the measurement ended early.
    lasted: Nanos,
    /// Time under load before the measured time; it does not count.
    washout: Nanos,
    /// Whether both ends share one machine; `None` if it is unknown.
    same_machine: Option<bool>,
    /// Why the measurement ended early; empty if it did not.
    broken: String,
    /// The verdict on these readings in one line; `None` if there is nothing to judge.
    headline: Option<Headline>,
    /// The search for the highest rate without loss; `results` are then those of its longer step. `None` if no
    /// search was requested.
    search: Option<Search>,
    /// The requested directions, with the figures of each.
    results: Vec<DirectionResult>,
    /// This end's connections, judged by the readings of this end only; `None` if they were not read.
    look: Option<Look>,
    gaps: Vec<Gap>,
}

/// The result of one direction.
#[derive(Debug)]
pub(super) struct DirectionResult {
    direction: Direction,
    /// Payload that the receiver counted, over its own clock; `None` if it is unknown.
    goodput: Option<Estimate>,
    /// Payload and time that the goodput is computed from.
    received: Option<(Bytes, Nanos)>,
    /// Length of the ramp at the start, which payload and time of the goodput leave out.
    ramp: Nanos,
    /// Whether goodput was steady after the ramp; `None` if samples of the receiver are unknown.
    steady: Option<bool>,
    /// The interruptions of the load, in words.
    interruptions: Vec<String>,
    /// How the sender handed payload to its kernel, and the share of zerocopy sends that the kernel copied anyway;
    /// `None` if unknown.
    handed: Option<(Handover, Option<f64>)>,
    /// Whether the receiver's kernel dropped payload instead of copying it to the program.
    discarded: bool,
    /// Payload and time at the receiver in intervals of about a second, which add up to the whole; empty if
    /// they are unknown.
    intervals: Vec<(Bytes, Nanos)>,
    /// Segments that the sender retransmitted; `None` if unknown.
    retransmitted: Option<u64>,
    /// Retransmitted segments as a share of the segments that were sent; `None` if iperf3 is the far end.
    retransmitted_share: Option<f64>,
    /// Mean of the sender's smoothed round trip; and its smallest round trip.
    rtt: Option<Nanos>,
    min_rtt: Option<Nanos>,
    /// Counts and rates of the direction's datagrams; `None` if it sends none.
    datagrams: Option<Datagrams>,
    /// RDMA messages, or operations on a file, per second, with their figure; `None` for other transports.
    counted: Option<(&'static Figure, Estimate)>,
    /// For an RDMA service that may lose payload: the payload lost, and all payload sent.
    missing: Option<(Bytes, Bytes)>,
    near: Option<End>,
    far: Option<End>,
}

/// Counts and rates of the datagrams in a direction, all streams together.
#[derive(Debug)]
pub(super) struct Datagrams {
    /// Payload of each datagram.
    size: Bytes,
    /// The requested rate of all streams together; `None` if they send as fast as the program can.
    requested: Option<Rate>,
    /// The requested rate of each stream; `None` if they send as fast as the program can.
    each: Option<Rate>,
    /// Number of datagrams that the sender sends in one burst to keep the rate, and the measured times between
    /// bursts; `None` if no rate was requested, or the times are unknown.
    bursts: Option<(u64, Histogram)>,
    /// Datagrams received for the first time, per second.
    per_sec: f64,
    counted: Counted,
    /// Jitter as the receiver smooths it (RFC 3550); `None` if unknown.
    jitter: Option<Nanos>,
}

impl Datagrams {
    /// The time from one burst to the next at the requested rate.
    fn gap(&self) -> Option<Nanos> {
        let ((burst, _), rate) = (self.bursts.as_ref()?, self.each?);
        let bits = burst.saturating_mul(self.size.0).saturating_mul(8);
        Some(Nanos((bits as f64 * 1e9 / rate.0.max(1) as f64) as u64))
    }

    /// The number of datagrams that were sent after the last one that the receiver counted, as lost or
    /// received; `None` if it is unknown.
    fn after(&self) -> Option<u64> {
        let Counted { sent, received, lost, .. } = self.counted;
        Some(sent?.saturating_sub(received + lost))
    }

    /// The share of datagrams that were lost.
    fn lost(&self) -> f64 {
        self.counted.share_lost().unwrap_or(0.0)
    }
}

/// Counts and settings of one end, for one direction.
#[derive(Debug)]
pub(super) struct End {
    bytes: Bytes,
    /// Time over which the end counted `bytes`; `None` if the end does not report it.
    time: Option<Nanos>,
    /// CPU time of the whole program, in percent of one CPU.
    cpu_percent: Option<f64>,
    /// CPU time in nanoseconds for each byte of payload: of the threads that move payload, or of the whole program
    /// if only its CPU time is known.
    cpu_per_byte: Option<f64>,
    made: SetEnd,
}

impl Probe {
    /// Whether everything that was requested was measured.
    pub fn complete(&self) -> bool {
        let found = self.search.as_ref().is_none_or(|s| s.found().is_some());
        // Under another congestion control than the requested one, the measurement is not the requested one.
        let as_requested = !self.gaps.iter().any(|g| g.what.ends_with("set.congestion"));
        let counted = self.results.iter().all(|result| result.goodput.is_some());
        self.broken.is_empty() && found && as_requested && counted
    }

    /// Values that are unknown, or settings that were refused.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The verdict on these readings in one line; `None` if there is nothing to judge.
    pub fn headline(&self) -> Option<Headline> {
        Some(self.headline.clone()?.of_part(self.complete()))
    }

    /// The figures of all directions, in one form.
    pub fn summary(&self) -> Summary {
        Summary::sorted(self.results.iter().flat_map(DirectionResult::figures))
    }
}

impl DirectionResult {
    /// The result of a direction without any known figure.
    fn unknown(direction: Direction) -> Self {
        Self {
            direction,
            goodput: None,
            received: None,
            ramp: Nanos(0),
            steady: None,
            interruptions: Vec::new(),
            handed: None,
            discarded: false,
            intervals: Vec::new(),
            retransmitted: None,
            retransmitted_share: None,
            rtt: None,
            min_rtt: None,
            datagrams: None,
            counted: None,
            missing: None,
            near: None,
            far: None,
        }
    }

    /// Payload that the sender's kernel accepted, and the time in which it did.
    fn sent(&self) -> Option<(Bytes, Nanos)> {
        let end = self.end(self.direction.sender())?;
        Some((end.bytes, end.time?))
    }

    /// The figures of this direction, in one form.
    fn figures(&self) -> Vec<Entry> {
        let of = Subject::load(self.direction);
        let goodput = self.goodput.map(|goodput| Entry {
            figure: &GOODPUT,
            of,
            value: Ok(goodput.interval.map_or(Value::bare(goodput.mean), Value::within)),
        });
        let datagrams = self.datagrams.as_ref();
        let of_datagrams = datagrams.map(|found| Entry::bare(&MESSAGES, of, found.per_sec));
        let counted = self.counted.map(|(figure, found)| Entry {
            figure,
            of,
            value: Ok(found.interval.map_or(Value::bare(found.mean), Value::within)),
        });
        let counted = of_datagrams.or(counted);
        let lost = datagrams.and_then(|found| found.counted.share_lost());
        let missing = self.missing.filter(|(_, sent)| sent.0 > 0);
        let lost = lost.or(missing.map(|(missing, sent)| missing.0 as f64 / sent.0 as f64));
        let lost = lost.map(|share| Entry::bare(&LOSS, of, share));
        let cpu = [Side::Near, Side::Far].map(|side| {
            let cost = self.end(side)?.cpu_per_byte?;
            let side = Some(side);
            Some(Entry::bare(&CPU, Subject { side, ..of }, cost))
        });
        let retransmitted = self.retransmitted_share;
        let retransmitted = retransmitted.map(|share| Entry::bare(&RETRANSMITS, of, share));
        let all = [goodput, counted, retransmitted, lost].into_iter().chain(cpu);
        all.flatten().collect()
    }

    fn end(&self, side: Side) -> Option<&End> {
        match side {
            Side::Near => self.near.as_ref(),
            Side::Far => self.far.as_ref(),
        }
    }
}

fn gap(what: impl Into<String>, why: &str, hint: &str) -> Gap {
    Gap { what: what.into(), why: why.to_owned(), hint: hint.to_owned() }
}
