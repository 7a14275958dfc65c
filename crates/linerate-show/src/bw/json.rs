//! The result of `linerate bw` as a JSON document.
//!
//! The schema of the document is made from `Output`. Keys contain the units; integers stay below 2^53; unknown
//! values are `null`.

use linerate_facts::Gap;
use linerate_plan::Handover;
use linerate_plan::path::Direction;
use linerate_plan::search::{Look, Search};
use linerate_plan::transport::{Options, TRANSPORTS};
use linerate_record::Record;
use linerate_units::stats::percentile;
use linerate_units::{Bytes, Nanos, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::super::flows::{FlowOut, flow_out};
use super::super::json::{
    FigureOut, ci, described_elsewhere, exact, figures, integer, one_of, text,
};
use super::super::verbs::{self, RdmaOut};
use super::memory::{self, MemoryOut};
use super::{Datagrams, DirectionResult, End, FarEnd, Probe};
use crate::head::Head;

/// One JSON document: a single measurement of throughput, with linerate or an iperf3 server as the far end.
/// Keys contain the units. Unknown values are null. This host is near, the other one is far.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate bw")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// The far end in the form that the user typed.
    target: &'a str,
    far_end: FarEnd,
    /// Address and port of the far end. Empty if there is no far end, and for a saved record.
    address: &'a str,
    /// Engine that moves payload.
    #[schemars(schema_with = "engines")]
    engine: &'a str,
    /// Options of the engine that are set.
    options: &'a Options,
    /// Whether both ends run on one machine and share its CPUs. Null if unknown.
    same_machine: Option<bool>,
    /// Number of connections (or flows of datagrams) in each direction.
    #[schemars(range(min = 1))]
    streams: u32,
    /// Time under load before the measured time, which does not count.
    washout_ns: u64,
    /// Requested time to measure. With iperf3 as the far end, the time that the test took.
    time_ns: u64,
    /// Time that was measured. It is shorter than the requested time if the measurement ended early.
    measured_ns: u64,
    /// False if the measurement ended early, or the goodput is unknown.
    complete: bool,
    /// Why the measurement ended early. Null if it did not.
    ended_early: Option<&'a str>,
    /// The search for the highest rate without loss, with `--find-rate`; `directions` then describes its last
    /// longer step. Null if no search was requested.
    search: Option<SearchOut>,
    directions: Directions<'a>,
    /// The ports of RDMA devices that carry the load, near first. Empty for other engines.
    rdma: Vec<RdmaOut>,
    /// The load of this host's memory, whose rate is in `directions`. Null for loads of a path.
    memory: Option<MemoryOut<'a>>,
    /// With iperf3 as the far end: the connections of this end as `linerate flows` shows them, the busiest first,
    /// 16 at most. They are read at this end only, and no trial proves their limits.
    flows: Vec<FlowOut<'a>>,
    /// All figures that were measured, as a list of one form.
    figures: Vec<FigureOut>,
    /// The facts that could not be read, or that the far end does not report.
    unknown: &'a [Gap],
    /// Raw readings, with `--with-record` only. This schema does not describe them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "described_elsewhere")]
    record: Option<&'a Record>,
}

/// Schema of the names of all engines that carry a load.
fn engines(_: &mut SchemaGenerator) -> Schema {
    let all = TRANSPORTS.iter().filter(|t| t.offered && t.carries_load());
    one_of(all.map(|transport| transport.name))
}

/// The search for the highest rate without loss.
#[derive(Serialize, JsonSchema)]
struct SearchOut {
    /// Share of datagrams that may be lost at the rate that is searched.
    #[schemars(range(min = 0, max = 1))]
    allowed_share: f64,
    /// Highest sent rate at which a longer step lost no more than the allowed share. Null if none was found.
    rate_bps: Option<u64>,
    /// Highest rate that the sender could send, if a higher one was requested. Null if it could send each requested
    /// rate.
    sender_limit_bps: Option<u64>,
    /// The step at the lowest rate that lost more than the allowed share. Null if there was none.
    above: Option<LookOut>,
    /// All steps of the search, in order.
    steps: Vec<LookOut>,
}

