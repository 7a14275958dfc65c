//! The result of `linerate lat` as JSON.
//!
//! The schema of the document is made from `Output`. Keys contain the units; integers stay below 2^53; unknown
//! values are `null`.

use linerate_facts::Gap;
use linerate_plan::Handover;
use linerate_plan::path::Direction;
use linerate_plan::transport::{Options, PatternKind, TRANSPORTS};
use linerate_record::Record;
use linerate_units::stats::{Histogram, moments, percentile_ci};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::super::json::{FigureOut, described_elsewhere, exact, figures, integer, one_of, text};
use super::super::verbs::{self, RdmaOut};
use super::{Beside, PERCENTILES, Probe};
use crate::head::Head;

/// One JSON document: one measurement of round trips. Keys contain the units. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate lat")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// The far end in the form that the user typed.
    target: &'a str,
    /// Address and port of the far end. Empty if there is no far end, and for a saved record.
    address: &'a str,
    /// Engine that sends the messages.
    #[schemars(schema_with = "engines")]
    engine: &'a str,
    /// Options of the engine that are set.
    options: &'a Options,
    /// Whether both ends run on one machine and share its CPUs.
    same_machine: bool,
    /// Payload of a message, and of its answer.
    size_bytes: u64,
    /// Open loop: time between the times at which two messages are due; a round trip counts from when its message
    /// was due. Null in closed loop, where the next message is sent once the answer was received.
    interval_ns: Option<u64>,
    /// Whether both ends polled their sockets without sleeping.
    busy_poll: bool,
    /// Whether Nagle's algorithm was on for the timed messages.
    nagle: bool,
    /// Whether each message was sent in two writes.
    two_writes: bool,
    /// Time that the typical round trip waited for an acknowledgement that the far end delayed. Null if there was
    /// no such wait, or if unknown.
    delayed_ns: Option<u64>,
    /// Time before the measured time, which does not count.
    washout_ns: u64,
    /// Requested time to measure.
    time_ns: u64,
    /// Time that was measured. It is shorter than the requested time if the measurement ended early.
    measured_ns: u64,
    /// False if the measurement ended early, if round trips were due and not answered, or if the round trips or a
    /// load at the same time are unknown.
    complete: bool,
    /// Why the measurement ended early. Null if it did not.
    ended_early: Option<&'a str>,
    /// Size of the array that dependent memory loads read. Null for other engines.
    array_bytes: Option<u64>,
    /// Mean time of all dependent memory loads; `samples` and percentiles are about means of batches of loads. Null
    /// for other engines.
    #[schemars(range(min = 0))]
    mean_load_ns: Option<f64>,
    /// Number of round trips that were timed; in open loop all that were due.
    samples: u64,
    /// Open loop: number of samples that were not answered. Each counts with the time that it had taken at the end
    /// of the measurement, so it really took longer.
    unanswered: u64,
    /// UDP and connections: messages sent in the measured time whose answers were never received. They are not in
    /// `samples` or percentiles. Null for engines that lose nothing.
    lost: Option<u64>,
    /// Open loop: requested round trips per second. Null in closed loop.
    #[schemars(range(min = 0))]
    requested_per_sec: Option<f64>,
    /// Round trips per second that were answered in the measured time. Null if unknown.
    #[schemars(range(min = 0))]
    answered_per_sec: Option<f64>,
    /// Shortest round trip. Null if unknown.
    least_ns: Option<u64>,
    /// Longest round trip. Null if unknown.
    most_ns: Option<u64>,
    /// Mean of all round trips, computed from exact nanoseconds. Null if unknown.
    #[schemars(range(min = 0))]
    mean_ns: Option<f64>,
    /// Standard deviation of the round trips. Null if unknown.
    #[schemars(range(min = 0))]
    deviation_ns: Option<f64>,
    /// Percentiles of round trips, as far as at least ten round trips lie beyond them.
    percentiles: Vec<Percentile>,
    /// All figures that were measured, as a list of one form.
    figures: Vec<FigureOut>,
    /// Round-trip times in nanoseconds, to three digits, and how often each occurred; ascending.
    histogram: Vec<[u64; 2]>,
    /// The part of each round trip after the kernel here received the answer, until the program read it. Null if
    /// the kernel does not report it.
    unread: Option<Unread>,
    /// The ports of RDMA devices that carry the messages, near first. Empty for other engines.
    rdma: Vec<RdmaOut>,
    /// Loads on the path while the round trips were timed.
    beside: Vec<LoadOut<'a>>,
    /// Values that are unknown, or settings that were refused.
    unknown: &'a [Gap],
    /// Raw readings, with `--with-record` only. This schema does not describe them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "described_elsewhere")]
    record: Option<&'a Record>,
}

