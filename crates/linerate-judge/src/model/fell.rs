//! A rate that falls for good while a direction is loaded: a credit or a token bucket is used up.

use super::goodput::{Sample, estimate};
use super::{Load, TrialModel};
use linerate_units::stats::is_steady;
use linerate_units::{Bytes, Nanos, Rate};

/// Minimum ratio of the first rate to the lasting one: a smaller ratio is only a variation.
const FALLS: f64 = 1.5;

/// Least time for which the first rate must have been measured: the burst of a policer, or of a queue that fills, is
/// over sooner.
const FIRST: Nanos = Nanos::from_millis(500);
/// Least time for which the lasting rate must have been measured: four slices of a trial.
const LASTING: Nanos = Nanos::from_millis(750);

/// Least number of samples that show the lasting rate.
const FEWEST: usize = 4;

/// Least loaded time since the fall, and its least ratio to the time before: a disturbance at the end of a run is no
/// lasting rate.
const LATE: Nanos = Nanos::from_millis(1_500);
const SHARE: f64 = 0.5;

/// Share of the samples before the fall that must be above the border between both rates, and of those after it that
/// must be below.
const APART: f64 = 0.9;

/// Two rates of a direction: one from the start, and a lower one from the fall on.
#[derive(Debug, Clone, PartialEq)]
pub struct Fell {
    /// The rate before the fall.
    pub first: Rate,
    /// The lasting rate after the fall.
    pub lasting: Rate,
    /// Payload that arrived until the rate fell, by all loads of the direction.
    pub bytes: Bytes,
    /// How long the loads of the direction ran until the rate fell, all together.
    pub loaded: Nanos,
}

/// A fall of the rate, and the load's samples after it.
#[derive(Debug)]
pub(super) struct Fall {
    pub(super) fell: Fell,
    /// The border between the first and the lasting rate, in bits per second.
    border: f64,
    /// Index of the step in which the rate fell.
    pub(super) step: usize,
    /// Index of the last step that shows the lasting rate.
    pub(super) last: usize,
    /// Samples of the load at the lasting rate.
    after: Vec<f64>,
}

impl Fall {
    /// The fall that these samples show; they are in the order of time. `None` if there is none.
    pub(super) fn of(samples: &[Sample]) -> Option<Self> {
        let own: Vec<usize> = (0..samples.len()).filter(|at| samples[*at].own).collect();
        let rates: Vec<f64> = own.iter().map(|at| samples[*at].rate).collect();
        let cut = split(&rates)?;
        let (before, after) = rates.split_at(cut);
        let (first, lasting) = (middle(before), middle(after));
        let border = (first * lasting).sqrt();
        let of = |rates: &[f64], is: &dyn Fn(f64) -> bool| {
            rates.iter().filter(|rate| is(**rate)).count() as f64 >= rates.len() as f64 * APART
        };
        let apart = of(before, &|rate| rate > border) && of(after, &|rate| rate < border);
        let secs = |of: &[usize]| of.iter().map(|at| samples[*at].secs).sum::<f64>();
        let (then, since) = own.split_at(cut);
        let seen = secs(then) >= FIRST.secs() && secs(since) >= LASTING.secs();
        if !(apart && seen && lasting > 0.0 && first >= lasting * FALLS) {
            return None;
        }
        let (from, to) = (*then.last()?, *since.first()?);
        let high = (from..to).rev().find(|at| samples[*at].rate > border);
        let until = high.unwrap_or(from) + 1;
        let carried = samples.get(..until)?;
        let bits: f64 = carried.iter().map(|one| one.rate * one.secs).sum();
        let loaded: f64 = carried.iter().map(|one| one.secs).sum();
        let late: f64 = samples.get(until..)?.iter().map(|one| one.secs).sum();
        if since.len() < FEWEST || late < LATE.secs().max(loaded * SHARE) {
            return None;
        }
        Some(Self {
            fell: Fell {
                first: Rate(first as u64),
                lasting: Rate(lasting as u64),
                bytes: Bytes((bits / 8.0) as u64),
                loaded: Nanos((loaded * 1e9) as u64),
            },
            border,
            step: samples.get(until)?.step,
            last: samples[*since.last()?].step,
            after: after.iter().copied().filter(|rate| *rate < border).collect(),
        })
    }

    /// The load `load` with the lasting rate as its goodput.
    pub(super) fn lasting(&self, load: &Load) -> Load {
        // A token bucket that filled a little during idle time makes some samples higher.
        let lasting = self.fell.lasting.0 as f64;
        Load {
            goodput: estimate(lasting, &self.after),
            goodput_with_ramp: lasting,
            steady: is_steady(&self.after),
            ticks: self.after.clone(),
            ..load.clone()
        }
    }

    /// Whether a later load ran at the lasting rate. A credit that filled again while the direction was idle allows the
    /// first rate once more.
    pub(super) fn is_after(&self, load: &Load) -> bool {
        load.goodput.mean <= self.border
    }

