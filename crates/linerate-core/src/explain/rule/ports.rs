//! Rules about ports by the facts of the hosts: down, with errors, used in part, or held by their slots.

use super::super::{Explained, facts, side_name};
use super::ceiling::slower;
use super::{Remark, Stands, rate};
use crate::ceiling::pcie::{Slot, USUAL_PAYLOADS, generation};
use crate::facts::Inventory;
use crate::facts::infiniband::{IbDevice, IbPort};
use crate::facts::nic::Counter;
use crate::facts::odd::Oddity;
use crate::facts::pci::{Device, Link};
use crate::path::{Direction, Side};
use crate::reported::{Carrier, Counted, Transfer};
use crate::units::Rate;

/// Oddities of ports that carry nothing, and wait for somebody.
const WAITING: [&str; 2] = ["ib-not-set-up", "ib-held-down"];
/// The oddity of a port without a cable. It is one only where no other port works.
const UNPLUGGED: &str = "ib-no-link";

fn hosts<'a>(explained: &'a Explained<'_>) -> [(Side, &'a Inventory); 2] {
    [
        (Side::Near, &explained.material.near),
        (Side::Far, &explained.material.far),
    ]
}

fn has_active(host: &Inventory) -> bool {
    let mut ports = host
        .infiniband
        .devices
        .iter()
        .flat_map(|device| &device.ports);
    ports.any(IbPort::is_active)
}

/// A port of InfiniBand that carries nothing.
pub(super) fn down(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let has_results = explained
        .material
        .sources
        .iter()
        .any(|source| !source.results.is_empty());
    let of = |(side, host): (Side, &Inventory)| {
        let at = Side::ALL
            .into_iter()
            .position(|known| known == side)
            .unwrap_or(0);
        let odd = explained.oddities[at]
            .iter()
            .find(|odd| WAITING.contains(&odd.id) || odd.id == UNPLUGGED && !has_active(host))?;
        // Results were moved by something: beside an active port the others do not matter.
        if has_results && has_active(host) {
            return None;
        }
        let remark = slower(side, odd, id);
        Some(if has_results {
            Remark {
                stands: Stands::Doubt,
                ..remark.because("if that is still so, no port of InfiniBand is active on this host, and the results were moved by another network")
            }
        } else {
            remark.names(&["ib-port-down"]).at(side)
        })
    };
    hosts(explained).into_iter().filter_map(of).collect()
}

/// Share of packets with an error from which on a path is slower for it.
const MATTERS: f64 = 1e-4;
/// Share of bits with an error from which on a cable or a port is out of its specification.
//= InfiniBand Architecture Specification 1.4, volume 2, chapter 6: at most one error in 10^12 bits
const BIT_ERRORS: f64 = 1e-12;

/// Errors, and what they are a share of.
const SHARES: [(&str, &str); 3] = [
    ("port_rcv_errors", "port_rcv_packets"),
    ("symbol_error", "port_rcv_packets"),
    ("port_xmit_discards", "port_xmit_packets"),
];

fn value(counters: &[Counter], name: &str) -> Option<u64> {
    let found = counters.iter().find(|counter| counter.name == name);
    found.map(|counter| counter.value)
}

/// What a counter has grown by between two readings; `None` if there is one reading.
fn grown(port: &IbPort, name: &str) -> Option<u64> {
    value(&port.counters, name)?.checked_sub(value(&port.before, name)?)
}

/// Errors of ports as shares of their packets.
pub(super) fn errors(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let of = |(side, host): (Side, &Inventory)| {
        let devices = host.infiniband.devices.iter();
        let ports = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
        let remarks =
            ports.filter_map(move |port| damaged(port, id).map(|remark| remark.at_if(side)));
        remarks.collect::<Vec<_>>()
    };
    hosts(explained).into_iter().flat_map(of).collect()
}

fn damaged((device, port): (&IbDevice, &IbPort), id: &'static str) -> Option<Remark> {
    let name = format!("{} port {}", device.called(), port.number);
    let two = SHARES
        .iter()
        .filter_map(|(errors, of)| Some((*errors, grown(port, errors)?, grown(port, of)?)));
    let mut two = two.collect::<Vec<_>>();
    two.retain(|(_, errors, _)| *errors > 0);
    let share = |errors: u64, of: u64| errors as f64 / (of as f64).max(1.0);
    if let Some((counter, errors, of)) = two
        .iter()
        .max_by(|a, b| share(a.1, a.2).total_cmp(&share(b.1, b.2)))
    {
        let what = format!(
            "{name}: {counter} grew by {errors} between two readings, beside {of} packets ({:.2} %)",
            share(*errors, *of) * 100.0
        );
        let remark = Remark::new(id, Stands::Finding, what)
            .because("a cable, a transceiver or a port is bad, or the other end discards");
        return Some(if share(*errors, *of) >= MATTERS {
            remark.names(&["path-loss"])
        } else {
            remark
        });
    }
    once(port, &name, id)
}

