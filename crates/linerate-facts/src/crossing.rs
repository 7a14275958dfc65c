//! The PCI Express links between a card and the processor, and how far their figures can be trusted.

use super::pci::{self, Device, Link, Payload};
use linerate_ceiling::pcie::{self, SIZES, Slot, USUAL_PAYLOADS};
use linerate_units::{Rate, Transfers};

/// A PCI Express link that bytes cross between a card and memory.
#[derive(Debug, Clone, Copy)]
pub struct Crossing<'a> {
    /// The end of the link that is farther from memory: the card, or a switch on the way to it.
    pub device: &'a Device,
    /// The end of the link towards memory: the port of the slot.
    pub slot: &'a Device,
    /// Speed and width at which the link runs; empty if the link is a tunnel.
    pub now: Link,
    /// Whether the link is a tunnel through a cable (Thunderbolt, USB4), so that its figures are placeholders.
    pub is_tunnel: bool,
}

impl<'a> Crossing<'a> {
    /// The link directly above a device; `None` if none is known.
    pub fn above(all: &'a [Device], device: &'a Device) -> Option<Self> {
        let slot = pci::other_end(all, device)?;
        let is_tunnel = is_tunnel(all, device, slot);
        Some(Self {
            device,
            slot,
            now: device.now.filter(|_| !is_tunnel).unwrap_or_default(),
            is_tunnel,
        })
    }

    /// The best speed and width that both ends support; `None` if one end does not report its own.
    pub fn best(&self) -> Option<Link> {
        let both = self.device.max?.common(self.slot.max?);
        (!self.is_tunnel).then_some(both)
    }

    /// Bits per second that the link carries in each direction, including packet headers.
    pub fn rate(&self) -> Option<Rate> {
        self.now.rate()
    }
}

/// The links between a card and the processor, the card's own first.
pub fn crossings<'a>(all: &'a [Device], card: &'a Device) -> Vec<Crossing<'a>> {
    let ends = std::iter::once(card).chain(pci::bridges_above(all, card));
    ends.filter_map(|device| Crossing::above(all, device)).collect()
}

/// A link as the formulas for PCI Express need it, with the packet sizes of the card behind it; `None` if its speed or
/// its width is unknown.
pub fn slot(link: Link, payload: Option<Payload>) -> Option<Slot> {
    let one_or = |known: Option<u32>, all: &[u32]| known.map_or(all.to_vec(), |k| vec![k]);
    Some(Slot {
        generations: vec![pcie::generation(link.speed?)?],
        lanes: vec![link.width?.into()],
        payloads: one_or(payload.map(|p| p.now), &USUAL_PAYLOADS),
        requests: one_or(payload.map(|p| p.read_request), &SIZES),
    })
}

