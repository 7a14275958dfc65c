//! Tests of the order and the length of a run's steps.

use super::*;

fn record_of(path: &SimPath, plan: Plan) -> Record {
    let (record, error) =
        run(&mut Sim::new(path.clone(), 1), plan, linerate_session::run::Label::default(), &mut ());
    assert!(error.is_none(), "{error:?}");
    record
}

fn capped() -> SimPath {
    let mut path = SimPath::default();
    path.forward.flow_cap = Some(gigabits(1.0));
    path
}

fn both(trials: bool) -> Plan {
    Plan { directions: Direction::ALL.to_vec(), trials, ..plan(Knobs::default()) }
}

/// Returns the indices of the steps with such a purpose.
fn places(record: &Record, is: impl Fn(Purpose) -> bool) -> Vec<usize> {
    let steps = record.steps.iter().enumerate();
    steps.filter(|(_, s)| is(s.plan.purpose)).map(|(at, _)| at).collect()
}

#[test]
fn trials_come_before_what_a_verdict_does_not_need() {
    let record = record_of(&capped(), both(true));
    let slices = places(&record, |p| matches!(p, Purpose::Slice { .. }));
    let forward = Direction::Forward;
    let swept = places(&record, |p| p == Purpose::Sweep { direction: forward });
    let together = places(&record, |p| p == Purpose::Both);
    let (first, last) = (slices[0], slices[slices.len() - 1]);
    // The load with twice the streams runs before the trial, those with more streams after it.
    assert!(swept[0] < first, "{swept:?} {first}");
    assert!(swept.len() > 1 && swept[1..].iter().all(|at| *at > last), "{swept:?} {last}");
    assert!(together.len() == 1 && together[0] > last);
}

#[test]
fn no_direction_misses_its_sweep_or_is_swept_twice() {
    for trials in [true, false] {
        let record = record_of(&capped(), both(trials));
        for direction in Direction::ALL {
            let sweeps =
                record.steps.iter().filter(|s| s.plan.purpose == Purpose::Sweep { direction });
            let sets = sweeps.flat_map(|s| &s.plan.sets);
            let plan = |id: &u32| record.sets.iter().find(|s| s.plan.id == *id);
            let streams: Vec<u32> = sets.filter_map(plan).map(|s| s.plan.knobs.streams).collect();
            let doubled = streams.iter().zip([2, 4, 8, 16]).all(|(n, double)| *n == double);
            assert!(!streams.is_empty() && doubled, "{direction:?} {streams:?}");
        }
    }
}

/// Returns how many milliseconds count in the base step, and in a slice.
fn lengths(path: &SimPath, trials: bool) -> (u64, Option<u64>) {
    let record = record_of(path, Plan { trials, ..plan(Knobs::default()) });
    let of = |is: fn(&Purpose) -> bool| {
        let step = record.steps.iter().find(|s| is(&s.plan.purpose));
        step.map(|step| step.plan.measure.0 / 1_000_000)
    };
    let base = of(|p| matches!(p, Purpose::Base { .. }));
    (base.expect("a base step"), of(|p| matches!(p, Purpose::Slice { .. })))
}

#[test]
fn steps_are_short_where_the_rate_is_known_soon_and_trials_use_the_time() {
    let mut path = capped();
    path.forward.noise = (Class::White, 0.005);
    assert_eq!(lengths(&path, true), (1_200, Some(200)));
    let (long, _) = lengths(&path, false);
    assert!(long > 7_000, "{long}");
    path.forward.noise = (Class::White, 0.2);
    let (noisy, slice) = lengths(&path, true);
    assert!(noisy > 2_000, "{noisy}");
    assert_eq!(slice, Some(400));
}

#[test]
fn steps_are_not_cut_short_where_packets_are_lost() {
    let mut path = capped();
    path.forward.noise = (Class::White, 0.0);
    path.forward.policed = true;
    let (base, slice) = lengths(&path, true);
    assert!(base > 2_000, "{base}");
    assert!(slice.is_none_or(|slice| slice >= 400), "{slice:?}");
}