/// One step of the search: a load at one rate.
#[derive(Serialize, JsonSchema)]
struct LookOut {
    /// Requested rate of all streams together.
    requested_bps: u64,
    /// Rate that the senders reached, all streams together.
    sent_bps: u64,
    /// Rate that was received, all streams together.
    received_bps: u64,
    /// Share of the datagrams sent in the whole step that were not received.
    #[schemars(range(min = 0, max = 1))]
    lost_share: f64,
    /// Lower bound of the datagrams lost at the receiver's socket. Null if unknown.
    lost_at_socket: Option<u64>,
    /// Whether this was one of the longer steps, which decide whether a rate is found.
    long: bool,
}

/// The directions in which payload flowed; at the same time if there are two.
#[derive(Serialize, JsonSchema)]
struct Directions<'a> {
    /// From near to far. Null if not requested.
    forward: Option<DirectionResultOut<'a>>,
    /// From far to near. Null if not requested.
    reverse: Option<DirectionResultOut<'a>>,
}

/// What the receiver read in one interval of the measured time.
#[derive(Serialize, JsonSchema)]
struct IntervalOut {
    /// Payload read in the interval.
    bytes: u64,
    /// Length of the interval.
    ns: u64,
}

/// The figures of one direction.
#[derive(Serialize, JsonSchema)]
struct DirectionResultOut<'a> {
    /// Payload over time at the receiver, by its clock, in the steady part of the measured time. Null if unknown.
    goodput_bps: Option<u64>,
    /// 95 % interval of the mean goodput. Null if there are too few samples, or if they are not reported.
    goodput_ci_bps: Option<[u64; 2]>,
    /// Samples that `goodput_ci_bps` is computed from, 100 ms each. 0 if they are not reported.
    samples: u64,
    /// Length of the ramp at the start, which goodput and all counts leave out. 0 if there was none, and for
    /// datagrams.
    ramp_ns: u64,
    /// Whether the rate was steady after the ramp. Null if samples are not reported.
    steady: Option<bool>,
    /// The interruptions of the measurement, in words. They are part of the measured time.
    interruptions: &'a [String],
    /// Payload that the goodput is computed from. If the goodput is null because only this end counted: the payload
    /// that this end read. Null if unknown.
    received_bytes: Option<u64>,
    /// Time in which `received_bytes` were received. Null if unknown.
    received_ns: Option<u64>,
    /// What the receiver read in intervals of about a second; the sum is `received_bytes`. Empty if not reported.
    intervals: Vec<IntervalOut>,
    /// How the sender hands payload to the kernel. Null if unknown.
    copy: Option<Handover>,
    /// Share of the zerocopy sends that the kernel copied anyway. Null if the kernel reported none.
    #[schemars(range(min = 0, max = 1))]
    copied_share: Option<f64>,
    /// Whether the receiver's kernel dropped payload instead of copying it to the program.
    discarded: bool,
    /// Segments that the sender retransmitted. Null if unknown.
    retransmits: Option<u64>,
    /// Mean of the smoothed round trip that the sender's kernel reported. Null if unknown.
    rtt_ns: Option<u64>,
    /// Smallest round trip that the sender's kernel reported. Null if unknown.
    min_rtt_ns: Option<u64>,
    /// Counts of the datagrams, over the time of the goodput. Null if no datagrams were sent.
    datagrams: Option<DatagramsOut>,
    /// What the near end counted. Null if unknown.
    near: Option<CountedOut<'a>>,
    /// What the far end counted. Null if unknown.
    far: Option<CountedOut<'a>>,
}

