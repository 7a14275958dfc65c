//! Threads and interrupts of an end that are not on the NUMA node of its port.

use std::collections::BTreeSet;

use super::{Load, Model};
use linerate_facts::rdma::RdmaEnd;
use linerate_facts::{Gap, HostFacts};
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::Feature;

/// The NUMA nodes of an end's threads and interrupts, compared with the node of its port.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Nodes {
    /// All CPUs are equally near to the port; the text says why.
    Alike(String),
    /// The node of the port is unknown.
    Unknown(Gap),
    /// Some CPUs are near to the port, and others are not.
    Apart(OffNode),
}

/// The threads and interrupts of an end on the wrong NUMA node.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OffNode {
    /// Number of the port's node.
    pub(crate) node: u32,
    /// CPUs that are nearest to that node.
    pub(crate) near: Vec<u32>,
    /// CPUs on which threads ran, and that are not near.
    pub(crate) threads: Vec<u32>,
    /// CPUs that receive the port's interrupts, if none of them is near.
    pub(crate) interrupts: Vec<u32>,
}

/// Finds the threads and interrupts of one end of a load that are on the wrong node.
pub(crate) fn nodes(facts: &HostFacts, load: &Load, direction: Direction, side: Side) -> Nodes {
    let topology = &facts.topology;
    if !topology.several() {
        return if facts.nodes > 1 && topology.nodes.is_empty() {
            Nodes::Unknown(gap(side, "which CPUs its nodes have was not read", ""))
        } else {
            Nodes::Alike(format!("all CPUs of {} are on one node", side.name()))
        };
    }
    if let Some(end) = load.rdma(direction, side) {
        return of_device(facts, end, load, direction, side);
    }
    let Some(port) = &facts.port else {
        return Nodes::Unknown(gap(side, "the port is unknown", ""));
    };
    let Some(node) = port.node else {
        return if facts.has_card() {
            let why = format!("nothing says that the cards of {} are on one node", port.name);
            Nodes::Unknown(gap(side, &why, "linerate host"))
        } else {
            Nodes::Alike(format!("the {} port is on no node", side.name()))
        };
    };
    let (Some(near), Some(close)) = (topology.near(node), topology.close_to(node)) else {
        let why = format!("{} is on node {node}, which the kernel does not list", port.name);
        return Nodes::Unknown(gap(side, &why, ""));
    };
    let far = |cpu: &u32| close.binary_search(cpu).is_err();
    let threads = far_threads(&close, load, direction, side);
    let interrupts =
        if port.served_by.iter().all(far) { port.served_by.clone() } else { Vec::new() };
    Nodes::Apart(OffNode { node, near, threads, interrupts })
}

/// The CPUs on which an end's threads ran and that are not in `close`, each once.
fn far_threads(close: &[u32], load: &Load, direction: Direction, side: Side) -> Vec<u32> {
    let ran = ran_on(load, direction, side);
    let mut threads: Vec<u32> = ran.filter(|cpu| close.binary_search(cpu).is_err()).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Compares the threads of an RDMA load with the node of its device. Interrupts do not matter: threads poll, or sleep
/// until an interrupt wakes them.
fn of_device(
    facts: &HostFacts,
    end: &RdmaEnd,
    load: &Load,
    direction: Direction,
    side: Side,
) -> Nodes {
    let topology = &facts.topology;
    if end.software {
        return Nodes::Alike(format!("{} {} is made by software", side.name(), end.device));
    }
    let node =
        end.node.and_then(|node| Some((node, topology.near(node)?, topology.close_to(node)?)));
    let Some((node, near, close)) = node else {
        let what = format!("the node of {} {}", side.name(), end.device);
        let why = "nothing says on which node it is".to_owned();
        let hint = "linerate host".to_owned();
        return Nodes::Unknown(Gap { what, why, hint });
    };
    Nodes::Apart(OffNode {
        node,
        threads: far_threads(&close, load, direction, side),
        near,
        interrupts: Vec::new(),
    })
}

/// The CPUs on which an end's threads ran.
fn ran_on(load: &Load, direction: Direction, side: Side) -> impl Iterator<Item = u32> {
    let threads = if side == direction.sender() { &load.senders } else { &load.receivers };
    threads.iter().filter_map(|thread| thread.cpu)
}

/// The end whose threads could move to the NUMA node of the port's interrupts, and that node: all interrupts arrive
/// there, the threads ran elsewhere, and enough CPUs of the node are free of interrupts. The receiving end is
/// preferred: its work begins in interrupts.
pub(crate) fn follows(model: &Model, direction: Direction) -> Option<(Side, u32)> {
    let load = &model.direction(direction)?.base;
    if load.has(Feature::Verbs) {
        return None;
    }
    let ends =
        [(direction.receiver(), &load.made.receiver), (direction.sender(), &load.made.sender)];
    ends.into_iter().find_map(|(side, made)| {
        let facts = &model.host(side)?.facts;
        let served = &facts.port.as_ref()?.served_by;
        let homes = facts.topology.homes();
        let node = *homes.get(served.first()?)?;
        let on_it = |cpu: &u32| homes.get(cpu) == Some(&node);
        let together = served.iter().all(on_it);
        let served: BTreeSet<&u32> = served.iter().collect();
        let free = facts.cpus.iter().filter(|cpu| on_it(cpu) && !served.contains(cpu));
        let elsewhere = !made.cpus.is_empty() && !made.cpus.iter().any(on_it);
        let room = free.count() >= load.streams as usize;
        (together && elsewhere && room).then_some((side, node))
    })
}

fn gap(side: Side, why: &str, hint: &str) -> Gap {
    Gap {
        what: format!("the node of the {} port", side.name()),
        why: why.to_owned(),
        hint: hint.to_owned(),
    }
}
