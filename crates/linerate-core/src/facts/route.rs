//! The route of a host to the other end, and what lies below it down to the slots of its cards.

use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};

use super::nic::{Duplex, Nic};
use super::pci::{self, Device, Link};
use crate::units::Rate;

/// Most ports of a stack that are kept.
pub const PORTS_MAX: usize = 32;
/// Most other ports that are kept.
pub const OTHERS_MAX: usize = 16;
/// Most addresses of one of them that are kept.
pub const NETWORKS_MAX: usize = 8;
/// Most PCI devices that are kept: cards, and what is above them.
const DEVICES_MAX: usize = 128;

/// Modes in which a bond spreads streams over its members.
const SPREADING: [&str; 5] = [
    "802.3ad",
    "balance-rr",
    "balance-xor",
    "balance-tlb",
    "balance-alb",
];

/// The way that the connections of a path leave a host by, as it was when the session began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// Address of this end.
    pub own: Option<IpAddr>,
    /// Address of the other end.
    pub peer: Option<IpAddr>,
    /// The neighbour that packets are handed to; `None` where the other end is one itself.
    pub gateway: Option<IpAddr>,
    /// The port that the route leaves by, then those below it; of each what its stack, its wire and
    /// its errors tell.
    #[serde(deserialize_with = "at_most::<_, _, PORTS_MAX>")]
    pub ports: Vec<Nic>,
    /// The PCI devices of those ports and the bridges above them, sorted by address.
    #[serde(deserialize_with = "at_most::<_, _, DEVICES_MAX>")]
    pub pci: Vec<Device>,
    /// Other ports that have a wire, carrier and an address of their own.
    #[serde(deserialize_with = "at_most::<_, _, OTHERS_MAX>")]
    pub others: Vec<Other>,
}

/// A port that the route does not use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Other {
    /// Interface name.
    pub name: String,
    /// Speed; `None` where the driver does not tell one.
    pub speed: Option<Rate>,
    /// Its addresses, each with the leading bits that its network shares; only those that are good
    /// beyond the link.
    #[serde(deserialize_with = "at_most::<_, _, NETWORKS_MAX>")]
    pub networks: Vec<(IpAddr, u8)>,
}

/// No more of a list than a host would have sent: what is looked up in it again and again must not be
/// as long as another host likes.
pub(super) fn at_most<'de, D, T, const MOST: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut all = Vec::deserialize(from)?;
    all.truncate(MOST);
    Ok(all)
}

/// A PCI Express link that the bytes cross.
#[derive(Debug, Clone, Copy)]
pub struct Crossing<'a> {
    /// The end away from memory: the card, or a switch on the way to it.
    pub device: &'a Device,
    /// The end towards memory: the slot's side.
    pub slot: &'a Device,
    /// The link as it runs.
    pub now: Link,
}

impl Crossing<'_> {
    /// The best that both ends could do together; `None` where one of them does not say.
    pub fn best(&self) -> Option<Link> {
        Some(self.device.max?.common(self.slot.max?))
    }

    /// Bits that it carries each second and way before packets take theirs.
    pub fn rate(&self) -> Option<Rate> {
        self.now.rate()
    }
}

impl Route {
    /// The port with this index.
    pub fn nic(&self, index: u32) -> Option<&Nic> {
        self.ports.iter().find(|nic| nic.index == index)
    }

    /// The ports with a wire that carry the path: one, or those of a bond that spreads streams.
    /// `None` where that cannot be told: a tunnel adds headers, a bridge may lead anywhere.
    pub fn wires(&self) -> Option<Vec<&Nic>> {
        let mut at = self.ports.first()?;
        // A stack is no deeper than it has ports.
        for _ in &self.ports {
            match (at.kind.as_str(), at.stack.below.as_slice()) {
                _ if at.stack.below_hidden => return None,
                ("vlan" | "macvlan" | "ipvlan" | "bridge", [one]) => at = self.nic(*one)?,
                ("bond", members) => match self.members(at, members)?.as_slice() {
                    [one] => at = one,
                    many => return many.iter().all(|m| is_wire(m)).then(|| many.to_vec()),
                },
                _ => return is_wire(at).then(|| vec![at]),
            }
        }
        None
    }

