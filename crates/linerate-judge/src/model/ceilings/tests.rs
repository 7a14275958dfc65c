use super::*;
use linerate_facts::nic::{Bond, LinkModes, Stack};
use linerate_facts::pci::{Buses, Device, Link, Payload, PortKind, find_parents};
use linerate_facts::usb::Hub;
use linerate_facts::{HostFacts, Port};
use linerate_units::Transfers;

/// A full TCP packet over IPv4.
const FULL: Packets =
    Packets { payload: Bytes(1448), packet: Some(Bytes(1500)), path_mtu: Some(Bytes(1500)) };

fn host(side: Side, mbps: Option<u64>, change: fn(&mut Port)) -> Host {
    let mut port =
        Port { name: "eth0".to_owned(), speed_mbps: mbps, is_ethernet: true, ..Port::default() };
    change(&mut port);
    let facts = HostFacts { port: Some(port), ..HostFacts::default() };
    Host { side, facts }
}

fn all(hosts: &[Host], direction: Direction) -> Vec<Ceiling> {
    carrying(hosts, direction, 1e6)
}

fn carrying(hosts: &[Host], direction: Direction, goodput: f64) -> Vec<Ceiling> {
    ceilings(hosts, direction, Some(FULL), &[], goodput)
}

fn of(hosts: &[Host]) -> Option<(u64, String, String)> {
    let lowest = all(hosts, Direction::Forward).into_iter().next()?;
    assert_eq!(lowest.rate, lowest.least, "all inputs are known");
    Some((lowest.rate.0, lowest.name, lowest.formula))
}

#[test]
fn the_slower_port_gives_the_ceiling() {
    let hosts = [host(Side::Near, Some(25_000), |_| {}), host(Side::Far, Some(10_000), |_| {})];
    let (rate, name, formula) = of(&hosts).unwrap();
    assert_eq!(rate / 1_000_000, 9_414);
    assert_eq!(name, "far port eth0");
    assert_eq!(formula, "10 Gb/s x 1448/1538");
}

#[test]
fn a_port_without_a_known_wire_gives_none() {
    let known = || host(Side::Far, Some(1_000), |_| {});
    for unknown in [
        host(Side::Near, None, |_| {}),
        host(Side::Near, Some(0), |_| {}),
        host(Side::Near, Some(10), |p| p.is_virtual = true),
        host(Side::Near, Some(10), |p| p.is_ethernet = false),
        host(Side::Near, Some(u64::MAX), |_| {}),
    ] {
        assert_eq!(of(std::slice::from_ref(&unknown)), None, "{unknown:?}");
        let (rate, name, _) = of(&[unknown, known()]).unwrap();
        assert_eq!((rate / 1_000_000, name.as_str()), (941, "far port eth0"));
    }
}

#[test]
fn a_shaper_is_a_ceiling_of_the_sender_unless_it_limits_each_stream() {
    let shaper = |rate: Option<Rate>, flow_rate: Option<Rate>| Shaping {
        subject: "eth0 tbf 1:".to_owned(),
        rate,
        flow_rate,
        frame: 14.0,
        waiting: None,
        held: None,
    };
    let hosts = [host(Side::Near, Some(1_000), |_| {})];
    let of = |shaper, goodput| ceilings(&hosts, Direction::Reverse, Some(FULL), &[shaper], goodput);
    let half = Some(Rate(500_000_000));
    let all = of(shaper(half, None), 1e6);
    assert_eq!(all[0].formula, "500 Mb/s x 1448/1514");
    assert_eq!((all[0].stage, all[0].side), (Stage::Port, Place::Far));
    assert_eq!(all[0].rate.0 / 1_000_000, 478);
    assert_eq!(all[1].stage, Stage::Net);
    assert_eq!(of(shaper(None, half), 1e6).len(), 1, "each stream");
    assert_eq!(of(shaper(half, None), 0.5e9).len(), 1, "more than it lets pass");
}

