//! Tests of what the facts of a path show about the ports and slots in use.

use linerate_facts::nic::{Duplex, LinkModes, Nic};
use linerate_facts::pci::{Buses, Device, PortKind, find_parents};
use linerate_facts::route::{Other, Route};
use linerate_units::Transfers;

use super::*;

/// A card of 8 lanes in a slot of `slot` lanes, of which `now` are in use; both of PCIe generation 3.
fn card_in(slot: u8, now: u8, payload: Option<u32>) -> Vec<Device> {
    slot::card_in(Transfers(8_000_000_000), slot, now, payload)
}

/// A route by one port with a link of this rate.
pub(super) fn route(gigabits: u64) -> Route {
    let nic = Nic {
        name: "eth0".into(),
        index: 1,
        up: true,
        link: LinkModes {
            speed: Some(Rate(gigabits * 1_000_000_000)),
            duplex: Some(Duplex::Full),
            ..LinkModes::default()
        },
        ..Nic::default()
    };
    Route { ports: vec![nic], ..Route::default() }
}

/// A model with these routes at both ends, and a goodput in bits per second.
fn routed(near: Route, far: Route, goodput: f64) -> Model {
    let mut m = model(load());
    m.directions[0].base.goodput.mean = goodput;
    for (host, route) in m.hosts.iter_mut().zip([near, far]) {
        host.facts.port = Some(Port { name: "eth0".into(), is_ethernet: true, ..Port::default() });
        host.facts.route = Some(route);
    }
    m
}

/// A port of 40 Gb/s in a slot that carries 25 to 28.8 Gb/s, with a goodput in bits per second.
fn narrow(payload: Option<u32>, goodput: f64) -> Model {
    let mut far = route(40);
    far.ports[0].device = "0000:01:00.0".into();
    far.ports[0].pci = "0000:01:00.0".into();
    far.pci = card_in(4, 4, payload);
    let mut m = routed(route(40), far, goodput);
    m.directions[0].ceilings =
        vec![ceiling(Stage::Pcie, 25e9, 28.8e9), ceiling(Stage::Net, 37.6e9, 37.6e9)];
    m
}

#[test]
fn a_slot_is_full_at_its_upper_end_and_may_be_inside_of_its_interval() {
    for (goodput, payload, answer) in [
        (24.4e9, Some(256), "clear"),
        (24.6e9, Some(256), "enough"),
        (24.6e9, None, "suspect"),
        (28.3e9, None, "enough"),
    ] {
        let got = outcome(&narrow(payload, goodput), "pcie-slot");
        assert_eq!(got, answer, "{goodput} {payload:?}");
    }
    let certainty = |goodput| {
        let verdict = judge(&narrow(Some(256), goodput));
        let limit = verdict.limits.iter().find(|l| l.cause == "pcie-slot");
        limit.map(|l| (l.certainty, l.side))
    };
    let proved = Some((Certainty::Proved, Place::Far));
    assert_eq!(certainty(28.21e9), Some((Certainty::Supported, Place::Far)));
    assert_eq!(certainty(28.23e9), proved, "98 % of 28.8");
}

#[test]
fn a_busy_thread_may_as_well_be_what_ends_inside_of_a_slots_interval() {
    for (busy, answer) in [(0.89, "enough"), (0.91, "suspect")] {
        let mut m = narrow(Some(256), 26e9);
        m.directions[0].base.senders = vec![thread(busy)];
        assert_eq!(outcome(&m, "pcie-slot"), answer, "{busy}");
    }
}

#[test]
fn the_wire_comes_first_where_it_carries_less_than_the_slot() {
    for (wire, answer) in [(24.9e9, "clear"), (28.0e9, "suspect"), (28.9e9, "enough")] {
        let mut m = narrow(Some(256), 24.8e9);
        m.directions[0].ceilings[1] = ceiling(Stage::Net, wire, wire);
        assert_eq!(outcome(&m, "pcie-slot"), answer, "{wire}");
    }
}

