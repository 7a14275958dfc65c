//! The standard ceilings: one row for each piece of hardware, with the payload rate of each way to use it
//! (variant). The links of disks are in `disks.rs`.

use schemars::JsonSchema;
use serde::Serialize;

use super::disks::disks;
use crate::ethernet::{self, Ip, Transport};
use crate::infiniband::{self, Speed};
use crate::memory::Channels;
use crate::pci::BUSES;
use crate::pcie::{self, USUAL_PAYLOADS};
use crate::{Link, roce};
use linerate_units::Rate;

/// What kind of hardware or service a ceiling belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An Ethernet port or link.
    Ethernet,
    /// A limit that a cloud sets for one flow or for an instance.
    Cloud,
    /// An InfiniBand link.
    #[serde(rename = "infiniband")]
    InfiniBand,
    /// A PCI Express slot.
    Pcie,
    /// A shared bus: conventional PCI or PCI-X.
    Pci,
    /// A USB link.
    Usb,
    /// A Serial ATA link.
    Sata,
    /// One lane of Serial Attached SCSI.
    Sas,
    /// A Fibre Channel port.
    FibreChannel,
    /// A memory channel.
    Memory,
}

/// How a program moves bytes through a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// Sockets: TCP or UDP; over InfiniBand by IPoIB.
    Sockets,
    /// Verbs: RDMA over InfiniBand or over Ethernet.
    Verbs,
}

/// A way to use hardware, and the payload rate that the hardware carries in this way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variant {
    /// The way in words: `reads of memory, payload 128 B`. Empty if there is only one way.
    pub name: &'static str,
    /// Highest payload rate in bits per second.
    pub rate: f64,
    /// The only carrier that can use the hardware in this way; `None` if sockets and verbs can.
    pub(super) carrier: Option<Carrier>,
    /// Largest payload of a PCIe packet in bytes; `None` for other hardware.
    pub(super) payload: Option<u32>,
}

impl Variant {
    pub(super) const fn plain(name: &'static str, rate: f64) -> Self {
        Self { name, rate, carrier: None, payload: None }
    }

    const fn by(name: &'static str, rate: f64, carrier: Carrier) -> Self {
        Self { carrier: Some(carrier), ..Self::plain(name, rate) }
    }
}

/// Link or slot of a row, to compare with the facts about a path; other hardware has no facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Link(Link),
    Slot { generation: u32, lanes: u32 },
    Other,
}

/// Hardware with a ceiling for each way to use it (variant).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) part: Part,
    /// Whether few hosts have this hardware, or few loads use it up.
    pub(super) is_rare: bool,
    pub(super) variants: Vec<Variant>,
}

/// Standard Ethernet rates in Mb/s.
//= IEEE 802.3-2022, section 1.4; IEEE 802.3df-2024 for 800 Gb/s
const PORTS: [u64; 13] = [
    10, 100, 1_000, 2_500, 5_000, 10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000,
    800_000,
];

/// Rate limits of clouds in Mb/s, and what each limit applies to.
//= Amazon EC2 user guide, instance network bandwidth: one flow 5 Gb/s, or 10 Gb/s within a cluster placement group
//= Amazon EC2 instance types, network specifications: 10 to 200 Gb/s for an instance
const CLOUD: [(u64, &str); 8] = [
    (5_000, "one flow"),
    (10_000, "one flow in a placement group"),
    (10_000, "an instance"),
    (12_500, "an instance"),
    (25_000, "an instance"),
    (50_000, "an instance"),
    (100_000, "an instance"),
    (200_000, "an instance"),
];

/// Standards of memory modules, and their speeds in millions of transfers per second.
//= JEDEC JESD79-2F, JESD79-3F, JESD79-4B and JESD79-5: speed grades
const MEMORY: [(&str, &[u32]); 4] = [
    ("DDR2", &[400, 533, 667, 800]),
    ("DDR3", &[1066, 1333, 1600, 1866]),
    ("DDR4", &[2133, 2400, 2666, 2933, 3200]),
    ("DDR5", &[4000, 4800, 5200, 5600, 6000, 6400]),
];

const STAMPED: Transport = Transport::Tcp { timestamps: true };
const PLAIN: Transport = Transport::Tcp { timestamps: false };

/// Usual IP packets on Ethernet: name, MTU, version of IP, transport.
const PACKETS: [(&str, u32, Ip, Transport); 8] = [
    ("TCP with timestamps, MTU 1500", 1500, Ip::V4, STAMPED),
    ("TCP without timestamps, MTU 1500", 1500, Ip::V4, PLAIN),
    ("TCP over IPv6, MTU 1500", 1500, Ip::V6, STAMPED),
    ("UDP, MTU 1500", 1500, Ip::V4, Transport::Udp),
    ("TCP with timestamps, MTU 9000", 9000, Ip::V4, STAMPED),
    ("TCP without timestamps, MTU 9000", 9000, Ip::V4, PLAIN),
    ("TCP over IPv6, MTU 9000", 9000, Ip::V6, STAMPED),
    ("UDP, MTU 9000", 9000, Ip::V4, Transport::Udp),
];

