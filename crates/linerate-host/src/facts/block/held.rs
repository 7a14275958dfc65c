//! What holds the file of a load: its file system, the devices below it, and the limits on them.

use linerate_facts::Gap;
use linerate_facts::block::{BlockDevice, FileSystem, IoLimit, Layer, Storage};
use linerate_facts::parse::mounts::Mount;
use linerate_facts::parse::{io_max, mounts, sysctl};
use linerate_facts::pci;

use super::super::{MOUNTS, Reader};
use super::{CLASS, storage, telling};
use crate::cgroup;
use crate::{Machine, gap, read};

/// What holds a file.
#[derive(Default)]
pub(in super::super) struct Held {
    /// The device that holds the file, then all that it is made of.
    pub(in super::super) disks: Vec<BlockDevice>,
    pub(in super::super) filesystem: Option<FileSystem>,
    /// Limits of own control groups on these devices.
    pub(in super::super) limits: Vec<IoLimit>,
}

impl Reader<'_> {
    /// Reads what holds the file or the disk at a path.
    pub(in super::super) fn held(&mut self, path: &str) -> Held {
        let mut storage = storage(self.machine);
        self.gaps.append(&mut storage.gaps);
        let mount = mount(self.machine, &storage, path);
        let mut disks = below(&storage, mount.as_ref(), path);
        let filesystem = mount.map(|mount| FileSystem {
            options: telling(&mount.options),
            point: mount.point,
            kind: mount.kind,
            device: String::new(),
        });
        let is_in_memory = filesystem.as_ref().is_some_and(|held| held.kind == "tmpfs");
        if disks.is_empty() && !is_in_memory {
            let why = format!("no device of this host is known to hold {path}");
            self.lack(gap("facts.disks", &why, "findmnt"));
        }
        for disk in &mut disks {
            self.complete(disk);
        }
        let limits = self.io_limits(&disks);
        Held { disks, filesystem, limits }
    }

    /// Reads what only a measurement needs of a device.
    fn complete(&mut self, disk: &mut BlockDevice) {
        let folder = format!("{CLASS}/{}", disk.name);
        let has_queue = self.machine.list(&format!("{folder}/queue")).is_ok();
        if disk.layer != Layer::Disk && disk.layer != Layer::Partition && has_queue {
            disk.queue = self.queue_limits(&folder);
        }
        if let Ok(card) = disk.pci.parse() {
            let (mut all, mut hidden) = (Vec::new(), Vec::new());
            self.chain(card, &mut all, &mut hidden);
            all.sort_unstable_by_key(|device| device.address);
            pci::find_parents(&mut all);
            disk.slots = all;
        }
        if let Some(sensor) = sensor(self.machine, disk) {
            let limit =
                |name: &str| read(self.machine, &format!("{sensor}/{name}"), sysctl::number);
            let limits = ["temp1_max", "temp1_crit"].map(|name| limit(name).ok());
            disk.hottest = limits.into_iter().flatten().map(|n| n as i64).find(|n| *n > 0);
        }
    }

    /// Reads the limits that own control groups and their parents have on devices.
    fn io_limits(&mut self, disks: &[BlockDevice]) -> Vec<IoLimit> {
        match io_limits(self, disks) {
            Ok(limits) => limits,
            Err(gap) => {
                self.lack(gap);
                Vec::new()
            }
        }
    }
}

/// The devices below a path: the one that holds it, then all that it is made of.
pub(crate) fn held(machine: &dyn Machine, path: &str) -> Vec<BlockDevice> {
    let storage = storage(machine);
    let mount = mount(machine, &storage, path);
    below(&storage, mount.as_ref(), path)
}

/// The mount that holds a path, whatever its kind is; `None` for a device.
fn mount(machine: &dyn Machine, storage: &Storage, path: &str) -> Option<Mount> {
    if storage.names(path) {
        return None;
    }
    let all = mounts::parse(&machine.file(MOUNTS).ok()?).ok()?;
    of_path(&all, path).cloned()
}

/// The mount that holds a path: of those with the longest matching folder the last.
pub(super) fn of_path<'a>(all: &'a [Mount], path: &str) -> Option<&'a Mount> {
    let holds = |mount: &&Mount| {
        let rest = path.strip_prefix(mount.point.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    all.iter().filter(holds).max_by_key(|mount| mount.point.len())
}

fn below(storage: &Storage, mount: Option<&Mount>, path: &str) -> Vec<BlockDevice> {
    let overlay = mount.filter(|mount| mount.kind == "overlay");
    // Files of an overlay are in the folder that is its upper layer.
    let upper = overlay
        .and_then(|mount| mount.options.iter().find_map(|option| option.strip_prefix("upperdir=")));
    // A file system in memory may be mounted below a disk's.
    let is_in_memory = mount.is_some_and(|mount| mount.kind == "tmpfs");
    let path = upper.or((overlay.is_none() && !is_in_memory).then_some(path));
    let found = path.map(|path| storage.below(path)).unwrap_or_default();
    found.into_iter().cloned().collect()
}

fn io_limits(reader: &Reader<'_>, disks: &[BlockDevice]) -> Result<Vec<IoLimit>, Gap> {
    let machine = reader.machine;
    if disks.is_empty() {
        return Ok(Vec::new());
    }
    let place = cgroup::place(machine, "io")?;
    let mut found = Vec::new();
    for (group, folder) in place.own_and_above() {
        // A group without the controller has no such file, nor has the root.
        let Ok(limits) = read(machine, &format!("{folder}/io.max"), io_max::parse) else {
            continue;
        };
        let ours = |limit: &IoLimit| disks.iter().any(|disk| disk.number == limit.number);
        let limits = limits.into_iter().filter(ours);
        found.extend(limits.map(|limit| IoLimit { group: group.to_owned(), ..limit }));
    }
    Ok(found)
}

/// The folder with the temperature sensor of a disk: of its NVMe controller, or of the SCSI driver `drivetemp`. `None`
/// if it has none.
pub(crate) fn sensor(machine: &dyn Machine, disk: &BlockDevice) -> Option<String> {
    let nvme = disk.paths.iter().map(|path| format!("/sys/class/nvme/{}", path.name));
    let scsi = format!("{CLASS}/{}/device/hwmon", disk.name);
    nvme.chain([scsi]).find_map(|folder| {
        let names = machine.list(&folder).ok()?;
        let sensor = names.iter().find(|name| name.starts_with("hwmon"))?;
        Some(format!("{folder}/{sensor}"))
    })
}
