//! Rules about rates of messages beside what links and slots carry.

use super::super::{Explained, facts};
use super::moved::{Moved, runs};
use super::{Remark, Stands, rate};
use crate::ceiling::Link;
use crate::ceiling::fingerprint::{self as print, At, Kind};
use crate::ceiling::{infiniband, roce};
use crate::facts::Inventory;
use crate::facts::infiniband::Layer;
use crate::path::Side;
use crate::reported::Carrier;
use crate::units::Rate;

/// Other hardware with the same ceiling that is named.
const BESIDE: usize = 2;

/// What a rate of messages is at: that of verbs, else, of a message library over an unknown transport, that of sockets.
fn at(run: &Moved<'_>) -> Vec<At> {
    let verbs = hardware(run, print::Carrier::Verbs);
    let is_known = verbs.iter().any(|at| at.link.is_some());
    if run.carrier == Carrier::Rdma || is_known {
        return verbs;
    }
    hardware(run, print::Carrier::Sockets)
}

/// The hardware that a rate is at, each once, by the way to use it that is nearest and that the output does not contradict.
fn hardware(run: &Moved<'_>, carrier: print::Carrier) -> Vec<At> {
    let mut all: Vec<At> = Vec::new();
    for at in print::at(run.each_way(), carrier) {
        if !contradicts(run, &at) && all.iter().all(|known| known.name != at.name) {
            all.push(at);
        }
    }
    all
}

/// A link, with the rate of its data: `100 Gb/s (InfiniBand EDR 4x)`.
fn words(at: &At) -> String {
    match at.link {
        Some(link @ Link::InfiniBand { .. }) => {
            let bits = link.capacity().high() * 8.0;
            format!(
                "{} ({})",
                Rate((bits / 1e8).round() as u64 * 100_000_000),
                at.name
            )
        }
        _ => at.name.clone(),
    }
}

/// Payload of the packets of a way to use a link; `None` if the way does not say it.
fn payload(at: &At) -> Option<u32> {
    // `RDMA, MTU 4096` of InfiniBand; the name of Ethernet has the MTU of Ethernet.
    let (_, named) = at.way.name.rsplit_once("MTU ")?;
    let named = named.parse().ok()?;
    if at.kind == Kind::Ethernet {
        roce::payload(named)
    } else {
        Some(named)
    }
}

/// Whether a run says that its packets go another way: another size, or another layer.
fn contradicts(run: &Moved<'_>, at: &At) -> bool {
    let layer = run.setup.layer.is_some_and(|layer| match at.kind {
        Kind::InfiniBand => layer != Layer::InfiniBand,
        Kind::Ethernet => layer != Layer::Ethernet,
        _ => false,
    });
    let other_mtu = run
        .setup
        .mtu
        .is_some_and(|mtu| payload(at).is_some_and(|own| own != mtu));
    layer || other_mtu
}

/// How many times a rate another run must be to be above it.
const ABOVE: f64 = 1.005;

/// The run with the highest rate of one way, if no other run of the input, over a network, is above it. The sum of both ways
/// counts where no run of one way is there.
fn top<'a>(explained: &Explained<'_>, all: &'a [Moved<'a>]) -> Option<&'a Moved<'a>> {
    let between = || all.iter().filter(|run| run.setup.only_host().is_none());
    let has_one = between().any(|run| !run.both);
    let counted = between().filter(|run| !(has_one && run.both));
    let top = counted.max_by(|a, b| a.each_way().total_cmp(&b.each_way()))?;
    let transfers = explained
        .material
        .transfers()
        .map(|(_, one)| one.goodput.0 as f64);
    let others = transfers.chain(between().map(Moved::each_way));
    let is_above = others
        .reduce(f64::max)
        .is_some_and(|other| other > top.each_way() * ABOVE);
    (top.is_level && !is_above).then_some(top)
}

