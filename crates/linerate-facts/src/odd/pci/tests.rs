use super::super::ids;
use super::*;
use crate::Gap;
use crate::cpu::Node;
use crate::nic::{Nic, speed_of_mbps};
use crate::pci::{Buses, Payload, PortKind};
use linerate_units::Transfers;

#[expect(clippy::unnecessary_wraps, reason = "devices have a link or none")]
fn lanes(giga: u64, width: u8) -> Option<Link> {
    Some(Link { speed: Some(Transfers(giga * 1_000_000_000)), width: Some(width) })
}

/// A card below a root port. `now` is the link as it runs; `card` and `slot` are the best links of its two ends.
fn machine(now: Option<Link>, card: Option<Link>, slot: Option<Link>) -> Inventory {
    let port = Device {
        address: "0000:00:01.0".parse().unwrap(),
        class: 0x06_0400,
        buses: Some(Buses { secondary: 1, subordinate: 1 }),
        kind: Some(PortKind::Root),
        node: Some(0),
        now,
        max: slot,
        ..Device::default()
    };
    let device = Device {
        address: "0000:01:00.0".parse().unwrap(),
        class: 0x02_0000,
        names: vec!["eth0".to_owned()],
        kind: Some(PortKind::Endpoint),
        node: Some(0),
        now,
        max: card,
        ..Device::default()
    };
    let mut pci = vec![port, device];
    pci::find_parents(&mut pci);
    let mut machine = Inventory { pci, ..Inventory::default() };
    machine.network.nics = vec![nic(0, 25_000)];
    machine
}

/// Port `eth0` on the first function of the card, `eth1` on the second.
fn nic(function: u8, mbps: u64) -> Nic {
    let mut nic = Nic {
        name: format!("eth{function}"),
        index: u32::from(function) + 2,
        pci: format!("0000:01:00.{function}"),
        up: true,
        ..Nic::default()
    };
    nic.link.speed = speed_of_mbps(mbps);
    nic
}

#[test]
fn a_wide_card_in_a_narrow_slot_is_odd_and_a_narrow_card_in_a_wide_slot_is_not() {
    let narrow = machine(lanes(8, 4), lanes(8, 8), lanes(8, 4));
    let found = super::super::find(&narrow);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, "pcie-slot");
    assert_eq!(found[0].subject, "0000:01:00.0 Ethernet eth0");
    assert!(found[0].what.contains("8 GT/s x8 (63 Gb/s)"), "{}", found[0].what);
    assert!(found[0].what.contains("8 GT/s x4 (31.5 Gb/s)"), "{}", found[0].what);
    assert_eq!(ids(&machine(lanes(8, 8), lanes(8, 8), lanes(8, 8))), [""; 0]);
    assert_eq!(ids(&machine(lanes(8, 4), lanes(8, 4), lanes(8, 16))), [""; 0]);
    // Faster lanes of the slot do not make up for lanes that the slot lacks.
    let fast = machine(lanes(8, 4), lanes(8, 8), lanes(16, 4));
    let found = super::super::find(&fast);
    assert_eq!(found[0].id, "pcie-slot");
    let what = &found[0].what;
    assert!(what.contains("leaves it 8 GT/s x4 (31.5 Gb/s)"), "{what}");
    assert_eq!(ids(&machine(lanes(8, 8), lanes(8, 8), lanes(16, 8))), [""; 0]);
}

