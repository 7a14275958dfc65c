//! Findings about cascades: switches with hosts, joined by fewer links than these hosts can fill.

use std::collections::BTreeMap;

use super::super::network::{Network, PortAt};
use super::Finding;
use super::credits::holds_up;
use super::errors::rate;
use linerate_facts::advice::Advice;
use linerate_facts::finding::Stands;
use linerate_units::Rate;

/// Most pairs of joined nodes among which cascades are searched: the time of the search grows with their square.
const MOST_BUNDLES: usize = 5_000;

/// The links between two nodes: their number, and what they carry together, in bits of data per second.
type Bundle = (usize, f64);

/// All links, grouped by the two nodes that they join. `None` if the rate of any link is unknown.
fn bundles(network: &Network) -> Option<BTreeMap<(usize, usize), Bundle>> {
    let mut found: BTreeMap<(usize, usize), Bundle> = BTreeMap::new();
    for (a, b) in network.links() {
        let of: PortAt = a;
        let rate = rate(network.port(of)?)?;
        let bundle = found.entry((a.node.min(b.node), a.node.max(b.node)));
        let bundle = bundle.or_default();
        *bundle = (bundle.0 + 1, bundle.1 + rate);
    }
    Some(found)
}

/// Finds pairs of switches with hosts that are joined only by links between these two switches.
///
/// It is certain that these links carry less than the hosts can send. It is not certain that the hosts want to send
/// that much across. So the finding is supported, and does harm only if ports of these links wait or drop packets. A
/// tree whose upper switches have no hosts saves links on purpose, and is no cascade.
pub(super) fn cascades(network: &Network) -> Vec<Finding> {
    let Some(bundles) = bundles(network).filter(|bundles| bundles.len() <= MOST_BUNDLES) else {
        return Vec::new();
    };
    // A node that did not answer may join the two switches, too.
    if network.is_partly_unseen() {
        return Vec::new();
    }
    let is_switch = |node: usize| network.nodes[node].is_switch();
    let has_hosts = |switch: usize| {
        let mut pairs = bundles.keys();
        pairs.any(|(a, b)| {
            (*a == switch && network.is_host(*b)) || (*b == switch && network.is_host(*a))
        })
    };
    let pairs = bundles.iter().filter(|((a, b), _)| {
        a != b && is_switch(*a) && is_switch(*b) && has_hosts(*a) && has_hosts(*b)
    });
    let found = pairs.filter_map(|((a, b), (links, carried))| {
        let [near, far] = [*a, *b].map(|start| side(network, &bundles, start, (*a, *b)));
        let [(near, from), (far, to)] = [near?, far?];
        let needed = from.min(to);
        (*carried < needed * 0.999).then(|| {
            let names = [*a, *b].map(|node| network.nodes[node].name());
            let is_between = |(near, far): &(PortAt, PortAt)| {
                let joined = (near.node.min(far.node), near.node.max(far.node));
                joined == (*a, *b)
            };
            let mut ports = network.links().filter(is_between).flat_map(|(near, far)| [near, far]);
            let found = finding(&names, (*links, *carried), needed, [near, far]);
            let is_now = ports.any(|at| holds_up(network, at));
            if is_now { found } else { found.stands(Stands::Harmless) }
        })
    });
    found.collect()
}

/// The number of hosts on one side of the links in `cut`, and what they can send in bits per second. `None` if another
/// way leads across.
fn side(
    network: &Network,
    bundles: &BTreeMap<(usize, usize), Bundle>,
    start: usize,
    cut: (usize, usize),
) -> Option<Bundle> {
    let mut found = vec![start];
    let mut next = 0;
    let mut hosts: Bundle = (0, 0.0);
    while let Some(node) = found.get(next).copied() {
        next += 1;
        for (pair, bundle) in bundles.iter().filter(|(pair, _)| **pair != cut) {
            let other = match *pair {
                (a, b) if a == node => b,
                (a, b) if b == node => a,
                _ => continue,
            };
            if network.is_host(other) {
                hosts = (hosts.0 + 1, hosts.1 + bundle.1);
            } else if network.nodes[other].is_switch() && !found.contains(&other) {
                found.push(other);
            }
        }
    }
    let other = if start == cut.0 { cut.1 } else { cut.0 };
    (!found.contains(&other)).then_some(hosts)
}

fn finding(
    names: &[String; 2],
    (links, carried): Bundle,
    needed: f64,
    hosts: [usize; 2],
) -> Finding {
    let [near, far] = names;
    let joined = if links == 1 { "link joins" } else { "links join" };
    let more = (needed * links as f64 / carried).ceil() as usize - links;
    Finding::new(
        "cascade",
        format!("{near} to {far}"),
        format!("{links} {joined} {} hosts with {} others", hosts[0], hosts[1]),
    )
    .why(
        "when the hosts of both sides talk at once, they share these links; hosts \
         at one switch do not notice",
    )
    .because(format!(
        "the links carry {}; the hosts of one side can send {}",
        Rate(carried as u64),
        Rate(needed as u64)
    ))
    .because("no other way leads from one side to the other")
    .fix(Advice::new(format!(
        "add links between both switches (up to {more} more), or attach hosts that \
         talk much to one switch"
    )))
}
