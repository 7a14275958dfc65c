//! A rule about the NUMA node that a command binds a program to.

use super::super::super::Explained;
use super::super::moved::{Moved, runs};
use super::super::{Remark, rate};
use super::full;
use linerate_facts::Inventory;
use linerate_facts::finding::Stands;
use linerate_plan::path::Side;
use linerate_record::reported::{Measured, Outcome, Setup, Sizes, Source, Transfer};
use linerate_units::Bytes;

/// The NUMA node of a host's network cards; `None` if they have different nodes, or none is known.
fn card_node(host: &Inventory) -> Option<u32> {
    let rdma = host.infiniband.devices.iter().filter_map(|device| device.node);
    let network = host
        .pci
        .iter()
        .filter(|device| device.class >> 16 == NETWORK || device.class >> 8 == INFINIBAND);
    let mut nodes = rdma.chain(network.filter_map(|device| device.node));
    let first = nodes.next()?;
    nodes.all(|node| node == first).then_some(first)
}

/// PCI class codes of network cards, and of InfiniBand cards.
const NETWORK: u32 = 0x02;
const INFINIBAND: u32 = 0x0c06;

/// The NUMA node that a command binds its program to, by node or by CPU; `None` if it does not.
fn bound(setup: &Setup, host: &Inventory) -> Option<u32> {
    let of_cpu = |cpu: u32| {
        let mut nodes = host.processors.nodes.iter();
        let is_of = |node: &&linerate_facts::cpu::Node| {
            node.cpus.as_ref().is_some_and(|cpus| cpus.contains(&cpu))
        };
        nodes.find(is_of).map(|node| node.id)
    };
    setup.node.or_else(|| setup.cpu.and_then(of_cpu))
}

/// Least ratio of the rates from two nodes at which the node explains the difference.
const NODE_GAINS: f64 = 1.3;
/// Size in bytes from which messages are limited by their bytes and not by their number.
const LARGE_MESSAGE: Bytes = Bytes(65_536);

/// Remark on a program that runs on another node than the card, or is faster from another node.
pub(in crate::rule) fn node(explained: &Explained<'_>) -> Vec<Remark> {
    let all = runs(explained);
    let compared = compared(&all, &explained.material.near);
    compared.or_else(|| placed(explained)).or_else(|| alone(explained, &all)).into_iter().collect()
}

