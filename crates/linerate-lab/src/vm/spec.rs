//! The description of a virtual machine, and the arguments of QEMU for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_units::Bytes;

use super::error::VmError;

/// A virtual machine of the PC kind (q35).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// NUMA nodes of the guest; at least one.
    pub nodes: Vec<Node>,
    /// Distance between any two nodes in the firmware's table, where 10 is a node's distance to itself.
    pub distance: u8,
    /// PCIe slots of the guest. Ports of network cards are joined by one hub.
    pub slots: Vec<Slot>,
    /// Commands of a shell that the guest runs before it accepts programs, such as [`SOFT_RDMA`].
    pub setup: &'static str,
    /// A network cable to another machine.
    pub cable: Option<Cable>,
    /// Text that is added to the command line of the guest's kernel.
    pub arguments: Vec<String>,
    /// Longest time from a start until the guest accepts programs; after that it is started again, at most twice.
    pub boot_within: Duration,
}

impl Default for Spec {
    /// Two CPUs, one NUMA node, 1 GiB of memory, no slots.
    fn default() -> Self {
        Self {
            nodes: vec![Node { cpus: 2, memory: Bytes(1 << 30) }],
            distance: 21,
            slots: Vec::new(),
            setup: "",
            cable: None,
            arguments: Vec::new(),
            boot_within: Duration::from_secs(60),
        }
    }
}

/// A NUMA node of the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Number of CPUs of the node; may be zero if another node has some.
    pub cpus: u32,
    pub memory: Bytes,
}

/// A PCIe slot: a root port, and the card in it.
///
/// The port's best link is as given. Its current link, and every link that an emulated card reports, is 2.5
/// GT/s x1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// NUMA node to which the slot belongs; `None` if the firmware does not report one.
    pub node: Option<usize>,
    /// Highest speed of the slot.
    pub speed: Generation,
    pub lanes: u8,
    /// The device in the slot.
    pub card: Option<Card>,
}

/// Speed of a PCIe link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Generation 1: 2.5 GT/s.
    One,
    /// Generation 2: 5 GT/s.
    Two,
    /// Generation 3: 8 GT/s.
    Three,
    /// Generation 4: 16 GT/s.
    Four,
}

/// A card that QEMU emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Card {
    /// An NVMe disk of this size that reads as zeros and discards all writes. Its serial number is `slotN`, where N
    /// counts from 1.
    Nvme(Bytes),
    /// A network port of 1 Gb/s, Intel 82574L. Its address is `52:54:00:00:00:N`, where N counts from 1.
    E1000e,
    /// A virtio network port. Its address is `52:54:00:00:00:N`, where N counts from 1.
    VirtioNet,
}

/// One end of a cable between two machines: a virtio network port, for packets of at most 4,500 B.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cable {
    /// The UNIX socket that carries the packets. The machine at the first end makes it, and must have booted before the
    /// other machine starts.
    pub socket: PathBuf,
    pub end: CableEnd,
}

/// Which end of the cable a machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CableEnd {
    /// The port has the address `52:54:00:00:01:01`.
    First,
    /// The port has the address `52:54:00:00:01:02`.
    Second,
}

/// Setup that makes two Soft-RoCE devices with a wire between them: `rxe0` at 10.9.0.1, `rxe1` at 10.9.0.2.
pub const SOFT_RDMA: &str = include_str!("guest/rdma");
/// Setup after which disks with planted faults can be made, in `/sys/kernel/config/nullb`.
pub const DISKS: &str = include_str!("guest/disks");
/// Widths that a link can have.
//= PCI Express Base Specification 4.0, section 7.5.3.6: Maximum Link Width.
const LANES: [u8; 7] = [1, 2, 4, 8, 12, 16, 32];
/// Bus numbers that the slots of one node may take.
const BUSES_OF_A_NODE: usize = 32;
/// Largest number of nodes for which 256 bus numbers suffice, including the buses that belong to no node.
const MOST_NODES: usize = 256 / BUSES_OF_A_NODE - 1;

impl Generation {
    fn option(self) -> &'static str {
        match self {
            Self::One => "2_5",
            Self::Two => "5",
            Self::Three => "8",
            Self::Four => "16",
        }
    }
}

impl Spec {
    /// Returns QEMU's arguments for the machine.
    pub(super) fn qemu(&self) -> Result<Vec<String>, VmError> {
        self.check()?;
        let mut words = self.nodes_qemu();
        let mut with_slots: Vec<usize> = self.slots.iter().filter_map(|s| s.node).collect();
        with_slots.sort_unstable();
        with_slots.dedup();
        for node in with_slots {
            let bus = (node + 1) * BUSES_OF_A_NODE;
            let bridge = format!("pxb-pcie,id=node{node},bus_nr={bus},numa_node={node},bus=pcie.0");
            words.extend(["-device".to_owned(), bridge]);
        }
        for (index, slot) in self.slots.iter().enumerate() {
            words.extend(slot.qemu(index + 1));
        }
        words.extend(self.cable.iter().flat_map(Cable::qemu));
        Ok(words)
    }

