//! Network ports: their hardware, settings and parts.

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

/// Minimum speed of a port for which one CPU may be too few: at 10 Gb/s, 812,000 full Ethernet frames arrive
/// per second, and 14.9 million of the smallest. A tenth of that is possible for any CPU.
//= IEEE 802.3-2022, sections 3.1.1 and 4.4.2: 1538 bytes on the wire for a full frame, 84 for the smallest
pub const FAST: Rate = Rate(10_000_000_000);

/// Buses of emulated devices: the speed of their ports is nominal.
pub const VIRTUAL_BUSES: [&str; 4] = ["virtio", "vmbus", "xen", "vio"];
/// Drivers of emulated devices on other buses: the speed of their ports is nominal.
pub const VIRTUAL_DRIVERS: [&str; 8] =
    ["virtio_net", "hv_netvsc", "vif", "vmxnet3", "ena", "gve", "mana", "ibmveth"];

/// Largest number of shapers of a port that are kept.
pub const SHAPERS_MAX: usize = 64;

/// All ports of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// The ports, in the kernel's order.
    pub nics: Vec<Nic>,
    /// Packets that this network namespace cut up since boot; `None` if it was not read, or if there is no tunnel.
    pub fragments: Option<Fragments>,
    /// Addresses of the ports that have any.
    pub addresses: Vec<PortAddresses>,
    /// Names of the ports by which packets without a route of their own leave; `None` if unknown. Read if there is a Wi-Fi
    /// port.
    pub default_ports: Option<Vec<String>>,
    /// The readings of network ports that failed.
    pub gaps: Vec<Gap>,
}

/// The addresses of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortAddresses {
    /// Index of the port.
    pub port: u32,
    /// Hardware address; empty if it has none, or if unknown.
    pub hardware: String,
    /// Addresses of IP that are valid beyond the link, with the leading bits of their networks: `192.0.2.7/24`.
    pub ip: Vec<String>,
}

/// IP fragments since boot, IPv4 and IPv6 together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fragments {
    /// Fragments made of packets that were too large for a port.
    #[serde(serialize_with = "exact")]
    pub created: u64,
    /// Fragments received, to be reassembled.
    #[serde(serialize_with = "exact")]
    pub received: u64,
    /// Packets that were too large and must not be fragmented.
    #[serde(serialize_with = "exact")]
    pub refused: u64,
}

/// A network port. Unknown text is empty; `None` is unknown or not supported, and if it should have been known
/// there is a gap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nic {
    /// Interface name.
    pub name: String,
    /// Index in its network namespace; where it is unknown, a number above 2^31 - 1, which no kernel gives.
    pub index: u32,
    /// Kind of a port made by software: `veth`, `bond`, `vlan`, `vxlan`, `ipoib` ...
    pub kind: String,
    /// Driver: `mlx5_core`, `virtio_net`.
    pub driver: String,
    /// Version of the firmware.
    pub firmware: String,
    /// Device that it belongs to, by the name on its bus: `0000:03:00.0`, `virtio2`.
    pub device: String,
    /// PCI address of the device, or of its parent; empty for USB devices, which have no slot.
    pub pci: String,
    /// The signalling rate of the port's USB link, including headers and waits; `None` if the port is not on
    /// USB.
    pub usb: Option<Rate>,
    /// The hubs above it on USB, the nearest first.
    #[serde(deserialize_with = "super::bounded::at_most::<_, _, HUBS_MAX>")]
    pub usb_hubs: Vec<Hub>,
    /// NUMA node.
    pub node: Option<u32>,
    /// Whether it is a Wi-Fi port.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_wifi: bool,
    /// Whether the port has no wire of its own: its speed is nominal and gives no ceiling.
    pub is_virtual: bool,
    /// Whether the port is up and its lower layer has carrier.
    pub up: bool,
    /// Why the port is down, if the driver reports it: `no cable`.
    pub down: String,
    /// Maximum transmission unit in bytes.
    pub mtu: Option<u32>,
    /// The largest value that the driver accepts.
    pub mtu_max: Option<u32>,
    /// The link modes that were agreed with the other end of the wire.
    pub link: LinkModes,
    /// Forward error correction.
    pub fec: Option<Fec>,
    /// The offloads: work that the device or the stack does for many packets at once.
    pub offloads: Option<Offloads>,
    /// Channels (groups of queues with an interrupt each).
    pub channels: Option<Channels>,
    /// Sizes of the descriptor rings.
    pub rings: Option<Rings>,
    /// Interrupt coalescing.
    pub coalesce: Option<Coalesce>,
    /// Flow control on the link.
    pub pause: Option<Pause>,
    /// How received packets are spread over queues.
    pub rss: Option<Rss>,
    /// Whether kernel threads poll the queues (threaded NAPI), on any CPU; `None` when unknown.
    pub threaded: Option<bool>,
    /// Queues with the CPUs and interrupts that serve them, receive queues first.
    pub queues: Vec<Queue>,
    /// The ports below this one.
    pub stack: Stack,
    /// Queueing discipline at its root: `mq`, `fq_codel`, `noqueue`; empty when unknown.
    pub qdisc: String,
    /// Disciplines and classes that delay packets on purpose.
    #[serde(deserialize_with = "super::bounded::at_most::<_, _, SHAPERS_MAX>")]
    pub shapers: Vec<Shaper>,
    /// Errors and drops since boot.
    pub errors: PortErrors,
    /// The driver's own counters that [`counted::is_kept`] keeps, added up over all queues.
    pub counters: Vec<Counter>,
    /// What an earlier reading of the same text showed; a record of a run has none.
    #[serde(skip)]
    pub before: Earlier,
}

