//! The ceilings of a direction: what the wires and the slots at its ends leave, from what they are
//! and from the packets that were sent.

use super::{Ceiling, Shaping, TcpShares};
use crate::ceiling::{Bounds, Cost, Demand, Flow, Path, Resource, ethernet, pcie, usb};
use crate::facts::crossing::{Crossing, is_default, is_made_up};
use crate::facts::nic::Nic;
use crate::facts::route::Route;
use crate::path::{Direction, Place, Side, Stage};
use crate::record::Host;
use crate::units::{Bytes, Rate};

/// Bytes of a frame that a card moves beside the packet: the header of Ethernet. Check sequence,
/// preamble and gap never leave the card.
//= IEEE 802.3-2022, section 3.1.1
const HEADER: f64 = 14.0;

/// So many times its ceiling no link can carry, whatever the error of a measurement.
const BEYOND: f64 = 1.02;

/// Packets of the base load.
struct Packets {
    payload: u32,
    mtu: u32,
}

/// The most goodput that each wire and slot, and each shaper of the sender's own ports, allows, the
/// lowest first. Empty where nothing with a capacity of its own is known: no ceiling is better than a
/// false one.
///
/// A link or a wire that carried more than it could is not what it says: a hypervisor emulates it.
pub(super) fn ceilings(
    hosts: &[Host],
    direction: Direction,
    tcp: &TcpShares,
    shapers: &[Shaping],
    goodput: f64,
) -> Vec<Ceiling> {
    let Some(packets) = Packets::of(tcp) else {
        return Vec::new();
    };
    let ends = hosts.iter().filter_map(Ports::of);
    let mut all: Vec<Ceiling> = ends
        .flat_map(|end| end.ceilings(direction, &packets))
        .collect();
    all.extend(shapers.iter().filter_map(|s| shaped(s, direction, tcp)));
    all.retain(|c| goodput <= c.rate.0 as f64 * BEYOND);
    all.sort_by_key(|ceiling| ceiling.rate);
    all
}

/// The least goodput that a stage of one of these ports allows, of which nobody knows which carries
/// the path: all of it, where none of them has such a stage. `None` where one does not tell what a
/// ceiling is made of.
pub(crate) fn least_of(
    host: &Host,
    ports: &[&Nic],
    (direction, tcp): (Direction, &TcpShares),
    stage: Stage,
) -> Option<Rate> {
    let packets = Packets::of(tcp)?;
    let route = host.facts.route.as_ref()?;
    let mut least = Rate(u64::MAX);
    for nic in ports {
        let one = Ports {
            side: host.side,
            name: &nic.name,
            tags: route.tags(),
            wires: vec![wire(route, nic, nic.link.speed?)],
            sends_by_one: false,
        };
        let own = one.ceilings(direction, &packets).into_iter();
        let own = own.filter(|c| c.stage == stage).map(|c| c.least);
        least = own.chain([least]).min()?;
    }
    Some(least)
}

impl Packets {
    fn of(tcp: &TcpShares) -> Option<Self> {
        let size = |bytes: Option<Bytes>| u32::try_from(bytes?.0.max(1)).ok();
        Some(Self {
            payload: size(tcp.mss)?,
            mtu: size(tcp.packet)?,
        })
    }
}

/// The ceiling of a shaper. One that limits each stream by itself is none of the path.
fn shaped(shaper: &Shaping, direction: Direction, tcp: &TcpShares) -> Option<Ceiling> {
    shaper.rate?;
    let (rate, formula) = shaper.ceiling(tcp, 1)?;
    Some(Ceiling {
        rate,
        least: rate,
        stage: Stage::Port,
        side: Place::from(direction.sender()),
        name: format!("{} shaper {}", direction.sender().name(), shaper.subject),
        formula,
    })
}

/// The Ethernet wires of an end.
struct Ports<'a> {
    side: Side,
    /// The port's name, or the bond's.
    name: &'a str,
    tags: u32,
    wires: Vec<Wire<'a>>,
    /// Whether all that it sends goes by one of its wires.
    sends_by_one: bool,
}

struct Wire<'a> {
    speed: Rate,
    /// From the card to the processor; empty where that is not known, or where there is no slot.
    crossings: Vec<Crossing<'a>>,
    /// The slowest USB wire above it, with the name of its hub, if it is one of a hub.
    usb: Option<(Option<&'a str>, Rate)>,
}

