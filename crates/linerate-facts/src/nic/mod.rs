//! Network ports: their hardware, their settings and the ports below them.

pub mod counted;
mod errors;
mod link;
mod negotiate;
mod offloads;
mod queues;
mod tunnel;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Gap;
use super::exact::exact;
use super::shaping::Shaper;
use super::usb::{self, HUBS_MAX, Hub};
use linerate_units::Rate;

pub use errors::{Counter, PortErrors};
pub use link::{Duplex, Fec, LinkModes, Pause, mode_speed, speed_of_mbps};
pub use offloads::Offloads;
pub use queues::{Channels, Coalesce, Queue, QueueDirection, Rings, Rss, Setting};
pub use tunnel::{Overflow, Tunnel, TunnelKind, overflow};

/// Minimum speed of a port for which one CPU may be too few. At 10 Gb/s, 812,000 full Ethernet frames arrive per
/// second, or 14.9 million of the smallest. Any CPU can process a tenth of that.
//= IEEE 802.3-2022, sections 3.1.1 and 4.4.2: 1538 bytes on the wire for a full frame, 84 for the smallest
pub const FAST: Rate = Rate(10_000_000_000);

/// Buses of emulated devices. The speed of their ports is nominal.
pub const VIRTUAL_BUSES: [&str; 4] = ["virtio", "vmbus", "xen", "vio"];
/// Drivers of emulated devices on other buses. The speed of their ports is nominal.
pub const VIRTUAL_DRIVERS: [&str; 8] =
    ["virtio_net", "hv_netvsc", "vif", "vmxnet3", "ena", "gve", "mana", "ibmveth"];

/// Largest number of shapers of one port that are kept.
pub const SHAPERS_MAX: usize = 64;

/// All ports of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// The ports, in the kernel's order.
    pub nics: Vec<Nic>,
    /// IP fragments that this network namespace counted since boot; `None` if they were not read, or if there is no
    /// tunnel.
    pub fragments: Option<Fragments>,
    /// Addresses of the ports that have any address.
    pub addresses: Vec<PortAddresses>,
    /// Names of the ports of the default routes; `None` if unknown. They are read only if there is a Wi-Fi port.
    pub default_ports: Option<Vec<String>>,
    /// The readings of network ports that failed.
    pub gaps: Vec<Gap>,
}

/// The addresses of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortAddresses {
    /// Index of the port in its network namespace.
    pub port: u32,
    /// Hardware address of the port; empty if it has none, or if unknown.
    pub hardware: String,
    /// IP addresses that are valid beyond the link, with the prefix lengths of their networks: `192.0.2.7/24`.
    pub ip: Vec<String>,
}

/// Counts of IP fragments since boot, IPv4 and IPv6 together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fragments {
    /// Fragments created from packets that were too large for a port.
    #[serde(serialize_with = "exact")]
    pub created: u64,
    /// Fragments received, before they are reassembled.
    #[serde(serialize_with = "exact")]
    pub received: u64,
    /// Packets that were too large for a port and must not be fragmented.
    #[serde(serialize_with = "exact")]
    pub refused: u64,
}