#[test]
fn what_binds_after_a_slot_is_the_wire_and_after_a_window_the_slot() {
    let verdict = judge(&narrow(Some(256), 28.5e9));
    assert_eq!(verdict.limits[0].cause, "pcie-slot");
    assert_eq!(verdict.next[0].cause, "wire-full");
    let why = verdict.limits[0].evidence.join("; ");
    assert!(why.contains("could use 8 GT/s x8, and its slot"), "{why}");
    let mut m = narrow(Some(256), 1e9);
    tried(&mut m, "more-streams", 1.0);
    let verdict = judge(&m);
    let next = &verdict.next[0];
    assert_eq!((next.cause, next.side), ("pcie-slot", Place::Far));
    assert!(next.evidence[0].contains("25 to 28.8 Gb/s"), "{next:?}");
}

#[test]
fn the_reason_for_a_narrow_link_is_told_by_its_two_ends() {
    for (slot, now, words) in [
        (8, 4, "both its ends could do 8 GT/s x8"),
        (4, 4, "its slot (port 0000:00:01.0) leaves it 8 GT/s x4 at most"),
        (16, 8, "0000:01:00.0 itself can do no more than 8 GT/s x8"),
    ] {
        let mut m = narrow(None, 28.5e9);
        let facts = &mut m.hosts[1].facts;
        facts.route.as_mut().expect("a route").pci = card_in(slot, now, None);
        let evidence = judge(&m).limits[0].evidence.join("; ");
        assert!(evidence.contains(words), "{evidence}");
    }
}

#[test]
fn a_slot_that_is_faster_than_its_card_makes_up_for_no_lane_that_it_lacks() {
    let faster = Transfers(16_000_000_000);
    for (lanes, words, advice) in [
        (4, "its slot (port 0000:00:01.0) leaves it 8 GT/s x4 at most", "to a slot of 8 GT/s x8"),
        (8, "0000:01:00.0 itself can do no more than 8 GT/s x8", "a card with a faster link"),
    ] {
        let mut m = narrow(None, 28.5e9);
        let mut pci = card_in(lanes, lanes, None);
        pci[0].max.as_mut().expect("a slot").speed = Some(faster);
        m.hosts[1].facts.route.as_mut().expect("a route").pci = pci;
        let verdict = judge(&m);
        let evidence = verdict.limits[0].evidence.join("; ");
        assert!(evidence.contains(words), "{evidence}");
        let got = verdict.limits[0].advice[0].text();
        assert!(got.contains(advice), "{got}");
    }
}

#[test]
fn what_usb_leaves_a_port_is_unknown_from_half_of_what_it_signals() {
    let at = |goodput: f64, more: f64| {
        let mut m = narrow(None, goodput);
        m.directions[0].ceilings.clear();
        m.directions[0].sweep[0].goodput.mean = more;
        let route = m.hosts[1].facts.route.as_mut().expect("a route");
        let nic = &mut route.ports[0];
        (nic.pci, nic.usb) = (String::new(), Some(Rate(480_000_000)));
        outcome(&m, "pcie-slot")
    };
    assert_eq!((at(2.39e8, 2.4e8), at(2.41e8, 2.4e8)), ("clear", "unknown"));
    assert_eq!(at(2.41e8, 2.8e8), "clear", "two streams carried more");
}

#[test]
fn what_a_cable_carries_is_unknown_and_the_slot_in_its_box_is_not_blamed_for_it() {
    let at = |tunneled: bool| {
        let mut m = narrow(None, 8e9);
        m.directions[0].ceilings.remove(0);
        m.directions[0].sweep[0].goodput.mean = 8e9;
        let route = m.hosts[1].facts.route.as_mut().expect("a route");
        let [root, card] = &route.pci[..] else { panic!("a card in a slot: {:?}", route.pci) };
        let behind = |secondary| Some(Buses { secondary, subordinate: 3 });
        let bridge = |address: &str, kind, secondary| Device {
            address: address.parse().expect("an address"),
            kind: Some(kind),
            buses: behind(secondary),
            ..root.clone()
        };
        let mut upper = bridge("0000:01:00.0", PortKind::Upstream, 2);
        upper.tunneled = tunneled;
        let mut all = vec![
            bridge("0000:00:01.0", PortKind::Root, 1),
            upper,
            bridge("0000:02:00.0", PortKind::Downstream, 3),
            Device { address: "0000:03:00.0".parse().expect("an address"), ..card.clone() },
        ];
        find_parents(&mut all);
        route.pci = all;
        let nic = &mut route.ports[0];
        nic.device = "0000:03:00.0".into();
        nic.pci.clone_from(&nic.device);
        match cause("pcie-slot").expect("a known cause").check(&m, Direction::Forward) {
            Err(NoFinding::Unknown(gaps)) => gaps[0].why.clone(),
            Err(NoFinding::Clear(why)) => format!("clear: {why}"),
            Ok(found) => format!("{found:?}"),
        }
    };
    let why = at(true);
    assert!(why.starts_with("0000:01:00.0 is attached by Thunderbolt"), "{why}");
    assert!(at(false).starts_with("clear: "), "{}", at(false));
}

