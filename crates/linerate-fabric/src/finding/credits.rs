//! Findings about flow-control credits that run out: ports that wait to send, and the receiver at the end of their
//! chain.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::super::mad::counters::{COUNTERS, Counted};
use super::super::network::{Network, Port, PortAt};
use super::Finding;
use super::errors::{Rise, rate};
use linerate_facts::advice::{Advice, Step};
use linerate_facts::finding::Stands;

/// Least share of the time that a port waits for credits to be reported. Bursts of two senders to one receiver make
/// ports wait for a moment, so some percent are normal on a network in use. A port that waits for a third of the time
/// cannot send at the rate of its link.
const WAIT_SHARE: f64 = 0.3;

/// Least share of a link's rate at which the link is full.
const FULL: f64 = 0.8;

/// Bits in one unit of the counters of payload.
const WORD: f64 = 32.0;

/// Bits that the link could carry during one unit of the wait counter: the smallest and the largest. The standard
/// leaves the unit to the device: at least four bytes, eight for Quantum, and 32 for each of four lanes for Switch-IB.
//= NVIDIA, ibdiagnet 2.13, congestion assessment on InfiniBand links
const WAIT_UNIT: RangeInclusive<f64> = 32.0..=1024.0;

/// The share of the time that a port waits for credits, at least: with the smallest unit of its counter. `None` if
/// waits are not counted, or if the counter was cleared or is full.
fn share(network: &Network, at: PortAt, port: &Port) -> Option<f64> {
    share_by(*WAIT_UNIT.start(), network, at, port)
}

fn share_by(unit: f64, network: &Network, at: PortAt, port: &Port) -> Option<f64> {
    let support = network.nodes[at.node].support?;
    let rise = Rise::of(port).filter(|_| support.wait)?;
    let index = COUNTERS.iter().position(|c| c.counted == Counted::Waits)?;
    let (first, last) = (rise.first.values[index], rise.last.values[index]);
    let units = last.checked_sub(first).filter(|_| !rise.last.is_full(index))?;
    Some((units as f64 * unit / (rate(port)? * rise.seconds)).min(1.0))
}

/// Ports that wait for credits, each with the share of the time.
fn waiting(network: &Network) -> BTreeMap<PortAt, f64> {
    let of = |(at, port)| Some((at, share(network, at, port)?));
    let shares = network.ports().filter_map(of);
    shares.filter(|(_, share)| *share >= WAIT_SHARE).collect()
}

/// The node that a waiting port waits for, if that node is the end of the chain: an adapter, or a switch none of whose
/// other ports waits.
fn end(network: &Network, at: PortAt) -> Option<usize> {
    let peer = network.port(at)?.peer?;
    let node = &network.nodes[peer.node];
    // If the switch waits to send on this link in the other direction, that is not a wait for a third node.
    let mut others =
        node.ports.iter().filter(|(port, is)| **port != peer.port && **port > 0 && is.has_link());
    let waits_for_nobody = |(port, is): (&u8, &Port)| {
        let at = PortAt { port: *port, ..peer };
        share_by(*WAIT_UNIT.end(), network, at, is).is_some_and(|share| share < WAIT_SHARE)
    };
    (!node.is_switch() || others.all(waits_for_nobody)).then_some(peer.node)
}

/// Findings about receivers that other ports wait for.
pub(super) fn slow_receiver(network: &Network) -> Vec<Finding> {
    let waiting = waiting(network);
    let mut by_end: BTreeMap<usize, Vec<(PortAt, f64)>> = BTreeMap::new();
    for (at, share) in &waiting {
        if let Some(end) = end(network, *at) {
            by_end.entry(end).or_default().push((*at, *share));
        }
    }
    let count = waiting.len();
    let found = by_end.into_iter().map(|(end, mut ports)| {
        ports.sort_by(|a, b| b.1.total_cmp(&a.1));
        finding(network, end, &ports, count)
    });
    found.collect()
}

fn finding(network: &Network, end: usize, ports: &[(PortAt, f64)], count: usize) -> Finding {
    let node = &network.nodes[end];
    let name = node.name();
    let mut proof: Vec<String> = ports
        .iter()
        .take(3)
        .map(|(at, share)| {
            format!(
                "port_xmit_wait of {}: it waits {:.0} % of the time or more",
                network.name(*at),
                share * 100.0
            )
        })
        .collect();
    if count > ports.len() {
        proof.push(format!("{count} ports of the network wait; the others are before these"));
    }
    if let Some(full) = full(network, end) {
        return full_link(network, full, proof);
    }
    let (why, fix) = if network.is_host(end) {
        let fix = Advice::new(format!("look at the slot, the memory and the programs of {name}"));
        (
            "this host takes packets from its port more slowly than they arrive",
            fix.step(Step::on(None, "linerate host").about(format!("on {name}"))),
        )
    } else {
        (
            "it does not send all that arrives, and waits for nobody: why is unknown",
            Advice::new("read its counters for longer, under the same load"),
        )
    };
    let waits = match ports {
        [(at, _)] => format!("{} waits for it", network.name(*at)),
        ports => format!("{} ports wait for it", ports.len()),
    };
    Finding::new("slow-receiver", name, format!("takes packets too slowly: {waits}"))
        .why(why)
        .proof(proof)
        .fix(fix)
}

/// A port of a switch whose link is full; `None` if there is none, or the node is an adapter.
fn full(network: &Network, switch: usize) -> Option<PortAt> {
    let words = COUNTERS.iter().position(|c| c.name == "port_xmit_data")?;
    let is_full = |(_, port): &(&u8, &Port)| {
        let used = Rise::of(port).zip(rate(port));
        used.is_some_and(|(rise, rate)| rise.by(words) as f64 * WORD / rise.seconds >= FULL * rate)
    };
    let node = &network.nodes[switch];
    let found = node.ports.iter().filter(|_| node.is_switch()).find(is_full)?;
    Some(PortAt { node: switch, port: *found.0 })
}

/// Finding about a link to which more is sent than it carries: this is normal use, and no fault.
fn full_link(network: &Network, at: PortAt, proof: Vec<String>) -> Finding {
    let peer = network.port(at).and_then(|port| port.peer);
    let to = peer.map_or_else(|| "its peer".to_owned(), |peer| network.name(peer));
    Finding::new("full-link", network.name(at), format!("its link to {to} is full"))
        .why(format!("more is sent to {to} than this link carries, so that the senders wait"))
        .proof(proof)
        .stands(Stands::Harmless)
        .fix(Advice::new(format!("send less to {to}, or give it a faster link")))
}

/// Whether a port waits for credits for much of the time, or drops packets that it cannot send.
pub(super) fn holds_up(network: &Network, at: PortAt) -> bool {
    let Some(port) = network.port(at) else {
        return false;
    };
    let drops = Rise::of(port).is_some_and(|rise| rise.sum(Counted::Discards) > 0);
    drops || share(network, at, port).is_some_and(|share| share >= WAIT_SHARE)
}
