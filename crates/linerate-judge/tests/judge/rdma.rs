//! Tests of loads over RDMA devices: their ports, slots and NUMA nodes, and threads that poll.

use std::net::IpAddr;

use linerate_facts::infiniband::{IbRate, Layer};
use linerate_facts::nic::Nic;
use linerate_facts::rdma::{Netdev, OtherPort, RdmaEnd};
use linerate_facts::route::{Other, Route};
use linerate_facts::topology::{Node, Topology};
use linerate_judge::causes::CAUSES;
use linerate_judge::model::Cpu;
use linerate_plan::transport::rdma::Addressing;
use linerate_units::Transfers;

use super::slot::card_in;
use super::*;

/// A port of HDR100 with packets of 4096 B.
pub(super) fn hdr100() -> RdmaEnd {
    RdmaEnd {
        device: "mlx5_0".to_owned(),
        port: 1,
        layer: Some(Layer::InfiniBand),
        rate: Some(IbRate { rate: Rate(100_000_000_000), width: 2, speed: "HDR".to_owned() }),
        pci: "0000:01:00.0".to_owned(),
        slots: card_in(Transfers(16_000_000_000), 8, 8, Some(256)),
        mtu: 4096,
        mtu_own: 4096,
        mtu_most: 4096,
        polls: true,
        ..RdmaEnd::default()
    }
}

/// A port of 100 Gb/s Ethernet with packets of 1024 B.
fn roce() -> RdmaEnd {
    RdmaEnd {
        layer: Some(Layer::Ethernet),
        addressing: Addressing::RoceV2,
        gid_index: Some(3),
        gid: "::ffff:10.9.0.1".parse().ok(),
        netdev: Some(Netdev {
            name: "eth0".to_owned(),
            speed: Some(Rate(100_000_000_000)),
            mtu: Some(1500),
        }),
        mtu: 1024,
        mtu_own: 1024,
        ..hdr100()
    }
}

pub(super) fn soft() -> RdmaEnd {
    RdmaEnd {
        device: "rxe0".to_owned(),
        software: true,
        pci: String::new(),
        slots: Vec::new(),
        ..roce()
    }
}

/// A load of RDMA writes of 64 KiB between two ports like `end`, by threads that poll.
pub(super) fn rdma(end: &RdmaEnd, goodput: f64) -> Model {
    let mut base = Load {
        transport: &RDMA,
        goodput: steady(goodput),
        tcp: TcpShares::default(),
        packets: None,
        senders: vec![thread(1.0)],
        receivers: vec![thread(1.0)],
        ..load()
    };
    base.knobs.busy_poll = end.polls;
    base.made.sender.write_size = 65_536;
    base.made.sender.rdma = Some(Box::new(end.clone()));
    base.made.receiver.rdma = Some(Box::new(end.clone()));
    model(base)
}

pub(super) fn with_ceiling(end: &RdmaEnd, stage: Stage, ceiling_at: f64, goodput: f64) -> Model {
    let mut m = rdma(end, goodput);
    m.directions[0].ceilings = vec![ceiling(stage, ceiling_at, ceiling_at)];
    m
}

fn named(m: &Model) -> Vec<&'static str> {
    let limits = judge(m).limits;
    limits.iter().map(|limit| limit.cause).collect()
}

#[test]
fn a_full_port_is_full_speed_and_one_with_room_is_not() {
    let at = |goodput| with_ceiling(&hdr100(), Stage::Net, 99.3e9, goodput);
    assert_eq!(outcome(&at(99e9), "wire-full"), "enough");
    assert_eq!(named(&at(99e9)), ["wire-full"]);
    assert_eq!(outcome(&at(96e9), "wire-full"), "clear");
    assert!(named(&at(96e9)).is_empty(), "{:?}", named(&at(96e9)));
    let unknown = RdmaEnd { rate: None, ..hdr100() };
    assert_eq!(outcome(&rdma(&unknown, 50e9), "wire-full"), "unknown");
    let mut old = rdma(&hdr100(), 50e9);
    old.directions[0].base.made.receiver.rdma = None;
    assert_eq!(outcome(&old, "wire-full"), "unknown");
}

#[test]
fn a_rate_that_software_makes_up_is_no_wire() {
    let m = rdma(&soft(), 9.9e9);
    for id in ["wire-full", "pcie-slot", "numa-remote"] {
        assert_eq!(outcome(&m, id), "clear", "{id}");
    }
    let NoFinding::Clear(why) =
        cause("wire-full").expect("a cause").check(&m, Direction::Forward).expect_err("no wire")
    else {
        panic!("unknown")
    };
    assert!(why.contains("rxe0 is made by software"), "{why}");
}

