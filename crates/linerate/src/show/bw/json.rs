//! One measurement of throughput, for programs.
//!
//! The schema is `schema/bw.schema.json`. Units stand in the keys; integers stay below 2^53; what is
//! unknown is `null`.

use linerate_core::facts::Gap;
use linerate_core::path::Direction;
use linerate_core::record::Record;
use linerate_core::search::{Look, Search};
use linerate_core::stats::percentile;
use linerate_core::units::{Bytes, Nanos, Rate};
use serde::Serialize;

use super::super::flows::{FlowOut, flow_out};
use super::super::json::{ci, integer};
use super::{Datagrams, End, Probe, Way};

/// Version of the document; raised when a key changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../../schema/bw.schema.json");

#[derive(Serialize)]
pub(in crate::show) struct Output<'a> {
    format: u32,
    linerate: &'static str,
    target: &'a str,
    far_end: &'static str,
    address: &'a str,
    engine: &'a str,
    same_machine: Option<bool>,
    streams: u32,
    washout_ns: u64,
    time_ns: u64,
    measured_ns: u64,
    complete: bool,
    ended_early: Option<&'a str>,
    search: Option<SearchOut>,
    directions: Directions<'a>,
    flows: Vec<FlowOut<'a>>,
    unknown: &'a [Gap],
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
}

#[derive(Serialize)]
struct SearchOut {
    allowed_share: f64,
    rate_bps: Option<u64>,
    sender_limit_bps: Option<u64>,
    above: Option<LookOut>,
    steps: Vec<LookOut>,
}

#[derive(Serialize)]
struct LookOut {
    asked_bps: u64,
    sent_bps: u64,
    received_bps: u64,
    lost_share: f64,
    lost_at_socket: Option<u64>,
    long: bool,
}

#[derive(Serialize)]
struct Directions<'a> {
    forward: Option<WayOut<'a>>,
    reverse: Option<WayOut<'a>>,
}

/// What the receiver took in a part of the time.
#[derive(Serialize)]
struct IntervalOut {
    bytes: u64,
    ns: u64,
}

#[derive(Serialize)]
struct WayOut<'a> {
    goodput_bps: Option<u64>,
    goodput_ci_bps: Option<[u64; 2]>,
    samples: u64,
    ramp_ns: u64,
    steady: Option<bool>,
    interruptions: &'a [String],
    received_bytes: Option<u64>,
    received_ns: Option<u64>,
    intervals: Vec<IntervalOut>,
    copy: Option<&'static str>,
    copied_share: Option<f64>,
    discarded: bool,
    retransmits: Option<u64>,
    rtt_ns: Option<u64>,
    min_rtt_ns: Option<u64>,
    datagrams: Option<DatagramsOut>,
    near: Option<EndOut<'a>>,
    far: Option<EndOut<'a>>,
}

#[derive(Serialize)]
struct DatagramsOut {
    size_bytes: u64,
    asked_bps: Option<u64>,
    sent_bps: Option<u64>,
    paced_by: Option<&'static str>,
    bursts: Option<BurstsOut>,
    per_sec: f64,
    sent: Option<u64>,
    refused: Option<u64>,
    received: u64,
    lost: u64,
    lost_share: f64,
    lost_at_socket: Option<u64>,
    reordered: Option<u64>,
    duplicated: Option<u64>,
    jitter_ns: Option<u64>,
}

#[derive(Serialize)]
struct BurstsOut {
    datagrams: u64,
    asked_gap_ns: u64,
    gaps: Vec<[u64; 2]>,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
}

#[derive(Serialize)]
struct EndOut<'a> {
    bytes: u64,
    time_ns: Option<u64>,
    cpu_percent: Option<f64>,
    cpu_ns_per_byte: Option<f64>,
    congestion: Option<&'a str>,
    send_buffer_bytes: Option<u64>,
    recv_buffer_bytes: Option<u64>,
    mss_bytes: Option<u32>,
    cpus: &'a [u32],
}

/// The measurement as one JSON document, with a line feed at its end; with the raw readings where
/// `record` has them.
pub fn json(probe: &Probe, record: Option<&Record>) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&output(probe, record))?;
    text.push('\n');
    Ok(text)
}

