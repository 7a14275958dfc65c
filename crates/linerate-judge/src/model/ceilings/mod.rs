//! The ceilings of one direction of a run, derived from the hosts' facts about the path and the sizes of the packets
//! sent.

mod disk;
mod verbs;

pub(crate) use verbs::rdma_packet;

use super::{Ceiling, Load, Packets, Shaping};
use linerate_ceiling::part::{Description, Kind, Links, Part, Slots, Usb};
use linerate_ceiling::{Bounds, Link, ethernet, pcie};
use linerate_facts::crossing::{self, Crossing, is_default, is_made_up};
use linerate_facts::nic::Nic;
use linerate_facts::route::Route;
use linerate_plan::path::{Direction, Place, Side, Stage};
use linerate_plan::transport::Feature;
use linerate_record::Host;
use linerate_units::{Bytes, Rate};

/// Largest ratio of a link's goodput to its ceiling that errors of a measurement explain. A link that carries more is
/// made up.
const BEYOND: f64 = 1.02;

/// The ceilings that apply to a load in a direction.
pub(super) fn of_load(hosts: &[Host], direction: Direction, load: &Load) -> Vec<Ceiling> {
    if load.has(Feature::Verbs) {
        return verbs::of_rdma(hosts, direction, load);
    }
    if load.has(Feature::Disk) {
        return disk::of_disk(hosts, direction, load);
    }
    let shapers = load.shapers.as_deref().unwrap_or_default();
    ceilings(hosts, direction, load.packets, shapers, load.goodput.mean)
}

/// The most goodput that each wire and slot, and each shaper of the sender's own ports, allows, the lowest first. Empty
/// if no capacity or no packet size is known: no ceiling is better than a wrong one.
///
/// If a slot or a wire carried more than its nominal rate, that rate is wrong: a hypervisor emulates the device.
pub(super) fn ceilings(
    hosts: &[Host],
    direction: Direction,
    packets: Option<Packets>,
    shapers: &[Shaping],
    goodput: f64,
) -> Vec<Ceiling> {
    let Some(sizes) = packets.and_then(Sizes::of) else {
        return Vec::new();
    };
    let ends = hosts.iter().filter_map(Ports::of);
    let ends = ends.map(|ports| ports.describe(direction, sizes));
    let shapers = shapers.iter().filter_map(|s| shaped(s, direction, packets?));
    let shapers = sizes.describe(direction, (0, 1), shapers.collect());
    let mut all: Vec<Ceiling> =
        ends.chain([shapers]).flat_map(|description| of(&description, direction)).collect();
    all.retain(|c| goodput <= c.rate.0 as f64 * BEYOND);
    all.sort_by_key(|ceiling| ceiling.rate);
    all
}

/// The least goodput that this stage allows, if it is unknown which of `ports` carries the path. `None` if inputs of a
/// ceiling are unknown; no limit if none of the ports has this stage.
pub(crate) fn least_of(
    host: &Host,
    ports: &[&Nic],
    (direction, packets): (Direction, Option<Packets>),
    stage: Stage,
) -> Option<Rate> {
    let sizes = packets.and_then(Sizes::of)?;
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
        let own = of(&one.describe(direction, sizes), direction).into_iter();
        let own = own.filter(|c| c.stage == stage);
        least = own.map(|c| c.least).chain([least]).min()?;
    }
    Some(least)
}

/// The ceilings of the described parts of the path.
fn of(description: &Description, direction: Direction) -> Vec<Ceiling> {
    let path = description.path();
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

/// A shaper of the sender's own port, as a part of the path. `None` if it only limits each stream separately.
fn shaped(shaper: &Shaping, direction: Direction, packets: Packets) -> Option<Part> {
    shaper.rate?;
    Some(Part {
        name: format!("{} shaper {}", direction.sender().name(), shaper.subject),
        stage: Stage::Port,
        side: Place::from(direction.sender()),
        ways: vec![direction],
        inputs: Vec::new(),
        kind: Kind::Shared(shaper.shared(packets, 1)?),
    })
}

/// Payload and MTU of the full packets on a wire.
#[derive(Clone, Copy)]
struct Sizes {
    payload: u32,
    mtu: u32,
}

impl Sizes {
    fn of(packets: Packets) -> Option<Self> {
        let size = |bytes: Bytes| u32::try_from(bytes.0.max(1)).ok();
        Some(Self { payload: size(packets.payload)?, mtu: size(packets.packet?)? })
    }

    /// Describes the parts of the path that packets of one size pass, with `tags` VLAN tags, over `links` links. Any
    /// number of streams may share a link.
    fn describe(
        self,
        direction: Direction,
        (tags, links): (u32, usize),
        parts: Vec<Part>,
    ) -> Description {
        let packet = ethernet::sized(self.payload, self.mtu, tags);
        Description {
            directions: vec![direction],
            streams: vec![Bounds::exact(1.0); links],
            operation: packet.payload,
            packet,
            parts,
        }
    }

    /// Bytes that a card moves for each payload byte.
    fn frame_per_byte(self, tags: u32) -> f64 {
        ethernet::frame(self.mtu, tags) / f64::from(self.payload)
    }
}

/// The Ethernet wires of an end.
struct Ports<'a> {
    side: Side,
    /// The name of the port, or of the bond.
    name: &'a str,
    tags: u32,
    wires: Vec<Wire<'a>>,
    /// Whether all packets that this end sends use one of its wires.
    sends_by_one: bool,
}