/// Counts and rates of the datagrams in one direction.
#[derive(Serialize, JsonSchema)]
struct DatagramsOut {
    /// Payload of each datagram.
    size_bytes: u64,
    /// Requested payload rate of all streams together. Null if they sent as fast as the program can.
    requested_bps: Option<u64>,
    /// Payload rate that the sender's kernel accepted, by the sender's clock. Null if unknown.
    sent_bps: Option<u64>,
    /// What keeps the sender at the requested rate. Null if no rate was requested.
    paced_by: Option<PacedBy>,
    /// The bursts by which the sender kept the rate. Null if no rate was requested, or if iperf3 sends.
    bursts: Option<BurstsOut>,
    /// Datagrams received for the first time, per second.
    #[schemars(range(min = 0))]
    per_sec: f64,
    /// Datagrams that the sender's kernel accepted. Null if unknown. With iperf3 as the far end they may be more than
    /// those received and lost: the receiver had not counted the last ones when the test ended.
    sent: Option<u64>,
    /// Datagrams that had to wait, because a queue of the sending host was full (ENOBUFS), its port was down
    /// (ENETDOWN), or a firewall rule of the host rejected them (EPERM). Null if iperf3 sends.
    refused: Option<u64>,
    /// Datagrams received for the first time.
    received: u64,
    /// Datagrams that were sent and not received, by their sequence numbers.
    lost: u64,
    /// Number of lost datagrams, divided by that of lost and received ones.
    #[schemars(range(min = 0, max = 1))]
    lost_share: f64,
    /// Lower bound of the lost datagrams that the receiver's socket dropped because its buffer was full: coalesced
    /// datagrams (UDP_GRO) count as one. Null if unknown.
    lost_at_socket: Option<u64>,
    /// Datagrams received after one that was sent later. Null if iperf3 receives, which does not report it.
    reordered: Option<u64>,
    /// Datagrams received once more. Null if iperf3 receives, which does not report it.
    duplicated: Option<u64>,
    /// Jitter as in RFC 3550, the mean of all streams. Null unless iperf3 is the far end.
    jitter_ns: Option<u64>,
}

/// What keeps a sender of datagrams at the requested rate.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PacedBy {
    /// The clock of the sending program.
    Program,
}

/// How the sender kept the rate: it sends bursts of datagrams, and waits between them.
#[derive(Serialize, JsonSchema)]
struct BurstsOut {
    /// Number of datagrams in a burst.
    datagrams: u64,
    /// Time between bursts at the requested rate.
    requested_gap_ns: u64,
    /// Measured times between bursts in nanoseconds, to three digits, and how often each occurred; ascending.
    gaps: Vec<[u64; 2]>,
    /// Median of the measured times between bursts. Null if there are too few samples.
    p50_ns: Option<u64>,
    /// Time between bursts that 99 % of the measured ones do not exceed. Null if there are too few samples.
    p99_ns: Option<u64>,
}

/// Counts and settings of one end.
#[derive(Serialize, JsonSchema)]
struct CountedOut<'a> {
    /// Payload that this end passed to its kernel, or read from it, in the measured time.
    bytes: u64,
    /// Time over which this end counted, by its own clock. Null if unknown: iperf3 before 3.2 does not report it.
    time_ns: Option<u64>,
    /// CPU time of this end's whole program in percent of one CPU, if the far end is iperf3. Null if unknown.
    #[schemars(range(min = 0))]
    cpu_percent: Option<f64>,
    /// CPU time for each byte of payload: of the threads that move payload, or of the whole program if this end is
    /// iperf3. Null if unknown.
    #[schemars(range(min = 0))]
    cpu_ns_per_byte: Option<f64>,
    /// Congestion control algorithm of this end. Null if unknown.
    congestion: Option<&'a str>,
    /// Send buffer (SO_SNDBUF) after connecting, as the kernel reports it: doubled. Null if unknown.
    send_buffer_bytes: Option<u64>,
    /// Receive buffer (SO_RCVBUF) after connecting, as the kernel reports it: doubled. Null if unknown.
    recv_buffer_bytes: Option<u64>,
    /// MSS: the payload of a full TCP segment. Null if unknown.
    mss_bytes: Option<u32>,
    /// CPUs that the threads of the streams are pinned to. Empty if they are not pinned.
    cpus: &'a [u32],
}

/// The measurement as one JSON document, with a line feed at its end; with the raw readings if `record` is given.
pub fn json(probe: &Probe, record: Option<&Record>) -> serde_json::Result<String> {
    text(&output(probe, record))
}