/// A network port. Unknown text is empty. `None` means unknown or not supported; if the value should be known, there is
/// a gap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nic {
    /// Name of the port, such as `eth0`.
    pub name: String,
    /// Index of the port in its network namespace. If it is unknown, a number above 2^31 - 1, which no kernel uses.
    pub index: u32,
    /// Kind of a port that is made by software: `veth`, `bond`, `vlan`, `vxlan`, `ipoib` ...; empty for other ports.
    pub kind: String,
    /// Name of the port's driver: `mlx5_core`, `virtio_net`.
    pub driver: String,
    /// Version of the port's firmware.
    pub firmware: String,
    /// Name of the device that the port belongs to, on its bus: `0000:03:00.0`, `virtio2`.
    pub device: String,
    /// PCI address of the port's device, or of its parent; empty for USB devices, which have no slot.
    pub pci: String,
    /// The signalling rate of the port's USB link, of which headers and waits take a part; `None` if the port is not on
    /// USB.
    pub usb: Option<Rate>,
    /// The USB hubs above the port, the nearest first.
    #[serde(deserialize_with = "super::bounded::at_most::<_, _, HUBS_MAX>")]
    pub usb_hubs: Vec<Hub>,
    /// NUMA node of the port's device.
    pub node: Option<u32>,
    /// Whether the port is a Wi-Fi port.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_wifi: bool,
    /// Whether the port has no wire of its own: its speed is nominal and gives no ceiling.
    pub is_virtual: bool,
    /// Whether the port is up and its lower layer has carrier.
    pub up: bool,
    /// Why the port is down, if the driver reports it: `no cable`.
    pub down: String,
    /// Maximum transmission unit of the port, in bytes.
    pub mtu: Option<u32>,
    /// The largest MTU that the driver accepts.
    pub mtu_max: Option<u32>,
    /// The link modes of both ends of the wire, and the speed in use.
    pub link: LinkModes,
    /// Forward error correction of the link.
    pub fec: Option<Fec>,
    /// The offloads: work that the device or the stack does for many packets at once.
    pub offloads: Option<Offloads>,
    /// Channels (groups of queues with an interrupt each).
    pub channels: Option<Channels>,
    /// Sizes of the descriptor rings.
    pub rings: Option<Rings>,
    /// How interrupts of the port are delayed and combined.
    pub coalesce: Option<Coalesce>,
    /// Flow control on the link.
    pub pause: Option<Pause>,
    /// How received packets are spread over queues.
    pub rss: Option<Rss>,
    /// Whether kernel threads poll the queues (threaded NAPI), on any CPU; `None` when unknown.
    pub threaded: Option<bool>,
    /// Queues with the CPUs and interrupts that serve them, receive queues first.
    pub queues: Vec<Queue>,
    /// The ports below this one, and the port that it is part of.
    pub stack: Stack,
    /// Queueing discipline at the port's root: `mq`, `fq_codel`, `noqueue`; empty when unknown.
    pub qdisc: String,
    /// Queueing disciplines and classes of the port that delay packets on purpose.
    #[serde(deserialize_with = "super::bounded::at_most::<_, _, SHAPERS_MAX>")]
    pub shapers: Vec<Shaper>,
    /// Errors and drops of the port since boot.
    pub errors: PortErrors,
    /// The driver's own counters, added up over all queues, as far as [`counted::is_kept`] keeps them.
    pub counters: Vec<Counter>,
    /// What an earlier reading in the same text showed. The record of a run has none.
    #[serde(skip)]
    pub before: Earlier,
}

/// What the first of several readings of a port showed, where a text has several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The driver's counters; empty if they appear only once.
    pub counters: Vec<Counter>,
    /// Interrupt coalescing; `None` if it appears only once.
    pub coalesce: Option<Coalesce>,
}

/// The ports below a port, and the bond, bridge or team that it is part of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stack {
    /// Index of the bond, bridge or team that the port is part of.
    pub above: Option<u32>,
    /// Indices of the ports directly below, which this port is made of.
    pub below: Vec<u32>,
    /// Whether the port below is in another network namespace.
    pub below_hidden: bool,
    /// Number of the LACP aggregator that this member of a bond is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregator: Option<u16>,
    /// VLAN tag of a VLAN port.
    pub vlan: Option<u16>,
    /// How the bond distributes traffic, if the port is a bond.
    pub bond: Option<Bond>,
    /// The bytes that a tunnel adds to each packet; `None` for other ports, and in records from before this was read.
    pub tunnel: Option<Tunnel>,
}

/// How a bond distributes traffic over its members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bond {
    /// Mode of the bond: `802.3ad`, `active-backup` ...
    pub mode: String,
    /// The packet fields by which the bond chooses a member: `layer2`, `layer3+4` ...
    pub hash: String,
    /// Index of the only member in use; `None` if several are in use.
    pub active: Option<u32>,
    /// Number of the LACP aggregator whose members carry the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregator: Option<u16>,
    /// Hardware address of the LACP partner in this aggregator; zeros if no system answers, empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub partner: String,
}

/// The mode of a bond that uses LACP with the other end.
pub const AGGREGATED: &str = "802.3ad";

/// Names of hash policies that use only fields which all packets between two hosts have in common.
//= Linux Documentation/networking/bonding.rst, xmit_hash_policy
const OF_HOSTS: [&str; 4] = ["layer2", "layer2+3", "encap2+3", "vlan+srcmac"];

impl Bond {
    /// Whether a member carries traffic of the bond, as far as its aggregator shows: LACP uses the ports of one
    /// aggregator only.
    pub fn aggregates(&self, member: &Nic) -> bool {
        let own = self.aggregator.zip(member.stack.aggregator);
        self.mode != AGGREGATED || own.is_none_or(|(own, of_member)| own == of_member)
    }

    /// Whether the bond uses LACP and no system at the other end answers.
    pub fn has_no_partner(&self) -> bool {
        self.mode == AGGREGATED && self.partner == "00:00:00:00:00:00"
    }

    /// Whether all traffic to one host leaves the bond through one member.
    pub fn sends_by_one(&self) -> bool {
        self.mode != "balance-rr" && OF_HOSTS.contains(&self.hash.as_str())
    }
}

