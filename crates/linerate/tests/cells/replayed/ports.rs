//! Ports, cables, and queues and devices between the ports.

use std::net::IpAddr;

use linerate_facts::metric as m;
use linerate_facts::nic::{Duplex, Nic, Pause};
use linerate_facts::route::{Other, Sibling};
use linerate_plan::path::Side;
use linerate_record::Record;
use linerate_units::{Rate, Transfers};

use super::super::hardware::{
    cards, column, ends, facts, port, reads, retransmit, route, share_of, slower, table, tables,
};
use super::super::slot::card_in;
use super::{Replay, SIMULATED, Shown};

pub(super) const REPLAYS: &[Replay] = &[
    Replay {
        cause: "wire-full",
        on: "path-rate-1g",
        over: Shown {
            words: "941 Mb/s by ports of 1 Gb/s",
            show: |r| on_a_wire(r, 941.0),
            named: &["wire-full"],
            disturbed: &[],
        },
        under: Shown {
            words: "915 Mb/s",
            show: |r| on_a_wire(r, 915.0),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "wire-full",
        on: "path-rate-1g",
        over: Shown {
            words: "941 Mb/s by a bridge with a guest over a port of 1 Gb/s",
            show: |r| below_a_bridge(r, 941.0),
            named: &["wire-full"],
            disturbed: &[],
        },
        under: Shown {
            words: "915 Mb/s",
            show: |r| below_a_bridge(r, 915.0),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "pcie-slot",
        on: "path-rate-5g",
        over: Shown {
            words: "7.4 Gb/s by a card of 8 lanes in a slot of 4, first generation",
            show: |r| in_a_slot(r, 7_400.0),
            named: &["pcie-slot"],
            disturbed: &[],
        },
        under: Shown {
            words: "5.9 Gb/s",
            show: |r| in_a_slot(r, 5_900.0),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "wrong-route",
        on: "path-rate-1g",
        over: Shown {
            words: "941 Mb/s by ports of 1 Gb/s, beside ones of 2.5 Gb/s",
            show: |r| beside(r, Rate(2_500_000_000)),
            named: &["wire-full", "wrong-route"],
            disturbed: &[],
        },
        under: Shown {
            words: "beside ones of 1 Gb/s",
            show: |r| beside(r, Rate(1_000_000_000)),
            named: &["wire-full"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "duplex",
        on: "path-rate-1g",
        over: Shown {
            words: "600 Mb/s, half duplex, 1.2 % of the packets collide",
            show: |r| half_duplex(r, 0.012),
            named: &["duplex"],
            disturbed: &[],
        },
        under: Shown {
            words: "0.8 % collide",
            show: |r| half_duplex(r, 0.008),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "pause-frames",
        on: "path-rate-5g",
        over: Shown {
            words: "pauses stop the sender's port of 10 Gb/s 6 % of the time",
            show: |r| paused(r, 0.06),
            named: &["path-rate", "pause-frames"],
            disturbed: &[],
        },
        under: Shown {
            words: "4 %",
            show: |r| paused(r, 0.04),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "tunnel",
        on: "path-rate-1g",
        over: Shown {
            words: "a VXLAN of MTU 1500 on a port of MTU 1500",
            show: |r| through_vxlan(r, 1500),
            named: &["path-rate", "tunnel"],
            disturbed: &[],
        },
        under: Shown {
            words: "a VXLAN of MTU 1450",
            show: |r| through_vxlan(r, 1450),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "cloud-allowance",
        on: "path-rate-1g",
        over: Shown {
            words: "0.2 % of the packets over the allowance of an ENA",
            show: |r| over_an_allowance(r, 0.002),
            named: &["path-rate", "cloud-allowance"],
            disturbed: &[],
        },
        under: Shown {
            words: "0.05 %",
            show: |r| over_an_allowance(r, 0.0005),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "local-drops",
        on: "planted-loss",
        over: Shown {
            words: "the sender's own queue dropped 60 % of what was retransmitted",
            show: |r| dropped(r, 0.6),
            named: &["local-drops"],
            disturbed: &[],
        },
        under: Shown {
            // Each dropped packet held one and a half segments.
            words: "30 %",
            show: |r| dropped(r, 0.3),
            named: &[],
            disturbed: &[],
        },
    },
    Replay {
        cause: "socket-memory",
        on: "receive-window-over",
        over: Shown {
            words: "the far control group refuses TCP more memory twice a second",
            show: |r| refused(r, 2.1),
            named: &["socket-memory"],
            disturbed: &[],
        },
        under: Shown {
            words: "less than once a second",
            show: |r| refused(r, 0.6),
            named: &["receive-window"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "arp-flux",
        on: "path-rate-1g",
        over: Shown {
            words: "40 % of the payload arrives by the port that owns the address",
            show: |r| answered_for(r, 0.4),
            named: &["arp-flux"],
            disturbed: &[],
        },
        under: Shown {
            words: "60 %",
            show: |r| answered_for(r, 0.6),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "bad-checksums",
        on: "planted-loss",
        over: Shown {
            words: "the receiver discards 60 % of what is retransmitted for its checksum",
            show: |r| damaged(r, 0.6),
            named: &["bad-checksums"],
            disturbed: &[],
        },
        under: Shown {
            words: "40 %",
            show: |r| damaged(r, 0.4),
            named: &["path-loss"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "sack-discarded",
        on: "planted-loss",
        over: Shown {
            words: "the sender ignores 60 blocks of selective acknowledgements for 100 segments retransmitted",
            show: |r| ignored(r, 0.6),
            named: &["sack-discarded"],
            disturbed: &[],
        },
        under: Shown {
            words: "40",
            show: |r| ignored(r, 0.4),
            named: &["path-loss"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "congestion-control",
        on: SIMULATED,
        over: Shown {
            words: "cubic slows down although nothing is retransmitted",
            show: |_| (),
            named: &["congestion-control"],
            disturbed: &[],
        },
        under: Shown {
            words: "0.06 % is retransmitted",
            show: |r| tables(r, Side::Near, "tcp").for_each(|t| retransmit(t, 0.0006)),
            named: &[],
            disturbed: &[],
        },
    },
    Replay {
        cause: "path-reordering",
        on: SIMULATED,
        over: Shown {
            words: "packets overtake 99 times for 100 segments retransmitted, 1 % of all",
            show: |r| overtaken(r, 0.99),
            named: &["path-reordering"],
            disturbed: &[],
        },
        under: Shown {
            words: "15 times",
            show: |r| overtaken(r, 0.15),
            named: &["path-loss"],
            disturbed: &[],
        },
    },
];

/// Goodput of the record of 1 Gb/s, in Mb/s.
const ONE: f64 = 956.0;
/// Goodput of the record of 5 Gb/s, in Mb/s.
const FIVE: f64 = 4_780.0;

/// The ports are of 1 Gb/s, and the goodput is this many Mb/s.
fn on_a_wire(record: &mut Record, mbps: f64) {
    cards(record, 1_000);
    slower(record, ONE / mbps);
}

/// The far port of 1 Gb/s belongs to a bridge, together with the port of a virtual machine.
fn below_a_bridge(record: &mut Record, mbps: f64) {
    on_a_wire(record, mbps);
    let made = |name: &str, index, kind: &str, below: &[u32]| {
        let mut nic = Nic {
            name: name.to_owned(),
            index,
            kind: kind.to_owned(),
            is_virtual: true,
            up: true,
            ..Nic::default()
        };
        nic.stack.below = below.to_vec();
        nic
    };
    let card = port(record, Side::Far).index;
    let ports = &mut route(record, Side::Far).ports;
    ports.insert(0, made("br0", 100, "bridge", &[card, 101]));
    ports.push(made("tap0", 101, "tun", &[]));
    let port = facts(record, Side::Far).port.as_mut().unwrap();
    "br0".clone_into(&mut port.name);
    port.is_virtual = true;
}

/// The near card has 8 lanes, its slot 4 lanes of 2.5 GT/s: 8 Gb/s, of which 6.12 to 7.42 Gb/s are left for payload.
fn in_a_slot(record: &mut Record, mbps: f64) {
    cards(record, 10_000);
    slower(record, FIVE / mbps);
    route(record, Side::Near).pci = card_in(Transfers(2_500_000_000), 4, 4, Some(256));
}

/// Both hosts have a second port, of this speed, in a network that joins the second ports.
fn beside(record: &mut Record, speed: Rate) {
    on_a_wire(record, 941.0);
    let address = |network: u8, host: u8| IpAddr::from([10, network, 0, host]);
    for (side, own, peer) in [(Side::Near, 1, 2), (Side::Far, 2, 1)] {
        let route = route(record, side);
        (route.own, route.peer) = (Some(address(1, own)), Some(address(1, peer)));
        route.gateway = None;
        route.others = vec![Other {
            name: "eth1".to_owned(),
            speed: Some(speed),
            networks: vec![(address(2, own), 24)],
        }];
    }
}

/// The far port of 1 Gb/s runs in half duplex, and this share of its packets collide.
fn half_duplex(record: &mut Record, share: f64) {
    on_a_wire(record, 600.0);
    port(record, Side::Far).link.duplex = Some(Duplex::Half);
    for table in tables(record, Side::Far, "port") {
        let collided = share_of(column(table, m::PORT_TX_PACKETS), share);
        *column(table, m::PORT_COLLISIONS) = collided;
    }
}

/// Pause frames stop the sender's port for this share of the time, by the counters of its driver.
fn paused(record: &mut Record, share: f64) {
    cards(record, 10_000);
    port(record, Side::Near).pause = Some(Pause { rx: Some(true), ..Pause::default() });
    let count = |name| (m::DRIVER_COUNT, name);
    let frames = count("eth0 rx_global_pause");
    reads(record, Side::Near, frames, |secs| secs * 2_000.0);
    let micros = count("eth0 rx_global_pause_duration");
    reads(record, Side::Near, micros, |secs| secs * 1e6 * share);
}

/// The near route leaves through a VXLAN port on top of its previous port.
fn through_vxlan(record: &mut Record, mtu: u32) {
    let mut vxlan = port(record, Side::Near).clone();
    vxlan.stack.below = vec![vxlan.index];
    vxlan.index = 100;
    vxlan.mtu = Some(mtu);
    for name in [&mut vxlan.name, &mut vxlan.kind, &mut vxlan.driver] {
        "vxlan".clone_into(name);
    }
    route(record, Side::Near).ports.insert(0, vxlan);
    let port = facts(record, Side::Near).port.as_mut().unwrap();
    "vxlan".clone_into(&mut port.name);
    port.mtu = Some(mtu);
    for table in tables(record, Side::Near, "tcp") {
        column(table, m::TCP_PMTU).fill(i64::from(mtu));
        column(table, m::TCP_SND_MSS).fill(i64::from(mtu) - 52);
    }
}

/// The near port is one of Amazon's cloud, and its driver counts packets beyond the machine's allowance.
fn over_an_allowance(record: &mut Record, share: f64) {
    let nic = port(record, Side::Near);
    nic.kind.clear();
    "ena".clone_into(&mut nic.driver);
    "0000:00:05.0".clone_into(&mut nic.device);
    for end in ends(record, Side::Near) {
        let port = end.tables.iter().find(|t| t.source == "port").unwrap();
        let sent = port.column(m::PORT_TX_PACKETS).unwrap();
        let over = share_of(sent, share);
        let name = "eth0 bw_out_allowance_exceeded";
        let exceeded = table(m::DRIVER_COUNT, name, port.at.clone(), over);
        end.tables.push(exceeded);
    }
}

/// The sender's own queue dropped a share of the packets that were retransmitted; no trial was made.
fn dropped(record: &mut Record, share: f64) {
    record.trials.clear();
    for end in ends(record, Side::Near) {
        let sockets = end.tables.iter().filter_map(|t| t.column(m::TCP_RETRANS));
        let mut sum: Vec<i64> = Vec::new();
        for socket in sockets {
            sum.resize(socket.len(), 0);
            sum.iter_mut().zip(socket).for_each(|(sum, repeated)| *sum += repeated);
        }
        for queue in end.tables.iter_mut().filter(|t| t.source == "qdisc") {
            "eth0 pfifo 1:".clone_into(&mut queue.subject);
            *column(queue, m::QDISC_DROPS) = share_of(&sum, share);
        }
    }
}

/// TCP in the far control group may use 1 MiB of memory and uses half of it when it is read. More memory is refused
/// `often` times a second.
fn refused(record: &mut Record, often: f64) {
    record.trials.clear();
    let subject = "/sys/fs/cgroup/memory/pod/memory.kmem.tcp.limit_in_bytes";
    for end in ends(record, Side::Far) {
        let axis = end.tables.iter().find(|t| t.source == "port");
        let at = axis.unwrap().at.clone();
        let counted = at.iter().map(|ns| (*ns as f64 / 1e9 * often) as i64).collect();
        let mut limit = table(m::SOCKET_MEMORY_REFUSED, subject, at.clone(), counted);
        for (metric, most) in [(m::SOCKET_MEMORY_USED, 1 << 19), (m::SOCKET_MEMORY_LIMIT, 1 << 20)]
        {
            let gauge = table(metric, subject, at.clone(), vec![most; at.len()]);
            limit.columns.extend(gauge.columns);
        }
        end.tables.push(limit);
    }
}

/// The far host has two ports in the network of its address, and the port with that address receives this share of the
/// payload.
fn answered_for(record: &mut Record, share: f64) {
    let port =
        |index, name: &str, owns| Sibling { is_bare: false, index, name: name.to_owned(), owns };
    let route = route(record, Side::Far);
    route.own = "10.77.2.2".parse().ok();
    route.siblings = vec![port(2, "eth0", true), port(3, "eth1", false)];
    let bytes = |share: f64| move |secs: f64| secs * ONE * 1e6 / 8.0 * share;
    reads(record, Side::Far, (m::ARRIVAL_BYTES, "eth0"), bytes(share));
    reads(record, Side::Far, (m::ARRIVAL_BYTES, "eth1"), bytes(1.0 - share));
}

/// The receiver discards a share of the retransmitted segments because of a wrong checksum.
fn damaged(record: &mut Record, share: f64) {
    counts_repeated(record, Side::Far, m::NETSTAT_TCP_DAMAGED, share);
}

/// The sender ignores selective acknowledgements: this many for each retransmitted segment.
fn ignored(record: &mut Record, share: f64) {
    counts_repeated(record, Side::Near, m::NETSTAT_SACKS_DISCARDED, share);
}

/// Adds a counter of a host that grows by `share` for each segment that the near host retransmits.
fn counts_repeated(record: &mut Record, side: Side, metric: m::Metric, share: f64) {
    let repeated: Vec<(Vec<u64>, Vec<i64>)> = ends(record, Side::Near)
        .map(|end| {
            let mut tables = end.tables.iter().filter(|t| t.source == "tcp");
            let found =
                tables.find_map(|t| Some((t.at.clone(), t.column(m::TCP_RETRANS)?.to_vec())));
            found.unwrap_or_default()
        })
        .collect();
    for (end, (at, counted)) in ends(record, side).zip(repeated) {
        let counted = share_of(&counted, share);
        end.tables.push(table(metric, "all", at, counted));
    }
}

/// The sender retransmits 1 % of the segments, and counts `share` reorderings for each of these.
fn overtaken(record: &mut Record, share: f64) {
    for table in tables(record, Side::Near, "tcp") {
        retransmit(table, 0.01);
        if table.column(m::TCP_REORD_SEEN).is_some() {
            let counted = share_of(column(table, m::TCP_RETRANS), share);
            *column(table, m::TCP_REORD_SEEN) = counted;
        }
    }
}