#[test]
fn a_slot_that_nobody_read_is_unknown_and_a_port_without_one_is_not() {
    let mut m = narrow(None, 1e9);
    m.directions[0].ceilings.remove(0);
    assert_eq!(outcome(&m, "pcie-slot"), "clear", "read, and far from full");
    let route = m.hosts[1].facts.route.as_mut().expect("a route");
    route.pci.clear();
    assert_eq!(outcome(&m, "pcie-slot"), "unknown");
    m.directions[0].base.goodput.mean = 0.99e9;
    assert_eq!(outcome(&m, "pcie-slot"), "clear", "any slot carries that");
    m.directions[0].base.goodput.mean = 1e9;
    m.directions[0].sweep[0].goodput.mean = 1.11e9;
    assert_eq!(outcome(&m, "pcie-slot"), "clear", "two streams carried more");
    m.directions[0].sweep[0].goodput.mean = 1.09e9;
    assert_eq!(outcome(&m, "pcie-slot"), "unknown");
    let route = m.hosts[1].facts.route.as_mut().expect("a route");
    route.ports[0].pci.clear();
    assert_eq!(outcome(&m, "pcie-slot"), "clear", "no PCI device");
    m.hosts[1].facts.route = None;
    assert_eq!(outcome(&m, "pcie-slot"), "unknown", "an older record");
}

/// At each end, a port of 10 Gb/s in 10.0.0.0/24, beside the 1 Gb/s port in use.
fn beside() -> [Route; 2] {
    [1, 2].map(|host| {
        let mut route = route(1);
        route.own = Some([192, 0, 2, host].into());
        route.peer = Some([192, 0, 2, 3 - host].into());
        route.others = vec![Other {
            name: "eth1".into(),
            speed: Some(Rate(10_000_000_000)),
            networks: vec![([10, 0, 0, host].into(), 24)],
        }];
        route
    })
}

type Change = fn(&mut [Route; 2]);

/// The outcome of `wrong-route` on a full wire, after `change`.
fn other_way(change: impl Fn(&mut [Route; 2])) -> &'static str {
    let mut routes = beside();
    change(&mut routes);
    let [near, far] = routes;
    let mut m = routed(near, far, 0.94e9);
    m.directions[0].ceilings = vec![ceiling(Stage::Net, 0.9414e9, 0.9414e9)];
    outcome(&m, "wrong-route")
}

#[test]
fn a_faster_port_of_both_neighbours_in_one_network_is_another_way() {
    assert_eq!(other_way(|_| {}), "enough");
    let speed = |gigabits: f64| {
        other_way(|routes| routes[1].others[0].speed = Some(Rate((gigabits * 1e9) as u64)))
    };
    assert_eq!((speed(1.09), speed(1.11)), ("clear", "enough"));
    let near_misses: [(&str, Change); 6] = [
        ("another network", |r| {
            r[1].others[0].networks[0].0 = [10, 0, 1, 2].into();
        }),
        ("the same address twice", |r| {
            r[1].others[0].networks = r[0].others[0].networks.clone();
        }),
        ("a network of another size", |r| {
            r[1].others[0].networks[0].1 = 16;
        }),
        ("all addresses there are", |r| {
            for route in r {
                route.others[0].networks[0].1 = 0;
            }
        }),
        ("addresses of every link", |r| {
            for (host, route) in r.iter_mut().enumerate() {
                route.others[0].networks = vec![([169, 254, 0, host as u8 + 1].into(), 16)];
            }
        }),
        ("a router between", |r| {
            r[0].gateway = Some([192, 0, 2, 254].into());
        }),
    ];
    for (what, change) in near_misses {
        assert_eq!(other_way(change), "clear", "{what}");
    }
}

