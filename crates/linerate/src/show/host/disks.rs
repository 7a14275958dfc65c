//! Disks, and how they are reached.

use linerate_core::facts::Inventory;
use linerate_core::facts::block::BlockDevice;

use super::super::Page;
use super::super::words::count;
use super::ports::place;
use super::{alike, put};

/// What all other block devices are made of in the end; those that are alike on one line.
pub(super) fn disks(page: &mut Page, inventory: &Inventory) {
    let disks = inventory.storage.disks();
    let lines = alike(disks.map(|disk| (disk.name.as_str(), words(inventory, disk))));
    for (i, line) in lines.iter().enumerate() {
        put(page, if i == 0 { "Disks" } else { "" }, line);
    }
}

fn words(inventory: &Inventory, disk: &BlockDevice) -> String {
    let mut parts: Vec<String> = disk.size.iter().map(ToString::to_string).collect();
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