/// The content of the JSON document.
pub(crate) fn output<'a>(probe: &'a Probe, record: Option<&'a Record>) -> Output<'a> {
    let result = |direction| {
        let found = probe.results.iter().find(|result| result.direction == direction);
        found.map(result_out)
    };
    Output {
        head: Head::new(probe.headline()),
        target: &probe.target,
        far_end: probe.far_end,
        address: &probe.address,
        engine: &probe.engine,
        options: &probe.options,
        same_machine: probe.same_machine,
        streams: probe.streams,
        washout_ns: probe.washout.0,
        time_ns: match probe.far_end {
            FarEnd::Linerate | FarEnd::None => probe.time.0,
            FarEnd::Iperf3 => probe.lasted.0,
        },
        measured_ns: probe.lasted.0,
        complete: probe.complete(),
        ended_early: Some(probe.broken.as_str()).filter(|why| !why.is_empty()),
        search: probe.search.as_ref().map(search_out),
        directions: Directions {
            forward: result(Direction::Forward),
            reverse: result(Direction::Reverse),
        },
        memory: probe.memory.as_ref().map(memory::out),
        flows: probe.look.iter().flat_map(|look| look.flows.iter().filter_map(flow_out)).collect(),
        rdma: verbs::out(&probe.rdma),
        figures: figures(&probe.summary()),
        unknown: &probe.gaps,
        record,
    }
}

fn search_out(search: &Search) -> SearchOut {
    SearchOut {
        allowed_share: search.allowed(),
        rate_bps: search.found().map(|look| integer(look.sent)),
        sender_limit_bps: search.sender_limit().map(integer),
        above: search.failed().map(look_out),
        steps: search.looks().iter().map(look_out).collect(),
    }
}

fn look_out(look: &Look) -> LookOut {
    LookOut {
        requested_bps: exact(look.requested.0),
        sent_bps: integer(look.sent),
        received_bps: integer(look.received),
        lost_share: look.lost,
        lost_at_socket: look.at_socket.map(exact),
        long: look.long,
    }
}

fn result_out(result: &DirectionResult) -> DirectionResultOut<'_> {
    DirectionResultOut {
        goodput_bps: result.goodput.map(|goodput| integer(goodput.mean)),
        goodput_ci_bps: result.goodput.as_ref().and_then(ci),
        samples: result.goodput.map_or(0, |goodput| goodput.samples as u64),
        ramp_ns: exact(result.ramp.0),
        steady: result.steady,
        interruptions: &result.interruptions,
        received_bytes: result.received.map(|(bytes, _)| exact(bytes.0)),
        received_ns: result.received.map(|(_, time)| exact(time.0)),
        intervals: result.intervals.iter().map(interval).collect(),
        copy: result.handed.map(|(how, _)| how),
        copied_share: result.handed.and_then(|(_, share)| share),
        discarded: result.discarded,
        retransmits: result.retransmitted,
        rtt_ns: result.rtt.map(|rtt| exact(rtt.0)),
        min_rtt_ns: result.min_rtt.map(|rtt| exact(rtt.0)),
        datagrams: result.datagrams.as_ref().map(|found| datagrams_out(result, found)),
        near: result.near.as_ref().map(end_out),
        far: result.far.as_ref().map(end_out),
    }
}

fn datagrams_out(result: &DirectionResult, found: &Datagrams) -> DatagramsOut {
    let counted = &found.counted;
    DatagramsOut {
        size_bytes: exact(found.size.0),
        requested_bps: found.requested.map(|rate| exact(rate.0)),
        sent_bps: result.sent().map(|(bytes, time)| exact(Rate::of(bytes, time).0)),
        // Only the program can keep the rate: SO_MAX_PACING_RATE would work with some queues only.
        paced_by: found.each.map(|_| PacedBy::Program),
        bursts: bursts_out(found),
        per_sec: found.per_sec,
        sent: counted.sent.map(exact),
        refused: counted.refused.map(exact),
        received: exact(counted.received),
        lost: exact(counted.lost),
        lost_share: found.lost(),
        lost_at_socket: counted.at_socket.map(exact),
        reordered: counted.reordered.map(exact),
        duplicated: counted.duplicated.map(exact),
        jitter_ns: found.jitter.map(|jitter| exact(jitter.0)),
    }
}

fn bursts_out(found: &Datagrams) -> Option<BurstsOut> {
    let (burst, gaps) = found.bursts.as_ref()?;
    let counts = gaps.counts.iter();
    Some(BurstsOut {
        datagrams: exact(*burst),
        requested_gap_ns: exact(found.gap()?.0),
        gaps: counts.map(|&(value, n)| [exact(value), exact(n)]).collect(),
        p50_ns: percentile(gaps, 0.5).map(exact),
        p99_ns: percentile(gaps, 0.99).map(exact),
    })
}

