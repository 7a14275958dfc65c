//! The port of an RDMA device that carries a load at one end, and the sizes and numbers that it uses.

use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::bounded::at_most;
use super::crossing::{self, Crossing};
use super::infiniband::{IbRate, Layer};
use super::pci::{self, Device};
use super::route::OTHERS_MAX;
use linerate_ceiling::infiniband::{Speed, WIDTHS};
use linerate_ceiling::{Link, roce};
use linerate_plan::transport::rdma::Addressing;
use linerate_units::Rate;

/// Largest number of PCI devices that are kept in a record: the card, and the bridges above it.
const DEVICES_MAX: usize = 32;

/// The port of an RDMA device that carries a load at one end, and the sizes and numbers that it uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RdmaEnd {
    /// Name of the device: `mlx5_0`.
    pub device: String,
    /// Number of the device's port, from 1.
    pub port: u32,
    /// The link layer of the port; `None` if unknown.
    pub layer: Option<Layer>,
    /// How packets are addressed: by LID, or by RoCE.
    pub addressing: Addressing,
    /// Index in the port's table of GIDs; `None` if packets have only local identifiers (LIDs).
    pub gid_index: Option<u32>,
    /// The GID at that index; `None` without an index.
    pub gid: Option<Ipv6Addr>,
    /// Local identifier (LID) of the port; 0 on Ethernet.
    pub lid: u32,
    /// Largest payload of a packet that the load uses, in bytes.
    pub mtu: u32,
    /// Largest payload of a packet for which this port is configured, in bytes.
    pub mtu_own: u32,
    /// Largest payload of a packet that this port supports, in bytes; 0 if unknown.
    pub mtu_most: u32,
    /// Largest payload that the device accepts inside a request, in bytes.
    pub inline: u32,
    /// Requests that each queue pair keeps in flight.
    pub depth: u32,
    /// Reads and atomic operations that each queue pair keeps in flight.
    pub reads_out: u32,
    /// Reads and atomic operations from the other end that each queue pair handles at a time.
    pub reads_in: u32,
    /// Largest value of [`RdmaEnd::reads_out`] that this device supports; 0 if unknown.
    pub reads_out_most: u32,
    /// Largest value of [`RdmaEnd::reads_in`] that this device supports; 0 if unknown.
    pub reads_in_most: u32,
    /// Whether threads poll for completions, so that they are busy at any load.
    pub polls: bool,
    /// Whether the device is made by software, so that the host's CPUs do its work and its rate is nominal.
    pub software: bool,
    /// Rate, width and speed of the link; `None` if unknown.
    pub rate: Option<IbRate>,
    /// The network port that belongs to this port; `None` if there is none.
    pub netdev: Option<Netdev>,
    /// NUMA node of the device; `None` if unknown, or if the device has none.
    pub node: Option<u32>,
    /// PCI address of the device; empty if it has none.
    pub pci: String,
    /// The card and the PCI bridges above it, sorted by address.
    #[serde(deserialize_with = "at_most::<_, _, DEVICES_MAX>")]
    pub slots: Vec<Device>,
    /// Other active ports of RDMA devices on this host.
    #[serde(deserialize_with = "at_most::<_, _, OTHERS_MAX>")]
    pub others: Vec<OtherPort>,
}

/// The network port that belongs to a port of an RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Netdev {
    /// Name of the network port.
    pub name: String,
    /// Speed of the network port; `None` if the driver does not report it.
    pub speed: Option<Rate>,
    /// Maximum transmission unit of the network port, in bytes.
    pub mtu: Option<u32>,
}

/// An active port of an RDMA device that the load does not use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherPort {
    /// Name of the RDMA device.
    pub device: String,
    /// Number of the device's port, from 1.
    pub port: u32,
    /// Name of the network port that belongs to it; empty if unknown.
    pub netdev: String,
    /// Rate of the port as the kernel reports it; `None` if unknown.
    pub rate: Option<Rate>,
    /// PCI address of the device; empty if it has none.
    pub pci: String,
}

impl RdmaEnd {
    /// Name of the port in text: `mlx5_0 port 1`.
    pub fn name(&self) -> String {
        format!("{} port {}", self.device, self.port)
    }

    /// Id of the port: `mlx5_0/1`, as the program `rdma` writes it. In records it is the subject of the port's
    /// counters.
    pub fn id(&self) -> String {
        format!("{}/{}", self.device, self.port)
    }

    /// Name of the network port that belongs to this port; empty if none is known.
    pub fn netdev_name(&self) -> &str {
        self.netdev.as_ref().map_or("", |netdev| &netdev.name)
    }

    /// The link of the port; `None` if its speed is unknown, or if the device is made by software.
    pub fn link(&self) -> Option<Link> {
        if self.software {
            return None;
        }
        if self.layer == Some(Layer::InfiniBand) {
            return infiniband(self.rate.as_ref()?);
        }
        let speed = self.netdev.as_ref()?.speed?;
        Some(Link::Ethernet(speed))
    }

    /// The IP address in the packets' headers; `None` if they have no IP header.
    pub fn address(&self) -> Option<IpAddr> {
        let gid = self.gid.filter(|_| self.addressing == Addressing::RoceV2)?;
        Some(IpAddr::V6(gid).to_canonical())
    }