#[expect(clippy::unnecessary_wraps, reason = "devices have a link or none")]
fn lanes(giga: u64, width: u8) -> Option<Link> {
    Some(Link { speed: Some(Transfers(giga * 1_000_000_000)), width: Some(width) })
}

/// A PCIe card of generation 3 with 8 lanes on `bus`, and its root port.
fn pair(bus: u8, now: Option<Link>, payload: Option<u32>) -> [Device; 2] {
    let root = Device {
        address: format!("0000:00:{bus:02x}.0").parse().unwrap(),
        buses: Some(Buses { secondary: bus, subordinate: bus }),
        kind: Some(PortKind::Root),
        now,
        max: lanes(8, 16),
        ..Device::default()
    };
    let card = Device {
        address: format!("0000:{bus:02x}:00.0").parse().unwrap(),
        kind: Some(PortKind::Endpoint),
        now,
        max: lanes(8, 8),
        payload: payload.map(|now| Payload { now, max: 512, read_request: 512 }),
        ..Device::default()
    };
    [root, card]
}

fn nic(index: u32, pci: &str, mbps: u64) -> Nic {
    Nic {
        name: format!("eth{index}"),
        index,
        device: pci.to_owned(),
        pci: pci.to_owned(),
        up: true,
        link: LinkModes { speed: Some(Rate(mbps * 1_000_000)), ..LinkModes::default() },
        ..Nic::default()
    }
}

/// A near host whose route leaves by the first one of these ports.
fn routed(ports: Vec<Nic>, pci: &[[Device; 2]]) -> Host {
    let mut near = host(Side::Near, None, |_| {});
    let first = &ports[0];
    if let Some(port) = &mut near.facts.port {
        port.name.clone_from(&first.name);
        port.is_virtual = first.is_virtual;
    }
    let mut pci = pci.concat();
    pci.sort_by_key(|device| device.address);
    find_parents(&mut pci);
    near.facts.route = Some(Route { ports, pci, ..Route::default() });
    near
}

fn in_slot(now: Option<Link>, payload: Option<u32>, mbps: u64) -> Host {
    routed(vec![nic(1, "0000:01:00.0", mbps)], &[pair(1, now, payload)])
}

fn slot_of(host: Host, direction: Direction) -> Ceiling {
    let found = all(&[host], direction);
    let slot = found.into_iter().find(|c| c.stage == Stage::Pcie);
    slot.expect("a ceiling of the slot")
}

#[test]
fn a_slot_carries_less_of_what_is_read_than_its_lanes_and_knows_the_direction() {
    let host = || in_slot(lanes(8, 4), Some(256), 100_000);
    let sent = slot_of(host(), Direction::Forward);
    let received = slot_of(host(), Direction::Reverse);
    assert_eq!(sent.name, "near slot of eth1");
    // 31.51 Gb/s x 256/276 to send, and x 256/280 to receive.
    assert_eq!(sent.rate.0 / 10_000_000, 2_922);
    assert_eq!(received.rate.0 / 10_000_000, 2_880);
    assert!(sent.least < sent.rate && received.least < received.rate);
    assert!(
        sent.formula.starts_with("4 lanes x 7.8769 Gb/s x 256/(256 + 20)")
            && sent.formula.ends_with("and 5 % for headers"),
        "{}",
        sent.formula
    );
}

#[test]
fn an_unread_payload_widens_the_interval_and_an_unread_link_gives_none() {
    let known = slot_of(in_slot(lanes(8, 4), Some(256), 100_000), Direction::Reverse);
    let open = slot_of(in_slot(lanes(8, 4), None, 100_000), Direction::Reverse);
    assert!(open.least < known.least && known.rate < open.rate);
    let without = |link: Option<Link>| all(&[in_slot(link, None, 100_000)], Direction::Forward);
    let half = Link { width: None, ..lanes(8, 4).unwrap() };
    for link in [None, Some(half)] {
        let stages: Vec<_> = without(link).iter().map(|c| c.stage).collect();
        assert_eq!(stages, [Stage::Net], "{link:?}");
    }
}

