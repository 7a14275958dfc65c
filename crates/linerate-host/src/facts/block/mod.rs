//! Facts of block devices and file systems.

use std::collections::BTreeMap;
use std::io;

use linerate_facts::block::{
    BlockDevice, FileSystem, Layer, MOUNT_OPTIONS, Namespace, Path, QueueLimits, Storage,
};
use linerate_facts::parse::mounts::{self, Mount};
use linerate_facts::parse::{sysctl, sysfs};
use linerate_units::Bytes;

use super::{MOUNTS, PROC, Reader, SYS, few};
use crate::{Machine, gap, invalid, read};

mod held;
mod transport;

pub(super) use held::Held;
pub(crate) use held::{held, sensor};

const CLASS: &str = "/sys/class/block";
/// Size of a sector in sysfs, in bytes, whatever the device's own sector size is.
const SECTOR: u64 = 512;
/// Types of file systems whose storage is on another host, or on the host of a virtual machine.
const REMOTE: [&str; 10] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "beegfs", "9p", "virtiofs"];

/// Reads all block devices and file systems. For a fact that cannot be read there is a gap such as `facts.block.queue`.
pub fn storage(machine: &dyn Machine) -> Storage {
    storage_of(machine, &machine.file(MOUNTS))
}

/// Reads all block devices and file systems. `mounts` is the content of [`MOUNTS`], which another fact needs too.
pub(super) fn storage_of(machine: &dyn Machine, mounts: &io::Result<Vec<u8>>) -> Storage {
    let mut reader = Reader { machine, gaps: Vec::new() };
    let names = machine.list(CLASS);
    let names = names.map_err(|error| reader.miss("block", CLASS, &error, SYS)).unwrap_or_default();
    let devices = reader.block_devices(&names);
    let text = reader.known("filesystems", MOUNTS, mounts);
    let mounts = text.map(|text| mounts::parse(text).map_err(invalid));
    let mounts = mounts
        .transpose()
        .map_err(|error| reader.miss("filesystems", MOUNTS, &error, PROC))
        .ok()
        .flatten();
    let mut storage = Storage { devices, ..Storage::default() };
    let mounts = mounts.unwrap_or_default();
    storage.filesystems = filesystems(mounts.clone(), &storage.devices);
    reader.files_below(&mut storage, &mounts);
    reader.ways(&mut storage);
    reader.hidden(&storage);
    storage.gaps = reader.gaps;
    storage
}

