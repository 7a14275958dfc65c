//! Connections and what holds them, for programs.
//!
//! The schema is `schema/flows.schema.json`. Units stand in the keys; integers stay below 2^53; what
//! is unknown is `null`.

use std::net::SocketAddr;

use linerate_core::causes::Advice;
use linerate_core::facts::Gap;
use linerate_core::model::{Load, Owner};
use linerate_core::units::{Bytes, Nanos};
use linerate_core::verdict::{Answered, Disturbance, Limit};
use serde::Serialize;

use super::super::json::integer;
use super::{Judged, Look};

/// Version of the document; raised when a key changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../../schema/flows.schema.json");

#[derive(Serialize)]
struct Output<'a> {
    format: u32,
    linerate: &'static str,
    complete: bool,
    looked_ns: u64,
    longest_round_ns: u64,
    connections: usize,
    flows: Vec<FlowOut<'a>>,
    unknown: &'a [Gap],
}

#[derive(Serialize)]
pub(crate) struct FlowOut<'a> {
    local: EndOut,
    remote: EndOut,
    processes: Vec<ProcessOut<'a>>,
    ended: bool,
    congestion: Option<&'a str>,
    direction: &'static str,
    sent_bps: u64,
    received_bps: u64,
    held: HeldOut,
    in_flight_bytes: Option<u64>,
    window_bytes: Option<u64>,
    cwnd_bytes: Option<u64>,
    unsent_bytes: Option<u64>,
    unread_bytes: Option<u64>,
    rtt_ns: Option<u64>,
    min_rtt_ns: Option<u64>,
    retransmitted: Option<f64>,
    max_pacing_bps: Option<u64>,
    limits: Vec<LimitOut<'a>>,
    disturbances: Vec<DisturbanceOut<'a>>,
    suspects: Vec<SuspectOut<'a>>,
    unknown: Vec<Gap>,
    notes: Vec<String>,
    packet_bytes: Option<u64>,
    prove: Option<String>,
}

#[derive(Serialize)]
struct EndOut {
    address: String,
    port: u16,
}

#[derive(Serialize)]
struct ProcessOut<'a> {
    pid: u32,
    name: &'a str,
}

/// Shares of time.
#[derive(Serialize)]
struct HeldOut {
    window: Option<f64>,
    send_buffer: Option<f64>,
    program: Option<f64>,
    nagle: Option<f64>,
    network: Option<f64>,
}

#[derive(Serialize)]
struct LimitOut<'a> {
    cause: &'static str,
    stage: &'static str,
    side: &'static str,
    certainty: &'static str,
    evidence: &'a [String],
    advice: &'a [Advice],
}

#[derive(Serialize)]
struct DisturbanceOut<'a> {
    cause: &'static str,
    stage: &'static str,
    side: &'static str,
    gain_about: Option<f64>,
    evidence: &'a [String],
}

#[derive(Serialize)]
struct SuspectOut<'a> {
    cause: &'static str,
    outcome: &'static str,
    why: &'a [String],
}

/// The look as one JSON document, with a line feed at its end.
pub fn json(look: &Look) -> serde_json::Result<String> {
    let output = Output {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION"),
        complete: look.complete,
        looked_ns: nanos(look.time),
        longest_round_ns: nanos(look.round),
        connections: look.connections,
        flows: look.flows.iter().filter_map(flow).collect(),
        unknown: &look.gaps,
    };
    let mut text = serde_json::to_string_pretty(&output)?;
    text.push('\n');
    Ok(text)
}

