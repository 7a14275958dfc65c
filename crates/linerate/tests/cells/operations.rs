//! Records of transports that the core does not know, made by hand: operations without a far end, in one thread that
//! polls; and messages between two hosts.

use linerate_facts::HostFacts;
use linerate_facts::metric::{self as m, Metric};
use linerate_judge::figure::{MESSAGES, OPERATIONS, RETRANSMITS, Subject, Summary};
use linerate_judge::model::derive;
use linerate_judge::verdict::judge;
use linerate_plan::path::{Certainty, Direction, Measure, Side};
use linerate_plan::{Knobs, Pattern, Plan, Purpose, SetPlan, StepPlan};
use linerate_record::{
    Column, End, EndReadings, FORMAT, Host, Record, Set, SetEnd, Start, Step, Table, Total,
    TrialPlan,
};
use linerate_units::stats::Histogram;
use linerate_units::{Bytes, Nanos};

use super::Cell;

/// Payload of an operation, in bytes.
const SIZE: i64 = 4096;
/// Time of an operation with no other in flight, in nanoseconds.
const ALONE: u64 = 20_000;
/// Number of operations in flight.
const DEPTH: u32 = 4;
const TICK: u64 = 50_000_000;

fn knobs(depth: u32) -> Knobs {
    Knobs { depth, busy_poll: true, ..Knobs::default() }
}

fn set(id: u32, pattern: Pattern, depth: u32) -> Set {
    Set {
        plan: SetPlan { id, pattern, knobs: knobs(depth) },
        ends: vec![SetEnd { cpus: vec![0], ..SetEnd::default() }],
    }
}

/// A table of counters, each of which grows by a given amount in a tick.
fn table(source: &str, subject: &str, rows: u64, columns: &[(Metric, i64)]) -> Table {
    let column = |(metric, each): &(Metric, i64)| Column {
        name: metric.name.into(),
        unit: metric.unit,
        kind: metric.kind,
        values: (0..=rows as i64).map(|row| row * each).collect(),
    };
    Table {
        source: source.to_owned(),
        subject: subject.to_owned(),
        at: (0..=rows).map(|row| row * TICK).collect(),
        columns: columns.iter().map(column).collect(),
    }
}

fn timed(set: u32, nanos: u64) -> Histogram {
    Histogram { set, counts: vec![(nanos, 10_000)], ..Histogram::default() }
}

/// A step of the only end, in which each operation takes `nanos` nanoseconds and `depth` operations are in flight.
fn step(index: u32, purpose: Purpose, set: u32, depth: u32, nanos: u64) -> Step {
    let rows = 32;
    let per_tick = (u64::from(depth) * TICK / nanos) as i64;
    let thread = format!("s{set}/tx0");
    let tables = vec![
        table(
            "worker",
            &thread,
            rows,
            &[(m::WORKER_BYTES, per_tick * SIZE), (m::WORKER_OPS, per_tick)],
        ),
        table(
            "thread",
            &thread,
            rows,
            &[(m::THREAD_RUN, TICK as i64), (m::THREAD_WAIT, 0), (m::THREAD_CPU, 0)],
        ),
    ];
    Step {
        plan: StepPlan {
            index,
            purpose,
            sets: vec![set, 0],
            washout: Nanos(2 * TICK),
            measure: Nanos((rows - 2) * TICK),
            tick: Nanos(TICK),
        },
        began: Nanos::from_secs(u64::from(index) * 2),
        ends: vec![EndReadings {
            tables,
            totals: vec![Total {
                set,
                stream: 0,
                sent: (per_tick * SIZE * rows as i64) as u64,
                received: 0,
                complete: true,
            }],
            latencies: vec![timed(0, nanos)],
            ..EndReadings::default()
        }],
        clock: None,
        took: Nanos(0),
        trouble: None,
    }
}

fn start() -> Start {
    Start {
        format: FORMAT,
        linerate: "0.1.0".to_owned(),
        wall_secs: 1_795_257_067,
        plan: Plan {
            engine: "disk".to_owned(),
            peer: None,
            reach: Vec::new(),
            knobs: knobs(DEPTH),
            directions: vec![Direction::Forward],
            time: Nanos::from_secs(30),
            sweep: false,
            trials: true,
        },
        made: linerate_record::Made::default(),
        note: String::new(),
        study: None,
    }
}

