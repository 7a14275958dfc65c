//! The result of a step that was measured alone and only once.

use super::datagrams::{Counted, counted, jitter, missing};
use super::ends::{end, is_alone, receiving, sending, stream_set};
use super::load::{Over, load_over};
use super::readings::{Window, growth, per_second};
use super::tcp::{retransmits, sent};
use super::{Load, Thread};
use linerate_facts::metric as m;
use linerate_plan::path::{ByRole, Direction, Side};
use linerate_record::{EndReadings, Record, Step, Table};
use linerate_units::stats::{Histogram, Interval, merge};
use linerate_units::{Bytes, Nanos};

/// Least length of an interval, and by how much a row may be early, in nanoseconds.
const SECOND: u64 = 1_000_000_000;
const SLIVER: u64 = SECOND / 20;

/// Largest half width of an interval that is still shown, as a share of its mean.
const WIDEST: f64 = 0.5;

fn tells(interval: &Interval) -> bool {
    interval.relative().is_some_and(|half| half <= WIDEST) || interval.high <= 0.0
}

/// One direction of a step, with the figures that only a single measurement reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Once {
    /// The direction of the load.
    pub direction: Direction,
    /// The load of that direction, with its figures.
    pub load: Load,
    /// Payload that the sender passed to its kernel and that the receiver read from its own, and the time, over the
    /// clock of each end, in which goodput was measured; `None` if it was not counted.
    pub moved: ByRole<Option<(Bytes, Nanos)>>,
    /// Duration of the ramp at the start, which is left out of the measured time.
    pub ramp: Nanos,
    /// Whether the receiver was read while payload arrived. Otherwise it reports only sums: there are no samples and no
    /// intervals, and it is unknown whether the rate was steady.
    pub sampled: bool,
    /// Payload that the receiver read in each second or so of the measured time. Empty if unknown.
    pub intervals: Vec<(Bytes, Nanos)>,
    /// Segments retransmitted in the measured time; `None` if a counter is missing.
    pub retransmitted: Option<u64>,
    /// Segments retransmitted in the measured time, as a share of the segments sent.
    pub retransmitted_share: Option<f64>,
    /// CPU time of the threads that move payload, in nanoseconds for each byte of goodput, of the sender and of the
    /// receiver. It is that of the whole program where only this is known; `None` if it was not read.
    pub cpu_per_byte: ByRole<Option<f64>>,
    /// CPU time of the whole program in per cent of one CPU; `None` if it was not read.
    pub program: ByRole<Option<f64>>,
    /// The counts of the load's datagrams in the measured time; `None` for a load without datagrams.
    pub datagrams: Option<Counted>,
    /// Payload of the whole step that was sent and did not arrive, and all payload sent. `None` for a transport that
    /// loses none, for datagrams that were counted, and if a stream was not closed in order.
    pub missing: Option<(Bytes, Bytes)>,
    /// Jitter of the datagrams, as the receiver smooths it; `None` if the receiver does not report it.
    pub jitter: Option<Nanos>,
    /// Times between two sends in the measured time, of a sender that keeps a rate by itself.
    pub send_gaps: Option<Histogram>,
}

