//! Measurements made up for goldens.

use linerate_core::facts::Gap;
use linerate_core::iperf3::{Cpu, Results, StreamResult};
use linerate_core::plan::{Direction, Purpose};
use linerate_core::record::{End, Record, SetEnd};
use linerate_core::units::{Bytes, Nanos};
use linerate_engine::iperf3::client::{ClientError, Outcome};
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
        }],
    };
    Outcome {
        server: ([10, 0, 0, 2], 5201).into(),
        direction,
        streams: 1,
        time: Nanos::from_secs(10),
        moved: Bytes(1_175_000_000),
        far: Some(far),
        retransmits: sends.then_some(12),
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
    Probe::own("brook", "10.0.0.2:5377", &step(direction))
}

/// One that the user ended after the first of 119 seconds.
pub(super) fn interrupted() -> Probe {
    let mut record = step(Direction::Forward);
    record.end = Some(End::Interrupted);
    record.steps[0].plan.measure = Nanos::from_secs(119);
    Probe::own("brook", "10.0.0.2:5377", &record)
}

/// Both directions, of which one was not measured.
pub(super) fn both() -> Probe {
    let (mut probe, reverse) = (own(Direction::Forward), own(Direction::Reverse));
    probe.ways.extend(reverse.ways);
    probe.gaps.extend(reverse.gaps);
    probe
}