/// A full link, where no other run shows more, and both ways together show no fault.
pub(super) fn full(explained: &Explained<'_>, id: &'static str) -> Option<Remark> {
    let all = runs(explained);
    let run = top(explained, &all)?;
    // Both ways that share something, and packets that could be larger, are no link that is as fast as it can be.
    let is_small = || small(explained).any(|port| port.gain() >= Some(GAIN) && is_full(&port, run));
    if super::runs::share(explained) || is_small() {
        return None;
    }
    let known = facts::links_of(explained.material);
    let is_known = |at: &At| at.link.is_some_and(|link| known.contains(&link));
    let found = at(run);
    let links = || found.iter().filter(|at| at.link.is_some());
    // A link that is known to be another one excludes the rest; the sum of both ways alone may be that of one.
    let first = match links().find(|at| is_known(at)) {
        Some(at) => at,
        None if known.is_empty() && !run.both => links().next()?,
        None => return None,
    };
    let each = if run.both { ", each way," } else { "" };
    let end = if is_known(first) {
        "and the path has such a link: it is as fast as it can be"
    } else {
        "if the path has one, it is as fast as it can be"
    };
    let named: Vec<String> = links()
        .filter(|at| is_known(first) == is_known(at))
        .map(words)
        .collect();
    let what = format!(
        "{}{each} is what a full link of {} carries: {end}",
        rate(run.each_way()),
        named.join(" or ")
    );
    let mut remark = Remark::new(id, Stands::Good, what).because(format!(
        "{}: {}",
        first.way.name,
        rate(first.way.rate)
    ));
    remark = beside(remark, first, &found);
    if let Some(larger) = larger(first) {
        remark = remark.because(larger);
    }
    if let Some(both) = super::runs::sum(&all) {
        remark = remark.because(both);
    }
    if !is_known(first) {
        remark = remark.next("the rate of the port", "ibstat");
    }
    remark = remark.names(&[]).shown_by(run.source, run.outcome);
    Some(match run.direction {
        Some(direction) => remark.of(direction),
        None => remark,
    })
}

/// Largest payload of a packet.
const LARGEST: u32 = 4096;

/// What larger packets of the same link would carry, if that is more; in words.
fn larger(at: &At) -> Option<String> {
    let layer = match at.kind {
        Kind::InfiniBand => Layer::InfiniBand,
        Kind::Ethernet => Layer::Ethernet,
        _ => return None,
    };
    let (now, most) = (wire(layer, payload(at)?)?, wire(layer, LARGEST)?);
    let more = at.link?.capacity().high() * 8.0 / most;
    (now / most >= GAIN).then(|| format!("packets of {LARGEST} B would carry {}", rate(more)))
}

/// Names other hardware that carries as much.
fn beside(remark: Remark, first: &At, all: &[At]) -> Remark {
    let others = all
        .iter()
        .filter(|at| at.name != first.name && at.link.is_none());
    others.take(BESIDE).fold(remark, |remark, at| {
        remark.because(format!(
            "{} carries as much ({}: {})",
            at.name,
            at.way.name,
            rate(at.way.rate)
        ))
    })
}

/// A slot or a USB port whose ceiling a level rate is at, where no link has it: no proof that it is the limit.
pub(super) fn slot(explained: &Explained<'_>, id: &'static str) -> Option<Remark> {
    let all = runs(explained);
    let run = top(explained, &all).filter(|run| !run.both)?;
    let found = at(run);
    if found.iter().any(|at| at.link.is_some()) || run.rows.len() == 1 {
        return None;
    }
    let first = found.first()?;
    let what = format!(
        "{} is at no link's ceiling and at that of {}: it may be what the card sits in",
        rate(run.each_way()),
        first.name
    );
    let remark = Remark::new(id, Stands::Doubt, what).because(format!(
        "{}: {}",
        first.way.name,
        rate(first.way.rate)
    ));
    Some(remark.next("the slot that the card trained to", "sudo lspci -vv"))
}

/// Messages within one host at the rate of a card: memory carries more.
pub(super) fn one_host(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let all = runs(explained);
    let within = all
        .iter()
        .filter_map(|run| Some((run, run.setup.only_host()?)));
    let best = within.max_by(|(a, _), (b, _)| a.each_way().total_cmp(&b.each_way()));
    let known = facts::links_of(explained.material);
    best.map(|best| within_one(&known, best, id))
        .into_iter()
        .collect()
}