#[test]
fn a_slot_or_a_link_that_leaves_enough_for_the_ports_comes_last() {
    // The link has 31.5 Gb/s. Packets of 128 to 512 bytes leave 24.1 to 30.3 Gb/s for frames.
    let order = |mbps: u64, now: Link| {
        let mut machine = machine(Some(now), lanes(8, 8), lanes(8, 4));
        machine.network.nics = vec![nic(0, mbps)];
        machine.processors.offline = vec![3];
        let found = super::super::find(&machine).into_iter();
        found.map(|odd| (odd.id, odd.what)).collect::<Vec<_>>()
    };
    let four = lanes(8, 4).unwrap();
    let ids = |found: &[(&'static str, String)]| found.iter().map(|f| f.0).collect::<Vec<_>>();
    let surely = order(40_000, four);
    assert_eq!(ids(&surely), ["pcie-slot", "cpu-offline"]);
    assert!(surely[0].1.ends_with("; eth0 (40 Gb/s) alone is faster"), "{}", surely[0].1);
    let perhaps = order(25_000, four);
    assert_eq!(ids(&perhaps), ["pcie-slot", "cpu-offline"]);
    assert!(perhaps[0].1.ends_with("at most"), "{}", perhaps[0].1);
    let never = order(20_000, four);
    assert_eq!(ids(&never), ["cpu-offline", "pcie-slot"]);
    assert!(never[1].1.ends_with(": enough for its ports (20 Gb/s)"), "{}", never[1].1);
    let unknown = order(0, four);
    assert_eq!(ids(&unknown), ["cpu-offline", "pcie-slot"]);
    assert!(unknown[1].1.ends_with("the needs of its ports are unknown"), "{}", unknown[1].1);
    // The slot carries enough for the port, but the link runs slower and does not.
    let slow = order(20_000, lanes(5, 4).unwrap());
    assert_eq!(ids(&slow), ["pcie-link", "cpu-offline", "pcie-slot"]);
    let little = order(10_000, lanes(5, 4).unwrap());
    assert_eq!(ids(&little), ["cpu-offline", "pcie-slot", "pcie-link"]);
}

#[test]
fn disks_take_what_their_slot_leaves_them() {
    let mut machine = machine(lanes(8, 2), lanes(8, 4), lanes(8, 2));
    machine.pci[1].class = 0x01_0802;
    machine.network.nics.clear();
    machine.processors.offline = vec![3];
    assert_eq!(ids(&machine), ["pcie-slot", "cpu-offline"]);
}

#[test]
fn figures_of_tunnels_and_of_slots_that_were_made_up_are_not_odd() {
    let mut tunnel = machine(lanes(2, 1), lanes(8, 4), lanes(8, 4));
    tunnel.pci[1].buses = Some(Buses { secondary: 2, subordinate: 2 });
    (tunnel.pci[1].class, tunnel.pci[1].kind) = (0x06_0400, Some(PortKind::Upstream));
    assert_eq!(ids(&tunnel), [""; 0], "nothing is behind the switch");
    tunnel.pci.push(Device {
        address: "0000:02:00.0".parse().unwrap(),
        class: 0x01_0802,
        kind: Some(PortKind::Endpoint),
        ..Device::default()
    });
    pci::find_parents(&mut tunnel.pci);
    assert_eq!(ids(&tunnel), ["pcie-link"]);
    tunnel.pci[1].tunneled = true;
    assert_eq!(ids(&tunnel), [""; 0]);
    // An emulated root port above a card that is passed through to a guest.
    assert_eq!(ids(&machine(lanes(8, 8), lanes(8, 8), lanes(2, 1))), [""; 0]);
    assert_eq!(ids(&machine(lanes(8, 8), lanes(8, 8), lanes(8, 4))), [""; 0]);
}

#[test]
fn the_functions_of_a_card_share_one_slot() {
    let mut narrow = machine(lanes(8, 4), lanes(8, 8), lanes(8, 4));
    let mut second = narrow.pci[1].clone();
    second.address.function = 1;
    second.names = vec!["eth1".to_owned()];
    let part = Device {
        is_virtual: true,
        names: vec!["eth2".to_owned()],
        address: "0000:01:00.2".parse().unwrap(),
        ..second.clone()
    };
    narrow.pci.extend([second, part]);
    let found = super::super::find(&narrow);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].subject, "0000:01:00.0 Ethernet eth0 eth1");
}