    /// The members of a bond that carry its traffic.
    fn members(&self, nic: &Nic, members: &[u32]) -> Option<Vec<&Nic>> {
        // Another host may name one port as often as it likes.
        if members.len() > PORTS_MAX {
            return None;
        }
        let bond = nic.stack.bond.as_ref()?;
        if bond.mode == "active-backup" {
            return Some(vec![self.nic(bond.active?)?]);
        }
        if !SPREADING.contains(&bond.mode.as_str()) {
            return None;
        }
        let found: Option<Vec<&Nic>> = members.iter().map(|m| self.nic(*m)).collect();
        let up: Vec<&Nic> = found?.into_iter().filter(|m| m.up).collect();
        (!up.is_empty()).then_some(up)
    }

    /// What its wires carry together; `None` where one of them does not tell.
    pub fn speed(&self) -> Option<Rate> {
        let wires = self.wires()?;
        let speeds: Option<Vec<u64>> = wires.iter().map(|w| Some(w.link.speed?.0)).collect();
        let sum = speeds?.into_iter().fold(0, u64::saturating_add);
        Some(Rate(sum))
    }

    /// VLAN tags of each frame on the wire.
    pub fn tags(&self) -> u32 {
        self.ports.iter().filter(|nic| nic.kind == "vlan").count() as u32
    }

    /// The PCI Express links between a port's card and the processor, the card's own first; none for
    /// a port that is not a PCI device itself.
    pub fn crossings(&self, nic: &Nic) -> Vec<Crossing<'_>> {
        let card = nic.pci.parse().ok().filter(|_| nic.device == nic.pci);
        let Some(card) = card.and_then(|address| pci::at(&self.pci, address)) else {
            return Vec::new();
        };
        let above = pci::bridges_above(&self.pci, card);
        let ends = std::iter::once(card).chain(above);
        ends.filter_map(|device| {
            Some(Crossing {
                device,
                slot: pci::other_end(&self.pci, device)?,
                now: device.now?,
            })
        })
        .collect()
    }

    /// The wire that is used one way at a time, if one is.
    pub fn half_duplex(&self) -> Option<&Nic> {
        let mut wires = self.wires()?.into_iter();
        wires.find(|nic| nic.link.duplex == Some(Duplex::Half))
    }

    /// Whether what the port that the route leaves by counts is what its wires count: a VLAN counts
    /// its own packets.
    pub fn counts_wires(&self) -> bool {
        let first = self.ports.first();
        first.is_some_and(|nic| nic.kind.is_empty() || nic.kind == "bond")
    }
}

