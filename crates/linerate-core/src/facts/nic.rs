//! Network ports: what they are, how they are set, and what they are made of.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Gap;
use super::shaping::Shaper;
use crate::units::Rate;

/// Most shapers of a port that are kept.
pub const SHAPERS_MAX: usize = 64;

/// All ports of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// The ports, in the kernel's order.
    pub nics: Vec<Nic>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// A network port. Text that is not known is empty; `None` is unknown or not supported, and where
/// it should have been known there is a gap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nic {
    /// Interface name.
    pub name: String,
    /// Index in its network namespace.
    pub index: u32,
    /// Kind of a port made by software: `veth`, `bond`, `vlan`, `vxlan`, `ipoib` ...
    pub kind: String,
    /// Driver: `mlx5_core`, `virtio_net`.
    pub driver: String,
    /// Version of the firmware.
    pub firmware: String,
    /// Device that it belongs to, by the name on its bus: `0000:03:00.0`, `virtio2`.
    pub device: String,
    /// Address on the PCI bus of that device or of the one that it sits on; empty for what hangs on
    /// USB, which has no slot.
    pub pci: String,
    /// NUMA node.
    pub node: Option<u32>,
    /// True for ports without a wire of their own: a speed is nominal and gives no ceiling.
    pub is_virtual: bool,
    /// Up, and the lower layer has carrier.
    pub up: bool,
    /// Why it is down, where the driver tells: `no cable`.
    pub down: String,
    /// Maximum transmission unit in bytes.
    pub mtu: Option<u32>,
    /// The largest that the driver takes.
    pub mtu_max: Option<u32>,
    /// What was agreed with the other end of the wire.
    pub link: LinkModes,
    /// Forward error correction.
    pub fec: Option<Fec>,
    /// What the device or the stack does for many packets at once.
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
    /// Queues with what serves them, receive queues first.
    pub queues: Vec<Queue>,
    /// What it is made of.
    pub stack: Stack,
    /// Queueing discipline at its root: `mq`, `fq_codel`, `noqueue`; empty when unknown.
    pub qdisc: String,
    /// Disciplines and classes that hold packets back on purpose.
    #[serde(deserialize_with = "super::bounded::at_most::<_, _, SHAPERS_MAX>")]
    pub shapers: Vec<Shaper>,
    /// Errors and drops since boot.
    pub errors: PortErrors,
    /// The driver's own counters of loss and of allowances: allowances of a cloud even at zero,
    /// others where they are not zero.
    pub counters: Vec<Counter>,
}

/// What the two ends of a wire agreed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkModes {
    /// Speed; `None` where the driver does not tell one.
    pub speed: Option<Rate>,
    /// Duplex.
    pub duplex: Option<Duplex>,
    /// Whether the speed is agreed with the other end.
    pub autoneg: Option<bool>,
    /// Lanes in use.
    pub lanes: Option<u32>,
    /// Modes that the port and what is plugged into it can do: `100000baseCR4/Full`.
    pub supported: Vec<String>,
    /// Modes that the port offers.
    pub advertised: Vec<String>,
    /// Modes that the other end offers; empty when unknown.
    pub peer: Vec<String>,
}

/// Whether both ends may talk at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplex {
    /// One at a time.
    Half,
    /// Both at once.
    Full,
}

/// Forward error correction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fec {
    /// What is in use: `RS`, `BASER`, `LLRS`, `None`; empty when unknown.
    pub active: String,
    /// What it is set to.
    pub configured: Vec<String>,
    /// Whether the driver chooses.
    pub auto: Option<bool>,
    /// Blocks that were corrected.
    pub corrected: Option<u64>,
    /// Blocks that could not be corrected: their packets are lost.
    pub uncorrectable: Option<u64>,
}

/// A setting and how far it can be raised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Now.
    pub now: Option<u32>,
    /// At most.
    pub most: Option<u32>,
}

/// Offloads by the kernel's names, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Offloads {
    /// That are on.
    pub on: Vec<String>,
    /// That are off and could be switched on.
    pub off: Vec<String>,
}

