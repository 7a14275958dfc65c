//! Tests of the commands that causes advise: they name the port that is known, and fit the path.

use std::net::IpAddr;

use linerate_facts::BufferLimits;
use linerate_facts::advice::{Effect, Step};
use linerate_facts::nic::{Nic, Pause};
use linerate_facts::route::Route;
use linerate_judge::causes::CAUSES;

use super::*;

/// Placeholders for a port of which nothing is known.
const PLACEHOLDERS: [&str; 5] = ["PORT", "DEVICE", "IFACE", "NIC", "DEV"];

/// Gives a model a path between two network cards.
fn known(mut m: Model) -> Model {
    for (host, (own, peer)) in m.hosts.iter_mut().zip([(1, 2), (2, 1)]) {
        let name = format!("eth{own}");
        let card = Nic {
            name: name.clone(),
            index: 1,
            mtu: Some(1500),
            mtu_max: Some(9000),
            up: true,
            ..Nic::default()
        };
        let address = |last: u8| Some(IpAddr::from([10, 0, 0, last]));
        host.facts.port =
            Some(Port { name, mtu: Some(1500), is_ethernet: true, ..Port::default() });
        host.facts.route = Some(Route {
            own: address(own),
            peer: address(peer),
            ports: vec![card],
            ..Route::default()
        });
    }
    m
}

/// All commands that causes advise for a direction: id of the cause, and text.
fn commands(m: &Model, direction: Direction) -> Vec<(&'static str, String)> {
    let of = |cause: &&'static linerate_judge::causes::Cause| {
        let advice = cause.advice(m, direction).into_iter();
        let mut all: Vec<String> = advice.flat_map(|a| [a.text(), a.undo_text()]).collect();
        if let Err(NoFinding::Unknown(gaps)) = cause.check(m, direction) {
            all.extend(gaps.into_iter().map(|gap| gap.hint));
        }
        all.into_iter().map(|text| (cause.id, text)).collect::<Vec<_>>()
    };
    CAUSES.iter().flat_map(of).collect()
}

fn has_placeholder(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| PLACEHOLDERS.contains(&word))
}

/// Loads for which some cause has advice, or a gap with a hint.
fn loads() -> Vec<Load> {
    let busy = |mut base: Load| {
        base.senders = vec![thread(0.97)];
        base.receivers = vec![thread(0.97)];
        base
    };
    let mut silent = load();
    silent.ticks = vec![0.0; 30];
    silent.tcp.retransmitted = Some(1.0);
    let mut lossy = load();
    lossy.tcp.retransmitted = Some(0.01);
    lossy.tcp.segments = Some(1000.0);
    lossy.tcp.repeated = Some(10.0);
    lossy.keeps_losing = true;
    let mut slow = load();
    slow.goodput.mean = 60e6;
    let unread = Load {
        tcp: TcpShares::default(),
        senders: vec![Thread::default()],
        receivers: vec![Thread::default()],
        ..load()
    };
    let all = vec![load(), held_by_window(), silent, lossy, slow, unread];
    all.iter().cloned().map(busy).chain(all.clone()).collect()
}

#[test]
fn no_command_leaves_out_a_port_that_is_known() {
    let mut seen = Vec::new();
    for (i, base) in loads().into_iter().enumerate() {
        let m = known(model(base));
        for (cause, text) in commands(&m, Direction::Forward) {
            assert!(!has_placeholder(&text), "load {i}, {cause}: {text}");
            if text.contains("eth1") || text.contains("eth2") {
                seen.push(cause);
            }
        }
    }
    for cause in ["wire-full", "path-loss", "duplex", "small-packets", "latency-interrupts"] {
        assert!(seen.contains(&cause), "{cause} names no port: {seen:?}");
    }
}

/// Whether a command changes nothing: it needs no root, or only shows something.
fn only_looks(command: &str) -> bool {
    !command.contains("sudo ") || command.starts_with("sudo turbostat ")
}