/// The only host of the record.
fn host() -> Host {
    Host {
        side: Side::Near,
        facts: HostFacts {
            name: "ripple".to_owned(),
            cpus: vec![0, 1],
            nodes: 1,
            clocks: Some(Vec::new()),
            ..HostFacts::default()
        },
    }
}

/// A run whose operations take `loaded` nanoseconds under load. With twice as many in flight, it does `gain` times as
/// many operations.
fn record(loaded: u64, gain: f64) -> Record {
    let forward = Pattern::Stream { direction: Direction::Forward };
    let single = Pattern::PingPong { size: Bytes(SIZE as u64), interval: Nanos(0) };
    let base = Purpose::Base { direction: Direction::Forward };
    let mut steps =
        vec![step(0, Purpose::IdleLatency, 9, 1, ALONE), step(1, base, 1, DEPTH, loaded)];
    let twice = (loaded as f64 * 2.0 / gain) as u64;
    // The order of the slices of the two settings: A B B A, B A A B.
    let order = [false, true, true, false, true, false, false, true];
    for (number, changed) in order.into_iter().enumerate() {
        let (set, depth, nanos) = if changed { (2, 2 * DEPTH, twice) } else { (1, DEPTH, loaded) };
        let slice = Purpose::Slice { trial: 0, changed };
        steps.push(step(2 + number as u32, slice, set, depth, nanos));
    }
    Record {
        start: start(),
        hosts: vec![host()],
        sets: vec![set(0, single, 1), set(1, forward, DEPTH), set(2, forward, 2 * DEPTH)],
        trials: vec![TrialPlan {
            id: 0,
            kind: "more-depth".to_owned(),
            direction: Direction::Forward,
            before: knobs(DEPTH),
            after: knobs(2 * DEPTH),
            max_blocks: 5,
        }],
        steps,
        imported: None,
        end: Some(End::Complete),
    }
}

pub(super) fn cells() -> [Cell; 2] {
    let few = record(21_000, 1.9);
    let full = record(60_000, 1.0);
    [
        Cell::new(
            "operations of which too few are in flight".to_owned(),
            &few,
            [&["queue-depth"], &[]],
            "sender-core",
        ),
        Cell::new("operations that queue".to_owned(), &full, [&[], &[]], "queue-depth"),
    ]
}

#[test]
fn too_few_operations_in_flight_are_proved_and_no_core_or_counter_of_sockets_is_named() {
    let [few, full] = cells();
    let verdict = judge(&few.model);
    let limit = &verdict.limits[0];
    assert_eq!(limit.cause, "queue-depth", "{verdict:?}");
    assert_eq!(limit.certainty, Certainty::Proved, "{verdict:?}");
    assert_eq!(limit.metric, Measure::Operations);
    let words = verdict.answers.iter().flat_map(|answer| &answer.why);
    for foreign in ["retransmit", "window", "datagram", "tcp", "packet"] {
        let named = words.clone().find(|why| why.contains(foreign));
        assert_eq!(named, None, "{foreign}");
    }
    let verdict = judge(&full.model);
    assert!(verdict.limits.is_empty(), "{:?}", verdict.limits);
}

/// Larger operations carry more bytes: a trial is still judged by the number of operations.
#[test]
fn operations_are_counted_in_a_second_and_a_trial_is_judged_by_their_number() {
    let mut few = record(21_000, 1.9);
    let changed = few
        .steps
        .iter_mut()
        .filter(|step| matches!(step.plan.purpose, Purpose::Slice { changed: true, .. }));
    let tables = changed.flat_map(|step| &mut step.ends[0].tables);
    for table in tables.filter(|table| table.source == m::WORKER_BYTES.source) {
        let bytes = table.columns.iter_mut().find(|c| c.name == m::WORKER_BYTES.name);
        bytes.unwrap().values.iter_mut().for_each(|value| *value *= 3);
    }
    let model = derive(&few);
    let effect = model.trials[0].effect.unwrap().mid;
    assert!((effect - 1.9).abs() < 0.01, "{effect}");
    let trial = &model.trials[0];
    assert!(trial.goodput[1] > 5.0 * trial.goodput[0], "{:?}", trial.goodput);
    let summary = Summary::of(&few, &model);
    let forward = Subject::load(Direction::Forward);
    let value = |figure| summary.value(figure, forward).map(|value| value.mid);
    let rate = f64::from(DEPTH) / 21e-6;
    let operations = value(&OPERATIONS).unwrap();
    assert!((operations / rate - 1.0).abs() < 0.01, "{operations}");
    assert_eq!(value(&MESSAGES), None);
    assert_eq!(value(&RETRANSMITS), None);
}

