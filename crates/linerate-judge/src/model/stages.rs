//! The path as a list of stages from the near program to the far one, each with its parts and its ceilings.

use super::{Ceiling, DirectionModel, Load, Model};
use linerate_facts::block::BlockDevice;
use linerate_facts::crossing::Crossing;
use linerate_facts::nic::{Nic, speed_of_mbps};
use linerate_facts::rdma::RdmaEnd;
use linerate_facts::underlay::Underlay;
use linerate_facts::{HostFacts, Port};
use linerate_plan::path::{Direction, Place, Side, Stage};
use linerate_plan::transport::TCP;
use linerate_record::Host;
use linerate_units::Bytes;

/// A stage of the path at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct PathStage {
    /// Which stage of the path this is.
    pub stage: Stage,
    /// The place of the stage: an end, or the path between the ends.
    pub side: Place,
    /// Parts of the stage in words, in the order in which bytes cross them. Empty if they could not be read.
    pub parts: Vec<String>,
    /// The lowest ceiling of the stage in each direction, forward first; `None` if none is known.
    pub ceilings: [Option<Ceiling>; 2],
}

/// Shown instead of a slot, for a port that this host or a hypervisor emulates.
const NO_SLOT: &str = "none: the port is virtual";

/// The stages of a path in the order of the forward direction.
pub fn stages(model: &Model) -> Vec<PathStage> {
    let crossed = model.directions.first().map_or(TCP.stages, |d| d.base.transport.stages);
    let between = crossed.contains(&Stage::Net);
    let near = model.host(Side::Near);
    let far = model.host(Side::Far);
    let of = |host: &Host, stage| {
        let side = Place::from(host.side);
        PathStage {
            stage,
            side,
            parts: parts(model, host, stage),
            ceilings: ceilings(model, stage, side),
        }
    };
    let net = PathStage {
        stage: Stage::Net,
        side: Place::Path,
        parts: net(model, near),
        ceilings: [None, None],
    };
    let inward = || crossed.iter().filter(|stage| **stage != Stage::Net);
    let all = |host| inward().map(move |stage| of(host, *stage));
    let out = near.into_iter().flat_map(all);
    let mut into: Vec<_> = far.into_iter().flat_map(all).collect();
    into.reverse();
    out.chain(between.then_some(net)).chain(into).collect()
}

/// The lowest ceiling at a place, for each direction. The ceiling of a wire is shown at its port.
fn ceilings(model: &Model, stage: Stage, side: Place) -> [Option<Ceiling>; 2] {
    let given = if stage == Stage::Port { Stage::Net } else { stage };
    Direction::ALL.map(|way| {
        let all = &model.direction(way)?.ceilings;
        let own = |c: &&Ceiling| c.stage == given && c.side == side;
        all.iter().find(own).cloned()
    })
}

fn parts(model: &Model, host: &Host, stage: Stage) -> Vec<String> {
    let facts = &host.facts;
    let device = model.directions.first();
    let device = device.and_then(|dir| dir.base.rdma(dir.direction, host.side));
    match (stage, device) {
        (Stage::Pcie, Some(end)) => return slots_of(end),
        (Stage::Port, Some(end)) => return vec![device_port(end)],
        _ => {}
    }
    match stage {
        Stage::App => app(model, facts),
        Stage::Socket => socket(model, host.side),
        Stage::Cpu => cpu(facts),
        Stage::Memory => facts.channels.iter().map(|c| c.words()).collect(),
        Stage::Pcie if facts.disks.is_empty() => slots(facts),
        Stage::Pcie => facts.disks.iter().filter_map(slot_of_disk).collect(),
        Stage::Port => ports(facts),
        Stage::Device => facts.disks.iter().map(disk).collect(),
        Stage::Net => Vec::new(),
    }
}

fn app(model: &Model, facts: &HostFacts) -> Vec<String> {
    let load = model.directions.first().map(|d| d.base.streams);
    let streams = load.map(|n| format!("{n} stream{}", if n == 1 { "" } else { "s" }));
    let version = (!facts.linerate.is_empty()).then(|| format!("linerate {}", facts.linerate));
    version.into_iter().chain(streams).collect()
}

/// The socket settings of the base loads at one end, in words.
fn socket(model: &Model, side: Side) -> Vec<String> {
    let mut parts = Vec::new();
    for DirectionModel { direction, base, .. } in &model.directions {
        let Load { made, tcp, .. } = base;
        let sends = direction.sender() == side;
        let end = made.at(*direction, side);
        if sends && !end.congestion.is_empty() {
            parts.push(format!("{} {}", end.congestion, direction.name()));
        }
        let buffer = if sends { tcp.send_memory } else { base.recv_memory };
        let what = if sends { "send" } else { "receive" };
        parts.extend(buffer.map(|size: Bytes| format!("{what} buffer {size}")));
    }
    parts
}

fn cpu(facts: &HostFacts) -> Vec<String> {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    if !facts.cpu_model.is_empty() {
        parts.push(facts.cpu_model.clone());
    }
    if !facts.cpus.is_empty() {
        parts.push(count(facts.cpus.len(), "CPU"));
    }
    if facts.nodes > 1 {
        parts.push(count(facts.nodes as usize, "node"));
    }
    parts
}

