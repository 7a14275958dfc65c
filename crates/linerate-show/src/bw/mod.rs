//! One measurement of throughput, for people and for programs: with linerate or iperf3 as the far end.

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
    CPU, Entry, GOODPUT, LOSS, MESSAGES, RETRANSMITS, Subject, Summary, Value,
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

/// What serves at the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FarEnd {
    /// `linerate serve`.
    Linerate,
    /// An iperf3 server.
    Iperf3,
    /// There is none.
    None,
}

/// The result of a measurement of throughput.
#[derive(Debug)]
pub struct Probe {
    target: String,
    far_end: FarEnd,
    /// Address and port of the far end.
    address: String,
    /// The transport.
    engine: String,
    /// The options of the transport that are set.
    options: Options,
    /// The ports of RDMA devices that carry the load, near first; none for other transports.
    rdma: Vec<(Side, RdmaEnd)>,
    /// The load of this host's memory, if that was measured.
    memory: Option<MemoryLoad>,
    streams: u32,
    /// The requested time that counts.
    time: Nanos,
    /// Measured time: shorter than planned if the measurement ended early.
    lasted: Nanos,
    /// Time before it that does not count.
    washout: Nanos,
    /// Whether both ends share one machine; `None` if it is unknown.
    same_machine: Option<bool>,
    /// Why the measurement ended early; empty if it did not.
    broken: String,
    /// What the judge says of the same readings.
    headline: Option<Headline>,
    /// The search for a rate, with the directions of its longer step; `None` if none was asked for.
    search: Option<Search>,
    /// The requested directions, with the figures of each.
    results: Vec<DirectionResult>,
    /// This end's connections, judged from this end only; `None` if they were not read.
    look: Option<Look>,
    gaps: Vec<Gap>,
}

/// The result of one direction.
#[derive(Debug)]
pub(super) struct DirectionResult {
    direction: Direction,
    /// Payload that the receiver counted, over its own clock; `None` if it is unknown.
    goodput: Option<Estimate>,
    /// Payload and time of the goodput.
    received: Option<(Bytes, Nanos)>,
    /// The ramp at the start, which is left out of payload and time.
    ramp: Nanos,
    /// Whether goodput was steady after the ramp; `None` if samples of the receiver are unknown.
    steady: Option<bool>,
    /// The interruptions of the load, in words.
    interruptions: Vec<String>,
    /// How the sender passed payload to its kernel, and the share of sends without a copy that the kernel
    /// copied anyway; `None` if unknown.
    handed: Option<(Handover, Option<f64>)>,
    /// Whether the receiver's kernel dropped payload instead of copying it to the program.
    discarded: bool,
    /// Payload and time at the receiver in intervals of about a second, which add up to the whole; empty if
    /// they are unknown.
    intervals: Vec<(Bytes, Nanos)>,
    /// Segments that the sender retransmitted; `None` if unknown.
    again: Option<u64>,
    /// Retransmitted segments as a share of the segments that were sent; `None` if iperf3 is the far end.
    again_share: Option<f64>,
    /// The sender's smoothed round trip, mean, and the smallest one.
    rtt: Option<Nanos>,
    min_rtt: Option<Nanos>,
    /// The counts of the direction's datagrams; `None` if it sends none.
    datagrams: Option<Datagrams>,
    /// Messages of RDMA in a second; `None` of other transports.
    messages: Option<Estimate>,
    /// Payload that did not arrive, and all that was sent, of a service of RDMA that may lose it.
    missing: Option<(Bytes, Bytes)>,
    near: Option<End>,
    far: Option<End>,
}