    fn check(&self) -> Result<(), VmError> {
        let cpus: u32 = self.nodes.iter().map(|n| n.cpus).sum();
        if cpus == 0 || self.nodes.len() > MOST_NODES {
            let why = format!("it needs a CPU, and 1 to {MOST_NODES} nodes");
            return Err(VmError::impossible(why));
        }
        if !(11..=254).contains(&self.distance) {
            let why = format!("a distance of {} is not within 11 to 254", self.distance);
            return Err(VmError::impossible(why));
        }
        for slot in &self.slots {
            if !LANES.contains(&slot.lanes) {
                let why = format!("no PCIe link has {} lanes", slot.lanes);
                return Err(VmError::impossible(why));
            }
            if slot.node.is_some_and(|node| node >= self.nodes.len()) {
                let why = "a slot belongs to a node that it does not have";
                return Err(VmError::impossible(why));
            }
        }
        Ok(())
    }

    fn nodes_qemu(&self) -> Vec<String> {
        let cpus: u32 = self.nodes.iter().map(|n| n.cpus).sum();
        let memory: u64 = self.nodes.iter().map(|n| n.memory.0).sum();
        let alike = self.nodes.iter().all(|n| n.cpus == self.nodes[0].cpus);
        let sockets = if alike { self.nodes.len() as u32 } else { 1 };
        let cores = cpus / sockets;
        let mut words = vec![
            "-m".to_owned(),
            format!("size={memory}B"),
            "-smp".to_owned(),
            format!("cpus={cpus},sockets={sockets},cores={cores},threads=1"),
        ];
        let mut first = 0;
        for (id, node) in self.nodes.iter().enumerate() {
            let memory = format!("memory-backend-ram,id=memory{id},size={}B", node.memory.0);
            let last = first + node.cpus;
            let cpus = match node.cpus {
                0 => String::new(),
                1 => format!(",cpus={first}"),
                _ => format!(",cpus={first}-{}", last - 1),
            };
            let node = format!("node,nodeid={id}{cpus},memdev=memory{id}");
            words.extend(["-object".to_owned(), memory, "-numa".to_owned(), node]);
            first = last;
        }
        // Distances come after all nodes, because QEMU must know the nodes first.
        for near in 0..self.nodes.len() {
            for far in near + 1..self.nodes.len() {
                let distance = format!("dist,src={near},dst={far},val={}", self.distance);
                words.extend(["-numa".to_owned(), distance]);
            }
        }
        words
    }

    /// Returns the commands that the guest runs before it accepts programs, because there is no udev that would load
    /// drivers.
    pub(super) fn setup(&self) -> String {
        let cards: Vec<Card> = self.slots.iter().filter_map(|s| s.card).collect();
        let mut drivers: Vec<&str> = cards.iter().map(|c| c.driver()).collect();
        drivers.extend(self.cable.iter().map(|_| Card::VirtioNet.driver()));
        let disks = cards.iter().filter(|c| matches!(c, Card::Nvme(_))).count();
        let load = match drivers[..] {
            [] => String::new(),
            _ => format!("modprobe -a {}\n", drivers.join(" ")),
        };
        // A driver finds its disks only some time after it has been loaded.
        let wait = match disks {
            0 => String::new(),
            _ => format!(
                "set -- /dev/nvme*n1\nuntil [ -b \"$1\" ] && [ $# -ge {disks} ]; do\n  \
                 sleep 0.1\n  set -- /dev/nvme*n1\ndone\n"
            ),
        };
        load + &wait + self.setup
    }
}

impl Slot {
    fn qemu(&self, number: usize) -> Vec<String> {
        let bus = match self.node {
            Some(node) => format!("node{node}"),
            None => "pcie.0".to_owned(),
        };
        let (speed, lanes) = (self.speed.option(), self.lanes);
        let port = format!(
            "pcie-root-port,id=slot{number},slot={number},chassis={number},bus={bus},\
             x-speed={speed},x-width={lanes}"
        );
        let mut words = vec!["-device".to_owned(), port];
        if let Some(card) = self.card {
            words.extend(card.qemu(number));
        }
        words
    }
}

impl Card {
    fn driver(self) -> &'static str {
        match self {
            Self::Nvme(_) => "nvme",
            Self::E1000e => "e1000e",
            Self::VirtioNet => "virtio_net",
        }
    }

    fn qemu(self, number: usize) -> [String; 4] {
        let port = |model: &str| {
            [
                "-netdev".to_owned(),
                format!("hubport,id=port{number},hubid=0"),
                "-device".to_owned(),
                format!(
                    "{model},netdev=port{number},mac=52:54:00:00:00:{number:02x},romfile=,\
                     bus=slot{number}"
                ),
            ]
        };
        match self {
            Self::Nvme(size) => [
                "-drive".to_owned(),
                format!(
                    "if=none,id=disk{number},format=raw,file.driver=null-co,\
                     file.read-zeroes=on,file.size={}",
                    size.0
                ),
                "-device".to_owned(),
                format!("nvme,serial=slot{number},drive=disk{number},bus=slot{number}"),
            ],
            Self::E1000e => port("e1000e"),
            Self::VirtioNet => port("virtio-net-pci"),
        }
    }
}

