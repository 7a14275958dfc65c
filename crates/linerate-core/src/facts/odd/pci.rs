//! Links that carry less than the card could.

use std::collections::BTreeSet;

use super::carrier::excess;
use super::{Oddity, few};
use crate::ceiling::pcie;
use crate::facts::Inventory;
use crate::facts::carrier::Need;
use crate::facts::crossing::Crossing;
use crate::facts::pci::{self, Device, Link};

/// Base class of graphics cards.
const DISPLAY: u32 = 0x03;

/// The links of devices whose traffic matters: cards, and switches that cards stand behind. The functions of
/// a card share its link: the first stands for all. Tunnels have no figures, and where a link runs faster than its
/// slot could a hypervisor made up the slot.
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

/// The card at the end of a link, with the names of all its functions.
fn card(all: &[Device], device: &Device) -> String {
    let others = all
        .iter()
        .filter(|d| d.parent == device.parent && !d.is_virtual);
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

/// `8 GT/s x8 (63 Gb/s)`.
fn words(link: Link) -> String {
    link.rate()
        .map_or(link.to_string(), |rate| format!("{link} ({rate})"))
}

/// Whether what runs over a link may fill it at this speed and width.
enum Room {
    /// It may; with the ports that are faster than the link as it runs, if some are.
    May(Option<String>),
    /// It cannot, or that is unknown: why that matters, and what the link is enough for.
    Enough(&'static str, String),
}

const HOLDS_NOTHING: &str = "this link holds nothing back; a faster port behind it might need more";

impl Room {
    fn of(inventory: &Inventory, link: &Crossing<'_>, at: Link) -> Self {
        let slot = link.slot.address;
        let leaves = pcie::Slot::of(at, link.device.payload).map(|slot| slot.leaves());
        match Need::behind(inventory, slot) {
            Need::Ports {
                rate,
                frames,
                all_known,
            } if leaves.is_some_and(|leaves| frames <= leaves.low()) => match (all_known, rate.0) {
                (false, 0) => Self::Enough(
                    "whether it holds anything back cannot be told while no port has a speed",
                    "what its ports need is not known".to_owned(),
                ),
                (true, _) => Self::Enough(HOLDS_NOTHING, format!("enough for its ports ({rate})")),
                (false, _) => Self::Enough(
                    HOLDS_NOTHING,
                    format!("enough for its ports whose speed is known ({rate})"),
                ),
            },
            // What the ports exceed is the link as it runs.
            _ => Self::May(excess(inventory, slot).filter(|_| at == link.now)),
        }
    }
}

/// The oddity of a link if it belongs to this list: of links that may bind, or of those that do not.
fn found(room: Room, may_bind: bool, binding: Oddity, fix: String) -> Option<Oddity> {
    match (room, may_bind) {
        (Room::May(excess), true) => Some(Oddity {
            what: [Some(binding.what), excess]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; "),
            ..binding
        }),
        (Room::Enough(why, enough), false) => Some(Oddity {
            what: format!("{}: {enough}", binding.what),
            why,
            fix,
            ..binding
        }),
        _ => None,
    }
}

/// The card could do more than its slot lets it, and may need it.
pub(super) fn slot(inventory: &Inventory) -> Vec<Oddity> {
    slots(inventory, true)
}

/// The card could do more than its slot lets it, and its ports need less.
pub(super) fn slot_enough(inventory: &Inventory) -> Vec<Oddity> {
    slots(inventory, false)
}

/// A link runs at what both ends can do: the lanes of a slot that is faster than the card do not stand in for those
/// that it lacks.
fn slots(inventory: &Inventory, may_bind: bool) -> Vec<Oddity> {
    let all = &inventory.pci;
    let odd = |link: Crossing<'_>| {
        let (own, both) = (link.device.max?, link.best()?);
        if both.rate()? >= own.rate()? {
            return None;
        }
        let port = link.slot;
        let odd = Oddity {
            id: "pcie-slot",
            subject: card(all, link.device),
            what: format!(
                "the card could use {}, and its slot (port {}) leaves it {} at most",
                words(own),
                port.address,
                words(both)
            ),
            why: "no traffic of this card, of all its ports together, can be faster than its slot",
            fix: format!("move it to a slot of {own}, or {}", divided(all, port)),
        };
        let room = Room::of(inventory, &link, both);
        found(
            room,
            may_bind,
            odd,
            format!("nothing, or a slot of {own} for a faster port"),
        )
    };
    links(all).filter_map(odd).collect()
}

/// What may have made the slot narrow.
fn divided(all: &[Device], port: &Device) -> String {
    let beside = |d: &&Device| {
        let (a, b) = (d.address, port.address);
        (a.domain, a.bus, a.slot) == (b.domain, b.bus, b.slot) && a != b && d.buses.is_some()
    };
    let beside: Vec<String> = all
        .iter()
        .filter(beside)
        .map(|d| d.address.to_string())
        .collect();
    if beside.is_empty() {
        return "look in the firmware's setup for what limits this one".to_owned();
    }
    format!(
        "give this one all lanes of its slot in the firmware's setup (bifurcation: {} may have the \
         others)",
        beside.join(", ")
    )
}

/// The link runs below what both of its ends can do, and the card may need more.
pub(super) fn link(inventory: &Inventory) -> Vec<Oddity> {
    below_best(inventory, true)
}

/// The link runs below what both of its ends can do, and the ports of the card need less.
pub(super) fn link_enough(inventory: &Inventory) -> Vec<Oddity> {
    below_best(inventory, false)
}

fn below_best(inventory: &Inventory, may_bind: bool) -> Vec<Oddity> {
    let all = &inventory.pci;
    let odd = |link: Crossing<'_>| {
        let (now, both) = (link.now, link.best()?);
        let narrow = now.width? < both.width?;
        let slow = now.speed? < both.speed?;
        // Graphics cards slow their links down on purpose while they idle.
        let rests = !narrow && link.device.class >> 16 == DISPLAY;
        if !(narrow || slow) || rests {
            return None;
        }
        let odd = Oddity {
            id: "pcie-link",
            subject: card(all, link.device),
            what: format!(
                "the link runs at {}, and both its ends could do {}",
                words(now),
                words(both)
            ),
            why: "lanes that do not train are lost to all traffic of this card",
            fix:
                "seat the card anew, clean its contacts, try another slot; look in the firmware's \
                  setup for a limit on this slot. A few cards slow down while idle: look again \
                  under load"
                    .to_owned(),
        };
        let fix = odd.fix.clone();
        found(Room::of(inventory, &link, now), may_bind, odd, fix)
    };
    links(all).filter_map(odd).collect()
}