/// Errors without packets beside them in two readings: they may be old.
fn once(port: &IbPort, name: &str, id: &'static str) -> Option<Remark> {
    let read = |counter: &str| value(&port.counters, counter).filter(|count| *count > 0);
    let all = SHARES
        .iter()
        .filter_map(|(errors, of)| Some((*errors, read(errors)?, *of)));
    let (counter, errors, of) = all.max_by_key(|(_, errors, _)| *errors)?;
    let share = read(of).map(|packets| errors as f64 / packets as f64);
    let words = share.map_or(String::new(), |share| format!(", {share:.1e} of {of}"));
    let bits = value(&port.counters, "port_rcv_data").map(|data| data as f64 * 32.0);
    let is_bad =
        counter == "symbol_error" && bits.is_some_and(|bits| errors as f64 > bits * BIT_ERRORS);
    let grown = grown(port, counter);
    let about = match grown {
        None => "one reading does not show whether they still grow".to_owned(),
        Some(0) => "they did not grow between the two readings: they are old".to_owned(),
        Some(more) => format!("they grew by {more} between the two readings"),
    };
    let stands = if grown.is_some_and(|more| more > 0) {
        Stands::Finding
    } else {
        Stands::Doubt
    };
    let mut remark = Remark::new(
        id,
        stands,
        format!("{name}: {counter} {errors}{words}: {about}"),
    );
    if is_bad {
        remark = remark.because("that is more than one error in 10^12 bits, which the standard allows, if all of them are of this time");
    }
    Some(match grown {
        None => remark.next(
            "the same twice, a minute apart, while the path is in use",
            "sudo perfquery",
        ),
        Some(_) => remark,
    })
}

/// Share of its link below which a transfer leaves much of it unused.
const LEAVES: f64 = 0.9;
/// Share by which a rate may be above the capacity of its port: programs round.
const ROUNDED: f64 = 1.02;

/// The rates that are held against links: verbs and messages, and sockets.
const KINDS: [&[Carrier]; 2] = [
    &[Carrier::Rdma, Carrier::Messages],
    &[Carrier::Tcp, Carrier::Udp, Carrier::Sctp, Carrier::Sockets],
];

/// The best transfer of each kind and direction, beside the slowest port that could have carried it.
pub(super) fn unused(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let ports = facts::ports_of(explained.material);
    let of = |kind: &&[Carrier], direction: Direction| {
        let (carrier, best) = best(explained, kind, direction)?;
        let may = |port: &&facts::Port| {
            let is_one = carrier != Carrier::Rdma || port.is_rdma;
            is_one && capacity(port) * ROUNDED >= best
        };
        let port = ports
            .iter()
            .filter(may)
            .min_by(|a, b| capacity(a).total_cmp(&capacity(b)))?;
        (best < capacity(port) * LEAVES).then(|| leaves(best, carrier, port, direction, id))
    };
    let each = KINDS
        .iter()
        .flat_map(|kind| Direction::ALL.map(move |direction| (kind, direction)));
    each.filter_map(|(kind, direction)| of(kind, direction))
        .collect()
}

