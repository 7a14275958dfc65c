//! Tests of ports that are built on other ports: which wire, if any, may be the limit.

use linerate_facts::nic::{LinkModes, Nic};
use linerate_facts::route::Route;

use super::*;

const GIGABIT: Rate = Rate(1_000_000_000);

/// Port `index`, with a link of this speed.
fn card(index: u32, speed: Option<Rate>) -> Nic {
    Nic {
        name: format!("eth{index}"),
        index,
        up: true,
        link: LinkModes { speed, ..LinkModes::default() },
        ..Nic::default()
    }
}

fn made(index: u32, kind: &str, below: &[u32]) -> Nic {
    let mut nic = Nic {
        name: format!("{kind}{index}"),
        kind: kind.into(),
        is_virtual: true,
        ..card(index, None)
    };
    nic.stack.below = below.to_vec();
    nic
}

fn bridge_of(members: Vec<Nic>) -> Vec<Nic> {
    let below: Vec<u32> = members.iter().map(|nic| nic.index).collect();
    let mut ports = vec![made(9, "bridge", &below)];
    ports.extend(members);
    ports
}

/// A near host that sends by the first of these ports, with a goodput in Gb/s.
fn leaving(ports: Vec<Nic>, gbits: f64) -> Model {
    let mut base = load();
    base.goodput.mean = gbits * 1e9;
    base.packets = Some(FULL);
    let mut m = model(base);
    m.directions[0].sweep[0].goodput.mean = gbits * 1e9;
    let facts = &mut m.hosts[0].facts;
    facts.port = Some(Port {
        name: ports[0].name.clone(),
        is_ethernet: ports[0].kind == "bridge",
        is_virtual: true,
        ..Port::default()
    });
    facts.route = Some(Route { ports, ..Route::default() });
    m
}

fn two_cards() -> Vec<Nic> {
    bridge_of(vec![
        card(1, Some(GIGABIT)),
        card(2, Some(Rate(10_000_000_000))),
        made(3, "tun", &[]),
    ])
}

#[test]
fn a_bridge_of_two_cards_is_clear_only_far_below_the_slower() {
    // Below 80 % of 941 Mb/s, or above what both cards carry, the wire is not full.
    for (gbits, answer) in [(0.75, "clear"), (0.76, "unknown"), (9.4, "unknown"), (11.1, "clear")] {
        assert_eq!(outcome(&leaving(two_cards(), gbits), "wire-full"), answer, "{gbits} Gb/s");
    }
    let mut unsaid = two_cards();
    unsaid[1].link.speed = None;
    assert_eq!(outcome(&leaving(unsaid, 0.1), "wire-full"), "unknown");
}

#[test]
fn the_wire_of_the_other_end_clears_no_bridge() {
    let mut m = leaving(two_cards(), 0.9);
    m.directions[0].ceilings = vec![ceiling(Stage::Net, 94e9, 94e9)];
    assert_eq!(outcome(&m, "wire-full"), "unknown");
    m.directions[0].base.goodput.mean = 0.7e9;
    assert_eq!(outcome(&m, "wire-full"), "clear");
}

#[test]
fn a_path_that_carries_more_than_the_one_card_of_a_bridge_leads_to_a_guest() {
    let bridge = || bridge_of(vec![card(1, Some(GIGABIT)), made(3, "tun", &[])]);
    assert_eq!(outcome(&leaving(bridge(), 1.1), "wire-full"), "clear");
    assert_eq!(outcome(&leaving(bridge(), 0.9), "wire-full"), "unknown");
}

#[test]
fn a_tunnel_that_tells_nothing_below_is_never_clear() {
    for kind in ["wireguard", "tun", "vxlan"] {
        let m = leaving(vec![made(9, kind, &[])], 0.1);
        assert_eq!(outcome(&m, "wire-full"), "unknown", "{kind}");
        let mut m = leaving(vec![made(9, kind, &[])], 20.0);
        assert_eq!(outcome(&m, "pcie-slot"), "unknown", "{kind}");
        m.directions[0].base.receivers = vec![thread(0.96)];
        m.directions[0].base.senders = vec![thread(0.96)];
        assert_eq!(outcome(&m, "memory-bandwidth"), "unknown", "{kind}");
    }
    let over = |gbits| {
        let ports = vec![made(9, "vxlan", &[1]), card(1, Some(GIGABIT))];
        outcome(&leaving(ports, gbits), "wire-full")
    };
    assert_eq!((over(0.75), over(0.9)), ("clear", "unknown"));
}