#[test]
fn a_link_that_no_card_with_such_a_port_could_have_is_made_up() {
    let slots = |tenths: u64, gigabits: u64| {
        let mut host = in_slot(lanes(8, 8), Some(256), gigabits * 1_000);
        let route = host.facts.route.as_mut().unwrap();
        let card = route.pci.iter_mut().find(|device| device.buses.is_none());
        let own = card.unwrap().max.as_mut().unwrap();
        own.speed = Some(Transfers(tenths * 100_000_000));
        let found = all(&[host], Direction::Forward);
        found.iter().filter(|c| c.stage == Stage::Pcie).count()
    };
    // 8 lanes of generation 1 carry 16 Gb/s: half of a port of 32, but not of one of 33.
    assert_eq!((slots(25, 32), slots(25, 33)), (1, 0));
    // A card that several hosts share shows such links of generation 3.
    assert_eq!(slots(80, 200), 1);
}

#[test]
fn a_link_that_carried_more_than_it_could_is_made_up() {
    let host = [in_slot(lanes(8, 4), Some(256), 40_000)];
    let slots = |goodput: f64| {
        let found = carrying(&host, Direction::Forward, goodput);
        found.iter().filter(|c| c.stage == Stage::Pcie).count()
    };
    // The slot carries 29.2 Gb/s; 2 % more is possible.
    assert_eq!((slots(29.7e9), slots(29.9e9)), (1, 0));
}

/// The formulas for a card behind a switch, whose upper side `change` changes.
fn behind_a_switch(change: fn(&mut Device)) -> Vec<String> {
    let [mut root, mut upper] = pair(1, lanes(8, 2), None);
    let [mut lower, card] = pair(3, lanes(8, 4), Some(256));
    let behind = |from, to| Some(Buses { secondary: from, subordinate: to });
    root.buses = behind(1, 3);
    (upper.buses, upper.kind) = (behind(2, 3), Some(PortKind::Upstream));
    (lower.address, lower.kind) = ("0000:02:00.0".parse().unwrap(), Some(PortKind::Downstream));
    change(&mut upper);
    let host = routed(vec![nic(1, "0000:03:00.0", 40_000)], &[[root, upper], [lower, card]]);
    let found = all(&[host], Direction::Forward);
    found.into_iter().map(|ceiling| ceiling.name).collect()
}

#[test]
fn a_link_above_a_switch_is_a_ceiling_and_a_tunnel_is_none() {
    let all = behind_a_switch(|_| {});
    assert_eq!(all, ["near switch 1 above eth1", "near slot of eth1", "near port eth1"]);
    let cable = behind_a_switch(|upper| upper.tunneled = true);
    assert_eq!(cable, ["near slot of eth1", "near port eth1"]);
}

/// The ceilings of a port on USB, with the speed of its own link and that of its hub.
fn on_usb(own: u64, hub: Option<u64>, mbps: u64) -> Vec<Ceiling> {
    let mut port = nic(1, "", mbps);
    port.usb = Some(Rate(own * 1_000_000));
    port.usb_hubs =
        vec![Hub { name: "6-1".to_owned(), speed: hub.map(|hub| Rate(hub * 1_000_000)) }];
    all(&[routed(vec![port], &[])], Direction::Forward)
}

#[test]
fn usb_is_a_ceiling_at_its_slowest_wire() {
    let found = on_usb(480, None, 1_000);
    assert_eq!(found[0].name, "near USB of eth1");
    // 425.984 Mb/s and 240 Mb/s x 1448/1514.
    assert_eq!(found[0].rate.0 / 100_000, 4_074);
    assert_eq!(found[0].least.0 / 100_000, 2_295);
    assert_eq!(found[0].formula, "13 packets of 512 B in 125 us, at the most, and 5 % for headers");
    let names =
        |found: Vec<Ceiling>| -> Vec<String> { found.into_iter().map(|c| c.name).collect() };
    let port = "near port eth1";
    assert_eq!(names(on_usb(5_000, None, 1_000)), [port, "near USB of eth1"]);
    // 10 Gb/s for the adapter, and a hub at 5 Gb/s, which carries 3.83 Gb/s.
    let found = on_usb(10_000, Some(5_000), 10_000);
    assert_eq!((found[0].rate.0 / 10_000_000, found[1].name.as_str()), (382, port));
    assert_eq!(names(on_usb(10_000, Some(10_000), 10_000)).len(), 2);
}