/// Schema of the names of all engines that time round trips.
fn engines(_: &mut SchemaGenerator) -> Schema {
    let all = TRANSPORTS.iter().filter(|t| t.offered && t.carries(PatternKind::RoundTrips));
    one_of(all.map(|transport| transport.name))
}

/// A percentile of round trips or waiting times.
#[derive(Serialize, JsonSchema)]
struct Percentile {
    /// The percentile: 99 for p99.
    #[schemars(extend("enum" = PERCENTILES))]
    percent: f64,
    /// The time that this percentage of the times does not exceed.
    ns: u64,
    /// 95 % interval of `ns`, for times that are independent of each other.
    ci_ns: [u64; 2],
}

/// Times for which answers waited in the kernel here until the program read them.
#[derive(Serialize, JsonSchema)]
struct Unread {
    /// Percentiles of the waiting times.
    percentiles: Vec<Percentile>,
    /// Waiting times in nanoseconds, to three digits, and how often each occurred; ascending.
    histogram: Vec<[u64; 2]>,
}

/// A load on the path while round trips are timed.
#[derive(Serialize, JsonSchema)]
struct LoadOut<'a> {
    direction: Direction,
    /// Goodput of the load. Null if unknown.
    goodput_bps: Option<u64>,
    /// Share of the load's datagrams that were lost. Null if it sends none.
    #[schemars(range(min = 0, max = 1))]
    lost_share: Option<f64>,
    /// Number of connections.
    #[schemars(range(min = 1))]
    streams: u32,
    /// Payload of each write or datagram. Null if linerate chooses it by the rate or the route.
    write_size_bytes: Option<u64>,
    /// Highest rate of each stream. Null if it is not limited.
    pacing_bps: Option<u64>,
    /// Requested congestion control. Null for the default of the system.
    congestion: Option<&'a str>,
    /// How the sender hands payload to the kernel.
    copy: Handover,
}

/// The measurement as one JSON document, with a line feed at its end; with the raw readings if `record` is given.
pub fn json(probe: &Probe, record: Option<&Record>) -> serde_json::Result<String> {
    text(&output(probe, record))
}

/// The content of the JSON document.
pub(crate) fn output<'a>(probe: &'a Probe, record: Option<&'a Record>) -> Output<'a> {
    let times = probe.times.as_ref();
    let moments = times.and_then(moments);
    Output {
        head: Head::new(probe.headline()),
        target: &probe.target,
        address: &probe.address,
        engine: &probe.engine,
        options: &probe.options,
        same_machine: probe.same_machine,
        size_bytes: probe.size.0,
        interval_ns: probe.interval.map(|interval| interval.0),
        busy_poll: probe.own.busy_poll,
        nagle: probe.own.nagle,
        two_writes: probe.own.two_writes,
        delayed_ns: probe.delayed.map(|more| exact(more.0)),
        washout_ns: probe.washout.0,
        time_ns: probe.time.0,
        measured_ns: probe.lasted.0,
        complete: probe.complete(),
        ended_early: Some(probe.broken.as_str()).filter(|why| !why.is_empty()),
        array_bytes: probe.array.map(|array| exact(array.0)),
        mean_load_ns: probe.mean_load(),
        samples: probe.latency.as_ref().map_or(0, |latency| latency.samples),
        unanswered: probe.unanswered(),
        lost: probe.lost(),
        requested_per_sec: probe.requested(),
        answered_per_sec: probe.rate,
        least_ns: probe.latency.as_ref().map(|latency| exact(latency.least.0)),
        most_ns: probe.longest().map(|most| exact(most.0)),
        mean_ns: moments.map(|found| found.mean),
        deviation_ns: moments.map(|found| found.deviation),
        percentiles: times.map_or_else(Vec::new, percentiles),
        rdma: verbs::out(&probe.rdma),
        figures: figures(&probe.summary()),
        histogram: times.map_or_else(Vec::new, histogram),
        unread: probe.unread().map(|unread| Unread {
            percentiles: percentiles(&unread),
            histogram: histogram(&unread),
        }),
        beside: probe.beside.iter().map(|load| self::load(probe, load)).collect(),
        unknown: &probe.gaps,
        record,
    }
}

