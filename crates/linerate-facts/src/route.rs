//! The route from a host to the other end, and the devices below it, down to the slots of its cards.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::bounded::at_most;
use super::crossing::{self, Crossing};
use super::nic::Nic;
use super::pci::{self, Device};
use linerate_units::Rate;

/// Largest number of ports of a stack that are kept in a record.
pub const PORTS_MAX: usize = 32;
/// Largest number of ports off the route that are kept in a record.
pub const OTHERS_MAX: usize = 16;
/// Largest number of addresses of one port that are kept in a record.
pub const NETWORKS_MAX: usize = 8;
/// Largest number of PCI devices that are kept in a record: cards, and the bridges above them.
const DEVICES_MAX: usize = 128;

/// The route by which the path's connections leave a host, as it was when the session began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// Address of this end of the path.
    pub own: Option<IpAddr>,
    /// Address of the other end of the path.
    pub peer: Option<IpAddr>,
    /// The neighbour (router) that packets are sent to; `None` if the other end itself is a neighbour.
    pub gateway: Option<IpAddr>,
    /// The port of the route, followed by the ports below it, each with its stack, its wire and its errors.
    #[serde(deserialize_with = "at_most::<_, _, PORTS_MAX>")]
    pub ports: Vec<Nic>,
    /// The PCI devices of these ports and the bridges above them, sorted by address.
    #[serde(deserialize_with = "at_most::<_, _, DEVICES_MAX>")]
    pub pci: Vec<Device>,
    /// Ports off the route that have a wire, carrier and their own address.
    #[serde(deserialize_with = "at_most::<_, _, OTHERS_MAX>")]
    pub others: Vec<Other>,
    /// The ports that may answer ARP requests for this end's address: ports with an address in its network, including
    /// the owner, and ports without any. Empty if there is only the owner, and in records from before they were read.
    #[serde(deserialize_with = "at_most::<_, _, OTHERS_MAX>")]
    pub siblings: Vec<Sibling>,
}

/// A port that may answer ARP requests for this end's address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sibling {
    /// Index of the port in its network namespace.
    pub index: u32,
    /// Name of the port.
    pub name: String,
    /// Whether the port owns this end's address.
    pub owns: bool,
    /// Whether the port itself has no IPv4 address.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_bare: bool,
}

/// A port that the route does not use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Other {
    /// Name of the port.
    pub name: String,
    /// Speed of the port; `None` if the driver does not report it.
    pub speed: Option<Rate>,
    /// Addresses of the port that are valid beyond the link, each with the prefix length of its network.
    #[serde(deserialize_with = "at_most::<_, _, NETWORKS_MAX>")]
    pub networks: Vec<(IpAddr, u8)>,
}

impl Route {
    /// The port of the route with this index.
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

    /// Number of VLAN tags in each frame on the wire.
    pub fn tags(&self) -> u32 {
        self.ports.iter().filter(|nic| nic.kind == "vlan").count() as u32
    }

    /// The PCI Express links between a port's card and the processor, the card's own link first. Empty if the port
    /// itself is not a PCI device.
    pub fn crossings(&self, nic: &Nic) -> Vec<Crossing<'_>> {
        let card = nic.pci.parse().ok().filter(|_| nic.device == nic.pci);
        let Some(card) = card.and_then(|address| pci::at(&self.pci, address)) else {
            return Vec::new();
        };
        crossing::crossings(&self.pci, card)
    }

    /// A port of the route whose wire is half duplex; `None` if there is none.
    pub fn half_duplex(&self) -> Option<&Nic> {
        let mut wires = self.wires()?.into_iter();
        wires.find(|nic| nic.is_half())
    }

    /// Whether the counters of the route's port include all that its wires carry. A VLAN port counts only its own
    /// packets.
    pub fn counts_wires(&self) -> bool {
        let first = self.ports.first();
        first.is_some_and(|nic| nic.kind.is_empty() || nic.kind == "bond")
    }
}

/// Whether `address` is in the network of the address `own`, which has a prefix length.
pub fn shares_network(own: (IpAddr, u8), address: IpAddr) -> bool {
    let same = |a: u128, b: u128, bits: u32, prefix: u8| {
        let host = bits.saturating_sub(u32::from(prefix));
        // For a prefix length of 0 the shift gives `None`: every address is in the network.
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
