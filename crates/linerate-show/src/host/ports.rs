//! Shows network ports and ports of RDMA devices.

use std::collections::{BTreeMap, BTreeSet};

use linerate_facts::infiniband::{Guid, IbDevice, IbPort, Layer, LinkState, PhysicalState};
use linerate_facts::irq::Irq;
use linerate_facts::nic::{Counter, Network, Nic, Offloads, QueueDirection, Setting, counted};
pub(super) use linerate_facts::odd::few;
use linerate_facts::odd::ranges;
use linerate_facts::{Inventory, board};

use super::super::Document;
use super::{alike, pci, put};

/// Kind of a network port with IP over InfiniBand.
const IPOIB: &str = "ipoib";

/// Writes the ports with a device, a line for each; then the ports made by software, where ports with equal
/// properties share a line.
pub(super) fn ports(doc: &mut Document, inventory: &Inventory) {
    let network = &inventory.network;
    let (cards, software): (Vec<&Nic>, Vec<&Nic>) =
        network.nics.iter().partition(|nic| has_device(nic));
    let mut lines = card_lines(inventory, &cards);
    let software = software.iter().map(|nic| (nic.name.as_str(), made(network, nic)));
    lines.extend(alike(software));
    for (i, line) in lines.iter().enumerate() {
        put(doc, if i == 0 { "Ports" } else { "" }, line);
    }
}

/// A line for each port with a device. If many differ only in their PCI address, they share one line.
fn card_lines(inventory: &Inventory, cards: &[&Nic]) -> Vec<String> {
    const EACH: usize = 16;
    let words = cards.iter().map(|nic| (card(inventory, nic), nic.node));
    let words: Vec<(String, Option<u32>)> = words.collect();
    let mut sorts: BTreeMap<_, Vec<&Nic>> = BTreeMap::new();
    for (key, nic) in words.iter().zip(cards) {
        sorts.entry(key).or_default().push(nic);
    }
    let irqs = inventory.interrupts.by_port(&inventory.network.nics);
    let line = |(key, nic): (&(String, Option<u32>), &&Nic)| {
        let alike = &sorts[key];
        let mut parts = vec![key.0.clone()];
        if alike.len() <= EACH {
            let own = irqs.get(&nic.index).map_or(&[][..], Vec::as_slice);
            parts.extend(served(nic, own));
            parts.extend(place(inventory, nic.node, &nic.pci));
            parts.extend(usb(nic));
            parts.extend(addresses(&inventory.network, nic));
            return Some(format!("{}: {}", nic.name, parts.join(", ")));
        }
        let names: Vec<&str> = alike.iter().map(|nic| nic.name.as_str()).collect();
        parts.extend(place(inventory, nic.node, ""));
        let is_first = alike[0].index == nic.index;
        is_first.then(|| format!("{}: {}", few(&names), parts.join(", ")))
    };
    words.iter().zip(cards).filter_map(line).collect()
}

/// Addresses of a port: the hardware address if it has a device, then the IP addresses.
fn addresses(network: &Network, nic: &Nic) -> Vec<String> {
    let Some(known) = network.addresses_of(nic.index) else {
        return Vec::new();
    };
    // The hardware address of IP over InfiniBand is long and contains the GUID of the port, which is shown elsewhere.
    let hardware = Some(&known.hardware).filter(|own| !own.is_empty() && nic.kind != IPOIB);
    let hardware = hardware.filter(|_| has_device(nic));
    let ip = (!known.ip.is_empty()).then(|| few(&known.ip));
    hardware.cloned().into_iter().chain(ip).collect()
}

/// USB speed of a port, and the speed of a slower hub above it.
fn usb(nic: &Nic) -> Option<String> {
    let own = nic.usb?;
    let hub = match nic.slowest_usb()? {
        (Some(hub), speed) => format!(" (the hub {hub} at {speed})"),
        (None, _) => String::new(),
    };
    Some(format!("USB at {own}{hub}"))
}

/// Whether a port has a device of its own: it is no port made by software.
fn has_device(nic: &Nic) -> bool {
    !nic.is_virtual || !nic.pci.is_empty() || !nic.device.is_empty()
}