#[test]
fn what_root_changes_can_be_undone_whether_the_old_value_is_known_or_not() {
    let mut changing = Vec::new();
    for base in loads() {
        let known = known(model(base));
        let mut unknown = known.clone();
        for host in &mut unknown.hosts {
            host.facts.buffers = BufferLimits::default();
        }
        for m in [known, unknown] {
            for cause in CAUSES {
                for advice in cause.advice(&m, Direction::Forward) {
                    for step in &advice.steps {
                        assert_eq!(
                            only_looks(&step.command),
                            step.effect == Effect::Look,
                            "{step:?}"
                        );
                    }
                    if advice.is_lost_at_boot() {
                        assert!(!advice.undo.is_empty(), "{}: {advice:?}", cause.id);
                        changing.push(cause.id);
                    }
                }
            }
        }
    }
    for cause in ["receive-window", "socket-drops", "mtu-black-hole"] {
        assert!(changing.contains(&cause), "{changing:?}");
    }
}

#[test]
fn a_port_that_is_not_known_is_left_to_the_reader() {
    let mut m = known(model(load()));
    for host in &mut m.hosts {
        (host.facts.port, host.facts.route) = (None, None);
    }
    let left = commands(&m, Direction::Forward);
    assert!(left.iter().any(|(_, text)| has_placeholder(text)), "{left:?}");
}

#[test]
fn the_ping_for_a_black_hole_fills_the_smaller_port() {
    let ping = |mtus: [Option<u32>; 2], path: Option<u64>, peer: &str| {
        let mut m = known(model(load()));
        for (host, mtu) in m.hosts.iter_mut().zip(mtus) {
            host.facts.port.as_mut().expect("a port").mtu = mtu;
            host.facts.route.as_mut().expect("a route").peer = peer.parse().ok();
        }
        m.directions[0].base.packets =
            path.map(|mtu| Packets { path_mtu: Some(Bytes(mtu)), ..FULL });
        let advice = cause("mtu-black-hole").expect("a cause").advice(&m, Direction::Forward);
        let action = advice[0].text();
        let size = action.split("-s ").nth(1).expect("a size");
        let mut words = size.split([' ', '`']);
        let size: u64 = words.next().expect("a size").parse().expect("a number");
        (size, words.next().expect("a peer").to_owned())
    };
    let v4 = |size| (size, "10.0.0.2".to_owned());
    let both = |mtu| [Some(mtu); 2];
    assert_eq!(ping(both(1500), Some(1500), "10.0.0.2"), v4(1472));
    assert_eq!(ping(both(9000), Some(9000), "10.0.0.2"), v4(8972));
    assert_eq!(ping([Some(9000), Some(1500)], Some(9000), "10.0.0.2"), v4(1472));
    assert_eq!(
        ping(both(1500), Some(1400), "10.0.0.2"),
        v4(1372),
        "a route that is known to take less"
    );
    assert_eq!(ping([None, None], None, "10.0.0.2"), v4(1472));
    assert_eq!(ping(both(1500), None, "fd00::2"), (1452, "fd00::2".to_owned()));
    let (size, peer) = ping(both(1500), None, "fe80::2");
    let port = peer.strip_prefix("fe80::2%").expect("the port of a link-local address");
    assert!(size == 1452 && port != "PORT" && !port.is_empty(), "{peer}");
    assert_eq!(ping(both(1500), None, "::ffff:10.0.0.2"), v4(1472));
    let mut unknown = known(model(load()));
    for host in &mut unknown.hosts {
        host.facts.route = None;
    }
    let advice = cause("mtu-black-hole").expect("a cause").advice(&unknown, Direction::Forward);
    assert_eq!(advice[0].steps, [], "no address is known");
}