/// Offloads without which each packet costs a CPU its own work: what people call them, and the
/// kernel's names, of which one is enough.
//= net/ethtool/common.c, netdev_features_strings
const NEEDED: [(&str, &[&str]); 6] = [
    ("scatter-gather", &["tx-scatter-gather"]),
    (
        "tx checksum",
        &["tx-checksum-ip-generic", "tx-checksum-ipv4"],
    ),
    ("TSO", &["tx-tcp-segmentation"]),
    ("GSO", &["tx-generic-segmentation"]),
    ("rx checksum", &["rx-checksum"]),
    ("GRO", &["rx-gro"]),
];

impl Offloads {
    /// Those that bulk traffic needs, are off, and could be on.
    pub fn lacking(&self) -> Vec<&'static str> {
        let in_any = |names: &[&str], list: &[String]| {
            list.iter().any(|offload| names.contains(&offload.as_str()))
        };
        let lacks = |names: &[&str]| !in_any(names, &self.on) && in_any(names, &self.off);
        let lacking = NEEDED.iter().filter(|(_, names)| lacks(names));
        lacking.map(|(name, _)| *name).collect()
    }
}

impl Setting {
    /// Both, where it could be raised.
    pub fn below_most(self) -> Option<(u32, u32)> {
        let (now, most) = (self.now?, self.most?);
        (now < most).then_some((now, most))
    }
}

/// Channels of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Channels {
    /// That only receive.
    pub rx: Setting,
    /// That only send.
    pub tx: Setting,
    /// That do both.
    pub combined: Setting,
}

/// Descriptor rings of a port, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rings {
    /// Receive.
    pub rx: Setting,
    /// Send.
    pub tx: Setting,
}

/// How long interrupts are held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coalesce {
    /// Microseconds after a packet was received.
    pub rx_usecs: Option<u32>,
    /// Packets received.
    pub rx_frames: Option<u32>,
    /// Microseconds after a packet was sent.
    pub tx_usecs: Option<u32>,
    /// Packets sent.
    pub tx_frames: Option<u32>,
    /// The driver adapts the receiving side.
    pub adaptive_rx: Option<bool>,
    /// The driver adapts the sending side.
    pub adaptive_tx: Option<bool>,
}

/// Flow control on the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pause {
    /// Agreed with the other end.
    pub autoneg: Option<bool>,
    /// The port stops when it is told to.
    pub rx: Option<bool>,
    /// The port tells the other end to stop.
    pub tx: Option<bool>,
    /// Pause frames received.
    pub rx_frames: Option<u64>,
    /// Pause frames sent.
    pub tx_frames: Option<u64>,
}

/// How received packets are spread over queues by their hash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rss {
    /// Hash function: `toeplitz`, `xor`, `crc32`; empty when unknown.
    pub function: String,
    /// For each value of the hash, the queue.
    pub table: Vec<u32>,
}

impl Rss {
    /// The queues that get packets, in ascending order.
    pub fn queues(&self) -> Vec<u32> {
        let queues: BTreeSet<u32> = self.table.iter().copied().collect();
        queues.into_iter().collect()
    }
}

/// Way of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Receives.
    Rx,
    /// Sends.
    Tx,
}

/// A queue of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Which way.
    pub direction: Direction,
    /// Number, counted for each direction.
    pub number: u32,
    /// Poller that serves it (6.8+).
    pub napi: Option<u32>,
    /// Interrupt that wakes the poller.
    pub irq: Option<u32>,
    /// CPUs that packets are handed to (RPS), or that send by this queue (XPS); empty is off.
    pub cpus: Option<Vec<u32>>,
    /// Flows that follow their application (RFS), of a receive queue; 0 is off.
    pub flows: Option<u64>,
}

/// What a port is made of, and part of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stack {
    /// Index of the bond, bridge or team that it is part of.
    pub above: Option<u32>,
    /// Indices of the ports that it is made of.
    pub below: Vec<u32>,
    /// True if what is below lies in another network namespace.
    pub below_hidden: bool,
    /// Tag of a VLAN.
    pub vlan: Option<u16>,
    /// How a bond spreads traffic.
    pub bond: Option<Bond>,
}

/// How a bond spreads traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bond {
    /// `802.3ad`, `active-backup` ...
    pub mode: String,
    /// What its hash looks at: `layer2`, `layer3+4` ...
    pub hash: String,
    /// Index of the one member in use, where there is one.
    pub active: Option<u32>,
}