impl<'a> Ports<'a> {
    /// `None` where an end has no wire of Ethernet, or one without a known speed.
    fn of(host: &'a Host) -> Option<Self> {
        let port = host.facts.port.as_ref().filter(|port| port.is_ethernet)?;
        let nominal = port.speed_mbps.and_then(|m| m.checked_mul(1_000_000));
        let nominal = nominal.filter(|bits| *bits > 0 && !port.is_virtual);
        let nominal = nominal.map(Rate);
        let route = host.facts.route.as_ref();
        let Some((route, wires)) = route.and_then(|r| Some((r, r.wires()?))) else {
            return Some(Self {
                side: host.side,
                name: &port.name,
                tags: 0,
                wires: vec![Wire {
                    speed: nominal?,
                    crossings: Vec::new(),
                    usb: None,
                }],
                sends_by_one: false,
            });
        };
        let speed = |nic: &Nic| nic.link.speed.or(nominal.filter(|_| nic.name == port.name));
        let found: Option<Vec<Wire<'a>>> = wires
            .iter()
            .map(|nic| Some(wire(route, nic, speed(nic)?)))
            .collect();
        let mut found = found?;
        forget_defaults(&mut found);
        Some(Self {
            side: host.side,
            name: match wires.as_slice() {
                [one] => &one.name,
                _ => &port.name,
            },
            tags: route.tags(),
            wires: found,
            sends_by_one: route.bond_by_host().is_some(),
        })
    }

    /// Of a bond that sends all to one host by one member the fastest counts.
    fn ceilings(mut self, direction: Direction, packets: &Packets) -> Vec<Ceiling> {
        if self.sends_by_one && self.side == direction.sender() {
            self.wires.sort_by_key(|wire| std::cmp::Reverse(wire.speed));
            self.wires.truncate(1);
        }
        let mut path = Path {
            resources: Vec::new(),
            flows: vec![flow(direction, packets); self.wires.len()],
        };
        self.wires(&mut path, packets);
        let deepest = self.wires.iter().map(|w| w.crossings.len()).min();
        for depth in 0..deepest.unwrap_or(0) {
            self.slots(&mut path, depth, packets);
        }
        self.usb(&mut path, packets);
        let ceilings = path.ceilings(direction).into_iter().map(|found| Ceiling {
            rate: Rate(found.goodput.high() as u64),
            least: Rate(found.goodput.low() as u64),
            stage: found.resource.stage,
            side: found.resource.side,
            name: found.resource.name.clone(),
            formula: found.formula.to_owned(),
        });
        ceilings.collect()
    }

    fn wires(&self, path: &mut Path, packets: &Packets) {
        let (payload, frame) = (packets.payload, ethernet::wire(packets.mtu, self.tags));
        let cost = Cost::bytes(Bounds::exact(f64::from(frame) / f64::from(payload)));
        let times = match self.wires.len() {
            1 => String::new(),
            many => format!("{many} x "),
        };
        for (at, wire) in self.wires.iter().enumerate() {
            let name = format!("port {}", self.name);
            let capacity = ethernet::capacity(wire.speed.0 as f64);
            let resource = self.add(path, Stage::Net, &name, capacity);
            path.flows[at].demands.push(Demand {
                resource,
                cost,
                formula: format!("{times}{} x {payload}/{frame}", wire.speed),
            });
        }
    }

    /// The links that are this far from the cards, if all of them are known. Cards behind one link
    /// share it.
    fn slots(&self, path: &mut Path, depth: usize, packets: &Packets) {
        let links: Option<Vec<_>> = self
            .wires
            .iter()
            .map(|w| Some((w.crossings[depth].slot.address, slot(&w.crossings, depth)?)))
            .collect();
        let name = match depth {
            0 => format!("slot of {}", self.name),
            _ => format!("switch {depth} above {}", self.name),
        };
        let mut known = Vec::new();
        for (at, (address, slot)) in links.into_iter().flatten().enumerate() {
            let there = known.iter().find(|(known, _)| *known == address);
            let pair = there.map_or_else(
                || [0, 1].map(|_| self.add(path, Stage::Pcie, &name, slot.capacity())),
                |(_, pair)| *pair,
            );
            known.push((address, pair));
            self.cross(&mut path.flows[at], pair, &slot, packets);
        }
    }