#[test]
fn a_port_that_ignores_its_settings_while_it_negotiates_pauses_stops_to_negotiate_them() {
    let commands = |driver: &str, autoneg: Option<bool>| {
        let mut m = known(model(load()));
        let card = &mut m.hosts[0].facts.route.as_mut().expect("a route").ports[0];
        driver.clone_into(&mut card.driver);
        card.pause = Some(Pause { autoneg, rx: Some(true), ..Pause::default() });
        let advice = cause("pause-frames").expect("a cause");
        let ignore = advice.advice(&m, Direction::Forward).remove(1);
        [ignore.text(), ignore.undo_text()]
    };
    let both = |words: &str| {
        ["off", "on"].map(|to| format!("on near: sudo ethtool -A eth1 {}", words.replace('X', to)))
    };
    for driver in ["e1000e", "igb", "ixgbe"] {
        assert_eq!(commands(driver, Some(true)), both("autoneg X rx X"), "{driver}");
        assert_eq!(commands(driver, Some(false)), both("rx X"), "{driver}");
        assert_eq!(commands(driver, None), both("rx X"), "{driver}");
    }
    for driver in ["i40e", "ice", "mlx5_core", ""] {
        assert_eq!(commands(driver, Some(true)), both("rx X"), "{driver}");
    }
}

#[test]
fn no_buffer_is_larger_than_a_kernel_takes() {
    let set = |rmem_max: u64| {
        let mut m = known(model(load()));
        m.hosts[1].facts.buffers.rmem_max = Some(rmem_max);
        m.directions[0].base.recv_memory = None;
        let advice = cause("socket-drops").expect("a cause");
        advice.advice(&m, Direction::Forward)[0].steps[0].command.clone()
    };
    assert_eq!(set(1 << 29), "sudo sysctl -w net.core.rmem_max=1073741824");
    assert_eq!(set(1 << 30), "sudo sysctl -w net.core.rmem_max=2147483647");
    let window = |in_use: u64| {
        let mut m = known(model(held_by_window()));
        m.directions[0].base.recv_memory = Some(Bytes(in_use));
        let advice = cause("receive-window").expect("a cause");
        let advice = advice.advice(&m, Direction::Forward);
        advice[0].steps[0].command.clone()
    };
    assert!(window(1 << 29).ends_with(" 1073741824\""), "{}", window(1 << 29));
    assert!(window(1 << 30).ends_with(" 2147483647\""), "{}", window(1 << 30));
}

#[test]
fn bbr_is_made_the_default_only_where_it_is_not_and_the_old_one_comes_back() {
    let commands = |default: &str, requested: Option<&str>| {
        let mut base = load();
        base.made.sender.congestion = "cubic".to_owned();
        base.knobs.congestion = requested.map(str::to_owned);
        let mut m = known(model(base));
        m.hosts[0].facts.congestion_available = vec!["bbr".to_owned(), "cubic".to_owned()];
        default.clone_into(&mut m.hosts[0].facts.congestion_default);
        let advice = cause("path-loss").expect("a cause");
        let bbr = advice.advice(&m, Direction::Forward).remove(1);
        let of = |steps: &[Step]| steps.iter().map(|step| step.command.clone()).collect();
        [of(&bbr.steps), of(&bbr.undo)] as [Vec<String>; 2]
    };
    let set = |name: &str| format!("sudo sysctl -w net.ipv4.tcp_congestion_control={name}");
    assert_eq!(commands("reno", None), [[set("bbr")], [set("reno")]]);
    assert_eq!(commands("", None), [[set("bbr")], [set("cubic")]]);
    let [steps, undo] = commands("", Some("cubic"));
    assert_eq!((steps.len(), &steps[1]), (2, &set("bbr")));
    let saved = "sudo sysctl -p tcp_congestion_control-before.txt";
    assert_eq!(undo, [saved], "what others have is not known");
    let [steps, undo] = commands("bbr", Some("cubic"));
    assert!(steps[0].ends_with(" --congestion bbr") && undo.is_empty(), "{steps:?}");
}
