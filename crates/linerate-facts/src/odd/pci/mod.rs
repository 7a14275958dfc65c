//! Rules about PCI Express links that carry less than the card could use.

use std::collections::BTreeSet;

use self::room::Room;
use super::{Finding, few};
use crate::Inventory;
use crate::advice::Advice;
use crate::carrier::{Carrier, behind};
use crate::crossing::Crossing;
use crate::pci::{self, Device, Link};

mod limited;
mod room;

pub(super) use self::room::Links;

/// PCI base class of graphics cards.
const DISPLAY: u32 = 0x03;

/// The links of cards with relevant traffic, and of switches above such cards. The functions of a card share its link,
/// so only the first one counts. Tunnels are left out, since they have no figures, and so are links that run faster
/// than their slot could, which a hypervisor emulates.
fn links(all: &[Device]) -> impl Iterator<Item = Crossing<'_>> {
    let mut known = BTreeSet::new();
    all.iter()
        .filter(|d| !d.is_virtual && (d.carries_data() || d.buses.is_some()))
        .filter_map(|d| Crossing::above(all, d))
        .filter(|link| !link.is_tunnel && !contradicts_itself(link))
        .filter(move |link| known.insert(link.slot.address))
}

fn contradicts_itself(link: &Crossing<'_>) -> bool {
    let (now, slot) = (link.now, link.slot.max.unwrap_or_default());
    let speeds = now.speed.zip(slot.speed);
    let widths = now.width.zip(slot.width);
    speeds.is_some_and(|(now, most)| now > most) || widths.is_some_and(|(now, most)| now > most)
}

/// The card at the end of a link in words, with the names of all its functions.
fn card(all: &[Device], device: &Device) -> String {
    let others = all.iter().filter(|d| d.parent == device.parent && !d.is_virtual);
    let mut words = vec![subject(device)];
    let others = others.filter(|d| d.address != device.address);
    words.extend(others.flat_map(|d| d.names.iter().cloned()));
    words.join(" ")
}

fn subject(device: &Device) -> String {
    let mut words = vec![device.address.to_string(), device.function().to_owned()];
    words.extend(device.names.iter().cloned());
    words.join(" ")
}

/// A link in words: `8 GT/s x8 (63 Gb/s)`.
fn words(link: Link) -> String {
    link.rate().map_or(link.to_string(), |rate| format!("{link} ({rate})"))
}

/// The rate of a link as text: `63 Gb/s`. If the rate is unknown, its speed and width.
fn rate(link: Link) -> String {
    link.rate().map_or_else(|| link.to_string(), |rate| rate.to_string())
}

