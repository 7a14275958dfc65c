//! Invented measurements for snapshot tests: steps of a stored run, as if nothing else had been measured.

use linerate_plan::path::Direction;
use linerate_plan::{Pattern, Purpose};
use linerate_record::Record;
use linerate_session::store::Store;
use linerate_units::{Bytes, Rate};

use super::Probe;

fn step(purpose: Purpose, directions: &[Direction]) -> Record {
    let records = concat!(env!("CARGO_MANIFEST_DIR"), "/../linerate/tests/records");
    let mut record = Store::new(records).load("path-rate-5g").unwrap().record;
    record.trials.clear();
    record.steps.retain(|step| step.plan.purpose == purpose);
    record.steps.truncate(1);
    record.start.plan.directions = directions.to_vec();
    record
}

fn probe(record: &Record) -> Probe {
    Probe::of("brook", "10.0.0.2:5377", record)
}

/// The result of round trips on the idle path.
pub(super) fn idle() -> Probe {
    probe(&step(Purpose::IdleLatency, &[]))
}

/// The result of round trips during a load with a rate limit.
pub(super) fn beside() -> Probe {
    let direction = Direction::Forward;
    let mut record = step(Purpose::Base { direction }, &[direction]);
    record.start.plan.knobs.pacing = Some(Rate(2_000_000_000));
    record.start.plan.knobs.congestion = Some("bbr".to_owned());
    probe(&record)
}

/// The result of round trips during a load of datagrams, some of them lost.
pub(super) fn lossy() -> Probe {
    let records = concat!(env!("CARGO_MANIFEST_DIR"), "/../linerate/tests/records");
    let store = Store::new(records);
    let mut record = store.load("planted-udp-path-rate").unwrap().record;
    let direction = Direction::Forward;
    let base = Purpose::Base { direction };
    record.steps.retain(|step| step.plan.purpose == base);
    record.steps.truncate(1);
    record.start.plan.directions = vec![direction];
    probe(&record)
}

/// The result of UDP round trips in open loop, with some datagrams lost.
pub(super) fn udp() -> Probe {
    let mut record = step(Purpose::IdleLatency, &[]);
    record.start.plan.engine = "udp".to_owned();
    for set in &mut record.sets {
        if let Pattern::PingPong { interval, .. } = &mut set.plan.pattern {
            interval.0 = 1_000_000;
            set.plan.knobs.open_loop = true;
        }
    }
    for times in record.steps.iter_mut().flat_map(|s| &mut s.ends[0].latencies) {
        times.lost = 3;
        times.unread = vec![(2000, 900), (5000, 100)];
    }
    probe(&record)
}

/// The result of dependent memory loads, made from round trips.
pub(super) fn memory() -> Probe {
    let mut record = step(Purpose::IdleLatency, &[]);
    record.start.plan.engine = "memory".to_owned();
    record.start.plan.peer = None;
    record.hosts.truncate(1);
    for set in &mut record.sets {
        if let Pattern::PingPong { size, .. } = &mut set.plan.pattern {
            *size = Bytes(8);
        }
        set.ends.truncate(1);
        set.ends[0].write_size = 128 << 20;
    }
    for step in &mut record.steps {
        step.ends.truncate(1);
        for times in &mut step.ends[0].latencies {
            times.counts = vec![(80, 90), (85, 800), (97, 100), (1500, 10)];
        }
    }
    Probe::of("this host", "", &record)
}