/// A disk in words: `nvme0n1 (Samsung SSD 990, pcie)`.
fn disk(disk: &BlockDevice) -> String {
    let known = [&*disk.model, &*disk.transport, disk.layer.name()];
    let details: Vec<&str> = known.into_iter().filter(|text| !text.is_empty()).collect();
    format!("{} ({})", disk.name, details.join(", "))
}

/// The slot of a disk in words: `0000:01:00.0, node 1`; `None` if it is unknown.
fn slot_of_disk(disk: &BlockDevice) -> Option<String> {
    let node = disk.node.map_or(String::new(), |node| format!(", node {node}"));
    (!disk.pci.is_empty()).then(|| format!("{}{node}", disk.pci))
}

/// The PCIe links between memory and an RDMA device, those nearest to memory first.
fn slots_of(end: &RdmaEnd) -> Vec<String> {
    if end.software {
        return vec!["none: software makes the device".to_owned()];
    }
    let links = end.crossings();
    let node = end.node.map(|node| format!("node {node}"));
    links.iter().rev().map(link).chain(node).collect()
}

/// The port of an RDMA device in words: `mlx5_0 port 1 (4x HDR, packets of 4096 B)`.
fn device_port(end: &RdmaEnd) -> String {
    let link = end.link().map(|link| format!("{link}, "));
    let link = link.unwrap_or_default();
    let on = end.netdev.as_ref().map(|netdev| format!(" on {}", netdev.name));
    let on = on.unwrap_or_default();
    format!("{}{on} ({link}packets of {} B)", end.name(), end.mtu)
}

/// The PCIe links between memory and the cards, those nearest to memory first.
fn slots(facts: &HostFacts) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let route = facts.route.as_ref();
    let Some((route, wires)) = route.and_then(|r| Some((r, r.wires()?))) else {
        let none = facts.underlay() == Underlay::Nothing;
        return none.then(|| NO_SLOT.to_owned()).into_iter().collect();
    };
    for nic in wires {
        for crossing in route.crossings(nic).iter().rev() {
            let words = link(crossing);
            if !parts.contains(&words) {
                parts.push(words);
            }
        }
        parts.extend(nic.usb.map(|usb| format!("USB at {usb}")));
        if !parts.is_empty() {
            parts.extend(nic.node.map(|node| format!("node {node}")));
        }
    }
    parts.dedup();
    parts
}

/// A PCIe link in words: `0000:01:00.0 at 8 GT/s x4 (card 8 GT/s x8, slot 8 GT/s x4), payload 256 B`.
fn link(crossing: &Crossing<'_>) -> String {
    let (device, now) = (crossing.device, crossing.now);
    if crossing.is_tunnel {
        return format!("{} through a Thunderbolt or USB4 cable, its rate unknown", device.address);
    }
    let ends = match (device.max, crossing.slot.max) {
        (Some(card), Some(slot)) if card == now && slot == now => String::new(),
        (Some(card), Some(slot)) => format!(" (card {card}, slot {slot})"),
        _ => String::new(),
    };
    let payload = device.payload.map(|p| format!(", payload {} B", p.now));
    format!("{} at {now}{ends}{}", device.address, payload.unwrap_or_default())
}

/// The port of the route, then the ports below it, in words.
fn ports(facts: &HostFacts) -> Vec<String> {
    match &facts.route {
        Some(route) if !route.ports.is_empty() => route.ports.iter().map(nic).collect(),
        _ => facts.port.iter().map(|port| nic(&in_brief(port))).collect(),
    }
}

/// A port whose details and lower ports are unknown.
fn in_brief(port: &Port) -> Nic {
    let mut nic = Nic {
        name: port.name.clone(),
        driver: port.driver.clone(),
        is_virtual: port.is_virtual,
        mtu: port.mtu,
        up: true,
        ..Nic::default()
    };
    nic.link.speed = port.speed_mbps.and_then(speed_of_mbps);
    nic
}

/// A port in words: `eth0 (mlx5_core, 100 Gb/s, MTU 9000)`.
fn nic(nic: &Nic) -> String {
    let speed = nic.link.speed.filter(|_| !nic.is_virtual);
    let half = nic.is_half() && !nic.is_virtual;
    let bond = nic.stack.bond.as_ref().map(|bond| bond.mode.clone());
    let details: Vec<String> = [
        Some(nic.driver.clone()),
        nic.stack.vlan.map(|tag| format!("tag {tag}")),
        bond,
        speed.map(|rate| rate.to_string()),
        half.then(|| "half duplex".to_owned()),
        (!nic.up).then(|| "no carrier".to_owned()),
        nic.mtu.map(|mtu| format!("MTU {mtu}")),
    ]
    .into_iter()
    .flatten()
    .filter(|text| !text.is_empty())
    .collect();
    if details.is_empty() {
        return nic.name.clone();
    }
    format!("{} ({})", nic.name, details.join(", "))
}

