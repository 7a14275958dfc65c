//! The ceilings of an RDMA load: the link of each end's port, and the PCIe links between the device and the processor.
//! The kernel does not carry the payload.

use super::{BEYOND, Ceiling, of};
use crate::model::Load;
use linerate_ceiling::ethernet::Ip;
use linerate_ceiling::part::{Description, Kind, Links, Part, Slots};
use linerate_ceiling::{Bounds, Link, Packet, infiniband, roce};
use linerate_facts::crossing::{self, is_made_up};
use linerate_facts::infiniband::Layer;
use linerate_facts::rdma::RdmaEnd;
use linerate_facts::route::Route;
use linerate_plan::path::{Direction, Place, Side, Stage};
use linerate_plan::transport::rdma::{Addressing, Operation, Service};
use linerate_record::Host;
use linerate_units::Rate;

/// The most goodput that the ports and slots of both ends allow, the lowest first. A device made by software has no
/// ceiling.
pub(in crate::model) fn of_rdma(hosts: &[Host], direction: Direction, load: &Load) -> Vec<Ceiling> {
    let ends = [Side::Near, Side::Far].into_iter();
    let mut all: Vec<Ceiling> = ends
        .filter_map(|side| {
            let end = load.rdma(direction, side).filter(|end| !end.software)?;
            let host = hosts.iter().find(|host| host.side == side);
            let description = described((side, end), host, direction, load)?;
            Some(of(&description, direction))
        })
        .flatten()
        .collect();
    let goodput = load.goodput.mean;
    all.retain(|c| goodput <= c.rate.0 as f64 * BEYOND);
    all.sort_by_key(|ceiling| ceiling.rate);
    all
}

/// Describes the port and the slots of an end; `None` if the size of the load's packets is unknown.
fn described(
    (side, end): (Side, &RdmaEnd),
    host: Option<&Host>,
    direction: Direction,
    load: &Load,
) -> Option<Description> {
    let packet = rdma_packet(end, host, load, end.mtu)?;
    let described = |(stage, name, kind)| Part {
        name,
        stage,
        side: Place::from(side),
        ways: vec![direction],
        inputs: Vec::new(),
        kind,
    };
    let link = end.link().filter(|_| !is_emulated(end, host));
    let slots = slots(side, end, link);
    let port = link.map(|link| {
        let links = Links { links: vec![link], times: String::new() };
        let name = format!("{} port {}", side.name(), end.device);
        (Stage::Net, name, Kind::Links(links))
    });
    Some(Description {
        directions: vec![direction],
        streams: vec![Bounds::exact(1.0)],
        operation: packet.payload,
        packet,
        parts: port.into_iter().chain(slots).map(described).collect(),
    })
}

/// Whether the network port of the device is a virtual one, whose speed is only nominal.
fn is_emulated(end: &RdmaEnd, host: Option<&Host>) -> bool {
    let port = host.and_then(|host| host.facts.port.as_ref());
    let netdev = end.netdev.as_ref();
    port.zip(netdev).is_some_and(|(port, netdev)| port.is_virtual && port.name == netdev.name)
}

/// The packets of a request. An atomic operation carries hardly any payload.
pub(crate) fn rdma_packet(
    end: &RdmaEnd,
    host: Option<&Host>,
    load: &Load,
    mtu: u32,
) -> Option<Packet> {
    let options = &load.knobs.options;
    let op = Operation::of(options);
    let size = u32::try_from(load.made.sender.write_size).ok();
    let size = size.filter(|size| *size > 0 && op != Operation::Atomic)?;
    let service = Service::of(options);
    let request = infiniband::Request { op, service, size };
    let is_global = end.gid_index.is_some();
    match end.layer? {
        Layer::InfiniBand => infiniband::message(request, mtu, is_global),
        Layer::Ethernet => roce::message(request, mtu, version(end)?, tags(end, host)),
    }
}

fn version(end: &RdmaEnd) -> Option<roce::Version> {
    match end.addressing {
        Addressing::Lid => None,
        Addressing::RoceV1 => Some(roce::Version::V1),
        Addressing::RoceV2 => Some(roce::Version::V2(match end.address() {
            Some(address) if address.is_ipv6() => Ip::V6,
            _ => Ip::V4,
        })),
    }
}