/// A description of a port with a device, without its PCI address and the CPUs that serve it.
fn card(inventory: &Inventory, nic: &Nic) -> String {
    let link = &nic.link;
    let mut parts = vec![kind(nic)];
    if !nic.firmware.is_empty() {
        parts.push(format!("firmware {}", nic.firmware));
    }
    if nic.is_wifi {
        parts.push("Wi-Fi".to_owned());
    }
    if nic.kind == IPOIB {
        parts.push("IP over InfiniBand".to_owned());
    }
    parts.extend(match link.speed {
        // The speed that a hypervisor reports is nominal.
        _ if nic.is_virtual => Some("virtual".to_owned()),
        Some(speed) => Some(speed.to_string()),
        // IP over InfiniBand: the InfiniBand port below shows the speed.
        None if nic.kind == IPOIB => None,
        None if nic.up => Some("speed unknown".to_owned()),
        None => None,
    });
    if nic.is_half() {
        parts.push("half duplex".to_owned());
    }
    parts.extend(state(nic));
    parts.extend(queues(nic));
    parts.extend(settings(nic));
    parts.extend(stack(&inventory.network, nic));
    parts.extend(since_boot(nic));
    parts.join(", ")
}

/// The CPUs that received packets are processed on: those of the interrupts of the port's queues, and those that
/// RPS hands packets to.
fn served(nic: &Nic, irqs: &[&Irq]) -> Vec<String> {
    let queues = irqs.iter().filter(|irq| irq.queue().is_some());
    let served: BTreeSet<u32> = queues.flat_map(|irq| irq.effective.clone()).collect();
    let on = |what: &str, cpus: BTreeSet<u32>| {
        let cpus: Vec<u32> = cpus.into_iter().collect();
        (!cpus.is_empty()).then(|| format!("{what} {}", ranges(&cpus)))
    };
    let parts = [on("interrupts on CPUs", served), on("RPS to CPUs", nic.rps_cpus())];
    parts.into_iter().flatten().collect()
}

/// Settings that an administrator may want to change: missing offloads, FEC, shapers; on a fast port also rings and
/// channels below their maximum.
fn settings(nic: &Nic) -> Vec<String> {
    let mut parts = Vec::new();
    let mut lacking = nic.offloads.as_ref().map_or(Vec::new(), Offloads::lacking);
    // GRO joins packets at the port with a device; most software ports never do it, so it is not missed there.
    lacking.retain(|offload| !(nic.is_software() && *offload == "GRO"));
    if !lacking.is_empty() {
        parts.push(format!("off: {}", lacking.join(", ")));
    }
    let fec = nic.fec.as_ref().map(|fec| fec.active.as_str());
    let fec = fec.filter(|fec| !["", "None"].contains(fec));
    parts.extend(fec.map(|fec| format!("FEC {fec}")));
    let shapers: Vec<String> = nic.shapers.iter().map(ToString::to_string).collect();
    if !shapers.is_empty() {
        parts.push(format!("shaped: {}", few(&shapers)));
    }
    if nic.is_fast() {
        let raisable = |what: &str, setting: Setting| {
            let (now, most) = setting.below_most()?;
            Some(format!("{what} {now} of {most}"))
        };
        let rings = nic.rings.unwrap_or_default();
        parts.extend(raisable("channels", nic.channels.unwrap_or_default().combined));
        parts.extend(raisable("rx ring", rings.rx));
        parts.extend(raisable("tx ring", rings.tx));
    }
    parts
}

/// Errors and drops since boot: first the kernel's counters, then further counters of the driver.
fn since_boot(nic: &Nic) -> Option<String> {
    let kernel = nic.errors.counted();
    let mut all: Vec<String> = kernel.iter().map(|(name, n)| format!("{n} {name}")).collect();
    // A driver counter with the same value as a kernel counter is taken for the same counter under another name.
    let besides =
        |c: &&Counter| !counted::is_of_kernel(&c.name) && kernel.iter().all(|(_, n)| *n != c.value);
    let own = nic.counters.iter().filter(|c| c.value > 0).filter(besides);
    all.extend(own.filter_map(|c| own_words(nic, c)));
    (!all.is_empty()).then(|| format!("since boot: {}", few(&all)))
}

/// `7 rx_no_dma_resources (the receive ring was full)`; `None` if what is counted costs no packets.
fn own_words(nic: &Nic, counter: &Counter) -> Option<String> {
    let words = match counted::meaning(&nic.driver, &counter.name) {
        Some(meaning) if meaning.is_trouble() => meaning.words(),
        Some(_) => return None,
        None => "meaning not known to linerate",
    };
    Some(format!("{} {} ({words})", counter.value, counter.name))
}