#[test]
fn another_way_whose_speed_nobody_tells_is_unknown_unless_its_other_port_is_slow() {
    let with = |far: u64| {
        other_way(|routes| {
            routes[0].others[0].speed = None;
            routes[1].others[0].speed = Some(Rate(far * 1_000_000));
        })
    };
    assert_eq!((with(1_090), with(1_110)), ("clear", "unknown"));
    let both = other_way(|routes| {
        for route in routes {
            route.others[0].speed = None;
        }
    });
    assert_eq!(both, "unknown");
}

#[test]
fn another_way_is_unknown_where_the_wire_in_use_may_be_full() {
    let answer = |others: bool| {
        let mut routes = beside();
        for route in routes.iter_mut().filter(|_| !others) {
            route.others.clear();
        }
        let [mut near, far] = routes;
        let mut tunnel = near.ports[0].clone();
        (tunnel.kind, tunnel.is_virtual) = ("wireguard".into(), true);
        near.ports = vec![tunnel];
        let mut m = routed(near, far, 0.5e9);
        m.hosts[0].facts.port.as_mut().expect("a port").is_virtual = true;
        outcome(&m, "wrong-route")
    };
    assert_eq!((answer(true), answer(false)), ("unknown", "clear"));
}

#[test]
fn a_second_port_in_the_network_in_use_is_another_way_too() {
    // The near host has a faster port in the network in use. The far host has only the port in use, at `gigabits`.
    let answer = |gigabits: u64| {
        other_way(|routes| {
            routes[0].others[0].networks = vec![([192, 0, 2, 9].into(), 24)];
            routes[1].others.clear();
            routes[1].ports[0].link.speed = Some(Rate(gigabits * 1_000_000_000));
        })
    };
    assert_eq!((answer(1), answer(10)), ("clear", "enough"));
}

#[test]
fn another_way_is_named_beside_the_full_wire_and_never_proved() {
    let [near, far] = beside();
    let mut m = routed(near, far, 0.94e9);
    m.directions[0].ceilings = vec![ceiling(Stage::Net, 0.9414e9, 0.9414e9)];
    let limits = judge(&m).limits;
    let reported: Vec<_> = limits.iter().map(|l| (l.cause, l.certainty)).collect();
    assert_eq!(reported, [("wire-full", Certainty::Proved), ("wrong-route", Certainty::Supported)]);
    assert_eq!(limits[1].advice[0].text(), "on near: linerate run 10.0.0.2");
    m.directions[0].base.goodput.mean = 0.9e9;
    assert_eq!(outcome(&m, "wrong-route"), "clear", "the wire is not full");
    m.directions[0].base.goodput.mean = 0.94e9;
    m.hosts[0].facts.route = None;
    assert_eq!(outcome(&m, "wrong-route"), "unknown");
}

/// The outcome of `duplex` for a port with this duplex mode, speed, and share of collisions.
fn duplex(duplex: Option<Duplex>, mbps: u64, collided: Option<f64>) -> &'static str {
    let mut far = route(1);
    far.ports[0].link.duplex = duplex;
    far.ports[0].link.speed = Some(Rate(mbps * 1_000_000));
    let mut m = routed(route(1), far, 60e6);
    m.directions[0].base.collided = [Some(0.0), collided].into();
    outcome(&m, "duplex")
}

#[test]
fn half_duplex_needs_collisions_to_be_named() {
    let half = Some(Duplex::Half);
    assert_eq!(duplex(half, 100, Some(0.011)), "enough");
    assert_eq!(duplex(half, 100, Some(0.009)), "suspect");
    assert_eq!(duplex(half, 100, None), "suspect", "not every driver counts");
    let full = Some(Duplex::Full);
    assert_eq!(duplex(full, 100, Some(0.5)), "clear");
}

#[test]
fn collisions_tell_the_duplex_of_a_port_that_does_not_say() {
    assert_eq!(duplex(None, 1_000, Some(0.011)), "enough");
    assert_eq!(duplex(None, 1_000, Some(0.009)), "clear");
    assert_eq!(duplex(None, 1_000, None), "unknown");
    assert_eq!(duplex(None, 1_001, None), "clear", "there is no such thing");
}
