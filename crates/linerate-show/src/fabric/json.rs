//! An InfiniBand network as JSON. The schema is made from `Output`. Keys contain the units; integers stay below
//! 2^53; unknown values are `null`.

use linerate_ceiling::infiniband::Speed;
use linerate_explain::{Answered, Headline};
use linerate_fabric::mad::counters::{COUNTERS, Counters};
use linerate_fabric::mad::node::NodeKind;
use linerate_fabric::mad::subnet::{ManagerInfo, ManagerState};
use linerate_fabric::network::{Node, Port, PortAt};
use linerate_facts::finding::Finding;
use linerate_facts::infiniband::{LinkState, PhysicalState};
use linerate_plan::path::Certainty;
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::Tone;
use super::super::json::text;
use super::Walked;
use super::text::answer;
use crate::head::Head;

/// One JSON document. Keys contain the units. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate fabric")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// False if the walk through the network ended before every request was answered or given up.
    complete: bool,
    /// From where the requests were sent, in words.
    through: &'a str,
    /// Number of requests that were sent.
    requests: u64,
    /// Time that the walk through the network took.
    took_ns: u64,
    /// What is wrong with the network, the most important first.
    findings: &'a [Finding],
    /// This host's port. Null if it did not reply.
    own: Option<PlaceOut>,
    /// The nodes of the network. Other parts of the document refer to them by their index, from 0.
    nodes: Vec<NodeOut>,
    /// The ports of all nodes.
    ports: Vec<PortOut>,
    /// Requests that got no useful reply.
    silent: Vec<SilentOut>,
}

/// A port, by its node and number.
#[derive(Serialize, JsonSchema)]
struct PlaceOut {
    /// Index of the node in `nodes`.
    node: usize,
    /// Number of the port.
    port: u8,
}

/// A node: an adapter of a host, a switch or a router.
#[derive(Serialize, JsonSchema)]
struct NodeOut {
    /// Description that the node reports of itself. Null if unknown.
    name: Option<String>,
    /// Kind of the node.
    kind: KindOut,
    /// GUID of the node.
    guid: String,
    /// GUID of the system (such as a chassis) that the node is a part of.
    system_guid: String,
    /// Number of the maker, assigned by the IEEE.
    vendor: u32,
    /// Number of the device, assigned by its maker.
    device: u16,
    /// Number of ports that the node reports.
    ports: u8,
}

/// Kind of a node.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum KindOut {
    Host,
    Switch,
    Router,
    Unknown,
}

/// A subnet manager.
#[derive(Serialize, JsonSchema)]
struct ManagerOut {
    /// State of the manager.
    state: ManagerStateOut,
    /// Priority of the manager: the one of the highest priority is the master.
    priority: u8,
    /// GUID of the port that the manager runs at, as it reports.
    guid: String,
}

/// State of a subnet manager.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ManagerStateOut {
    NotActive,
    Discovering,
    Standby,
    Master,
    Unknown,
}

/// A port of a node.
#[derive(Serialize, JsonSchema)]
struct PortOut {
    /// Index of the node in `nodes`.
    node: usize,
    /// Number of the port. Port 0 of a switch is the switch itself.
    port: u8,
    /// GUID of the port. Null if unknown.
    guid: Option<String>,
    /// The port at the other end of the link. Null if there is no link, or if unknown.
    peer: Option<PlaceOut>,
    /// State of the link. Null if unknown.
    state: Option<LinkState>,
    /// Physical state of the port. Null if unknown.
    physical: Option<PhysicalState>,
    /// Local identifier (LID); 0 until a subnet manager assigns one. Null if unknown.
    lid: Option<u16>,
    /// LID of the subnet manager; 0 if there is none. Null if unknown.
    manager_lid: Option<u16>,
    /// Number of lanes that the link uses. Null without a link, or if unknown.
    width: Option<u32>,
    /// Speed of a lane: `FDR`, `EDR` ... Null without a link, or if unknown.
    speed: Option<&'static str>,
    /// Data rate of the link. Null without a link, or if unknown.
    rate_bps: Option<u64>,
    /// Lanes that the port is set to use. Null if unknown.
    width_enabled: Option<u32>,
    /// Highest speed of a lane that the port is set to use. Null if unknown.
    speed_enabled: Option<&'static str>,
    /// Lanes that the port supports. Null if unknown.
    width_supported: Option<u32>,
    /// Highest speed of a lane that the port supports. Null if unknown.
    speed_supported: Option<&'static str>,
    /// MTU of the link: the largest payload of a packet that both ends agreed on. Null if unknown.
    mtu_bytes: Option<u32>,
    /// Partition keys of an adapter's port, in hexadecimal. Null if unknown, and for a switch.
    partition_keys: Option<Vec<String>>,
    /// The subnet manager that runs at the port. Null if there is none, or if unknown.
    manager: Option<ManagerOut>,
    /// Counters of the port. Empty if they were not read.
    counters: Vec<CounterOut>,
}

/// A counter of a port.
#[derive(Serialize, JsonSchema)]
struct CounterOut {
    /// Name of the counter, as in `/sys/class/infiniband/*/ports/*/counters`.
    name: &'static str,
    /// Value of the counter at the last reading.
    value: u64,
    /// Whether the counter is at its largest value, at which it stops.
    full: bool,
    /// Increase per second between the first and the last reading. Null if it was read once, or if it was cleared.
    #[schemars(range(min = 0))]
    per_second: Option<f64>,
}

