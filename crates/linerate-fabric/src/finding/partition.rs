//! Findings about partitions: hosts that may not communicate with any other host.

use super::super::mad::node::NodeKind;
use super::super::mad::port::PartitionKey;
use super::super::network::{Network, Port, PortAt};
use super::Finding;
use linerate_facts::advice::Advice;
use linerate_facts::infiniband::Guid;

/// Whether two ports may communicate: they share a partition, and at least one of them is a full member of it.
pub(super) fn may_talk(a: &[PartitionKey], b: &[PartitionKey]) -> bool {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    let mut shared = pairs.filter(|(a, b)| a.partition() == b.partition());
    shared.any(|(a, b)| a.is_full() || b.is_full())
}

/// Whether every host is known with which another may communicate: none that did not answer, has no address yet, or is
/// beyond a router.
fn is_whole(network: &Network) -> bool {
    let has_router = || {
        let mut nodes = network.nodes.iter();
        nodes.any(|node| node.info.kind == NodeKind::Router)
    };
    let waits = |(at, port): (PortAt, &Port)| {
        network.is_host(at.node) && network.is_here(at) && !port.is_active()
    };
    !network.is_partly_unseen() && !has_router() && !network.ports().any(waits)
}

/// Finds ports of hosts that share no partition with any other host.
///
/// Two groups of hosts that may not communicate are usually separated on purpose. A single host without any partner is
/// not.
pub(super) fn isolated(network: &Network) -> Vec<Finding> {
    let here = network
        .ports()
        .filter(|(at, port)| network.is_host(at.node) && network.is_here(*at) && port.is_active());
    if !is_whole(network) {
        return Vec::new();
    }
    // If the keys of any port are unknown, that port may be the one that a host communicates with.
    let keys: Option<Vec<(PortAt, &[PartitionKey])>> =
        here.map(|(at, port)| Some((at, port.keys.as_deref()?))).collect();
    let Some(keys) = keys else {
        return Vec::new();
    };
    // Adapters with the same system GUID are of one host.
    let system = |node: usize| network.nodes[node].info.system;
    let is_other =
        |a: usize, b: usize| a != b && (system(a) != system(b) || system(a) == Guid::NONE);
    let others = |at: PortAt| keys.iter().filter(move |(other, _)| is_other(other.node, at.node));
    let is_isolated = |(at, own): &&(PortAt, &[PartitionKey])| {
        others(*at).count() > 0 && !others(*at).any(|(_, keys)| may_talk(own, keys))
    };
    let found: Vec<&(PortAt, &[PartitionKey])> = keys.iter().filter(is_isolated).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let shares = |(at, own): &&(PortAt, &[PartitionKey])| {
        let mut all = others(*at).flat_map(|(_, keys)| keys.iter());
        all.any(|key| own.iter().any(|own| own.partition() == key.partition()))
    };
    let why = if found.iter().any(shares) {
        "they share a partition, but all are limited members of it: these may talk to full members only"
    } else {
        "packets are taken only from ports of the same partition, and no other host is in theirs"
    };
    let proof = found.iter().take(3).map(|(at, keys)| {
        let keys: Vec<String> = keys.iter().map(|key| format!("{:#06x}", key.0)).collect();
        format!("P_KeyTable of {}: {}", network.name(*at), keys.join(" "))
    });
    // Not proved: a host that is off, or a virtual port with its own keys, may be in the partition.
    vec![
        Finding::new(
            "wrong-partition",
            few(network, &found),
            format!("may not talk to any other of the {} active hosts here", keys.len()),
        )
        .why(why)
        .proof(proof.collect())
        .fix(Advice::new(
            "put the ports that shall talk into one partition, one of both as a full \
             member: in the file partitions.conf of opensm, on the host of the manager",
        )),
    ]
}

/// The names of the first few ports, and the number of the others.
fn few(network: &Network, ports: &[&(PortAt, &[PartitionKey])]) -> String {
    const SHOWN: usize = 3;
    let names = ports.iter().take(SHOWN).map(|(at, _)| network.name(*at));
    let mut words: Vec<String> = names.collect();
    if ports.len() > SHOWN {
        words.push(format!("{} more", ports.len() - SHOWN));
    }
    words.join(", ")
}
