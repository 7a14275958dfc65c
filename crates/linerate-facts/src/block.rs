//! Block devices and file systems: the devices that hold a path, down to the disks.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Gap;
use super::bounded::{CPUS, at_most};
use super::crossing::{Crossing, crossings};
use super::pci::{self, Device};
use linerate_units::Bytes;

/// Mount options on which the speed of a file system depends. Options with addresses and names are left out.
pub const MOUNT_OPTIONS: [&str; 18] = [
    "vers",
    "proto",
    "rsize",
    "wsize",
    "nconnect",
    "rdma",
    "multichannel",
    "max_channels",
    "cache",
    "seal",
    "sec",
    "sync",
    "noac",
    "dirsync",
    "compress",
    "compress-force",
    "dax",
    "nobarrier",
];

/// All block devices and file systems of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Storage {
    /// Block devices with a capacity, by name.
    pub devices: Vec<BlockDevice>,
    /// File systems on block devices or on other hosts, in the order in which they were mounted.
    pub filesystems: Vec<FileSystem>,
    /// The readings of block devices that failed.
    pub gaps: Vec<Gap>,
}

/// A block device. Text that is unknown is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockDevice {
    /// Name of the device: `nvme0n1`, `dm-0`.
    pub name: String,
    /// Device number, major and minor: `259:0`.
    pub number: String,
    /// The layer of storage that the device belongs to.
    pub layer: Layer,
    /// Name that the device mapper gives the device; empty for other devices.
    pub label: String,
    /// Names of the devices directly below, which this device is made of.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub below: Vec<String>,
    /// Capacity of the device.
    pub size: Option<Bytes>,
    /// Model of the disk; empty for other devices.
    pub model: String,
    /// How a disk is reached: `pcie`, `rdma`, `tcp`, `srp`, `iser`, `iscsi`, `fc`, `sas`, `usb`, `ata`, `virtio`.
    /// `raid` is a disk or a volume behind a RAID controller.
    pub transport: String,
    /// PCI address of the device's parent, such as its controller.
    pub pci: String,
    /// NUMA node of the device's parent.
    pub node: Option<u32>,
    /// Limits of the disk's request queue.
    pub queue: QueueLimits,
    /// Paths to the device, if it has several (NVMe, multipath); other NVMe disks have one path.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub paths: Vec<Path>,
    /// The policy that selects the path of a request: `numa`, `round-robin`, `queue-depth`.
    pub policy: String,
    /// Level of software RAID: `raid1`, `raid5`; empty for other devices.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub raid: String,
    /// Where software RAID marks the blocks that are being written: `none`, `+8` on the disks themselves, `file`; empty
    /// for other devices.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bitmap: String,
    /// The disk's PCI function and the bridges above it, sorted by address. Read only for disks that are measured.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "at_most::<_, _, CPUS>")]
    pub slots: Vec<Device>,
    /// Temperature in thousandths of a degree Celsius above which the disk slows down; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hottest: Option<i64>,
}

/// A limit that the operator of a host has set for a group of programs on one device (`io.max`). `None`: no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoLimit {
    /// The control group that has the limit: `/system.slice`.
    pub group: String,
    /// Number of the device, major and minor: `259:0`.
    pub number: String,
    /// Bytes that may be read in a second.
    pub read_bytes: Option<u64>,
    /// Bytes that may be written in a second.
    pub written_bytes: Option<u64>,
    /// Reads in a second.
    pub reads: Option<u64>,
    /// Writes in a second.
    pub writes: Option<u64>,
}

/// The layer of storage that a device belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A disk, or something that the kernel treats like a disk.
    #[default]
    Disk,
    /// A partition of a disk.
    Partition,
    /// A logical volume.
    Volume,
    /// An encrypted volume.
    Crypt,
    /// Several paths to one disk, joined by the device mapper.
    Multipath,
    /// A device of the device mapper with another kind of target.
    Mapped,
    /// Software RAID.
    Raid,
    /// A file that is used as a block device.
    Loop,
    /// A part of memory that is used as a block device.
    Memory,
}

