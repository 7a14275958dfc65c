//! Tests of causes that facts and counters of the ports show: offloads, tunnels, pauses, allowances.

use linerate_facts::memory::Channels;
use linerate_facts::nic::{Nic, Offloads, Pause};
use linerate_facts::route::Route;
use linerate_judge::model::{Allowance, Cpu, Paused};
use linerate_units::Transfers;

use super::*;

/// Memory channels that can carry any of these loads.
const CHANNELS: Channels = Channels { least: 8, most: 8, speed: Transfers(3_200_000_000) };

/// A card of 10 Gb/s at each end, with an MTU of 1500 where 9000 is supported, and these offloads turned off.
fn cards(mut base: Load, off: [&[&str]; 2]) -> Model {
    base.packets = Some(FULL);
    let mut m = model(base);
    m.directions[0].ceilings = vec![ceiling(Stage::Net, 9.41e9, 9.41e9)];
    for (host, off) in m.hosts.iter_mut().zip(off) {
        let mut nic = Nic {
            name: "eth0".to_owned(),
            index: 1,
            up: true,
            mtu: Some(1500),
            mtu_max: Some(9000),
            offloads: Some(Offloads {
                on: Vec::new(),
                off: off.iter().map(|name| (*name).to_owned()).collect(),
            }),
            ..Nic::default()
        };
        nic.link.speed = Some(Rate(10_000_000_000));
        host.facts.route = Some(Route { ports: vec![nic], ..Route::default() });
        host.facts.channels = Some(CHANNELS);
        host.facts.port.as_mut().expect("a port").is_ethernet = true;
    }
    m
}

fn nic(model: &mut Model, side: usize) -> &mut Nic {
    let route = model.hosts[side].facts.route.as_mut();
    &mut route.expect("a route").ports[0]
}

const TSO: &[&str] = &["tx-tcp-segmentation"];
const GRO: &[&str] = &["rx-gro"];

fn busy(sender: f64, receiver: f64) -> Load {
    Load { senders: vec![thread(sender)], receivers: vec![thread(receiver)], ..load() }
}

#[test]
fn packets_one_by_one_count_where_a_cpu_is_full() {
    let at = |sender, receiver, off| outcome(&cards(busy(sender, receiver), off), "small-packets");
    assert_eq!(at(0.91, 0.2, [TSO, &[]]), "enough");
    assert_eq!(at(0.89, 0.2, [TSO, &[]]), "clear", "it has time left");
    assert_eq!(at(0.2, 0.91, [TSO, &[]]), "suspect", "the receiver's frames");
    assert_eq!(at(0.2, 0.91, [&[], GRO]), "enough");
    assert_eq!(at(0.2, 0.91, [GRO, TSO]), "suspect", "of the other way");
    let mut m = cards(busy(0.2, 0.2), [&[], GRO]);
    let cpu = |softirq| Cpu { softirq, ..Cpu::default() };
    m.directions[0].base.cpus.receiver = vec![cpu(0.89)];
    assert_eq!(outcome(&m, "small-packets"), "clear");
    m.directions[0].base.cpus.receiver = vec![cpu(0.91)];
    assert_eq!(outcome(&m, "small-packets"), "enough");
    let mut m = cards(busy(0.95, 0.2), [TSO, &[]]);
    nic(&mut m, 0).offloads = None;
    assert_eq!(outcome(&m, "small-packets"), "unknown");
    let mut m = cards(busy(0.95, 0.2), [&[], &[]]);
    assert_eq!(outcome(&m, "small-packets"), "suspect", "frames could be larger");
    let cause = cause("small-packets").expect("a cause");
    assert_eq!(
        cause.advice(&m, Direction::Forward)[0].undo_text(),
        "on near: sudo ip link set dev eth0 mtu 1500; on far: sudo ip link set dev eth0 mtu 1500"
    );
    // A port must get larger frames after the port below it, and smaller frames before.
    let route = m.hosts[0].facts.route.as_mut().expect("a route");
    let tagged =
        Nic { name: "eth0.7".to_owned(), kind: "vlan".to_owned(), ..route.ports[0].clone() };
    route.ports.insert(0, tagged);
    let advice = cause.advice(&m, Direction::Forward).remove(0);
    let order = |text: &str| [text.find("dev eth0.7 "), text.find("dev eth0 ")];
    let [upper, lower] = order(&advice.text());
    assert!(lower.is_some() && lower < upper, "{}", advice.text());
    let [upper, lower] = order(&advice.undo_text());
    assert!(upper.is_some() && upper < lower, "{}", advice.undo_text());
    let route = m.hosts[0].facts.route.as_mut().expect("a route");
    route.ports.remove(0);
    nic(&mut m, 1).mtu = Some(9000);
    assert_eq!(outcome(&m, "small-packets"), "clear");
}

