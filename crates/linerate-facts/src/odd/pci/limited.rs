//! Rule about cards that a link limits, as an output says, where the devices above the cards are unknown.

use std::collections::BTreeSet;

use super::room::{Links, Room};
use super::{DISPLAY, rate, subject, words};
use crate::Inventory;
use crate::advice::Advice;
use crate::carrier::Need;
use crate::finding::Finding;
use crate::pci::{Device, Limited, Link};

/// Adds a finding for each such card, sorted by whether the card's ports may need more than the link carries.
pub(super) fn add(inventory: &Inventory, found: &mut Links) {
    let mut known = BTreeSet::new();
    for device in &inventory.pci {
        let place = place(device);
        let Some((own, limit)) = limit(device).filter(|_| known.insert(place)) else {
            continue;
        };
        let is_same = |other: &&Device| self::place(other) == place && !other.is_virtual;
        let card: Vec<&Device> = inventory.pci.iter().filter(is_same).collect();
        if let Some(need) = Need::of(inventory, &card) {
            let room = Room::for_need(&need, device.payload, limit.now, || None);
            let fix = format!("leave it as it is; a faster port would need a slot of {own}");
            found.add(room, odd(device, own, limit), Advice::new(fix));
        }
    }
}

/// What the functions of a card have in common: domain, bus and slot.
fn place(device: &Device) -> (u32, u8, u8) {
    let address = device.address;
    (address.domain, address.bus, address.slot)
}

/// The card's best link, and the slower link that limits the card; `None` if no link limits it.
fn limit(device: &Device) -> Option<(Link, Limited)> {
    let (own, limit) = (device.max?, device.limited?);
    // The line of a log does not contain the class, so a device without a class counts too.
    let carries = device.class == 0 || device.carries_data();
    let is_slow = limit.now.rate()? < own.rate()?;
    // Graphics cards slow down their links while they are idle.
    let rests = device.class >> 16 == DISPLAY && limit.now.width? >= own.width?;
    let is_alone = device.parent.is_none() && !device.is_virtual;
    (is_alone && carries && is_slow && !rests).then_some((own, limit))
}

fn odd(device: &Device, own: Link, limit: Limited) -> Finding {
    let now = words(limit.now);
    let what = match limit.at {
        Some(at) => format!("the link at {at} leaves it {now}"),
        None => format!("its link runs at {now}"),
    };
    Finding::new(
        "pcie-slot",
        subject(device),
        format!("the card could use {}, and {what}", words(own)),
    )
    .brief(format!("link of {} for a card of {}", rate(limit.now), rate(own)))
    .why(
        "no traffic of this card, of all its ports together, can be faster than \
         its slowest link",
    )
    .fix(Advice::new(format!(
        "move it to a slot of {own}; if it is in one, seat it anew. The output of \
         all devices above it (sudo lspci -vv) says whether the slot or the link \
         is the limit"
    )))
}
