//! The carriers of traffic between ports and memory, PCI Express links and USB, which several ports may share.

use std::collections::{BTreeMap, BTreeSet};

use super::Inventory;
use super::crossing::{Crossing, crossings, is_made_up, slot};
use super::infiniband::{IbPort, Layer};
use super::nic::{Nic, mode_speed};
use super::pci::{self, Address, Device};
use linerate_ceiling::infiniband::Speed;
use linerate_ceiling::{Bounds, ethernet, infiniband, usb};
use linerate_units::Rate;

/// MTU that is assumed for a port whose MTU is unknown.
const USUAL_MTU: u32 = 1500;
/// Bytes of payload in an InfiniBand packet on most fabrics.
const USUAL_PAYLOAD: u32 = 2048;
/// Rates that differ by less than this share are equal: they result from divisions.
const SAME: f64 = 1e-6;

/// A port with the rate of its wire. For a port that is down this is the rate that it could have.
#[derive(Debug, Clone, PartialEq)]
pub struct PortLoad {
    /// Name of the port: `eth0`, `mlx5_0`.
    pub name: String,
    /// The rate of the port's wire; for InfiniBand the data rate, without the line code.
    pub rate: Rate,
    /// Bits per second between the port and memory: frames on Ethernet, payload on InfiniBand.
    pub frames: f64,
    /// Whether the port is up and has carrier.
    pub up: bool,
    /// Whether another member of the port's bond or team carries the traffic, or may carry it. Such a port adds nothing
    /// to sums.
    pub stands_by: bool,
}

/// What carries the traffic of some ports to memory.
#[derive(Debug, Clone, Copy)]
pub enum Via<'a> {
    /// A PCI Express link.
    Link(Crossing<'a>),
    /// USB: its signalling rate, and the hub whose wire is the slowest; `None` if the adapter's own wire is.
    Usb(Option<&'a str>, Rate),
}

/// A carrier with all ports whose traffic crosses it.
#[derive(Debug, Clone)]
pub struct Carrier<'a> {
    /// What the carrier is: a PCI Express link or USB.
    pub via: Via<'a>,
    /// Bits per second of frames that the carrier can carry in each direction.
    pub leaves: Bounds,
    /// The ports that share the carrier, with the rates that narrower carriers between a port and this carrier allow.
    pub ports: Vec<Arrival>,
}

/// The traffic of one port that can reach a carrier.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The port, with the rate of its wire.
    pub load: PortLoad,
    /// Bits per second of frames from this port while all other ports are idle.
    alone: f64,
    /// Bits per second of frames from this port while all ports in use are busy; 0 for a port that is down or on
    /// standby.
    shared: f64,
}

impl PortLoad {
    fn is_used(&self) -> bool {
        self.up && !self.stands_by
    }
}

impl Carrier<'_> {
    /// The ports that exceed the carrier by themselves.
    pub fn exceeded_by(&self) -> Vec<&PortLoad> {
        let beyond = |port: &&Arrival| exceeds(port.alone, self.leaves.high());
        let ports = self.ports.iter().filter(beyond);
        ports.map(|port| &port.load).collect()
    }

    /// The ports in use, if together they exceed the carrier and no single one does.
    pub fn exceeded_by_all(&self) -> Option<Vec<&PortLoad>> {
        let used = self.ports.iter().filter(|port| port.load.is_used());
        let total = used.clone().map(|port| port.shared).sum();
        let are_faster = self.exceeded_by().is_empty() && exceeds(total, self.leaves.high());
        are_faster.then(|| used.map(|port| &port.load).collect())
    }
}

fn exceeds(rate: f64, leaves: f64) -> bool {
    rate > leaves * (1.0 + SAME)
}

