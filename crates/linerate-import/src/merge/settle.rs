//! What follows from facts of several outputs together.

use std::collections::BTreeMap;

use linerate_core::facts::Inventory;
use linerate_core::facts::nic::counted;
use linerate_core::facts::pci::{Address, DRIVERS, Device, NODES};

use crate::facts::link_up;

/// Links devices, ports and bridges, and ends gaps that were filled.
pub(super) fn settle(all: &mut Inventory) {
    all.pci.sort_by_key(|device| device.address);
    link_up(&mut all.pci);
    names(all);
    devices_of_ports(all);
    kept_counters(all);
    let data = || all.pci.iter().filter(|device| device.carries_data());
    let has_drivers = data().all(|device| !device.driver.is_empty());
    let has_nodes = data().all(|device| device.node.is_some());
    all.gaps
        .retain(|gap| !(gap.what == DRIVERS && has_drivers || gap.what == NODES && has_nodes));
}

/// Gives devices the names of their ports.
fn names(all: &mut Inventory) {
    let nics = all.network.nics.iter().map(|nic| (&nic.pci, &nic.name));
    let rdma = all
        .infiniband
        .devices
        .iter()
        .map(|device| (&device.pci, &device.name));
    let mut names: BTreeMap<Address, Vec<&String>> = BTreeMap::new();
    for (pci, name) in nics.chain(rdma) {
        if let Ok(address) = pci.parse() {
            names.entry(address).or_default().push(name);
        }
    }
    for device in &mut all.pci {
        for name in names.remove(&device.address).into_iter().flatten() {
            if !device.names.contains(name) {
                device.names.push(name.clone());
            }
        }
    }
}

/// Gives ports the node of their devices. Their drivers may be others: mlx4_en of mlx4_core.
fn devices_of_ports(all: &mut Inventory) {
    let devices: BTreeMap<String, &Device> = all
        .pci
        .iter()
        .map(|device| (device.address.to_string(), device))
        .collect();
    for nic in &mut all.network.nics {
        let Some(device) = devices.get(&nic.pci) else {
            continue;
        };
        nic.node = nic.node.or(device.node);
    }
    for device in &mut all.infiniband.devices {
        let node = devices.get(&device.pci).and_then(|device| device.node);
        device.node = device.node.or(node);
    }
}

/// Of the counters of a driver, those are kept that a look at the host itself keeps. Which these are depends on the
/// driver.
fn kept_counters(all: &mut Inventory) {
    for nic in all
        .network
        .nics
        .iter_mut()
        .filter(|nic| !nic.driver.is_empty())
    {
        let driver = &nic.driver;
        nic.counters
            .retain(|counter| counted::is_kept(driver, counter));
    }
}
