//! Findings about links between switches that are missing, by comparison with switches in the same place.

use std::collections::BTreeMap;

use super::super::network::{Network, Port, PortAt};
use super::Finding;
use linerate_facts::advice::Advice;
use linerate_facts::infiniband::PhysicalState;

/// Least number of other switches that must have the link for it to count as missing.
const LEAST_SIBLINGS: usize = 2;

/// The number of links from each switch to each other switch.
type Joined = BTreeMap<usize, BTreeMap<usize, usize>>;

fn joined(network: &Network) -> Joined {
    let mut found = Joined::new();
    for (a, b) in network.links().filter(|(a, b)| a.node != b.node) {
        if [a, b].iter().all(|at| network.nodes[at.node].is_switch()) {
            for (from, to) in [(a, b), (b, a)] {
                let of = found.entry(from.node).or_default();
                *of.entry(to.node).or_default() += 1;
            }
        }
    }
    found
}

/// Finds pairs of switches with fewer links than all others of the same place have, if both have a port without a link.
///
/// Switches have the same place if they are joined to the same other switches. An empty port alone is normal.
pub(super) fn missing(network: &Network) -> Vec<Finding> {
    // A node that did not answer may have the link.
    if network.is_partly_unseen() {
        return Vec::new();
    }
    let joined = joined(network);
    let mut found: BTreeMap<(usize, usize), Finding> = BTreeMap::new();
    for (lacks, own) in &joined {
        for (to, others) in joined.iter().filter(|(to, _)| *to != lacks) {
            let has = own.get(to).copied().unwrap_or(0);
            let siblings: Vec<(usize, usize)> = others
                .iter()
                .filter(|(other, _)| *other != lacks)
                .map(|(other, links)| (*other, *links))
                .collect();
            let is_like = |(other, links): &(usize, usize)| {
                let same = |of: &BTreeMap<usize, usize>| {
                    let rest = of.iter().filter(|(node, _)| *node != to);
                    rest.map(|(node, n)| (*node, *n)).collect::<Vec<_>>()
                };
                *links > has && same(&joined[other]) == same(own)
            };
            let elsewhere = own.keys().any(|node| node != to);
            if siblings.len() < LEAST_SIBLINGS || !elsewhere || !siblings.iter().all(is_like) {
                continue;
            }
            let pair = (*lacks.min(to), *lacks.max(to));
            if let Some(finding) = finding(network, *lacks, *to, &siblings) {
                found.entry(pair).or_insert(finding);
            }
        }
    }
    found.into_values().collect()
}

fn finding(
    network: &Network,
    lacks: usize,
    to: usize,
    siblings: &[(usize, usize)],
) -> Option<Finding> {
    let near = empty(network, lacks, |port| is_usual(network, siblings, to, port))?;
    let far = empty(network, to, |_| false)?;
    let [name, other] = [lacks, to].map(|node| network.nodes[node].name());
    let fix = Advice::new(format!(
        "see whether a cable from {} to {} was pulled, or one of its ends is switched off",
        network.name(near),
        other
    ));
    Some(
        Finding::new(
            "missing-link",
            network.name(near),
            format!("a link from {name} to {other} is missing"),
        )
        .why(format!(
            "{} other switches in the same place have more links to {other}: what they \
             carry goes other ways here",
            siblings.len()
        ))
        .because(format!(
            "PortInfo: {} and {} have no link",
            condition(network, near),
            condition(network, far)
        ))
        .fix(fix),
    )
}

/// A port and its physical state in words: `leaf3 port 6 (polling)`.
fn condition(network: &Network, at: PortAt) -> String {
    let info = network.port(at).and_then(|port| port.info);
    let physical = info.and_then(|info| info.physical);
    let physical = physical.map_or("state unknown", PhysicalState::name);
    format!("{} ({physical})", network.name(at))
}

/// A port of the node without a link, if possible one for which `is_wanted` holds.
fn empty(network: &Network, node: usize, is_wanted: impl Fn(u8) -> bool) -> Option<PortAt> {
    let has_none = |(port, is): &(&u8, &Port)| **port > 0 && is.info.is_some() && !is.has_link();
    let ports = network.nodes[node].ports.iter().filter(has_none);
    let empty: Vec<u8> = ports.map(|(port, _)| *port).collect();
    let wanted = empty.iter().find(|port| is_wanted(**port));
    let port = *wanted.or(empty.first())?;
    Some(PortAt { node, port })
}

/// Whether all siblings are joined to the switch `to` at the port with this number.
fn is_usual(network: &Network, siblings: &[(usize, usize)], to: usize, port: u8) -> bool {
    siblings.iter().all(|(node, _)| {
        let port = network.port(PortAt { node: *node, port });
        port.and_then(|port| port.peer).is_some_and(|peer| peer.node == to)
    })
}