/// Finds two runs that differ only in the node, or in the CPU, of the program.
fn compared(all: &[Moved<'_>], host: &Inventory) -> Option<Remark> {
    let bound: Vec<_> =
        all.iter().map(|run| (run, run.setup.cpu, bound(run.setup, host))).collect();
    let pairs = bound.iter().flat_map(|slow| bound.iter().map(move |fast| (slow, fast)));
    let mut found = pairs.filter_map(|((slow, cpu, node), (fast, other_cpu, other_node))| {
        let same =
            slow.both == fast.both && slow.setup.queues == fast.setup.queues && slow.is_like(fast);
        let (_, less, more) = slow.beside(fast).filter(|_| same)?;
        let is_known = node.is_some() && other_node.is_some();
        let differ = if is_known {
            node != other_node
        } else {
            cpu.zip(*other_cpu).is_some_and(|(a, b)| a != b)
        };
        let place = |node: &Option<u32>, cpu: &Option<u32>| match (node.filter(|_| is_known), cpu) {
            (Some(node), _) => format!("node {node}"),
            (None, Some(cpu)) => format!("CPU {cpu}"),
            (None, None) => "another CPU".to_owned(),
        };
        (differ && more > less * NODE_GAINS).then(|| {
            let places = (place(node, cpu), place(other_node, other_cpu));
            let what = format!(
                "{} from {} and {} from {}: where the program runs makes the difference",
                rate(less),
                places.0,
                rate(more),
                places.1
            );
            let causes: &[&'static str] =
                if is_known { &["numa-remote"] } else { &["numa-remote", "sender-core"] };
            Remark::new(Stands::Found, what)
                .names(causes)
                .at(Side::Near)
                .shown_by(slow.source, slow.outcome)
                .next(
                    "the node of the card, and the CPUs of the nodes",
                    "cat /sys/class/infiniband/*/device/numa_node; lscpu | grep NUMA",
                )
        })
    });
    found.next()
}

/// A time of messages, or a rate of sockets, measured by a program on a known node.
struct Placed<'a> {
    source: &'a Source,
    outcome: &'a Outcome,
    node: u32,
    /// What was measured, and with which command: only equal values are compared.
    what: String,
    /// Speed in any unit, to compare only: higher is better.
    speed: f64,
    words: String,
}

impl<'a> Placed<'a> {
    fn of(source: &'a Source, outcome: &'a Outcome, host: &Inventory) -> Option<Self> {
        let (setup, what, speed, words) = match &outcome.measured {
            Measured::Sizes(table) => {
                let (row, time) = table.rows.iter().find_map(|row| Some((row, row.time()?)))?;
                let Sizes { carrier, operation, trip, .. } = table;
                let what = format!("{carrier:?} {operation} {trip:?} {}", row.size);
                (&table.setup, what, 1.0 / time.0.max(1) as f64, time.to_string())
            }
            Measured::Transfer(one) => {
                let Transfer { carrier, direction, streams, both, buffer, size, .. } = &**one;
                let counts = one.requested.is_none() && one.error.is_none();
                let bits = counts.then_some(one.goodput.0 as f64)?;
                let what =
                    format!("{carrier:?} {direction:?} {streams:?} {both} {buffer:?} {size:?}");
                (&one.setup, what, bits, rate(bits))
            }
            Measured::Disk(_) | Measured::Counters(_) | Measured::Cpus(_) | Measured::Hops(_) => {
                return None;
            }
        };
        Some(Self {
            source,
            outcome,
            node: bound(setup, host)?,
            // The command is included because another target is another path.
            what: format!("{} {what} {}", source.tool.name, setup.command),
            speed,
            words,
        })
    }
}

/// Finds two runs of one test, of which one is slower from another node.
fn placed(explained: &Explained<'_>) -> Option<Remark> {
    let host = &explained.material.near;
    let all = explained.material.runs().take(MOST);
    let all: Vec<Placed<'_>> =
        all.filter_map(|(source, outcome)| Placed::of(source, outcome, host)).collect();
    let is_slower = |slow: &Placed<'_>, fast: &Placed<'_>| {
        slow.what == fast.what && slow.node != fast.node && fast.speed > slow.speed * NODE_GAINS
    };
    // If runs on one node differ as much, the node does not explain the difference.
    let differs = |one: &Placed<'_>| {
        all.iter().any(|other| {
            other.what == one.what && other.node == one.node && other.speed > one.speed * NODE_GAINS
        })
    };
    let pairs = all.iter().flat_map(|slow| all.iter().map(move |fast| (slow, fast)));
    let (slow, fast) = pairs
        .filter(|(slow, fast)| is_slower(slow, fast))
        .find(|(slow, fast)| !differs(slow) && !differs(fast))?;
    let what = format!(
        "{} from node {} and {} from node {}: where the program runs makes the difference",
        slow.words, slow.node, fast.words, fast.node
    );
    let remark = Remark::new(Stands::Found, what)
        .names(&["numa-remote"])
        .at(Side::Near)
        .shown_by(slow.source, slow.outcome);
    Some(remark.next("the node of each card, and the CPUs of the nodes", NODES))
}

/// The command that shows the nodes of network cards, and the CPUs of each node.
const NODES: &str = "grep . /sys/class/net/*/device/numa_node; lscpu | grep NUMA";
/// Most results that are compared: each is compared with each other one.
const MOST: usize = 64;

/// Remark on the fastest run, if its program is bound to another node than that of the card.
fn alone(explained: &Explained<'_>, all: &[Moved<'_>]) -> Option<Remark> {
    let host = &explained.material.near;
    let run = all.iter().max_by(|a, b| a.each_way().total_cmp(&b.each_way()))?;
    let (own, card) = (bound(run.setup, host)?, card_node(host)?);
    if own == card || full(explained).is_some() {
        return None;
    }
    let what = format!(
        "{}: its command binds the program to node {own}, and the card sits at node {card}: each message crosses the link \
         between both",
        rate(run.each_way())
    );
    // For small messages, their number may be the limit instead.
    let is_large = run.rows.keys().next_back().is_some_and(|size| *size >= LARGE_MESSAGE);
    let causes: &[&'static str] =
        if is_large { &["numa-remote"] } else { &["numa-remote", "rdma-one-qp", "rdma-depth"] };
    Some(
        Remark::new(Stands::Found, what)
            .names(causes)
            .at(Side::Near)
            .shown_by(run.source, run.outcome)
            .next(
                "the same on the node of the card",
                &format!("numactl --cpunodebind={card} --membind={card} ib_write_bw HOST"),
            ),
    )
}