#[test]
fn a_link_below_both_ends_is_odd() {
    for now in [lanes(8, 4), lanes(5, 8)] {
        assert_eq!(ids(&machine(now, lanes(8, 8), lanes(8, 16))), ["pcie-link"]);
    }
    assert_eq!(ids(&machine(lanes(8, 8), lanes(8, 8), lanes(16, 16))), [""; 0]);
    let mut graphics = machine(lanes(5, 8), lanes(8, 8), lanes(8, 8));
    graphics.pci[1].class = 0x03_0000;
    assert_eq!(ids(&graphics), [""; 0]);
}

/// A card with its own switch. `now` is the link of the slot as it runs, `classes` are the devices behind the switch.
fn with_a_switch(now: Option<Link>, classes: &[u32]) -> Inventory {
    let best = lanes(16, 16);
    let mut machine = machine(now, best, best);
    machine.network.nics.clear();
    machine.pci[0].buses = Some(Buses { secondary: 1, subordinate: 3 });
    let bridge = |address: &str, kind, first, link| Device {
        address: address.parse().unwrap(),
        class: 0x06_0400,
        buses: Some(Buses { secondary: first, subordinate: 3 }),
        kind: Some(kind),
        now: link,
        max: best,
        ..Device::default()
    };
    machine.pci[1] = bridge("0000:01:00.0", PortKind::Upstream, 2, now);
    let inner = bridge("0000:02:00.0", PortKind::Downstream, 3, best);
    machine.pci.push(inner);
    let function = |(at, class): (u8, &u32)| Device {
        address: format!("0000:03:00.{at}").parse().unwrap(),
        class: *class,
        kind: Some(PortKind::Endpoint),
        now: best,
        max: best,
        node: Some(0),
        ..Device::default()
    };
    machine.pci.extend((0u8..).zip(classes).map(function));
    pci::find_parents(&mut machine.pci);
    machine
}

#[test]
fn an_idle_graphics_card_behind_its_own_switch_rests_and_others_do_not() {
    const AUDIO: u32 = 0x04_0300;
    let idle = Some(Link { speed: Some(Transfers(2_500_000_000)), width: Some(16) });
    assert_eq!(ids(&with_a_switch(idle, &[0x03_0000, AUDIO])), [""; 0]);
    assert_eq!(ids(&with_a_switch(idle, &[0x01_0802])), ["pcie-link"]);
    let both = with_a_switch(idle, &[0x03_0000, 0x02_0000]);
    assert_eq!(ids(&both), ["pcie-link"], "a network card beside it");
    assert_eq!(
        ids(&with_a_switch(lanes(16, 8), &[0x03_0000])),
        ["pcie-link"],
        "lanes that are missing do not rest"
    );
}

#[test]
fn a_switch_with_nothing_behind_it_is_not_odd() {
    assert_eq!(ids(&with_a_switch(lanes(8, 16), &[])), [""; 0]);
    assert_eq!(ids(&with_a_switch(lanes(8, 16), &[0x0c_0330])), [""; 0]);
    assert_eq!(ids(&with_a_switch(lanes(8, 16), &[0x01_0802])), ["pcie-link"]);
}

#[test]
fn what_is_unknown_is_not_odd() {
    let known = lanes(8, 8);
    for (now, card, slot) in
        [(None, known, lanes(8, 4)), (lanes(8, 4), None, known), (known, known, None)]
    {
        assert_eq!(ids(&machine(now, card, slot)), [""; 0]);
    }
}

#[test]
fn packets_as_large_as_the_way_allows_are_not_odd() {
    let payload = |now, max| Some(Payload { now, max, read_request: 512 });
    for (now, port_max, want) in
        [(128, 256, vec!["pcie-payload"]), (256, 256, vec![]), (128, 128, vec![])]
    {
        let mut machine = machine(None, None, None);
        machine.pci[0].payload = payload(now, port_max);
        machine.pci[1].payload = payload(now, 512);
        assert_eq!(ids(&machine), want, "{now} of {port_max}");
    }
}