#[test]
fn on_a_port_made_by_software_the_packets_tell() {
    let at = |bytes: f64, off| {
        let mut base = busy(0.95, 0.2);
        base.packet_bytes = [Some(bytes); 2].into();
        let mut m = cards(base, [off, &[]]);
        for side in 0..2 {
            nic(&mut m, side).is_virtual = true;
        }
        outcome(&m, "small-packets")
    };
    assert_eq!(at(2_990.0, TSO), "enough");
    assert_eq!(at(3_010.0, TSO), "clear", "groups of segments");
    assert_eq!(at(1_500.0, GRO), "clear", "nothing is off that makes them");
}

#[test]
fn offloads_are_tried_once_the_full_core_is_proved_and_what_they_gain_is_told() {
    let may = |id: &str| {
        let mut m = cards(busy(0.99, 0.2), [TSO, &[]]);
        m.hosts[0].facts.changeable = vec![id.to_owned()];
        tried(&mut m, "sender-work", 0.82);
        m
    };
    let next = |m: &Model| next_trial(m, Direction::Forward, 1).map(|plan| plan.kind);
    assert_eq!(next(&may("backlog")), None, "not allowed");
    let m = may("send-offloads");
    assert_eq!(next(&m).as_deref(), Some("host-offloads"));
    let judged = |ratio| {
        let mut m = m.clone();
        tried(&mut m, "host-offloads", ratio);
        assert_eq!(next(&m), None, "once is enough");
        let limits = judge(&m).limits.into_iter();
        let small = limits.filter(|l| l.cause == "small-packets");
        let reported = small.map(|l| (l.certainty, l.advice[0].gain));
        reported.collect::<Vec<_>>()
    };
    assert_eq!(judged(1.6), [(Certainty::Proved, Some(1.6))]);
    assert_eq!(judged(1.0), [], "they are no reason where they gain nothing");
}

#[test]
fn the_full_core_is_proved_and_the_reason_stands_beside_it() {
    let mut m = cards(busy(0.99, 0.2), [TSO, &[]]);
    tried(&mut m, "sender-work", 0.82);
    let limits = judge(&m).limits;
    let reported: Vec<_> = limits.iter().map(|l| (l.cause, l.certainty)).collect();
    assert_eq!(
        reported,
        [("sender-core", Certainty::Proved), ("small-packets", Certainty::Supported)]
    );
    assert_eq!(limits[1].advice[0].text(), "on near: sudo ethtool -K eth0 tso on");
    assert_eq!(limits[1].advice[0].undo_text(), "on near: sudo ethtool -K eth0 tso off");
}

/// A tunnel at the near end, on a card. The sending thread and its CPU are busy for these shares.
fn tunnelled(kind: &str, mtu: u32, thread: f64, cpu: f64) -> Model {
    let mut base = busy(thread, 0.2);
    base.cpus.sender = vec![Cpu { busy: cpu, ..Cpu::default() }];
    let mut m = cards(base, [&[], &[]]);
    let route = m.hosts[0].facts.route.as_mut().expect("a route");
    let mut tunnel = Nic {
        name: "tun0".to_owned(),
        index: 9,
        kind: kind.to_owned(),
        is_virtual: true,
        mtu: Some(mtu),
        ..Nic::default()
    };
    tunnel.stack.below = vec![1];
    route.ports.insert(0, tunnel);
    m
}