struct Wire<'a> {
    speed: Rate,
    /// The PCIe links from the card to the processor; empty if unknown, or if there is no slot.
    crossings: Vec<Crossing<'a>>,
    /// The slowest USB link between the adapter and the host, with the name of the hub that it belongs to, if any.
    usb: Option<(Option<&'a str>, Rate)>,
}

impl<'a> Wire<'a> {
    fn hub(&self) -> Option<&'a str> {
        self.usb.and_then(|(hub, _)| hub)
    }
}

impl<'a> Ports<'a> {
    /// The wires of a host; `None` if it has no Ethernet wire, or one whose speed is unknown.
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
                wires: vec![Wire { speed: nominal?, crossings: Vec::new(), usb: None }],
                sends_by_one: false,
            });
        };
        let speed = |nic: &Nic| nic.link.speed.or(nominal.filter(|_| nic.name == port.name));
        let found: Option<Vec<Wire<'a>>> =
            wires.iter().map(|nic| Some(wire(route, nic, speed(nic)?))).collect();
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

    /// Describes the wires of the port. If a bond sends all traffic to one host by one member, only the fastest member
    /// counts.
    fn describe(mut self, direction: Direction, sizes: Sizes) -> Description {
        if self.sends_by_one && self.side == direction.sender() {
            self.wires.sort_by_key(|wire| std::cmp::Reverse(wire.speed));
            self.wires.truncate(1);
        }
        let part = |(stage, name, kind)| Part {
            name,
            stage,
            side: Place::from(self.side),
            ways: vec![direction],
            inputs: Vec::new(),
            kind,
        };
        let slots = self.slots(sizes.frame_per_byte(self.tags));
        let usb = self.usb(sizes.frame_per_byte(0));
        let parts = std::iter::once(self.links()).chain(slots).chain(usb);
        let parts = parts.map(part).collect();
        sizes.describe(direction, (self.tags, self.wires.len()), parts)
    }

    fn links(&self) -> (Stage, String, Kind) {
        let links = Links {
            links: self.wires.iter().map(|w| Link::Ethernet(w.speed)).collect(),
            times: match self.wires.len() {
                1 => String::new(),
                many => format!("{many} x "),
            },
        };
        (Stage::Net, self.called("port"), Kind::Links(links))
    }

    /// The PCIe links at equal distance from the cards, if all of them are known. Cards behind one link share that
    /// link.
    fn slots(&self, frame_per_byte: f64) -> impl Iterator<Item = (Stage, String, Kind)> {
        let deepest = self.wires.iter().map(|w| w.crossings.len()).min();
        (0..deepest.unwrap_or(0)).filter_map(move |depth| {
            let at = |wire: &Wire<'_>| wire.crossings[depth].slot.address;
            let of_links: Option<Vec<_>> = self
                .wires
                .iter()
                .map(|wire| Some((self.first(|w| at(w) == at(wire)), slot(wire, depth)?)))
                .collect();
            let what = match depth {
                0 => "slot of".to_owned(),
                _ => format!("switch {depth} above"),
            };
            let slots = Slots {
                of_links: of_links?,
                times: String::new(),
                frame_per_byte: Some(frame_per_byte),
                request_inputs: Vec::new(),
            };
            Some((Stage::Pcie, self.called(&what), Kind::Slots(slots)))
        })
    }

    /// The USB link that all adapters share, if there is one. Adapters on one hub share its link.
    fn usb(&self, frame_per_byte: f64) -> Option<(Stage, String, Kind)> {
        let of_links: Option<Vec<_>> = self
            .wires
            .iter()
            .enumerate()
            .map(|(own, wire)| {
                let (hub, signals) = wire.usb?;
                let hub = hub.map(|name| self.first(|w| w.hub() == Some(name)));
                Some((hub.unwrap_or(own), signals))
            })
            .collect();
        let usb = Usb { of_links: of_links?, frame_per_byte };
        Some((Stage::Pcie, self.called("USB of"), Kind::Usb(usb)))
    }

    /// Index of the first wire that meets the condition; 0 if none does.
    fn first(&self, is: impl Fn(&Wire<'_>) -> bool) -> usize {
        self.wires.iter().position(is).unwrap_or_default()
    }

    fn called(&self, what: &str) -> String {
        format!("{} {what} {}", self.side.name(), self.name)
    }
}

fn wire<'a>(route: &'a Route, nic: &'a Nic, speed: Rate) -> Wire<'a> {
    let mut crossings = route.crossings(nic);
    if is_made_up(&crossings, speed) {
        crossings.clear();
    }
    Wire { speed, crossings, usb: nic.slowest_usb() }
}

/// Removes the PCIe links of ports that share a slot, if the links show the default figures of ports inside the
/// processor.
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

/// A link in the form of the PCIe formulas; its packets are as large as the card makes them.
fn slot(wire: &Wire<'_>, depth: usize) -> Option<pcie::Slot> {
    let link = wire.crossings.get(depth)?.now;
    let payload = wire.crossings.first()?.device.payload;
    crossing::slot(link, payload)
}

#[cfg(test)]
mod tests;
