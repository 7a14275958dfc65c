//! Invented measurements for snapshot tests.

use linerate_facts::Gap;
use linerate_facts::memory::Channels;
use linerate_facts::metric::{
    Metric, PROCESS_CPU, TCP_RETRANS, UDP_DATAGRAMS, UDP_DROPS, UDP_DUPLICATED, UDP_JITTER,
    UDP_LOST, UDP_REFUSED, UDP_REORDERED, WORKER_BYTES,
};
use linerate_plan::path::Direction;
use linerate_plan::{Access, Pattern, Purpose};
use linerate_record::flow::Owner;
use linerate_record::{Column, End, EndReadings, Record, SetEnd, Step, Table, Total};
use linerate_session::store::Store;
use linerate_units::stats::Histogram;
use linerate_units::{Bytes, Nanos, Rate, Transfers};

use super::{Connections, Probe};

/// The subject of a table, and the last value of each of its columns; `N` stands for the number of the set.
type Row<'a> = (&'a str, &'a [(Metric, i64)]);

/// What an iperf3 server would report of a direction, over the measured time of a stored step.
fn reported(step: &Step, set: u32, direction: Direction, rows: &[Row<'_>]) -> EndReadings {
    let from = step.plan.washout.0;
    let end = from + step.plan.measure.0;
    let column = |(metric, last): &(Metric, i64)| Column {
        name: metric.name.into(),
        unit: metric.unit,
        kind: metric.kind,
        values: match metric.name {
            name if name == UDP_JITTER.name => vec![*last, *last],
            _ => vec![0, *last],
        },
    };
    let table = |(subject, columns): &Row<'_>| Table {
        source: columns[0].0.source.to_owned(),
        subject: subject.replace('N', &set.to_string()),
        at: vec![from, end],
        columns: columns.iter().map(column).collect(),
    };
    let result_of = |what: &str, why: &str, hint: &str| Gap {
        what: what.to_owned(),
        why: why.to_owned(),
        hint: hint.to_owned(),
    };
    let order = result_of(
        "order of datagrams",
        "an iperf3 server does not report which datagrams arrived out of order or twice",
        "",
    );
    let datagrams = rows.iter().any(|(_, row)| row[0].0.source == "udp");
    let never = result_of(
        "sockets, CPUs and ports of the far end",
        "iperf3 does not report them",
        "run `linerate serve` there, and leave out iperf3://",
    );
    let order = Some(order).filter(|_| datagrams && direction == Direction::Forward);
    EndReadings {
        tables: rows.iter().map(table).collect(),
        congestion: Some("cubic".to_owned()),
        gaps: std::iter::once(never).chain(order).collect(),
        ..EndReadings::default()
    }
}