#[test]
fn a_tunnel_is_blamed_where_a_cpu_is_full_or_packets_do_not_fit() {
    let at = |kind, mtu, thread, cpu| outcome(&tunnelled(kind, mtu, thread, cpu), "tunnel");
    assert_eq!(at("vxlan", 1450, 0.89, 0.89), "clear");
    assert_eq!(at("vxlan", 1450, 0.91, 0.89), "enough");
    assert_eq!(at("wireguard", 1420, 0.2, 0.89), "clear");
    assert_eq!(at("wireguard", 1420, 0.2, 0.91), "suspect", "or anybody's");
    assert_eq!(at("vxlan", 1451, 0.2, 0.2), "enough", "1501 bytes");
    let learnt = |packet| {
        let mut m = tunnelled("vxlan", 1500, 0.2, 0.2);
        m.directions[0].base.in_use = Some(Bytes(packet));
        (outcome(&m, "tunnel"), notes(&m))
    };
    let (fits, note) = learnt(1450);
    assert_eq!(fits, "clear", "what was sent");
    assert_eq!(
        note,
        [
            "tun0 takes packets of 1500 bytes, which become 1550, and eth0 below carries 1500; path MTU discovery \
             has corrected this: packets of 1450 bytes are sent; an MTU of 1450 fits from the start"
        ]
    );
    let (cut, note) = learnt(1451);
    assert_eq!((cut, note.as_slice()), ("enough", &[][..]));
    assert_eq!(notes(&tunnelled("vxlan", 1450, 0.2, 0.2)), [""; 0]);
    assert_eq!(at("tun", 1500, 0.2, 0.2), "clear", "who knows what it adds");
    assert_eq!(at("vlan", 1500, 0.95, 0.95), "clear", "no tunnel");
    let advice = |m: &Model| {
        let cause = cause("tunnel").expect("a cause");
        cause.advice(m, Direction::Forward).remove(0)
    };
    let reported = advice(&tunnelled("vxlan", 1500, 0.2, 0.2));
    assert_eq!(reported.text(), "on near: sudo ip link set dev tun0 mtu 1450");
    assert_eq!(reported.undo_text(), "on near: sudo ip link set dev tun0 mtu 1500");
}

#[test]
fn packets_are_cut_in_two_only_where_fragments_are_counted() {
    // `fragments` is the number of fragments for each packet of 1448 bytes.
    let at = |mtu: u32, fragments: Option<f64>| {
        let mut m = tunnelled("vxlan", mtu, 0.2, 0.2);
        let base = &mut m.directions[0].base;
        let packets = base.goodput.mean / 8.0 / 1448.0;
        base.fragments = [fragments.map(|each| each * packets), None].into();
        m
    };
    let result_of = |mtu, fragments| outcome(&at(mtu, fragments), "tunnel");
    assert_eq!(result_of(1500, Some(2.0)), "enough");
    assert_eq!(result_of(1500, Some(1.01)), "enough");
    assert_eq!(result_of(1500, Some(0.99)), "clear", "others' packets");
    assert_eq!(result_of(1500, Some(0.0)), "clear");
    assert_eq!(result_of(1500, None), "enough", "nobody counted");
    assert_eq!(result_of(1450, Some(2.0)), "clear", "its own packets fit");
    let mut unknown = at(1500, Some(2.0));
    let route = unknown.hosts[0].facts.route.as_mut().expect("a route");
    "tun".clone_into(&mut route.ports[0].kind);
    assert_eq!(outcome(&unknown, "tunnel"), "suspect", "who knows what it adds");
    unknown.directions[0].base.fragments = [Some(0.0), None].into();
    assert_eq!(outcome(&unknown, "tunnel"), "clear");
}

#[test]
fn fragments_that_come_in_tell_of_the_far_end() {
    let at = |received: f64, made: Option<f64>| {
        let mut m = tunnelled("vxlan", 1450, 0.2, 0.2);
        m.hosts.swap(0, 1);
        m.hosts[0].side = Side::Near;
        m.hosts[1].side = Side::Far;
        let base = &mut m.directions[0].base;
        let packets = base.goodput.mean / 8.0 / 1448.0;
        base.fragments = [made.map(|each| each * packets), Some(received * packets)].into();
        outcome(&m, "tunnel")
    };
    assert_eq!(at(0.99, Some(1.01)), "clear");
    assert_eq!(at(1.01, Some(1.01)), "enough");
    // Fragments that the sender did not make come from another program or a router.
    assert_eq!(at(1.01, Some(0.99)), "suspect");
    assert_eq!(at(1.01, None), "suspect");
}