/// The result of `step` for one direction; `None` if the step did not load it or nothing was counted.
pub fn once(record: &Record, step: &Step, direction: Direction) -> Option<Once> {
    let set = stream_set(record, step, direction)?.plan.id;
    let mut load = load_over(Over::AllButRamp, record, step, direction)?;
    let receiving = receiving(record, step, direction)?;
    let part = Over::AllButRamp.part(step, receiving, set);
    let window = part.window;
    // All samples have equal weight: a pause is a sample too, and counts in the mean with its whole time.
    let mean = load.goodput.mean;
    let holds = |interval: &Interval| (interval.low..=interval.high).contains(&mean);
    load.goodput.interval = load.goodput.interval.filter(tells).filter(holds);
    let sampled = receiving.is_sampled();
    if !sampled {
        (load.goodput.interval, load.goodput.samples) = (None, 0);
    }
    let sending = sending(record, step, direction)?;
    let over = |end: &EndReadings| Over::AllButRamp.of(end, window);
    let retransmitted = sent(sending, set, window);
    let events = retransmitted.map(|count| count.events);
    let bytes_per_second = load.goodput.mean / 8.0;
    let program: ByRole<Option<f64>> = [sending, receiving].map(program).into();
    let spent = |threads: &[Thread], program: Option<f64>| {
        let all = || Some(program? * 1e9 / 100.0 / bytes_per_second).filter(|ns| ns.is_finite());
        cpu_per_byte(threads, bytes_per_second).or_else(all)
    };
    let moved = |end, role: &str| moved(end, &format!("s{set}/{role}"), over(end));
    let datagrams = counted(sending, receiving, set, load.made.sender.write_size, window);
    let may_lose = (load.transport.may_lose_payload)(&load.knobs.options);
    let missing = missing(sending, receiving, set)
        .filter(|_| may_lose && datagrams.is_none())
        .map(|(missing, sent)| (Bytes(missing), Bytes(sent)));
    // Without a far end, the near end counts for both.
    let counts_both = is_alone(record) && direction.sender() == Side::Near;
    let receivers = if counts_both { "tx" } else { "rx" };
    Some(Once {
        direction,
        moved: ByRole { sender: moved(sending, "tx"), receiver: moved(receiving, receivers) },
        ramp: part.ramp(),
        sampled,
        intervals: intervals(receiving, &format!("s{set}/{receivers}"), window)
            .filter(|_| sampled)
            .unwrap_or_default(),
        retransmitted: events
            .or_else(|| retransmits(sending, set, over(sending)))
            .map(|count| count.max(0.0) as u64),
        retransmitted_share: retransmitted
            .filter(|count| count.of > 0.0)
            .map(|count| count.events / count.of),
        cpu_per_byte: ByRole {
            sender: spent(&load.senders, program.sender),
            receiver: spent(&load.receivers, program.receiver),
        },
        program,
        missing,
        jitter: jitter(receiving, set)
            .filter(|_| datagrams.is_some_and(|found| found.received > 0)),
        datagrams,
        send_gaps: merge(sending.send_gaps.iter().filter(|gaps| gaps.set == set)),
        load,
    })
}

/// The payload of a step that one end moved, whether or not the other end is known; `None` if it was not counted.
pub fn moved_by(
    record: &Record,
    step: &Step,
    direction: Direction,
    side: Side,
) -> Option<(Bytes, Nanos)> {
    let set = stream_set(record, step, direction)?.plan.id;
    let role = if direction.sender() == side { "tx" } else { "rx" };
    moved(end(step, side)?, &format!("s{set}/{role}"), Window::of(step))
}

/// The payload that all steps of a record sent in a direction, measured or not.
pub fn sent_in(record: &Record, direction: Direction) -> Bytes {
    let of = |step: &Step| {
        let set = stream_set(record, step, direction)?.plan.id;
        moved(sending(record, step, direction)?, &format!("s{set}/tx"), Window::WHOLE)
    };
    Bytes(record.steps.iter().filter_map(of).map(|(bytes, _)| bytes.0).sum())
}

/// CPU time of a program in per cent of one CPU, from readings before and after a step.
fn program(end: &EndReadings) -> Option<f64> {
    let mut tables = end.about(m::PROCESS_CPU.source, |_| true);
    let nanos = per_second(tables.next()?, m::PROCESS_CPU, Window::WHOLE)?;
    Some(nanos / 1e9 * 100.0)
}

/// Payload that the workers of one end moved, and the time between the two readings of the first worker.
fn moved(end: &EndReadings, prefix: &str, window: Window) -> Option<(Bytes, Nanos)> {
    let workers = end.about("worker", |s| s.starts_with(prefix));
    let grown: Vec<(f64, f64)> =
        workers.map(|table| growth(table, m::WORKER_BYTES, window)).collect::<Option<_>>()?;
    let (_, seconds) = *grown.first()?;
    let bytes: f64 = grown.iter().map(|(bytes, _)| bytes).sum();
    Some((Bytes(bytes as u64), Nanos((seconds * 1e9) as u64)))
}

