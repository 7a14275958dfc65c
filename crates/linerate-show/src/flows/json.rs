//! The result of `linerate flows` as JSON: connections, and what limits them.
//!
//! The schema of the document is made from `Output`. Keys contain the units; integers stay below 2^53;
//! unknown values are `null`.

use std::net::SocketAddr;

use linerate_facts::Gap;
use linerate_facts::advice::Advice;
use linerate_judge::model::Load;
use linerate_judge::verdict::{Answered, Disturbance, Limit};
use linerate_plan::path::{Certainty, Direction};
use linerate_record::flow::Owner;
use linerate_units::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{Acting, CauseId, exact, integer, text};
use super::{Judged, Look};
use crate::head::Head;

/// One JSON document. Keys contain the units. Unknown values are null. This host is near, the other end of a
/// connection is far; forward is from this host to the far end.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate flows")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// False if the observation was interrupted.
    complete: bool,
    /// Time for which the connections were observed.
    looked_ns: u64,
    /// Longest time that one listing of all connections took.
    longest_round_ns: u64,
    /// Number of connections in the last listing that the filter accepted.
    connections: usize,
    /// The connections that carry payload, the one that carries most first. Idle connections are left out.
    flows: Vec<FlowOut<'a>>,
    /// Readings that failed for all connections.
    unknown: &'a [Gap],
}

/// A live connection of this host.
#[derive(Serialize, JsonSchema)]
pub struct FlowOut<'a> {
    local: EndOut,
    remote: EndOut,
    /// Processes of this host that have the connection's socket open. Empty if unknown.
    processes: Vec<ProcessOut<'a>>,
    /// Whether the connection was gone before the observation ended.
    ended: bool,
    /// Congestion control algorithm of this end. Null if unknown.
    congestion: Option<&'a str>,
    /// The direction that carried more payload. The keys below `received_bps` are about it.
    direction: Direction,
    /// Rate of the payload that this end sent and the far end acknowledged.
    sent_bps: u64,
    /// Rate of the payload that this end received.
    received_bps: u64,
    held: HeldOut,
    /// Mean payload in flight: sent and not yet acknowledged. Null if unknown.
    in_flight_bytes: Option<u64>,
    /// Mean window that the receiver granted. Null if unknown.
    window_bytes: Option<u64>,
    /// Mean congestion window. Null if unknown.
    cwnd_bytes: Option<u64>,
    /// Mean payload in the send queue that was not yet sent. Null if unknown.
    unsent_bytes: Option<u64>,
    /// Mean payload received that the program here had not yet read. Null if unknown.
    unread_bytes: Option<u64>,
    /// Mean of the smoothed round trip that the kernel reported. Null if unknown.
    rtt_ns: Option<u64>,
    /// Smallest round trip that the kernel reported. Null if unknown.
    min_rtt_ns: Option<u64>,
    /// Retransmitted bytes as a share of the bytes sent. Null if unknown.
    #[schemars(range(min = 0, max = 1))]
    retransmitted: Option<f64>,
    /// Highest rate that the program set for the connection (SO_MAX_PACING_RATE). Null if there is none.
    max_pacing_bps: Option<u64>,
    /// What limits the connection. Empty if no cause is supported.
    limits: Vec<LimitOut<'a>>,
    /// Disturbances that took part of the connection's goodput and are not its limit.
    disturbances: Vec<DisturbanceOut<'a>>,
    /// Causes that may limit the connection, if `limits` is empty; those with evidence first.
    suspects: Vec<SuspectOut<'a>>,
    /// Unknown facts, each with the reading that would make it known.
    unknown: Vec<Gap>,
    /// Notes in words, such as a tunnel whose MTU path MTU discovery corrected.
    notes: Vec<String>,
    /// Largest packets that this host sent at the end of the observation. Null if it receives, or if unknown.
    packet_bytes: Option<u64>,
    /// Command whose trials would prove the limit, with `linerate serve` on the far host. Null if both ends are on
    /// this machine, or if the program itself is the limit.
    prove: Option<String>,
}

/// Address of one end of a connection.
#[derive(Serialize, JsonSchema)]
struct EndOut {
    /// IP address of the end.
    address: String,
    /// TCP port.
    port: u16,
}

/// A process that holds the connection.
#[derive(Serialize, JsonSchema)]
struct ProcessOut<'a> {
    /// Process id.
    pid: u32,
    /// Name of the process.
    name: &'a str,
}

/// Shares of time in which the sender could not send, by what held it. If the far host sends, only the share of the
/// window is known here.
#[derive(Serialize, JsonSchema)]
struct HeldOut {
    /// Share of time in which the receive window was full. Null if unknown.
    #[schemars(range(min = 0, max = 1))]
    window: Option<f64>,
    /// Share of time in which the send buffer was full. Null if unknown.
    #[schemars(range(min = 0, max = 1))]
    send_buffer: Option<f64>,
    /// Share of time in which the program had nothing to send. Null if unknown.
    #[schemars(range(min = 0, max = 1))]
    program: Option<f64>,
    /// Share of time held by Nagle's algorithm: less than a segment waited for a delayed acknowledgement. Null if
    /// unknown.
    #[schemars(range(min = 0, max = 1))]
    nagle: Option<f64>,
    /// Share of time in which the congestion window was full. Null if unknown.
    #[schemars(range(min = 0, max = 1))]
    network: Option<f64>,
}