fn capacity(port: &facts::Port) -> f64 {
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
            && one.asked.is_none()
            && !is_sent
            && one.setup.only_host().is_none()
    };
    let transfers = explained
        .material
        .transfers()
        .filter(|(_, one)| one.direction == direction && counts(one));
    let transfers = transfers.map(|(_, one)| (one.carrier, one.goodput.0 as f64));
    // A table has no direction: it is that of the client's messages.
    let tables = super::moved::runs(explained).into_iter().filter(|run| {
        let is_own = kind.contains(&run.carrier)
            && run.direction.is_none()
            && direction == Direction::Forward;
        is_own && run.setup.only_host().is_none()
    });
    let tables = tables.map(|run| (run.carrier, run.each_way()));
    transfers.chain(tables).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn leaves(
    best: f64,
    carrier: Carrier,
    port: &facts::Port,
    direction: Direction,
    id: &'static str,
) -> Remark {
    let what = format!(
        "{} of {} Gb/s, {:.0} %: the link of {} ({}) is not the limit",
        rate(best),
        (capacity(port) / 1e8).round() / 10.0,
        best / capacity(port) * 100.0,
        port.name,
        port.link
    );
    let remark = Remark::new(id, Stands::Finding, what)
        .names(&[])
        .of(direction)
        .rules_out(&["wire-full"]);
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

/// Oddities of a link of InfiniBand that is slower than it could be.
const NARROW: [&str; 2] = ["ib-narrow", "ib-slower"];

/// Whether results fill the port of an oddity, which is slower than it could be.
pub(super) fn is_filled(explained: &Explained<'_>, side: Side, odd: &Oddity) -> bool {
    let ports = facts::ports_of(explained.material);
    let mut own = ports
        .iter()
        .filter(|port| port.side == side && port.name.starts_with(&odd.subject));
    let Some(port) = own.next().filter(|_| NARROW.contains(&odd.id)) else {
        return false;
    };
    let each = KINDS
        .iter()
        .flat_map(|kind| Direction::ALL.map(|direction| best(explained, kind, direction)));
    let best = each.flatten().map(|(_, rate)| rate).reduce(f64::max);
    best.is_some_and(|best| (capacity(port) * LEAVES..=capacity(port) * ROUNDED).contains(&best))
}

/// Range of a rate that a slot holds, as shares of the bounds of its payload.
const HELD: [f64; 2] = [0.97, 1.01];
/// How many times as much as its slot a port must carry to be held by it.
const FASTER: f64 = 1.05;

/// A rate at what the slot of a card carries, where its port carries more.
pub(super) fn slot(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let rates = KINDS
        .iter()
        .flat_map(|kind| Direction::ALL.map(|direction| best(explained, kind, direction)));
    let Some(best) = rates.flatten().map(|(_, rate)| rate).reduce(f64::max) else {
        return limited(explained, id);
    };
    let ports = facts::ports_of(explained.material);
    let of = |(side, host): (Side, &Inventory)| {
        let fastest = ports
            .iter()
            .filter(|port| port.side == side)
            .map(capacity)
            .reduce(f64::max);
        let devices = host
            .pci
            .iter()
            .filter_map(|device| Some((device, slow_link(device)?)));
        let held = devices.filter_map(|(device, link)| {
            let leaves = slot_of(link)?.leaves();
            let holds = best >= leaves.low() * HELD[0] && best <= leaves.high() * HELD[1];
            let is_faster = fastest.is_none_or(|port| port > leaves.high() * FASTER);
            (holds && is_faster).then(|| held(best, side, device, link, id))
        });
        held.take(1).collect::<Vec<_>>()
    };
    hosts(explained).into_iter().flat_map(of).collect()
}

/// Cards of which the kernel says that a link limits them, where nothing was measured.
fn limited(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let has_results = explained
        .material
        .sources
        .iter()
        .any(|source| !source.results.is_empty());
    let of = |(side, host): (Side, &Inventory)| {
        let device = host.pci.iter().find(|device| device.limited.is_some())?;
        let now = device.limited?.now;
        let (most, best) = (slot_of(now)?.leaves().high(), device.max?);
        let what = format!(
            "the card at {} can be no faster than {}: a link above it runs at {now}, and the card could use {best}",
            device.address,
            rate(most)
        );
        let remark = Remark::new(id, Stands::Finding, what)
            .names(&["pcie-slot"])
            .at(side);
        Some(remark.next(
            "the link of the card and of each port above it",
            "sudo lspci -vv",
        ))
    };
    let all = hosts(explained).into_iter().filter(|_| !has_results);
    all.filter_map(of).collect()
}

/// The link of a card that runs below the card's best.
fn slow_link(device: &Device) -> Option<Link> {
    let is_network =
        device.class == 0 || matches!(device.class >> 16, 0x02) || device.class >> 8 == 0x0c06;
    let now = device.limited.map(|limit| limit.now).or(device.now)?;
    let is_slow = device.max?.rate()? > now.rate()?;
    (is_network && is_slow && !device.is_virtual).then_some(now)
}

fn slot_of(link: Link) -> Option<Slot> {
    Some(Slot {
        generations: vec![generation(link.speed?)?],
        lanes: vec![link.width?.into()],
        payloads: USUAL_PAYLOADS.to_vec(),
        requests: vec![512],
    })
}

fn held(best: f64, side: Side, device: &Device, link: Link, id: &'static str) -> Remark {
    let bits = link.rate().unwrap_or(Rate(0));
    let what = format!(
        "{} is what the slot of the card at {} carries: its link runs at {link} ({bits}), and the card could use {}",
        rate(best),
        device.address,
        device.max.map_or_else(String::new, |max| max.to_string())
    );
    Remark::new(id, Stands::Finding, what)
        .because(format!("at the {}", side_name(side)))
        .names(&["pcie-slot"])
        .at(side)
        .next(
            "the link of the card and of the port above it",
            "sudo lspci -vv",
        )
}