impl Nic {
    /// The number of known queues in one direction.
    pub fn queues_of(&self, way: QueueDirection) -> usize {
        self.queues.iter().filter(|q| q.direction == way).count()
    }

    /// The slowest USB wire between the port and its controller, by [`usb::slowest`].
    pub fn slowest_usb(&self) -> Option<(Option<&str>, Rate)> {
        self.usb.map(|own| usb::slowest(own, &self.usb_hubs))
    }

    /// Whether the port is made by software, so that no device sends interrupts for it.
    pub fn is_software(&self) -> bool {
        let own_kind = !self.kind.is_empty() && self.driver == self.kind;
        self.is_virtual && (own_kind || self.driver == "loopback")
    }

    /// CPUs to which RPS passes received packets.
    pub fn rps_cpus(&self) -> BTreeSet<u32> {
        let receive = self.queues.iter().filter(|q| q.direction == QueueDirection::Rx);
        receive.filter_map(|q| q.cpus.clone()).flatten().collect()
    }

    /// Whether the port has a wire of [`FAST`] or more. Any settings fill a slower wire.
    pub fn is_fast(&self) -> bool {
        !self.is_virtual && self.has_fast_speed()
    }

    /// Whether the port's speed, which may be nominal, is [`FAST`] or more.
    pub fn has_fast_speed(&self) -> bool {
        self.link.speed.is_some_and(|speed| speed >= FAST)
    }
}

impl Network {
    /// The addresses of the port with this index.
    pub fn addresses_of(&self, index: u32) -> Option<&PortAddresses> {
        self.addresses.iter().find(|known| known.port == index)
    }

    /// The port with this index.
    pub fn nic(&self, index: u32) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.index == index)
    }

    /// The tunnels that leave checksums and segmentation to the port with this index, or may do so because the port
    /// below them is unknown.
    pub fn wrapping_over(&self, index: u32) -> Vec<&Nic> {
        let may_leave_by = |nic: &&Nic| {
            let leaves = self.leaves(nic.index);
            leaves.contains(&index) || leaves == [nic.index] && !nic.stack.below_hidden
        };
        let tunnels = self.nics.iter().filter(|nic| nic.is_wrapping());
        tunnels.filter(may_leave_by).collect()
    }

    /// The lowest ports below the port with this index, through bonds, bridges, VLANs and tunnels; the port itself if
    /// nothing is below it. The search ends even if ports form a loop.
    pub fn leaves(&self, index: u32) -> Vec<u32> {
        let (mut seen, mut leaves) = (BTreeSet::new(), Vec::new());
        let mut open = vec![index];
        while let Some(index) = open.pop() {
            if !seen.insert(index) {
                continue;
            }
            match self.nic(index) {
                Some(nic) if !nic.stack.below.is_empty() => {
                    open.extend(nic.stack.below.iter().rev());
                }
                _ => leaves.push(index),
            }
        }
        leaves
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A port with this index, on top of the ports `below`.
    pub(crate) fn nic(index: u32, below: &[u32]) -> Nic {
        let stack = Stack { below: below.to_vec(), ..Stack::default() };
        Nic { name: format!("eth{index}"), index, stack, ..Nic::default() }
    }

    #[test]
    fn a_tunnel_leaves_its_work_to_the_port_below_or_perhaps_to_any() {
        let over = |below: &[u32], hidden, kind: &str| {
            let mut tunnel = nic(9, below);
            kind.clone_into(&mut tunnel.kind);
            tunnel.stack.below_hidden = hidden;
            let network = Network {
                nics: vec![tunnel, nic(5, &[2]), nic(2, &[]), nic(3, &[])],
                ..Network::default()
            };
            [2, 3].map(|index| network.wrapping_over(index).len())
        };
        assert_eq!(over(&[5], false, "vxlan"), [1, 0]);
        assert_eq!(over(&[], false, "geneve"), [1, 1]);
        assert_eq!(over(&[], true, "geneve"), [0, 0], "in another namespace");
        assert_eq!(over(&[5], false, "wireguard"), [0, 0]);
    }

    #[test]
    fn leaves_are_found_through_all_layers_and_loops_end() {
        // A VLAN on a bond with two members.
        let nics = vec![nic(9, &[5]), nic(5, &[2, 3]), nic(2, &[]), nic(3, &[])];
        let network = Network { nics, ..Network::default() };
        assert_eq!(network.leaves(9), [2, 3]);
        assert_eq!(network.leaves(2), [2]);
        assert_eq!(network.leaves(77), [77]);
        let looped = Network {
            nics: vec![nic(1, &[2]), nic(2, &[1, 3]), nic(3, &[3])],
            ..Network::default()
        };
        assert_eq!(looped.leaves(1), [0; 0]);
    }
}