impl Cable {
    fn qemu(&self) -> [String; 4] {
        let (number, server) = match self.end {
            CableEnd::First => (1, "on"),
            CableEnd::Second => (2, "off"),
        };
        let stream = format!("stream,id=cable,server={server},addr.type=unix,addr.path=");
        let port = format!("netdev=cable,mac=52:54:00:00:01:{number:02},host_mtu=4500,romfile=");
        [
            "-netdev".to_owned(),
            joined(&stream, &self.socket, ""),
            "-device".to_owned(),
            format!("virtio-net-pci,{port},bus=pcie.0"),
        ]
    }
}

/// Returns `before`, the path and `after` as one option of QEMU, in which commas of the path are doubled.
pub(super) fn joined(before: &str, path: &Path, after: &str) -> String {
    let path = path.to_string_lossy().replace(',', ",,");
    format!("{before}{path}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(node: Option<usize>, lanes: u8) -> Slot {
        Slot { node, speed: Generation::Three, lanes, card: Some(Card::Nvme(Bytes(1 << 30))) }
    }

    fn node(cpus: u32) -> Node {
        let memory = Bytes(1 << 29);
        Node { cpus, memory }
    }

    fn result_of(nodes: &[Node], slots: &[Slot]) -> String {
        let spec = Spec { nodes: nodes.to_vec(), slots: slots.to_vec(), ..Spec::default() };
        spec.qemu().map_or_else(|e| e.to_string(), |w| w.join(" "))
    }

    #[test]
    fn nodes_share_cpus_and_memory() {
        let words = result_of(&[node(2), node(2)], &[]);
        for want in [
            "-m size=1073741824B -smp cpus=4,sockets=2,cores=2,threads=1",
            "node,nodeid=0,cpus=0-1,memdev=memory0",
            "node,nodeid=1,cpus=2-3,memdev=memory1",
            "dist,src=0,dst=1,val=21",
        ] {
            assert!(words.contains(want), "{want}: {words}");
        }
        let uneven = result_of(&[node(3), node(0)], &[]);
        assert!(uneven.contains("cpus=3,sockets=1,cores=3"), "{uneven}");
        assert!(uneven.contains("node,nodeid=1,memdev=memory1"), "{uneven}");
    }

    #[test]
    fn slots_hang_below_their_node() {
        let words = result_of(&[node(1), node(1)], &[slot(Some(1), 4), slot(None, 16)]);
        for want in [
            "pxb-pcie,id=node1,bus_nr=64,numa_node=1",
            "id=slot1,slot=1,chassis=1,bus=node1,x-speed=8,x-width=4",
            "nvme,serial=slot1,drive=disk1,bus=slot1",
            "id=slot2,slot=2,chassis=2,bus=pcie.0,x-speed=8,x-width=16",
        ] {
            assert!(words.contains(want), "{want}: {words}");
        }
        assert!(!words.contains("id=node0"), "{words}");
    }

    #[test]
    fn a_cable_has_two_ends() {
        let ends = [CableEnd::First, CableEnd::Second].map(|end| {
            let socket = PathBuf::from("/run/a,b");
            let spec = Spec { cable: Some(Cable { socket, end }), ..Spec::default() };
            assert_eq!(spec.setup(), "modprobe -a virtio_net\n");
            spec.qemu().unwrap().join(" ")
        });
        for (words, server, address) in [(&ends[0], "on", "01:01"), (&ends[1], "off", "01:02")] {
            let netdev = format!("server={server},addr.type=unix,addr.path=/run/a,,b -device");
            assert!(words.contains(&netdev), "{words}");
            assert!(words.contains(&format!("mac=52:54:00:00:{address},")), "{words}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let many = [node(1); MOST_NODES + 1];
        for (nodes, slots, why) in [
            (&[][..], &[][..], "it needs a CPU"),
            (&[node(0)], &[], "it needs a CPU"),
            (&many, &[], "1 to 7 nodes"),
            (&[node(1)], &[slot(Some(0), 3)], "3 lanes"),
            (&[node(1)], &[slot(Some(1), 4)], "node that it does not"),
        ] {
            let words = result_of(nodes, slots);
            assert!(words.contains(why), "{why}: {words}");
        }
        assert!(result_of(&many[1..], &[slot(Some(0), 32)]).starts_with("-m"));
        for (distance, fine) in [(10, false), (11, true), (254, true), (255, false)] {
            let spec = Spec { distance, ..Spec::default() };
            assert_eq!(spec.qemu().is_ok(), fine, "{distance}");
        }
    }

    #[test]
    fn a_driver_is_loaded_for_each_card_and_disks_are_waited_for() {
        let mut spec = Spec::default();
        assert_eq!(spec.setup(), "");
        spec.slots = vec![slot(None, 4), slot(None, 4)];
        let text = spec.setup();
        assert!(text.starts_with("modprobe -a nvme nvme\n"), "{text}");
        assert!(text.contains("$# -ge 2"), "{text}");
        spec.setup = SOFT_RDMA;
        assert_eq!(spec.setup(), text + SOFT_RDMA);
    }
}
