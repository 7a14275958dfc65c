//! Rules about InfiniBand and network ports, by the facts of the hosts: down, emulated in software, or not fully used.

use super::super::super::{Explained, facts, side_name};
use super::super::moved::runs;
use super::super::{Remark, rate};
use linerate_facts::Inventory;
use linerate_facts::finding::Finding;
use linerate_facts::finding::Stands;
use linerate_facts::infiniband::{IbDevice, IbPort, Layer};
use linerate_facts::nic::Nic;
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::{Carrier, Counted, Transfer};

/// Ids of oddities of ports that carry nothing because something has to be done first.
pub(in crate::rule) const WAITING: [&str; 2] = ["unserved-port", "ib-held-down"];
/// Id of the oddity of a port without a cable. It matters only if no other port works.
const UNPLUGGED: &str = "ib-no-link";

fn has_active(host: &Inventory) -> bool {
    let mut ports = host.infiniband.devices.iter().flat_map(|device| &device.ports);
    ports.any(IbPort::is_active)
}

/// Whether an oddity is about an InfiniBand port that carries nothing, and should.
fn is_down(host: &Inventory, odd: &Finding) -> bool {
    let is_ethernet = host.infiniband.devices.iter().any(|device| {
        let of = |port: &IbPort| format!("{} port {}", device.called(), port.number) == odd.subject;
        device.ports.iter().any(|port| port.layer == Some(Layer::Ethernet) && of(port))
    });
    let is_own = WAITING.contains(&odd.id) || odd.id == UNPLUGGED && !has_active(host);
    is_own && !is_ethernet
}

/// Remarks on InfiniBand ports that carry nothing.
pub(in crate::rule) fn down(explained: &Explained<'_>) -> Vec<Remark> {
    let has_results = explained.material.has_results();
    let of = |(side, host): (Side, &Inventory)| {
        let at = Side::ALL.into_iter().position(|known| known == side).unwrap_or(0);
        let odd = explained.oddities[at].iter().find(|odd| is_down(host, odd))?;
        // The results did use some port: if one is active, the others do not matter.
        if has_results && has_active(host) {
            return None;
        }
        let remark = Remark::of_oddity(side, odd);
        Some(if has_results {
            Remark { finding: remark.finding.stands(Stands::Doubt), ..remark }.because(
                "if that is still so, no port of InfiniBand is active on this host, and the results \
                 were moved by another network",
            )
        } else {
            remark.names(&[odd.id]).at(side)
        })
    };
    explained.material.hosts().into_iter().filter_map(of).collect()
}

/// Share of its link's rate below which a transfer leaves much of the link unused.
const LEAVES: f64 = 0.9;
/// Largest ratio of a rate to the capacity of its port: programs round.
const ROUNDED: f64 = 1.02;

/// Kinds of transfers whose rates are compared with links: by verbs and message libraries, and through sockets.
const KINDS: [&[Carrier]; 2] = [
    &[Carrier::Rdma, Carrier::Messages],
    &[Carrier::Tcp, Carrier::Udp, Carrier::Sctp, Carrier::Sockets],
];

/// Remarks that compare the fastest transfer of each kind and direction with the slowest port that could have carried
/// it.
pub(in crate::rule) fn unused(explained: &Explained<'_>) -> Vec<Remark> {
    let ports = facts::ports_of(explained.material);
    let of = |kind: &&[Carrier], direction: Direction| {
        let (carrier, best) = best(explained, kind, direction)?;
        let may = |port: &&facts::Port| {
            let is_one = carrier != Carrier::Rdma || port.is_rdma;
            is_one && capacity(port) * ROUNDED >= best
        };
        let port = ports.iter().filter(may).min_by(|a, b| capacity(a).total_cmp(&capacity(b)))?;
        (best < capacity(port) * LEAVES).then(|| leaves(best, carrier, port, direction))
    };
    let each = KINDS.iter().flat_map(|kind| Direction::ALL.map(move |direction| (kind, direction)));
    each.filter_map(|(kind, direction)| of(kind, direction)).collect()
}

pub(in crate::rule) fn capacity(port: &facts::Port) -> f64 {
    port.link.capacity().high() * 8.0
}

