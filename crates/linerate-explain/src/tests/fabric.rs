//! Tests of the rules about messages by verbs and message libraries, and about InfiniBand ports.

use super::answers::word;
use super::*;
use linerate_facts::finding::Stands;
use linerate_facts::infiniband::{
    IbDevice, IbPort, IbRate, Ipoib, Layer, LinkState, PhysicalState,
};
use linerate_facts::nic::{Counter, Nic};
use linerate_facts::pci::{Device, Limited, Link};
use linerate_units::Transfers;

/// A run of `ib_write_bw`: number of queue pairs, message size, number of messages, and rate in Gb/s.
fn verbs(queues: u32, size: u64, messages: u64, gigabits: f64) -> Measured {
    let rate = Rate((gigabits * 1e9) as u64);
    let mut one = Transfer::new(Carrier::Rdma, Direction::Forward, rate, Counted::Sender);
    one.size = Some(Bytes(size));
    one.setup.queues = Some(queues);
    one.setup.messages = Some(messages);
    Measured::Transfer(Box::new(one))
}

/// A table of rates in Gb/s by message size.
fn rates(carrier: Carrier, rows: &[(u64, f64)]) -> Sizes {
    let row = |(size, gigabits): &(u64, f64)| SizeRow {
        size: Bytes(*size),
        rate: Some(Rate((gigabits * 1e9) as u64)),
        ..SizeRow::default()
    };
    Sizes {
        carrier: Some(carrier),
        operation: "MPI Bandwidth".to_owned(),
        trip: Trip::Unknown,
        both: false,
        rows: rows.iter().map(row).collect(),
        setup: Setup::default(),
    }
}

fn both_ways(size: u64, gigabits: f64) -> Measured {
    let mut sizes = rates(Carrier::Rdma, &[(size, gigabits)]);
    (sizes.both, sizes.setup.queues) = (true, Some(2));
    Measured::Sizes(sizes)
}

/// An output that holds these results, all of one test.
fn outputs(measured: Vec<Measured>) -> Vec<Source> {
    let mut one = source(Side::Near, measured);
    one.tool = Tool::named("perftest");
    for (line, result) in one.results.iter_mut().enumerate() {
        result.title = "RDMA_Write BW Test".to_owned();
        result.line = line as u64 + 1;
    }
    vec![one]
}