#[test]
fn of_two_tunnels_that_of_the_sender_is_told() {
    let mut m = tunnelled("vxlan", 1500, 0.2, 0.2);
    m.hosts[1].facts.route = m.hosts[0].facts.route.clone();
    m.directions[0].direction = Direction::Reverse;
    let base = &mut m.directions[0].base;
    let packets = base.goodput.mean / 8.0 / 1448.0;
    base.fragments = [Some(2.0 * packets); 2].into();
    let cause = cause("tunnel").expect("a cause");
    let Ok(found) = cause.check(&m, Direction::Reverse) else { panic!("they are cut in two") };
    assert!(found.evidence[0].contains("the far host"), "{:?}", found.evidence);
    assert!(found.evidence[1].contains("each is sent as two"), "{:?}", found.evidence);
    let advice = cause.advice(&m, Direction::Reverse).remove(0);
    assert_eq!(advice.text(), "on far: sudo ip link set dev tun0 mtu 1450");
}

#[test]
fn headers_of_all_tunnels_and_tags_on_the_way_count() {
    let result_of = |chain: &[(&str, u32)], packet: u64| {
        let mut m = tunnelled("vxlan", 1500, 0.2, 0.2);
        m.directions[0].base.in_use = Some(Bytes(packet));
        let route = m.hosts[0].facts.route.as_mut().expect("a route");
        let card = route.ports.pop().expect("a card");
        route.ports.clear();
        for (at, (kind, mtu)) in chain.iter().enumerate() {
            let mut nic = Nic {
                name: format!("{kind}{at}"),
                index: 20 + at as u32,
                kind: (*kind).to_owned(),
                is_virtual: true,
                up: true,
                mtu: Some(*mtu),
                ..Nic::default()
            };
            let last = at + 1 == chain.len();
            nic.stack.below = vec![if last { card.index } else { nic.index + 1 }];
            route.ports.push(nic);
        }
        route.ports.push(card);
        outcome(&m, "tunnel")
    };
    let nested = [("vxlan", 1500), ("gre", 1500)];
    assert_eq!((result_of(&nested, 1426), result_of(&nested, 1427)), ("clear", "enough"));
    let tagged = [("vlan", 1500), ("vxlan", 1500)];
    assert_eq!((result_of(&tagged, 1446), result_of(&tagged, 1447)), ("clear", "enough"));
    let gretap = [("gretap", 1500)];
    assert_eq!((result_of(&gretap, 1462), result_of(&gretap, 1463)), ("clear", "enough"));
    let wireguard = [("wireguard", 1500)];
    assert_eq!((result_of(&wireguard, 1440), result_of(&wireguard, 1441)), ("clear", "enough"));
}

#[test]
fn a_guests_tap_in_the_bridge_is_no_tunnel_of_the_path() {
    let at = |member: &str| {
        let mut m = tunnelled(member, 1500, 0.95, 0.2);
        let route = m.hosts[0].facts.route.as_mut().expect("a route");
        let (tunnel, card) = (&mut route.ports[0], 1);
        (tunnel.up, tunnel.stack.below) = (true, Vec::new());
        let mut bridge = Nic {
            name: "br0".to_owned(),
            index: 8,
            kind: "bridge".to_owned(),
            is_virtual: true,
            up: true,
            ..Nic::default()
        };
        bridge.stack.below = vec![9, card];
        route.ports.insert(0, bridge);
        outcome(&m, "tunnel")
    };
    assert_eq!(at("tun"), "clear", "packets go by the card");
    assert_eq!(at("vxlan"), "clear", "or the card: nobody knows");
    let mut alone = tunnelled("vxlan", 1450, 0.95, 0.2);
    let route = alone.hosts[0].facts.route.as_mut().expect("a route");
    route.ports[0].up = true;
    let mut bridge = route.ports[0].clone();
    (bridge.index, bridge.kind, bridge.stack.below) = (8, "bridge".to_owned(), vec![9]);
    route.ports.insert(0, bridge);
    assert_eq!(outcome(&alone, "tunnel"), "enough", "the one way out");
}