/// Whether the link of a card is none: integrated ports have one that is made up. No card is built
/// whose own link carries less than half of what one of its ports does.
pub fn is_made_up(crossings: &[Crossing<'_>], port: Rate) -> bool {
    let own = crossings.first().and_then(|c| c.device.max?.rate());
    own.is_some_and(|own| own.0.saturating_mul(2) < port.0)
}

fn is_wire(nic: &Nic) -> bool {
    !nic.is_virtual && nic.stack.below.is_empty() && nic.stack.bond.is_none()
}

/// Whether `address` lies in the network of `own`.
pub fn shares_network(own: (IpAddr, u8), address: IpAddr) -> bool {
    let same = |a: u128, b: u128, bits: u32, prefix: u8| {
        let host = bits.saturating_sub(u32::from(prefix));
        // A shift by all bits is none: then every address is in the network.
        a.checked_shr(host).unwrap_or(0) == b.checked_shr(host).unwrap_or(0)
    };
    match (own.0, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32, own.1),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128, own.1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::nic::{Bond, Stack};

    fn nic(index: u32, kind: &str, below: &[u32]) -> Nic {
        Nic {
            name: format!("p{index}"),
            index,
            kind: kind.to_owned(),
            is_virtual: !kind.is_empty(),
            up: true,
            stack: Stack {
                below: below.to_vec(),
                ..Stack::default()
            },
            ..Nic::default()
        }
    }

    fn bond(mode: &str, active: Option<u32>, members: &[u32]) -> Nic {
        let mut bond = nic(5, "bond", members);
        bond.stack.bond = Some(Bond {
            mode: mode.to_owned(),
            active,
            ..Bond::default()
        });
        bond
    }

    fn wires(ports: Vec<Nic>) -> Option<Vec<u32>> {
        let route = Route {
            ports,
            ..Route::default()
        };
        let wires = route.wires()?;
        Some(wires.iter().map(|nic| nic.index).collect())
    }

    #[test]
    fn the_wires_of_a_stack_are_found_or_not_told() {
        let card = || nic(1, "", &[]);
        assert_eq!(wires(vec![card()]), Some(vec![1]));
        assert_eq!(wires(vec![nic(2, "vlan", &[1]), card()]), Some(vec![1]));
        let two = |bond: Nic| wires(vec![nic(9, "vlan", &[5]), bond, card(), nic(2, "", &[])]);
        assert_eq!(two(bond("802.3ad", None, &[1, 2])), Some(vec![1, 2]));
        let backup = two(bond("active-backup", Some(2), &[1, 2]));
        assert_eq!(backup, Some(vec![2]));
        assert_eq!(two(bond("broadcast", None, &[1, 2])), None);
        let bridge = |below: &[u32]| {
            let ports = vec![nic(3, "bridge", below), card(), nic(2, "veth", &[])];
            wires(ports)
        };
        assert_eq!(bridge(&[1]), Some(vec![1]));
        assert_eq!(bridge(&[1, 2]), None, "it may lead to either");
        assert_eq!(bridge(&[2]), None, "no wire");
        assert_eq!(wires(vec![nic(4, "vxlan", &[1]), card()]), None);
        let looped = vec![nic(1, "vlan", &[2]), nic(2, "vlan", &[1])];
        assert_eq!(wires(looped), None);
        assert_eq!(wires(Vec::new()), None);
    }

    #[test]
    fn a_list_that_is_too_long_is_cut_when_it_is_read() {
        let route = Route {
            ports: vec![nic(1, "vlan", &[1]); PORTS_MAX + 5],
            others: vec![Other::default(); OTHERS_MAX],
            ..Route::default()
        };
        let mut bytes = Vec::new();
        ciborium::into_writer(&route, &mut bytes).unwrap();
        let read: Route = ciborium::from_reader(&bytes[..]).unwrap();
        assert_eq!(
            (read.ports.len(), read.others.len()),
            (PORTS_MAX, OTHERS_MAX)
        );
        let old: Route = ciborium::from_reader(&[0xa0][..]).unwrap();
        assert_eq!(old, Route::default(), "a map without entries");
    }

    #[test]
    fn a_bond_has_no_more_members_than_a_route_has_ports() {
        let many = |count| {
            wires(vec![
                bond("802.3ad", None, &vec![1; count]),
                nic(1, "", &[]),
            ])
        };
        assert_eq!(many(PORTS_MAX).map(|found| found.len()), Some(PORTS_MAX));
        assert_eq!(many(PORTS_MAX + 1), None);
    }

    #[test]
    fn a_member_without_carrier_carries_nothing() {
        let mut down = nic(2, "", &[]);
        down.up = false;
        let ports = vec![bond("802.3ad", None, &[1, 2]), nic(1, "", &[]), down];
        assert_eq!(wires(ports), Some(vec![1]));
    }

    #[test]
    fn networks_are_shared_by_their_leading_bits() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let own = |text: &str, prefix| (ip(text), prefix);
        for (own, other, want) in [
            (own("10.0.1.1", 24), "10.0.1.200", true),
            (own("10.0.1.1", 24), "10.0.2.200", false),
            (own("10.0.1.1", 23), "10.0.0.9", true),
            (own("10.0.1.1", 0), "192.0.2.1", true),
            (own("10.0.1.1", 32), "10.0.1.1", true),
            (own("2001:db8::1", 64), "2001:db8::2:1", true),
            (own("2001:db8::1", 64), "2001:db8:0:1::1", false),
            (own("2001:db8::1", 0), "fd00::1", true),
            (own("10.0.1.1", 0), "2001:db8::1", false),
        ] {
            assert_eq!(shares_network(own, ip(other)), want, "{own:?} {other}");
        }
    }
}