/// A request that got no useful reply.
#[derive(Serialize, JsonSchema)]
struct SilentOut {
    /// Index of the node in `nodes` that did not reply. Null for an unknown node.
    node: Option<usize>,
    /// The port whose cable leads to the unknown node. Null if the node is known.
    from: Option<PlaceOut>,
    /// Name of the requested attribute.
    attribute: &'static str,
    /// Why there is no useful reply.
    why: String,
}

/// The walk as one JSON document.
pub fn json(walked: &Walked) -> serde_json::Result<String> {
    text(&output(walked))
}

fn output(walked: &Walked) -> Output<'_> {
    let network = &walked.network;
    Output {
        head: Head::new(Some(headline(walked))),
        complete: walked.whole,
        through: &walked.through,
        requests: walked.requests,
        took_ns: walked.took.0,
        findings: &walked.findings,
        own: network.own().map(place),
        nodes: network.nodes.iter().map(node).collect(),
        ports: network.ports().map(|(at, is)| port(at, is)).collect(),
        silent: network
            .gaps
            .iter()
            .map(|gap| SilentOut {
                node: gap.node,
                from: gap.from.map(place),
                attribute: gap.what,
                why: gap.why.to_string(),
            })
            .collect(),
    }
}

fn headline(walked: &Walked) -> Headline {
    let first = walked.findings.iter().find(|finding| finding.is_now());
    // A finding that is only supported may be a state that soon ends, so it is not the headline.
    let proved = first.filter(|finding| finding.certainty == Certainty::Proved);
    let found = proved.map(Headline::found).or_else(|| Headline::suspected(&walked.findings));
    found.unwrap_or_else(|| {
        let (tone, what) = answer(walked);
        // The page has the tone `Good` only if all of the network was read and nothing is wrong.
        let is_well = tone == Tone::Good;
        Headline::said(if is_well { Answered::Healthy } else { Answered::Unknown }, what)
    })
}

fn place(at: PortAt) -> PlaceOut {
    PlaceOut { node: at.node, port: at.port }
}

fn node(node: &Node) -> NodeOut {
    let name = &node.description;
    NodeOut {
        name: (!name.is_empty()).then(|| name.clone()),
        kind: match node.info.kind {
            NodeKind::Host => KindOut::Host,
            NodeKind::Switch => KindOut::Switch,
            NodeKind::Router => KindOut::Router,
            NodeKind::Other(_) => KindOut::Unknown,
        },
        guid: node.info.guid.to_string(),
        system_guid: node.info.system.to_string(),
        vendor: node.info.vendor,
        device: node.info.device,
        ports: node.info.ports,
    }
}

fn manager(of: &ManagerInfo) -> ManagerOut {
    ManagerOut {
        state: match of.state {
            ManagerState::NotActive => ManagerStateOut::NotActive,
            ManagerState::Discovering => ManagerStateOut::Discovering,
            ManagerState::Standby => ManagerStateOut::Standby,
            ManagerState::Master => ManagerStateOut::Master,
            ManagerState::Other(_) => ManagerStateOut::Unknown,
        },
        priority: of.priority,
        guid: of.guid.to_string(),
    }
}

fn port(at: PortAt, port: &Port) -> PortOut {
    let info = port.info;
    let lanes = port.lanes();
    PortOut {
        node: at.node,
        port: at.port,
        guid: port.guid.map(|guid| guid.to_string()),
        peer: port.peer.map(place),
        state: info.and_then(|info| info.state),
        physical: info.and_then(|info| info.physical),
        lid: info.map(|info| info.lid),
        manager_lid: info.map(|info| info.manager_lid),
        width: lanes.map(|lanes| lanes.width),
        speed: lanes.map(|lanes| lanes.speed.name()),
        rate_bps: lanes.map(|lanes| lanes.rate().0),
        width_enabled: info.and_then(|info| info.width.enabled.widest()),
        speed_enabled: info.and_then(|info| info.speed.enabled.fastest()).map(Speed::name),
        width_supported: info.and_then(|info| info.width.supported.widest()),
        speed_supported: info.and_then(|info| info.speed.supported.fastest()).map(Speed::name),
        mtu_bytes: info.and_then(|info| info.mtu),
        partition_keys: port.keys.as_ref().map(|keys| {
            let words = keys.iter().map(|key| format!("{:#06x}", key.0));
            words.collect()
        }),
        manager: port.manager.as_ref().map(manager),
        counters: counters(&port.counters),
    }
}

fn counters(readings: &[(Nanos, Counters)]) -> Vec<CounterOut> {
    let (Some((began, first)), Some((ended, last))) = (readings.first(), readings.last()) else {
        return Vec::new();
    };
    let seconds = ended.0.saturating_sub(began.0) as f64 / 1e9;
    let numbered = COUNTERS.iter().enumerate();
    let of = |(n, counter): (usize, &linerate_fabric::mad::counters::Counter)| {
        let rise = last.values[n].checked_sub(first.values[n]);
        CounterOut {
            name: counter.name,
            value: last.values[n],
            full: last.is_full(n),
            per_second: rise.filter(|_| seconds > 0.0).map(|rise| rise as f64 / seconds),
        }
    };
    numbered.map(of).collect()
}