#[test]
fn two_members_of_a_bond_share_the_wire_of_their_hub() {
    let rate = |second: &str| {
        let mut host = bonded("802.3ad", ["", ""], &[]);
        let route = host.facts.route.as_mut().unwrap();
        for (port, hub) in route.ports[1..].iter_mut().zip(["6-1", second]) {
            port.usb = Some(Rate(10_000_000_000));
            port.usb_hubs = vec![Hub { name: hub.to_owned(), speed: Some(Rate(5_000_000_000)) }];
        }
        let found = all(&[host], Direction::Forward);
        found.iter().find(|c| c.stage == Stage::Pcie).unwrap().rate.0
    };
    assert_eq!(rate("7-1") / rate("6-1"), 2);
}

#[test]
fn a_wire_that_carried_more_than_it_could_is_nominal() {
    // A port of 1 Gb/s that a hypervisor emulates: 941 Mb/s, and at most 2 % more.
    let host = [host(Side::Near, Some(1_000), |_| {})];
    let wires = |goodput: f64| carrying(&host, Direction::Forward, goodput).len();
    assert_eq!((wires(0.959e9), wires(0.961e9)), (1, 0));
}

/// A host with a bond of two ports of 10 Gb/s on these cards.
fn bonded(mode: &str, cards: [&str; 2], pci: &[[Device; 2]]) -> Host {
    let bond = Nic {
        name: "bond0".to_owned(),
        index: 9,
        kind: "bond".to_owned(),
        is_virtual: true,
        stack: Stack {
            below: vec![1, 2],
            bond: Some(Bond { mode: mode.to_owned(), active: Some(2), ..Bond::default() }),
            ..Stack::default()
        },
        ..Nic::default()
    };
    let ports = vec![bond, nic(1, cards[0], 10_000), nic(2, cards[1], 10_000)];
    routed(ports, pci)
}

#[test]
fn a_bond_carries_the_sum_of_its_members_or_what_the_active_one_does() {
    let pci = [pair(1, lanes(5, 1), Some(128)), pair(2, lanes(5, 1), Some(128))];
    let two = ["0000:01:00.0", "0000:02:00.0"];
    let found = all(&[bonded("802.3ad", two, &pci)], Direction::Forward);
    let names: Vec<_> = found.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["near slot of bond0", "near port bond0"]);
    assert_eq!(found[1].rate.0 / 1_000_000, 18_829);
    assert_eq!(found[1].formula, "2 x 10 Gb/s x 1448/1538");
    let one = all(&[bonded("active-backup", two, &pci)], Direction::Forward);
    assert_eq!(one[1].name, "near port eth2");
    assert_eq!(one[1].rate.0 / 1_000_000, 9_414);
    let (sum, single) = (found[0].rate.0 as f64, one[0].rate.0 as f64);
    assert!((sum / single - 2.0).abs() < 1e-6, "two slots: {sum} {single}");
    // The sender chooses the member for each packet, by its addresses or its stream.
    let by = |hash: &str, direction| {
        let mut host = bonded("802.3ad", two, &pci);
        let route = host.facts.route.as_mut().unwrap();
        route.ports[0].stack.bond.as_mut().unwrap().hash = hash.to_owned();
        all(&[host], direction)[1].formula.clone()
    };
    assert_eq!(by("layer3+4", Direction::Forward), "2 x 10 Gb/s x 1448/1538");
    assert_eq!(by("layer2+3", Direction::Forward), "10 Gb/s x 1448/1538");
    assert_eq!(by("layer2+3", Direction::Reverse), "2 x 10 Gb/s x 1448/1538");
    // Two ports of one card share its slot.
    let shared = ["0000:01:00.0", "0000:01:00.0"];
    let same = all(&[bonded("802.3ad", shared, &pci)], Direction::Forward);
    assert!((same[0].rate.0 as f64 / single - 1.0).abs() < 1e-6);
}