/// What the first of several readings of a port showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The driver's counters; empty if they were read once.
    pub counters: Vec<Counter>,
    /// Interrupt coalescing; `None` if it was read once.
    pub coalesce: Option<Coalesce>,
}

/// The ports below a port, and the port that it is a part of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stack {
    /// Index of the bond, bridge or team that the port is part of.
    pub above: Option<u32>,
    /// Indices of the ports that the port is made of.
    pub below: Vec<u32>,
    /// True if the lower port is in another network namespace.
    pub below_hidden: bool,
    /// Aggregator of LACP that a member of a bond is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregator: Option<u16>,
    /// Tag of a VLAN.
    pub vlan: Option<u16>,
    /// How a bond spreads traffic.
    pub bond: Option<Bond>,
    /// The bytes that a tunnel adds to each packet; `None` for other ports, and in records from before it was
    /// read.
    pub tunnel: Option<Tunnel>,
}

/// How a bond spreads traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bond {
    /// `802.3ad`, `active-backup` ...
    pub mode: String,
    /// The fields that the bond's hash includes: `layer2`, `layer3+4` ...
    pub hash: String,
    /// Index of the only member in use, if there is one.
    pub active: Option<u32>,
    /// Aggregator of LACP whose members carry the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregator: Option<u16>,
    /// Hardware address of the system that answers by LACP in this aggregator; zeros if none does, empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub partner: String,
}

/// The mode of a bond that agrees with the other end by LACP.
pub const AGGREGATED: &str = "802.3ad";

/// Fields that a bond may hash and that are the same for all packets between two hosts.
//= Linux Documentation/networking/bonding.rst, xmit_hash_policy
const OF_HOSTS: [&str; 4] = ["layer2", "layer2+3", "encap2+3", "vlan+srcmac"];

impl Bond {
    /// Whether a member carries traffic of an aggregated bond, as far as its aggregator says so: LACP uses the ports of
    /// one aggregator.
    pub fn aggregates(&self, member: &Nic) -> bool {
        let own = self.aggregator.zip(member.stack.aggregator);
        self.mode != AGGREGATED || own.is_none_or(|(own, of_member)| own == of_member)
    }

    /// Whether no system answers by LACP.
    pub fn has_no_partner(&self) -> bool {
        self.mode == AGGREGATED && self.partner == "00:00:00:00:00:00"
    }

    /// Whether all traffic to one host leaves the bond by one member.
    pub fn sends_by_one(&self) -> bool {
        self.mode != "balance-rr" && OF_HOSTS.contains(&self.hash.as_str())
    }
}

impl Nic {
    /// The number of known queues of one direction.
    pub fn queues_of(&self, way: QueueDirection) -> usize {
        self.queues.iter().filter(|q| q.direction == way).count()
    }

    /// The slowest wire of USB between it and its controller, by [`usb::slowest`].
    pub fn slowest_usb(&self) -> Option<(Option<&str>, Rate)> {
        self.usb.map(|own| usb::slowest(own, &self.usb_hubs))
    }

    /// Whether the port was made by software: no device sends interrupts for it.
    pub fn is_software(&self) -> bool {
        let own_kind = !self.kind.is_empty() && self.driver == self.kind;
        self.is_virtual && (own_kind || self.driver == "loopback")
    }

    /// CPUs that RPS hands received packets to.
    pub fn rps_cpus(&self) -> BTreeSet<u32> {
        let receive = self.queues.iter().filter(|q| q.direction == QueueDirection::Rx);
        receive.filter_map(|q| q.cpus.clone()).flatten().collect()
    }

    /// Whether the port has a wire of [`FAST`] or more: slower wires are filled with any settings.
    pub fn is_fast(&self) -> bool {
        !self.is_virtual && self.has_fast_speed()
    }

    /// Whether its speed, which may be nominal, is [`FAST`] or more.
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

    /// The tunnels that leave checksums and segmentation to the port with this index, or may: the port below some is
    /// unknown.
    pub fn wrapping_over(&self, index: u32) -> Vec<&Nic> {
        let may_leave_by = |nic: &&Nic| {
            let leaves = self.leaves(nic.index);
            leaves.contains(&index) || leaves == [nic.index] && !nic.stack.below_hidden
        };
        let tunnels = self.nics.iter().filter(|nic| nic.is_wrapping());
        tunnels.filter(may_leave_by).collect()
    }

    /// The ports at the bottom of the one with this index, through bonds, bridges, VLANs and
    /// tunnels; the port itself if nothing is below. A loop, which no kernel makes, ends.
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

    /// A port and the ports below it.
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
        // A VLAN on a bond of two.
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