    /// The PCI Express links between the device and the processor, the device's own first.
    pub fn crossings(&self) -> Vec<Crossing<'_>> {
        let card = self.pci.parse().ok();
        let card = card.and_then(|address| pci::at(&self.slots, address));
        card.map_or_else(Vec::new, |card| crossing::crossings(&self.slots, card))
    }

    /// Whether another port belongs to the same card, so that both share its slot.
    pub fn shares_card(&self, other: &OtherPort) -> bool {
        let card = |pci: &str| pci.rsplit_once('.').map(|(card, _)| card.to_owned());
        other.device == self.device
            || card(&self.pci).is_some_and(|own| card(&other.pci) == Some(own))
    }

    /// The largest payload of a packet that this port could use, with another MTU of its network port or of the subnet.
    pub fn mtu_possible(&self) -> u32 {
        self.mtu_most.max(self.mtu_own)
    }

    /// The smallest MTU of a network port with which RoCE packets have this payload.
    pub fn netdev_mtu_for(payload: u32) -> u32 {
        // The MTU is a round number, as all vendors recommend for 4096 B.
        let room = payload.saturating_add(roce::RESERVED);
        room.checked_next_multiple_of(100).unwrap_or(u32::MAX)
    }
}

/// The InfiniBand link at this rate; `None` if its width or speed is unknown.
fn infiniband(rate: &IbRate) -> Option<Link> {
    let mut known = Speed::NAMES.iter();
    let (_, speed) = known.find(|(name, _)| *name == rate.speed)?;
    WIDTHS.contains(&rate.width).then_some(Link::InfiniBand { width: rate.width, speed: *speed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(width: u32, speed: &str) -> IbRate {
        IbRate { rate: Rate(40_000_000_000), width, speed: speed.to_owned() }
    }

    fn capacity(end: &RdmaEnd) -> Option<f64> {
        end.link().map(|link| link.capacity().low() * 8.0 / 1e9)
    }

    #[test]
    fn a_link_has_the_rate_of_its_data() {
        let end = |width, speed: &str| RdmaEnd {
            layer: Some(Layer::InfiniBand),
            rate: Some(rate(width, speed)),
            ..RdmaEnd::default()
        };
        // For QDR the kernel shows the signalling rate of 40 Gb/s, of which 32 Gb/s are data.
        assert_eq!(capacity(&end(4, "QDR")), Some(32.0));
        assert!((capacity(&end(2, "HDR")).unwrap() - 100.0).abs() < 1e-9);
        assert_eq!(capacity(&end(3, "HDR")), None);
        assert_eq!(capacity(&end(4, "ABC")), None);
        assert_eq!(capacity(&RdmaEnd::default()), None);
    }

    #[test]
    fn the_rate_of_a_software_device_is_no_link() {
        let netdev = Netdev { speed: Some(Rate(25_000_000_000)), ..Netdev::default() };
        let end = |software| RdmaEnd {
            layer: Some(Layer::Ethernet),
            rate: Some(rate(1, "FDR10")),
            netdev: Some(netdev.clone()),
            software,
            ..RdmaEnd::default()
        };
        assert_eq!(capacity(&end(false)), Some(25.0));
        assert_eq!(capacity(&end(true)), None);
    }

    #[test]
    fn the_functions_of_a_card_share_its_slot() {
        let shares = |device: &str, pci: &str| {
            let end = RdmaEnd {
                device: "mlx5_0".to_owned(),
                pci: "0000:01:00.0".to_owned(),
                ..RdmaEnd::default()
            };
            end.shares_card(&OtherPort {
                device: device.to_owned(),
                pci: pci.to_owned(),
                ..OtherPort::default()
            })
        };
        assert!(shares("mlx5_1", "0000:01:00.1"));
        assert!(shares("mlx5_0", ""), "another port of the device");
        assert!(!shares("mlx5_1", "0000:02:00.0"));
        assert!(!shares("mlx5_1", "0001:01:00.1"));
        assert!(!shares("mlx5_1", ""));
    }

    #[test]
    fn large_packets_need_a_large_mtu_of_ethernet() {
        assert_eq!(RdmaEnd::netdev_mtu_for(4096), 4200);
        assert_eq!(RdmaEnd::netdev_mtu_for(u32::MAX), u32::MAX);
        for payload in [1024, 2048, 4096] {
            let mtu = RdmaEnd::netdev_mtu_for(payload);
            assert_eq!(roce::payload(mtu), Some(payload));
        }
    }

    #[test]
    fn lists_of_another_host_are_bounded() {
        let end = RdmaEnd {
            slots: vec![Device::default(); DEVICES_MAX + 1],
            others: vec![OtherPort::default(); OTHERS_MAX + 1],
            ..RdmaEnd::default()
        };
        let mut bytes = Vec::new();
        ciborium::into_writer(&end, &mut bytes).unwrap();
        let got: RdmaEnd = ciborium::from_reader(&bytes[..]).unwrap();
        assert_eq!((got.slots.len(), got.others.len()), (DEVICES_MAX, OTHERS_MAX));
    }
}