#[test]
fn members_behind_the_default_figures_of_the_processor_have_no_slot() {
    let slots = |cards: [&str; 2], tenths: u64, width: u8| {
        let link = Link { speed: Some(Transfers(tenths * 100_000_000)), width: Some(width) };
        let pci = [1, 2].map(|bus| {
            let mut pair = pair(bus, Some(link), Some(128));
            pair[1].max = Some(link);
            pair
        });
        let mut host = bonded("802.3ad", cards, &pci);
        for port in &mut host.facts.route.as_mut().unwrap().ports[1..] {
            port.link.speed = Some(Rate(1_000_000_000));
        }
        let found = all(&[host], Direction::Forward);
        found.iter().filter(|c| c.stage == Stage::Pcie).count()
    };
    let shared = ["0000:01:00.0"; 2];
    assert_eq!(slots(shared, 25, 1), 0);
    assert_eq!((slots(shared, 25, 2), slots(shared, 50, 1)), (1, 1));
    assert_eq!(slots(["0000:01:00.0", "0000:02:00.0"], 25, 1), 1);
}

#[test]
fn a_vlan_costs_its_tag_on_the_wire_below() {
    let vlan = Nic {
        name: "eth1.100".to_owned(),
        index: 7,
        kind: "vlan".to_owned(),
        is_virtual: true,
        stack: Stack { below: vec![1], vlan: Some(100), ..Stack::default() },
        ..Nic::default()
    };
    let host = routed(vec![vlan, nic(1, "", 10_000)], &[]);
    let (_, name, formula) = of(&[host]).unwrap();
    assert_eq!(name, "near port eth1");
    assert_eq!(formula, "10 Gb/s x 1448/1542");
}

/// A host with a bridge (9) of these cards and the tap of a guest.
fn bridged(mut cards: Vec<Nic>) -> Host {
    let tap = Nic {
        name: "tap0".to_owned(),
        index: 8,
        kind: "tun".to_owned(),
        is_virtual: true,
        up: true,
        ..Nic::default()
    };
    cards.push(tap);
    let mut ports = vec![Nic {
        name: "br0".to_owned(),
        index: 9,
        kind: "bridge".to_owned(),
        is_virtual: true,
        stack: Stack { below: cards.iter().map(|nic| nic.index).collect(), ..Stack::default() },
        ..Nic::default()
    }];
    ports.append(&mut cards);
    routed(ports, &[pair(1, lanes(8, 4), Some(256))])
}

#[test]
fn a_bridge_has_the_wire_and_the_slot_of_its_one_card() {
    let card = || nic(1, "0000:01:00.0", 40_000);
    let found = all(&[bridged(vec![card()])], Direction::Forward);
    let names: Vec<_> = found.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["near slot of eth1", "near port eth1"]);
    let two = bridged(vec![card(), nic(2, "", 10_000)]);
    assert_eq!(all(&[two], Direction::Forward), []);
}

#[test]
fn the_least_that_one_of_several_ports_leaves_needs_all_of_them() {
    let least = |mbps: Option<u64>, stage| {
        let mut other = nic(2, "", mbps.unwrap_or_default());
        other.link.speed = mbps.map(|m| Rate(m * 1_000_000));
        let host = bridged(vec![nic(1, "0000:01:00.0", 40_000), other]);
        let route = host.facts.route.as_ref().unwrap();
        let ports: Vec<&Nic> = route.ports[1..3].iter().collect();
        let found = least_of(&host, &ports, (Direction::Forward, Some(FULL)), stage);
        found.map(|rate| rate.0 / 100_000_000)
    };
    assert_eq!(least(Some(10_000), Stage::Net), Some(94));
    assert_eq!(least(Some(100_000), Stage::Net), Some(376));
    assert!(least(Some(10_000), Stage::Pcie).is_some_and(|rate| (250..293).contains(&rate)));
    assert_eq!(least(None, Stage::Net), None);
}