/// One connection.
pub(crate) fn flow(judged: &Judged) -> Option<FlowOut<'_>> {
    let main = judged.main()?;
    let Load { tcp, unread, .. } = &main.base;
    let flow = &judged.flow;
    let [sent, received] = linerate_core::model::carried(flow)?;
    let congestion = Some(flow.congestion.as_str()).filter(|name| !name.is_empty());
    Some(FlowOut {
        local: end(flow.local),
        remote: end(flow.remote),
        processes: flow.owners.iter().map(process).collect(),
        ended: flow.ended,
        congestion,
        direction: main.direction.name(),
        sent_bps: integer(sent.0 as f64),
        received_bps: integer(received.0 as f64),
        held: HeldOut {
            window: tcp.rwnd_limited,
            send_buffer: tcp.sndbuf_limited,
            program: tcp.starved,
            nagle: tcp.nagle,
            network: tcp.network,
        },
        in_flight_bytes: tcp.in_flight.map(bytes),
        window_bytes: tcp.window.map(bytes),
        cwnd_bytes: tcp.cwnd.map(bytes),
        unsent_bytes: tcp.not_sent.map(bytes),
        unread_bytes: unread.map(integer),
        rtt_ns: tcp.rtt.map(nanos),
        min_rtt_ns: tcp.min_rtt.map(nanos),
        retransmitted: tcp.retransmitted,
        max_pacing_bps: tcp.max_pacing.map(|rate| integer(rate.0 as f64)),
        limits: judged.verdict.limits.iter().map(limit).collect(),
        disturbances: judged
            .verdict
            .disturbances
            .iter()
            .map(disturbance)
            .collect(),
        suspects: judged.suspects().into_iter().map(suspect).collect(),
        unknown: judged.unknown(),
        notes: judged.notes(),
        packet_bytes: main.base.in_use.map(bytes),
        prove: judged.proof(),
    })
}

fn end(end: SocketAddr) -> EndOut {
    EndOut {
        address: end.ip().to_canonical().to_string(),
        port: end.port(),
    }
}

fn process(owner: &Owner) -> ProcessOut<'_> {
    ProcessOut {
        pid: owner.pid,
        name: &owner.name,
    }
}

fn disturbance(disturbance: &Disturbance) -> DisturbanceOut<'_> {
    DisturbanceOut {
        cause: disturbance.cause,
        stage: disturbance.stage.name(),
        side: disturbance.side.name(),
        gain_about: disturbance.gain(),
        evidence: &disturbance.evidence,
    }
}

fn limit(limit: &Limit) -> LimitOut<'_> {
    LimitOut {
        cause: limit.cause,
        stage: limit.stage.name(),
        side: limit.side.name(),
        certainty: limit.certainty.name(),
        evidence: &limit.evidence,
        advice: &limit.advice,
    }
}

fn suspect(answered: &Answered) -> SuspectOut<'_> {
    SuspectOut {
        cause: answered.cause,
        outcome: answered.outcome,
        why: &answered.why,
    }
}

fn bytes(bytes: Bytes) -> u64 {
    integer(bytes.0 as f64)
}

fn nanos(nanos: Nanos) -> u64 {
    integer(nanos.0 as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::show::schema::{fits, refuses};

    fn output(look: &Look) -> Value {
        serde_json::from_str(&json(look).unwrap()).unwrap()
    }

    #[test]
    fn full_and_empty_documents_fit_the_published_schema() {
        for look in [sample::look(), sample::idle()] {
            fits(SCHEMA, &output(&look));
        }
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let good = output(&sample::look());
        let wrong = [
            ("/format", Value::from(2)),
            ("/connections", Value::from(-1)),
            ("/flows/0/local/port", Value::from(65_536)),
            ("/flows/0/direction", Value::from("both")),
            ("/flows/0/sent_bps", Value::Null),
            ("/flows/0/held/window", Value::from(1.5)),
            ("/flows/0/limits/0/certainty", Value::from("proved")),
            ("/flows/0/limits/0/advice/0/do", Value::Null),
            ("/flows/1/suspects/0/outcome", Value::from("clear")),
            ("/flows/1/prove", Value::from(1)),
        ];
        refuses(SCHEMA, &good, wrong, "/flows/0");
    }
}