fn load<'a>(probe: &'a Probe, load: &Beside) -> LoadOut<'a> {
    let knobs = &probe.knobs;
    LoadOut {
        direction: load.direction,
        goodput_bps: load.goodput.map(integer),
        lost_share: load.lost,
        streams: knobs.streams,
        write_size_bytes: Some(knobs.write_size.0).filter(|size| *size > 0),
        pacing_bps: knobs.pacing.map(|rate| exact(rate.0)),
        congestion: knobs.congestion.as_deref(),
        copy: knobs.copy,
    }
}

fn histogram(times: &Histogram) -> Vec<[u64; 2]> {
    let counts = times.counts.iter();
    counts.map(|&(value, n)| [exact(value), exact(n)]).collect()
}

fn percentiles(times: &Histogram) -> Vec<Percentile> {
    let result_of = |percent: &f64| {
        let found = percentile_ci(times, percent / 100.0)?;
        Some(Percentile {
            percent: *percent,
            ns: integer(found.mid),
            ci_ns: [integer(found.low), integer(found.high)],
        })
    };
    PERCENTILES.iter().filter_map(result_of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::schema::{fits, needs_all, refuses};

    fn output(probe: &Probe) -> Value {
        serde_json::from_str(&json(probe, None).unwrap()).unwrap()
    }

    #[test]
    fn what_was_lost_is_told_where_it_is_not_sent_again() {
        let reported = [sample::idle(), sample::beside(), sample::udp(), sample::lossy()];
        let reported = reported.map(|p| output(&p));
        for document in &reported {
            fits("lat", document);
        }
        let [idle, beside, udp, lossy] = reported;
        assert_eq!(beside["beside"][0]["lost_share"], Value::Null);
        assert!(lossy["beside"][0]["lost_share"].as_f64() > Some(0.01));
        assert_eq!((&idle["engine"], &idle["lost"]), (&"tcp".into(), &Value::Null));
        assert_eq!(idle["beside"], Value::Array(Vec::new()));
        assert_eq!(beside["beside"][0]["streams"], 1);
        assert!(beside["beside"][0]["goodput_bps"].as_u64() > Some(0));
        assert_eq!((&udp["engine"], &udp["lost"]), (&"udp".into(), &3.into()));
        assert_eq!(udp["complete"], true, "a path may lose");
        assert_eq!(udp["unread"]["percentiles"][0]["ns"], 2000);
        assert_eq!(idle["unread"], Value::Null);
    }

    #[test]
    fn loads_of_memory_are_told_with_their_mean_and_array() {
        let memory = output(&sample::memory());
        fits("lat", &memory);
        assert_eq!(memory["array_bytes"], 128 << 20);
        let rate = memory["answered_per_sec"].as_f64().unwrap();
        let mean = memory["mean_load_ns"].as_f64().unwrap();
        assert!((rate * mean - 1e9).abs() < 1.0, "{rate} {mean}");
        assert_eq!((&memory["samples"], &memory["lost"]), (&1000.into(), &Value::Null));
        let trips = output(&sample::idle());
        assert_eq!((&trips["array_bytes"], &trips["mean_load_ns"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let good = output(&sample::udp());
        let wrong = [
            ("/format", Value::from(2)),
            ("/engine", Value::from("pigeon")),
            ("/lost", Value::from(-1)),
            ("/samples", Value::Null),
            ("/size_bytes", Value::from("64")),
            ("/percentiles/0/percent", Value::from(42)),
            ("/percentiles/0/ci_ns", serde_json::json!([1])),
            ("/histogram/0", serde_json::json!([1, 2, 3])),
            ("/unread/percentiles", Value::Null),
            ("/beside", Value::Null),
            ("/unknown", Value::Null),
        ];
        refuses("lat", &good, wrong, "");
        needs_all("lat", &good, "");
    }
}
