//! Builds the resources of a path from its description, and the demand of each group of streams on them.

use super::part::{Description, EachStream, Kind, Links, Part, Shared, Slots, Usb};
use super::{Bounds, Cost, Demand, Path, Resource, StreamGroup, usb};
use linerate_plan::path::{Direction, Place};

impl Description {
    /// Builds the path that this description describes.
    pub fn path(&self) -> Path {
        let mut builder = Builder {
            description: self,
            path: Path { resources: Vec::new(), groups: self.groups() },
        };
        for part in &self.parts {
            builder.part(part);
        }
        builder.path
    }

    /// One group of streams for each direction and link. [`Builder::ask`] finds a group by direction and link.
    fn groups(&self) -> Vec<StreamGroup> {
        let group = |direction, streams: &Bounds| StreamGroup {
            direction,
            streams: *streams,
            packet: self.packet.payload,
            operation: self.operation,
            demands: Vec::new(),
        };
        let ways = self.directions.iter();
        ways.flat_map(|way| self.streams.iter().map(|streams| group(*way, streams))).collect()
    }
}

struct Builder<'a> {
    description: &'a Description,
    path: Path,
}

impl Builder<'_> {
    fn part(&mut self, part: &Part) {
        match &part.kind {
            Kind::Links(links) => self.links(part, links),
            Kind::Slots(slots) => self.slots(part, slots),
            Kind::Usb(usb) => self.usb(part, usb),
            Kind::Shared(shared) => self.shared(part, shared),
            Kind::EachStream(limit) => self.each_stream(part, limit),
        }
    }

    fn links(&mut self, part: &Part, links: &Links) {
        let packet = &self.description.packet;
        let cost = Cost::bytes(packet.wire_per_byte);
        for way in &part.ways {
            for (at, link) in links.links.iter().enumerate() {
                let resource = self.add(part, link.capacity());
                let formula = format!("{}{} x {}", links.times, link.words(), packet.words);
                self.ask(*way, at, resource, cost, formula);
            }
        }
    }

    /// Adds two resources for each slot: one for transfers to the card, one for transfers to memory. A card that
    /// sends reads memory, and its read requests use the direction to memory; a card that receives writes memory.
    fn slots(&mut self, part: &Part, slots: &Slots) {
        let (most, headers) = headers(slots.frame_per_byte);
        let with_headers = |cost: Cost| {
            let per_byte = cost.per_byte;
            Cost::bytes(Bounds::new(per_byte.low(), per_byte.high() * most))
        };
        let mut known: Vec<(usize, [usize; 2])> = Vec::new();
        for (at, (number, slot)) in slots.of_links.iter().enumerate() {
            let there = known.iter().find(|(known, _)| known == number);
            let [to_card, to_memory] = there
                .map_or_else(|| [0, 1].map(|_| self.add(part, slot.capacity())), |(_, pair)| *pair);
            if there.is_none() {
                known.push((*number, [to_card, to_memory]));
                let inputs = &mut self.path.resources[to_memory].inputs;
                inputs.extend(slots.request_inputs.iter().cloned());
            }
            let words = |words: String| format!("{}{words}{headers}", slots.times);
            for way in &part.ways {
                let mut ask = |resource, cost, formula| {
                    self.ask(*way, at, resource, with_headers(cost), formula);
                };
                if Place::from(way.sender()) == part.side {
                    ask(to_card, slot.read(), words(slot.read_words()));
                    ask(to_memory, slot.request(), "requests to read".to_owned());
                } else {
                    ask(to_memory, slot.write(), words(slot.write_words()));
                }
            }
        }
    }

    fn usb(&mut self, part: &Part, usb: &Usb) {
        let (most, headers) = headers(Some(usb.frame_per_byte));
        let cost = Cost::bytes(Bounds::exact(most));
        for way in &part.ways {
            let mut known: Vec<(usize, usize)> = Vec::new();
            for (at, (number, signals)) in usb.of_links.iter().enumerate() {
                let there = known.iter().find(|(known, _)| known == number);
                let resource = there.map_or_else(
                    || self.add(part, usb::leaves(*signals).times(1.0 / 8.0)),
                    |(_, resource)| *resource,
                );
                known.push((*number, resource));
                let formula = format!("{}, at the most,{headers}", usb::words(*signals));
                self.ask(*way, at, resource, cost, formula);
            }
        }
    }

    fn shared(&mut self, part: &Part, shared: &Shared) {
        let resource = self.add(part, shared.capacity);
        for way in &part.ways {
            for at in 0..self.description.streams.len() {
                self.ask(*way, at, resource, shared.cost, shared.formula.clone());
            }
        }
    }

    fn each_stream(&mut self, part: &Part, limit: &EachStream) {
        for way in &part.ways {
            for (at, streams) in self.description.streams.iter().enumerate() {
                let resource = self.add(part, streams.times(limit.rate.0 as f64 / 8.0));
                self.ask(*way, at, resource, limit.cost, limit.formula.clone());
            }
        }
    }

    fn add(&mut self, part: &Part, capacity: Bounds) -> usize {
        self.path.resources.push(Resource {
            name: part.name.clone(),
            stage: part.stage,
            side: part.side,
            capacity,
            inputs: part.inputs.clone(),
        });
        self.path.resources.len() - 1
    }

    /// Adds a demand on `resource` to the group of streams of this direction and link.
    fn ask(&mut self, way: Direction, link: usize, resource: usize, cost: Cost, formula: String) {
        let ways = &self.description.directions;
        let Some(first) = ways.iter().position(|known| *known == way) else {
            return;
        };
        let at = first * self.description.streams.len() + link;
        if let Some(group) = self.path.groups.get_mut(at) {
            group.demands.push(Demand { resource, cost, formula });
        }
    }
}