/// Whether a card's link figures are placeholders, as for ports inside the processor. A real card's link at the lowest
/// speed carries at least half of what one of its ports does. Slower real links exist only at higher speeds: an adapter
/// that several hosts share gives each host only a few lanes.
pub fn is_made_up(crossings: &[Crossing<'_>], port: Rate) -> bool {
    let own = crossings.first().and_then(|c| c.device.max);
    own.is_some_and(|own| {
        let is_slowest = own.speed.is_some_and(|speed| speed <= SLOWEST);
        is_slowest && own.rate().is_some_and(|r| r.0.saturating_mul(2) < port.0)
    })
}

/// Whether a link has the default figures of ports inside the processor: one lane at the lowest speed. A real card can
/// have such a link too, but not if it has several ports that together need more. The link of a switch is real.
//= Linux drivers/net/ethernet/intel/i40e/i40e_main.c: "Devices on the IOSF bus do not have this information and will report
//= PCI Gen 1 x 1 by default"; ixgbe_main.c does not check the links of X550EM either
pub fn is_default(link: &Crossing<'_>) -> bool {
    let own = link.device.max.unwrap_or_default();
    let is_slowest = own.speed.is_some_and(|speed| speed <= SLOWEST);
    link.device.buses.is_none() && is_slowest && own.width == Some(1)
}

/// Whether the link figures of a device belong to a tunnel, because the device is at one of its two ends.
pub fn shows_tunnel(all: &[Device], device: &Device) -> bool {
    let is_far_end =
        |device: &Device| Crossing::above(all, device).is_some_and(|link| link.is_tunnel);
    let is_near_end = || {
        let mut below = all.iter().filter(|d| d.parent == Some(device.address));
        below.any(is_far_end)
    };
    is_far_end(device) || device.buses.is_some() && is_near_end()
}

/// The speed of PCI Express generation 1. The ends of a tunnel show this speed, whatever the tunnel can carry.
//= Linux dmesg of a Thunderbolt dock: "8.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x4 link
//= (capable of 31.504 Gb/s with 8.0 GT/s PCIe x4 link)"
const SLOWEST: Transfers = Transfers(2_500_000_000);

const INTEL: u16 = 0x8086;
/// PCI device ids of the bridges in Intel's Thunderbolt and USB4 controllers, on host boards and in docks and boxes.
//= Linux drivers/thunderbolt/nhi.h and include/linux/pci_ids.h, PCI_DEVICE_ID_INTEL_*_RIDGE*
const BRIDGES: [u16; 24] = [
    0x0b26, 0x1136, 0x1513, 0x151a, 0x151b, 0x1547, 0x1548, 0x1549, 0x1567, 0x1569, 0x156b, 0x156d,
    0x1576, 0x1578, 0x157e, 0x15c0, 0x15d3, 0x15da, 0x15e7, 0x15ea, 0x15ef, 0x5780, 0x5786, 0x57a4,
];

fn is_controller(device: &Device) -> bool {
    device.vendor == INTEL && BRIDGES.contains(&device.device)
}

/// Whether a link is a tunnel through a Thunderbolt or USB4 cable. The far end of a tunnel is always a switch,
/// never a card; the links behind it are real.
///
/// The kernel marks removable devices, but a slot for other cards may be removable, too. [`Device::tunneled`] is set
/// only for devices attached by Thunderbolt or USB4. Linux before 5.14 does not set such a mark, so only the device ids
/// of the controllers show a tunnel there. A controller on a separate card has a real link above it, which is faster
/// than the speed that a tunnel shows.
fn is_tunnel(all: &[Device], device: &Device, slot: &Device) -> bool {
    let inside = |device: &Device| {
        device.tunneled || pci::bridges_above(all, device).iter().any(|b| b.tunneled)
    };
    let speed = device.now.and_then(|link| link.speed);
    let is_slowest = speed.is_none_or(|speed| speed <= SLOWEST);
    let is_first = !inside(slot) && !is_controller(device);
    device.buses.is_some()
        && (inside(device) && (is_first || is_slowest)
            || is_slowest && [device, slot].into_iter().any(is_controller))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::{Buses, PortKind};

    fn lanes(tenths: u64, width: u8) -> Link {
        Link { speed: Some(Transfers(tenths * 100_000_000)), width: Some(width) }
    }

    fn device(address: &str, buses: Option<(u8, u8)>, kind: PortKind, now: Link) -> Device {
        Device {
            address: address.parse().unwrap(),
            vendor: 0x1022,
            buses: buses.map(|(secondary, subordinate)| Buses { secondary, subordinate }),
            kind: Some(kind),
            now: Some(now),
            max: Some(now),
            ..Device::default()
        }
    }

    /// Builds two boxes in a chain, the second with a card, and returns for each link, the card's first, whether it is
    /// a tunnel.
    fn chain(tunnel: Link, change: impl Fn(&mut [Device])) -> Vec<bool> {
        let real = lanes(80, 4);
        let mut all = vec![
            device("0000:00:07.0", Some((1, 9)), PortKind::Root, tunnel),
            device("0000:01:00.0", Some((2, 9)), PortKind::Upstream, tunnel),
            device("0000:02:01.0", Some((3, 9)), PortKind::Downstream, tunnel),
            device("0000:03:00.0", Some((4, 9)), PortKind::Upstream, tunnel),
            device("0000:04:01.0", Some((5, 5)), PortKind::Downstream, real),
            device("0000:05:00.0", None, PortKind::Endpoint, real),
        ];
        change(&mut all);
        pci::find_parents(&mut all);
        crossings(&all, &all[5]).iter().map(|c| c.is_tunnel).collect()
    }

    #[test]
    fn links_through_cables_are_tunnels_and_the_card_in_the_box_has_a_real_one() {
        let slow = lanes(25, 4);
        let marked = |all: &mut [Device]| all[1].tunneled = true;
        assert_eq!(chain(slow, marked), [false, true, true]);
        // The kernel marks every device behind the first cable.
        let behind = |all: &mut [Device]| all[1..].iter_mut().for_each(|d| d.tunneled = true);
        assert_eq!(chain(slow, behind), [false, true, true]);
        // A switch inside a box. Nothing shows that the link to it is a tunnel.
        assert_eq!(chain(lanes(50, 4), marked), [false, false, true]);
        assert_eq!(chain(slow, |_| {}), [false; 3], "a slot that can be pulled out");
    }

    #[test]
    fn controllers_are_known_by_their_ids_where_their_links_are_as_slow_as_tunnels_show() {
        let docks = |all: &mut [Device]| {
            for device in &mut all[1..5] {
                (device.vendor, device.device) = (INTEL, 0x15ef);
            }
        };
        assert_eq!(chain(lanes(25, 4), docks), [false, true, true]);
        assert_eq!(chain(lanes(80, 4), docks), [false; 3]);
        let other = |all: &mut [Device]| all[1].device = 0x15ef;
        assert_eq!(chain(lanes(25, 4), other), [false; 3], "of another vendor");
        // A controller on the host's board: its own link is real, and all devices behind it are marked as removable.
        let host = |all: &mut [Device]| {
            (all[1].vendor, all[1].device) = (INTEL, 0x15ea);
            all[1].now = Some(lanes(80, 4));
            all[1..].iter_mut().for_each(|d| d.tunneled = true);
        };
        assert_eq!(chain(lanes(25, 4), host), [false, true, false]);
    }

    #[test]
    fn a_card_in_the_first_place_that_can_be_pulled_out_is_no_tunnel() {
        let marked = |all: &mut [Device]| all[5].tunneled = true;
        assert_eq!(chain(lanes(25, 4), marked), [false; 3]);
    }

    #[test]
    fn what_a_tunnel_shows_is_not_its_rate() {
        let slow = lanes(25, 1);
        let mut all = vec![
            device("0000:00:07.0", Some((1, 1)), PortKind::Root, slow),
            device("0000:01:00.0", Some((2, 2)), PortKind::Upstream, slow),
        ];
        all[1].tunneled = true;
        pci::find_parents(&mut all);
        let found = Crossing::above(&all, &all[1]).unwrap();
        assert_eq!((found.rate(), found.best()), (None, None));
        all[1].tunneled = false;
        let found = Crossing::above(&all, &all[1]).unwrap();
        assert_eq!(found.rate(), Some(Rate(2_000_000_000)));
        assert_eq!(found.best(), Some(slow));
    }

    #[test]
    fn both_ends_of_a_tunnel_show_it_and_what_is_beside_it_does_not() {
        let slow = lanes(25, 1);
        let mut all = vec![
            device("0000:00:07.0", Some((1, 3)), PortKind::Root, slow),
            device("0000:00:08.0", Some((4, 4)), PortKind::Root, slow),
            device("0000:01:00.0", Some((2, 3)), PortKind::Upstream, slow),
            device("0000:02:01.0", Some((3, 3)), PortKind::Downstream, slow),
            device("0000:03:00.0", None, PortKind::Endpoint, slow),
            device("0000:04:00.0", None, PortKind::Endpoint, slow),
        ];
        pci::find_parents(&mut all);
        let shows = |all: &[Device]| {
            let each = all.iter().map(|device| shows_tunnel(all, device));
            each.collect::<Vec<_>>()
        };
        assert_eq!(shows(&all), [false; 6], "a slow switch in a slot");
        all[2].tunneled = true;
        assert_eq!(shows(&all), [true, false, true, false, false, false]);
    }

    #[test]
    fn the_default_figures_are_one_lane_at_the_lowest_speed_and_never_those_of_a_switch() {
        let default = |buses, tenths, width| {
            let link = lanes(tenths, width);
            let mut all = vec![
                device("0000:00:07.0", Some((1, 2)), PortKind::Root, link),
                device("0000:01:00.0", buses, PortKind::Endpoint, link),
            ];
            pci::find_parents(&mut all);
            is_default(&Crossing::above(&all, &all[1]).unwrap())
        };
        assert!(default(None, 25, 1));
        assert!(!default(None, 25, 2) && !default(None, 50, 1));
        assert!(!default(Some((2, 2)), 25, 1));
    }

    #[test]
    fn what_is_not_known_of_a_link_may_be_all_that_there_is() {
        let payload = Payload { now: 256, max: 512, read_request: 1024 };
        let known = slot(lanes(80, 8), Some(payload)).unwrap();
        assert_eq!((known.generations, known.lanes), (vec![3], vec![8]));
        assert_eq!((known.payloads, known.requests), (vec![256], vec![1024]));
        let open = slot(lanes(80, 8), None).unwrap();
        assert_eq!(open.payloads, USUAL_PAYLOADS);
        assert_eq!(open.requests, SIZES);
        assert_eq!(slot(Link::default(), None), None);
        assert_eq!(slot(lanes(81, 8), None), None, "there is no such speed");
    }
}