fn best(
    explained: &Explained<'_>,
    kind: &[Carrier],
    direction: Direction,
) -> Option<(Carrier, f64)> {
    let counts = |one: &Transfer| {
        let is_sent = one.carrier == Carrier::Udp && one.counted == Counted::Sender;
        kind.contains(&one.carrier)
            && !one.both
            && one.requested.is_none()
            && !is_sent
            && one.setup.only_host().is_none()
    };
    let transfers =
        explained.material.transfers().filter(|(_, one)| one.direction == direction && counts(one));
    let transfers = transfers.map(|(_, one)| (one.carrier, one.goodput.0 as f64));
    // A table has no direction: it counts as that of the client's messages.
    let tables = runs(explained).into_iter().filter(|run| {
        let is_own = kind.contains(&run.carrier)
            && run.direction.is_none()
            && direction == Direction::Forward;
        is_own && run.setup.only_host().is_none()
    });
    let tables = tables.map(|run| (run.carrier, run.each_way()));
    transfers.chain(tables).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn leaves(best: f64, carrier: Carrier, port: &facts::Port, direction: Direction) -> Remark {
    let what = format!(
        "{} of {} Gb/s, {:.0} %: the link of {} ({}) is not the limit",
        rate(best),
        (capacity(port) / 1e8).round() / 10.0,
        best / capacity(port) * 100.0,
        port.name,
        port.link
    );
    let remark =
        Remark::new(Stands::Found, what).names(&[]).of(direction).rules_out(&["wire-full"]);
    if matches!(carrier, Carrier::Rdma | Carrier::Messages) {
        return remark
            .because(
                "left are the slot of the card, the size of messages, and the operations in flight",
            )
            .next("the slot that the card trained to", "sudo lspci -vv");
    }
    let remark = if port.link.is_infiniband() {
        remark.because("sockets over InfiniBand cost the processors more than verbs do")
    } else {
        remark
    };
    remark
        .because("left are the processors of both ends, the windows, the slots, and what lies between the ports")
        .next("see which it is, with `linerate serve` on the other host", "linerate run HOST")
}

/// The highest rate of all kinds and directions, in bits per second.
pub(in crate::rule) fn best_of_all(explained: &Explained<'_>) -> Option<f64> {
    let each = KINDS
        .iter()
        .flat_map(|kind| Direction::ALL.map(|direction| best(explained, kind, direction)));
    each.flatten().map(|(_, rate)| rate).reduce(f64::max)
}

/// Ids of oddities of a link that is slower than it could be.
const NARROW: [&str; 4] = ["ib-slow-link", "port-speed", "port-offer", "port-fixed"];

/// Whether results fill the port of an oddity that reports a slow link.
pub(in crate::rule) fn is_filled(explained: &Explained<'_>, side: Side, odd: &Finding) -> bool {
    NARROW.contains(&odd.id) && fills(explained, side, &odd.subject).is_some()
}

/// The highest rate in bits per second, if it fills the port of `side` whose name begins with `name`.
fn fills(explained: &Explained<'_>, side: Side, name: &str) -> Option<f64> {
    let ports = facts::ports_of(explained.material);
    let mut own = ports.iter().filter(|port| port.side == side && port.name.starts_with(name));
    let port = own.next()?;
    let filled = capacity(port) * LEAVES..=capacity(port) * ROUNDED;
    best_of_all(explained).filter(|best| filled.contains(best))
}

/// Whether the highest rate fills a port that the facts list.
pub(in crate::rule) fn is_any_full(explained: &Explained<'_>) -> bool {
    let ports = facts::ports_of(explained.material);
    best_of_all(explained).is_some_and(|best| {
        let is_full = |port: &facts::Port| {
            (capacity(port) * LEAVES..=capacity(port) * ROUNDED).contains(&best)
        };
        ports.iter().any(is_full)
    })
}

/// Remarks on full ports that run below one of their own speeds, where the offer of the other end is unknown. If it is
/// known, an oddity reports the port.
pub(in crate::rule) fn below_modes(explained: &Explained<'_>) -> Vec<Remark> {
    let of = |side: Side, nic: &Nic| {
        let (speed, own) = (nic.link.speed?, nic.link.fastest_own()?);
        let is_reported = explained
            .oddities
            .iter()
            .flatten()
            .any(|odd| NARROW.contains(&odd.id) && odd.subject == nic.name);
        let best = fills(explained, side, &nic.name).filter(|_| own > speed && !is_reported)?;
        let what = format!(
            "{} of the {}: {} fill it at {speed}, and it can run at {own}",
            nic.name,
            side_name(side),
            rate(best),
        );
        let remark = Remark::new(Stands::Found, what).names(&["wire-full"]).at(side);
        let remark = remark.because("the other end offers no more, or the cable carries no more");
        Some(remark.next("what the other end offers, and another cable", "ethtool PORT"))
    };
    let nics = explained.material.nics();
    nics.filter_map(|(side, nic)| of(side, nic)).collect()
}

/// Remark on verbs over a device that is emulated in software.
pub(in crate::rule) fn software(explained: &Explained<'_>) -> Option<Remark> {
    runs(explained).iter().find(|run| run.carrier == Carrier::Rdma)?;
    let mut devices = explained.material.rdma_devices();
    let (_, IbDevice { name, .. }) = devices.find(|(_, device)| device.software)?;
    let what = format!(
        "{name} is made by software on top of a network port: the processors of both ends do the work of a card, and what a \
         card carries is not shown"
    );
    Some(
        Remark::new(Stands::Found, what)
            .names(&["sender-core", "receiver-core"])
            .next("the same path through sockets, which cost less there", "linerate run HOST"),
    )
}
