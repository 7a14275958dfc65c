//! The route of a host to the other end, and the devices below it, down to the slots of its cards.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::bounded::at_most;
use super::crossing::{self, Crossing};
use super::nic::Nic;
use super::pci::{self, Device};
use linerate_units::Rate;

/// Largest number of ports of a stack that are kept.
pub const PORTS_MAX: usize = 32;
/// Largest number of other ports that are kept.
pub const OTHERS_MAX: usize = 16;
/// Largest number of addresses that are kept for one port.
pub const NETWORKS_MAX: usize = 8;
/// Largest number of PCI devices that are kept: cards, and the bridges above them.
const DEVICES_MAX: usize = 128;

/// The route of the path's connections out of a host, at the beginning of the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// Address of this end.
    pub own: Option<IpAddr>,
    /// Address of the other end.
    pub peer: Option<IpAddr>,
    /// The neighbour that packets are handed to; `None` if the other end is one itself.
    pub gateway: Option<IpAddr>,
    /// The port that the route leaves by, then those below it, each with its stack, its wire and its errors.
    #[serde(deserialize_with = "at_most::<_, _, PORTS_MAX>")]
    pub ports: Vec<Nic>,
    /// The PCI devices of those ports and the bridges above them, sorted by address.
    #[serde(deserialize_with = "at_most::<_, _, DEVICES_MAX>")]
    pub pci: Vec<Device>,
    /// Other ports that have a wire, carrier and an address of their own.
    #[serde(deserialize_with = "at_most::<_, _, OTHERS_MAX>")]
    pub others: Vec<Other>,
    /// The ports that may answer for this end's address: those with an address in its network, the one that owns it among
    /// them, and those without any; empty if there is no other one, and in records from before they were read.
    #[serde(deserialize_with = "at_most::<_, _, OTHERS_MAX>")]
    pub siblings: Vec<Sibling>,
}

/// A port that may answer for this end's address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sibling {
    /// Index in its network namespace.
    pub index: u32,
    /// Interface name.
    pub name: String,
    /// Whether the address of this end is its own.
    pub owns: bool,
    /// Whether it has no address of version 4 itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_bare: bool,
}

/// A port that the route does not use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Other {
    /// Interface name.
    pub name: String,
    /// Speed; `None` if the driver does not report it.
    pub speed: Option<Rate>,
    /// Addresses of the port, each with the number of leading bits that its network shares; only those that
    /// are valid beyond the link.
    #[serde(deserialize_with = "at_most::<_, _, NETWORKS_MAX>")]
    pub networks: Vec<(IpAddr, u8)>,
}

impl Route {
    /// The port with this index.
    pub fn nic(&self, index: u32) -> Option<&Nic> {
        self.ports.iter().find(|nic| nic.index == index)
    }

    /// The sum of the rates of the route's wires; `None` if one of them is unknown.
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
        crossing::crossings(&self.pci, card)
    }

    /// A wire of the route with half duplex, if there is one.
    pub fn half_duplex(&self) -> Option<&Nic> {
        let mut wires = self.wires()?.into_iter();
        wires.find(|nic| nic.is_half())
    }

    /// Whether the counters of the port that the route leaves by cover all that its wires carry. A VLAN port
    /// counts only its own packets.
    pub fn counts_wires(&self) -> bool {
        let first = self.ports.first();
        first.is_some_and(|nic| nic.kind.is_empty() || nic.kind == "bond")
    }
}

/// Whether `address` is in the network of `own`.
pub fn shares_network(own: (IpAddr, u8), address: IpAddr) -> bool {
    let same = |a: u128, b: u128, bits: u32, prefix: u8| {
        let host = bits.saturating_sub(u32::from(prefix));
        // A shift by all bits gives `None`: then every address is in the network.
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

    #[test]
    fn a_list_that_is_too_long_is_cut_when_it_is_read() {
        let route = Route {
            ports: vec![Nic::default(); PORTS_MAX + 5],
            others: vec![Other::default(); OTHERS_MAX],
            ..Route::default()
        };
        let mut bytes = Vec::new();
        ciborium::into_writer(&route, &mut bytes).unwrap();
        let read: Route = ciborium::from_reader(&bytes[..]).unwrap();
        assert_eq!((read.ports.len(), read.others.len()), (PORTS_MAX, OTHERS_MAX));
        let old: Route = ciborium::from_reader(&[0xa0][..]).unwrap();
        assert_eq!(old, Route::default(), "a map without entries");
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
