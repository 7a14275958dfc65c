//! How a run divides its time among its steps.

use linerate_plan::Plan;
use linerate_units::Nanos;

/// Time limits of a run and its parts. In a short run, base steps take about a third of the time; trials take the rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Time at which the run must have ended, on the link's clock.
    deadline: Nanos,
    /// Length of the step that measures idle latency.
    pub(super) idle: Nanos,
    /// Length of the base step of one direction.
    pub(super) base: Nanos,
    /// Length of the shortest base step. It lasts the number of round trips that streams need to start.
    pub(super) least_base: Nanos,
    /// Length of one step of a sweep over numbers of streams.
    pub(super) sweep: Nanos,
    /// Washout of one step of a sweep: the time at its start that does not count.
    pub(super) washout: Nanos,
    /// Time for all steps of the sweep of one direction.
    pub(super) sweeps: Nanos,
    /// Length of the step that loads both directions at once.
    pub(super) both: Nanos,
    /// Time that is reserved for later steps of the run.
    kept: Nanos,
}

/// Length of a run whose base steps are long enough to be as precise as needed.
const LONG_ENOUGH: Nanos = Nanos::from_secs(33);

/// Returns the total time from which the lengths of a run's parts are computed. A run with trials spends most of its
/// time beyond 33 s on trials, which prove causes. So a waiting user sees the first proof sooner.
fn shared(plan: &Plan) -> Nanos {
    let beyond = plan.time.0.saturating_sub(LONG_ENOUGH.0);
    if plan.trials { Nanos(plan.time.0 - beyond + beyond / 4) } else { plan.time }
}

/// Returns `per_mille` of the total time, but at least `least` and at most `most` milliseconds.
fn part(total: Nanos, per_mille: u64, least: u64, most: u64) -> Nanos {
    Nanos((total.0 / 1000 * per_mille).clamp(least * 1_000_000, most * 1_000_000))
}

impl Budget {
    pub(super) fn new(plan: &Plan, now: Nanos) -> Self {
        let total = shared(plan);
        Self {
            deadline: Nanos(now.0 + plan.time.0),
            idle: part(total, 20, 300, 1_500),
            base: part(total, if plan.trials { 60 } else { 180 }, 1_000, 10_000),
            least_base: Nanos::from_millis(1_200),
            sweep: part(total, 15, 400, 2_000),
            washout: Nanos::from_millis(200),
            sweeps: part(total, 60, 500, 10_000),
            both: part(total, 35, 800, 3_000),
            kept: Nanos(0),
        }
    }

    /// Lengthens the steps on a path with long round trips, because streams need a number of round trips to start. Most
    /// of the run's time stays available to later steps.
    pub(super) fn stretch(&mut self, plan: &Plan, rtt: Nanos) {
        let longer = |now: Nanos, trips: u64, per_mille: u64| {
            let wanted = rtt.0.saturating_mul(trips).min(plan.time.0 / 1000 * per_mille);
            Nanos(now.0.max(wanted))
        };
        self.base = longer(self.base, 25, 120);
        self.least_base = longer(self.least_base, 25, 120);
        self.sweep = longer(self.sweep, 12, 60);
        self.washout = longer(self.washout, 4, 20);
    }

    /// Returns the time until the run's deadline.
    pub(super) fn left(&self, now: Nanos) -> Nanos {
        Nanos(self.deadline.0.saturating_sub(now.0))
    }

    /// Reserves time for later steps, in place of the time that was reserved before.
    pub(super) fn keep(&mut self, time: Nanos) {
        self.kept = time;
    }

    /// Returns the time until the run's deadline, without the time that is reserved for later steps.
    pub(super) fn free(&self, now: Nanos) -> Nanos {
        Nanos(self.left(now).0.saturating_sub(self.kept.0))
    }

    /// Returns whether at least the time `needed` is free.
    pub(super) fn affords(&self, now: Nanos, needed: Nanos) -> bool {
        self.free(now) >= needed
    }
}

/// Time that steps took beyond their planned length: to arm both ends, compare clocks, drain and read counters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beyond {
    total: Nanos,
    steps: u64,
}

impl Beyond {
    /// Adds the time that a step took beyond its planned length.
    pub(super) fn count(&mut self, beyond: Nanos) {
        self.total.0 = self.total.0.saturating_add(beyond.0);
        self.steps += 1;
    }

    /// Returns the time for `n` slices. Each takes a fifth longer than planned, or as much longer as the steps so far
    /// took on average, whichever is more.
    pub(super) fn spent(&self, slice: Nanos, n: u64) -> Nanos {
        let mean = self.total.0 / self.steps.max(1);
        let each = (slice.0 / 5 * 6).max(slice.0.saturating_add(mean));
        Nanos(each.saturating_mul(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::Knobs;
    use linerate_plan::path::Direction;

    #[test]
    fn slices_take_a_fifth_more_or_what_steps_took_so_far() {
        let mut beyond = Beyond::default();
        let ten = |beyond: &Beyond| beyond.spent(Nanos(500), 10).0;
        assert_eq!(ten(&beyond), 6_000);
        beyond.count(Nanos(80));
        assert_eq!(ten(&beyond), 6_000);
        beyond.count(Nanos(200));
        assert_eq!(ten(&beyond), 6_400, "140 each");
    }

    fn plan(seconds: u64, trials: bool) -> Plan {
        Plan {
            engine: "sim".to_owned(),
            peer: None,
            reach: Vec::new(),
            knobs: Knobs::default(),
            directions: Direction::ALL.to_vec(),
            time: Nanos::from_secs(seconds),
            sweep: true,
            trials,
        }
    }

    #[test]
    fn what_a_longer_run_has_more_goes_to_trials() {
        let base = |seconds, trials| Budget::new(&plan(seconds, trials), Nanos(0)).base.0;
        let milli = 1_000_000;
        assert_eq!(base(20, true), 1_200 * milli);
        assert_eq!(base(33, true), 1_980 * milli);
        assert_eq!(base(37, true), 2_040 * milli);
        assert_eq!(base(37, false), 6_660 * milli);
        let quarter = |seconds| base(seconds, true) - base(33, true);
        assert_eq!(quarter(60), (60 - 33) * 60 * milli / 4);
    }

    #[test]
    fn steps_of_long_round_trips_are_longer_within_a_share_of_the_run() {
        let stretched = |seconds, rtt| {
            let plan = plan(seconds, true);
            let mut budget = Budget::new(&plan, Nanos(0));
            budget.stretch(&plan, Nanos::from_millis(rtt));
            [budget.base, budget.sweep, budget.washout].map(|time| time.0 / 1_000_000)
        };
        let usual = [2_385, 596, 200];
        assert_eq!(stretched(60, 0), usual);
        assert_eq!(stretched(60, 49), usual, "24 round trips and more");
        assert_eq!(stretched(60, 50), [2_385, 600, 200]);
        assert_eq!(stretched(60, 200), [5_000, 2_400, 800]);
        assert_eq!(stretched(60, 400), [7_200, 3_600, 1_200], "no more than so much");
    }

    #[test]
    fn the_steps_leave_two_thirds_of_a_minute_to_trials() {
        let b = Budget::new(&plan(60, true), Nanos(0));
        let steps = 2 * b.base.0 + 2 * (b.sweeps.0 + b.sweep.0) + b.both.0 + b.idle.0;
        assert!(steps <= Nanos::from_secs(20).0);
        assert!(b.affords(Nanos(0), Nanos::from_secs(60)));
        assert!(!b.affords(Nanos(1), Nanos::from_secs(60)));
    }
}