/// The first record changed to messages between two hosts whose threads sleep: the far end receives what the near end
/// sends.
fn messages() -> Record {
    let mut record = record(21_000, 1.0);
    record.start.plan.engine = "messages".into();
    record.start.plan.peer = Some("brook".into());
    let mut far = record.hosts[0].clone();
    far.side = Side::Far;
    far.facts.name = "brook".into();
    record.hosts[0].facts.boot_id = "ripple-boot".into();
    far.facts.boot_id = "brook-boot".into();
    record.hosts.push(far);
    let asleep = |knobs: &mut Knobs| (knobs.depth, knobs.busy_poll) = (0, false);
    asleep(&mut record.start.plan.knobs);
    for set in &mut record.sets {
        asleep(&mut set.plan.knobs);
        set.ends.push(set.ends[0].clone());
    }
    record.trials.clear();
    record.steps.truncate(2);
    for step in &mut record.steps {
        let mut far = step.ends[0].clone();
        for table in &mut far.tables {
            table.subject = table.subject.replace("/tx", "/rx");
        }
        far.latencies.clear();
        step.ends.push(far);
        let threads = step.ends.iter_mut().flat_map(|end| &mut end.tables);
        for table in threads.filter(|table| table.source == "thread") {
            let run = table.columns.iter_mut().find(|c| c.name == m::THREAD_RUN.name);
            let run = run.unwrap();
            run.values.iter_mut().for_each(|value| *value /= 4);
        }
    }
    record
}

/// The record of messages, as a cell.
pub(super) fn of_messages() -> Cell {
    Cell::new("messages".to_owned(), &messages(), [&[], &[]], "")
}

#[test]
fn of_messages_by_an_unknown_transport_there_are_figures_and_nothing_false() {
    let record = messages();
    let cell = of_messages();
    let direction = &cell.model.directions[0];
    let rate = 8.0 * SIZE as f64 * f64::from(DEPTH) / 21e-6;
    let goodput = direction.base.goodput.mean;
    assert!((goodput / rate - 1.0).abs() < 0.01, "{goodput}");
    assert!(cell.model.idle.is_some() && direction.base.latency.is_some());
    let summary = Summary::of(&record, &cell.model);
    let value = |figure| summary.value(figure, Subject::load(Direction::Forward));
    let messages = value(&MESSAGES).unwrap().mid;
    let each = goodput / 8.0 / SIZE as f64;
    assert!((messages / each - 1.0).abs() < 0.01, "{messages}");
    assert_eq!(value(&OPERATIONS), None);
    assert!(!cell.model.alone && !cell.model.same_machine);
    // The core does not know the packets of this transport, and so no ceiling of a wire.
    assert_eq!(direction.ceilings, []);
    let verdict = judge(&cell.model);
    assert!(verdict.limits.is_empty(), "{:?}", verdict.limits);
    assert!(!verdict.unknown.is_empty());
    let words = verdict.answers.iter().flat_map(|answer| &answer.why);
    for foreign in ["retransmit", "window", "datagram", "tcp", "packet"] {
        let named = words.clone().find(|why| why.contains(foreign));
        assert_eq!(named, None, "{foreign}");
    }
}

/// Bytes that the near end sent are no goodput if the far end is the receiver.
#[test]
fn a_step_that_lost_its_far_end_has_no_goodput() {
    let mut record = messages();
    let base = &mut record.steps[1];
    base.ends.truncate(1);
    let lost = Cell::new("messages".to_owned(), &record, [&[], &[]], "");
    assert_eq!(lost.model.directions, []);
    // If there is no far end, the near end's operations count.
    let [few, _] = cells();
    assert!(few.model.alone && few.model.directions[0].base.goodput.mean > 0.0);
}