#[test]
fn ports_that_lead_nowhere_but_into_the_machine_have_no_wire() {
    let bridge = bridge_of(vec![made(1, "veth", &[]), made(3, "tun", &[])]);
    for ports in [bridge, vec![made(9, "veth", &[])], vec![made(9, "", &[])]] {
        let name = ports[0].name.clone();
        let mut m = leaving(ports, 20.0);
        m.directions[0].base.senders = vec![thread(0.96)];
        for cause in ["wire-full", "pcie-slot", "memory-bandwidth", "duplex"] {
            assert_eq!(outcome(&m, cause), "clear", "{name}: {cause}");
        }
    }
}

#[test]
fn slots_below_a_bridge_are_read_or_unknown() {
    let mut ports = two_cards();
    assert_eq!(outcome(&leaving(ports.clone(), 8.0), "pcie-slot"), "clear");
    for nic in &mut ports[1..3] {
        nic.pci = format!("0000:0{}:00.0", nic.index);
        nic.device = nic.pci.clone();
    }
    assert_eq!(outcome(&leaving(ports.clone(), 0.9), "pcie-slot"), "clear");
    assert_eq!(outcome(&leaving(ports, 1.1), "pcie-slot"), "unknown");
}

#[test]
fn half_duplex_below_a_bridge_or_a_tunnel_is_not_ruled_out() {
    use linerate_facts::nic::Duplex;
    let with = |duplex| {
        let mut ports = two_cards();
        ports[1].link.duplex = duplex;
        outcome(&leaving(ports, 0.06), "duplex")
    };
    assert_eq!(with(Some(Duplex::Full)), "clear");
    assert_eq!(with(Some(Duplex::Half)), "unknown");
    assert_eq!(with(None), "unknown");
    let tunnel = |duplex| {
        let mut ports = vec![made(9, "vxlan", &[1]), card(1, Some(GIGABIT))];
        ports[1].link.duplex = duplex;
        outcome(&leaving(ports, 0.06), "duplex")
    };
    assert_eq!(tunnel(Some(Duplex::Half)), "unknown");
    assert_eq!(tunnel(Some(Duplex::Full)), "clear");
}

#[test]
fn a_port_that_software_makes_has_no_duplex() {
    for kind in ["tun", "wireguard", "vxlan", "gre", "veth", "dummy", ""] {
        let m = leaving(vec![made(9, kind, &[])], 0.06);
        assert_eq!(outcome(&m, "duplex"), "clear", "{kind}");
        // A record from before routes were read has only the port.
        let mut m = m;
        for host in &mut m.hosts {
            host.facts.route = None;
        }
        assert_eq!(outcome(&m, "duplex"), "clear", "{kind}");
    }
}

#[test]
fn a_path_below_a_bridge_is_proved_only_where_no_wire_may_be_full() {
    let judged = |gbits| {
        let mut ports = two_cards();
        for nic in &mut ports[1..3] {
            nic.link.duplex = Some(linerate_facts::nic::Duplex::Full);
        }
        let mut m = leaving(ports, gbits);
        tried(&mut m, "more-streams", 1.0);
        judge(&m)
    };
    let far_below = judged(0.7);
    assert_eq!(
        (far_below.limits[0].cause, far_below.limits[0].certainty),
        ("path-rate", Certainty::Proved)
    );
    let full = judged(0.94);
    assert!(full.limits.iter().all(|l| l.certainty != Certainty::Proved), "{:?}", full.limits);
    let reported = full.unknown.iter().any(|u| u.why.contains("eth1 or eth2"));
    assert!(reported, "{:?}", full.unknown);
}