/// Errors of a port since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortErrors {
    /// Bad packets received.
    pub rx_errors: Option<u64>,
    /// Packets that could not be sent.
    pub tx_errors: Option<u64>,
    /// Packets received but dropped by the host, or of a protocol that it does not handle.
    pub rx_dropped: Option<u64>,
    /// Packets dropped on their way out.
    pub tx_dropped: Option<u64>,
    /// Packets lost because the host had no buffer for them.
    pub rx_missed: Option<u64>,
    /// Packets lost to an overrun of the receive queue.
    pub rx_fifo: Option<u64>,
    /// Packets received with a bad checksum: a bad cable or transceiver.
    pub rx_crc: Option<u64>,
    /// Collisions: half duplex.
    pub collisions: Option<u64>,
    /// Times that the link went up or down.
    pub carrier_changes: Option<u32>,
}

/// A counter by the name that its source gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Name.
    pub name: String,
    /// Value since it was last cleared.
    pub value: u64,
}

impl PortErrors {
    /// Errors and drops, by where; zeros and what is unknown left out. Not all of them are losses: what
    /// the kernel counts as received and dropped includes packets of protocols that nobody asked for,
    /// and what collided is sent again.
    //= Linux, Documentation/networking/statistics.rst: rx_dropped, collisions
    pub fn counted(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("rx errors", self.rx_errors),
            ("rx dropped or unhandled", self.rx_dropped),
            ("rx missed", self.rx_missed),
            ("rx fifo", self.rx_fifo),
            ("tx errors", self.tx_errors),
            ("tx dropped", self.tx_dropped),
            ("collisions", self.collisions),
        ];
        let some = |(name, count): (&'static str, Option<u64>)| Some((name, count?));
        all.into_iter()
            .filter_map(some)
            .filter(|(_, n)| *n > 0)
            .collect()
    }
}

impl Nic {
    /// How many queues of one way are known.
    pub fn queues_of(&self, way: Direction) -> usize {
        self.queues.iter().filter(|q| q.direction == way).count()
    }

    /// Whether it was made by software: no device sends interrupts for it.
    pub fn is_software(&self) -> bool {
        let own_kind = !self.kind.is_empty() && self.driver == self.kind;
        self.is_virtual && (own_kind || self.driver == "loopback")
    }

    /// Whether it has a wire of 10 Gb/s or more: slower ones are filled with any settings.
    pub fn is_fast(&self) -> bool {
        const FAST: Rate = Rate(10_000_000_000);
        !self.is_virtual && self.link.speed.is_some_and(|speed| speed >= FAST)
    }
}

impl LinkModes {
    /// Whether only one end may talk at a time. Above 1 Gb/s there is no such thing, whatever a driver
    /// says.
    //= IEEE 802.3-2022, section 44.1: operation above 1 Gb/s is full duplex only
    pub fn is_half(&self) -> bool {
        const FASTEST: Rate = Rate(1_000_000_000);
        self.duplex == Some(Duplex::Half) && self.speed.is_none_or(|speed| speed <= FASTEST)
    }

    /// The fastest mode that both ends offer; `None` where the other end's are unknown.
    pub fn fastest_common(&self) -> Option<Rate> {
        let common = self.advertised.iter().filter(|m| self.peer.contains(m));
        common.filter_map(|mode| mode_speed(mode)).max()
    }
}

/// Speed in Mb/s as drivers tell it; `None` for what they say when they do not know it: 0, and -1
/// in 16 and in 32 bits.
pub fn speed_of_mbps(mbps: u64) -> Option<Rate> {
    let known = mbps != 0 && mbps != u64::from(u16::MAX) && i32::try_from(mbps).is_ok();
    known.then_some(Rate(mbps.saturating_mul(1_000_000)))
}

/// Speed of a mode by its name: `100000baseCR4/Full`. Names that are no mode (`Pause`) have none.
pub fn mode_speed(name: &str) -> Option<Rate> {
    let (mbps, _) = name.split_once("base")?;
    speed_of_mbps(mbps.parse().ok()?)
}