/// The document.
pub(in crate::show) fn output<'a>(probe: &'a Probe, record: Option<&'a Record>) -> Output<'a> {
    let way = |direction| {
        let found = probe.ways.iter().find(|way| way.direction == direction);
        found.map(way_out)
    };
    Output {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION"),
        target: &probe.target,
        far_end: probe.far_end.name(),
        address: &probe.address,
        engine: &probe.engine,
        same_machine: probe.same_machine,
        streams: probe.streams,
        washout_ns: probe.washout.0,
        time_ns: probe.time.0,
        measured_ns: probe.lasted.0,
        complete: probe.complete(),
        ended_early: Some(probe.broken.as_str()).filter(|why| !why.is_empty()),
        search: probe.search.as_ref().map(search_out),
        directions: Directions {
            forward: way(Direction::Forward),
            reverse: way(Direction::Reverse),
        },
        flows: probe
            .look
            .iter()
            .flat_map(|look| look.flows.iter().filter_map(flow_out))
            .collect(),
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
        asked_bps: integer(look.asked.0 as f64),
        sent_bps: integer(look.sent),
        received_bps: integer(look.received),
        lost_share: look.lost,
        lost_at_socket: look.at_socket.map(|n| integer(n as f64)),
        long: look.long,
    }
}

fn way_out(way: &Way) -> WayOut<'_> {
    let whole = |n: u64| integer(n as f64);
    WayOut {
        goodput_bps: way.goodput.map(|goodput| integer(goodput.mean)),
        goodput_ci_bps: way.goodput.as_ref().and_then(ci),
        samples: way.goodput.map_or(0, |goodput| goodput.samples as u64),
        ramp_ns: whole(way.ramp.0),
        steady: way.steady,
        interruptions: &way.interruptions,
        received_bytes: way.received.map(|(bytes, _)| whole(bytes.0)),
        received_ns: way.received.map(|(_, time)| whole(time.0)),
        intervals: way.intervals.iter().map(interval).collect(),
        copy: way.handed.map(|(how, _)| how.name()),
        copied_share: way.handed.and_then(|(_, share)| share),
        discarded: way.discarded,
        retransmits: way.again,
        rtt_ns: way.rtt.map(|rtt| whole(rtt.0)),
        min_rtt_ns: way.min_rtt.map(|rtt| whole(rtt.0)),
        datagrams: way
            .datagrams
            .as_ref()
            .map(|found| datagrams_out(way, found)),
        near: way.near.as_ref().map(end_out),
        far: way.far.as_ref().map(end_out),
    }
}

fn datagrams_out(way: &Way, found: &Datagrams) -> DatagramsOut {
    let whole = |n: u64| integer(n as f64);
    let counted = &found.counted;
    DatagramsOut {
        size_bytes: whole(found.size.0),
        asked_bps: found.asked.map(|rate| whole(rate.0)),
        sent_bps: way
            .sent()
            .map(|(bytes, time)| whole(Rate::of(bytes, time).0)),
        // The one way there is: SO_MAX_PACING_RATE would bind only under some queues.
        paced_by: found.each.map(|_| "program"),
        bursts: bursts_out(found),
        per_sec: found.per_sec,
        sent: counted.sent.map(whole),
        refused: counted.refused.map(whole),
        received: whole(counted.came),
        lost: whole(counted.lost),
        lost_share: found.lost(),
        lost_at_socket: counted.at_socket.map(whole),
        reordered: found.ordered.then(|| whole(counted.reordered)),
        duplicated: found.ordered.then(|| whole(counted.duplicated)),
        jitter_ns: found.jitter.map(|jitter| whole(jitter.0)),
    }
}

fn bursts_out(found: &Datagrams) -> Option<BurstsOut> {
    let whole = |n: u64| integer(n as f64);
    let (burst, gaps) = found.bursts.as_ref()?;
    let counts = gaps.counts.iter();
    Some(BurstsOut {
        datagrams: whole(*burst),
        asked_gap_ns: whole(found.gap()?.0),
        gaps: counts.map(|&(value, n)| [whole(value), whole(n)]).collect(),
        p50_ns: percentile(gaps, 0.5).map(whole),
        p99_ns: percentile(gaps, 0.99).map(whole),
    })
}