/// The near end of a stored step, with an iperf3 server as the far end.
fn foreign(mut record: Record, direction: Direction, rows: &[Row<'_>]) -> Record {
    record.hosts.truncate(1);
    record.start.plan.peer = Some("iperf3://brook".to_owned());
    let set = *record.steps[0].plan.sets.first().unwrap();
    for made in &mut record.sets {
        let size = made.ends[1].write_size;
        made.ends[1] = SetEnd { write_size: size, ..SetEnd::default() };
    }
    let far = reported(&record.steps[0], set, direction, rows);
    record.steps[0].ends[1] = far;
    record
}

/// A step with its two ends exchanged.
fn turned(mut record: Record) -> Record {
    let direction = Direction::Reverse;
    record.start.plan.directions = vec![direction];
    record.steps[0].plan.purpose = Purpose::Base { direction };
    record.steps[0].ends.swap(0, 1);
    for set in &mut record.sets {
        if set.plan.pattern.direction().is_some() {
            set.plan.pattern = Pattern::Stream { direction };
        }
        set.ends.swap(0, 1);
    }
    record
}

fn connections() -> Connections {
    Connections {
        ends: vec![[([10, 0, 0, 1], 43_210).into(), ([10, 0, 0, 2], 5201).into()]],
        owner: Owner { pid: 4711, name: "linerate".to_owned() },
    }
}

fn of(record: &Record) -> Probe {
    Probe::iperf3("iperf3://brook", "10.0.0.2:5201", record, &connections())
}

/// A complete test with an iperf3 server.
fn test(direction: Direction) -> Record {
    let rows: [&[Row<'_>]; 2] = [
        &[("sN/rx0", &[(WORKER_BYTES, 598_000_000)]), ("", &[(PROCESS_CPU, 612_000_000)])],
        &[
            ("sN/tx0", &[(WORKER_BYTES, 603_000_000)]),
            ("sN/0", &[(TCP_RETRANS, 7)]),
            ("", &[(PROCESS_CPU, 612_000_000)]),
        ],
    ];
    let forward = step(Direction::Forward);
    match direction {
        Direction::Forward => foreign(forward, direction, rows[0]),
        Direction::Reverse => foreign(turned(forward), direction, rows[1]),
    }
}

/// The result of a complete test with an iperf3 server.
pub(super) fn whole(direction: Direction) -> Probe {
    of(&test(direction))
}

/// The result of a UDP test with an iperf3 server, with some datagrams lost.
pub(super) fn iperf3_udp(direction: Direction) -> Probe {
    let mut record = datagrams();
    let record = match direction {
        Direction::Forward => {
            let rows: [Row<'_>; 2] = [
                ("sN/rx0", &[(WORKER_BYTES, 84_000 * 1472)]),
                ("sN/0", &[(UDP_DATAGRAMS, 84_000), (UDP_LOST, 900), (UDP_JITTER, 12_000)]),
            ];
            record.steps[0].ends[0].totals[0].sent = 84_920 * 1472;
            foreign(record, direction, &rows)
        }
        Direction::Reverse => {
            let rows: [Row<'_>; 2] = [
                ("sN/tx0", &[(WORKER_BYTES, 430_000 * 1472)]),
                ("sN/0", &[(UDP_DATAGRAMS, 430_000)]),
            ];
            foreign(turned(record), direction, &rows)
        }
    };
    of(&record)
}

/// The result of a test in which the iperf3 server closed the connection before the end.
pub(super) fn part() -> Probe {
    let mut record = test(Direction::Forward);
    let why = "lost the iperf3 server at 10.0.0.2:5201 in the middle of the test: it closed the connection";
    record.end = Some(End::Failed { why: why.to_owned() });
    record.steps[0].ends[1] = EndReadings {
        gaps: vec![Gap {
            what: "goodput".to_owned(),
            why: "the server did not report the received payload".to_owned(),
            hint: String::new(),
        }],
        ..EndReadings::default()
    };
    of(&record)
}

/// The record of one direction of a stored run, as if nothing else had been measured.
fn step(direction: Direction) -> Record {
    let records = concat!(env!("CARGO_MANIFEST_DIR"), "/../linerate/tests/records");
    let mut record = Store::new(records).load("path-rate-5g").unwrap().record;
    record.trials.clear();
    record.steps.retain(|step| step.plan.purpose == Purpose::Base { direction });
    record.start.plan.directions = vec![direction];
    record
}

/// The result of one direction with linerate at both ends.
pub(super) fn own(direction: Direction) -> Probe {
    Probe::own("brook", "10.0.0.2:5377", &step(direction), None)
}

/// The result of a test of 119 seconds that the user ended after the first second.
pub(super) fn interrupted() -> Probe {
    let mut record = step(Direction::Forward);
    record.end = Some(End::Interrupted);
    record.steps[0].plan.measure = Nanos::from_secs(119);
    Probe::own("brook", "10.0.0.2:5377", &record, None)
}

/// The result of a test of both directions, one of which was not measured.
pub(super) fn both() -> Probe {
    let (mut probe, reverse) = (own(Direction::Forward), own(Direction::Reverse));
    probe.results.extend(reverse.results);
    probe.gaps.extend(reverse.gaps);
    probe
}

/// The record of a test with datagrams at a rate that the path cannot carry.
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
    for (end, columns) in record.steps[0].ends.iter_mut().zip([SENT, RECEIVED]) {
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
        end.totals = vec![Total { set, stream: 0, sent: bytes, received: bytes, complete: true }];
    }
    record
}

/// By how much the counters of the sender, and of the receiver, grow each tick.
const SENT: &[(Metric, i64)] = &[(UDP_DATAGRAMS, 42_000), (UDP_REFUSED, 7)];
const RECEIVED: &[(Metric, i64)] = &[
    (UDP_DATAGRAMS, 40_000),
    (UDP_LOST, 2_000),
    (UDP_DROPS, 50),
    (UDP_REORDERED, 3),
    (UDP_DUPLICATED, 0),
];

/// The result of a test with datagrams, some of them lost.
pub(super) fn udp() -> Probe {
    Probe::own("brook", "10.0.0.2:5377", &datagrams(), None)
}

/// The result of a search whose longer step lost 4 %. If `allowed` is less, the step is repeated, because the
/// sender sent less than requested.
pub(super) fn search(allowed: f64) -> Probe {
    let mut record = datagrams();
    if allowed < 0.04 {
        record.steps.extend(record.steps.clone());
    }
    Probe::own("brook", "10.0.0.2:5377", &record, Some(allowed))
}

/// A step of one end, changed to look like copies in the memory of a host; `known`: whether its modules are known.
pub(super) fn memory(known: bool) -> Probe {
    let mut record = step(Direction::Forward);
    record.start.plan.engine = "memory".to_owned();
    record.start.plan.peer = None;
    record.hosts.truncate(1);
    let facts = &mut record.hosts[0].facts;
    facts.last_cache = Some(Bytes(32 << 20));
    facts.channels =
        known.then_some(Channels { least: 1, most: 2, speed: Transfers(3_200_000_000) });
    for set in &mut record.sets {
        set.plan.pattern = Pattern::Operations { access: Access::Copy };
        set.ends.truncate(1);
        set.ends[0].write_size = 128 << 20;
    }
    for step in &mut record.steps {
        step.ends.truncate(1);
        step.ends[0].tables.retain(|table| table.source != "tcp");
        // Memory is faster than the path of the stored run, so its bytes are multiplied.
        let workers = step.ends[0].tables.iter_mut();
        for table in workers.filter(|table| table.source == WORKER_BYTES.source) {
            let bytes = table.columns.iter_mut();
            for column in bytes.filter(|column| column.name == WORKER_BYTES.name) {
                column.values.iter_mut().for_each(|value| *value *= 1_000_000);
            }
        }
    }
    Probe::own("this host", "", &record, None)
}