impl Reader<'_> {
    /// Reads all devices that have a capacity and can be opened by programs. All devices whose size cannot be read,
    /// because they disappeared or because the directory tree lacks them, share one gap.
    fn block_devices(&mut self, names: &[String]) -> Vec<BlockDevice> {
        let (hidden, names): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| self.is_hidden(name));
        let (mut devices, mut missing) = (Vec::new(), Vec::new());
        for name in names {
            match read(self.machine, &format!("{CLASS}/{name}/size"), sysctl::number) {
                Ok(0) => {}
                Ok(sectors) => devices.push(self.block_device(name, sectors, &hidden)),
                Err(error) => missing.push((name.as_str(), error)),
            }
        }
        if let Some((_, error)) = missing.first() {
            let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
            let why = format!("cannot read the size of {}: {error}", few(&names));
            self.gaps.push(gap("facts.block.size", &why, "lsblk"));
        }
        devices
    }

    /// Returns whether the kernel hides a device from programs, as it hides the path devices of an NVMe disk. If the
    /// file does not exist (before Linux 4.15), the device's name decides.
    fn is_hidden(&self, name: &str) -> bool {
        let hidden = read(self.machine, &format!("{CLASS}/{name}/hidden"), sysctl::number);
        hidden.map_or_else(
            |_| Namespace::of(name).is_some_and(|way| way.controller.is_some()),
            |hidden| hidden == 1,
        )
    }

    fn block_device(&mut self, name: &str, sectors: u64, hidden: &[&String]) -> BlockDevice {
        let folder = format!("{CLASS}/{name}");
        let mut device = BlockDevice {
            name: name.to_owned(),
            number: self.optional_line(&format!("{folder}/dev")),
            size: sectors.checked_mul(SECTOR).map(Bytes),
            ..BlockDevice::default()
        };
        device.below = self.machine.list(&format!("{folder}/slaves")).unwrap_or_default();
        self.layer(&mut device, &folder);
        if device.layer == Layer::Disk {
            device.queue = self.queue_limits(&folder);
            self.disk(&mut device, &folder, hidden);
        }
        if device.layer == Layer::Raid {
            device.raid = self.optional_line(&format!("{folder}/md/level"));
            device.bitmap = self.optional_line(&format!("{folder}/md/bitmap/location"));
        }
        device
    }

    fn layer(&mut self, device: &mut BlockDevice, folder: &str) {
        let name = device.name.as_str();
        if self.machine.file(&format!("{folder}/partition")).is_ok() {
            device.layer = Layer::Partition;
            device.below = self.parent(folder).into_iter().collect();
        } else if name.starts_with("dm-") {
            device.label = self.optional_line(&format!("{folder}/dm/name"));
            let uuid = self.optional_line(&format!("{folder}/dm/uuid"));
            device.layer = match uuid.split('-').next() {
                Some("mpath") => Layer::Multipath,
                Some("LVM") => Layer::Volume,
                Some("CRYPT") => Layer::Crypt,
                _ => Layer::Mapped,
            };
        } else if name.starts_with("md") {
            device.layer = Layer::Raid;
        } else if name.starts_with("loop") {
            device.layer = Layer::Loop;
        } else if ["zram", "ram", "pmem"].iter().any(|kind| name.starts_with(kind)) {
            device.layer = Layer::Memory;
        }
    }

    /// Returns the disk that contains a partition: sysfs has the partition's folder in the disk's.
    fn parent(&self, folder: &str) -> Option<String> {
        let uevent = read(self.machine, &format!("{folder}/../uevent"), |text| {
            Ok(sysctl::value_text(text, "DEVNAME"))
        });
        // In /dev a name may contain slashes, which sysfs replaces by exclamation marks.
        uevent.ok().flatten().map(|name| name.replace('/', "!"))
    }

    fn queue_limits(&mut self, folder: &str) -> QueueLimits {
        let queue = format!("{folder}/queue");
        if let Err(error) = self.machine.list(&queue) {
            self.miss("block.queue", &queue, &error, "lsblk -t");
            return QueueLimits::default();
        }
        let path = |name: &str| format!("{queue}/{name}");
        // From Linux 6.12 on, a disk without its own request queue, such as the head device of NVMe multipath, has
        // neither of these two files.
        let requests = self.look("block.queue", &path("nr_requests"), sysctl::number);
        let scheduler = self.look("block.queue", &path("scheduler"), sysfs::chosen);
        let mut number =
            |name: &str| self.get("block.queue", &path(name), "lsblk -t", sysctl::number);
        let rotational = number("rotational");
        let (largest, hardware) = (number("max_sectors_kb"), number("max_hw_sectors_kb"));
        let ahead = number("read_ahead_kb");
        let (logical, physical) = (number("logical_block_size"), number("physical_block_size"));
        let kib = |n: Option<u64>| n.and_then(|n| n.checked_mul(1024)).map(Bytes);
        // Only SCSI devices have their own queue depth.
        let depth = read(self.machine, &format!("{folder}/device/queue_depth"), sysctl::number);
        QueueLimits {
            scheduler: scheduler.unwrap_or_default(),
            rotational: rotational.map(|n| n != 0),
            requests,
            queues: self.machine.list(&format!("{folder}/mq")).ok().map(|all| all.len() as u64),
            segments: read(self.machine, &path("max_segments"), sysctl::number).ok(),
            depth: depth.ok(),
            largest: kib(largest),
            largest_hardware: kib(hardware),
            read_ahead: kib(ahead),
            logical_block: logical.map(Bytes),
            physical_block: physical.map(Bytes),
            write_cache: self.optional_line(&path("write_cache")),
        }
    }

    /// Finds the device below each loop device: the device of the file system that contains the loop's backing file.
    fn files_below(&self, storage: &mut Storage, mounts: &[Mount]) {
        let below: Vec<(usize, String)> = storage
            .devices
            .iter()
            .enumerate()
            .filter(|(_, device)| device.layer == Layer::Loop)
            .filter_map(|(at, device)| {
                let path = format!("{CLASS}/{}/loop/backing_file", device.name);
                let file = self.optional_line(&path);
                let mount = held::of_path(mounts, &file);
                // A file in memory is on no device, though a disk's file system is above its folder.
                if mount.is_some_and(|mount| mount.kind == "tmpfs") {
                    return None;
                }
                let filesystem = storage.filesystem(&file)?;
                Some((at, filesystem.device.clone()))
            })
            .filter(|(_, device)| !device.is_empty())
            .collect();
        for (at, device) in below {
            storage.devices[at].below.push(device);
        }
    }

    /// Finds the paths of device-mapper multipath devices: the disks below them.
    fn ways(&self, storage: &mut Storage) {
        let way = |name: &String| {
            let disk = storage.device(name);
            Path {
                name: name.clone(),
                transport: disk.map_or(String::new(), |disk| disk.transport.clone()),
                state: self.optional_line(&format!("{CLASS}/{name}/device/state")),
                node: disk.and_then(|disk| disk.node),
                depth: disk.and_then(|disk| disk.queue.depth),
                ..Path::default()
            }
        };
        let several = storage.devices.iter().enumerate();
        let several = several.filter(|(_, device)| device.layer == Layer::Multipath);
        let ways: Vec<(usize, Vec<Path>)> =
            several.map(|(at, device)| (at, device.below.iter().map(way).collect())).collect();
        for (at, paths) in ways {
            storage.devices[at].paths = paths;
        }
    }

    /// Adds a gap for each fact about disks that no file in sysfs shows.
    fn hidden(&mut self, storage: &Storage) {
        let disks = |transport: &str| {
            let some = storage.disks().filter(|d| d.transport == transport);
            some.map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (unknown, lent, volumes) = (disks(""), disks("virtio"), disks("raid"));
        if !unknown.is_empty() {
            let why = format!("sysfs does not show how {unknown} is attached");
            self.gaps.push(gap("facts.block.transport", &why, "lsblk -o NAME,TRAN"));
        }
        if !lent.is_empty() {
            let why = format!("{lent} is virtual: only the host knows the disk behind it");
            self.gaps.push(gap("facts.block.transport", &why, "lsblk, on the host"));
        }
        if !volumes.is_empty() {
            let why = format!("only its RAID controller knows the disks behind {volumes}");
            let hint = "the controller's own tool: storcli, ssacli, arcconf";
            self.gaps.push(gap("facts.block.transport", &why, hint));
        }
        if storage.devices.iter().any(|device| device.layer == Layer::Multipath) {
            let why = "sysfs does not show how the device mapper selects a path";
            self.gaps.push(gap("facts.block.policy", why, "sudo multipath -ll"));
        }
    }
}