/// A limit of a connection.
#[derive(Serialize, JsonSchema)]
struct LimitOut<'a> {
    #[serde(flatten)]
    acting: Acting,
    /// Never `proved`: no trial is made here.
    #[schemars(extend("const" = Certainty::Supported))]
    certainty: Certainty,
    /// Readings that speak for the limit, with numbers.
    evidence: &'a [String],
    advice: &'a [Advice],
}

/// A disturbance that took part of the goodput and is not the limit.
#[derive(Serialize, JsonSchema)]
struct DisturbanceOut<'a> {
    #[serde(flatten)]
    acting: Acting,
    /// Estimated goodput without the disturbance, divided by the measured goodput. Null if unknown.
    #[schemars(range(min = 1))]
    gain_about: Option<f64>,
    /// Readings that speak for the disturbance, with numbers.
    evidence: &'a [String],
}

/// A cause that may limit the connection.
#[derive(Serialize, JsonSchema)]
struct SuspectOut<'a> {
    #[schemars(with = "CauseId")]
    cause: &'static str,
    /// `finding`: there is evidence for the cause; `unknown`: a reading is missing to decide.
    #[schemars(extend("enum" = ["finding", "unknown"]))]
    outcome: &'static str,
    /// Evidence with numbers, or the readings that are missing.
    why: &'a [String],
}

/// The observation as one JSON document, with a line feed at its end.
pub fn json(look: &Look) -> serde_json::Result<String> {
    let output = Output {
        head: Head::new(look.headline()),
        complete: look.complete,
        looked_ns: nanos(look.time),
        longest_round_ns: nanos(look.round),
        connections: look.connections,
        flows: look.flows.iter().filter_map(flow).collect(),
        unknown: &look.gaps,
    };
    text(&output)
}

/// One connection; `None` if it has no judged direction.
pub fn flow(judged: &Judged) -> Option<FlowOut<'_>> {
    let main = judged.main()?;
    let Load { tcp, unread, .. } = &main.base;
    let flow = &judged.flow;
    let [sent, received] = flow.carried()?;
    let congestion = Some(flow.congestion.as_str()).filter(|name| !name.is_empty());
    Some(FlowOut {
        local: end(flow.local),
        remote: end(flow.remote),
        processes: flow.owners.iter().map(process).collect(),
        ended: flow.ended,
        congestion,
        direction: main.direction,
        sent_bps: exact(sent.0),
        received_bps: exact(received.0),
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
        max_pacing_bps: tcp.max_pacing.map(|rate| exact(rate.0)),
        limits: judged.verdict.limits.iter().map(limit).collect(),
        disturbances: judged.verdict.disturbances.iter().map(disturbance).collect(),
        suspects: judged.suspects().into_iter().map(suspect).collect(),
        unknown: judged.unknown(),
        notes: judged.notes(),
        packet_bytes: main.base.in_use.map(bytes),
        prove: judged.proof(),
    })
}

fn end(end: SocketAddr) -> EndOut {
    EndOut { address: end.ip().to_canonical().to_string(), port: end.port() }
}

fn process(owner: &Owner) -> ProcessOut<'_> {
    ProcessOut { pid: owner.pid, name: &owner.name }
}

fn disturbance(disturbance: &Disturbance) -> DisturbanceOut<'_> {
    DisturbanceOut {
        acting: disturbance.into(),
        gain_about: disturbance.gain(),
        evidence: &disturbance.evidence,
    }
}

fn limit(limit: &Limit) -> LimitOut<'_> {
    LimitOut {
        acting: limit.into(),
        certainty: limit.certainty,
        evidence: &limit.evidence,
        advice: &limit.advice,
    }
}

fn suspect(answered: &Answered) -> SuspectOut<'_> {
    SuspectOut { cause: answered.cause, outcome: answered.outcome, why: &answered.why }
}

fn bytes(bytes: Bytes) -> u64 {
    exact(bytes.0)
}

fn nanos(nanos: Nanos) -> u64 {
    exact(nanos.0)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::schema::{fits, refuses};

    fn output(look: &Look) -> Value {
        serde_json::from_str(&json(look).unwrap()).unwrap()
    }

    #[test]
    fn full_and_empty_documents_fit_the_published_schema() {
        let looks = [sample::look(), sample::by_network(), sample::small_writes(), sample::idle()];
        for look in looks {
            fits("flows", &output(&look));
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
        refuses("flows", &good, wrong, "/flows/0");
    }
}
