//! Checks of the cable and of the rates.

use super::{DevicePort, Finding, Scene, ok, unknown, wrong};
use linerate_ceiling::infiniband::Speed;
use linerate_facts::advice::Advice;
use linerate_facts::crossing::{Crossing, crossings};
use linerate_facts::infiniband::{IbDevice, IbRate, PhysicalState};
use linerate_facts::pci;
use linerate_units::Rate;
use linerate_units::shell::word;

/// Checks whether the port has a link.
pub(super) fn cable(scene: &Scene<'_>, own: DevicePort<'_>) -> Finding {
    let (device, port) = own;
    let physical = port.physical.map_or("unknown", PhysicalState::name);
    if let Some(odd) = scene.odd(&["ib-no-link", "ib-held-down"], own) {
        return odd.clone();
    }
    match port.has_link() {
        Some(true) => ok(format!("{} has a link ({physical})", super::name(own))),
        Some(false) => {
            let advice = Advice::new("seat the cable at both ends; see that the other end is on");
            wrong("ib-no-link", format!("no link ({physical})"), advice)
        }
        None => {
            let look = format!("ibstat {} {}", word(&device.name), port.number);
            let advice = Advice::new("see the physical state of the port").on(None, look);
            unknown("whether the port has a link is unknown", advice)
        }
    }
}

/// Checks whether the link runs as fast as it should, and whether the card's slot carries that.
pub(super) fn rates(scene: &Scene<'_>, own: DevicePort<'_>) -> Finding {
    let (device, port) = own;
    if let Some(odd) = scene.odd(&["ib-slow-link"], own) {
        return odd.clone();
    }
    let Some(rate) = port.in_use() else {
        let look = format!("ibstat {} {}", word(&device.name), port.number);
        let advice = Advice::new("see the rate of the port").on(None, look);
        return unknown("the rate of the port is unknown", advice);
    };
    slot(scene, device, rate)
}

/// Checks whether the slot carries the data rate of one port.
fn slot(scene: &Scene<'_>, device: &IbDevice, rate: &IbRate) -> Finding {
    let link = match rate.width {
        0 => rate.rate.to_string(),
        width => format!("{width}x {} ({})", rate.speed, rate.rate),
    };
    let card = device.pci.parse().ok().and_then(|address| pci::at(&scene.inventory.pci, address));
    let links = card.map(|card| crossings(&scene.inventory.pci, card)).unwrap_or_default();
    let slowest =
        links.iter().filter_map(|link| Some((link, link.rate()?))).min_by_key(|(_, rate)| *rate);
    let (Some((slowest, carries)), Some(data)) = (slowest, data(rate)) else {
        let look = format!("sudo lspci -vv -s {} | grep -i -e lnkcap -e lnksta", word(&device.pci));
        let advice = Advice::new("compare the slot of the card with its port").on(None, look);
        return unknown(
            format!("the port runs at {link}; what its slot carries is unknown"),
            advice,
        );
    };
    let what = format!(
        "the port runs at {link}, {data} of data; its slot carries {carries} ({})",
        slowest.now
    );
    if carries >= data {
        return ok(what);
    }
    // The oddity of the PCIe link knows whether another slot would help.
    let Some(odd) = oddity(scene, slowest) else {
        let fix = Advice::new("move the card to a slot with more lanes or faster ones");
        return wrong("pcie-slot", what, fix);
    };
    wrong(odd.id, what, odd.fix.clone())
}

fn oddity<'a>(scene: &Scene<'a>, link: &Crossing<'_>) -> Option<&'a Finding> {
    let address = link.device.address.to_string();
    let is_own = |odd: &&Finding| odd.id.starts_with("pcie-") && odd.subject.starts_with(&address);
    scene.oddities.iter().find(is_own)
}

/// The data rate of an InfiniBand link in bits per second; `None` if the speed is unknown.
fn data(rate: &IbRate) -> Option<Rate> {
    let mut known = Speed::NAMES.iter();
    let (_, speed) = known.find(|(name, _)| *name == rate.speed)?;
    Some(Rate((f64::from(rate.width) * speed.lane()) as u64))
}