/// Number of VLAN tags in each frame, as far as a route by that port shows them.
fn tags(end: &RdmaEnd, host: Option<&Host>) -> u32 {
    let route = host.and_then(|host| host.facts.route.as_ref());
    let first = route.and_then(|route| route.ports.first());
    let netdev = end.netdev.as_ref();
    let same = first.zip(netdev).is_some_and(|(nic, netdev)| nic.name == netdev.name);
    route.filter(|_| same).map_or(0, Route::tags)
}

/// The PCIe links between a device and the processor, the device's own first. The device adds and removes packet
/// headers.
fn slots(side: Side, end: &RdmaEnd, link: Option<Link>) -> Vec<(Stage, String, Kind)> {
    let crossings = end.crossings();
    let speed = link.map(|link| Rate((link.capacity().low() * 8.0) as u64));
    if speed.is_some_and(|speed| is_made_up(&crossings, speed)) {
        return Vec::new();
    }
    let payload = crossings.first().and_then(|first| first.device.payload);
    let slot = |(depth, found): (usize, &crossing::Crossing<'_>)| {
        let what = match depth {
            0 => "slot of".to_owned(),
            _ => format!("switch {depth} above"),
        };
        let slots = Slots {
            of_links: vec![(0, crossing::slot(found.now, payload)?)],
            times: String::new(),
            frame_per_byte: None,
            request_inputs: Vec::new(),
        };
        let name = format!("{} {what} {}", side.name(), end.device);
        Some((Stage::Pcie, name, Kind::Slots(slots)))
    };
    crossings.iter().enumerate().filter_map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Estimate;
    use linerate_facts::infiniband::IbRate;
    use linerate_facts::pci::{Buses, Device, Link as Lanes, Payload, PortKind, find_parents};
    use linerate_facts::rdma::Netdev;
    use linerate_facts::{HostFacts, Port};
    use linerate_plan::transport::{RDMA, Setting, rdma};
    use linerate_units::Transfers;

    fn infiniband(width: u32, speed: &str) -> RdmaEnd {
        RdmaEnd {
            device: "mlx5_0".to_owned(),
            port: 1,
            layer: Some(Layer::InfiniBand),
            mtu: 4096,
            rate: Some(IbRate { rate: Rate(1), width, speed: speed.to_owned() }),
            ..RdmaEnd::default()
        }
    }

    fn ethernet(gigabits: u64) -> RdmaEnd {
        RdmaEnd {
            layer: Some(Layer::Ethernet),
            addressing: Addressing::RoceV2,
            gid_index: Some(3),
            gid: Some("::ffff:10.9.0.1".parse().unwrap()),
            netdev: Some(Netdev {
                name: "eth0".to_owned(),
                speed: Some(Rate(gigabits * 1_000_000_000)),
                mtu: Some(4200),
            }),
            ..infiniband(1, "FDR10")
        }
    }

    /// A device of generation 3 with eight lanes, and the PCIe port above it.
    fn in_slot(mut end: RdmaEnd) -> RdmaEnd {
        let lanes = Some(Lanes { speed: Some(Transfers(8_000_000_000)), width: Some(8) });
        let root = Device {
            address: "0000:00:01.0".parse().unwrap(),
            buses: Some(Buses { secondary: 1, subordinate: 1 }),
            kind: Some(PortKind::Root),
            now: lanes,
            max: lanes,
            ..Device::default()
        };
        let card = Device {
            address: "0000:01:00.0".parse().unwrap(),
            kind: Some(PortKind::Endpoint),
            now: lanes,
            max: lanes,
            payload: Some(Payload { now: 256, max: 512, read_request: 512 }),
            ..Device::default()
        };
        let mut all = vec![root, card];
        find_parents(&mut all);
        (end.slots, end.pci) = (all, "0000:01:00.0".to_owned());
        end
    }

    fn load(near: RdmaEnd, far: RdmaEnd, op: &str, size: u64) -> Load {
        let goodput = Estimate { mean: 1e9, interval: None, samples: 30 };
        let mut load = Load::bare(&RDMA, 1, goodput);
        let word = Setting::Word(op.to_owned());
        load.knobs.options.set(rdma::OPERATION.key, word);
        load.made.sender.rdma = Some(Box::new(near));
        load.made.sender.write_size = size;
        load.made.receiver.rdma = Some(Box::new(far));
        load
    }

    fn lowest(load: &Load) -> Option<(f64, String)> {
        let all = of_rdma(&[], Direction::Forward, load);
        let first = all.into_iter().next()?;
        Some((first.rate.0 as f64 / 1e9, first.name))
    }

    #[test]
    fn the_slower_port_gives_the_ceiling_after_the_headers_of_its_packets() {
        let edr = || infiniband(4, "EDR");
        for (load, gigabits, name) in [
            (load(edr(), edr(), "write", 1 << 20), 99.37, "near port mlx5_0"),
            (load(edr(), infiniband(2, "HDR"), "send", 1 << 20), 99.37, "near port mlx5_0"),
            (
                load(infiniband(4, "HDR"), infiniband(1, "HDR"), "read", 1 << 20),
                49.68,
                "far port mlx5_0",
            ),
            (load(ethernet(100), ethernet(400), "write", 1 << 20), 98.04, "near port mlx5_0"),
            // Four bytes of payload need more than 80 of headers.
            (load(edr(), edr(), "write", 4), 100.0 * 4.0 / 46.0, "near port mlx5_0"),
        ] {
            let (got, of) = lowest(&load).unwrap();
            assert!((got / gigabits - 1.0).abs() < 5e-4, "{got} {gigabits}");
            assert_eq!(of, name);
        }
    }

    #[test]
    fn smaller_packets_lower_the_ceiling() {
        let at = |mtu| {
            let end = RdmaEnd { mtu, ..ethernet(100) };
            lowest(&load(end.clone(), end, "write", 1 << 20)).unwrap().0
        };
        for (mtu, gigabits) in [(4096, 98.04), (2048, 96.15), (1024, 92.59)] {
            assert!((at(mtu) / gigabits - 1.0).abs() < 5e-4, "{mtu}: {}", at(mtu));
        }
    }

    #[test]
    fn a_slot_may_be_narrower_than_the_port() {
        let fast = || infiniband(4, "HDR");
        let load = load(in_slot(fast()), fast(), "write", 1 << 20);
        let (got, name) = lowest(&load).unwrap();
        // 63.02 Gb/s x 256/276: the device reads memory.
        assert!((58.0..59.0).contains(&got), "{got}");
        assert_eq!(name, "near slot of mlx5_0");
    }

    #[test]
    fn software_atomic_operations_and_unknown_speeds_have_no_ceiling() {
        let edr = || infiniband(4, "EDR");
        let soft = || RdmaEnd { software: true, ..ethernet(25) };
        assert_eq!(lowest(&load(soft(), soft(), "write", 4096)), None);
        assert_eq!(lowest(&load(edr(), edr(), "atomic", 8)), None);
        assert_eq!(lowest(&load(edr(), edr(), "write", 0)), None);
        let unknown = || infiniband(4, "");
        assert_eq!(lowest(&load(unknown(), unknown(), "write", 4096)), None);
        // A device at one end is enough for a ceiling.
        let (_, name) = lowest(&load(soft(), edr(), "write", 4096)).unwrap();
        assert_eq!(name, "far port mlx5_0");
    }

    #[test]
    fn a_rate_that_was_exceeded_is_none_and_neither_is_that_of_an_emulated_port() {
        let mut fast = load(ethernet(1), ethernet(1), "write", 1 << 20);
        fast.goodput.mean = 0.98e9;
        assert!(lowest(&fast).is_some());
        fast.goodput.mean = 1.2e9;
        assert_eq!(lowest(&fast), None);
        let facts = HostFacts {
            port: Some(Port { name: "eth0".to_owned(), is_virtual: true, ..Port::default() }),
            ..HostFacts::default()
        };
        let hosts = [Side::Near, Side::Far].map(|side| Host { side, facts: facts.clone() });
        let load = load(ethernet(10), ethernet(10), "write", 1 << 20);
        assert!(of_rdma(&hosts, Direction::Forward, &load).is_empty());
    }
}