/// Packets of RDMA over Ethernet: name, Ethernet MTU.
const ROCE: [(&str, u32); 2] = [("RoCEv2, MTU 1500", 1500), ("RoCEv2, MTU 9000", 9000)];

/// Packets of RDMA over InfiniBand: name, InfiniBand MTU. No system chooses less than 1024 bytes for large messages.
const RDMA: [(&str, u32); 3] =
    [("RDMA, MTU 1024", 1024), ("RDMA, MTU 2048", 2048), ("RDMA, MTU 4096", 4096)];

/// Packets of IP over InfiniBand: name, MTU of InfiniBand, MTU of IP.
const IPOIB: [(&str, u32, u32); 3] = [
    ("IPoIB, MTU 2044", 2048, 2044),
    ("IPoIB, MTU 4092", 4096, 4092),
    ("IPoIB, MTU 65520", 4096, 65_520),
];

/// Newest listed generation of PCI Express: there is no hardware of generation 7 yet.
const NEWEST: u32 = 6;

/// Listed widths of slots, in lanes: common hardware has no link of 12 lanes.
const LANES: [u32; 5] = [1, 2, 4, 8, 16];

/// Names of the buses that most boards and cards of their time had.
const COMMON_BUSES: [&str; 3] = ["pci-32/33", "pci-64/66", "pcix-64/133"];

/// Rows of every standard ceiling.
pub(super) fn rows() -> Vec<Row> {
    let ports = PORTS.map(|mbps| link(Link::Ethernet(Rate(mbps * 1_000_000))));
    let speeds = Speed::NAMES.into_iter();
    let lanes = speeds.flat_map(|(_, speed)| {
        let of = move |width| link(Link::InfiniBand { width, speed });
        infiniband::WIDTHS.map(of)
    });
    let slots = (1..=NEWEST).flat_map(|generation| LANES.map(|lanes| slot(generation, lanes)));
    let mut rows = Vec::from(ports);
    rows.extend(CLOUD.map(|(mbps, what)| cloud(mbps, what)));
    rows.extend(lanes);
    rows.extend(slots);
    rows.extend(buses());
    rows.extend(disks());
    rows.extend(memory());
    rows
}

/// A row of hardware that no fact about a path can name.
pub(super) fn plain(kind: Kind, name: String, variants: Vec<Variant>) -> Row {
    Row { kind, name, part: Part::Other, is_rare: false, variants }
}

/// The row of a network link of any speed.
pub(super) fn link(link: Link) -> Row {
    let bits = link.capacity().low() * 8.0;
    let (kind, name, variants) = match link {
        Link::Ethernet(rate) => (Kind::Ethernet, format!("Ethernet {rate}"), framed(bits)),
        Link::InfiniBand { width, speed } => {
            let name = format!("InfiniBand {} {width}x", speed.name());
            (Kind::InfiniBand, name, packed(bits))
        }
    };
    Row { part: Part::Link(link), is_rare: is_rare_link(link), ..plain(kind, name, variants) }
}

/// Whether an InfiniBand link has an unusual width: cards and cables have 1 or 4 lanes, and 2 where a port of four
/// lanes from HDR on is split.
const fn is_rare_link(link: Link) -> bool {
    match link {
        Link::Ethernet(_) => false,
        Link::InfiniBand { width, speed } => {
            let is_split = matches!(speed, Speed::Hdr | Speed::Ndr | Speed::Xdr);
            match width {
                1 | 4 => false,
                2 => !is_split,
                _ => true,
            }
        }
    }
}

/// Payload rates of an Ethernet link of `bits` bits per second, for sockets and for RDMA.
fn framed(bits: f64) -> Vec<Variant> {
    let roce = ROCE.into_iter().filter_map(|(name, mtu)| {
        let packet = roce::packet(&[mtu], &[roce::Version::V2(Ip::V4)], 0)?;
        let rate = bits / packet.wire_per_byte.low();
        Some(Variant::by(name, rate, Carrier::Verbs))
    });
    let mut all = sockets(bits);
    all.extend(roce);
    all
}

/// Payload rates of an Ethernet link of `bits` bits per second, for sockets only.
fn sockets(bits: f64) -> Vec<Variant> {
    let one = |(name, mtu, ip, transport)| {
        let packet = ethernet::packet(&[mtu], &[ip], &[transport], 0, None)?;
        let rate = bits / packet.wire_per_byte.low();
        Some(Variant::by(name, rate, Carrier::Sockets))
    };
    PACKETS.into_iter().filter_map(one).collect()
}

