//! Findings about nodes with the same GUID, and nodes that do not answer or lose requests.

use std::collections::BTreeMap;

use super::super::mad::Attribute;
use super::super::network::{Network, Node, Port, PortAt, Silence, Why};
use super::Finding;
use linerate_facts::advice::{Advice, Step};
use linerate_facts::infiniband::Guid;

/// Finds nodes that share a GUID: two ports with working links both lead to one port of one node.
pub(super) fn doubled(network: &Network) -> Vec<Finding> {
    let has_link = |at: PortAt| network.port(at).is_some_and(Port::has_link);
    let ports = network.ports().filter_map(|(at, port)| {
        let ends = [port.peer?, port.second?];
        ends.iter().all(|end| has_link(*end)).then_some((at, ends))
    });
    let mut found: BTreeMap<usize, (PortAt, [PortAt; 2])> = BTreeMap::new();
    for (at, ends) in ports {
        found.entry(at.node).or_insert((at, ends));
    }
    let found = found.into_values().map(|(at, ends)| {
        let node = &network.nodes[at.node];
        let [a, b] = ends.map(|end| network.name(end));
        let what = format!("two nodes have the GUID {}", node.info.guid);
        Finding::new("duplicate-guid", node.name(), what)
            .why(SHARED)
            .because(format!(
                "NodeInfo across {a} and across {b}: the same node, with the same port"
            ))
            .proved()
            .fix(own_guid())
    });
    found.collect()
}

/// Finds ports of different adapters that share a GUID.
pub(super) fn doubled_ports(network: &Network) -> Vec<Finding> {
    let mut by_guid: BTreeMap<Guid, Vec<PortAt>> = BTreeMap::new();
    for (at, port) in network.ports().filter(|(at, _)| network.is_here(*at)) {
        let is_switch = network.nodes[at.node].is_switch();
        let guid = port.guid.filter(|guid| !is_switch && *guid != Guid::NONE);
        if let Some(guid) = guid {
            by_guid.entry(guid).or_default().push(at);
        }
    }
    let shared = by_guid.into_iter().filter(|(_, ports)| ports.len() > 1);
    let found = shared.map(|(guid, ports)| {
        let names: Vec<String> = ports.iter().map(|at| network.name(*at)).collect();
        let proof = names.iter().map(|name| format!("NodeInfo of {name}: port GUID {guid}"));
        Finding::new(
            "duplicate-guid",
            names.join(", "),
            format!("{} ports have the port GUID {guid}", ports.len()),
        )
        .why(SHARED)
        .proof(proof.take(3).collect())
        .proved()
        .fix(own_guid())
    });
    found.collect()
}

/// Finds ports that have the same LID.
pub(super) fn doubled_lids(network: &Network) -> Vec<Finding> {
    let mut by_lid: BTreeMap<u16, Vec<PortAt>> = BTreeMap::new();
    for (at, port) in network.ports().filter(|(at, _)| network.is_here(*at)) {
        let is_end = at.port == 0 || !network.nodes[at.node].is_switch();
        let lid = port.info.map_or(0, |info| info.lid);
        if is_end && lid != 0 {
            by_lid.entry(lid).or_default().push(at);
        }
    }
    let shared = by_lid.into_iter().filter(|(_, ports)| ports.len() > 1);
    let found = shared.map(|(lid, ports)| {
        let names: Vec<String> = ports.iter().map(|at| network.name(*at)).collect();
        let proof = names.iter().map(|name| format!("PortInfo of {name}: LID {lid}"));
        // Not proved: a manager may have changed the LIDs while they were read.
        Finding::new(
            "duplicate-lid",
            names.join(", "),
            format!("{} ports have the LID {lid}", ports.len()),
        )
        .why("packets to this LID reach one of them, and the others get none")
        .proof(proof.take(3).collect())
        .fix(
            Advice::new(
                "let the subnet manager give all LIDs again: start it anew, without the \
                 LIDs that it keeps",
            )
            .step(Step::by_hand("end opensm, then start it with --reassign_lids")),
        )
    });
    found.collect()
}

