//! Criteria for ending a step early once it has measured enough.

use linerate_units::stats::{Interval, mean_ci, steady_state};
use linerate_units::{Bytes, Nanos};

use super::budget::Budget;
use crate::link::Live;

/// Number of round trips that suffice for a median.
const TRIPS: u64 = 30;

/// Shortest time of a step that measures round trips.
const LEAST_TRIPS: Nanos = Nanos::from_millis(300);

/// Largest half width of a mean's confidence interval, as a share of the mean, at which the mean is precise enough.
const TIGHT: f64 = 0.02;

/// What a step must have measured before it may end early.
#[derive(Debug)]
pub(super) enum Enough {
    /// The step lasts as long as planned.
    Never,
    /// The step may end once it has timed enough round trips of this size.
    Trips(Bytes),
    /// The step may end once its mean rate is precise, after at least `least`. If packets are lost, or their loss is
    /// unknown, the step continues: the rate may then vary slowly with each loss, and the share of lost packets takes
    /// time to measure.
    Mean { least: Nanos, rates: Vec<f64> },
}

impl Enough {
    /// Makes the criterion for a base load. It lasts at least half of
    /// the planned time, and at least the shortest time of a base step.
    pub(super) fn of_load(budget: &Budget) -> Self {
        Self::Mean { least: Nanos((budget.base.0 / 2).max(budget.least_base.0)), rates: Vec::new() }
    }

    /// Returns whether the step with the progress `live` has measured enough.
    pub(super) fn reached(&mut self, live: Live) -> bool {
        match self {
            Self::Never => false,
            Self::Trips(size) => live.elapsed >= LEAST_TRIPS && live.moved >= Bytes(size.0 * TRIPS),
            Self::Mean { least, rates } => {
                rates.push(live.rate.0 as f64);
                live.elapsed >= *least && live.setbacks == Some(0) && is_tight(rates)
            }
        }
    }
}

/// Returns whether the rates have become steady and their mean is precise.
fn is_tight(rates: &[f64]) -> bool {
    let steady = steady_state(rates).and_then(|from| rates.get(from..));
    let interval = steady.and_then(mean_ci);
    interval.and_then(Interval::relative).is_some_and(|half| half <= TIGHT)
}

#[cfg(test)]
mod tests {
    use linerate_plan::{Knobs, Plan};
    use linerate_units::Rate;

    use super::*;

    /// Returns when a step ends in which these rates are reported ten
    /// times a second, in milliseconds; `None` if it does not end early.
    fn ends(enough: Enough, rates: impl IntoIterator<Item = f64>) -> Option<u64> {
        ends_with(enough, Some(0), rates)
    }

    fn ends_with(
        mut enough: Enough,
        setbacks: Option<u64>,
        rates: impl IntoIterator<Item = f64>,
    ) -> Option<u64> {
        let mut moved = 0;
        rates.into_iter().enumerate().find_map(|(at, rate)| {
            moved += rate as u64 / 80;
            let elapsed = 100 * (at as u64 + 1);
            let live = Live {
                rate: Rate(rate as u64),
                moved: Bytes(moved),
                setbacks,
                elapsed: Nanos::from_millis(elapsed),
            };
            enough.reached(live).then_some(elapsed)
        })
    }

    /// Makes the criterion for a base load of this planned time, on a path with this round trip.
    fn of(planned: u64, rtt: u64) -> Enough {
        let plan = Plan {
            engine: "sim".to_owned(),
            peer: None,
            reach: Vec::new(),
            knobs: Knobs::default(),
            directions: Vec::new(),
            time: Nanos::from_secs(60),
            sweep: true,
            trials: true,
        };
        let mut budget = Budget::new(&plan, Nanos(0));
        budget.base = Nanos::from_millis(planned);
        budget.stretch(&plan, Nanos::from_millis(rtt));
        Enough::of_load(&budget)
    }

    fn load() -> Enough {
        of(2_400, 1)
    }

    /// Returns rates around 1 Gb/s that deviate by this share, up and down without a pattern.
    fn around(share: f64) -> impl Iterator<Item = f64> {
        let signs = [1, -1, -1, 1, 1, 1, -1, 1, -1, -1, 1, -1, 1, 1, -1, -1];
        let signs = signs.into_iter().cycle().map(f64::from);
        signs.map(move |sign| 1e9 * (1.0 + sign * share)).take(24)
    }

    #[test]
    fn a_load_ends_when_its_mean_is_known_and_not_before_half_its_time() {
        assert_eq!(ends(load(), around(0.0)), Some(1_200));
        assert_eq!(ends(load(), around(0.02)), Some(1_200));
        assert_eq!(ends(load(), around(0.2)), None);
        let between = ends(load(), around(0.035)).unwrap();
        assert!((1_300..2_400).contains(&between), "{between}");
        let twice = || around(0.0).chain(around(0.0));
        assert_eq!(ends(of(4_000, 1), twice()), Some(2_000));
        assert_eq!(ends(of(2_400, 48), twice()), Some(1_200));
        assert_eq!(ends(of(2_400, 100), twice()), Some(2_500), "25 round trips");
    }

    #[test]
    fn a_load_that_loses_packets_or_may_goes_on() {
        for setbacks in [Some(1), None] {
            assert_eq!(ends_with(load(), setbacks, around(0.0)), None);
        }
    }

    #[test]
    fn a_load_that_still_rises_goes_on() {
        let ramp = (1..=24).map(|k| 4e7 * f64::from(k));
        assert_eq!(ends(load(), ramp), None);
        // A rising rate at the beginning is left out once the rate has become steady.
        let risen = [1e8, 5e8].into_iter().chain(around(0.001));
        assert_eq!(ends(load(), risen), Some(1_200));
    }

    #[test]
    fn round_trips_end_after_thirty_and_a_least_time() {
        // Round trips have 64 bytes, so the rate gives the number of round trips a second.
        let each = |trips: f64| std::iter::repeat_n(trips * 64.0 * 8.0, 20);
        assert_eq!(ends(Enough::Trips(Bytes(64)), each(10_000.0)), Some(300));
        assert_eq!(ends(Enough::Trips(Bytes(64)), each(100.0)), Some(300));
        assert_eq!(ends(Enough::Trips(Bytes(64)), each(50.0)), Some(600));
        assert_eq!(ends(Enough::Trips(Bytes(64)), each(10.0)), None);
    }

    #[test]
    fn other_steps_last_as_long_as_planned() {
        assert_eq!(ends(Enough::Never, around(0.0)), None);
    }
}
