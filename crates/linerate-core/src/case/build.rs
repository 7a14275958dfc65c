//! From the description of a path to its resources and flows.

use super::{Case, CaseError, Host, Link, Protocol, Slot};
use crate::ceiling::ethernet::{self, Ip, Transport};
use crate::ceiling::infiniband::{self, MTUS};
use crate::ceiling::memory::{self, Channels};
use crate::ceiling::roce::{self, Version};
use crate::ceiling::{
    Bounds, Cost, Demand, Flow, Input, Packet, Path, Resource, Source, bond, pci, pcie, storage,
};
use crate::plan::{Direction, Side};
use crate::units::Rate;
use crate::verdict::{Place, Stage};

/// Streams at the upper end where nobody says how many there are.
const MANY: u32 = 1024;
/// MTUs of Ethernet where none is given: the standard's, and the largest in common use.
const ETHERNET_MTUS: [u32; 2] = [1500, 9000];
/// MTUs of IP over InfiniBand where none is given: the smallest datagram, and connected mode's.
//= RFC 4391 section 7, RFC 4755 section 5
const IPOIB_MTUS: [u32; 2] = [2044, 65_520];

/// The path that a case describes.
pub(super) fn path(case: &Case) -> Result<Path, CaseError> {
    let mut builder = Builder {
        case,
        packet: packet(case)?,
        links: links(case),
        path: Path::default(),
    };
    builder.flows();
    builder.host(Side::Near, &case.near);
    builder.wire();
    builder.limits();
    builder.host(Side::Far, &case.far);
    builder.storage();
    Ok(builder.path)
}

/// Links that carry data.
fn links(case: &Case) -> u32 {
    let there = case.near.port.links().min(case.far.port.links());
    case.storage
        .policy
        .map_or(there, |policy| policy.used(there))
}

/// The packets of the path.
pub(super) fn packet(case: &Case) -> Result<Packet, CaseError> {
    let ports = [&case.near.port, &case.far.port];
    let ips = case.ip.map_or(Ip::ALL.to_vec(), |ip| vec![ip]);
    let mtu = ports.iter().filter_map(|p| p.mtu).min();
    let on_infiniband = ports
        .iter()
        .any(|p| matches!(p.link, Some(Link::InfiniBand { .. })));
    let vlans = case.net.vlans.unwrap_or(0);
    let known = |mtu: Option<u32>, all: &[u32]| mtu.map_or(all.to_vec(), |m| vec![m]);
    let copies = case.protocol.copies();
    let found = if on_infiniband && copies {
        let ip_mtu = ports.iter().filter_map(|p| p.ip_mtu).min();
        let ip_mtus = known(ip_mtu, &IPOIB_MTUS);
        infiniband::ipoib(&known(mtu, &MTUS), &ip_mtus, &ips, &transports(case))
    } else if on_infiniband {
        infiniband::rdma(&known(mtu, &MTUS))
    } else if copies {
        let mtus = known(mtu, &ETHERNET_MTUS);
        ethernet::packet(&mtus, &ips, &transports(case), vlans, case.net.tunnel)
    } else {
        let versions = versions(case.protocol, &ips);
        roce::packet(&known(mtu, &ETHERNET_MTUS), &versions, vlans)
    };
    found.ok_or_else(|| CaseError("the MTU leaves no room for payload".to_owned()))
}

fn transports(case: &Case) -> Vec<Transport> {
    if case.protocol == Protocol::Udp {
        return vec![Transport::Udp];
    }
    let with = |timestamps| Transport::Tcp { timestamps };
    case.timestamps
        .map_or(vec![with(false), with(true)], |t| vec![with(t)])
}

fn versions(protocol: Protocol, ips: &[Ip]) -> Vec<Version> {
    let second = ips.iter().map(|ip| Version::V2(*ip));
    match protocol {
        Protocol::RoceV1 => vec![Version::V1],
        Protocol::RoceV2 => second.collect(),
        _ => second.chain([Version::V1]).collect(),
    }
}

/// Where an input stands, its value, and whether it was given.
fn input<T: ToString>(key: &str, given: Option<T>, assumed: &str) -> Input {
    let source = if given.is_some() {
        Source::Given
    } else {
        Source::Assumed
    };
    Input {
        key: key.to_owned(),
        value: given.map_or_else(|| assumed.to_owned(), |value| value.to_string()),
        source,
    }
}

