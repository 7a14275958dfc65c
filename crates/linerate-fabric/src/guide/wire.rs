//! The cable and the rates.

use super::{Answer, DevicePort, Scene, State, ok, wrong};
use linerate_ceiling::infiniband::Speed;
use linerate_facts::advice::Advice;
use linerate_facts::crossing::{Crossing, crossings};
use linerate_facts::infiniband::{IbDevice, IbRate, PhysicalState};
use linerate_facts::odd::Oddity;
use linerate_facts::pci;
use linerate_units::Rate;
use linerate_units::shell::word;

/// Whether the wire of the port works.
pub(super) fn cable(scene: &Scene<'_>, own: DevicePort<'_>) -> Answer {
    let (device, port) = own;
    let physical = port.physical.map_or("unknown", PhysicalState::name);
    if let Some(odd) = scene.odd(&["ib-no-link", "ib-held-down"], own) {
        return wrong(odd);
    }
    match port.has_link() {
        Some(true) => ok(format!("{} has a link ({physical})", super::name(own))),
        Some(false) => {
            let advice = Advice::new("seat the cable at both ends; see that the other end is on");
            (format!("no link ({physical})"), State::Wrong(advice))
        }
        None => {
            let look = format!("ibstat {} {}", word(&device.name), port.number);
            let advice = Advice::new("see the physical state of the port").on(None, look);
            ("whether the port has a link is unknown".to_owned(), State::Unknown(advice))
        }
    }
}

/// Whether the link runs as fast as it should and the slot of the card carries it.
pub(super) fn rates(scene: &Scene<'_>, own: DevicePort<'_>) -> Answer {
    let (device, port) = own;
    if let Some(odd) = scene.odd(&["ib-narrow", "ib-slower"], own) {
        return wrong(odd);
    }
    let Some(rate) = port.in_use() else {
        let look = format!("ibstat {} {}", word(&device.name), port.number);
        let advice = Advice::new("see the rate of the port").on(None, look);
        return ("the rate of the port is unknown".to_owned(), State::Unknown(advice));
    };
    slot(scene, device, rate)
}

/// Judges the slot against the data of one port.
fn slot(scene: &Scene<'_>, device: &IbDevice, rate: &IbRate) -> Answer {
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
        return (
            format!("the port runs at {link}; what its slot carries is unknown"),
            State::Unknown(advice),
        );
    };
    let what = format!(
        "the port runs at {link}, {data} of data; its slot carries {carries} ({})",
        slowest.now
    );
    if carries >= data {
        return ok(what);
    }
    let advice = slot_oddity(scene, slowest).map_or_else(
        || Advice::new("move the card to a slot with more lanes or faster ones"),
        |odd| odd.fix.clone(),
    );
    (what, State::Wrong(advice))
}

/// The oddity of a link, which knows whether another slot would help.
fn slot_oddity<'a>(scene: &Scene<'a>, link: &Crossing<'_>) -> Option<&'a Oddity> {
    let address = link.device.address.to_string();
    let is_own = |odd: &&Oddity| odd.id.starts_with("pcie-") && odd.subject.starts_with(&address);
    scene.oddities.iter().find(is_own)
}

/// The data that a link carries in a second.
fn data(rate: &IbRate) -> Option<Rate> {
    let mut known = Speed::NAMES.iter();
    let (_, speed) = known.find(|(name, _)| *name == rate.speed)?;
    Some(Rate((f64::from(rate.width) * speed.lane()) as u64))
}