impl Layer {
    /// The usual name of the layer in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Partition => "partition",
            Self::Volume => "logical volume",
            Self::Crypt => "encrypted",
            Self::Multipath => "multipath",
            Self::Mapped => "device mapper",
            Self::Raid => "software RAID",
            Self::Loop => "file",
            Self::Memory => "memory",
        }
    }
}

impl Path {
    /// Whether the path to the disk works; `None` if the path's state is unknown.
    pub fn is_live(&self) -> Option<bool> {
        if self.ana_state == "persistent-loss" {
            return Some(false);
        }
        let known = !self.state.is_empty();
        known.then(|| ["live", "running"].contains(&self.state.as_str()))
    }
}

impl BlockDevice {
    /// The PCI Express links between a disk and the processor, the disk's own first. Empty if they were not read.
    pub fn crossings(&self) -> Vec<Crossing<'_>> {
        let card = self.pci.parse().ok();
        let card = card.and_then(|address| pci::at(&self.slots, address));
        card.map(|card| crossings(&self.slots, card)).unwrap_or_default()
    }

    /// Number of paths that can carry requests under a policy that uses all paths. While there are optimized paths, no
    /// policy uses the others.
    //= torvalds/linux, drivers/nvme/host/multipath.c: __nvme_find_path and nvme_round_robin_path
    pub fn usable_ways(&self) -> usize {
        let of = |ana: &[&str]| {
            let live = self.paths.iter().filter(|path| path.is_live() == Some(true));
            live.filter(|path| ana.contains(&path.ana_state.as_str())).count()
        };
        match of(&["optimized", ""]) {
            0 => of(&["non-optimized"]),
            best => best,
        }
    }
}

/// Limits of a device's request queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueLimits {
    /// The I/O scheduler of the queue: `none`, `mq-deadline`.
    pub scheduler: String,
    /// Whether the device is a disk with moving heads. A virtual machine may see a wrong value.
    pub rotational: Option<bool>,
    /// Number of requests that may wait in each hardware queue.
    pub requests: Option<u64>,
    /// Number of hardware queues; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u64>,
    /// Number of commands that the device accepts at once (SCSI).
    pub depth: Option<u64>,
    /// Largest request that the kernel sends. It splits larger ones.
    pub largest: Option<Bytes>,
    /// Largest request that the hardware accepts.
    pub largest_hardware: Option<Bytes>,
    /// Number of pieces of memory in a request; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<u64>,
    /// Bytes that the kernel reads ahead of a sequential reader.
    pub read_ahead: Option<Bytes>,
    /// Size of a logical block, the unit of addresses.
    pub logical_block: Option<Bytes>,
    /// Size of a physical block, the unit that the device writes.
    pub physical_block: Option<Bytes>,
    /// Mode of the device's write cache: `write back` or `write through`.
    pub write_cache: String,
}

impl QueueLimits {
    /// The largest request for memory whose pages are not next to each other, which is usual; `None` if unknown.
    pub fn largest_scattered(&self) -> Option<Bytes> {
        let pieces = self.segments.and_then(|pieces| pieces.checked_mul(PAGE)).map(Bytes);
        Some(pieces.map_or(self.largest?, |pieces| pieces.min(self.largest.unwrap_or(pieces))))
    }
}

/// Bytes of a page of memory on most machines.
const PAGE: u64 = 4096;

/// A namespace of an NVMe subsystem, read from the name of its block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespace {
    /// Number of the subsystem. For a disk with a single path it may be the number of the controller.
    pub subsystem: u32,
    /// Number of the controller in the name of one path to the namespace (`nvme0c1n1`); `None` if the name has none.
    pub controller: Option<u32>,
    /// Number of the namespace within the subsystem.
    pub number: u32,
}

impl Namespace {
    /// Decodes a name such as `nvme0n1` or `nvme0c1n1`; `None` for other names, partitions included.
    pub fn of(name: &str) -> Option<Self> {
        let (left, number) = name.strip_prefix("nvme")?.split_once('n')?;
        let (subsystem, controller) = match left.split_once('c') {
            Some((subsystem, controller)) => (subsystem, Some(decimal(controller)?)),
            None => (left, None),
        };
        Some(Self { subsystem: decimal(subsystem)?, controller, number: decimal(number)? })
    }