    /// The USB that all of the wires hang on, if they do. Adapters on one hub share its wire.
    fn usb(&self, path: &mut Path, packets: &Packets) {
        let wires: Option<Vec<_>> = self.wires.iter().map(|wire| wire.usb).collect();
        let frame = (f64::from(packets.mtu) + HEADER) / f64::from(packets.payload);
        let cost = Cost::bytes(Bounds::exact(frame.max(1.0)));
        let mut known: Vec<(&str, usize)> = Vec::new();
        for (at, (hub, signals)) in wires.into_iter().flatten().enumerate() {
            let shared = known.iter().find(|(name, _)| Some(*name) == hub);
            let resource = shared.map_or_else(
                || {
                    let bits = usb::leaves(signals);
                    let bytes = Bounds::new(bits.low() / 8.0, bits.high() / 8.0);
                    self.add(path, Stage::Pcie, &format!("USB of {}", self.name), bytes)
                },
                |(_, resource)| *resource,
            );
            known.extend(hub.map(|hub| (hub, resource)));
            path.flows[at].demands.push(Demand {
                resource,
                cost,
                formula: format!(
                    "{}, at the most, and {:.0} % for headers",
                    usb::words(signals),
                    (frame - 1.0) * 100.0
                ),
            });
        }
    }

    /// A sender's card reads memory and asks for it; a receiver's writes.
    fn cross(
        &self,
        flow: &mut Flow,
        [to_card, to_memory]: [usize; 2],
        slot: &pcie::Slot,
        packets: &Packets,
    ) {
        let frame = f64::from(packets.mtu) + HEADER + f64::from(4 * self.tags);
        let payload = f64::from(packets.payload);
        // One header for many packets where the card cuts them, else one for each.
        let most = (frame / payload).max(1.0);
        let headers = |cost: Cost| {
            Cost::bytes(Bounds::new(
                cost.per_byte.low(),
                cost.per_byte.high() * most,
            ))
        };
        let words = |words: String| {
            let percent = (most - 1.0) * 100.0;
            format!("{words} and {percent:.0} % for headers")
        };
        let sends = flow.direction.sender() == self.side;
        let mut demand = |resource, cost, formula| {
            flow.demands.push(Demand {
                resource,
                cost: headers(cost),
                formula,
            });
        };
        if sends {
            demand(to_card, slot.read(), words(slot.read_words()));
            demand(to_memory, slot.request(), "requests to read".to_owned());
        } else {
            demand(to_memory, slot.write(), words(slot.write_words()));
        }
    }

    fn add(&self, path: &mut Path, stage: Stage, what: &str, capacity: Bounds) -> usize {
        path.resources.push(Resource {
            name: format!("{} {what}", self.side.name()),
            stage,
            side: Place::from(self.side),
            capacity,
            inputs: Vec::new(),
        });
        path.resources.len() - 1
    }
}

/// However many streams there are, they share a wire.
fn flow(direction: Direction, packets: &Packets) -> Flow {
    let payload = Bounds::exact(f64::from(packets.payload));
    Flow {
        direction,
        streams: Bounds::exact(1.0),
        packet: payload,
        operation: payload,
        demands: Vec::new(),
    }
}

fn wire<'a>(route: &'a Route, nic: &'a Nic, speed: Rate) -> Wire<'a> {
    let mut crossings = route.crossings(nic);
    if is_made_up(&crossings, speed) {
        crossings.clear();
    }
    Wire {
        speed,
        crossings,
        usb: nic.slowest_usb(),
    }
}

/// Drops the links of ports that share one with the figures that ports inside the processor show by default.
fn forget_defaults(wires: &mut [Wire<'_>]) {
    let slot = |wire: &Wire<'_>| wire.crossings.first().map(|link| link.slot.address);
    let slots: Vec<_> = wires.iter().filter_map(slot).collect();
    for wire in wires {
        let own = slot(wire);
        let sharers = slots.iter().filter(|slot| Some(**slot) == own).count();
        if sharers > 1 && wire.crossings.first().is_some_and(is_default) {
            wire.crossings.clear();
        }
    }
}

/// A link as the formulas of PCI Express need it; packets are as large as the card makes them.
fn slot(crossings: &[Crossing<'_>], depth: usize) -> Option<pcie::Slot> {
    let link = crossings.get(depth)?.now;
    let payload = crossings.first()?.device.payload;
    pcie::Slot::of(link, payload)
}

#[cfg(test)]
mod tests;