/// Largest number of bytes, headers included, for each payload byte; and words that name the headers in a formula.
fn headers(frame_per_byte: Option<f64>) -> (f64, String) {
    let most = frame_per_byte.unwrap_or(1.0).max(1.0);
    let words = frame_per_byte.map(|_| format!(" and {:.0} % for headers", (most - 1.0) * 100.0));
    (most, words.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::infiniband::{self, Speed};
    use super::super::{Link, Packet, ethernet, pcie, roce};
    use super::*;
    use linerate_plan::path::Stage;
    use linerate_units::Rate;

    const FAST: Rate = Rate(100_000_000_000);

    /// Goodput that the near end's parts allow in a direction, low and high, in units of 10 Mb/s: over `links`
    /// links with one stream each.
    fn leaves(packet: Packet, links: usize, kinds: Vec<Kind>, way: Direction) -> Vec<[u64; 2]> {
        let part = |(at, kind)| Part {
            name: format!("part {at}"),
            stage: Stage::Net,
            side: Place::Near,
            ways: Direction::ALL.to_vec(),
            inputs: Vec::new(),
            kind,
        };
        let description = Description {
            directions: Direction::ALL.to_vec(),
            streams: vec![Bounds::exact(1.0); links],
            operation: packet.payload,
            packet,
            parts: kinds.into_iter().enumerate().map(part).collect(),
        };
        let path = description.path();
        let ceilings = path.ceilings(way).into_iter();
        ceilings
            .map(|c| [c.goodput.low(), c.goodput.high()].map(|bits| (bits / 1e7).round() as u64))
            .collect()
    }

    fn wires(links: &[Link]) -> Kind {
        Kind::Links(Links { links: links.to_vec(), times: String::new() })
    }

    #[test]
    fn every_kind_of_link_and_packet_is_described_alike() {
        let edr = Link::InfiniBand { width: 4, speed: Speed::Edr };
        let version = roce::Version::V2(ethernet::Ip::V4);
        let of_roce = roce::packet(&[4200], &[version], 0).unwrap();
        for (packet, link, tens) in [
            (ethernet::sized(1448, 1500, 0), Link::Ethernet(FAST), 9_415),
            (of_roce, Link::Ethernet(FAST), 9_804),
            (infiniband::rdma(&[4096]).unwrap(), edr, 9_937),
        ] {
            let found = leaves(packet, 1, vec![wires(&[link])], Direction::Reverse);
            assert_eq!(found, [[tens; 2]], "{link}");
        }
    }

    /// Slots of four lanes of PCIe generation 3: one link for each number, links with equal numbers share a slot.
    fn slots(numbers: &[usize], frame_per_byte: Option<f64>) -> Kind {
        let slot = pcie::Slot {
            generations: vec![3],
            lanes: vec![4],
            payloads: vec![256],
            requests: vec![512],
        };
        Kind::Slots(Slots {
            of_links: numbers.iter().map(|n| (*n, slot.clone())).collect(),
            times: String::new(),
            frame_per_byte,
            request_inputs: Vec::new(),
        })
    }

    #[test]
    fn links_with_one_number_share_what_has_it_and_headers_cost_at_the_lower_end() {
        let packet = || ethernet::sized(1000, 1040, 0);
        let two = |kind| leaves(packet(), 2, vec![kind], Direction::Forward)[0];
        let [low, high] = leaves(packet(), 1, vec![slots(&[0], None)], Direction::Forward)[0];
        let twice = two(slots(&[0, 1], None));
        assert!(twice[1].abs_diff(2 * high) <= 1, "{twice:?} {high}");
        assert_eq!(two(slots(&[7, 7], None)), [low, high]);
        let counted = two(slots(&[7, 7], Some(1.1)));
        assert_eq!(counted[1], high);
        assert!((counted[0] * 11).abs_diff(low * 10) <= 11, "{counted:?} {low}");
        let usb = |numbers: [usize; 2]| {
            two(Kind::Usb(Usb {
                of_links: numbers.map(|n| (n, Rate(5_000_000_000))).to_vec(),
                frame_per_byte: 1.0,
            }))
        };
        assert_eq!((usb([0, 0]), usb([0, 1])), ([250, 400], [500, 800]));
    }

    #[test]
    fn what_is_shared_is_given_once_and_a_limit_of_streams_to_each() {
        let packet = || ethernet::sized(1000, 1040, 0);
        let shared = Kind::Shared(Shared {
            capacity: Bounds::exact(1e9 / 8.0),
            cost: Cost::bytes(Bounds::exact(1.0)),
            formula: String::new(),
        });
        let each = Kind::EachStream(EachStream {
            rate: Rate(1_000_000_000),
            cost: Cost::bytes(Bounds::exact(1.0)),
            formula: String::new(),
        });
        let found = leaves(packet(), 3, vec![shared, each], Direction::Forward);
        assert_eq!(found, [[100; 2], [300; 2]]);
    }

    #[test]
    fn a_direction_that_does_not_use_a_part_is_not_limited_by_it() {
        let description = Description {
            directions: vec![Direction::Forward],
            streams: vec![Bounds::exact(1.0)],
            packet: ethernet::sized(1000, 1040, 0),
            operation: Bounds::exact(1.0),
            parts: vec![Part {
                name: "link".to_owned(),
                stage: Stage::Net,
                side: Place::Path,
                ways: vec![Direction::Reverse],
                inputs: Vec::new(),
                kind: wires(&[Link::Ethernet(FAST)]),
            }],
        };
        let path = description.path();
        let found = Direction::ALL.map(|way| path.ceilings(way).len());
        assert_eq!((found, path.groups[0].demands.len()), ([0, 0], 0));
    }
}