fn end_out(end: &End) -> EndOut<'_> {
    let made = &end.made;
    EndOut {
        bytes: integer(end.bytes.0 as f64),
        time_ns: end.time.map(|time| integer(time.0 as f64)),
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
    IntervalOut {
        bytes: bytes.0,
        ns: time.0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::show::schema::{fits, needs_all, refuses};

    fn output(probe: &Probe) -> Value {
        serde_json::from_str(&json(probe, None).unwrap()).unwrap()
    }

    #[test]
    fn goodput_is_the_receiver_s_or_unknown() {
        let forward = output(&sample::whole(Direction::Forward));
        let way = &forward["directions"]["forward"];
        assert_eq!(way["goodput_bps"], 935_064_935);
        assert_eq!(way["received_bytes"], 1_170_000_000);
        assert_eq!(forward["directions"]["reverse"], Value::Null);
        let reverse = output(&sample::whole(Direction::Reverse));
        let way = &reverse["directions"]["reverse"];
        assert_eq!(way["goodput_bps"], 940_000_000);
        let part = output(&sample::part());
        assert_eq!(part["directions"]["forward"]["goodput_bps"], Value::Null);
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
        assert!(
            measured.is_some_and(|ns| ns <= 3_000_000_000),
            "{measured:?}"
        );
        for document in [&forward, &reverse, &part, &own, &interrupted] {
            fits(SCHEMA, document);
        }
    }

    #[test]
    fn datagrams_are_told_with_what_was_asked_and_what_became_of_them() {
        let udp = output(&sample::udp());
        fits(SCHEMA, &udp);
        assert_eq!(udp["engine"], "udp");
        let told = &udp["directions"]["forward"]["datagrams"];
        let (lost, all) = (&told["lost"], &told["received"]);
        let share = lost.as_f64().unwrap() / (lost.as_f64().unwrap() + all.as_f64().unwrap());
        assert!((told["lost_share"].as_f64().unwrap() - share).abs() < 1e-9);
        assert!(told["lost_at_socket"].as_u64() < lost.as_u64());
        assert_eq!(told["asked_bps"], 5_000_000_000_u64);
        assert_eq!(told["bursts"]["asked_gap_ns"], 209_612);
        assert_eq!(told["bursts"]["p50_ns"], 209_000);
        let tcp = output(&sample::own(Direction::Forward));
        let way = &tcp["directions"]["forward"];
        assert_eq!(
            (&way["datagrams"], &way["copy"]),
            (&Value::Null, &"copy".into())
        );
        needs_all(SCHEMA, &udp, "/directions/forward/datagrams");
    }

    #[test]
    fn datagrams_of_iperf3_are_told_as_far_as_it_tells_them() {
        let of = |direction: Direction| {
            let whole = output(&sample::iperf3_udp(direction));
            fits(SCHEMA, &whole);
            assert_eq!(
                (&whole["engine"], &whole["far_end"]),
                (&"udp".into(), &"iperf3".into())
            );
            whole["directions"][direction.name()]["datagrams"].clone()
        };
        let forward = of(Direction::Forward);
        assert_eq!(forward["asked_bps"], 100_000_000);
        assert_eq!(
            (&forward["received"], &forward["lost"]),
            (&84_000.into(), &900.into())
        );
        assert_eq!(
            (&forward["sent"], &forward["refused"]),
            (&84_920.into(), &3.into())
        );
        for unknown in ["reordered", "duplicated", "lost_at_socket", "bursts"] {
            assert_eq!(forward[unknown], Value::Null, "{unknown}");
        }
        assert_eq!(forward["jitter_ns"], 12_000);
        let reverse = of(Direction::Reverse);
        assert_eq!(
            (&reverse["reordered"], &reverse["duplicated"]),
            (&4.into(), &0.into())
        );
        assert_eq!(reverse["lost_at_socket"], 7);
        assert_eq!(reverse["refused"], Value::Null);
    }

    #[test]
    fn a_search_is_complete_where_its_longer_step_lost_no_more_than_allowed() {
        let found = output(&sample::search(0.05));
        fits(SCHEMA, &found);
        assert_eq!(found["complete"], true);
        assert_eq!(found["search"]["steps"][0]["lost_share"], 0.04);
        assert!(found["search"]["rate_bps"].as_u64() > Some(0));
        let none = output(&sample::search(0.03));
        fits(SCHEMA, &none);
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
        refuses(SCHEMA, &good, wrong, "");
    }
}
