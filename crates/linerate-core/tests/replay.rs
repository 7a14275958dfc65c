//! Replay cells: records of hosts that no lab here can build, each beside a near miss.

mod sample;

use linerate_core::facts::cpu::{Clock, Clocked};
use linerate_core::facts::memory::Channels;
use linerate_core::facts::nic::Nic;
use linerate_core::facts::route::Route;
use linerate_core::facts::topology::Node;
use linerate_core::facts::{HostFacts, Port};
use linerate_core::metric::{self as m, Metric};
use linerate_core::model::derive;
use linerate_core::record::{Column, EndReadings, Record, Table};
use linerate_core::units::{Hertz, Rate, Transfers};
use linerate_core::verdict::{Certainty, judge};

/// The CPU that the receiving thread is kept on.
const CPU: u32 = 3;

/// A record of one stream whose receiving thread is busy for `percent` of the time.
fn record(percent: i64) -> Record {
    let mut record = sample::record(1, 30, 7);
    for table in &mut receiver(&mut record).tables {
        if table.source == "thread" {
            set(table, m::THREAD_RUN, |row| row * percent * 1_000_000);
            set(table, m::THREAD_WAIT, |_| 0);
            set(table, m::THREAD_CPU, |_| i64::from(CPU));
        }
    }
    record
}

fn receiver(record: &mut Record) -> &mut EndReadings {
    &mut record.steps[1].ends[1]
}

fn facts(record: &mut Record) -> &mut HostFacts {
    &mut record.hosts[1].facts
}

/// Values of one metric: of each row of 100 ms.
fn set(table: &mut Table, metric: Metric, value: impl Fn(i64) -> i64) {
    let rows = 0..table.at.len() as i64;
    let column = table.columns.iter_mut().find(|c| c.name == metric.name);
    column.expect("the sample has it").values = rows.map(value).collect();
}

/// Adds a table with one metric.
fn add(record: &mut Record, metric: Metric, subject: &str, value: impl Fn(i64) -> i64) {
    let mut table = Table {
        source: metric.source.to_owned(),
        subject: subject.to_owned(),
        at: (0..30).map(|row| row * 100_000_000).collect(),
        columns: vec![Column {
            name: metric.name.to_owned(),
            unit: metric.unit,
            kind: metric.kind,
            values: Vec::new(),
        }],
    };
    set(&mut table, metric, value);
    receiver(record).tables.push(table);
}

fn outcome(record: &Record, cause: &str) -> &'static str {
    let answers = judge(&derive(record)).answers;
    let answer = answers.into_iter().find(|a| a.cause == cause);
    answer.expect("an answer").outcome
}

#[test]
fn a_clock_held_at_half_of_the_nominal_one() {
    let at = |percent, kilohertz: i64| {
        let mut record = record(percent);
        facts(&mut record).clocks = Some(vec![Clocked {
            cpus: vec![CPU],
            clock: Clock {
                nominal: Some(Hertz(2_000_000_000)),
                governor: "powersave".to_owned(),
                ..Clock::default()
            },
        }]);
        add(&mut record, m::CLOCK_NOW, "3", move |_| kilohertz);
        outcome(&record, "cpu-clock")
    };
    assert_eq!(at(97, 1_000_000), "finding");
    assert_eq!(at(97, 1_950_000), "clear", "near miss: rounding");
    assert_eq!(at(70, 1_000_000), "clear", "near miss: time to spare");
}

#[test]
fn a_thread_on_the_node_beside_the_ports() {
    let at = |percent, port: u32| {
        let mut record = record(percent);
        let facts = facts(&mut record);
        let node = |id: u32| Node {
            id,
            cpus: (id * 4..id * 4 + 4).collect(),
            distances: vec![10 + 11 * id, 21 - 11 * id],
        };
        facts.topology.nodes = vec![node(0), node(1)];
        facts.port.as_mut().expect("a port").node = Some(port);
        outcome(&record, "numa-remote")
    };
    assert_eq!(at(97, 1), "finding");
    assert_eq!(at(97, 0), "clear", "near miss: the same node");
    assert_eq!(at(70, 1), "clear", "near miss: time to spare");
}

#[test]
fn a_full_wire_below_a_bridge_with_a_guest_is_the_limit() {
    let at = |payload: i64| {
        let mut record = record(40);
        for end in &mut record.steps[1].ends {
            for table in &mut end.tables {
                match table.source.as_str() {
                    "worker" => set(table, m::WORKER_BYTES, |row| row * payload),
                    "tcp" => {
                        set(table, m::TCP_SND_MSS, |_| 1448);
                        set(table, m::TCP_PMTU, |_| 1500);
                    }
                    _ => {}
                }
            }
        }
        let port = |name: &str, index, kind: &str| Nic {
            name: name.to_owned(),
            index,
            kind: kind.to_owned(),
            is_virtual: !kind.is_empty(),
            up: true,
            ..Nic::default()
        };
        let mut ports = vec![
            port("br0", 4, "bridge"),
            port("eth0", 2, ""),
            port("tap0", 3, "tun"),
        ];
        ports[0].stack.below = vec![2, 3];
        ports[1].link.speed = Some(Rate(1_000_000_000));
        let facts = facts(&mut record);
        facts.port = Some(Port {
            name: "br0".to_owned(),
            is_ethernet: true,
            is_virtual: true,
            ..Port::default()
        });
        facts.route = Some(Route {
            ports,
            ..Route::default()
        });
        let limits = judge(&derive(&record)).limits;
        let wire = limits.iter().find(|l| l.cause == "wire-full");
        wire.map(|limit| (limit.certainty, limit.evidence[0].contains("far port eth0")))
    };
    // 941.4 Mb/s are 11,767,500 bytes in 100 ms.
    assert_eq!(at(11_700_000), Some((Certainty::Proved, true)));
    assert_eq!(at(11_400_000), None, "near miss: 97 %");
}

#[test]
fn memory_whose_one_channel_is_full() {
    let at = |megabytes: i64| {
        let mut record = record(97);
        // 48 Gb/s, and 12.8 GB/s of memory.
        for table in &mut receiver(&mut record).tables {
            if table.source == "worker" {
                set(table, m::WORKER_BYTES, |row| row * 600_000_000);
            }
        }
        facts(&mut record).channels = Some(Channels {
            least: 1,
            most: 1,
            speed: Transfers(1_600_000_000),
        });
        add(&mut record, m::MEMORY_BYTES, "mon_L3_00", move |row| {
            row * megabytes * 100_000
        });
        outcome(&record, "memory-bandwidth")
    };
    assert_eq!(at(11_000), "finding");
    assert_eq!(
        at(3_000),
        "clear",
        "near miss: 70 % with all payload on top"
    );
}