/// Numbers of queues: `queues 8 rx 8 tx`; old kernels list one direction only.
fn queues(nic: &Nic) -> Option<String> {
    let ways = [(QueueDirection::Rx, "rx"), (QueueDirection::Tx, "tx")];
    let ways = ways.map(|(way, name)| (nic.queues_of(way), name));
    let known = ways.iter().filter(|(n, _)| *n > 0);
    let known: Vec<String> = known.map(|(n, name)| format!("{n} {name}")).collect();
    (!known.is_empty()).then(|| format!("queues {}", known.join(" ")))
}

/// A description of a port made by software.
fn made(network: &Network, nic: &Nic) -> String {
    let mut parts = vec![kind(nic)];
    parts.extend(state(nic));
    parts.extend(settings(nic));
    parts.extend(stack(network, nic));
    parts.extend(addresses(network, nic));
    parts.join(", ")
}

fn kind(nic: &Nic) -> String {
    let known = [&nic.driver, &nic.kind].into_iter().find(|k| !k.is_empty());
    known.map_or("driver unknown", String::as_str).to_owned()
}

fn state(nic: &Nic) -> Vec<String> {
    let state = match (nic.up, nic.down.as_str()) {
        (true, _) => "up".to_owned(),
        (false, "") => "down".to_owned(),
        (false, why) => format!("down ({why})"),
    };
    let mtu = nic.mtu.map(|mtu| format!("MTU {mtu}"));
    mtu.into_iter().chain([state]).collect()
}

/// Words for the ports below and above a port, with VLAN tag and bond mode.
fn stack(network: &Network, nic: &Nic) -> Vec<String> {
    let stack = &nic.stack;
    let name = |index: u32| match network.nic(index) {
        Some(nic) => nic.name.clone(),
        None => format!("port {index}"),
    };
    let mut parts = Vec::new();
    parts.extend(stack.vlan.map(|tag| format!("tag {tag}")));
    parts.extend(stack.bond.as_ref().map(|bond| match bond.hash.as_str() {
        "" => bond.mode.clone(),
        hash => format!("{} by {hash}", bond.mode),
    }));
    let below: Vec<String> = stack.below.iter().map(|&index| name(index)).collect();
    if !below.is_empty() {
        parts.push(format!("on {}", few(&below)));
    }
    if stack.below_hidden {
        parts.push("on a port of another network namespace".to_owned());
    }
    parts.extend(stack.above.map(|index| format!("part of {}", name(index))));
    parts
}

/// NUMA node, PCI address and PCI link of the device that a port or disk belongs to.
pub(super) fn place(inventory: &Inventory, node: Option<u32>, pci: &str) -> Vec<String> {
    let mut parts: Vec<String> = node.iter().map(|node| format!("node {node}")).collect();
    if !pci.is_empty() {
        let link = pci::link_of(&inventory.pci, pci);
        parts.push(match link {
            Some(link) => format!("PCI {pci} ({link})"),
            None => format!("PCI {pci}"),
        });
    }
    parts
}

/// Writes the ports of RDMA devices, and their boards.
pub(super) fn infiniband(doc: &mut Document, inventory: &Inventory) {
    let devices = inventory.infiniband.devices.iter();
    let ports = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    for (i, (device, port)) in ports.enumerate() {
        let label = if i == 0 { "InfiniBand" } else { "" };
        let words = ib_port(inventory, device, port);
        put(doc, label, &format!("{} port {}: {words}", device.name, port.number));
    }
    for device in &inventory.infiniband.devices {
        for line in board(device) {
            put(doc, "", &line);
        }
    }
}

/// Lines about the board of a device, and about a newer firmware; empty for software devices.
fn board(device: &IbDevice) -> Vec<String> {
    if device.board.is_empty() || device.software {
        return Vec::new();
    }
    let id = &device.board;
    let Some(known) = board::of(id) else {
        return vec![format!("{}: board {id}, not known to linerate", device.name)];
    };
    let seller = match known.sold_by {
        "" => String::new(),
        name => format!(", sold by {name}"),
    };
    let mut lines = vec![format!(
        "{}: board {id} is {} ({}{seller}): {}",
        device.name,
        known.part,
        known.family().name,
        known.ports_in_words()
    )];
    let newer = known.newer_firmware(&device.firmware);
    lines.extend(
        newer.map(|newer| {
            format!("{}: firmware {}; there is {newer}", device.name, device.firmware)
        }),
    );
    lines
}