    /// The trial without its effect, if its setting without the change ran at the first rate.
    pub(super) fn without_old(&self, mut trial: TrialModel) -> TrialModel {
        if trial.goodput[0] > self.border {
            (trial.effect, trial.loss, trial.latency) = (None, None, None);
        }
        trial
    }
}

/// Where a series is cut so that its two parts differ most and the first one is higher; `None` if there is no such cut.
fn split(rates: &[f64]) -> Option<usize> {
    let all: f64 = rates.iter().sum();
    let n = rates.len() as f64;
    let (mut before, mut best) = (0.0, (0.0, None));
    for (at, rate) in rates.iter().enumerate() {
        let k = at as f64;
        if at > 0 {
            let apart = before / k - (all - before) / (n - k);
            let weight = k * (n - k) * apart * apart;
            if apart > 0.0 && weight > best.0 {
                best = (weight, Some(at));
            }
        }
        before += rate;
    }
    best.1
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    linerate_units::stats::median(&sorted).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::transport::TCP;

    /// Samples of a tenth of a second each, by step, number of samples, rate, and whether they are of the base load.
    fn samples(parts: &[(usize, usize, f64, bool)]) -> Vec<Sample> {
        let of = |&(step, count, rate, own): &(usize, usize, f64, bool)| {
            let one = Sample { step, secs: 0.1, rate, own };
            std::iter::repeat_n(one, count)
        };
        parts.iter().flat_map(of).collect()
    }

    #[test]
    fn a_rate_that_falls_for_good_is_told_with_what_it_carried() {
        let all = samples(&[
            (1, 2, 1e8, true),
            (1, 18, 4e8, true),
            (2, 5, 4.1e8, false),
            (2, 5, 6e7, false),
            (3, 12, 6e7, true),
        ]);
        let fall = Fall::of(&all).unwrap();
        assert_eq!((fall.fell.first, fall.fell.lasting), (Rate(400_000_000), Rate(60_000_000)));
        // The time until the fall: 1.8 s and 0.2 s of the base load, and half a second of another load.
        let bytes = (2.0 * 1e8 + 18.0 * 4e8 + 5.0 * 4.1e8) * 0.1 / 8.0;
        assert_eq!(fall.fell.bytes, Bytes(bytes as u64));
        assert_eq!((fall.step, fall.last), (2, 3));
        assert_eq!(fall.after, [6e7; 12]);
    }

    #[test]
    fn a_rate_must_be_seen_for_a_while_and_fall_by_a_third() {
        let of = |first: usize, high: f64, lasting: usize| {
            Fall::of(&samples(&[(1, first, high, true), (2, lasting, 6e7, true)])).is_some()
        };
        assert!(of(6, 1.2e8, 16));
        assert!(!of(4, 1.2e8, 16), "a burst");
        assert!(!of(6, 1.2e8, 14), "too short to last");
        assert_eq!((of(40, 1.2e8, 21), of(40, 1.2e8, 19)), (true, false), "late");
        assert_eq!((of(6, 9.1e7, 16), of(6, 8.9e7, 16)), (true, false));
    }

    #[test]
    fn what_wanders_or_rises_or_stops_has_no_two_rates() {
        let rises = samples(&[(1, 10, 6e7, true), (2, 20, 4e8, true)]);
        assert!(Fall::of(&rises).is_none());
        let stops = samples(&[(1, 10, 4e8, true), (2, 20, 0.0, true)]);
        assert!(Fall::of(&stops).is_none());
        let returns = samples(&[(1, 10, 4e8, true), (2, 20, 6e7, true), (3, 3, 4e8, true)]);
        assert!(Fall::of(&returns).is_none(), "three of 23 samples");
        assert!(Fall::of(&[]).is_none());
    }

    #[test]
    fn a_trial_at_the_first_rate_proves_nothing_about_the_lasting_one() {
        let all = samples(&[(1, 10, 4e8, true), (2, 20, 6e7, true)]);
        let fall = Fall::of(&all).unwrap();
        let effect = |rate: f64| {
            let trial =
                TrialModel { goodput: [rate, rate * 2.0], ..super::super::testing::trial() };
            fall.without_old(trial).effect
        };
        // The border is between the two rates.
        assert_eq!(effect(1.6e8), None);
        assert!(effect(1.5e8).is_some());
    }

    #[test]
    fn a_later_load_at_the_first_rate_had_a_credit_that_filled_again() {
        let fall = Fall::of(&samples(&[(1, 10, 4e8, true), (2, 20, 6e7, true)])).unwrap();
        let load = |rate| Load::bare(&TCP, 4, estimate(rate, &[rate; 8]));
        assert!(fall.is_after(&load(1.5e8)));
        assert!(!fall.is_after(&load(1.6e8)));
    }
}