impl Network {
    /// The port with this index.
    pub fn nic(&self, index: u32) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.index == index)
    }

    /// The ports at the bottom of the one with this index, through bonds, bridges, VLANs and
    /// tunnels; the port itself where nothing is below. A loop, which no kernel makes, ends.
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

    /// A port and the ports that it stands on.
    pub(in crate::facts) fn nic(index: u32, below: &[u32]) -> Nic {
        let stack = Stack {
            below: below.to_vec(),
            ..Stack::default()
        };
        Nic {
            name: format!("eth{index}"),
            index,
            stack,
            ..Nic::default()
        }
    }

    #[test]
    fn what_is_no_speed_is_none() {
        for mbps in [
            0,
            65_535,
            u64::from(u32::MAX),
            u64::MAX,
            i32::MAX as u64 + 1,
        ] {
            assert_eq!(speed_of_mbps(mbps), None, "{mbps}");
        }
        assert_eq!(speed_of_mbps(1), Some(Rate(1_000_000)));
        assert_eq!(speed_of_mbps(65_534), Some(Rate(65_534_000_000)));
        assert_eq!(speed_of_mbps(800_000), Some(Rate(800_000_000_000)));
        assert_eq!(
            mode_speed("100000baseCR4/Full"),
            Some(Rate(100_000_000_000))
        );
        assert_eq!(mode_speed("Pause"), None);
        assert_eq!(mode_speed("base"), None);
    }

    #[test]
    fn half_duplex_ends_at_a_gigabit() {
        let half = |duplex, mbps: Option<u64>| {
            let link = LinkModes {
                duplex,
                speed: mbps.and_then(speed_of_mbps),
                ..LinkModes::default()
            };
            link.is_half()
        };
        let duplex = Some(Duplex::Half);
        assert!(half(duplex, Some(1_000)) && half(duplex, None));
        assert!(!half(duplex, Some(2_500)) && !half(Some(Duplex::Full), Some(10)));
        assert!(!half(None, Some(10)));
    }

    #[test]
    fn the_fastest_common_mode_needs_both_ends() {
        let text = |modes: &[&str]| modes.iter().map(|&m| m.to_owned()).collect();
        let mut link = LinkModes {
            advertised: text(&["1000baseT/Full", "10000baseT/Full", "Pause"]),
            peer: text(&["1000baseT/Full", "Pause"]),
            ..LinkModes::default()
        };
        assert_eq!(link.fastest_common(), Some(Rate(1_000_000_000)));
        link.peer.clear();
        assert_eq!(link.fastest_common(), None);
    }

    #[test]
    fn leaves_are_found_through_all_layers_and_loops_end() {
        // A VLAN on a bond of two.
        let nics = vec![nic(9, &[5]), nic(5, &[2, 3]), nic(2, &[]), nic(3, &[])];
        let network = Network {
            nics,
            ..Network::default()
        };
        assert_eq!(network.leaves(9), [2, 3]);
        assert_eq!(network.leaves(2), [2]);
        assert_eq!(network.leaves(77), [77]);
        let looped = Network {
            nics: vec![nic(1, &[2]), nic(2, &[1, 3]), nic(3, &[3])],
            ..Network::default()
        };
        assert_eq!(looped.leaves(1), [0; 0]);
    }

    #[test]
    fn what_is_off_and_could_be_on_is_lacking() {
        let text = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        let lacking = |on: &[&str], off: &[&str]| {
            let offloads = Offloads {
                on: text(on),
                off: text(off),
            };
            offloads.lacking()
        };
        assert_eq!(lacking(&["rx-gro"], &["rx-lro"]), [""; 0]);
        assert_eq!(
            lacking(&[], &["rx-gro", "tx-tcp-segmentation"]),
            ["TSO", "GRO"]
        );
        let other = lacking(&["tx-checksum-ip-generic"], &["tx-checksum-ipv4"]);
        assert_eq!(other, [""; 0], "the other one does it");
        assert_eq!(lacking(&[], &["tx-checksum-ipv4"]), ["tx checksum"]);
    }

    #[test]
    fn a_table_names_the_queues_that_get_packets() {
        let rss = Rss {
            table: vec![0, 2, 0, 2],
            ..Rss::default()
        };
        assert_eq!(rss.queues(), [0, 2]);
    }
}