    /// Whether this namespace is one of the paths to the disk with the name `disk`.
    pub fn is_way_to(self, disk: &str) -> bool {
        let head = Self { controller: None, ..self };
        self.controller.is_some() && Self::of(disk) == Some(head)
    }
}

/// A number that is made of digits only. Rust's parser would accept a sign too.
fn decimal(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// A path to a block device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Path {
    /// Name of the path's controller or disk: `nvme0`, `sdb`.
    pub name: String,
    /// How the path reaches the device: `pcie`, `rdma`, `tcp`, `fc`, `loop`.
    pub transport: String,
    /// Address of the path's other end: a PCI address, or `traddr=...,trsvcid=...`.
    pub address: String,
    /// State of the path: `live`, `connecting` ... of a controller, `running`, `offline` ... of a disk.
    pub state: String,
    /// State that the target reports for an NVMe path (ANA) or a SCSI path (ALUA): `optimized`, `non-optimized`,
    /// `inaccessible`, `persistent-loss`, `change`.
    pub ana_state: String,
    /// Whether the path is in the group that carries requests, for a device mapper that groups its paths; `None` if
    /// unknown.
    pub in_use: Option<bool>,
    /// Number of the path's group, from 1, for a device mapper that groups its paths; `None` if unknown.
    pub group: Option<u32>,
    /// Priority of the path's group; `None` if unknown.
    pub priority: Option<u32>,
    /// Name of the hidden block device of an NVMe path: `nvme0c1n1`.
    pub device: String,
    /// NUMA node of the path's controller.
    pub node: Option<u32>,
    /// Number of queues of the path.
    pub queues: Option<u64>,
    /// Number of entries in each queue of the path.
    pub depth: Option<u64>,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSystem {
    /// Directory where the file system is mounted.
    pub point: String,
    /// Type of the file system: `ext4`, `nfs4`.
    pub kind: String,
    /// Name of the block device that holds the file system; empty for a file system on another host.
    pub device: String,
    /// Mount options on which the speed of the file system depends: `proto=rdma`, `nconnect=4`.
    pub options: Vec<String>,
}

impl Storage {
    /// The block device with this name.
    pub fn device(&self, name: &str) -> Option<&BlockDevice> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The disks, and devices that the kernel treats like disks.
    pub fn disks(&self) -> impl Iterator<Item = &BlockDevice> {
        self.devices.iter().filter(|d| d.layer == Layer::Disk)
    }

    /// The file system that holds a path: the one with the longest matching mount point, and among equal ones the one
    /// that was mounted last.
    pub fn filesystem(&self, path: &str) -> Option<&FileSystem> {
        let holds = |point: &str| {
            let rest = path.strip_prefix(point.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let held = self.filesystems.iter().filter(|fs| holds(&fs.point));
        held.max_by_key(|fs| fs.point.len())
    }

    /// The devices below a path: first the device that holds the file or that the path names, then all that it is made
    /// of, down to the disks, each once. Empty if the file is on another host, or if its device is unknown.
    pub fn below(&self, path: &str) -> Vec<&BlockDevice> {
        let named = self.named(path);
        let held = || self.device(&self.filesystem(path)?.device);
        let mut all: Vec<&BlockDevice> = named.or_else(held).into_iter().collect();
        let mut at = 0;
        while let Some(device) = all.get(at) {
            let below = device.below.iter().filter_map(|name| self.device(name));
            let below: Vec<_> = below.filter(|one| !all.contains(one)).collect();
            for one in below {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
            at += 1;
        }
        all
    }

    /// Whether a path is that of a device, not of a file on one.
    pub fn names(&self, path: &str) -> bool {
        self.named(path).is_some()
    }

    /// The device with this path. The device mapper's names are in a folder of `/dev`.
    fn named(&self, path: &str) -> Option<&BlockDevice> {
        let name = path.strip_prefix("/dev/")?;
        match name.strip_prefix("mapper/") {
            Some(label) => self.devices.iter().find(|device| device.label == label),
            None => self.device(name),
        }
    }

    /// The disks below the device with this name, each once. The search ends even if devices form a loop.
    pub fn leaves(&self, name: &str) -> Vec<&BlockDevice> {
        let (mut seen, mut leaves) = (BTreeSet::new(), Vec::new());
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            let Some(device) = self.device(name).filter(|d| seen.insert(&d.name)) else {
                continue;
            };
            if device.below.is_empty() {
                leaves.push(device);
            }
            open.extend(device.below.iter().rev().map(String::as_str));
        }
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, below: &[&str]) -> BlockDevice {
        BlockDevice {
            name: name.to_owned(),
            below: below.iter().map(|&b| b.to_owned()).collect(),
            ..BlockDevice::default()
        }
    }

    fn mounted(point: &str, device: &str) -> FileSystem {
        FileSystem { point: point.to_owned(), device: device.to_owned(), ..FileSystem::default() }
    }

    #[test]
    fn leaves_are_found_through_all_layers_once_and_loops_end() {
        let storage = Storage {
            devices: vec![
                device("dm-1", &["dm-0"]),
                device("dm-0", &["md0", "sda1"]),
                device("md0", &["sda1", "sdb"]),
                device("sda1", &["sda"]),
                device("sda", &[]),
                device("sdb", &[]),
                device("loop0", &["loop1"]),
                device("loop1", &["loop0", "gone"]),
            ],
            ..Storage::default()
        };
        let names = |name: &str| {
            let leaves = storage.leaves(name).into_iter();
            leaves.map(|d| d.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names("dm-1"), ["sda", "sdb"]);
        assert_eq!(names("sda"), ["sda"]);
        assert_eq!(names("loop0"), [""; 0]);
        assert_eq!(names("none"), [""; 0]);
    }

    #[test]
    fn a_file_lies_on_a_device_and_its_disks_and_a_device_on_itself() {
        let storage = Storage {
            devices: vec![device("md0", &["sda", "sdb"]), device("sda", &[]), device("sdb", &[])],
            filesystems: vec![mounted("/", "sda"), mounted("/data", "md0"), mounted("/far", "")],
            ..Storage::default()
        };
        let names = |path: &str| -> Vec<&str> {
            storage.below(path).into_iter().map(|d| d.name.as_str()).collect()
        };
        assert_eq!(names("/data/x"), ["md0", "sda", "sdb"]);
        assert_eq!(names("/x"), ["sda"]);
        assert_eq!(names("/dev/sdb"), ["sdb"]);
        assert_eq!(names("/far/x"), [""; 0], "on another host");
        assert_eq!(names("x"), [""; 0], "of no known folder");
    }

    #[test]
    fn names_tell_disks_from_the_ways_to_them() {
        let of = |name| Namespace::of(name).map(|n| (n.subsystem, n.controller, n.number));
        assert_eq!(of("nvme0n1"), Some((0, None, 1)));
        assert_eq!(of("nvme10c2n13"), Some((10, Some(2), 13)));
        for other in [
            "nvme0",
            "nvme0n1p1",
            "nvme0c1",
            "nvmen1",
            "nvme0n",
            "nvme0cn1",
            "nvme0c+1n1",
            "sda",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        let way = Namespace::of("nvme0c1n2").unwrap();
        assert!(way.is_way_to("nvme0n2"));
        for other in ["nvme0n1", "nvme1n2", "nvme0c1n2", "sda"] {
            assert!(!way.is_way_to(other), "{other}");
        }
        assert!(!Namespace::of("nvme0n2").unwrap().is_way_to("nvme0n2"));
    }

    #[test]
    fn a_path_lies_on_what_was_mounted_last_at_its_longest_part() {
        let storage = Storage {
            filesystems: vec![mounted("/", "a"), mounted("/data", "b"), mounted("/data", "c")],
            ..Storage::default()
        };
        for (path, want) in [("/", "a"), ("/data", "c"), ("/data/x", "c"), ("/database", "a")] {
            assert_eq!(storage.filesystem(path).unwrap().device, want, "{path}");
        }
        assert_eq!(Storage::default().filesystem("/"), None);
    }
}