#[test]
fn a_tunnel_is_a_reason_for_a_full_core_and_no_rival() {
    let mut m = tunnelled("wireguard", 1420, 0.99, 0.5);
    tried(&mut m, "sender-work", 0.82);
    let limits = judge(&m).limits;
    let reported: Vec<_> = limits.iter().map(|l| (l.cause, l.certainty)).collect();
    assert_eq!(reported[0], ("sender-core", Certainty::Proved));
    assert!(reported.contains(&("tunnel", Certainty::Supported)), "{reported:?}");
}

/// The near port receives `received` pause frames per second, and the far port sends `sent`.
fn pausing(received: f64, sent: f64, stopped: Option<f64>) -> Model {
    let mut m = cards(load(), [&[], &[]]);
    let pauses = |received, sent| Some(Paused { received, sent, stopped });
    m.directions[0].base.paused = [pauses(received, 0.0), pauses(0.0, sent)].into();
    m
}

#[test]
fn pauses_count_by_their_time_or_by_the_most_that_it_can_be() {
    let at = |received, stopped| outcome(&pausing(received, 0.0, stopped), "pause-frames");
    // A pause frame of 65535 x 512 bit times stops a port of 10 Gb/s for 3.355 ms.
    for (received, stopped, answer) in [
        (14.8, None, "clear"),
        (15.0, None, "suspect"),
        (148.0, None, "suspect"),
        (150.0, None, "enough"),
        (5_000.0, Some(0.049), "clear"),
        (5_000.0, Some(0.051), "enough"),
    ] {
        assert_eq!(at(received, stopped), answer, "{received} {stopped:?}");
    }
    let mut m = cards(load(), [&[], &[]]);
    assert_eq!(outcome(&m, "pause-frames"), "clear", "no flow control");
    nic(&mut m, 0).pause = Some(Pause { rx: Some(true), ..Pause::default() });
    assert_eq!(outcome(&m, "pause-frames"), "unknown", "nobody counts");
    assert_eq!(outcome(&model(load()), "pause-frames"), "clear", "no wire");
}

#[test]
fn who_asks_for_pauses_is_where_they_come_from() {
    let place = |sent| {
        let verdict = judge(&pausing(200.0, sent, None));
        let found = verdict.limits.iter().find(|l| l.cause == "pause-frames");
        found.map(|l| (l.side, l.certainty))
    };
    assert_eq!(place(99.0), Some((Place::Path, Certainty::Supported)));
    assert_eq!(place(101.0), Some((Place::Far, Certainty::Supported)));
    let mut m = pausing(200.0, 0.0, None);
    tried(&mut m, "more-streams", 1.0);
    let limits = judge(&m).limits;
    let reported: Vec<_> = limits.iter().map(|l| (l.cause, l.certainty)).collect();
    assert_eq!(reported[0], ("path-rate", Certainty::Proved));
    assert_eq!(reported[1], ("pause-frames", Certainty::Supported));
}

#[test]
fn allowances_count_from_one_packet_in_a_thousand() {
    let at = |per_sec, of| {
        let mut m = cards(load(), [&[], &[]]);
        m.directions[0].base.allowances = vec![Allowance {
            side: Side::Near,
            counter: "bw_out_allowance_exceeded".to_owned(),
            per_sec,
            of,
        }];
        m
    };
    let all = Some(100_000.0);
    assert_eq!(outcome(&at(99.0, all), "cloud-allowance"), "clear");
    assert_eq!(outcome(&at(101.0, all), "cloud-allowance"), "enough");
    let mut m = at(0.0, all);
    assert_eq!(outcome(&m, "cloud-allowance"), "clear");
    nic(&mut m, 1).driver = "ena".to_owned();
    assert_eq!(outcome(&m, "cloud-allowance"), "clear", "they were read");
    m.directions[0].base.allowances.clear();
    assert_eq!(outcome(&m, "cloud-allowance"), "unknown");
    let mut m = at(500.0, all);
    tried(&mut m, "more-streams", 1.0);
    let limits = judge(&m).limits;
    let reported: Vec<_> = limits.iter().map(|l| (l.cause, l.certainty)).collect();
    assert_eq!(
        reported,
        [("path-rate", Certainty::Proved), ("cloud-allowance", Certainty::Supported)]
    );
}