fn end_out(end: &End) -> CountedOut<'_> {
    let made = &end.made;
    CountedOut {
        bytes: exact(end.bytes.0),
        time_ns: end.time.map(|time| exact(time.0)),
        cpu_percent: end.cpu_percent,
        cpu_ns_per_byte: end.cpu_per_byte,
        congestion: Some(made.congestion.as_str()).filter(|name| !name.is_empty()),
        send_buffer_bytes: made.send_buffer,
        recv_buffer_bytes: made.recv_buffer,
        mss_bytes: made.mss,
        cpus: &made.cpus,
    }
}

fn interval((bytes, time): &(Bytes, Nanos)) -> IntervalOut {
    IntervalOut { bytes: bytes.0, ns: time.0 }
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
    fn goodput_is_the_receiver_s_or_unknown() {
        let forward = output(&sample::whole(Direction::Forward));
        let way = &forward["directions"]["forward"];
        let rate = |way: &Value| {
            let [bytes, ns] =
                ["received_bytes", "received_ns"].map(|key| way[key].as_f64().unwrap());
            (bytes * 8e9 / ns) as u64
        };
        assert_eq!(way["goodput_bps"], rate(way));
        assert_eq!(way["received_bytes"], 598_000_000);
        // An iperf3 server reports sums only, so there are no samples.
        assert_eq!((&way["samples"], &way["steady"]), (&0.into(), &Value::Null));
        assert_eq!(way["intervals"], serde_json::json!([]));
        assert!(way["retransmits"].is_u64() && way["rtt_ns"].is_u64());
        assert_eq!(way["far"]["congestion"], "cubic");
        assert!(way["near"]["cpu_ns_per_byte"].as_f64() > Some(0.0));
        assert!(way["far"]["cpu_percent"].as_f64() > Some(0.0));
        assert_eq!(forward["flows"].as_array().unwrap().len(), 1);
        assert_eq!(forward["same_machine"], Value::Null);
        assert_eq!(forward["directions"]["reverse"], Value::Null);
        let reverse = output(&sample::whole(Direction::Reverse));
        let way = &reverse["directions"]["reverse"];
        assert!(way["samples"].as_u64() > Some(9) && way["steady"].is_boolean());
        assert_eq!((&way["retransmits"], &way["copy"]), (&7.into(), &Value::Null));
        let part = output(&sample::part());
        assert_eq!(part["directions"]["forward"]["goodput_bps"], Value::Null);
        // Only this end counted: what it sent is known, though it is no goodput.
        assert!(part["directions"]["forward"]["near"]["bytes"].as_u64() > Some(0));
        assert_eq!(part["complete"], false);
        let own = output(&sample::own(Direction::Forward));
        let way = &own["directions"]["forward"];
        assert_eq!(own["far_end"], "linerate");
        assert!(way["goodput_ci_bps"][0].as_u64() < way["goodput_bps"].as_u64());
        let parts = way["intervals"].as_array().unwrap();
        let sum: u64 = parts.iter().map(|p| p["bytes"].as_u64().unwrap()).sum();
        assert!(!parts.is_empty() && way["received_bytes"] == sum, "{way}");
        let interrupted = output(&sample::interrupted());
        assert_eq!(interrupted["time_ns"], 119_000_000_000_u64);
        let measured = interrupted["measured_ns"].as_u64();
        assert!(measured.is_some_and(|ns| ns <= 3_000_000_000), "{measured:?}");
        let both = output(&sample::both());
        for document in [&forward, &reverse, &part, &own, &interrupted, &both] {
            fits("bw", document);
        }
    }

    #[test]
    fn memory_has_no_far_end_and_a_ceiling_where_its_modules_are_known() {
        let known = output(&sample::memory(true));
        fits("bw", &known);
        assert_eq!(known["far_end"], "none");
        let way = &known["directions"]["forward"];
        assert!(way["goodput_bps"].as_u64() > Some(0) && way["received_bytes"].as_u64() > Some(0));
        assert_eq!((&way["far"], &known["unknown"]), (&Value::Null, &Value::Array(Vec::new())));
        let memory = &known["memory"];
        assert_eq!(
            (&memory["access"], &memory["array_bytes"]),
            (&"copy".into(), &(128 << 20).into())
        );
        assert_eq!(memory["ceiling_bps"][0], 102_400_000_000_u64);
        assert_eq!(memory["ceiling_bps"][1], 204_800_000_000_u64);
        let unknown = output(&sample::memory(false));
        fits("bw", &unknown);
        assert_eq!(unknown["memory"]["ceiling_bps"], Value::Null);
        let why = unknown["unknown"][0]["what"].as_str().unwrap();
        assert_eq!(why, "ceiling of the memory modules");
        assert_eq!(unknown["complete"], true, "a ceiling is not what was asked for");
        let tcp = output(&sample::own(Direction::Forward));
        assert_eq!(tcp["memory"], Value::Null);
    }

    #[test]
    fn datagrams_are_told_with_what_was_asked_and_what_became_of_them() {
        let udp = output(&sample::udp());
        fits("bw", &udp);
        assert_eq!(udp["engine"], "udp");
        let reported = &udp["directions"]["forward"]["datagrams"];
        let (lost, all) = (&reported["lost"], &reported["received"]);
        let share = lost.as_f64().unwrap() / (lost.as_f64().unwrap() + all.as_f64().unwrap());
        assert!((reported["lost_share"].as_f64().unwrap() - share).abs() < 1e-9);
        assert!(reported["lost_at_socket"].as_u64() < lost.as_u64());
        assert_eq!(reported["requested_bps"], 5_000_000_000_u64);
        assert_eq!(reported["bursts"]["requested_gap_ns"], 209_612);
        assert_eq!(reported["bursts"]["p50_ns"], 209_000);
        let tcp = output(&sample::own(Direction::Forward));
        let way = &tcp["directions"]["forward"];
        assert_eq!((&way["datagrams"], &way["copy"]), (&Value::Null, &"copy".into()));
        needs_all("bw", &udp, "/directions/forward/datagrams");
    }

    #[test]
    fn datagrams_of_iperf3_are_told_as_far_as_it_tells_them() {
        let of = |direction: Direction| {
            let whole = output(&sample::iperf3_udp(direction));
            fits("bw", &whole);
            assert_eq!((&whole["engine"], &whole["far_end"]), (&"udp".into(), &"iperf3".into()));
            whole["directions"][direction.name()]["datagrams"].clone()
        };
        let forward = of(Direction::Forward);
        assert_eq!(forward["requested_bps"], 5_000_000_000_u64);
        assert_eq!((&forward["received"], &forward["lost"]), (&84_000.into(), &900.into()));
        // The sent datagrams are counted to the end of the test, as iperf3 counts them.
        assert_eq!(forward["sent"], 84_920);
        assert!(forward["refused"].as_u64() > Some(0));
        assert_eq!(forward["bursts"]["datagrams"], 89);
        for unknown in ["reordered", "duplicated", "lost_at_socket"] {
            assert_eq!(forward[unknown], Value::Null, "{unknown}");
        }
        assert_eq!(forward["jitter_ns"], 12_000);
        let reverse = of(Direction::Reverse);
        assert_eq!(reverse["sent"], 430_000);
        for known in ["reordered", "lost_at_socket"] {
            assert!(reverse[known].as_u64() > Some(0), "{known}");
        }
        assert_eq!(reverse["duplicated"], 0);
        assert_eq!(reverse["refused"], Value::Null);
    }

    #[test]
    fn a_search_is_complete_where_its_longer_step_lost_no_more_than_allowed() {
        let found = output(&sample::search(0.05));
        fits("bw", &found);
        assert_eq!(found["complete"], true);
        assert_eq!(found["search"]["steps"][0]["lost_share"], 0.04);
        assert!(found["search"]["rate_bps"].as_u64() > Some(0));
        let none = output(&sample::search(0.03));
        fits("bw", &none);
        assert_eq!(none["complete"], false);
        assert_eq!(none["search"]["rate_bps"], Value::Null);
        assert_eq!(none["search"]["above"]["lost_share"], 0.04);
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let good = output(&sample::whole(Direction::Forward));
        let wrong = [
            ("/format", Value::from(2)),
            ("/far_end", Value::from("netperf")),
            ("/streams", Value::from(0)),
            ("/directions/forward/goodput_bps", Value::from(-1)),
            ("/directions/forward/near/cpu_percent", Value::from(-1)),
            ("/directions/forward/near/bytes", Value::Null),
            ("/directions/forward/far/bytes", Value::Null),
            ("/unknown", Value::Null),
        ];
        refuses("bw", &good, wrong, "");
    }
}