/// The slot of a port, unless it has none or shares a bus: all that it may be.
pub(super) fn express(host: &Host) -> Option<pcie::Slot> {
    let (generation, lanes) = match host.port.pcie {
        Some(Slot::NoSlot | Slot::Bus(_)) => return None,
        Some(Slot::Express { generation, lanes }) => (generation, lanes),
        None => (None, None),
    };
    let all = |known: Option<u32>, all: &[u32]| known.map_or(all.to_vec(), |k| vec![k]);
    Some(pcie::Slot {
        generations: all(generation, &pcie::GENERATIONS),
        lanes: all(lanes, &pcie::WIDTHS),
        payloads: all(host.port.mps, &pcie::USUAL_PAYLOADS),
        requests: all(host.port.mrrs, &pcie::SIZES),
    })
}

/// The channels of a host's memory, where they are known.
pub(super) fn channels(host: &Host) -> Option<Channels> {
    let (count, speed) = (host.memory.channels?, host.memory.speed?);
    Some(Channels { count, speed })
}

/// The capacity of a link in bytes per second.
pub(super) fn link_capacity(link: Link) -> Bounds {
    match link {
        Link::Ethernet(rate) => ethernet::capacity(rate.0 as f64),
        Link::InfiniBand { width, speed } => infiniband::capacity(speed, width),
    }
}

struct Builder<'a> {
    case: &'a Case,
    packet: Packet,
    links: u32,
    path: Path,
}