fn net(model: &Model, near: Option<&Host>) -> Vec<String> {
    let route = near.and_then(|host| host.facts.route.as_ref());
    let by = route.map(|route| match route.gateway {
        Some(gateway) => format!("by the router {gateway}"),
        None if model.same_machine => "within one machine".to_owned(),
        None => match near.and_then(|host| host.facts.port.as_ref()) {
            // The ends of a tunnel are neighbours inside the tunnel, but the hosts may be far apart.
            Some(port) if port.is_virtual && !port.is_ethernet => {
                format!("by the tunnel {}", port.name)
            }
            _ => "neighbours".to_owned(),
        },
    });
    let mut packets = model.directions.iter().filter_map(|d| d.base.packets);
    let mtu = packets.find_map(|p| p.path_mtu.or(p.packet));
    by.into_iter().chain(mtu.map(|mtu| format!("packets of {} bytes", mtu.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Requested;
    use linerate_facts::memory::Channels;
    use linerate_facts::nic::Duplex;
    use linerate_facts::route::Route;
    use linerate_units::{Rate, Transfers};

    fn host(side: Side) -> Host {
        let facts = HostFacts {
            cpus: vec![0, 1],
            port: Some(Port { name: "eth0".to_owned(), ..Port::default() }),
            ..HostFacts::default()
        };
        Host { side, facts }
    }

    fn model(hosts: Vec<Host>) -> Model {
        Model {
            hosts,
            same_machine: false,
            requested: Requested::default(),
            idle: None,
            directions: Vec::new(),
            both: Vec::new(),
            trials: Vec::new(),
            gaps: Vec::new(),
            complete: true,
            watched: false,
            reported: false,
            alone: false,
        }
    }

    #[test]
    fn a_path_goes_out_of_one_host_and_into_the_other() {
        let all = stages(&model(vec![host(Side::Near), host(Side::Far)]));
        let names: Vec<_> = all.iter().map(|s| (s.side.name(), s.stage.name())).collect();
        assert_eq!(names.len(), 13);
        assert_eq!(names[..2], [("near", "app"), ("near", "socket")]);
        assert_eq!(names[5..8], [("near", "port"), ("path", "net"), ("far", "port")]);
        assert_eq!(names[12], ("far", "app"));
        assert_eq!(all[2].parts, ["2 CPUs"]);
        assert_eq!(all[5].parts, ["eth0"], "a record from before routes");
        assert_eq!(all[4].parts, [""; 0], "nobody read the slot");
        let mut virtual_host = host(Side::Near);
        let port = virtual_host.facts.port.as_mut();
        port.expect("a port").is_virtual = true;
        let all = stages(&model(vec![virtual_host]));
        assert_eq!(all[4].parts, [NO_SLOT]);
        let mut bridged = host(Side::Near);
        bridged.facts.port.as_mut().expect("a port").is_virtual = true;
        let mut ports = [("bridge", 1), ("", 2), ("", 3)].map(|(kind, index)| Nic {
            kind: kind.to_owned(),
            index,
            is_virtual: !kind.is_empty(),
            up: true,
            ..Nic::default()
        });
        ports[0].stack.below = vec![2, 3];
        bridged.facts.route = Some(Route { ports: ports.into(), ..Route::default() });
        bridged.facts.channels =
            Some(Channels { least: 2, most: 2, speed: Transfers(2_666_000_000) });
        let all = stages(&model(vec![bridged]));
        assert_eq!(all[4].parts, [""; 0], "one of two cards, each in its slot");
        assert_eq!(all[3].parts, ["2 x 2666 MT/s x 8 B"]);
        assert_eq!(stages(&model(Vec::new())).len(), 1);
    }

    #[test]
    fn ends_of_a_tunnel_are_no_neighbours() {
        let by = |is_virtual, is_ethernet| {
            let mut near = host(Side::Near);
            let port = near.facts.port.as_mut().expect("a port");
            (port.is_virtual, port.is_ethernet) = (is_virtual, is_ethernet);
            near.facts.route = Some(Route::default());
            let all = stages(&model(vec![near]));
            let net = all.iter().find(|s| s.stage == Stage::Net);
            net.expect("a stage").parts.join(", ")
        };
        assert_eq!(by(true, false), "by the tunnel eth0");
        assert_eq!(by(true, true), "neighbours", "a bridge");
        assert_eq!(by(false, false), "neighbours", "InfiniBand");
    }

    #[test]
    fn a_port_tells_what_it_is_and_what_is_odd() {
        let mut port = Nic {
            name: "eth0".to_owned(),
            driver: "igb".to_owned(),
            up: true,
            mtu: Some(1500),
            ..Nic::default()
        };
        port.link.speed = Some(Rate(1_000_000_000));
        assert_eq!(nic(&port), "eth0 (igb, 1 Gb/s, MTU 1500)");
        port.link.duplex = Some(Duplex::Half);
        port.up = false;
        assert_eq!(nic(&port), "eth0 (igb, 1 Gb/s, half duplex, no carrier, MTU 1500)");
        port.is_virtual = true;
        port.up = true;
        assert_eq!(nic(&port), "eth0 (igb, MTU 1500)");
    }
}
