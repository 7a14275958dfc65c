//! The times at which the sampler wakes up in a step.

use linerate_plan::StepPlan;

use linerate_load::LoadError;

/// Limits of the shortest tick and the longest step, in nanoseconds.
/// A plan may be sent by the other end, so it is checked.
const TICK_MIN: u64 = 1_000_000;
const STEP_MAX: u64 = 24 * 3600 * 1_000_000_000;
/// Largest number of rows of a step.
const ROWS_MAX: u64 = 100_000;
/// First wake-up that only computes rates for workers, in nanoseconds
/// since the step began. The time of each next one is twice as long.
const TUNE_FIRST: u64 = 2_000_000;
/// Last wake-up that only computes rates for workers, in nanoseconds since the step began.
const TUNE_LAST: u64 = 64_000_000;

/// Action of the sampler at a wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// Compute rates, so that workers can adapt to them.
    Tune,
    /// Add a row to every table.
    Row,
}

/// Refuses steps that would cost this end more memory or time than a measurement needs.
pub(super) fn bounds(plan: &StepPlan) -> Result<(), LoadError> {
    let (tick, length) = (plan.tick.0, plan.washout.0.saturating_add(plan.measure.0));
    if !(TICK_MIN..=STEP_MAX).contains(&tick)
        || length > STEP_MAX
        || length / tick.max(1) > ROWS_MAX
    {
        let what = format!(
            "a step of {} + {} in ticks of {}: ticks from 1 ms to one day, {ROWS_MAX} rows and \
             one day at most",
            plan.washout, plan.measure, plan.tick
        );
        return Err(LoadError::Unsupported { what });
    }
    Ok(())
}

/// Returns the wake-ups in order, with their times in nanoseconds since the step began: a row at the end of the
/// washout, one at each tick after that, and one at the end of the step.
pub(super) fn points(plan: &StepPlan) -> Vec<(u64, Point)> {
    let (washout, tick) = (plan.washout.0, plan.tick.0);
    let end = washout + plan.measure.0;
    let tunes = (0..)
        .map(|k| TUNE_FIRST << k)
        .take_while(|at| *at <= TUNE_LAST)
        .chain((1..).map(|k| k * tick).take_while(|at| *at < washout));
    let ticks = (1..).map(|k| washout + k * tick);
    // A last tick that would be very short is merged with the previous one.
    let ticks = ticks.take_while(|at| at + tick / 4 < end);
    let begin = [washout].into_iter().filter(|at| *at < end);
    let rows = begin.chain(ticks).chain([end]);
    let mut points: Vec<_> = tunes
        .filter(|at| *at < end)
        .map(|at| (at, Point::Tune))
        .chain(rows.filter(|at| *at > 0).map(|at| (at, Point::Row)))
        .collect();
    points.sort_by_key(|(at, _)| *at);
    points
}

#[cfg(test)]
mod tests {
    use linerate_plan::Purpose;
    use linerate_units::Nanos;
    use proptest::prelude::*;

    use super::*;

    fn plan(washout: u64, measure: u64, tick: u64) -> StepPlan {
        StepPlan {
            index: 0,
            purpose: Purpose::Both,
            sets: Vec::new(),
            washout: Nanos(washout),
            measure: Nanos(measure),
            tick: Nanos(tick),
        }
    }

    fn rows(plan: &StepPlan) -> Vec<u64> {
        let points = points(plan).into_iter();
        points.filter(|(_, p)| *p == Point::Row).map(|(at, _)| at / 1_000_000).collect()
    }

    #[test]
    fn rows_fall_on_the_end_of_the_wash_out_on_ticks_and_on_the_end() {
        let ms = Nanos::from_millis;
        let p = |w, m, t| plan(ms(w).0, ms(m).0, ms(t).0);
        assert_eq!(rows(&p(200, 300, 100)), [200, 300, 400, 500]);
        assert_eq!(rows(&p(50, 250, 100)), [50, 150, 250, 300]);
        assert_eq!(rows(&p(50, 220, 100)), [50, 150, 270]);
        assert_eq!(rows(&p(0, 200, 100)), [100, 200]);
        assert_eq!(rows(&p(30, 0, 100)), [30]);
    }

    #[test]
    fn steps_are_bounded_on_both_sides() {
        assert!(bounds(&plan(0, 1_000_000_000, TICK_MIN)).is_ok());
        assert!(bounds(&plan(0, 1_000_000_000, TICK_MIN - 1)).is_err());
        assert!(bounds(&plan(0, 1_000_000_000, 0)).is_err());
        assert!(bounds(&plan(0, TICK_MIN * ROWS_MAX, TICK_MIN)).is_ok());
        assert!(bounds(&plan(TICK_MIN, TICK_MIN * ROWS_MAX, TICK_MIN)).is_err());
        assert!(bounds(&plan(u64::MAX, u64::MAX, u64::MAX)).is_err());
        assert!(bounds(&plan(1, 1_000_000_000, STEP_MAX)).is_ok());
        assert!(bounds(&plan(1, 1_000_000_000, STEP_MAX + 1)).is_err());
        assert!(bounds(&plan(1, 1_000_000_000, u64::MAX)).is_err());
        assert!(bounds(&plan(0, STEP_MAX, STEP_MAX / 10)).is_ok());
        assert!(bounds(&plan(1, STEP_MAX, STEP_MAX / 10)).is_err());
    }

    proptest! {
        #[test]
        fn rows_ascend_from_the_wash_out_to_the_end(
            washout in 0u64..5_000, measure in 1u64..10_000, tick in 1u64..1_000,
        ) {
            let plan = plan(washout * 1_000_000, measure * 1_000_000, tick * 1_000_000);
            let rows = rows(&plan);
            prop_assert!(rows.windows(2).all(|w| w[0] < w[1]));
            prop_assert_eq!(*rows.last().unwrap(), washout + measure);
            if washout > 0 {
                prop_assert_eq!(rows[0], washout);
            }
        }
    }
}