/// The consequence if two nodes or ports have one GUID.
const SHARED: &str = "managers and tools take both for one, and send packets to the wrong one";

fn own_guid() -> Advice {
    Advice::new(
        "give one of both its own GUID again: read it from the label of the card, and write it with the maker's tool for \
         firmware",
    )
}

/// Least number of management datagrams that a node must lose to be reported, and their least share of all that were
/// sent to it.
const LEAST_LOST: u32 = 3;
const LOST_SHARE: f64 = 0.1;

/// The share of management datagrams that a node loses. `None` if the share is small, or if the node no longer replies.
fn lost(network: &Network, at: usize) -> Option<f64> {
    let node = network.nodes.get(at)?;
    let share = f64::from(node.lost) / f64::from(node.sent.max(1));
    let mut gaps = network.gaps.iter().filter(|gap| gap.node == Some(at));
    let stopped = node.lost >= node.sent || gaps.any(|gap| gap.why == Why::NotSent);
    (node.lost >= LEAST_LOST && share >= LOST_SHARE && !stopped).then_some(share)
}

/// Finds nodes that lose a part of the management datagrams, but answer others.
pub(super) fn lossy(network: &Network) -> Vec<Finding> {
    let numbered = network.nodes.iter().enumerate();
    let lossy: Vec<(&Node, f64)> =
        numbered.filter_map(|(at, node)| Some((node, lost(network, at)?))).collect();
    // Datagrams to a node behind a lossy node pass the lossy one: only the nearest lossy node is reported.
    let is_behind = |node: &Node| {
        let ports = node.route.ports();
        let mut before = lossy.iter().map(|(other, _)| other.route.ports());
        before.any(|other| other.len() < ports.len() && ports.starts_with(other))
    };
    let nearest = lossy.iter().filter(|(node, _)| !is_behind(node));
    nearest
        .map(|(node, share)| {
            Finding::new(
                "lossy-node",
                node.name(),
                format!("loses {:.0} % of the management datagrams", share * 100.0),
            )
            .why("its management processor is overloaded, or its link loses packets")
            .because(format!(
                "{} of {} datagrams to it had no reply within 250 ms",
                node.lost, node.sent
            ))
            .fix(Advice::new(
                "look at the error counters of its link, then at its load and firmware",
            ))
        })
        .collect()
}

/// Finds nodes that no longer reply, and ends of links from which no reply was received.
pub(super) fn silent(network: &Network) -> Vec<Finding> {
    let mut by_node: BTreeMap<(Option<usize>, Option<PortAt>), Vec<&Silence>> = BTreeMap::new();
    let is_lossy = |gap: &Silence| gap.node.is_some_and(|node| lost(network, node).is_some());
    // Requests for the state of a manager are left out: a program answers them, not the node itself.
    let is_of_node = |gap: &&Silence| gap.what != Attribute::ManagerInfo.name();
    let gaps = network.gaps.iter().filter(|gap| gap.why.is_silent());
    for gap in gaps.filter(is_of_node).filter(|gap| !is_lossy(gap)) {
        by_node.entry((gap.node, gap.from)).or_default().push(gap);
    }
    let found = by_node.into_iter().map(|(at, gaps)| {
        let subject = match at {
            (Some(node), _) => network.nodes[node].name(),
            (None, Some(from)) => format!("the node across the cable of {}", network.name(from)),
            (None, None) => "this host's port".to_owned(),
        };
        let mut proof: Vec<String> =
            gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect();
        proof.sort();
        proof.dedup();
        proof.truncate(3);
        let requests = match gaps.len() {
            1 => "1 request".to_owned(),
            n => format!("{n} requests"),
        };
        Finding::new("silent-node", subject, format!("does not reply to {requests}"))
            .why(
                "it is down or overloaded, its link loses packets, or it answers only \
                 those that know its management key",
            )
            .proof(proof)
            .fix(Advice::new(
                "look at the error counters of its link, then at its load and firmware",
            ))
    });
    found.collect()
}