fn within_one(known: &[Link], (run, host): (&Moved<'_>, &str), id: &'static str) -> Remark {
    // Shared memory may happen to move as much as some Ethernet: that one must be known to be there.
    let is_card =
        |at: &At| at.kind == Kind::InfiniBand || at.link.is_some_and(|link| known.contains(&link));
    let card = at(run).into_iter().find(|at| is_card(at) && run.is_level);
    let both = if run.carrier == Carrier::Rdma {
        "both ends are"
    } else {
        "all processes ran"
    };
    let Some(card) = card else {
        let what = format!(
            "{both} on one host, {host}: {} is no rate of the network",
            rate(run.each_way())
        );
        return Remark::new(id, Stands::Doubt, what).next(
            "the same between two hosts",
            "mpirun -np 2 --host HOST1:1,HOST2:1 ./osu_bw",
        );
    };
    let what = format!(
        "{both} on one host, {host}, and {} is what a card of {} carries: the messages cross the card, and shared memory is \
         not used",
        rate(run.each_way()),
        words(&card)
    );
    Remark::new(id, Stands::Finding, what)
        .because("within a host large messages usually move at 10 GB/s and more")
        .because("nothing of it is a rate of the network between hosts")
        .names(&["wrong-route"])
        .shown_by(run.source, run.outcome)
        .next("the transports that UCX has on this host", "ucx_info -d")
        .next(
            "the same through shared memory, with UCX",
            "mpirun -np 2 -x UCX_TLS=self,sm --host HOST:2 ./osu_bw",
        )
        .next(
            "the same through shared memory, with Open MPI alone",
            "mpirun -np 2 --mca pml ob1 --mca btl self,vader --host HOST:2 ./osu_bw",
        )
}

/// Gain of a larger MTU from which on it matters.
const GAIN: f64 = 1.02;
/// Share of the ceiling of its packets from which on a rate is limited by them.
const FULL: f64 = 0.97;

/// A port whose packets are smaller than it supports.
struct Small {
    name: String,
    now: u32,
    most: u32,
    layer: Layer,
    /// Data of the link in bits per second; `None` if unknown.
    link: Option<f64>,
}

impl Small {
    /// How many times as much a full link carries with the largest packets.
    fn gain(&self) -> Option<f64> {
        Some(wire(self.layer, self.now)? / wire(self.layer, self.most)?)
    }

    /// Payload of the full link with its packets.
    fn ceiling(&self) -> Option<f64> {
        Some(self.link? / wire(self.layer, self.now)?)
    }
}

/// Bytes on the wire for each byte of payload, in full packets.
fn wire(layer: Layer, mtu: u32) -> Option<f64> {
    let packet = match layer {
        Layer::InfiniBand => infiniband::rdma(&[mtu])?,
        Layer::Ethernet => {
            let around = roce::overhead(roce::Version::V2(crate::ceiling::ethernet::Ip::V4), 0);
            return Some(1.0 + f64::from(around) / f64::from(mtu.max(1)));
        }
    };
    Some(packet.wire_per_byte.low())
}

/// The ports of both hosts with small packets.
fn small<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = Small> + 'a {
    let ports = facts::ports_of(explained.material);
    let hosts = [&explained.material.near, &explained.material.far];
    let devices = hosts.into_iter().flat_map(|host| &host.infiniband.devices);
    devices.flat_map(move |device| {
        let of = |port: &crate::facts::infiniband::IbPort| {
            let name = format!("{} port {}", device.name, port.number);
            let link = ports.iter().find(|known| known.name.starts_with(&name));
            Some(Small {
                now: port.mtu?,
                most: port
                    .mtu_max
                    .filter(|most| port.mtu.is_some_and(|now| now < *most))?,
                layer: port.layer?,
                link: link.map(|known| known.link.capacity().high() * 8.0),
                name,
            })
        };
        device.ports.iter().filter_map(of).collect::<Vec<_>>()
    })
}

pub(super) fn mtu(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let all = runs(explained);
    let best = all
        .iter()
        .max_by(|a, b| a.each_way().total_cmp(&b.each_way()));
    small(explained)
        .filter_map(|port| smaller(&port, best, id))
        .collect()
}

