//! How long the threads that time round trips under load waited for a CPU.

use super::derive::round_trips;
use super::ends::end;
use super::readings::{Window, growth};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_record::{Record, Step, Table};

/// Share of the time of all round trips in a step for which the threads that time them on one end were runnable and did
/// not run, at most 1; `None` if no round trip was timed, or this was not read.
pub(super) fn waited(record: &Record, step: &Step, side: Side) -> Option<f64> {
    let timed = round_trips(record, step)?;
    let all: f64 = timed.counts.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
    let prefix = format!("s{}/", timed.set);
    let mut threads = end(step, side)?.about("thread", |s| s.starts_with(&prefix));
    let waited = |table: &Table| growth(table, m::THREAD_WAIT, Window::of(step));
    let (waited, _) = waited(threads.next()?)?;
    (all > 0.0).then(|| (waited / all).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::path::Direction;
    use linerate_plan::{Knobs, Pattern, Plan, Purpose, SetPlan, StepPlan};
    use linerate_record::{Column, EndReadings, FORMAT, Set, Start};
    use linerate_units::stats::Histogram;
    use linerate_units::{Bytes, Nanos};

    /// A record of one second with ten timed round trips of 20 ms, in which a thread of each end waited for `waits`
    /// milliseconds.
    fn record(waits: [Option<i64>; 2]) -> Record {
        let pattern = Pattern::PingPong { size: Bytes(64), interval: Nanos(0) };
        let end = |wait: Option<i64>, counts: &[(u64, u64)]| EndReadings {
            latencies: vec![Histogram { set: 4, counts: counts.to_vec(), ..Histogram::default() }],
            tables: wait.into_iter().map(|ms| thread(ms * 1_000_000)).collect(),
            ..EndReadings::default()
        };
        Record {
            start: Start {
                format: FORMAT,
                linerate: String::new(),
                wall_secs: 0,
                plan: Plan {
                    engine: "tcp".into(),
                    peer: None,
                    reach: Vec::new(),
                    knobs: Knobs::default(),
                    directions: vec![Direction::Forward],
                    time: Nanos::from_secs(1),
                    sweep: false,
                    trials: false,
                },
                made: linerate_record::Made::default(),
                note: String::new(),
                study: None,
            },
            hosts: Vec::new(),
            sets: vec![Set {
                plan: SetPlan { id: 4, pattern, knobs: Knobs::default() },
                ends: Vec::new(),
            }],
            trials: Vec::new(),
            imported: None,
            steps: vec![Step {
                plan: StepPlan {
                    index: 0,
                    purpose: Purpose::IdleLatency,
                    sets: vec![4],
                    washout: Nanos(0),
                    measure: Nanos::from_secs(1),
                    tick: Nanos::from_millis(100),
                },
                began: Nanos(0),
                ends: vec![end(waits[0], &[(20_000_000, 10)]), end(waits[1], &[])],
                clock: None,
                took: Nanos(0),
                trouble: None,
            }],
            end: None,
        }
    }

    fn thread(wait: i64) -> Table {
        Table {
            source: m::THREAD_WAIT.source.into(),
            subject: "s4/tx0".into(),
            at: vec![0, 1_000_000_000],
            columns: vec![Column {
                name: m::THREAD_WAIT.name.into(),
                unit: m::THREAD_WAIT.unit,
                kind: m::THREAD_WAIT.kind,
                values: vec![500, 500 + wait],
            }],
        }
    }

    #[test]
    fn waits_are_told_as_a_share_of_what_was_timed() {
        let record = record([Some(50), Some(900)]);
        let share = |side| waited(&record, &record.steps[0], side);
        assert_eq!(share(Side::Near), Some(0.25));
        assert_eq!(share(Side::Far), Some(1.0), "no more than there was");
    }

    #[test]
    fn what_was_not_read_or_not_timed_is_not_told() {
        let near = |record: &Record| waited(record, &record.steps[0], Side::Near);
        assert_eq!(near(&record([None, Some(5)])), None);
        let mut untimed = record([Some(5), Some(5)]);
        untimed.steps[0].ends[0].latencies.clear();
        untimed.steps[0].ends[1].latencies.clear();
        assert_eq!(near(&untimed), None);
    }
}
