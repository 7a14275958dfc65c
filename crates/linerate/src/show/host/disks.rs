//! Disks, how they are reached, and the file systems on them.

use linerate_core::facts::Inventory;
use linerate_core::facts::block::{BlockDevice, FileSystem, Layer, Storage};

use super::super::Page;
use super::super::words::count;
use super::ports::{few, place};
use super::{alike, put};

/// What all other block devices are made of in the end; those that are alike on one line.
pub(super) fn disks(page: &mut Page, inventory: &Inventory) {
    let disks = inventory.storage.disks();
    let lines = alike(disks.map(|disk| (disk.name.as_str(), words(inventory, disk))));
    for (i, line) in lines.iter().enumerate() {
        put(page, if i == 0 { "Disks" } else { "" }, line);
    }
}

/// File systems, those that are alike on one line.
pub(super) fn filesystems(page: &mut Page, storage: &Storage) {
    let all = storage.filesystems.iter();
    let lines = alike(all.map(|fs| (fs.point.as_str(), lies_on(storage, fs))));
    for (i, line) in lines.iter().enumerate() {
        put(page, if i == 0 { "File systems" } else { "" }, line);
    }
}

/// `ext4 on dm-0 (logical volume) of sda, sdb`.
fn lies_on(storage: &Storage, filesystem: &FileSystem) -> String {
    let FileSystem {
        kind,
        device,
        options,
        ..
    } = filesystem;
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
        parts.push(format!(
            "{} by {}",
            count(disk.paths.len() as u64, "way"),
            disk.policy
        ));
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