/// The datagrams of a direction, all streams.
#[derive(Debug)]
pub(super) struct Datagrams {
    /// Payload of each datagram.
    size: Bytes,
    /// The requested rate of all streams together; `None` if they are sent as fast as the program can.
    asked: Option<Rate>,
    /// The rate of each stream.
    each: Option<Rate>,
    /// Datagrams that the sender sent in one burst to keep the rate, and the times from one burst to the next;
    /// `None` if no rate was requested, or its times are unknown.
    bursts: Option<(u64, Histogram)>,
    /// Datagrams received for the first time, in a second.
    per_sec: f64,
    counted: Counted,
    /// Jitter; `None` if unknown.
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
        let Counted { sent, came, lost, .. } = self.counted;
        Some(sent?.saturating_sub(came + lost))
    }

    /// The share of the sent datagrams that did not arrive.
    fn lost(&self) -> f64 {
        self.counted.share_lost().unwrap_or(0.0)
    }
}

/// The counts of one end for a direction.
#[derive(Debug)]
pub(super) struct End {
    bytes: Bytes,
    /// Time over which the end counted; `None` if the end does not report it.
    time: Option<Nanos>,
    /// CPU time of the whole program, in percent of one CPU.
    cpu_percent: Option<f64>,
    /// CPU time in nanoseconds for each byte of payload: of the threads that move it, or of the whole
    /// program where only that is known.
    cpu_per_byte: Option<f64>,
    made: SetEnd,
}

impl Probe {
    /// Whether everything that was requested was measured.
    pub fn complete(&self) -> bool {
        let found = self.search.as_ref().is_none_or(|s| s.found().is_some());
        // With another congestion control than requested, the measurement is another one.
        let as_asked = !self.gaps.iter().any(|g| g.what.ends_with("set.congestion"));
        let counted = self.results.iter().all(|result| result.goodput.is_some());
        self.broken.is_empty() && found && as_asked && counted
    }

    /// What could not be measured, or was refused.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// What the judge says of the same readings; `None` if there is nothing to judge.
    pub fn headline(&self) -> Option<Headline> {
        Some(self.headline.clone()?.of_part(self.complete()))
    }

    /// The figures of the measurement.
    pub fn summary(&self) -> Summary {
        Summary::sorted(self.results.iter().flat_map(DirectionResult::figures))
    }
}

impl DirectionResult {
    /// A direction without any known figures.
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
            again: None,
            again_share: None,
            rtt: None,
            min_rtt: None,
            datagrams: None,
            messages: None,
            missing: None,
            near: None,
            far: None,
        }
    }

    /// Payload that the sender's kernel accepted, and the time for that.
    fn sent(&self) -> Option<(Bytes, Nanos)> {
        let end = self.end(self.direction.sender())?;
        Some((end.bytes, end.time?))
    }

    /// The figures of this direction.
    fn figures(&self) -> Vec<Entry> {
        let of = Subject::load(self.direction);
        let goodput = self.goodput.map(|goodput| Entry {
            figure: &GOODPUT,
            of,
            value: Ok(goodput.interval.map_or(Value::bare(goodput.mean), Value::within)),
        });
        let datagrams = self.datagrams.as_ref();
        let of_datagrams = datagrams.map(|found| Entry::bare(&MESSAGES, of, found.per_sec));
        let messages = self.messages.map(|found| Entry {
            figure: &MESSAGES,
            of,
            value: Ok(found.interval.map_or(Value::bare(found.mean), Value::within)),
        });
        let messages = of_datagrams.or(messages);
        let lost = datagrams.and_then(|found| found.counted.share_lost());
        let missing = self.missing.filter(|(_, sent)| sent.0 > 0);
        let lost = lost.or(missing.map(|(missing, sent)| missing.0 as f64 / sent.0 as f64));
        let lost = lost.map(|share| Entry::bare(&LOSS, of, share));
        let cpu = [Side::Near, Side::Far].map(|side| {
            let cost = self.end(side)?.cpu_per_byte?;
            let side = Some(side);
            Some(Entry::bare(&CPU, Subject { side, ..of }, cost))
        });
        let again = self.again_share;
        let again = again.map(|share| Entry::bare(&RETRANSMITS, of, share));
        let all = [goodput, messages, again, lost].into_iter().chain(cpu);
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
