//! Tests of the rules about collective operations of many processes.

use super::*;
use linerate_facts::infiniband::{IbDevice, IbPort, IbRate, LinkState};

/// A host with `count` InfiniBand cards, each with one HDR port.
fn cards(count: usize) -> Inventory {
    let mut host = Inventory::default();
    host.infiniband.devices = (0..count)
        .map(|at| IbDevice {
            name: format!("mlx5_{at}"),
            ports: vec![IbPort {
                number: 1,
                state: Some(LinkState::Active),
                rate: Some(IbRate {
                    rate: Rate(200_000_000_000),
                    width: 4,
                    speed: "HDR".to_owned(),
                }),
                ..IbPort::default()
            }],
            ..IbDevice::default()
        })
        .collect();
    host
}

/// The table of a collective operation on these hosts, at a rate in Gb/s.
fn run(hosts: &[&str], gigabits: f64, with: impl Fn(&mut Sizes)) -> Measured {
    let row = |size: u64| SizeRow {
        size: Bytes(size),
        rate: Some(Rate((gigabits * 1e9) as u64)),
        ..SizeRow::default()
    };
    let mut table = sizes(Carrier::Messages, Trip::Unknown, &[]);
    table.rows = vec![row(1 << 30), row(1 << 31)];
    table.setup.hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    table.setup.collective = true;
    with(&mut table);
    Measured::Sizes(table)
}

/// The headline: kind of answer, causes, and sentence.
fn answer(near: Inventory, measured: Vec<Measured>) -> (Answered, Vec<&'static str>, String) {
    let material = Material { sources: super::near(measured), near, ..Material::default() };
    let one = explain(&material).headline.unwrap();
    let causes = one.cause.into_iter().chain(one.candidates).collect();
    (one.stands, causes, one.what)
}

#[test]
fn messages_over_sockets_beside_rdma_took_the_wrong_way() {
    let with = |near: Inventory, hosts: &[&str], why: &str, port: &str| {
        let table = run(hosts, 9.0, |table| {
            table.carrier = Some(Carrier::Sockets);
            table.setup.no_rdma = why.to_owned();
            table.setup.ports = vec![port.to_owned()];
        });
        answer(near, vec![table])
    };
    let two = ["a", "b"];
    let none = Inventory::default;
    let sure = (Answered::Limit, vec!["wrong-route"]);
    let open = (Answered::Unknown, vec!["wrong-route", "path-rate"]);
    let of = |found: (Answered, Vec<&'static str>, String)| (found.0, found.1);
    assert_eq!(of(with(cards(1), &two, "", "eno1")), sure);
    assert_eq!(of(with(none(), &two, "Failed to open libibverbs.so[.1]", "eno1")), sure);
    assert_eq!(of(with(none(), &two, "", "ibp3s0")), sure);
    // Hosts without any RDMA device print this text too.
    assert_eq!(of(with(none(), &two, "NET/IB : No device found.", "eno1")), open);
    let words = with(none(), &two, "", "eno1").2;
    assert!(words.contains("interface eno1") && words.contains("1.12 GB/s"), "{words}");
    assert_ne!(of(with(none(), &["a"], "", "eno1")), open);
    assert_eq!(of(with(none(), &[], "", "eno1")), open);
}

#[test]
fn the_host_that_all_slow_runs_have_is_named() {
    let of = |runs: &[(&[&str], f64)]| {
        let all = runs.iter().map(|(hosts, rate)| run(hosts, *rate, |_| {}));
        answer(Inventory::default(), all.collect())
    };
    let found = of(&[
        (&["n1", "n4"], 300.0),
        (&["n2", "n3"], 610.0),
        (&["n4", "n2"], 304.0),
        (&["n1", "n3"], 600.0),
    ]);
    assert_eq!((found.0, found.1), (Answered::Unknown, vec![]));
    assert!(found.2.starts_with("n4: each run with it moves"), "{}", found.2);
    let one = |slow: f64| of(&[(&["a", "b"], slow), (&["a", "c"], 130.0)]).2;
    assert!(one(100.0).starts_with("b: each run"), "{}", one(100.0));
    assert!(!one(101.0).contains("each run"), "{}", one(101.0));
    let two = of(&[(&["a", "b"], 90.0), (&["c", "d"], 130.0)]).2;
    assert!(two.contains("with a and b"), "{two}");
    let none = of(&[(&["a", "b"], 90.0), (&["c", "d"], 91.0), (&["a", "c"], 130.0)]).2;
    assert!(none.contains("no host is in all slow runs"), "{none}");
    // Runs on equal hosts, and runs that differ in more than their hosts, show nothing about one host.
    let same = of(&[(&["a", "b"], 90.0), (&["b", "a"], 130.0), (&["a", "c"], 130.0)]).2;
    assert!(!same.contains("each run") && !same.contains("differ"), "{same}");
    let other = vec![
        run(&["a", "b"], 90.0, |table| {
            table.setup.command = "x -g 4".to_owned();
        }),
        run(&["a", "c"], 130.0, |table| {
            table.setup.command = "x -g 8".to_owned();
        }),
    ];
    assert!(!answer(Inventory::default(), other).2.contains("each run"));
}

#[test]
fn a_bus_bandwidth_is_held_against_all_ports_or_none() {
    let named = |table: &mut Sizes, count: usize| {
        table.setup.ports = (0..count).map(|at| format!("mlx5_{at}")).collect();
    };
    let of = |cards_there: usize, ports: usize, gigabits: f64, hosts: &[&str]| {
        let table = run(hosts, gigabits, |table| named(table, ports));
        let near = if cards_there > 0 { cards(cards_there) } else { Inventory::default() };
        answer(near, vec![table])
    };
    let two = ["a", "b"];
    for (gigabits, stands) in [
        (719.0, Answered::Unknown),
        (721.0, Answered::Healthy),
        (815.0, Answered::Healthy),
        (817.0, Answered::Unknown),
    ] {
        let found = of(4, 4, gigabits, &two);
        assert_eq!(found.0, stands, "{gigabits}: {}", found.2);
    }
    assert!(of(4, 0, 760.0, &two).2.contains("95 % of the 4 ports"));
    // Neither one port of several, nor the hosts alone, show which rate is as it should be.
    for (there, ports, hosts) in [(0, 4, &two[..]), (2, 4, &two), (4, 4, &[]), (1, 0, &two)] {
        let found = of(there, ports, 760.0, hosts);
        assert_eq!((found.0, found.1), (Answered::Unknown, vec![]), "{}", found.2);
    }
    assert!(of(0, 4, 760.0, &two).2.contains("each of its 4 ports carries 190 Gb/s"));
    // The rate may be that of one full port of several: then the network is not full.
    for gigabits in [197.1, 395.0] {
        assert_eq!(of(0, 0, gigabits, &two).0, Answered::Unknown, "{gigabits}");
    }
    // The largest messages do not keep the rate.
    let falls = |last: f64| {
        let table = run(&two, 760.0, |table| {
            named(table, 4);
            table.rows[1].rate = Some(Rate((last * 1e9) as u64));
        });
        answer(cards(4), vec![table]).0
    };
    assert_eq!((falls(721.0), falls(719.0)), (Answered::Healthy, Answered::Unknown));
    let alone = run(&two, 197.1, |table| table.setup.processes = Some(2));
    assert_eq!(answer(Inventory::default(), vec![alone]).0, Answered::Healthy);
}
