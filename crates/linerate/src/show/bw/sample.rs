//! Measurements made up for goldens.

use linerate_core::facts::Gap;
use linerate_core::facts::memory::Channels;
use linerate_core::iperf3::{Cpu, Protocol, Results, StreamResult};
use linerate_core::metric::{
    Metric, UDP_DATAGRAMS, UDP_DROPS, UDP_DUPLICATED, UDP_LOST, UDP_REFUSED, UDP_REORDERED,
    WORKER_BYTES,
};
use linerate_core::path::Direction;
use linerate_core::plan::{Access, Pattern, Purpose};
use linerate_core::record::{Column, End, Histogram, Record, SetEnd, Table, Total};
use linerate_core::units::{Bytes, Nanos, Rate, Transfers};
use linerate_engine::iperf3::client::{ClientError, Datagrams, Outcome};
use linerate_engine::store::Store;

use super::Probe;

fn outcome(direction: Direction) -> Outcome {
    let cpu = |total| {
        Some(Cpu {
            total,
            user: 1.0,
            system: total - 1.0,
        })
    };
    let sends = direction == Direction::Forward;
    let far = Results {
        cpu: cpu(61.2),
        congestion: Some("cubic".to_owned()),
        streams: vec![StreamResult {
            id: 1,
            bytes: 1_170_000_000,
            retransmits: (!sends).then_some(7),
            seconds: Some(10.01),
            ..StreamResult::default()
        }],
    };
    Outcome {
        server: ([10, 0, 0, 2], 5201).into(),
        protocol: Protocol::Tcp,
        direction,
        discarded: false,
        streams: 1,
        time: Nanos::from_secs(10),
        moved: Bytes(1_175_000_000),
        far: Some(far),
        retransmits: sends.then_some(12),
        datagrams: None,
        cpu: cpu(34.0),
        set: SetEnd {
            send_buffer: Some(87_040),
            congestion: "bbr".to_owned(),
            cpus: vec![3],
            ..SetEnd::default()
        },
        seen: None,
        gaps: vec![Gap {
            what: "sockets, CPUs and ports of the far end".to_owned(),
            why: "iperf3 does not tell of them".to_owned(),
            hint: "run `linerate serve` there, and leave out iperf3://".to_owned(),
        }],
        broken: None,
    }
}

/// One that went as asked.
pub(super) fn whole(direction: Direction) -> Probe {
    Probe::iperf3("iperf3://brook", outcome(direction)).0
}

/// The same by datagrams, of which some were lost.
pub(super) fn iperf3_udp(direction: Direction) -> Probe {
    let sends = direction == Direction::Forward;
    let (came, size) = (84_000, 1472);
    let mut outcome = outcome(direction);
    outcome.protocol = Protocol::Udp;
    outcome.retransmits = None;
    outcome.moved = Bytes((if sends { 84_920 } else { came }) * size);
    if let Some(far) = &mut outcome.far {
        far.streams[0].bytes = came * size;
    }
    outcome.datagrams = Some(Datagrams {
        size: Bytes(size),
        pace: Some(Rate(100_000_000)),
        sent: Some(84_920),
        refused: sends.then_some(3),
        came,
        lost: 900,
        at_socket: (!sends).then_some(7),
        order: (!sends).then_some([4, 0]),
        jitter: Some(Nanos::from_micros(12)),
    });
    Probe::iperf3("iperf3://brook", outcome).0
}

/// One that the server did not live to see the end of.
pub(super) fn part() -> Probe {
    let outcome = Outcome {
        far: None,
        broken: Some(ClientError::Busy(([10, 0, 0, 2], 5201).into())),
        ..outcome(Direction::Forward)
    };
    Probe::iperf3("iperf3://brook", outcome).0
}

/// One direction of a kept run, as if nothing else had been measured.
fn step(direction: Direction) -> Record {
    let records = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records");
    let mut record = Store::new(records).load("path-rate-5g").unwrap().record;
    record.trials.clear();
    record
        .steps
        .retain(|step| step.plan.purpose == Purpose::Base { direction });
    record.start.plan.directions = vec![direction];
    record
}

/// One direction with linerate at both ends.
pub(super) fn own(direction: Direction) -> Probe {
    Probe::own("brook", "10.0.0.2:5377", &step(direction), None)
}

