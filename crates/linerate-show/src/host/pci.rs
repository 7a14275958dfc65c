//! Shows the PCI tree, from the ports of the processor to the cards that carry data.

use std::collections::BTreeSet;

use linerate_facts::crossing::shows_tunnel;
use linerate_facts::pci::{self, Address, Device, Link, PortKind, bridges_above};

use super::super::document::{Columns, Item, LABEL};
use super::super::words::count;
use super::super::{Document, Tone};

/// Vendor ids and names of the makers of devices on a path.
const VENDORS: [(u16, &str); 18] = [
    (0x1000, "Broadcom"),
    (0x1002, "AMD"),
    (0x1022, "AMD"),
    (0x1077, "QLogic"),
    (0x10de, "NVIDIA"),
    (0x10ec, "Realtek"),
    (0x1414, "Microsoft"),
    (0x1425, "Chelsio"),
    (0x144d, "Samsung"),
    (0x14e4, "Broadcom"),
    (0x15ad, "VMware"),
    (0x15b3, "Mellanox"),
    (0x1924, "Solarflare"),
    (0x19e5, "Huawei"),
    (0x1ae0, "Google"),
    (0x1af4, "virtio"),
    (0x1d0f, "Amazon"),
    (0x8086, "Intel"),
];

/// Characters before a device that is below no bridge.
const MARGIN: Columns = Columns { wide: LABEL, narrow: 2 };

/// Speed and width at which the link of the device at an address runs.
pub(super) fn link_of(all: &[Device], address: &str) -> Option<Link> {
    pci::at(all, address.parse().ok()?)?.now
}

/// Writes the devices that carry data, below their bridges.
pub(super) fn tree(doc: &mut Document, all: &[Device]) {
    let shown: Vec<&Device> = all.iter().filter(|d| d.carries_data() && !d.is_virtual).collect();
    let mut kept: BTreeSet<Address> = shown.iter().map(|d| d.address).collect();
    for device in &shown {
        kept.extend(bridges_above(all, device).iter().map(|b| b.address));
    }
    if !all.is_empty() {
        let more = match all.len() - kept.len() {
            0 => String::new(),
            more => format!(" ({more} more in --json)"),
        };
        let text = format!("{}{more}", count(all.len() as u64, "device"));
        doc.entry("PCI", &[(Tone::Plain, &text)], 0);
    }
    below(doc, all, &kept, None, 0);
}

/// Writes the devices directly below a bridge, each followed by the devices below it. The recursion ends, as each
/// device is on a higher bus than the bridge above it.
fn below(
    doc: &mut Document,
    all: &[Device],
    kept: &BTreeSet<Address>,
    parent: Option<Address>,
    depth: usize,
) {
    let here = |d: &&Device| d.parent == parent && kept.contains(&d.address);
    for device in all.iter().filter(here) {
        let margin = MARGIN.plus(2 * depth);
        let item = Item::new(&[(Tone::Plain, &words(all, device))]).depth(depth + 1);
        let address = device.address.to_string();
        let item = item.head(Tone::Plain, &[(&address, 0.into())]);
        doc.item(item.indent(margin, margin.plus(4)));
        below(doc, all, kept, Some(device.address), depth + 1);
    }
}

/// The link of a device in words: as it runs, and at best. The values of a tunnel are placeholders and not shown.
fn link(all: &[Device], device: &Device) -> Vec<String> {
    if shows_tunnel(all, device) {
        return vec!["on a Thunderbolt or USB4 cable".to_owned()];
    }
    let best = device.max.filter(|best| Some(*best) != device.now);
    let best = best.map(|best| format!("could do {best}"));
    let now = device.now.map(|now| now.to_string());
    now.into_iter().chain(best).collect()
}

fn words(all: &[Device], device: &Device) -> String {
    let is_bridge = device.buses.is_some();
    let mut what = match device.kind {
        Some(kind) if is_bridge && kind != PortKind::Other => kind.name().to_owned(),
        _ => device.function().to_owned(),
    };
    for name in &device.names {
        what = format!("{what} {name}");
    }
    let mut parts = vec![what];
    if !is_bridge {
        parts.push(identity(device));
        if !device.driver.is_empty() {
            parts.push(device.driver.clone());
        }
    }
    parts.extend(link(all, device));
    if !is_bridge {
        let payload = device
            .payload
            .map(|p| format!("payload {} of {} B, reads {} B", p.now, p.max, p.read_request));
        parts.extend(payload);
        parts.extend(device.node.map(|n| format!("node {n}")));
        parts.extend(device.iommu_group.map(|g| format!("IOMMU group {g}")));
    }
    parts.join(", ")
}

fn identity(device: &Device) -> String {
    let vendor = VENDORS.iter().find(|(id, _)| *id == device.vendor);
    let ids = format!("{:04x}:{:04x}", device.vendor, device.device);
    vendor.map_or(ids.clone(), |(_, name)| format!("{name} {ids}"))
}
