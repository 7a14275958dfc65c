//! Block devices and file systems: what lies under a path, down to the disks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Gap;
use super::nic::{Concern, Odd, odd};
use crate::units::Bytes;

/// All block devices and file systems of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Storage {
    /// Block devices that hold something, by name.
    pub devices: Vec<BlockDevice>,
    /// File systems on block devices or on other hosts, in the order in which they were mounted.
    pub filesystems: Vec<FileSystem>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// A block device. Text that is not known is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockDevice {
    /// Name: `nvme0n1`, `dm-0`.
    pub name: String,
    /// Number: `259:0`.
    pub number: String,
    /// Which layer it is.
    pub layer: Layer,
    /// Name that the device mapper gives it.
    pub label: String,
    /// Names of the devices that it is made of.
    pub below: Vec<String>,
    /// Size.
    pub size: Option<Bytes>,
    /// Model of a disk.
    pub model: String,
    /// How a disk is reached: `pcie`, `rdma`, `tcp`, `srp`, `iser`, `iscsi`, `fc`, `sas`, `usb`,
    /// `ata`, `virtio`.
    pub transport: String,
    /// Address on the PCI bus of what it hangs on.
    pub pci: String,
    /// NUMA node of that.
    pub node: Option<u32>,
    /// How a disk queues.
    pub queue: QueueLimits,
    /// Ways to it, of a device that has several (NVMe); one for other NVMe disks.
    pub paths: Vec<Path>,
    /// How it chooses among them: `numa`, `round-robin`, `queue-depth`.
    pub policy: String,
}

/// Which layer of storage a device is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A disk, or what passes for one.
    #[default]
    Disk,
    /// A part of one.
    Partition,
    /// A logical volume.
    Volume,
    /// Encryption.
    Crypt,
    /// Several ways to one disk, joined by the device mapper.
    Multipath,
    /// Something else of the device mapper.
    Mapped,
    /// Software RAID.
    Raid,
    /// A file.
    Loop,
    /// Memory.
    Memory,
}

/// How a device queues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueLimits {
    /// Scheduler: `none`, `mq-deadline`.
    pub scheduler: String,
    /// Whether it has a head that moves; what a guest is told need not be so.
    pub rotational: Option<bool>,
    /// Requests that may wait in each hardware queue.
    pub requests: Option<u64>,
    /// Commands that the device takes at once (SCSI).
    pub depth: Option<u64>,
    /// Largest request; larger ones are split.
    pub largest: Option<Bytes>,
    /// Largest request that the hardware takes.
    pub largest_hardware: Option<Bytes>,
    /// Read ahead.
    pub read_ahead: Option<Bytes>,
    /// Logical block.
    pub logical_block: Option<Bytes>,
    /// Physical block.
    pub physical_block: Option<Bytes>,
    /// `write back` or `write through`.
    pub write_cache: String,
}

/// A way to a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Path {
    /// Controller: `nvme0`.
    pub name: String,
    /// `pcie`, `rdma`, `tcp`, `fc`, `loop`.
    pub transport: String,
    /// Where it leads: an address on the PCI bus, or `traddr=...,trsvcid=...`.
    pub address: String,
    /// `live`, `connecting` ...
    pub state: String,
    /// NUMA node.
    pub node: Option<u32>,
    /// Queues.
    pub queues: Option<u64>,
    /// Entries of each.
    pub depth: Option<u64>,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSystem {
    /// Where it is mounted.
    pub point: String,
    /// Kind: `ext4`, `nfs4`.
    pub kind: String,
    /// Name of the block device that it lies on; empty for one on another host.
    pub device: String,
    /// Options that speed depends on, of one on another host: `proto=rdma`, `nconnect=4`.
    pub options: Vec<String>,
}

impl BlockDevice {
    fn dead_paths(&self) -> Option<Odd> {
        let dead = self.paths.iter();
        let dead = dead.filter(|path| !path.state.is_empty() && path.state != "live");
        let dead: Vec<_> = dead
            .map(|path| format!("{} is {}", path.name, path.state))
            .collect();
        (!dead.is_empty()).then(|| {
            odd(
                &format!("of {} ways, {}", self.paths.len(), dead.join(", ")),
                "fewer ways carry the same load, and none may be left when the next one fails",
                "sudo nvme list-subsys; then the network or the target of that address",
            )
        })
    }

    /// Several ways of which the policy uses one for each node.
    fn idle_paths(&self) -> Option<Odd> {
        let live = self
            .paths
            .iter()
            .filter(|path| path.state == "live")
            .count();
        (live > 1 && self.policy == "numa").then(|| {
            odd(
                &format!("{live} ways, of which each node uses one"),
                "policy `numa`: from one node, several links give the speed of one",
                "echo round-robin > /sys/class/nvme-subsystem/SUBSYSTEM/iopolicy (undo: echo numa)",
            )
        })
    }
}

impl Storage {
    /// The device with this name.
    pub fn device(&self, name: &str) -> Option<&BlockDevice> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// What is odd about the ways to all disks.
    pub fn concerns(&self) -> Vec<Concern> {
        let each = self.devices.iter().flat_map(|device| {
            let odd = [device.dead_paths(), device.idle_paths()];
            Concern::all(&device.name, odd).collect::<Vec<_>>()
        });
        each.collect()
    }

    /// The file system that holds a path: the one mounted last at the longest part of it.
    pub fn filesystem(&self, path: &str) -> Option<&FileSystem> {
        let holds = |point: &str| {
            let rest = path.strip_prefix(point.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let held = self.filesystems.iter().filter(|fs| holds(&fs.point));
        held.max_by_key(|fs| fs.point.len())
    }

    /// The disks under the device with this name, each once. A loop, which no kernel makes, ends.
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
        FileSystem {
            point: point.to_owned(),
            device: device.to_owned(),
            ..FileSystem::default()
        }
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
    fn ways_that_are_dead_or_idle_are_odd() {
        let whats = |states: &[&str], policy: &str| {
            let path = |state: &&str| Path {
                name: "nvme0".to_owned(),
                state: (*state).to_owned(),
                ..Path::default()
            };
            let disk = BlockDevice {
                policy: policy.to_owned(),
                paths: states.iter().map(path).collect(),
                ..device("nvme0n1", &[])
            };
            let storage = Storage {
                devices: vec![disk],
                ..Storage::default()
            };
            storage
                .concerns()
                .into_iter()
                .map(|c| c.what)
                .collect::<Vec<_>>()
        };
        assert_eq!(whats(&["live"], "numa"), [""; 0]);
        assert_eq!(whats(&["live", "live"], "round-robin"), [""; 0]);
        assert_eq!(
            whats(&["live", "live"], "numa"),
            ["2 ways, of which each node uses one"]
        );
        assert_eq!(
            whats(&["live", "connecting"], "numa"),
            ["of 2 ways, nvme0 is connecting"]
        );
        assert_eq!(whats(&["", ""], "numa"), [""; 0]);
    }

    #[test]
    fn a_path_lies_on_what_was_mounted_last_at_its_longest_part() {
        let storage = Storage {
            filesystems: vec![
                mounted("/", "a"),
                mounted("/data", "b"),
                mounted("/data", "c"),
            ],
            ..Storage::default()
        };
        for (path, want) in [
            ("/", "a"),
            ("/data", "c"),
            ("/data/x", "c"),
            ("/database", "a"),
        ] {
            assert_eq!(storage.filesystem(path).unwrap().device, want, "{path}");
        }
        assert_eq!(Storage::default().filesystem("/"), None);
    }
}
