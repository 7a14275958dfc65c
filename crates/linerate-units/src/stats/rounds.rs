//! Settings that are measured in rounds: A B C, then C B A, and so on.
//!
//! A round measures each setting once, and the value of a setting in a round is one sample, however many readings it
//! has. Two settings of a round are close in time, so a drift over the whole sweep hardly affects their ratio. Rounds
//! alternate in order, so a steady drift cancels over two rounds.

use super::Interval;
use super::compare::{MIN_BLOCKS, critical};

/// Fewest rounds that give an interval: they have three degrees of freedom.
pub const FEWEST: usize = 4;

/// The mean of a setting over its rounds, with its 95 % interval. `None` for fewer than [`FEWEST`] rounds, and for
/// values that are not finite.
pub fn rounds_ci(values: &[f64]) -> Option<Interval> {
    if values.len() < FEWEST || !values.iter().all(|v| v.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = critical(n - 1.0, MIN_BLOCKS) * (variance / n).sqrt();
    let (low, high) = (mean - half, mean + half);
    (low.is_finite() && high.is_finite()).then_some(Interval { low, mid: mean, high })
}

/// The ratio of the first to the second value of each round, with its 95 % interval, from the mean of the logarithms.
/// `None` if [`rounds_ci`] gives none, or if a value of a round is zero.
pub fn rounds_ratio(pairs: &[(f64, f64)]) -> Option<Interval> {
    let logs: Vec<f64> = pairs.iter().map(|(over, under)| (over / under).ln()).collect();
    let found = rounds_ci(&logs)?;
    let high = found.high.exp();
    high.is_finite().then(|| Interval { low: found.low.exp(), mid: found.mid.exp(), high })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_interval_takes_four_rounds() {
        assert_eq!(rounds_ci(&[1.0, 2.0, 3.0]), None);
        let i = rounds_ci(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        // Student's t of three degrees of freedom is 3.182, and the standard error is 0.6455.
        assert!((i.mid - 2.5).abs() < 1e-12 && (i.high - 2.5 - 2.054).abs() < 1e-3, "{i:?}");
        assert_eq!(rounds_ci(&[1.0, 2.0, 3.0, f64::NAN]), None);
    }

    #[test]
    fn what_drifts_with_both_settings_leaves_their_ratio_alone() {
        let pairs: Vec<_> = (1..7).map(|i| (f64::from(i) * 3.0, f64::from(i))).collect();
        let i = rounds_ratio(&pairs).unwrap();
        assert!((i.low - 3.0).abs() < 1e-9 && (i.high - 3.0).abs() < 1e-9, "{i:?}");
        let over: Vec<f64> = pairs.iter().map(|p| p.0).collect();
        assert!(rounds_ci(&over).unwrap().low < 6.0);
    }

    #[test]
    fn nothing_has_no_ratio() {
        for bad in [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (-1.0, 1.0)] {
            assert_eq!(rounds_ratio(&[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), bad]), None);
        }
    }

    proptest! {
        #[test]
        fn whatever_was_measured_an_interval_is_finite_and_in_order(
            pairs in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..12),
        ) {
            if let Some(i) = rounds_ratio(&pairs) {
                prop_assert!(0.0 <= i.low && i.low <= i.mid && i.mid <= i.high, "{i:?}");
                prop_assert!(i.high.is_finite());
            }
        }
    }
}
