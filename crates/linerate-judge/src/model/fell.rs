//! A rate that falls for good while a direction is loaded: a credit or a bucket that is used up.

use super::load::estimate;
use super::{Load, TrialModel};
use linerate_units::stats::is_steady;
use linerate_units::{Bytes, Nanos, Rate};

/// Minimum ratio of the first rate to the lasting one: a rate that varies by less has not changed.
const FALLS: f64 = 1.5;

/// Time for which each of the two rates must have been seen: a burst of a policer, or of a queue that fills, is over
/// sooner.
const FIRST: Nanos = Nanos::from_millis(500);
/// Four slices of a trial are the least that shows a rate.
const LASTING: Nanos = Nanos::from_millis(750);

/// Least number of samples of the lasting rate.
const FEWEST: usize = 4;

/// Least time of all loads since the fall, and its least share of the time before: a disturbance at the end of a run is
/// no rate that lasts.
const LATE: Nanos = Nanos::from_millis(1_500);
const SHARE: f64 = 0.5;

/// Share of the samples before and after the fall that must be on their own side of both rates.
const APART: f64 = 0.9;

/// Two rates of a direction, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Fell {
    /// The first rate.
    pub first: Rate,
    /// The rate that lasts.
    pub lasting: Rate,
    /// Payload that arrived until the rate fell, by all loads of the direction.
    pub bytes: Bytes,
    /// The time of these loads.
    pub loaded: Nanos,
}

/// A sample of what arrived in a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Index of the step that it belongs to.
    pub(super) step: usize,
    pub(super) secs: f64,
    /// Bits per second.
    pub(super) rate: f64,
    /// Whether it is of the load that the verdict explains, and of the time that counts.
    pub(super) own: bool,
}

/// A fall, and the samples of the load after it.
#[derive(Debug)]
pub(super) struct Fall {
    pub(super) told: Fell,
    /// The rate between both.
    border: f64,
    /// The step in which the rate fell.
    pub(super) step: usize,
    /// The last step that shows the lasting rate.
    pub(super) last: usize,
    /// The samples of the lasting rate.
    after: Vec<f64>,
}

impl Fall {
    /// The fall that these samples show, in the order in which they were taken.
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
            told: Fell {
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

    /// A load at the lasting rate.
    pub(super) fn lasting(&self, load: &Load) -> Load {
        // A bucket that filled a little while nothing was sent lets some samples be higher.
        let lasting = self.told.lasting.0 as f64;
        Load {
            goodput: estimate(lasting, &self.after),
            goodput_with_ramp: lasting,
            steady: is_steady(&self.after),
            ticks: self.after.clone(),
            ..load.clone()
        }
    }

    /// Whether a later load ran at the lasting rate. A credit that filled again while the direction was idle shows the
    /// first rate once more.
    pub(super) fn is_after(&self, load: &Load) -> bool {
        load.goodput.mean <= self.border
    }

    /// A trial without its effect, if its own base ran at the first rate.
    pub(super) fn without_old(&self, mut trial: TrialModel) -> TrialModel {
        if trial.goodput[0] > self.border {
            (trial.effect, trial.loss, trial.latency) = (None, None, None);
        }
        trial
    }
}

/// Where a series is cut so that the two parts differ most, the first above the second; `None` where none does.
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

    /// Samples of a tenth of a second: a number of them in a row at each rate.
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
        assert_eq!((fall.told.first, fall.told.lasting), (Rate(400_000_000), Rate(60_000_000)));
        // 1.8 s, and half a second of another load.
        let bytes = (2.0 * 1e8 + 18.0 * 4e8 + 5.0 * 4.1e8) * 0.1 / 8.0;
        assert_eq!(fall.told.bytes, Bytes(bytes as u64));
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
        // The border is between both rates.
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