/// Links of cards that are faster than their slots. A link runs at the best that both ends support: faster lanes of the
/// slot do not make up for missing lanes.
pub(super) fn slots(inventory: &Inventory, carriers: &[Carrier<'_>]) -> Links {
    let all = &inventory.pci;
    let mut found = Links::default();
    for link in links(all) {
        let Some((own, both, odd)) = narrow_slot(all, &link) else {
            continue;
        };
        if let Some(room) = Room::of(inventory, carriers, &link, both) {
            let fix = format!("leave it as it is; a faster port would need a slot of {own}");
            found.add(room, odd, Advice::new(fix));
        }
    }
    limited::add(inventory, &mut found);
    found
}

/// The best link of the card, the best link that the slot allows, and the finding; `None` if the slot is good enough.
fn narrow_slot(all: &[Device], link: &Crossing<'_>) -> Option<(Link, Link, Finding)> {
    let (own, both) = (link.device.max?, link.best()?);
    if both.rate()? >= own.rate()? {
        return None;
    }
    let port = link.slot;
    let odd = Finding::new(
        "pcie-slot",
        card(all, link.device),
        format!(
            "the card could use {}, and its slot (port {}) leaves it {} at most",
            words(own),
            port.address,
            words(both)
        ),
    )
    .brief(format!("slot of {} for a card of {}", rate(both), rate(own)))
    .why("no traffic of this card, of all its ports together, can be faster than its slot")
    .fix(Advice::new(format!("move it to a slot of {own}, or {}", divided(all, port))));
    Some((own, both, odd))
}

/// How a narrow slot may get more lanes, in words: other devices may use the rest of its lanes.
fn divided(all: &[Device], port: &Device) -> String {
    let beside = |d: &&Device| {
        let (a, b) = (d.address, port.address);
        (a.domain, a.bus, a.slot) == (b.domain, b.bus, b.slot) && a != b && d.buses.is_some()
    };
    let beside: Vec<String> = all.iter().filter(beside).map(|d| d.address.to_string()).collect();
    if beside.is_empty() {
        return "look in the firmware's setup for what limits this one".to_owned();
    }
    format!(
        "give this one all lanes of its slot in the firmware's setup (bifurcation: {} may have the \
         others)",
        beside.join(", ")
    )
}

/// Links that run below the best that both of their ends support.
pub(super) fn below_best(inventory: &Inventory, carriers: &[Carrier<'_>]) -> Links {
    let all = &inventory.pci;
    let mut found = Links::default();
    for link in links(all) {
        let Some(odd) = slow_link(all, &link) else {
            continue;
        };
        if let Some(room) = Room::of(inventory, carriers, &link, link.now) {
            let fix = odd.fix.clone();
            found.add(room, odd, fix);
        }
    }
    found
}

fn slow_link(all: &[Device], link: &Crossing<'_>) -> Option<Finding> {
    let (now, both) = (link.now, link.best()?);
    let narrow = now.width? < both.width?;
    let slow = now.speed? < both.speed?;
    if !(narrow || slow && !rests(all, link)) {
        return None;
    }
    Some(
        Finding::new(
            "pcie-link",
            card(all, link.device),
            format!("the link runs at {}, and both its ends could do {}", words(now), words(both)),
        )
        .brief(format!("link at {}, both ends could do {}", rate(now), rate(both)))
        .why("lanes that do not train are lost to all traffic of this card")
        .fix(Advice::new(
            "seat the card anew, clean its contacts, try another slot; look in the \
             firmware's setup for a limit on this slot. A few cards slow down while \
             idle: look again under load",
        )),
    )
}

/// Whether a link may be slow only because the devices behind it are idle. Graphics cards slow down their links on
/// purpose, and on some the link to the slot belongs to a switch on the card.
fn rests(all: &[Device], link: &Crossing<'_>) -> bool {
    let devices = behind(all, link.slot.address);
    let is_display = |device: &&Device| device.class >> 16 == DISPLAY;
    !devices.is_empty() && devices.iter().all(is_display)
}

/// PCI Express links whose packets are smaller than every device on the way supports.
pub(super) fn payload(inventory: &Inventory) -> Vec<Finding> {
    let all = &inventory.pci;
    let odd = |device: &Device| {
        let own = device.payload?;
        let above = pci::bridges_above(all, device);
        if above.is_empty() {
            return None;
        }
        let limits: Option<Vec<u32>> = above.iter().map(|b| b.payload.map(|p| p.max)).collect();
        let possible = limits?.into_iter().chain([own.max]).min()?;
        (own.now < possible).then(|| {
            let what = format!(
                "a packet carries {} bytes, and all devices on the path to it support {possible}",
                own.now
            );
            let fix =
                "boot with pci=pcie_bus_safe, or set the payload size in the firmware's setup";
            Finding::new("pcie-payload", subject(device), what)
                .why("each packet of writes costs 24 bytes more than it carries")
                .fix(Advice::new(fix))
        })
    };
    let carries = |d: &&Device| d.carries_data() && !d.is_virtual;
    all.iter().filter(carries).filter_map(odd).collect()
}

/// A machine with several NUMA nodes whose firmware does not report the nodes of devices.
pub(super) fn unknown_node(inventory: &Inventory) -> Vec<Finding> {
    let with_cpus = inventory.processors.nodes.iter().filter(|n| !n.known_cpus().is_empty());
    let lost: Vec<String> = inventory
        .pci
        .iter()
        .filter(|d| d.carries_data() && !d.is_virtual && d.node.is_none())
        .filter(|d| d.class >> 16 != DISPLAY)
        .map(subject)
        .collect();
    let is_unread = inventory.lacks(pci::NODES);
    if with_cpus.count() < 2 || lost.is_empty() || is_unread {
        return Vec::new();
    }
    vec![
        Finding::new(
            "node-unknown",
            few(&lost),
            "the firmware does not say which NUMA node this belongs to",
        )
        .why(
            "work that runs on another node than its card pays for each byte that \
             crosses between the nodes",
        )
        .fix(Advice::new(
            "update the firmware; until then run the program on each node in turn with \
             numactl, and compare",
        )),
    ]
}

#[cfg(test)]
mod tests;
