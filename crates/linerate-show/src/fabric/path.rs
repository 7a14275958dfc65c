//! Pages of `fabric ping` (round trips of management requests) and `fabric route` (the route to a port).

use linerate_fabric::mad::subnet::NO_RECORD;
use linerate_fabric::network::{End, Network, PortAt, Routed, Why};
use linerate_units::Nanos;

use super::super::{Document, Tone};
use super::text::{count, lanes};

/// Name of the attribute that describes a path.
const PATH: &str = "PathRecord";

/// Round trips of management requests to a port.
pub struct Pinged {
    /// Name of the port, in words.
    pub name: String,
    /// LID of the port.
    pub lid: u16,
    /// Number of requests that were sent.
    pub sent: u32,
    /// Round trips of the requests that were answered.
    pub trips: Vec<Nanos>,
}

/// The page of `fabric ping`.
pub fn pinged_page(of: &Pinged) -> Document {
    let mut doc = Document::new();
    let Pinged { name, lid, sent, trips } = of;
    let head = format!("{name} (LID {lid}): {} of {sent} requests answered", trips.len());
    let tone = if trips.len() == *sent as usize { Tone::Strong } else { Tone::Warning };
    doc.line(&[(tone, &head)], 2);
    if let (Some(least), Some(most)) = (trips.iter().min(), trips.iter().max()) {
        let mean = Nanos(trips.iter().map(|trip| trip.0).sum::<u64>() / trips.len() as u64);
        let text = format!("{least} least, {mean} mean, {most} most");
        doc.entry("Round trip", &[(Tone::Plain, &text)], 2);
    }
    let text = if trips.is_empty() {
        "This is the management path: the node, or the way to it, does not answer there."
    } else {
        "This is the management path. It says that the node is there and how packets find it, but not how fast data pass."
    };
    doc.line(&[(Tone::Dim, text)], 2);
    doc
}

/// The route of packets through a network.
pub struct Way<'a> {
    /// The network, with the forwarding tables and the path that were requested from it.
    pub network: &'a Network,
    /// The port where the route begins.
    pub from: PortAt,
    /// The port that the route should lead to.
    pub to: PortAt,
    /// LID of that destination port.
    pub lid: u16,
    /// The route that the forwarding tables give.
    pub route: Routed,
}

/// The page of `fabric route`.
pub fn routed(way: &Way<'_>) -> Document {
    let mut doc = Document::new();
    let Way { network, from, to, lid, route } = way;
    let name = |at| network.name(at);
    let node = |node: usize| network.nodes[node].name();
    let (tone, end) = match route.end {
        End::Arrives(_) => (Tone::Strong, count(route.hops.len(), "link", "links")),
        End::Loop(at) => (Tone::Warning, format!("runs in a circle: {} is passed again", node(at))),
        End::NoEntry(at) => {
            (Tone::Warning, format!("ends at {}: its table has no entry for LID {lid}", node(at)))
        }
        End::LinkDown(at) => {
            (Tone::Warning, format!("ends at {}: this port has no active link", name(at)))
        }
        End::Elsewhere(at) => {
            (Tone::Warning, format!("ends at {}, which does not have LID {lid}", name(at)))
        }
        End::Unknown(at) => {
            (Tone::Warning, format!("unknown from {} on: what is there did not say", name(at)))
        }
    };
    let head = format!("{} to {} (LID {lid}): {end}", name(*from), name(*to));
    doc.line(&[(tone, &head)], 2);
    let mut label = "Links";
    for hop in &route.hops {
        let Some(port) = network.port(*hop) else {
            continue;
        };
        let peer = port.peer.map_or_else(|| "unknown".to_owned(), name);
        let text = format!("{} - {peer}: {}", name(*hop), lanes(port));
        doc.entry(label, &[(Tone::Plain, &text)], 2);
        label = "";
    }
    path(&mut doc, network, route, *to);
    doc
}

/// Writes the path that the subnet manager gives, and where its settings are below what the links carry.
fn path(doc: &mut Document, network: &Network, route: &Routed, to: PortAt) {
    let Some(from) = route.hops.first() else {
        return;
    };
    let Some(path) = network.path(*from, to) else {
        let mut gaps = network.gaps.iter().filter(|gap| gap.what == PATH);
        let why = match gaps.next().map(|gap| gap.why) {
            Some(Why::Refused(NO_RECORD)) => {
                "the subnet manager has none: the ports may share no partition".to_owned()
            }
            Some(why) => format!("unknown: {why}"),
            None => "unknown: the subnet manager was not asked".to_owned(),
        };
        return doc.entry("Path record", &[(Tone::Warning, &why)], 2);
    };
    let mut parts: Vec<String> = path.mtu.map(|mtu| format!("MTU {mtu}")).into_iter().collect();
    parts.extend(path.rate.map(|rate| format!("signals at {rate}")));
    parts.push(format!("service level {}", path.level));
    parts.push(format!("P_Key {:#06x}", path.key.0));
    doc.entry("Path record", &[(Tone::Plain, &parts.join(", "))], 2);
    // The own port (0) of a switch may have a smaller MTU and rate than its links.
    if [*from, to].iter().any(|end| end.port == 0 || network.nodes[end.node].is_switch()) {
        return;
    }
    let mtus = route.hops.iter().map(|hop| network.port(*hop)?.info?.mtu);
    let least: Option<Vec<u32>> = mtus.collect();
    let carried = least.and_then(|mtus| mtus.into_iter().min());
    if let (Some(carried), Some(set)) = (carried, path.mtu)
        && set < carried
    {
        let text = format!(
            "the manager limits packets to {set} bytes; all of these links carry {carried}"
        );
        doc.detail(&[(Tone::Warning, &text)], 2);
    }
}