#[test]
fn a_narrow_slot_under_a_fast_port_is_full() {
    // A slot with eight lanes of generation 3, under a port of 200 Gb/s.
    let narrow = RdmaEnd { slots: card_in(Transfers(8_000_000_000), 8, 8, Some(256)), ..hdr100() };
    let at = |goodput| {
        let mut m = with_ceiling(&narrow, Stage::Pcie, 58e9, goodput);
        m.directions[0].ceilings.push(ceiling(Stage::Net, 198e9, 198e9));
        m
    };
    assert_eq!(outcome(&at(57.5e9), "pcie-slot"), "enough");
    assert_eq!(named(&at(57.5e9)), ["pcie-slot"]);
    assert_eq!(outcome(&at(55e9), "pcie-slot"), "clear");
    let unread = RdmaEnd { slots: Vec::new(), ..hdr100() };
    assert_eq!(outcome(&rdma(&unread, 55e9), "pcie-slot"), "unknown");
    assert_eq!(outcome(&rdma(&hdr100(), 55e9), "pcie-slot"), "clear");
}

/// Two NUMA nodes of two CPUs each. The device is on node 1; the threads run on `cpu`.
fn on_node(cpu: u32, polls: bool, busy: f64) -> Model {
    let end = RdmaEnd { node: Some(1), polls, ..hdr100() };
    let mut m = rdma(&end, 50e9);
    for host in &mut m.hosts {
        let node = |id, cpus: [u32; 2], distances: [u32; 2]| Node {
            id,
            cpus: cpus.to_vec(),
            distances: distances.to_vec(),
        };
        host.facts.nodes = 2;
        host.facts.cpus = (0..4).collect();
        host.facts.topology = Topology {
            nodes: vec![node(0, [0, 1], [10, 21]), node(1, [2, 3], [21, 10])],
            ..Topology::default()
        };
    }
    let base = &mut m.directions[0].base;
    for thread in base.senders.iter_mut().chain(&mut base.receivers) {
        (thread.cpu, thread.busy) = (Some(cpu), Some(busy));
    }
    m
}

#[test]
fn threads_far_from_the_device_are_told_and_those_near_it_are_not() {
    let at = |cpu, polls, busy| outcome(&on_node(cpu, polls, busy), "numa-remote");
    assert_eq!(at(0, false, 0.97), "enough");
    assert_eq!(at(2, false, 0.97), "clear");
    assert_eq!(at(0, false, 0.5), "clear", "it has time left");
    // A thread that polls is busy at any load: its distance from the device proves nothing.
    assert_eq!(at(0, true, 1.0), "suspect");
    assert_eq!(at(3, true, 1.0), "clear");
    let Ok(found) =
        cause("numa-remote").expect("a cause").check(&on_node(0, true, 1.0), Direction::Forward)
    else {
        panic!("no finding")
    };
    assert!(found.evidence[0].contains("mlx5_0 is on node 1"), "{found:?}");
}

#[test]
fn small_packets_count_where_the_wire_is_full() {
    let at = |goodput| with_ceiling(&roce(), Stage::Net, 92.5e9, goodput);
    assert_eq!(outcome(&at(92e9), "rdma-mtu"), "enough");
    assert_eq!(outcome(&at(90e9), "rdma-mtu"), "clear");
    let advice = cause("rdma-mtu").expect("a cause").advice(&at(92e9), Direction::Forward);
    let text = advice[0].text();
    assert!(text.contains("sudo ip link set dev eth0 mtu 4200"), "{text}");
    assert!(advice[0].undo_text().contains("mtu 1500"));
    // The port below a VLAN is changed before the VLAN, and is restored after it.
    let mut tagged = at(92e9);
    for host in &mut tagged.hosts {
        let nic = |name: &str, kind: &str| Nic {
            name: name.to_owned(),
            kind: kind.to_owned(),
            mtu: Some(1500),
            ..Nic::default()
        };
        host.facts.route =
            Some(Route { ports: vec![nic("eth0", "vlan"), nic("port0", "")], ..Route::default() });
    }
    let advice = &cause("rdma-mtu").expect("a cause").advice(&tagged, Direction::Forward)[0];
    let order = |text: &str, first: &str, second: &str| {
        let at = |name: &str| text.find(&format!("dev {name} mtu")).expect(name);
        assert!(at(first) < at(second), "{text}");
    };
    order(&advice.text(), "port0", "eth0");
    order(&advice.undo_text(), "eth0", "port0");
    // One end does not support larger packets.
    let mut m = at(92e9);
    let end = m.directions[0].base.made.receiver.rdma.as_mut();
    end.expect("an end").mtu_most = 1024;
    assert_eq!(outcome(&m, "rdma-mtu"), "clear");
    // A request that fits into one packet does not need larger ones.
    let mut m = at(92e9);
    m.directions[0].base.made.sender.write_size = 1024;
    assert_eq!(outcome(&m, "rdma-mtu"), "clear");
    let full = with_ceiling(&hdr100(), Stage::Net, 99.3e9, 99e9);
    assert_eq!(outcome(&full, "rdma-mtu"), "clear");
}