fn ib_port(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> String {
    let mut parts = Vec::new();
    if !device.model.is_empty() {
        parts.push(device.model.clone());
    }
    parts.extend(port.layer.filter(|l| *l != Layer::InfiniBand).map(|l| l.name().to_owned()));
    let state = port.state.map_or("state unknown", LinkState::name);
    parts.push(match port.physical {
        Some(PhysicalState::LinkUp) | None => state.to_owned(),
        Some(physical) => format!("{state} ({})", physical.name()),
    });
    parts.extend(rate(device, port));
    parts.extend(guids(device, port));
    // Ethernet has no LIDs.
    if port.layer != Some(Layer::Ethernet) {
        parts.extend(port.lid.map(|lid| format!("lid {lid}")));
        parts.extend(port.sm_lid.map(|lid| format!("sm lid {lid}")));
    }
    let function = device.pci.parse().ok();
    let function = function.and_then(|address| linerate_facts::pci::at(&inventory.pci, address));
    let driver = function.map(|function| function.driver.as_str());
    let driver = driver.filter(|driver| !driver.is_empty());
    parts.extend(driver.map(|driver| format!("driver {driver}")));
    parts.extend(place(inventory, device.node, &device.pci));
    parts.join(", ")
}

/// The rate that the two ends of a link agreed on, in words. It is not read without a link, as the kernel then
/// shows a placeholder.
fn rate(device: &IbDevice, port: &IbPort) -> Option<String> {
    if port.has_link() == Some(false) {
        return Some("no link".to_owned());
    }
    let rate = port.agreed()?;
    let words = rate.to_string();
    Some(if device.software { format!("software device, nominal rate {words}") } else { words })
}

/// The GUIDs of a port and of its device, in the format of InfiniBand tools.
fn guids(device: &IbDevice, port: &IbPort) -> Vec<String> {
    let words = |what: &str, guid: Guid| match guid {
        Guid::NONE => format!("no {what}"),
        guid => format!("{what} {guid}"),
    };
    let port = port.guid().map(|guid| words("port GUID", guid));
    let node = device.node_guid.map(|guid| words("node GUID", guid));
    port.into_iter().chain(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line about errors since boot, for a port with this driver and these counters.
    fn result_of(driver: &str, missed: u64, counters: &[(&str, u64)]) -> Option<String> {
        let counters =
            counters.iter().map(|&(name, value)| Counter { name: name.to_owned(), value });
        let mut nic =
            Nic { driver: driver.to_owned(), counters: counters.collect(), ..Nic::default() };
        nic.errors.rx_missed = Some(missed);
        since_boot(&nic)
    }

    #[test]
    fn counters_of_a_driver_are_told_by_what_they_mean() {
        let ixgbe = [("rx_no_dma_resources", 7), ("tx_busy", 3)];
        let words = "7 rx_no_dma_resources (the receive ring was full)";
        assert_eq!(result_of("ixgbe", 0, &ixgbe).unwrap(), format!("since boot: {words}"));
        assert_eq!(
            result_of("ixgbe", 2, &ixgbe).unwrap(),
            format!("since boot: 2 rx missed, {words}")
        );
        assert_eq!(
            result_of("unheard", 0, &[("some_drops", 7)]).unwrap(),
            "since boot: 7 some_drops (meaning not known to linerate)"
        );
    }

    #[test]
    fn what_costs_no_packets_and_what_the_kernel_counts_as_well_is_left_out() {
        let ena = [("conntrack_allowance_available", 900), ("pps_allowance_exceeded", 0)];
        assert_eq!(result_of("ena", 0, &ena), None);
        assert_eq!(result_of("mlx5_core", 0, &[("rx_steer_missed_packets", 9)]), None);
        let both = [("rx_out_of_buffer", 12), ("rx_missed_errors", 11)];
        let once = result_of("mlx5_core", 12, &both).unwrap();
        assert_eq!(once, "since boot: 12 rx missed");
    }
}