/// Payload rates of an InfiniBand link of `bits` bits per second, for RDMA and for IPoIB.
fn packed(bits: f64) -> Vec<Variant> {
    let rdma = RDMA.into_iter().filter_map(|(name, mtu)| {
        let packet = infiniband::rdma(&[mtu])?;
        let rate = bits / packet.wire_per_byte.low();
        Some(Variant::by(name, rate, Carrier::Verbs))
    });
    let ipoib = IPOIB.into_iter().filter_map(|(name, mtu, ip_mtu)| {
        let packet = infiniband::ipoib(&[mtu], &[ip_mtu], &[Ip::V4], &[STAMPED])?;
        let rate = bits / packet.wire_per_byte.low();
        Some(Variant::by(name, rate, Carrier::Sockets))
    });
    rdma.chain(ipoib).collect()
}

fn cloud(mbps: u64, what: &str) -> Row {
    let rate = Rate(mbps * 1_000_000);
    let name = format!("cloud limit of {rate} for {what}");
    plain(Kind::Cloud, name, sockets(rate.0 as f64))
}

/// Names of the variants of a slot, for each usual payload: a read of memory and a write to memory.
const CROSSINGS: [[&str; 2]; USUAL_PAYLOADS.len()] = [
    ["reads of memory, payload 128 B", "writes to memory, payload 128 B"],
    ["reads of memory, payload 256 B", "writes to memory, payload 256 B"],
    ["reads of memory, payload 512 B", "writes to memory, payload 512 B"],
];

/// The row of a slot. Its rates count data packets only: the share that link packets take is counted in the share
/// of the ceiling that is reached.
fn slot(generation: u32, lanes: u32) -> Row {
    let mut variants = Vec::new();
    for (payload, names) in USUAL_PAYLOADS.into_iter().zip(CROSSINGS) {
        let slot = pcie::Slot {
            generations: vec![generation],
            lanes: vec![lanes],
            payloads: vec![payload],
            requests: vec![512],
        };
        let bits = slot.capacity().low() * 8.0;
        for (name, cost) in names.into_iter().zip([slot.read(), slot.write()]) {
            variants.push(Variant {
                payload: Some(payload),
                ..Variant::plain(name, bits / cost.per_byte.low())
            });
        }
    }
    // Old cards have 1, 4 or 8 lanes; there are few cards of the newest generation.
    let is_old = generation < 3;
    Row {
        part: Part::Slot { generation, lanes },
        is_rare: generation == NEWEST || (is_old && matches!(lanes, 2 | 16)),
        ..plain(Kind::Pcie, format!("PCIe gen{generation} x{lanes}"), variants)
    }
}

fn buses() -> impl Iterator<Item = Row> {
    BUSES.into_iter().map(|bus| {
        let rate = bus.capacity().low() * 8.0;
        let name = format!("bus {}, both directions together", bus.name);
        Row {
            is_rare: !COMMON_BUSES.contains(&bus.name),
            ..plain(Kind::Pci, name, vec![Variant::plain("", rate)])
        }
    })
}

fn memory() -> impl Iterator<Item = Row> {
    let all = MEMORY.into_iter();
    let modules = all.flat_map(|(standard, speeds)| speeds.iter().map(move |s| (standard, *s)));
    modules.map(|(standard, speed)| {
        let rate = Channels { count: 1, speed }.capacity().low() * 8.0;
        // The ceiling is for one channel, crossed once. A copy crosses up to three times, and several channels
        // share a load.
        let name = format!("one memory channel {standard}-{speed}, crossed once");
        // Few loads use up a single channel.
        Row { is_rare: true, ..plain(Kind::Memory, name, vec![Variant::plain("", rate)]) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_published_rates() {
        let rows = rows();
        for (name, variant, gigabits) in [
            ("Ethernet 1 Gb/s", "TCP with timestamps, MTU 1500", 0.9415),
            ("Ethernet 100 Gb/s", "RoCEv2, MTU 9000", 98.04),
            ("cloud limit of 12.5 Gb/s for an instance", "UDP, MTU 9000", 12.41),
            ("InfiniBand FDR 1x", "RDMA, MTU 4096", 13.55),
            ("PCIe gen2 x4", "reads of memory, payload 128 B", 13.84),
            ("PCIe gen5 x16", "writes to memory, payload 256 B", 460.9),
            ("bus pci-32/33, both directions together", "", 1.0667),
            ("one memory channel DDR4-2666, crossed once", "", 170.6),
        ] {
            let row = rows.iter().find(|row| row.name == name).unwrap();
            let found = row.variants.iter().find(|v| v.name == variant).unwrap();
            let off = found.rate / gigabits / 1e9 - 1.0;
            assert!(off.abs() < 1e-3, "{name}, {variant}: {}", found.rate);
        }
    }

    #[test]
    fn each_row_has_its_own_name_and_a_variant() {
        let rows = rows();
        for (n, row) in rows.iter().enumerate() {
            assert!(row.variants.iter().all(|v| v.rate > 1e6), "{row:?}");
            assert!(!row.variants.is_empty(), "{row:?}");
            assert!(rows[..n].iter().all(|other| other.name != row.name), "{row:?}");
        }
    }
}