fn explained_as<T>(
    near: Inventory,
    measured: Vec<Measured>,
    of: impl FnOnce(&Explained<'_>) -> T,
) -> T {
    let material = Material { sources: outputs(measured), near, ..Material::default() };
    of(&explain(&material))
}

/// The headline: kind of answer, rule, cause, and candidates.
fn headline(
    near: Inventory,
    measured: Vec<Measured>,
) -> (&'static str, &'static str, &'static str, Vec<&'static str>) {
    explained_as(near, measured, |explained| {
        let one = explained.headline.clone().unwrap();
        (word(one.stands), one.rule.unwrap_or(""), one.cause.unwrap_or(""), one.candidates)
    })
}

fn alone(measured: Vec<Measured>) -> (&'static str, &'static str, &'static str, Vec<&'static str>) {
    headline(Inventory::default(), measured)
}

#[test]
fn a_run_of_a_millisecond_beside_a_long_one_is_too_short() {
    let found = alone(vec![verbs(1, 4096, 500, 21.4), verbs(1, 4096, 500_000, 96.9)]);
    assert_eq!(found, ("limit", "test-too-short", "test-too-short", vec![]));
    let says = |measured| {
        explained_as(Inventory::default(), measured, |explained| {
            let all = explained.remarks.iter().map(|remark| remark.finding.what.clone());
            all.collect::<Vec<_>>().join("\n")
        })
    };
    let words = says(vec![verbs(1, 4096, 500, 21.4), verbs(1, 4096, 500_000, 96.9)]);
    assert!(words.contains("500 messages of 4 KiB were over in 0.77 ms"), "{words}");
    assert!(words.contains("500000 messages counts: 96.9 Gb/s"), "{words}");
    assert!(words.contains("100 Gb/s (InfiniBand EDR 4x)"), "{words}");
    // A short run with the rate of the longer one; then a longer run that is too short as well.
    let alike = vec![verbs(1, 4096, 500, 95.0), verbs(1, 4096, 500_000, 96.9)];
    assert_eq!(alone(alike).0, "healthy");
    let short = vec![verbs(1, 4096, 500, 21.4), verbs(1, 4096, 5_000, 44.0)];
    assert!(says(short).contains("may be that of the start"));
    // In 10 ms, 26.8 MB arrive at 21.4 Gb/s: 6531 messages of 4096 bytes.
    assert!(says(vec![verbs(1, 4096, 6_520, 21.4)]).contains("may be that of the start"));
    assert!(!says(vec![verbs(1, 4096, 6_560, 21.4)]).contains("may be that of the start"));
    // A run of 99 messages is too short, however large they are.
    assert!(says(vec![verbs(1, 1 << 30, 99, 21.4)]).contains("may be that of the start"));
    assert!(!says(vec![verbs(1, 1 << 30, 100, 21.4)]).contains("may be that of the start"));
}

#[test]
fn one_queue_pair_is_held_where_four_of_as_many_messages_are_not() {
    let of = |four: f64| alone(vec![verbs(1, 4096, 5_000, 48.2), verbs(4, 4096, 5_000, four)]);
    assert_eq!(of(96.8), ("unknown", "one-queue-pair", "", vec!["rdma-one-qp", "rdma-depth"]));
    assert_eq!(of(62.0).1, "", "less than 1.3 times");
    assert_eq!(of(63.0).1, "one-queue-pair");
    let remarks = |measured| {
        explained_as(Inventory::default(), measured, |e| {
            e.remarks.iter().map(|r| r.finding.id).collect::<Vec<_>>()
        })
    };
    let ids = remarks(vec![verbs(1, 4096, 5_000, 48.2), verbs(4, 4096, 5_000, 96.8)]);
    assert!(!ids.contains(&"test-too-short"), "{ids:?}");
    // Runs with different message sizes are not compared.
    let other = remarks(vec![verbs(1, 4096, 500_000, 48.2), verbs(4, 65_536, 500_000, 96.8)]);
    assert!(!other.contains(&"one-queue-pair"), "{other:?}");
}

#[test]
fn both_ways_together_carry_twice_one_way_or_share_something() {
    let of = |sum: f64| alone(vec![verbs(2, 65_536, 300_000, 197.1), both_ways(65_536, sum)]);
    let shared = vec!["memory-bandwidth", "numa-remote", "pcie-slot"];
    assert_eq!(of(203.4), ("unknown", "ways-share", "", shared.clone()));
    assert_eq!(of(256.0), ("unknown", "ways-share", "", shared));
    let ids = |sum: f64| {
        let measured = vec![verbs(2, 65_536, 300_000, 197.1), both_ways(65_536, sum)];
        explained_as(Inventory::default(), measured, |e| {
            e.remarks.iter().map(|r| (r.finding.id, r.finding.stands)).collect::<Vec<_>>()
        })
    };
    // A sum of 1.3 times one direction and more is in doubt; from 1.8 times on both directions share nothing.
    assert_eq!(ids(257.0), [("ways-share", Stands::Doubt)]);
    assert_eq!(ids(354.0), [("ways-share", Stands::Doubt)]);
    assert_eq!(ids(393.6), [("at-a-ceiling", Stands::Good)]);
    let words = explained_as(
        Inventory::default(),
        vec![verbs(2, 65_536, 300_000, 197.1), both_ways(65_536, 203.4)],
        |e| (e.headline.clone().unwrap().what, e.tables[0].name.clone()),
    );
    assert!(words.0.contains("203.4 Gb/s is the sum of both ways, 101.7 Gb/s each"), "{words:?}");
    assert!(words.1.ends_with("(rates are the sum of both ways)"), "{words:?}");
    // Runs that differ in queue pairs or message size as well are not compared.
    let other = vec![verbs(1, 65_536, 300_000, 197.1), both_ways(65_536, 203.4)];
    assert_ne!(alone(other).1, "ways-share");
    let other = vec![verbs(2, 1 << 20, 300_000, 197.1), both_ways(65_536, 203.4)];
    assert_ne!(alone(other).1, "ways-share");
    // A sum without a run in one direction may be that of one full port.
    assert_eq!(alone(vec![both_ways(65_536, 198.0)]).0, "unknown");
}

#[test]
fn links_are_full_within_a_percent_and_have_the_usual_lanes() {
    let says = |gigabits: f64| {
        explained_as(Inventory::default(), vec![verbs(1, 65_536, 5_000_000, gigabits)], |e| {
            e.remarks
                .iter()
                .find(|r| r.finding.id == "at-a-ceiling" && r.finding.stands == Stands::Good)
                .map(|r| r.finding.what.clone())
        })
    };
    for (gigabits, link) in [
        (51.0, "54.5 Gb/s (InfiniBand FDR 4x)"),
        (99.0, "100 Gb/s (InfiniBand EDR 4x)"),
        (197.1, "200 Gb/s (InfiniBand HDR 4x)"),
        (395.0, "400 Gb/s (InfiniBand NDR 4x)"),
        (92.6, "Ethernet 100 Gb/s"),
    ] {
        let words = says(gigabits).unwrap_or_default();
        assert!(words.contains(link), "{gigabits}: {words}");
    }
    for gigabits in [101.7, 90.0, 180.0, 60.0, 49.9, 7.7] {
        assert_eq!(says(gigabits), None, "{gigabits}");
    }
}

#[test]
fn a_link_is_full_only_where_no_other_run_shows_more() {
    let ids = |measured| {
        explained_as(Inventory::default(), measured, |e| {
            e.remarks.iter().map(|r| r.finding.id).collect::<Vec<_>>()
        })
    };
    let one = || verbs(1, 65_536, 5_000_000, 99.0);
    assert_eq!(ids(vec![one()]), ["at-a-ceiling"]);
    assert_eq!(ids(vec![one(), verbs(1, 65_536, 5_000_000, 120.0)]), [""; 0]);
    assert!(!ids(vec![one(), tcp(8, 130.0)]).contains(&"at-a-ceiling"));
    // If the output tells the packet size or layer, links with others are ruled out.
    let with = |mtu: u32, layer: Layer| {
        let Measured::Transfer(mut one) = verbs(1, 65_536, 5_000_000, 98.45) else {
            unreachable!()
        };
        (one.setup.mtu, one.setup.layer) = (Some(mtu), Some(layer));
        ids(vec![Measured::Transfer(one)])
    };
    assert_eq!(with(4096, Layer::InfiniBand), ["at-a-ceiling"]);
    assert_eq!(with(1024, Layer::InfiniBand), [""; 0]);
    assert_eq!(with(4096, Layer::Ethernet), ["at-a-ceiling"]);
}

#[test]
fn messages_within_a_host_at_the_rate_of_a_card_are_not_as_they_should_be() {
    let rows = [
        (1, 0.1),
        (64, 1.0),
        (1024, 8.0),
        (65_536, 34.0),
        (262_144, 51.04),
        (1 << 20, 51.04),
        (1 << 22, 51.04),
    ];
    let of = |hosts: &[&str], rows: &[(u64, f64)]| {
        let mut table = rates(Carrier::Messages, rows);
        table.setup.hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        vec![Measured::Sizes(table)]
    };
    let found = alone(of(&["node07"], &rows));
    assert_eq!(found, ("limit", "within-one-host", "wrong-route", vec![]));
    let words = explained_as(Inventory::default(), of(&["node07"], &rows), |e| {
        e.headline.clone().unwrap().what
    });
    assert!(words.contains("one host, node07") && words.contains("InfiniBand FDR 4x"), "{words}");
    // Verbs cross the card even between two programs on one host.
    let Measured::Transfer(mut one) = verbs(1, 65_536, 5_000_000, 98.9) else { unreachable!() };
    one.setup.hosts = vec!["localhost".to_owned()];
    let found = alone(vec![Measured::Transfer(one)]);
    assert_eq!((found.0, found.2), ("limit", "not-a-measurement"));
    // Between two hosts, the port is full.
    assert_eq!(alone(of(&["node07", "node08"], &rows)).0, "healthy");
    assert_eq!(alone(of(&[], &rows)).0, "healthy");
    // Shared memory is faster than any card.
    let memory: Vec<(u64, f64)> = rows.iter().map(|(size, rate)| (*size, rate * 1.8)).collect();
    assert_eq!(alone(of(&["node07"], &memory)).0, "unknown");
    // A rate that only one size reaches does not show a full link.
    let peak = [
        (1, 0.1),
        (64, 1.0),
        (1024, 8.0),
        (65_536, 34.0),
        (262_144, 51.04),
        (1 << 20, 47.0),
        (1 << 22, 46.0),
    ];
    assert_ne!(alone(of(&["node07", "node08"], &peak)).0, "healthy");
}

fn port(
    state: LinkState,
    physical: PhysicalState,
    gigabits: u64,
    width: u32,
    speed: &str,
) -> IbPort {
    IbPort {
        number: 1,
        state: Some(state),
        physical: Some(physical),
        layer: Some(Layer::InfiniBand),
        rate: Some(IbRate { rate: Rate(gigabits * 1_000_000_000), width, speed: speed.to_owned() }),
        ..IbPort::default()
    }
}

fn host(ports: Vec<IbPort>) -> Inventory {
    let mut host = Inventory::default();
    host.infiniband.devices.push(IbDevice {
        name: "mlx4_0".to_owned(),
        pci: "0000:01:00.0".to_owned(),
        ports,
        ..IbDevice::default()
    });
    host
}

fn fdr() -> IbPort {
    port(LinkState::Active, PhysicalState::LinkUp, 56, 4, "FDR")
}

#[test]
fn a_rate_is_a_share_of_the_port_that_could_have_carried_it() {
    let mut near = host(vec![fdr()]);
    near.infiniband.interfaces.push(Ipoib {
        name: "ib0".to_owned(),
        pci: "0000:01:00.0".to_owned(),
        port: Some(1),
        ..Ipoib::default()
    });
    let words = |near: Inventory, measured: Measured| {
        explained_as(near, vec![measured], |e| {
            let found = e.remarks.iter().find(|r| r.finding.id == "link-unused");
            found.map(|r| (r.finding.what.clone(), e.headline.clone().unwrap().rule))
        })
    };
    let (what, rule) = words(near, tcp(1, 3.73)).unwrap();
    assert!(what.contains("of 54.5 Gb/s, 7 %: the link of mlx4_0 port 1, ib0 (4x FDR)"), "{what}");
    assert_eq!(rule, Some("link-unused"));
    let ethernet = |speeds: &[u64]| {
        let mut near = Inventory::default();
        for (at, speed) in speeds.iter().enumerate() {
            let mut nic = Nic { name: format!("eth{at}"), up: true, ..Nic::default() };
            nic.link.speed = Some(Rate(speed * 1_000_000_000));
            near.network.nics.push(nic);
        }
        near
    };
    let (what, _) = words(ethernet(&[25]), tcp(1, 9.0)).unwrap();
    assert!(what.contains("of 25 Gb/s, 36 %"), "{what}");
    // The slower port cannot have carried this rate; and a port that is nearly full is not unused.
    let (what, _) = words(ethernet(&[1, 25]), tcp(1, 9.0)).unwrap();
    assert!(what.contains("of 25 Gb/s, 36 %"), "{what}");
    assert_eq!(words(ethernet(&[1, 25]), tcp(1, 0.941)), None);
    assert_eq!(words(ethernet(&[10]), tcp(1, 9.1)), None);
    assert!(words(ethernet(&[10]), tcp(1, 8.9)).is_some());
    assert_eq!(words(ethernet(&[1]), tcp(1, 5.6)), None);
    // A RoCE port has the rate of its Ethernet link.
    let mut roce = port(LinkState::Active, PhysicalState::LinkUp, 100, 0, "");
    roce.layer = Some(Layer::Ethernet);
    let (what, _) = words(host(vec![roce]), verbs(1, 65_536, 5_000_000, 40.0)).unwrap();
    assert!(what.contains("of 100 Gb/s, 40 %"), "{what}");
}

#[test]
fn a_slot_that_holds_the_rate_of_a_faster_port_is_the_limit() {
    let link = |speed: u64, width: u8| Link {
        speed: Some(Transfers(speed * 1_000_000_000)),
        width: Some(width),
    };
    let of = |gigabits: f64, port_rate: u64, speed: &str| {
        let mut near =
            host(vec![port(LinkState::Active, PhysicalState::LinkUp, port_rate, 4, speed)]);
        near.pci.push(Device {
            class: 0x02_0700,
            max: Some(link(16, 16)),
            limited: Some(Limited { now: link(8, 8), at: None }),
            ..Device::default()
        });
        headline(near, vec![verbs(1, 65_536, 5_000_000, gigabits)])
    };
    assert_eq!(of(52.4, 100, "EDR"), ("limit", "pcie-slot", "pcie-slot", vec![]));
    assert_ne!(of(30.0, 100, "EDR").2, "pcie-slot", "far below what the slot carries");
    assert_ne!(of(51.0, 56, "FDR").2, "pcie-slot", "the port is full before its slot");
}

#[test]
fn a_port_that_waits_is_the_answer_where_nothing_was_measured() {
    let waits = || port(LinkState::Initializing, PhysicalState::LinkUp, 56, 4, "FDR");
    let of = |near: Inventory, measured: Vec<Measured>| {
        explained_as(near, measured, |e| e.headline.as_ref().map(|one| (one.cause, one.side)))
    };
    let down = Some((Some("unserved-port"), Some(Side::Near)));
    assert_eq!(of(host(vec![waits()]), vec![]), down);
    let unplugged = || port(LinkState::Down, PhysicalState::Polling, 40, 4, "QDR");
    let no_link = Some((Some("ib-no-link"), Some(Side::Near)));
    assert_eq!(of(host(vec![unplugged()]), vec![]), no_link);
    // A second port without a cable is as it should be; one that waits for a subnet manager is not.
    let second = |mut port: IbPort| {
        port.number = 2;
        port
    };
    assert_eq!(of(host(vec![fdr(), second(unplugged())]), vec![]), None);
    assert_eq!(of(host(vec![fdr(), second(waits())]), vec![]), down);
    // An Ethernet port without a cable needs no subnet manager.
    let mut ethernet = unplugged();
    ethernet.layer = Some(Layer::Ethernet);
    assert_eq!(of(host(vec![ethernet]), vec![]), None);
    // The results used another port, so this one does not explain their rate.
    assert_ne!(of(host(vec![waits()]), vec![tcp(1, 0.94)]), down);
    assert_ne!(of(host(vec![fdr(), second(waits())]), vec![tcp(1, 3.0)]), down);
}

#[test]
fn errors_of_a_port_are_shares_of_its_packets_and_must_grow() {
    let counters = |errors: u64, packets: u64| {
        let of = |(name, value): (&str, u64)| Counter { name: name.to_owned(), value };
        [("port_rcv_errors", errors), ("port_rcv_packets", packets)].map(of).to_vec()
    };
    let of = |before: Vec<Counter>, now: Vec<Counter>| {
        let near = host(vec![IbPort { counters: now, before, ..fdr() }]);
        explained_as(near, vec![], |e| {
            let found = e.remarks.iter().find(|r| r.finding.id == "link-errors");
            found.map(|r| {
                (
                    r.finding.stands,
                    r.answer.as_ref().map(|a| a.causes.clone()),
                    r.finding.what.clone(),
                )
            })
        })
    };
    let loss = Some(vec!["path-loss"]);
    let (stands, answer, what) = of(counters(10, 1_000), counters(110, 1_001_000)).unwrap();
    assert_eq!((stands, &answer), (Stands::Found, &loss), "{what}");
    assert!(
        what.contains("grew by 100 between two readings, beside 1000000 packets (0.01 %)"),
        "{what}"
    );
    let (_, answer, _) = of(counters(10, 1_000), counters(109, 1_001_000)).unwrap();
    assert_eq!(answer, None, "less than 1e-4");
    let (stands, answer, what) = of(Vec::new(), counters(110, 1_000_000)).unwrap();
    assert_eq!((stands, answer), (Stands::Doubt, None));
    assert!(what.contains("one reading does not show"), "{what}");
    let (_, _, what) = of(counters(110, 1_000), counters(110, 1_000_000)).unwrap();
    assert!(what.contains("did not grow"), "{what}");
    assert_eq!(of(Vec::new(), counters(0, 1_000_000)), None);
    // Without a counter of packets there is no share of errors.
    let alone = |errors: u64| counters(errors, 0)[..1].to_vec();
    let (stands, answer, what) = of(alone(10), alone(30)).unwrap();
    assert_eq!((stands, answer), (Stands::Found, None), "{what}");
    assert!(what.contains("grew by 20"), "{what}");
}

#[test]
fn packets_that_are_smaller_than_the_port_supports_limit_a_full_link() {
    let of = |mtu: u32, layer: Layer, measured: Vec<Measured>| {
        let mut port = port(LinkState::Active, PhysicalState::LinkUp, 100, 4, "EDR");
        (port.mtu, port.mtu_max, port.layer) = (Some(mtu), Some(4096), Some(layer));
        explained_as(host(vec![port]), measured, |e| {
            let found = e.remarks.iter().find(|r| r.finding.id == "rdma-mtu");
            found.map(|r| (r.finding.stands, e.headline.clone().unwrap().cause))
        })
    };
    let run = |gigabits: f64| vec![verbs(1, 65_536, 5_000_000, gigabits)];
    assert_eq!(of(1024, Layer::Ethernet, run(92.4)), Some((Stands::Found, Some("rdma-mtu"))));
    assert_eq!(of(1024, Layer::Ethernet, vec![]), Some((Stands::Found, Some("rdma-mtu"))));
    // The link is unknown, but the rate equals the ceiling of a link with such packets.
    let unknown = |gigabits: f64| {
        let mut port = port(LinkState::Active, PhysicalState::LinkUp, 100, 4, "EDR");
        (port.mtu, port.mtu_max, port.layer, port.rate) =
            (Some(1024), Some(4096), Some(Layer::Ethernet), None);
        headline(host(vec![port]), run(gigabits))
    };
    assert_eq!(unknown(92.4), ("limit", "rdma-mtu", "rdma-mtu", vec![]));
    assert_eq!(unknown(60.0).2, "");
    // If the rate is far from full, the packets do not limit it.
    assert_eq!(of(1024, Layer::Ethernet, run(40.0)), Some((Stands::Doubt, None)));
    assert_eq!(of(4096, Layer::Ethernet, run(92.4)), None);
    assert_eq!(of(2048, Layer::InfiniBand, run(98.0)), None, "less than 2 % to gain");
}

#[test]
fn a_program_on_another_node_than_the_card_is_named_where_no_link_is_full() {
    let of = |cpu: u32, gigabits: f64| {
        let Measured::Transfer(mut one) = verbs(1, 65_536, 5_000_000, gigabits) else {
            unreachable!()
        };
        one.setup.cpu = Some(cpu);
        let mut near = Inventory::default();
        near.infiniband.devices.push(IbDevice { node: Some(1), ..IbDevice::default() });
        near.processors.nodes = [(0, vec![0, 1]), (1, vec![2, 3])]
            .into_iter()
            .map(|(id, cpus)| linerate_facts::cpu::Node {
                id,
                cpus: Some(cpus),
                ..linerate_facts::cpu::Node::default()
            })
            .collect();
        headline(near, vec![Measured::Transfer(one)])
    };
    assert_eq!(of(0, 70.0), ("limit", "wrong-node", "numa-remote", vec![]));
    assert_eq!(of(2, 70.0).2, "");
    assert_eq!(of(0, 99.0).0, "healthy");
    assert_eq!(of(9, 70.0).2, "", "a CPU of no known node");
}

#[test]
fn two_runs_from_two_cpus_show_that_the_place_matters() {
    let from = |cpu: u32, node: Option<u32>, gigabits: f64| {
        let Measured::Transfer(mut one) = verbs(1, 65_536, 5_000_000, gigabits) else {
            unreachable!()
        };
        (one.setup.cpu, one.setup.node) = (Some(cpu), node);
        Measured::Transfer(one)
    };
    let of = |node: Option<u32>, other: Option<u32>, slow: f64| {
        alone(vec![from(2, node, slow), from(40, other, 96.9)])
    };
    assert_eq!(of(Some(0), Some(1), 61.0), ("limit", "wrong-node", "numa-remote", vec![]));
    assert_eq!(
        of(None, None, 61.0),
        ("unknown", "wrong-node", "", vec!["numa-remote", "sender-core"])
    );
    assert_eq!(of(Some(1), Some(1), 61.0).1, "at-a-ceiling", "one node");
    assert_eq!(of(None, None, 75.0).1, "at-a-ceiling", "less than 1.3 times");
}

#[test]
fn a_card_that_the_kernel_calls_limited_is_the_answer_where_nothing_was_measured() {
    let link = |speed: u64, width: u8| Link {
        speed: Some(Transfers(speed * 1_000_000_000)),
        width: Some(width),
    };
    let of = |limited: Option<Limited>, measured: Vec<Measured>| {
        let mut near = Inventory::default();
        near.pci.push(Device { max: Some(link(16, 16)), limited, ..Device::default() });
        explained_as(near, measured, |e| e.headline.as_ref().and_then(|one| one.cause))
    };
    let slow = Limited { now: link(8, 8), at: None };
    assert_eq!(of(Some(slow), vec![]), Some("pcie-slot"));
    assert_eq!(of(None, vec![]), None);
    assert_eq!(of(Some(slow), vec![tcp(1, 0.94)]), None, "far below what it carries");
}

#[test]
fn a_link_that_fell_back_is_the_limit_where_it_is_full() {
    let of = |gigabits: f64| {
        let one = port(LinkState::Active, PhysicalState::LinkUp, 25, 1, "EDR");
        headline(host(vec![one]), vec![verbs(1, 65_536, 5_000_000, gigabits)])
    };
    assert_eq!(of(24.8), ("limit", "ib-slow-link", "wire-full", vec![]));
    assert_eq!(of(22.0).2, "", "below 0.9 of it");
}

#[test]
fn tables_of_one_operation_in_one_file_have_names_of_their_own() {
    let table = || Measured::Sizes(sizes(Carrier::Messages, Trip::Half, &[(1, 1.0), (64, 1.1)]));
    let names = explained_as(Inventory::default(), vec![table(), table()], |e| {
        e.tables.iter().map(|table| table.name.clone()).collect::<Vec<_>>()
    });
    assert_eq!(names, ["a.txt, line 1", "a.txt, line 2"]);
}

#[test]
fn sockets_in_small_packets_beside_fast_verbs_cost_processors() {
    let of = |kind: &str, mtu: u32, gigabits: f64| {
        let mut near = Inventory::default();
        near.network.nics.push(Nic {
            name: "ib0".to_owned(),
            kind: kind.to_owned(),
            mtu: Some(mtu),
            ..Nic::default()
        });
        let sockets = changed(1, gigabits, |one| one.seconds = Some(10.0));
        headline(near, vec![sockets, verbs(1, 65_536, 500_000, 48.5)]).1
    };
    assert_eq!(of("ipoib", 2_044, 11.0), "ipoib-mtu");
    for (kind, mtu, gigabits) in
        [("ipoib", 65_520, 11.0), ("ipoib", 2_044, 30.0), ("", 1_500, 11.0)]
    {
        assert_ne!(of(kind, mtu, gigabits), "ipoib-mtu");
    }
}

#[test]
fn verbs_over_a_device_of_software_show_no_card() {
    let of = |software: bool, gigabits: f64| {
        let mut near = Inventory::default();
        near.infiniband.devices.push(IbDevice {
            name: "rxe0".to_owned(),
            software,
            ..IbDevice::default()
        });
        headline(near, vec![verbs(1, 65_536, 500_000, gigabits)])
    };
    // Even a rate that equals that of a card does not show a card.
    assert_eq!((of(true, 0.72).1, of(true, 97.0).1), ("software-rdma", "software-rdma"));
    assert_ne!(of(false, 0.72).1, "software-rdma");
}