/// The carriers of a machine's ports. If several carriers have the same ports, only the slowest one is kept: among
/// equally slow links the nearest, among equally slow hubs the farthest.
///
/// Carriers and ports with unknown rates are left out: tunnels, links that were not read or have placeholder figures,
/// ports without a speed or with several PCI functions.
pub fn carriers(inventory: &Inventory) -> Vec<Carrier<'_>> {
    let chains = chains(inventory);
    let (sets, of_key) = users(&chains);
    let mut narrowest: BTreeMap<usize, (Via<'_>, Bounds)> = BTreeMap::new();
    for (key, via, leaves) in chains.iter().flat_map(|(_, chain)| chain) {
        let least = narrowest.entry(of_key[key]).or_insert((*via, *leaves));
        // A slow hub slows down everything attached to it, so the farthest one is kept. A slow link must be fixed in
        // the slot of its card, so the nearest one is kept.
        let is_hub = matches!(via, Via::Usb(Some(_), _)) && leaves.high() <= least.1.high();
        if is_hub || leaves.high() < least.1.high() {
            *least = (*via, *leaves);
        }
    }
    let found = narrowest.into_iter();
    let mut found: Vec<_> = found.map(|(set, via)| (&sets[set], via)).collect();
    // Carriers with fewer ports come first: traffic reaches them before it reaches carriers that more ports share.
    found.sort_by_key(|(users, _)| users.len());
    let mut arrivals: Vec<Arrival> = chains.iter().map(|(load, _)| Arrival::of(load)).collect();
    let mut carriers = Vec::new();
    for (users, (via, leaves)) in found {
        carriers.push(Carrier {
            via,
            leaves,
            ports: users.iter().map(|at| arrivals[*at].clone()).collect(),
        });
        let total: f64 = users.iter().map(|at| arrivals[*at].shared).sum();
        for at in users {
            arrivals[*at].shared *= (leaves.high() / total.max(1.0)).min(1.0);
            arrivals[*at].alone = arrivals[*at].alone.min(leaves.high());
        }
    }
    carriers
}

/// The different sets of ports that share a carrier, in a fixed order, and for each carrier the index of its set. Ports
/// are compared once for each carrier, not again for each pair of ports.
fn users<'a>(chains: &[(PortLoad, Chain<'a>)]) -> (Vec<Vec<usize>>, BTreeMap<Key<'a>, usize>) {
    let mut users: BTreeMap<Key<'a>, Vec<usize>> = BTreeMap::new();
    for (at, (_, chain)) in chains.iter().enumerate() {
        for (key, ..) in chain {
            let ports = users.entry(*key).or_default();
            if ports.last() != Some(&at) {
                ports.push(at);
            }
        }
    }
    let mut sets: Vec<Vec<usize>> = users.values().cloned().collect();
    sets.sort_unstable();
    sets.dedup();
    let place = |ports: &Vec<usize>| sets.partition_point(|set| set < ports);
    let of_key = users.iter().map(|(key, ports)| (*key, place(ports)));
    let of_key = of_key.collect();
    (sets, of_key)
}

impl Arrival {
    fn of(load: &PortLoad) -> Self {
        Self {
            load: load.clone(),
            alone: load.frames,
            shared: if load.is_used() { load.frames } else { 0.0 },
        }
    }
}

/// What identifies a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    /// A PCI Express link, by the address of its end towards memory. All functions of a card share this link.
    Link(Address),
    /// A USB wire, by the name of its hub, or of the port whose adapter it belongs to.
    Usb(&'a str),
}

type Chain<'a> = Vec<(Key<'a>, Via<'a>, Bounds)>;

/// All ports with a known rate, each with its carriers, the nearest first.
fn chains(inventory: &Inventory) -> Vec<(PortLoad, Chain<'_>)> {
    let loads = loads(inventory).into_iter().map(|(load, card)| {
        let links = links(&inventory.pci, card, load.rate);
        (load, links)
    });
    let on_usb = inventory.network.nics.iter().filter(|nic| nic.usb.is_some());
    let on_usb = on_usb.filter_map(|nic| Some((ethernet_load(inventory, nic)?, usb_chain(nic))));
    loads.chain(on_usb).collect()
}