#[test]
fn a_card_without_a_node_is_odd_where_there_are_two() {
    let node = |id| Node {
        id,
        cpus: Some(vec![id]),
        total: Some(linerate_units::Bytes(1)),
        ..Node::default()
    };
    let mut machine = machine(None, None, None);
    machine.pci[1].node = None;
    machine.processors.nodes = vec![node(0)];
    assert_eq!(ids(&machine), [""; 0]);
    machine.processors.nodes.push(node(1));
    assert_eq!(ids(&machine), ["node-unknown"]);
    let mut unread = machine.clone();
    unread.gaps.push(Gap {
        what: pci::NODES.to_owned(),
        why: "they were not read".to_owned(),
        hint: String::new(),
    });
    assert_eq!(ids(&unread), [""; 0]);
    machine.pci[1].node = Some(1);
    assert_eq!(ids(&machine), [""; 0]);
}

#[test]
fn ports_beside_a_narrow_one_hint_at_bifurcation() {
    let mut narrow = machine(lanes(8, 4), lanes(8, 8), lanes(8, 4));
    let fix = |m: &Inventory| super::super::find(m)[0].to_do();
    assert!(!fix(&narrow).contains("bifurcation"));
    let mut beside = narrow.pci[0].clone();
    beside.address.function = 1;
    beside.buses = Some(Buses { secondary: 2, subordinate: 2 });
    narrow.pci.insert(1, beside);
    assert!(fix(&narrow).contains("bifurcation: 0000:00:01.1"), "{}", fix(&narrow));
}

/// A card that a link limits, as an output says.
fn result_of(own: Option<Link>, now: Option<Link>, mbps: u64) -> Inventory {
    let mut reported = machine(None, own, None);
    reported.pci.remove(0);
    reported.pci[0].parent = None;
    reported.pci[0].limited = now.map(|now| pci::Limited { now, at: None });
    reported.network.nics = vec![nic(0, mbps)];
    reported
}

#[test]
fn a_card_that_a_link_limits_by_its_own_words_is_odd() {
    let slow = result_of(lanes(8, 4), lanes(5, 1), 10_000);
    assert_eq!(ids(&slow), ["pcie-slot"]);
    let odd = &super::super::find(&slow)[0];
    assert_eq!(
        odd.what,
        "the card could use 8 GT/s x4 (31.5 Gb/s), and its link runs at 5 GT/s x1 (4 Gb/s)"
    );
    let mut above = slow.clone();
    let at = "0000:00:00.0".parse().unwrap();
    above.pci[0].limited.as_mut().unwrap().at = Some(at);
    let what = super::super::find(&above)[0].what.clone();
    assert!(what.ends_with("the link at 0000:00:00.0 leaves it 5 GT/s x1 (4 Gb/s)"), "{what}");
    let enough = result_of(lanes(8, 4), lanes(5, 1), 1_000);
    let what = super::super::find(&enough)[0].what.clone();
    assert!(what.contains("enough for its ports (1 Gb/s)"), "{what}");
    // Two functions at one slot are one card.
    let mut two = slow.clone();
    let mut second = two.pci[0].clone();
    second.address.function = 1;
    two.pci.push(second);
    assert_eq!(ids(&two), ["pcie-slot"]);
}

#[test]
fn a_card_without_a_slower_link_is_not_odd() {
    assert_eq!(ids(&result_of(lanes(8, 4), lanes(8, 4), 10_000)), [""; 0]);
    assert_eq!(ids(&result_of(lanes(8, 4), None, 10_000)), [""; 0]);
    assert_eq!(ids(&result_of(None, lanes(5, 1), 10_000)), [""; 0]);
    let mut display = result_of(lanes(8, 16), lanes(2, 16), 10_000);
    display.pci[0].class = 0x03_0000;
    assert_eq!(ids(&display), [""; 0]);
    display.pci[0].limited.as_mut().unwrap().now.width = Some(4);
    assert_eq!(ids(&display), ["pcie-slot"]);
    // If the bridge above the card is known, the figures of both ends are used.
    let mut whole = machine(lanes(8, 4), lanes(8, 4), lanes(8, 4));
    let now = lanes(5, 1).unwrap();
    whole.pci[1].limited = Some(pci::Limited { now, at: None });
    assert_eq!(ids(&whole), [""; 0]);
}
