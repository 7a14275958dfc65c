//! Shows disks, the paths to them, and the file systems on them.

use linerate_facts::Inventory;
use linerate_facts::block::{BlockDevice, FileSystem, Layer, Path, Storage};

use super::super::Document;
use super::super::words::count;
use super::ports::{few, place};
use super::{alike, more, put};

/// Writes the disks; other block devices are built on them. Disks with equal properties share a line. Paths to a
/// disk are listed below it.
pub(super) fn disks(doc: &mut Document, inventory: &Inventory) {
    let disks = inventory.storage.disks();
    let lines = alike(disks.map(|disk| (disk.name.as_str(), lines(inventory, disk))));
    for (i, lines) in lines.iter().enumerate() {
        let mut lines = lines.split('\n');
        let disk = lines.next().unwrap_or_default();
        put(doc, if i == 0 { "Disks" } else { "" }, disk);
        lines.for_each(|way| more(doc, way));
    }
}

/// A line about a disk, and a line for each path to it if there are several or multipath is set up.
fn lines(inventory: &Inventory, disk: &BlockDevice) -> String {
    let is_shown = |path: &&Path| disk.paths.len() > 1 || !path.device.is_empty();
    let ways = disk.paths.iter().filter(is_shown).map(way);
    let lines: Vec<String> = std::iter::once(words(inventory, disk)).chain(ways).collect();
    lines.join("\n")
}

/// A path in words: `by nvme0: tcp, traddr=192.0.2.1,trsvcid=4420, live, optimized (nvme0c0n1)`.
fn way(path: &Path) -> String {
    let known = [&path.transport, &path.address, &path.state, &path.ana_state];
    let known: Vec<&str> =
        known.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let device = match path.device.as_str() {
        "" => String::new(),
        device => format!(" ({device})"),
    };
    format!("by {}: {}{device}", path.name, known.join(", "))
}

/// Writes the file systems; those with equal properties share a line.
pub(super) fn filesystems(doc: &mut Document, storage: &Storage) {
    let all = storage.filesystems.iter();
    let lines = alike(all.map(|fs| (fs.point.as_str(), lies_on(storage, fs))));
    for (i, line) in lines.iter().enumerate() {
        put(doc, if i == 0 { "File systems" } else { "" }, line);
    }
}

/// Where a file system is stored: `ext4 on dm-0 (logical volume) of sda, sdb`.
fn lies_on(storage: &Storage, filesystem: &FileSystem) -> String {
    let FileSystem { kind, device, options, .. } = filesystem;
    if device.is_empty() {
        return [std::slice::from_ref(kind), options].concat().join(", ");
    }
    let Some(found) = storage.device(device).filter(|d| d.layer != Layer::Disk) else {
        return format!("{kind} on {device}");
    };
    let leaves = storage.leaves(device).into_iter();
    let disks: Vec<&str> = leaves.map(|leaf| leaf.name.as_str()).collect();
    let of = match disks.as_slice() {
        [] => String::new(),
        [own] if own == device => String::new(),
        disks => format!(" of {}", few(disks)),
    };
    format!("{kind} on {device} ({}){of}", found.layer.name())
}

fn words(inventory: &Inventory, disk: &BlockDevice) -> String {
    let mut parts: Vec<String> = disk.size.iter().map(ToString::to_string).collect();
    parts.extend((!disk.model.is_empty()).then(|| disk.model.clone()));
    parts.push(match disk.transport.as_str() {
        "" => "transport unknown".to_owned(),
        transport => transport.to_owned(),
    });
    if disk.paths.len() > 1 {
        parts.push(format!("{} by {}", count(disk.paths.len() as u64, "way"), disk.policy));
    }
    let queue = &disk.queue;
    if !queue.scheduler.is_empty() {
        parts.push(format!("scheduler {}", queue.scheduler));
    }
    let requests = queue.requests.map(|n| count(n, "request"));
    let largest = queue.largest.map(|most| format!("up to {most} each"));
    parts.extend([requests, largest].into_iter().flatten());
    parts.extend(queue.depth.map(|depth| format!("depth {depth}")));
    parts.extend(place(inventory, disk.node, &disk.pci));
    parts.join(", ")
}