/// The ports that are not on USB and whose rate is known, with the PCI addresses of their cards.
fn loads(inventory: &Inventory) -> Vec<(PortLoad, &str)> {
    let nics = inventory.network.nics.iter().filter(|nic| nic.usb.is_none());
    let nics = nics.filter_map(|nic| Some((ethernet_load(inventory, nic)?, nic.pci.as_str())));
    let devices = inventory.infiniband.devices.iter();
    let ports = devices.flat_map(|device| {
        device.ports.iter().filter_map(|port| {
            let name = match device.ports.len() {
                1 => device.name.clone(),
                _ => format!("{} port {}", device.name, port.number),
            };
            Some((infiniband_load(name, port)?, device.pci.as_str()))
        })
    });
    nics.chain(ports).collect()
}

/// The driver that combines several PCI functions, each with its own link, into one port (Socket Direct).
//= Linux Documentation/networking/multi-pf-netdev.rst
const COMBINING_DRIVER: &str = "mlx5_core";

/// Whether a port may have more PCI functions than the known one: there is a function of the same model and driver in
/// another slot that has no network port and no InfiniBand port.
fn has_several_functions(inventory: &Inventory, nic: &Nic) -> bool {
    let address: Option<Address> = nic.pci.parse().ok();
    let own = address.and_then(|address| pci::at(&inventory.pci, address));
    let Some(own) = own.filter(|own| own.driver == COMBINING_DRIVER && !own.is_virtual) else {
        return false;
    };
    let place = |d: &Device| (d.address.domain, d.address.bus, d.address.slot);
    let is_alike = |d: &&Device| {
        let same = (d.vendor, d.device, &d.driver) == (own.vendor, own.device, &own.driver);
        same && !d.is_virtual && place(d) != place(own)
    };
    let is_free = |d: &Device| {
        let address = d.address.to_string();
        let is_infiniband = |port: &IbPort| port.layer == Some(Layer::InfiniBand);
        let mut rdma = inventory.infiniband.devices.iter();
        !inventory.network.nics.iter().any(|nic| nic.pci == address)
            && !rdma.any(|own| own.pci == address && own.ports.iter().any(is_infiniband))
    };
    inventory.pci.iter().filter(is_alike).any(is_free)
}

/// The load of an Ethernet port with its own wire. A port that is down counts with the fastest mode that it supports.
fn ethernet_load(inventory: &Inventory, nic: &Nic) -> Option<PortLoad> {
    let is_whole = nic.kind.is_empty() && nic.stack.below.is_empty() && !nic.is_virtual;
    let is_own = nic.device.is_empty() || nic.device == nic.pci || nic.usb.is_some();
    let modes = nic.link.supported.iter();
    let rate =
        if nic.up { nic.link.speed } else { modes.filter_map(|mode| mode_speed(mode)).max() };
    let mtu = nic.mtu.unwrap_or(USUAL_MTU).max(1);
    let (frame, wire) = (ethernet::frame(mtu, 0), f64::from(ethernet::wire(mtu, 0)));
    let load = |rate: Rate| PortLoad {
        name: nic.name.clone(),
        rate,
        frames: rate.0 as f64 * frame / wire,
        up: nic.up,
        stands_by: stands_by(inventory, nic),
    };
    let is_whole = is_whole && is_own && !has_several_functions(inventory, nic);
    rate.filter(|_| is_whole).map(load)
}

/// The load of an InfiniBand port that is in use. The rate of its wire is the signalling rate less the overhead of the
/// line code.
fn infiniband_load(name: String, port: &IbPort) -> Option<PortLoad> {
    let rate = port.in_use()?;
    let speed = Speed::NAMES.iter().find(|(known, _)| *known == rate.speed);
    let data = f64::from(rate.width) * speed?.1.lane();
    let headers = infiniband::rdma(&[USUAL_PAYLOAD])?.wire_per_byte.low();
    (port.layer == Some(Layer::InfiniBand)).then_some(PortLoad {
        name,
        rate: Rate(data as u64),
        frames: data / headers,
        up: true,
        stands_by: false,
    })
}