impl Builder<'_> {
    /// One flow for each direction and link; their index follows from both.
    fn flows(&mut self) {
        let streams = self.case.streams;
        let low = bond::spread(streams.unwrap_or(1), self.links);
        let high = bond::spread(streams.unwrap_or(MANY), self.links);
        let operation = self.case.storage.operation.map_or(1, |size| size.0);
        for direction in Direction::ALL {
            for (low, high) in low.iter().zip(&high) {
                self.path.flows.push(Flow {
                    direction,
                    streams: Bounds::new(f64::from(*low), f64::from(*high)),
                    packet: self.packet.payload,
                    operation: Bounds::exact(operation as f64),
                    demands: Vec::new(),
                });
            }
        }
    }

    fn add(&mut self, name: &str, (stage, side): (Stage, Place), capacity: Bounds) -> usize {
        self.path.resources.push(Resource {
            name: name.to_owned(),
            stage,
            side,
            capacity,
            inputs: Vec::new(),
        });
        self.path.resources.len() - 1
    }

    fn note(&mut self, resource: usize, inputs: Vec<Input>) {
        self.path.resources[resource].inputs = inputs;
    }

    /// Lets the flow of `way` over `link` use a resource.
    fn ask(&mut self, way: Direction, link: u32, resource: usize, cost: Cost, formula: &str) {
        let first = if way == Direction::Forward {
            0
        } else {
            self.links
        };
        let flow = self.path.flows.get_mut((first + link) as usize);
        if let Some(flow) = flow {
            flow.demands.push(Demand {
                resource,
                cost,
                formula: formula.to_owned(),
            });
        }
    }

    /// Lets every flow of `way` use a resource.
    fn ask_all(&mut self, way: Direction, resource: usize, cost: Cost, formula: &str) {
        for link in 0..self.links {
            self.ask(way, link, resource, cost, formula);
        }
    }

    fn wire_cost(&self) -> Cost {
        Cost::bytes(self.packet.wire_per_byte)
    }

    /// Memory and slots of a host.
    fn host(&mut self, side: Side, host: &Host) {
        self.memory(side, host);
        match (host.port.pcie, express(host)) {
            (Some(Slot::Bus(bus)), _) => self.bus(side, bus),
            (_, Some(slot)) => self.slots(side, host, &slot),
            (_, None) => {}
        }
    }

    fn memory(&mut self, side: Side, host: &Host) {
        let (Some(channels), Some(false)) = (channels(host), host.memory.direct_cache) else {
            return;
        };
        let name = format!("{} memory", side.name());
        let memory = self.add(&name, (Stage::Memory, side.into()), channels.capacity());
        let key = |k: &str| format!("{}.memory.{k}", side.name());
        self.note(
            memory,
            vec![
                input(&key("channels"), Some(channels.count), ""),
                input(&key("speed"), Some(format!("{} MT/s", channels.speed)), ""),
                input(&key("direct-cache"), Some(false), ""),
            ],
        );
        let crossings = memory::fewest(self.case.protocol.copies());
        let cost = Cost::bytes(Bounds::exact(f64::from(crossings)));
        for way in Direction::ALL.into_iter().filter(|w| w.receiver() == side) {
            self.ask_all(way, memory, cost, &channels.words(crossings));
        }
    }

    /// A bus is one for both directions and all cards of the host.
    fn bus(&mut self, side: Side, bus: pci::Bus) {
        let name = format!("{} slot", side.name());
        let index = self.add(&name, (Stage::Pcie, side.into()), bus.capacity());
        let key = format!("{}.port.pcie", side.name());
        self.note(index, vec![input(&key, Some(bus.name), "")]);
        for way in Direction::ALL {
            let cost = Cost::bytes(Bounds::exact(1.0));
            self.ask_all(way, index, cost, &bus.words());
        }
    }

    /// Each card has a slot, with a direction to the card and one to memory.
    fn slots(&mut self, side: Side, host: &Host, slot: &pcie::Slot) {
        let cards = host.port.cards.unwrap_or(1).min(self.links);
        for card in 0..cards {
            let name = format!("{} slot", side.name());
            let place = (Stage::Pcie, side.into());
            let [to_card, to_memory] = [0, 1].map(|_| self.add(&name, place, slot.capacity()));
            let mut inputs = slot_inputs(side, host);
            self.note(to_card, inputs.clone());
            let key = format!("{}.port.mrrs", side.name());
            inputs.push(input(&key, host.port.mrrs, "128 to 4096"));
            self.note(to_memory, inputs);
            let each = if cards > 1 {
                format!("{cards} slots of ")
            } else {
                String::new()
            };
            let read = format!("{each}{}", slot.read_words());
            let write = format!("{each}{}", slot.write_words());
            for link in (0..self.links).filter(|link| link % cards == card) {
                for way in Direction::ALL {
                    if way.sender() == side {
                        self.ask(way, link, to_card, slot.read(), &read);
                        self.ask(way, link, to_memory, slot.request(), "requests to read");
                    } else {
                        self.ask(way, link, to_memory, slot.write(), &write);
                    }
                }
            }
        }
    }

    /// The links: one thing where both ports are alike, else one at each end.
    fn wire(&mut self) {
        let (near, far) = (self.case.near.port.link, self.case.far.port.link);
        match (near, far) {
            (Some(near), Some(far)) if near != far => {
                self.links_of("near port", (Stage::Port, Place::Near), near);
                self.links_of("far port", (Stage::Port, Place::Far), far);
            }
            (Some(link), _) | (None, Some(link)) => {
                self.links_of("link", (Stage::Net, Place::Path), link);
            }
            (None, None) => {}
        }
    }

    fn links_of(&mut self, name: &str, place: (Stage, Place), link: Link) {
        let rate = match link {
            Link::Ethernet(rate) => rate.to_string(),
            Link::InfiniBand { width, speed } => {
                let lane = (speed.lane() / 1e5).round() / 1e4;
                let s = if width == 1 { "" } else { "s" };
                format!("{width} lane{s} x {lane} Gb/s")
            }
        };
        let each = if self.links > 1 {
            format!("{} links of ", self.links)
        } else {
            String::new()
        };
        let formula = format!("{each}{rate} x {}", self.packet.words);
        let cost = self.wire_cost();
        for way in Direction::ALL {
            for number in 0..self.links {
                let index = self.add(name, place, link_capacity(link));
                self.note(index, self.wire_inputs(place.1, link));
                self.ask(way, number, index, cost, &formula);
            }
        }
    }

    fn wire_inputs(&self, place: Place, link: Link) -> Vec<Input> {
        let case = self.case;
        let side = if place == Place::Far { "far" } else { "near" };
        let mtus = [case.near.port.mtu, case.far.port.mtu];
        let infiniband = matches!(link, Link::InfiniBand { .. });
        let assumed = if infiniband {
            "256 to 4096"
        } else {
            "1500 to 9000"
        };
        let mut inputs = vec![
            input(&format!("{side}.port.link"), Some(link), ""),
            input("mtu", mtus.into_iter().flatten().min(), assumed),
        ];
        if case.protocol.copies() && infiniband {
            let mtus = [case.near.port.ip_mtu, case.far.port.ip_mtu];
            inputs.push(input(
                "ip-mtu",
                mtus.into_iter().flatten().min(),
                "2044 to 65520",
            ));
        }
        if case.protocol.copies() || (case.protocol != Protocol::RoceV1 && !infiniband) {
            let version = case.ip.map(|ip| if ip == Ip::V4 { 4 } else { 6 });
            inputs.push(input("ip", version, "4 or 6"));
        }
        if case.protocol == Protocol::Tcp {
            inputs.push(input("timestamps", case.timestamps, "true or false"));
        }
        if self.links > 1 {
            inputs.push(input("streams", case.streams, "1 or more"));
        }
        inputs
    }

    /// What the network lets through.
    fn limits(&mut self) {
        let net = &self.case.net;
        let (limit, flow, packets) = (net.limit, net.flow_limit, net.packet_limit);
        for way in Direction::ALL {
            if let Some(rate) = limit {
                let index = self.limit("network limit", rate.0 as f64 / 8.0);
                self.note(index, vec![input("net.limit", Some(rate), "")]);
                let cost = self.limited_cost();
                self.ask_all(way, index, cost, &format!("{rate} in each direction"));
            }
            if let Some(rate) = flow {
                self.flow_limits(way, rate);
            }
            if let Some(number) = packets {
                let index = self.limit("packet limit", f64::from(number));
                self.note(index, vec![input("net.packet-limit", Some(number), "")]);
                let cost = Cost {
                    per_packet: Bounds::exact(1.0),
                    ..Cost::default()
                };
                self.ask_all(
                    way,
                    index,
                    cost,
                    &format!("{number} packets/s of full size"),
                );
            }
        }
    }

    fn limit(&mut self, name: &str, capacity: f64) -> usize {
        self.add(name, (Stage::Net, Place::Path), Bounds::exact(capacity))
    }

    /// Nobody says whether a limit counts headers: payload alone at the upper end, all of the wire
    /// at the lower.
    fn limited_cost(&self) -> Cost {
        Cost::bytes(Bounds::new(1.0, self.packet.wire_per_byte.high()))
    }

    fn flow_limits(&mut self, way: Direction, rate: Rate) {
        let words = match self.case.streams {
            Some(1) => format!("1 stream of {rate}"),
            Some(n) => format!("{n} streams of {rate} each"),
            None => format!("{rate} for each stream"),
        };
        for link in 0..self.links {
            let index = self.limit("flow limit", 0.0);
            let streams = self.path.flows[link as usize].streams;
            self.path.resources[index].capacity = streams.times(rate.0 as f64 / 8.0);
            let inputs = vec![
                input("net.flow-limit", Some(rate), ""),
                input("streams", self.case.streams, "1 or more"),
            ];
            self.note(index, inputs);
            let cost = self.limited_cost();
            self.ask(way, link, index, cost, &words);
        }
    }

    /// The device, which serves both directions, and how deep it is kept busy.
    fn storage(&mut self) {
        let there = &self.case.storage;
        let place = (Stage::Device, Place::Far);
        let per_operation = Cost {
            per_operation: Bounds::exact(1.0),
            ..Cost::default()
        };
        let size = there.operation.map(|s| s.to_string()).unwrap_or_default();
        if let Some(rate) = there.rate {
            let index = self.add("device", place, Bounds::exact(rate.0 as f64 / 8.0));
            self.note(index, vec![input("storage.rate", Some(rate), "")]);
            self.ask_both(index, Cost::bytes(Bounds::exact(1.0)), &rate.to_string());
        }
        if let Some(operations) = there.operations {
            let index = self.add("operations", place, Bounds::exact(f64::from(operations)));
            self.note(
                index,
                vec![input("storage.operations", Some(operations), "")],
            );
            self.ask_both(index, per_operation, &format!("{operations}/s x {size}"));
        }
        if let (Some(depth), Some(latency)) = (there.depth, there.latency) {
            let capacity = storage::operations(depth, latency.secs());
            let index = self.add("queue depth", (Stage::App, Place::Near), capacity);
            let inputs = vec![
                input("storage.depth", Some(depth), ""),
                input("storage.latency", Some(latency), ""),
            ];
            self.note(index, inputs);
            let words = format!("{depth} operations of {size} in {latency} each");
            self.ask_both(index, per_operation, &words);
        }
    }

    fn ask_both(&mut self, resource: usize, cost: Cost, formula: &str) {
        for way in Direction::ALL {
            self.ask_all(way, resource, cost, formula);
        }
    }
}

/// What is known of a slot, and what is not.
fn slot_inputs(side: Side, host: &Host) -> Vec<Input> {
    let key = |k: &str| format!("{}.port.{k}", side.name());
    let port = &host.port;
    let assumed = |what: &str| input(&key("pcie"), None::<Slot>, what);
    let mut inputs = vec![input(&key("pcie"), port.pcie, "gen1x1 to gen7x16")];
    if let Some(Slot::Express { generation, lanes }) = port.pcie {
        inputs.extend(generation.is_none().then(|| assumed("gen1 to gen7")));
        inputs.extend(lanes.is_none().then(|| assumed("x1 to x16")));
    }
    inputs.push(input(&key("mps"), port.mps, "128 to 512"));
    inputs
}