/// Whether a rate is that of a full link with the packets of a port.
fn is_full(port: &Small, run: &Moved<'_>) -> bool {
    let by_fact = port
        .ceiling()
        .map(|ceiling| run.each_way() >= ceiling * FULL);
    // Where the link is unknown, the rate may be at the ceiling of one.
    let by_rate = || {
        let kind = match port.layer {
            Layer::InfiniBand => Kind::InfiniBand,
            Layer::Ethernet => Kind::Ethernet,
        };
        print::at(run.each_way(), print::Carrier::Verbs)
            .iter()
            .any(|at| at.kind == kind && payload(at) == Some(port.now))
    };
    by_fact.unwrap_or_else(by_rate)
}

fn smaller(port: &Small, best: Option<&Moved<'_>>, id: &'static str) -> Option<Remark> {
    let gain = port.gain().filter(|gain| *gain >= GAIN)?;
    let what = format!(
        "{}: packets of {} B, and the port supports {} B: a full link carries {:.0} % more with them",
        port.name,
        port.now,
        port.most,
        (gain - 1.0) * 100.0
    );
    // Beside a rate that is far from full, packets are not what limits.
    let answers = best.is_none_or(|run| is_full(port, run));
    let remark = Remark::new(
        id,
        if answers {
            Stands::Finding
        } else {
            Stands::Doubt
        },
        what,
    );
    let remark = match port.layer {
        Layer::Ethernet => remark
            .because(
                "the packets of RoCE follow the MTU of Ethernet, at every switch and at both ends",
            )
            .next(
                "a larger MTU, at both ends and at the switches between",
                "sudo ip link set PORT mtu 9000",
            ),
        Layer::InfiniBand => remark.next(
            "the MTU is given by the subnet manager: `mtu=5` in its partitions.conf is 4096",
            "",
        ),
    };
    Some(if answers {
        remark.names(&["rdma-mtu"])
    } else {
        remark
    })
}

/// The node of the cards of a host, if all of them that say one have the same.
fn card_node(host: &Inventory) -> Option<u32> {
    let rdma = host
        .infiniband
        .devices
        .iter()
        .filter_map(|device| device.node);
    let network = host
        .pci
        .iter()
        .filter(|device| device.class >> 16 == NETWORK || device.class >> 8 == INFINIBAND);
    let mut nodes = rdma.chain(network.filter_map(|device| device.node));
    let first = nodes.next()?;
    nodes.all(|node| node == first).then_some(first)
}

/// Classes of PCI: networks, and InfiniBand.
const NETWORK: u32 = 0x02;
const INFINIBAND: u32 = 0x0c06;

/// The node that a command binds its program to.
fn bound(run: &Moved<'_>, host: &Inventory) -> Option<u32> {
    let of_cpu = |cpu: u32| {
        let mut nodes = host.processors.nodes.iter();
        let is_of = |node: &&crate::facts::cpu::Node| {
            node.cpus.as_ref().is_some_and(|cpus| cpus.contains(&cpu))
        };
        nodes.find(is_of).map(|node| node.id)
    };
    run.setup.node.or_else(|| run.setup.cpu.and_then(of_cpu))
}

/// A program on another node than the card.
pub(super) fn node(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let host = &explained.material.near;
    let all = runs(explained);
    let best = all
        .iter()
        .max_by(|a, b| a.each_way().total_cmp(&b.each_way()));
    let remark = best.and_then(|run| {
        let (own, card) = (bound(run, host)?, card_node(host)?);
        let is_full = full(explained, id).is_some();
        (own != card && !is_full).then(|| {
            let what = format!(
                "{}: its command binds the program to node {own}, and the card sits at node {card}: each message crosses the \
                 link between both",
                rate(run.each_way())
            );
            Remark::new(id, Stands::Finding, what)
                .names(&["numa-remote"])
                .at(Side::Near)
                .shown_by(run.source, run.outcome)
                .next("the same on the node of the card", &format!("numactl --cpunodebind={card} --membind={card} ib_write_bw HOST"))
        })
    });
    remark.into_iter().collect()
}
