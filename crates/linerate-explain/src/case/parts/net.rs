//! The ceilings of the links between the hosts, and of the limits that the network sets.

use super::{input, part};
use crate::case::{Case, Protocol};
use linerate_ceiling::ethernet::Ip;
use linerate_ceiling::part::{EachStream, Kind, Links, Part, Shared};
use linerate_ceiling::{Bounds, Cost, Input, Link, Packet};
use linerate_plan::path::{Direction, Place, Stage};
use linerate_units::Rate;

/// The links as parts: a single part if both ports have the same link or only one is described; else one part for each
/// end.
pub(super) fn wires(case: &Case, links: u32) -> Vec<Part> {
    let (near, far) = (case.near.port.link, case.far.port.link);
    let of = |name, place, link| wire(case, name, place, (link, links));
    match (near, far) {
        (Some(near), Some(far)) if near != far => vec![
            of("near port", (Stage::Port, Place::Near), near),
            of("far port", (Stage::Port, Place::Far), far),
        ],
        (Some(link), _) | (None, Some(link)) => {
            vec![of("link", (Stage::Net, Place::Path), link)]
        }
        (None, None) => Vec::new(),
    }
}

fn wire(case: &Case, name: &str, place: (Stage, Place), (link, many): (Link, u32)) -> Part {
    let links = Links {
        links: vec![link; many as usize],
        times: if many > 1 { format!("{many} links of ") } else { String::new() },
    };
    let inputs = wire_inputs(case, place.1, link.is_infiniband(), many);
    let ways = Direction::ALL.to_vec();
    part(name, place, ways, inputs, Kind::Links(links))
}

fn wire_inputs(case: &Case, place: Place, infiniband: bool, links: u32) -> Vec<Input> {
    let mtus = [case.near.port.mtu, case.far.port.mtu];
    let assumed = if infiniband { "256 to 4096" } else { "1500 to 9000" };
    let mut inputs = Vec::new();
    if place != Place::Far {
        inputs.push(input("near.port.link", case.near.port.link, "as the far one"));
    }
    if place != Place::Near {
        inputs.push(input("far.port.link", case.far.port.link, "as the near one"));
    }
    inputs.push(input("mtu", mtus.into_iter().flatten().min(), assumed));
    if case.protocol.copies() && infiniband {
        let mtus = [case.near.port.ip_mtu, case.far.port.ip_mtu];
        inputs.push(input("ip-mtu", mtus.into_iter().flatten().min(), "2044 to 65520"));
    }
    if case.protocol.copies() || (case.protocol != Protocol::RoceV1 && !infiniband) {
        let version = case.ip.map(|ip| if ip == Ip::V4 { 4 } else { 6 });
        inputs.push(input("ip", version, "4 or 6"));
    }
    if case.protocol == Protocol::Tcp {
        inputs.push(input("timestamps", case.timestamps, "true or false"));
    }
    if links > 1 {
        inputs.push(input("streams", case.streams, "1 or more"));
    }
    inputs
}

/// The limits that the network sets in each direction: for all traffic, for each stream, and for packets.
pub(super) fn limits(case: &Case, packet: &Packet) -> Vec<Part> {
    // It is unknown whether a limit counts headers. The upper end assumes payload only, the lower end all bytes
    // on the wire.
    let cost = Cost::bytes(Bounds::new(1.0, packet.wire_per_byte.high()));
    let (rate, packets) = (case.net.limit, case.net.packet_limit);
    let each = case.net.flow_limit;
    let of = |way| {
        let all = [
            rate.map(|rate| network_limit(way, rate, cost)),
            each.map(|rate| flow_limit(way, (rate, cost), case.streams)),
            packets.map(|number| packet_limit(way, number)),
        ];
        all.into_iter().flatten()
    };
    Direction::ALL.into_iter().flat_map(of).collect()
}

fn network_limit(way: Direction, rate: Rate, cost: Cost) -> Part {
    let shared = Shared {
        capacity: Bounds::exact(rate.0 as f64 / 8.0),
        cost,
        formula: format!("{rate} in each direction"),
    };
    let inputs = vec![input("net.limit", Some(rate), "")];
    limit("network limit", way, inputs, Kind::Shared(shared))
}

fn packet_limit(way: Direction, number: u32) -> Part {
    let shared = Shared {
        capacity: Bounds::exact(f64::from(number)),
        cost: Cost { per_packet: Bounds::exact(1.0), ..Cost::default() },
        formula: format!("{number} packets/s of full size"),
    };
    let inputs = vec![input("net.packet-limit", Some(number), "")];
    limit("packet limit", way, inputs, Kind::Shared(shared))
}

fn flow_limit(way: Direction, (rate, cost): (Rate, Cost), streams: Option<u32>) -> Part {
    let each = EachStream {
        rate,
        cost,
        formula: match streams {
            Some(1) => format!("1 stream of {rate}"),
            Some(n) => format!("{n} streams of {rate} each"),
            None => format!("{rate} for each stream"),
        },
    };
    let inputs =
        vec![input("net.flow-limit", Some(rate), ""), input("streams", streams, "1 or more")];
    limit("flow limit", way, inputs, Kind::EachStream(each))
}

fn limit(name: &str, way: Direction, inputs: Vec<Input>, kind: Kind) -> Part {
    part(name, (Stage::Net, Place::Path), vec![way], inputs, kind)
}