/// The payload that the workers of the receiving end read in each second or so, from one row to a later one, the same
/// rows for all workers. `None` if the workers do not have the same rows.
fn intervals(receiving: &EndReadings, prefix: &str, window: Window) -> Option<Vec<(Bytes, Nanos)>> {
    let workers: Vec<&Table> = receiving.about("worker", |s| s.starts_with(prefix)).collect();
    let (from, to) = window.rows(workers.first()?)?;
    let at = &workers.first()?.at;
    let alike =
        |table: &&Table| table.at.len() == at.len() && window.rows(table) == Some((from, to));
    if !workers.iter().all(alike) {
        return None;
    }
    let sum = |row: usize| -> Option<i64> {
        let values = |table: &&Table| table.column(m::WORKER_BYTES)?.get(row).copied();
        workers.iter().try_fold(0_i64, |sum, table| sum.checked_add(values(table)?))
    };
    let mut parts = Vec::new();
    let (mut begin, mut before) = (at[from], sum(from)?);
    for (row, now) in at.iter().enumerate().take(to + 1).skip(from + 1) {
        let (time, bytes) = (now.saturating_sub(begin), sum(row)?);
        if time >= SECOND - SLIVER || row == to {
            let taken = u64::try_from(bytes.checked_sub(before)?).ok()?;
            parts.push((Bytes(taken), Nanos(time)));
            (begin, before) = (*now, bytes);
        }
    }
    Some(parts)
}

