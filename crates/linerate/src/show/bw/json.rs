//! One measurement of throughput, for programs.
//!
//! The schema is `schema/bw.schema.json`. Units stand in the keys; integers stay below 2^53; what is
//! unknown is `null`.

use linerate_core::facts::Gap;
use linerate_core::record::Record;
use serde::Serialize;

use super::super::flows::{FlowOut, flow_out};
use super::super::json::{ci, integer};
use super::{End, Probe, Way};
use linerate_core::plan::Direction;

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
    same_machine: Option<bool>,
    streams: u32,
    washout_ns: u64,
    time_ns: u64,
    measured_ns: u64,
    complete: bool,
    ended_early: Option<&'a str>,
    directions: Directions<'a>,
    flows: Vec<FlowOut<'a>>,
    unknown: &'a [Gap],
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
}

#[derive(Serialize)]
struct Directions<'a> {
    forward: Option<WayOut<'a>>,
    reverse: Option<WayOut<'a>>,
}

#[derive(Serialize)]
struct WayOut<'a> {
    goodput_bps: Option<u64>,
    goodput_ci_bps: Option<[u64; 2]>,
    samples: u64,
    steady: Option<bool>,
    received_bytes: Option<u64>,
    received_ns: Option<u64>,
    seconds_bps: Vec<u64>,
    retransmits: Option<u64>,
    rtt_ns: Option<u64>,
    min_rtt_ns: Option<u64>,
    near: Option<EndOut<'a>>,
    far: Option<EndOut<'a>>,
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
        same_machine: probe.same_machine,
        streams: probe.streams,
        washout_ns: probe.washout.0,
        time_ns: probe.time.0,
        measured_ns: probe.lasted.0,
        complete: probe.complete(),
        ended_early: Some(probe.broken.as_str()).filter(|why| !why.is_empty()),
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

fn way_out(way: &Way) -> WayOut<'_> {
    let whole = |n: u64| integer(n as f64);
    WayOut {
        goodput_bps: way.goodput.map(|goodput| integer(goodput.mean)),
        goodput_ci_bps: way.goodput.as_ref().and_then(ci),
        samples: way.goodput.map_or(0, |goodput| goodput.samples as u64),
        steady: way.steady,
        received_bytes: way.received.map(|(bytes, _)| whole(bytes.0)),
        received_ns: way.received.map(|(_, time)| whole(time.0)),
        seconds_bps: way.seconds.iter().map(|rate| integer(*rate)).collect(),
        retransmits: way.again,
        rtt_ns: way.rtt.map(|rtt| whole(rtt.0)),
        min_rtt_ns: way.min_rtt.map(|rtt| whole(rtt.0)),
        near: way.near.as_ref().map(end_out),
        far: way.far.as_ref().map(end_out),
    }
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::show::schema::{fits, refuses};

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
        assert!(way["seconds_bps"].as_array().is_some_and(|s| !s.is_empty()));
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