#[test]
fn software_pays_for_each_packet_where_a_cpu_is_full_of_them() {
    let at = |softirq, end: &RdmaEnd| {
        let mut m = rdma(end, 1e9);
        m.directions[0].base.cpus.receiver = vec![Cpu { number: 2, softirq, ..Cpu::default() }];
        m
    };
    assert_eq!(outcome(&at(0.81, &soft()), "rdma-mtu"), "enough");
    assert_eq!(outcome(&at(0.79, &soft()), "rdma-mtu"), "clear");
    assert_eq!(outcome(&at(0.81, &roce()), "rdma-mtu"), "clear");
    assert_eq!(outcome(&at(0.95, &soft()), "softirq-core"), "enough");
    assert_eq!(outcome(&at(0.5, &soft()), "softirq-core"), "clear");
    assert_eq!(outcome(&at(0.95, &roce()), "softirq-core"), "clear");
}

/// A full port; each end has another active port on `eth1`, with this address.
fn two_ports(address: &str, goodput: f64) -> Model {
    let end = RdmaEnd {
        mtu: 4096,
        mtu_own: 4096,
        others: vec![OtherPort {
            device: "mlx5_1".to_owned(),
            port: 1,
            netdev: "eth1".to_owned(),
            rate: Some(Rate(100_000_000_000)),
            pci: "0000:02:00.0".to_owned(),
        }],
        ..roce()
    };
    let mut m = with_ceiling(&end, Stage::Net, 98e9, goodput);
    let own: IpAddr = address.parse().expect("an address");
    for host in &mut m.hosts {
        host.facts.route = Some(Route {
            peer: "10.9.0.1".parse().ok(),
            others: vec![Other { name: "eth1".to_owned(), speed: None, networks: vec![(own, 24)] }],
            ..Route::default()
        });
    }
    m
}

#[test]
fn a_second_port_to_the_same_network_is_told_where_the_first_is_full() {
    let full = two_ports("10.9.0.7", 97.5e9);
    assert_eq!(outcome(&full, "rdma-one-port"), "enough");
    assert!(named(&full).contains(&"rdma-one-port"), "{:?}", named(&full));
    assert_eq!(outcome(&two_ports("10.9.0.7", 90e9), "rdma-one-port"), "clear");
    assert_eq!(
        outcome(&two_ports("10.9.1.7", 97.5e9), "rdma-one-port"),
        "clear",
        "another network"
    );
    for (rate, expected) in [(49, "clear"), (50, "enough")] {
        let mut other = full.clone();
        let end = other.directions[0].base.made.receiver.rdma.as_mut();
        end.expect("an end").others[0].rate = Some(Rate(rate * 1_000_000_000));
        assert_eq!(outcome(&other, "rdma-one-port"), expected, "{rate} Gb/s");
    }
    // The second port of a card shares the slot of the first.
    for (pci, slot, expected) in [
        ("0000:01:00.1", 112e9, "clear"),
        ("0000:01:00.1", 146e9, "clear"),
        ("0000:01:00.1", 148e9, "enough"),
        ("0000:02:00.0", 112e9, "enough"),
    ] {
        let mut same = full.clone();
        let made = &mut same.directions[0].base.made;
        for end in [&mut made.sender, &mut made.receiver] {
            pci.clone_into(&mut end.rdma.as_mut().expect("an end").others[0].pci);
        }
        for side in [Place::Near, Place::Far] {
            let mut slot = ceiling(Stage::Pcie, slot, slot);
            slot.side = side;
            same.directions[0].ceilings.push(slot);
        }
        assert_eq!(outcome(&same, "rdma-one-port"), expected, "{pci} {slot}");
    }
    let mut down = full;
    let end = down.directions[0].base.made.receiver.rdma.as_mut();
    end.expect("an end").others.clear();
    assert_eq!(outcome(&down, "rdma-one-port"), "clear", "it is down");
}

#[test]
fn threads_that_poll_are_no_limit_by_that() {
    for end in [hdr100(), soft()] {
        let mut m = rdma(&end, 1e9);
        let base = &mut m.directions[0].base;
        for thread in base.senders.iter_mut().chain(&mut base.receivers) {
            (thread.busy, thread.waiting) = (Some(0.7), Some(0.3));
            (thread.cpu, thread.home) = (Some(1), Some(1));
        }
        let cpu =
            Cpu { number: 1, busy: 1.0, ours: Some(0.7), others: Some(0.3), ..Cpu::default() };
        base.cpus.sender = vec![cpu.clone()];
        base.cpus.receiver = vec![cpu];
        for cause in CAUSES {
            let found = cause.check(&m, Direction::Forward);
            let enough = found.is_ok_and(|found| found.enough);
            assert!(!enough, "{} of {}", cause.id, end.device);
        }
        assert!(named(&m).is_empty(), "{:?}", named(&m));
        for id in ["sender-core", "receiver-core"] {
            assert_eq!(outcome(&m, id), "clear", "{id}");
        }
        // A thread that sleeps and has no time left has another cause.
        m.directions[0].base.knobs.busy_poll = false;
        assert_eq!(outcome(&m, "cpu-contention"), "enough");
    }
}