/// One that the user ended after the first of 119 seconds.
pub(super) fn interrupted() -> Probe {
    let mut record = step(Direction::Forward);
    record.end = Some(End::Interrupted);
    record.steps[0].plan.measure = Nanos::from_secs(119);
    Probe::own("brook", "10.0.0.2:5377", &record, None)
}

/// Both directions, of which one was not measured.
pub(super) fn both() -> Probe {
    let (mut probe, reverse) = (own(Direction::Forward), own(Direction::Reverse));
    probe.ways.extend(reverse.ways);
    probe.gaps.extend(reverse.gaps);
    probe
}

/// Datagrams at a rate that the path does not carry.
fn datagrams() -> Record {
    let mut record = step(Direction::Forward);
    record.start.plan.engine = "udp".to_owned();
    for set in &mut record.sets {
        set.plan.knobs.pacing = Some(Rate(5_000_000_000));
        set.ends[0].write_size = 1472;
        set.ends[0].burst = 89;
    }
    let set = *record.steps[0].plan.sets.first().unwrap();
    for end in &mut record.steps[0].ends {
        end.tables.retain(|table| table.source != "tcp");
    }
    for (end, columns) in record.steps[0].ends.iter_mut().zip([SENT, CAME]) {
        let at = end.tables.iter().find(|t| t.source == "worker").unwrap();
        let at = at.at.clone();
        let column = |(metric, step): &(Metric, i64)| Column {
            name: metric.name.into(),
            unit: metric.unit,
            kind: metric.kind,
            values: (0..at.len() as i64).map(|row| row * step).collect(),
        };
        end.tables.push(Table {
            source: UDP_DATAGRAMS.source.to_owned(),
            subject: format!("s{set}/0"),
            columns: columns.iter().map(column).collect(),
            at,
        });
    }
    record.steps[0].ends[0].send_gaps = vec![Histogram {
        set,
        counts: vec![(209_000, 3900), (271_000, 100)],
        ..Histogram::default()
    }];
    for (end, bytes) in record.steps[0].ends.iter_mut().zip([1_250_000, 1_200_000]) {
        end.totals = vec![Total {
            set,
            stream: 0,
            sent: bytes,
            received: bytes,
            complete: true,
        }];
    }
    record
}

/// What a sender counts each tick, and a receiver.
const SENT: &[(Metric, i64)] = &[(UDP_DATAGRAMS, 42_000), (UDP_REFUSED, 7)];
const CAME: &[(Metric, i64)] = &[
    (UDP_DATAGRAMS, 40_000),
    (UDP_LOST, 2_000),
    (UDP_DROPS, 50),
    (UDP_REORDERED, 3),
    (UDP_DUPLICATED, 0),
];

/// Datagrams, of which some were lost.
pub(super) fn udp() -> Probe {
    Probe::own("brook", "10.0.0.2:5377", &datagrams(), None)
}

/// A search whose longer step lost 4 %; where that is too much it is made again, as its sender sent too little.
pub(super) fn search(allowed: f64) -> Probe {
    let mut record = datagrams();
    if allowed < 0.04 {
        record.steps.extend(record.steps.clone());
    }
    Probe::own("brook", "10.0.0.2:5377", &record, Some(allowed))
}

/// What one end of a path did, as if it had been copies in the memory of a host whose modules are known.
pub(super) fn memory(known: bool) -> Probe {
    let mut record = step(Direction::Forward);
    record.start.plan.engine = "memory".to_owned();
    record.start.plan.peer = None;
    record.hosts.truncate(1);
    let facts = &mut record.hosts[0].facts;
    facts.last_cache = Some(Bytes(32 << 20));
    facts.channels = known.then_some(Channels {
        least: 1,
        most: 2,
        speed: Transfers(3_200_000_000),
    });
    for set in &mut record.sets {
        set.plan.pattern = Pattern::Operations {
            access: Access::Copy,
        };
        set.ends.truncate(1);
        set.ends[0].write_size = 128 << 20;
    }
    for step in &mut record.steps {
        step.ends.truncate(1);
        step.ends[0].tables.retain(|table| table.source != "tcp");
        // Memory is faster than the path was.
        let workers = step.ends[0].tables.iter_mut();
        for table in workers.filter(|table| table.source == WORKER_BYTES.source) {
            let bytes = table.columns.iter_mut();
            for column in bytes.filter(|column| column.name == WORKER_BYTES.name) {
                column
                    .values
                    .iter_mut()
                    .for_each(|value| *value *= 1_000_000);
            }
        }
    }
    Probe::own("this host", "", &record, None)
}
