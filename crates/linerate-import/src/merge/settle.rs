//! Derives facts from the facts of several outputs together.

use std::collections::BTreeMap;

use linerate_facts::Inventory;
use linerate_facts::infiniband::{Guid, IbDevice, IbPort};
use linerate_facts::nic::counted;
use linerate_facts::pci::{Address, DRIVERS, Device, NODES};

use crate::facts::link_up;

/// Links devices, ports and bridges, and removes gaps that were filled.
pub(super) fn settle(all: &mut Inventory) {
    all.pci.sort_by_key(|device| device.address);
    link_up(&mut all.pci);
    names(all);
    devices_of_ports(all);
    match_ports_by_lid(all);
    ports_of_interfaces(all);
    kept_counters(all);
    let data = || all.pci.iter().filter(|device| device.carries_data());
    let has_drivers = data().all(|device| !device.driver.is_empty());
    let has_nodes = data().all(|device| device.node.is_some());
    all.gaps.retain(|gap| !(gap.what == DRIVERS && has_drivers || gap.what == NODES && has_nodes));
}

/// Gives each PCI device the names of its ports.
fn names(all: &mut Inventory) {
    let nics = all.network.nics.iter().map(|nic| (&nic.pci, &nic.name));
    let rdma = all.infiniband.devices.iter().map(|device| (&device.pci, &device.name));
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

/// Gives each port the NUMA node of its device. The drivers of both may differ: mlx4_en and mlx4_core.
fn devices_of_ports(all: &mut Inventory) {
    let devices: BTreeMap<String, &Device> =
        all.pci.iter().map(|device| (device.address.to_string(), device)).collect();
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

/// Moves the counters of a port that an output names only by its LID to the port with that LID.
fn match_ports_by_lid(all: &mut Inventory) {
    let devices = &mut all.infiniband.devices;
    let is_named = |device: &IbDevice| !device.name.is_empty();
    let mut known: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for (at, device) in devices.iter().enumerate().filter(|(_, device)| is_named(device)) {
        for (number, port) in device.ports.iter().enumerate() {
            known.extend(port.lid.filter(|lid| *lid > 0).map(|lid| (lid, (at, number))));
        }
    }
    let counted: Vec<IbPort> = devices
        .iter_mut()
        .filter(|device| !is_named(device))
        .flat_map(|device| {
            let is_known = |port: &IbPort| port.lid.is_some_and(|lid| known.contains_key(&lid));
            let (counted, left): (Vec<_>, Vec<_>) =
                std::mem::take(&mut device.ports).into_iter().partition(is_known);
            device.ports = left;
            counted
        })
        .collect();
    for port in counted {
        let place = port.lid.and_then(|lid| known.get(&lid));
        let own = place.and_then(|(at, number)| devices.get_mut(*at)?.ports.get_mut(*number));
        if let Some(own) = own {
            if own.before.is_empty() {
                own.before = if port.before.is_empty() {
                    std::mem::take(&mut own.counters)
                } else {
                    port.before
                };
            }
            super::port::counters(&mut own.counters, port.counters);
        }
    }
    devices.retain(|device| is_named(device) || !device.ports.is_empty());
}

/// Gives each IPoIB interface the number and the card of its InfiniBand port, found by the GUID.
fn ports_of_interfaces(all: &mut Inventory) {
    let ports = all.infiniband.devices.iter().flat_map(|device| {
        let of = |port: &IbPort| Some((port.guid()?, (port.number, device.pci.clone())));
        device.ports.iter().filter_map(of)
    });
    let ports: BTreeMap<Guid, (u32, String)> = ports.collect();
    for interface in &mut all.infiniband.interfaces {
        let known = interface.guid.and_then(|guid| ports.get(&guid));
        let Some((number, pci)) = known else { continue };
        interface.port = interface.port.or(Some(*number));
        if interface.pci.is_empty() {
            interface.pci.clone_from(pci);
        }
    }
}

/// Keeps only those counters of a driver that linerate also keeps when it reads the host itself. Which these are
/// depends on the driver.
fn kept_counters(all: &mut Inventory) {
    for nic in all.network.nics.iter_mut().filter(|nic| !nic.driver.is_empty()) {
        let driver = &nic.driver;
        // Counters that show no trouble are removed. The packets received are stored first: other counters are shares
        // of them.
        let received = nic.errors.rx_packets;
        nic.errors.rx_packets = received.or_else(|| counted::received(&nic.counters));
        nic.counters.retain(|counter| counted::is_kept(driver, counter));
    }
}