/// CPU time of `threads` together for each byte, in nanoseconds.
pub(super) fn cpu_per_byte(threads: &[Thread], bytes_per_second: f64) -> Option<f64> {
    let busy: f64 = threads.iter().map(|t| t.busy).sum::<Option<f64>>()?;
    (!threads.is_empty() && bytes_per_second > 0.0).then(|| busy * 1e9 / bytes_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::{Purpose, StepPlan};
    use linerate_record::Column;

    /// The table of a worker: its bytes at each time.
    fn worker(stream: u32, millis: &[u64], bytes: &[i64]) -> Table {
        let column = Column {
            name: m::WORKER_BYTES.name.into(),
            unit: m::WORKER_BYTES.unit,
            kind: m::WORKER_BYTES.kind,
            values: bytes.to_vec(),
        };
        Table {
            source: "worker".to_owned(),
            subject: format!("s0/rx{stream}"),
            at: millis.iter().map(|ms| ms * 1_000_000).collect(),
            columns: vec![column],
        }
    }

    fn parts(tables: Vec<Table>) -> Option<Vec<(u64, u64)>> {
        let receiving = EndReadings { tables, ..EndReadings::default() };
        let window = Window { from: 500_000_000, to: 3_000_000_000 };
        let parts = intervals(&receiving, "s0/rx", window)?;
        Some(parts.iter().map(|(bytes, time)| (bytes.0, time.0 / 1_000_000)).collect())
    }

    #[test]
    fn intervals_are_of_a_second_and_add_up_to_the_byte() {
        let rows = [0, 500, 1000, 1500, 2000, 2460, 3000];
        let one = worker(0, &rows, &[9, 10, 20, 30, 47, 51, 52]);
        let other = worker(1, &rows, &[0, 1, 1, 1, 1, 3, 7]);
        let reported = parts(vec![one.clone(), other]).unwrap();
        assert_eq!(reported, [(20, 1000), (23, 960), (5, 540)]);
        assert_eq!(reported.iter().map(|(bytes, _)| bytes).sum::<u64>(), 52 - 10 + 7 - 1);
        // A worker that lacks a row cannot be added to the others.
        let late = worker(1, &rows[..6], &[0, 1, 1, 1, 1, 3]);
        assert_eq!(parts(vec![one, late]), None);
        assert_eq!(parts(Vec::new()), None);
    }

    /// The ramp that is left out for these bytes in each tenth of a second, after a washout of one second. Rows are
    /// read at the end of a tick, each a little later than the one before.
    fn ramp(rates: &[i64]) -> u64 {
        let plan = StepPlan {
            index: 0,
            purpose: Purpose::Both,
            sets: vec![0],
            washout: Nanos::from_secs(1),
            measure: Nanos::from_millis(100 * rates.len() as u64),
            tick: Nanos::from_millis(100),
        };
        let step = Step {
            plan,
            began: Nanos(0),
            ends: Vec::new(),
            clock: None,
            took: Nanos(0),
            trouble: None,
        };
        let millis: Vec<u64> = (0..=rates.len() as u64).map(|i| 1000 + 100 * i).collect();
        let bytes = rates.iter().scan(0, |sum, rate| {
            *sum += rate;
            Some(*sum)
        });
        let bytes: Vec<i64> = [0].into_iter().chain(bytes).collect();
        let mut table = worker(0, &millis, &bytes);
        for (at, late) in table.at.iter_mut().zip([57_000, 8_000].into_iter().cycle()) {
            *at += late;
        }
        let receiving = EndReadings { tables: vec![table], ..EndReadings::default() };
        Over::AllButRamp.part(&step, &receiving, 0).ramp().0
    }

    #[test]
    fn a_row_that_is_read_a_little_late_is_no_ramp() {
        let level = [100_000, 100_100].into_iter().cycle();
        let level: Vec<i64> = level.take(30).collect();
        assert_eq!(ramp(&level), 0);
        let rising = [10_000, 40_000, 70_000];
        let rising: Vec<i64> = rising.into_iter().chain(level.clone()).collect();
        // Three ticks, between the readings of two rows.
        assert_eq!(ramp(&rising), 300_000_000 - 49_000);
        // If no part is steady, nothing is left out.
        let swinging: Vec<i64> = (0..30).map(|i| 10_000 * (1 + i / 3)).collect();
        assert_eq!(ramp(&swinging), 0);
    }

    #[test]
    fn goodput_of_an_end_that_reports_sums_is_of_all_that_it_counted() {
        let receiving = |millis: &[u64], bytes: &[i64]| EndReadings {
            tables: vec![worker(0, millis, bytes)],
            ..EndReadings::default()
        };
        let window = Window { from: SECOND, to: 2 * SECOND };
        let goodput = |over: Over, end: &EndReadings| over.goodput(end, 0, window);
        // The end stopped early, and its sums begin before the measured time: both ends of that time are nearer to the
        // last row.
        let sums = receiving(&[0, 1980], &[0, 1980]);
        assert_eq!(goodput(Over::AllButRamp, &sums), Some(8000.0));
        assert_eq!(goodput(Over::Steady, &sums), None);
        let sampled = receiving(&[0, 1000, 2000], &[0, 0, 1000]);
        assert_eq!(goodput(Over::AllButRamp, &sampled), Some(8000.0));
        assert_eq!(goodput(Over::Steady, &sampled), Some(8000.0));
    }

    #[test]
    fn a_row_a_little_early_ends_an_interval_and_one_earlier_does_not() {
        let of = |middle| parts(vec![worker(0, &[500, middle, 3000], &[0, 4, 5])]).unwrap();
        assert_eq!(of(1450), [(4, 950), (1, 1550)]);
        assert_eq!(of(1449), [(5, 2500)]);
    }

    #[test]
    fn cpu_time_of_a_program_is_of_the_whole_step() {
        let column = Column {
            name: m::PROCESS_CPU.name.into(),
            unit: m::PROCESS_CPU.unit,
            kind: m::PROCESS_CPU.kind,
            values: vec![5, 1_500_000_005],
        };
        let table = Table {
            source: m::PROCESS_CPU.source.to_owned(),
            subject: String::new(),
            at: vec![0, 3 * SECOND],
            columns: vec![column],
        };
        let end = EndReadings { tables: vec![table], ..EndReadings::default() };
        assert!(!end.is_sampled());
        assert_eq!(program(&end), Some(50.0));
        assert_eq!(program(&EndReadings::default()), None);
    }

    #[test]
    fn cpu_time_is_of_all_threads_or_not_told() {
        let thread = |busy| Thread { busy, ..Thread::default() };
        let two = [thread(Some(0.5)), thread(Some(0.25))];
        assert_eq!(cpu_per_byte(&two, 1e9), Some(0.75));
        assert_eq!(cpu_per_byte(&two, 0.0), None);
        assert_eq!(cpu_per_byte(&[thread(Some(0.5)), thread(None)], 1e9), None);
        assert_eq!(cpu_per_byte(&[], 1e9), None);
    }
}