/// Whether a port is a standby member of a bond that sends through one member, is in an aggregator that carries
/// nothing, or may be a standby member of a team, whose mode is unknown. If the active member of a bond is unknown, the
/// first member counts as active.
fn stands_by(inventory: &Inventory, nic: &Nic) -> bool {
    let above = nic.stack.above.and_then(|index| inventory.network.nic(index));
    above.is_some_and(|above| {
        let bond = above.stack.bond.as_ref();
        if bond.is_some_and(|bond| !bond.aggregates(nic)) {
            return true;
        }
        let bond = bond.filter(|bond| bond.mode == "active-backup");
        let active = bond.and_then(|bond| bond.active.or(above.stack.below.first().copied()));
        above.kind == "team" || active.is_some_and(|active| active != nic.index)
    })
}

/// The PCI Express links between memory and the card at the address `card`, with what each can carry.
fn links<'a>(all: &'a [Device], card: &str, port: Rate) -> Chain<'a> {
    let card = card.parse().ok().and_then(|address| pci::at(all, address));
    let Some(card) = card.filter(|card| !card.is_virtual) else {
        return Vec::new();
    };
    let links = crossings(all, card);
    if is_made_up(&links, port) {
        return Vec::new();
    }
    let known = links.into_iter().filter_map(|link| {
        let leaves = slot(link.now, card.payload)?.leaves();
        Some((Key::Link(link.slot.address), Via::Link(link), leaves))
    });
    known.collect()
}

fn usb_chain(nic: &Nic) -> Chain<'_> {
    let own = nic.usb.map(|speed| (None, speed));
    let hubs = nic.usb_hubs.iter();
    let hubs = hubs.filter_map(|hub| Some((Some(hub.name.as_str()), hub.speed?)));
    let wires = own.into_iter().chain(hubs).map(|(hub, speed)| {
        let key = Key::Usb(hub.unwrap_or(&nic.name));
        (key, Via::Usb(hub, speed), usb::leaves(speed))
    });
    wires.collect()
}

/// The rate that the devices behind a PCI Express link need.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// All devices behind the link are network ports.
    Ports {
        /// Sum of the rates of their wires.
        rate: Rate,
        /// Sum of the frames that they move to or from memory, in bits per second.
        frames: f64,
        /// Whether every PCI function behind the link has a port whose rate is known.
        all_known: bool,
    },
    /// Some devices are disks or accelerators, whose demand is unknown.
    Open,
}

impl Need {
    /// The need of the devices behind the link whose end towards memory is at `slot`; `None` if there are no devices.
    pub fn behind(inventory: &Inventory, slot: Address) -> Option<Self> {
        Self::of(inventory, &behind(&inventory.pci, slot))
    }

    /// The need of these devices; `None` if the list is empty.
    pub fn of(inventory: &Inventory, devices: &[&Device]) -> Option<Self> {
        if devices.is_empty() {
            return None;
        }
        if devices.iter().any(|device| !device.is_network()) {
            return Some(Self::Open);
        }
        let mut need = (0u64, 0.0);
        let mut known = BTreeSet::new();
        for (load, card) in loads(inventory) {
            let card: Option<Address> = card.parse().ok();
            if let Some(card) = card.filter(|card| devices.iter().any(|d| d.address == *card)) {
                need = (need.0.saturating_add(load.rate.0), need.1 + load.frames);
                known.insert(card);
            }
        }
        Some(Self::Ports {
            rate: Rate(need.0),
            frames: need.1,
            all_known: known.len() == devices.len(),
        })
    }
}

/// The devices whose traffic crosses the link whose end towards memory is at `slot`. Virtual functions are left out,
/// since their card counts.
pub fn behind(all: &[Device], slot: Address) -> Vec<&Device> {
    let is_behind = |d: &&Device| {
        let above = pci::bridges_above(all, d);
        !d.is_virtual && d.carries_data() && above.iter().any(|b| b.address == slot)
    };
    all.iter().filter(is_behind).collect()
}

#[cfg(test)]
mod tests;
