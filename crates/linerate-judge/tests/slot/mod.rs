//! A card in a slot, as PCI devices in the facts of a host.

use linerate_facts::pci::{Buses, Device, Link, Payload, PortKind, find_parents};
use linerate_units::Transfers;

/// The PCI devices of a card of 8 lanes, 0000:01:00.0, in a slot of `slot` lanes, of which `now` are in use; both run
/// at `speed`.
pub(crate) fn card_in(speed: Transfers, slot: u8, now: u8, payload: Option<u32>) -> Vec<Device> {
    let link = |width| Some(Link { speed: Some(speed), width: Some(width) });
    let root = Device {
        address: "0000:00:01.0".parse().expect("an address"),
        buses: Some(Buses { secondary: 1, subordinate: 1 }),
        kind: Some(PortKind::Root),
        now: link(now),
        max: link(slot),
        ..Device::default()
    };
    let card = Device {
        address: "0000:01:00.0".parse().expect("an address"),
        kind: Some(PortKind::Endpoint),
        now: link(now),
        max: link(8),
        payload: payload.map(|now| Payload { now, max: 512, read_request: 512 }),
        ..Device::default()
    };
    let mut pci = vec![root, card];
    find_parents(&mut pci);
    pci
}
