//! A rule that compares rates with what the slots of cards carry.

use super::super::super::{Explained, facts, side_name};
use super::super::{Remark, rate};
use super::ports::{best_of_all, capacity};
use linerate_ceiling::pcie::{Slot, USUAL_PAYLOADS, generation};
use linerate_facts::Inventory;
use linerate_facts::finding::Stands;
use linerate_facts::pci::{Device, Link};
use linerate_plan::path::Side;
use linerate_units::Rate;

/// Range of a rate over the payload that a slot carries, within which the slot limits the rate: the first over the
/// lower bound, the second over the upper bound.
const HELD: [f64; 2] = [0.97, 1.01];
/// Least ratio of the port's capacity to that of its slot at which the slot limits.
const PORT_FASTER: f64 = 1.05;

/// Remarks on rates that equal what the slot of a card carries, while the card's port carries more.
pub(in crate::rule) fn slot(explained: &Explained<'_>) -> Vec<Remark> {
    let Some(best) = best_of_all(explained) else {
        return limited(explained);
    };
    let ports = facts::ports_of(explained.material);
    let of = |(side, host): (Side, &Inventory)| {
        let fastest = ports.iter().filter(|port| port.side == side).map(capacity).reduce(f64::max);
        let devices = host.pci.iter().filter_map(|device| Some((device, slow_link(device)?)));
        let held = devices.filter_map(|(device, link)| {
            let leaves = slot_of(link)?.leaves();
            let holds = best >= leaves.low() * HELD[0] && best <= leaves.high() * HELD[1];
            let is_faster = fastest.is_none_or(|port| port > leaves.high() * PORT_FASTER);
            (holds && is_faster).then(|| held(best, side, device, link))
        });
        held.take(1).collect::<Vec<_>>()
    };
    explained.material.hosts().into_iter().flat_map(of).collect()
}

/// Remarks on cards that a link limits, as the kernel reports, if there are no results.
fn limited(explained: &Explained<'_>) -> Vec<Remark> {
    let has_results = explained.material.has_results();
    let of = |(side, host): (Side, &Inventory)| {
        let device = host.pci.iter().find(|device| device.limited.is_some())?;
        let now = device.limited?.now;
        let (most, best) = (slot_of(now)?.leaves().high(), device.max?);
        let what = format!(
            "the card at {} can be no faster than {}: a link above it runs at {now}, and the card could use {best}",
            device.address,
            rate(most)
        );
        let remark = Remark::new(Stands::Found, what).names(&["pcie-slot"]).at(side);
        Some(remark.next("the link of the card and of each port above it", "sudo lspci -vv"))
    };
    let all = explained.material.hosts().into_iter().filter(|_| !has_results);
    all.filter_map(of).collect()
}

/// The present link of a network card, if it is slower than the best that the card supports.
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

fn held(best: f64, side: Side, device: &Device, link: Link) -> Remark {
    let bits = link.rate().unwrap_or(Rate(0));
    let what = format!(
        "{} is what the slot of the card at {} carries: its link runs at {link} ({bits}), and the card could use {}",
        rate(best),
        device.address,
        device.max.map_or_else(String::new, |max| max.to_string())
    );
    Remark::new(Stands::Found, what)
        .because(format!("at the {}", side_name(side)))
        .names(&["pcie-slot"])
        .at(side)
        .next("the link of the card and of the port above it", "sudo lspci -vv")
}