/// Packets are smaller than everything on the way allows.
pub(super) fn payload(inventory: &Inventory) -> Vec<Oddity> {
    let all = &inventory.pci;
    let odd = |device: &Device| {
        let own = device.payload?;
        let above = pci::bridges_above(all, device);
        if above.is_empty() {
            return None;
        }
        let limits: Option<Vec<u32>> = above.iter().map(|b| b.payload.map(|p| p.max)).collect();
        let possible = limits?.into_iter().chain([own.max]).min()?;
        (own.now < possible).then(|| Oddity {
            id: "pcie-payload",
            subject: subject(device),
            what: format!(
                "a packet carries {} bytes, and all on the way to it could take {possible}",
                own.now
            ),
            why: "each packet of writes costs 24 bytes more than it carries",
            fix: "boot with pci=pcie_bus_safe, or set the payload size in the firmware's setup"
                .to_owned(),
        })
    };
    let carries = |d: &&Device| d.carries_data() && !d.is_virtual;
    all.iter().filter(carries).filter_map(odd).collect()
}

/// Nobody says to which node devices belong, on a machine where that matters.
pub(super) fn unknown_node(inventory: &Inventory) -> Vec<Oddity> {
    let with_cpus = inventory
        .processors
        .nodes
        .iter()
        .filter(|n| !n.known_cpus().is_empty());
    let lost: Vec<String> = inventory
        .pci
        .iter()
        .filter(|d| d.carries_data() && !d.is_virtual && d.node.is_none())
        .filter(|d| d.class >> 16 != DISPLAY)
        .map(subject)
        .collect();
    if with_cpus.count() < 2 || lost.is_empty() {
        return Vec::new();
    }
    vec![Oddity {
        id: "node-unknown",
        subject: few(&lost),
        what: "the firmware does not say which NUMA node this belongs to".to_owned(),
        why: "work that runs on another node than its card pays for each byte on the way",
        fix: "update the firmware; until then bind the program to each node in turn (numactl -N) \
              and compare"
            .to_owned(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::ids;
    use super::*;
    use crate::facts::cpu::Node;
    use crate::facts::nic::{Nic, speed_of_mbps};
    use crate::facts::pci::{Buses, Payload, PortKind};
    use crate::units::Transfers;

    #[expect(clippy::unnecessary_wraps, reason = "devices have a link or none")]
    fn lanes(giga: u64, width: u8) -> Option<Link> {
        Some(Link {
            speed: Some(Transfers(giga * 1_000_000_000)),
            width: Some(width),
        })
    }

    /// A card under a root port; links are (now, card's best, slot's best).
    fn machine(now: Option<Link>, card: Option<Link>, slot: Option<Link>) -> Inventory {
        let port = Device {
            address: "0000:00:01.0".parse().unwrap(),
            class: 0x06_0400,
            buses: Some(Buses {
                secondary: 1,
                subordinate: 1,
            }),
            kind: Some(PortKind::Root),
            node: Some(0),
            now,
            max: slot,
            ..Device::default()
        };
        let device = Device {
            address: "0000:01:00.0".parse().unwrap(),
            class: 0x02_0000,
            names: vec!["eth0".to_owned()],
            kind: Some(PortKind::Endpoint),
            node: Some(0),
            now,
            max: card,
            ..Device::default()
        };
        let mut pci = vec![port, device];
        pci::find_parents(&mut pci);
        let mut machine = Inventory {
            pci,
            ..Inventory::default()
        };
        machine.network.nics = vec![nic(0, 25_000)];
        machine
    }

    /// Port `eth0` of the first function, `eth1` of the second.
    fn nic(function: u8, mbps: u64) -> Nic {
        let mut nic = Nic {
            name: format!("eth{function}"),
            index: u32::from(function) + 2,
            pci: format!("0000:01:00.{function}"),
            up: true,
            ..Nic::default()
        };
        nic.link.speed = speed_of_mbps(mbps);
        nic
    }

    #[test]
    fn a_wide_card_in_a_narrow_slot_is_odd_and_a_narrow_card_in_a_wide_slot_is_not() {
        let narrow = machine(lanes(8, 4), lanes(8, 8), lanes(8, 4));
        let found = super::super::find(&narrow);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].id, "pcie-slot");
        assert_eq!(found[0].subject, "0000:01:00.0 Ethernet eth0");
        assert!(
            found[0].what.contains("8 GT/s x8 (63 Gb/s)"),
            "{}",
            found[0].what
        );
        assert!(
            found[0].what.contains("8 GT/s x4 (31.5 Gb/s)"),
            "{}",
            found[0].what
        );
        assert_eq!(
            ids(&machine(lanes(8, 8), lanes(8, 8), lanes(8, 8))),
            [""; 0]
        );
        assert_eq!(
            ids(&machine(lanes(8, 4), lanes(8, 4), lanes(8, 16))),
            [""; 0]
        );
        // Lanes that are faster than the card's do not stand in for those that it lacks.
        let fast = machine(lanes(8, 4), lanes(8, 8), lanes(16, 4));
        let found = super::super::find(&fast);
        assert_eq!(found[0].id, "pcie-slot");
        let what = &found[0].what;
        assert!(what.contains("leaves it 8 GT/s x4 (31.5 Gb/s)"), "{what}");
        assert_eq!(
            ids(&machine(lanes(8, 8), lanes(8, 8), lanes(16, 8))),
            [""; 0]
        );
    }

    #[test]
    fn a_slot_or_a_link_that_leaves_enough_for_the_ports_comes_last() {
        // 31.5 Gb/s with packets of 128 to 512 bytes: 24.1 to 30.3 Gb/s of frames.
        let order = |mbps: u64, now: Link| {
            let mut machine = machine(Some(now), lanes(8, 8), lanes(8, 4));
            machine.network.nics = vec![nic(0, mbps)];
            machine.processors.offline = vec![3];
            let found = super::super::find(&machine).into_iter();
            found.map(|odd| (odd.id, odd.what)).collect::<Vec<_>>()
        };
        let four = lanes(8, 4).unwrap();
        let ids = |found: &[(&'static str, String)]| found.iter().map(|f| f.0).collect::<Vec<_>>();
        let surely = order(40_000, four);
        assert_eq!(ids(&surely), ["pcie-slot", "cpu-offline"]);
        assert!(
            surely[0].1.ends_with("; eth0 (40 Gb/s) alone is faster"),
            "{}",
            surely[0].1
        );
        let perhaps = order(25_000, four);
        assert_eq!(ids(&perhaps), ["pcie-slot", "cpu-offline"]);
        assert!(perhaps[0].1.ends_with("at most"), "{}", perhaps[0].1);
        let never = order(20_000, four);
        assert_eq!(ids(&never), ["cpu-offline", "pcie-slot"]);
        assert!(
            never[1].1.ends_with(": enough for its ports (20 Gb/s)"),
            "{}",
            never[1].1
        );
        let unknown = order(0, four);
        assert_eq!(ids(&unknown), ["cpu-offline", "pcie-slot"]);
        assert!(
            unknown[1].1.ends_with("what its ports need is not known"),
            "{}",
            unknown[1].1
        );
        // The slot leaves enough, and the link in it does not.
        let slow = order(20_000, lanes(5, 4).unwrap());
        assert_eq!(ids(&slow), ["pcie-link", "cpu-offline", "pcie-slot"]);
        let little = order(10_000, lanes(5, 4).unwrap());
        assert_eq!(ids(&little), ["cpu-offline", "pcie-slot", "pcie-link"]);
    }

    #[test]
    fn disks_take_what_their_slot_leaves_them() {
        let mut machine = machine(lanes(8, 2), lanes(8, 4), lanes(8, 2));
        machine.pci[1].class = 0x01_0802;
        machine.network.nics.clear();
        machine.processors.offline = vec![3];
        assert_eq!(ids(&machine), ["pcie-slot", "cpu-offline"]);
    }

    #[test]
    fn figures_of_tunnels_and_of_slots_that_were_made_up_are_not_odd() {
        let mut tunnel = machine(lanes(2, 1), lanes(8, 4), lanes(8, 4));
        tunnel.pci[1].buses = Some(Buses {
            secondary: 2,
            subordinate: 2,
        });
        (tunnel.pci[1].class, tunnel.pci[1].kind) = (0x06_0400, Some(PortKind::Upstream));
        assert_eq!(ids(&tunnel), ["pcie-link"]);
        tunnel.pci[1].tunneled = true;
        assert_eq!(ids(&tunnel), [""; 0]);
        // The port of an emulated machine above a card that is passed through.
        assert_eq!(
            ids(&machine(lanes(8, 8), lanes(8, 8), lanes(2, 1))),
            [""; 0]
        );
        assert_eq!(
            ids(&machine(lanes(8, 8), lanes(8, 8), lanes(8, 4))),
            [""; 0]
        );
    }

    #[test]
    fn the_functions_of_a_card_share_one_slot() {
        let mut narrow = machine(lanes(8, 4), lanes(8, 8), lanes(8, 4));
        let mut second = narrow.pci[1].clone();
        second.address.function = 1;
        second.names = vec!["eth1".to_owned()];
        let part = Device {
            is_virtual: true,
            names: vec!["eth2".to_owned()],
            address: "0000:01:00.2".parse().unwrap(),
            ..second.clone()
        };
        narrow.pci.extend([second, part]);
        let found = super::super::find(&narrow);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].subject, "0000:01:00.0 Ethernet eth0 eth1");
    }

    #[test]
    fn a_link_below_both_ends_is_odd() {
        for now in [lanes(8, 4), lanes(5, 8)] {
            assert_eq!(ids(&machine(now, lanes(8, 8), lanes(8, 16))), ["pcie-link"]);
        }
        assert_eq!(
            ids(&machine(lanes(8, 8), lanes(8, 8), lanes(16, 16))),
            [""; 0]
        );
        let mut graphics = machine(lanes(5, 8), lanes(8, 8), lanes(8, 8));
        graphics.pci[1].class = 0x03_0000;
        assert_eq!(ids(&graphics), [""; 0]);
    }

    #[test]
    fn what_is_unknown_is_not_odd() {
        let known = lanes(8, 8);
        for (now, card, slot) in [
            (None, known, lanes(8, 4)),
            (lanes(8, 4), None, known),
            (known, known, None),
        ] {
            assert_eq!(ids(&machine(now, card, slot)), [""; 0]);
        }
    }

    #[test]
    fn packets_as_large_as_the_way_allows_are_not_odd() {
        let payload = |now, max| {
            Some(Payload {
                now,
                max,
                read_request: 512,
            })
        };
        for (now, port_max, want) in [
            (128, 256, vec!["pcie-payload"]),
            (256, 256, vec![]),
            (128, 128, vec![]),
        ] {
            let mut machine = machine(None, None, None);
            machine.pci[0].payload = payload(now, port_max);
            machine.pci[1].payload = payload(now, 512);
            assert_eq!(ids(&machine), want, "{now} of {port_max}");
        }
    }

    #[test]
    fn a_card_without_a_node_is_odd_where_there_are_two() {
        let node = |id| Node {
            id,
            cpus: Some(vec![id]),
            total: Some(crate::units::Bytes(1)),
            ..Node::default()
        };
        let mut machine = machine(None, None, None);
        machine.pci[1].node = None;
        machine.processors.nodes = vec![node(0)];
        assert_eq!(ids(&machine), [""; 0]);
        machine.processors.nodes.push(node(1));
        assert_eq!(ids(&machine), ["node-unknown"]);
        machine.pci[1].node = Some(1);
        assert_eq!(ids(&machine), [""; 0]);
    }

    #[test]
    fn ports_beside_a_narrow_one_hint_at_bifurcation() {
        let mut narrow = machine(lanes(8, 4), lanes(8, 8), lanes(8, 4));
        let fix = |m: &Inventory| super::super::find(m)[0].fix.clone();
        assert!(!fix(&narrow).contains("bifurcation"));
        let mut beside = narrow.pci[0].clone();
        beside.address.function = 1;
        beside.buses = Some(Buses {
            secondary: 2,
            subordinate: 2,
        });
        narrow.pci.insert(1, beside);
        assert!(
            fix(&narrow).contains("bifurcation: 0000:00:01.1"),
            "{}",
            fix(&narrow)
        );
    }
}