/// Returns the mounts whose files are on a block device of this host or on another host, not in memory.
fn filesystems(mounts: Vec<Mount>, devices: &[BlockDevice]) -> Vec<FileSystem> {
    let numbers: BTreeMap<&str, &str> =
        devices.iter().map(|d| (d.number.as_str(), d.name.as_str())).collect();
    let labels: BTreeMap<&str, &str> =
        devices.iter().map(|d| (d.label.as_str(), d.name.as_str())).collect();
    let device = |mount: &Mount| {
        // A file system over several devices has no device number of its own; the mount source names one of its
        // devices.
        let source = mount.source.strip_prefix("/dev/");
        let named = source.map(|name| match name.strip_prefix("mapper/") {
            Some(label) => labels.get(label).copied().unwrap_or_default(),
            None => name,
        });
        let numbered = numbers.get(mount.number.as_str()).copied();
        numbered.or(named).unwrap_or_default().to_owned()
    };
    let kept = mounts.into_iter().filter_map(|mount| {
        let remote = REMOTE.contains(&mount.kind.as_str()) || mount.kind.starts_with("fuse.");
        let device = if remote { String::new() } else { device(&mount) };
        (remote || !device.is_empty()).then(|| FileSystem {
            options: if remote { telling(&mount.options) } else { Vec::new() },
            point: mount.point,
            kind: mount.kind,
            device,
        })
    });
    kept.collect()
}

fn telling(options: &[String]) -> Vec<String> {
    let tells = |option: &&String| tells_speed(option);
    options.iter().filter(tells).cloned().collect()
}

/// Returns whether a mount option affects speed. Such options contain no names of hosts or people.
pub(crate) fn tells_speed(option: &str) -> bool {
    MOUNT_OPTIONS.contains(&option.split('=').next().unwrap_or_default())
}

#[cfg(test)]
mod tests;
