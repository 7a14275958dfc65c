//! Joins facts of network ports.

use std::collections::{BTreeMap, BTreeSet};

use linerate_facts::nic::{Counter, LinkModes, Network, Nic, PortErrors};

use super::gaps;
use super::join::{Joiner, keyed, later};

pub(super) fn network(joiner: &mut Joiner, into: &mut Network, from: Network) {
    keyed(&mut into.nics, from.nics, |nic| nic.name.clone(), |into, from| port(joiner, into, from));
    into.fragments = from.fragments.or(into.fragments);
    gaps(&mut into.gaps, from.gaps);
    number(&mut into.nics);
}

/// The first index that no kernel uses: the kernel's index is a signed number.
const UNNUMBERED: u32 = i32::MAX as u32 + 1;

fn is_numbered(nic: &Nic) -> bool {
    (1..UNNUMBERED).contains(&nic.index)
}

/// Gives a new index to each port that has none, or that of another port. Rules find ports by their index.
fn number(nics: &mut [Nic]) {
    let mut used = BTreeSet::new();
    let mut next = UNNUMBERED;
    for nic in nics {
        if !(is_numbered(nic) && used.insert(nic.index)) {
            nic.index = next;
            next = next.saturating_add(1);
        }
    }
}

/// Whether the output that a port comes from shows the state of its link: `ip` and `Get-NetAdapter` have an index,
/// and `ethtool` shows whether speed is negotiated.
fn tells_state(nic: &Nic) -> bool {
    nic.up || is_numbered(nic) || nic.link.autoneg.is_some() || !nic.down.is_empty()
}

fn port(joiner: &mut Joiner, into: &mut Nic, from: Nic) {
    joiner.about(&into.name);
    earlier(into, &from);
    state(joiner, into, &from);
    if is_numbered(&from) {
        if is_numbered(into) && into.index != from.index {
            joiner.differ("its index", &into.index.to_string(), &from.index.to_string());
        }
        into.index = from.index;
    }
    joiner.text("kind", &mut into.kind, from.kind);
    joiner.text("driver", &mut into.driver, from.driver);
    joiner.text("firmware", &mut into.firmware, from.firmware);
    device(joiner, into, from.device);
    joiner.text("slot", &mut into.pci, from.pci);
    joiner.option("USB rate", &mut into.usb, from.usb);
    joiner.option("node", &mut into.node, from.node);
    joiner.option("MTU", &mut into.mtu, from.mtu);
    joiner.option("largest MTU", &mut into.mtu_max, from.mtu_max);
    joiner.text("qdisc", &mut into.qdisc, from.qdisc);
    joiner.option("threaded polling", &mut into.threaded, from.threaded);
    into.is_virtual |= from.is_virtual;
    link(joiner, &mut into.link, from.link);
    later(&mut into.stack, from.stack);
    // Settings that one command shows together, so that the later ones replace all earlier ones.
    into.fec = from.fec.or(into.fec.take());
    into.offloads = from.offloads.or(into.offloads.take());
    into.channels = from.channels.or(into.channels);
    into.rings = from.rings.or(into.rings);
    into.coalesce = from.coalesce.or(into.coalesce);
    into.pause = from.pause.or(into.pause);
    into.rss = from.rss.or(into.rss.take());
    later(&mut into.queues, from.queues);
    later(&mut into.usb_hubs, from.usb_hubs);
    later(&mut into.shapers, from.shapers);
    into.errors = errors(into.errors, from.errors);
    counters(&mut into.counters, from.counters);
}

/// Keeps the first reading of values that a later output replaces, so that the change can be shown.
fn earlier(into: &mut Nic, from: &Nic) {
    if from.coalesce.is_some() {
        let first = into.before.coalesce.or(into.coalesce);
        into.before.coalesce = first.or(from.before.coalesce);
    }
    // Counters only grow: if one is smaller in the later reading, that reading is of another host.
    let later: BTreeMap<&str, u64> =
        from.counters.iter().map(|new| (&*new.name, new.value)).collect();
    let has_grown = |old: &Counter| later.get(&*old.name).is_none_or(|new| *new >= old.value);
    let is_later = !from.counters.is_empty() && into.counters.iter().all(has_grown);
    if into.before.counters.is_empty() && is_later {
        into.before.counters.clone_from(&into.counters);
    }
}

/// Joins whether a port has a link. If it has none, the speed of an earlier output is dropped.
fn state(joiner: &mut Joiner, into: &mut Nic, from: &Nic) {
    if !tells_state(from) {
        return;
    }
    let words = |up: bool| if up { "up" } else { "down" };
    if tells_state(into) && into.up != from.up {
        joiner.differ("its link", words(into.up), words(from.up));
    }
    into.up = from.up;
    from.down.clone_into(&mut into.down);
    if !into.up {
        (into.link.speed, into.link.duplex) = (None, None);
    }
}

/// Joins the name of the device. If it is not on PCI, it has two names: `virtio2` in `ip`, and the slot in `ethtool`.
fn device(joiner: &mut Joiner, into: &mut Nic, from: String) {
    let is_slot = |name: &str| name.contains(':');
    if !into.device.is_empty() && !from.is_empty() && is_slot(&into.device) != is_slot(&from) {
        if is_slot(&into.device) {
            into.device = from;
        }
        return;
    }
    joiner.text("device", &mut into.device, from);
}

fn link(joiner: &mut Joiner, into: &mut LinkModes, from: LinkModes) {
    let is_another = from.speed.is_some() && into.speed != from.speed;
    into.downshifted = from.downshifted || into.downshifted && !is_another;
    joiner.option("speed", &mut into.speed, from.speed);
    joiner.shown("duplex", &mut into.duplex, from.duplex, |duplex| {
        format!("{duplex:?}").to_lowercase()
    });
    joiner.shown("negotiation", &mut into.autoneg, from.autoneg, |on| {
        if *on { "on" } else { "off" }.to_owned()
    });
    joiner.option("lanes", &mut into.lanes, from.lanes);
    joiner.list("supported modes", &mut into.supported, from.supported);
    joiner.list("offered modes", &mut into.advertised, from.advertised);
    joiner.list("modes of the other end", &mut into.peer, from.peer);
}

/// Joins counts of errors. Counters grow, so the later value is kept.
fn errors(first: PortErrors, later: PortErrors) -> PortErrors {
    PortErrors {
        rx_packets: later.rx_packets.or(first.rx_packets),
        tx_bytes: later.tx_bytes.or(first.tx_bytes),
        rx_errors: later.rx_errors.or(first.rx_errors),
        tx_errors: later.tx_errors.or(first.tx_errors),
        rx_dropped: later.rx_dropped.or(first.rx_dropped),
        tx_dropped: later.tx_dropped.or(first.tx_dropped),
        rx_missed: later.rx_missed.or(first.rx_missed),
        rx_fifo: later.rx_fifo.or(first.rx_fifo),
        rx_crc: later.rx_crc.or(first.rx_crc),
        collisions: later.collisions.or(first.collisions),
        carrier_changes: later.carrier_changes.or(first.carrier_changes),
    }
}

/// Joins counters by name. Counters grow, so the later value is kept.
pub(super) fn counters(into: &mut Vec<Counter>, from: Vec<Counter>) {
    keyed(into, from, |counter| counter.name.clone(), |into, from| *into = from);
}
