//! Comparison of two settings, measured in interleaved slices, that may be stopped early.
//!
//! Slices come in blocks A B B A, B A A B, A B B A ... (A is the unchanged setting, B the changed one). Each block
//! holds two *pairs* of neighbours, and the logarithm of a pair's ratio B/A is the unit of the statistics:
//!
//! - Within a pair, slow drift and level shifts that last longer than a slice mostly cancel.
//! - Successive pairs run AB, BA, BA, AB ...: for a series whose slices correlate with coefficient
//!   r, neighbouring pairs' errors correlate by +r(1-r)/2, -r(1-r)/2, + ..., which cancels in the
//!   variance of their mean; for a random walk (r -> 1) they are independent. So the pairs may be
//!   treated as independent for every AR(1), however strong, which no unit of consecutive slices
//!   could be. A linear drift enters pairs with alternating sign: it cancels in the mean, and only
//!   widens the interval.
//! - The interval is checked at the end of blocks only, where both orders of a pair are equally frequent.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Interval;

/// Fewest blocks that give an interval: 4 pairs, so 3 degrees of freedom.
pub const MIN_BLOCKS: usize = 2;

/// Largest number of blocks of a comparison, whatever number is requested.
pub const MAX_BLOCKS: usize = 12;

/// Number of slices in a block.
pub(super) const BLOCK: usize = 4;

/// Smallest value that a slice counts with, as a share of the fastest slice. A slice in which the path was dead then
/// gives a large ratio, not an infinite one.
const FLOOR: f64 = 1e-3;

/// How much wider intervals become for each unit of the logarithm of the number of checks.
///
/// Calibrated by simulation (tests/offline/statistics.rs of the engine) for 1 to 11 checks, so that the interval at
/// which a comparison was stopped covers the truth in 95 to 96 % of all trials. Repeated significance tests of one
/// hypothesis need more (Pocock, Biometrika 64, 1977: 1.23 times for 5 checks): such tests stop when they find a
/// difference, while a comparison here stops when the interval *agrees* with a prediction.
const PER_LOOK: f64 = 0.045;

/// The pushed slice is not the next one of the A B B A pattern, or the comparison is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("slice {at} of a comparison is not the next one of its pattern")]
pub struct OutOfOrder {
    /// Number of the expected slice, from 0.
    pub at: usize,
}

/// The comparison of two settings. Its result is the ratio of the changed setting to the unchanged one.
///
/// [`Comparison::next_changed`] tells which setting to measure next. Push the measured value, check
/// [`Comparison::interval`] after each slice, and stop when
/// - the interval lies in one predicted range and outside all others, or
/// - [`Interval::widened`] by 2, the interval lies outside all predicted ranges: nothing can be proved, or
/// - [`Comparison::finished`].
///
/// The width of the intervals allows for these repeated checks: it is calibrated for a first check after [`MIN_BLOCKS`]
/// blocks, and one after every block up to the number declared at the start. A rule that stops as soon as *some* range
/// is excluded would need wider intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    max_blocks: usize,
    values: Vec<f64>,
}

impl Comparison {
    /// Starts a comparison of at most `max_blocks` blocks of four slices. The number is kept within [`MIN_BLOCKS`] and
    /// [`MAX_BLOCKS`].
    pub fn new(max_blocks: usize) -> Self {
        Self { max_blocks: max_blocks.clamp(MIN_BLOCKS, MAX_BLOCKS), values: Vec::new() }
    }

    /// The setting to measure next: true is the changed one (B). `None` when the comparison is finished.
    pub fn next_changed(&self) -> Option<bool> {
        (!self.finished()).then(|| is_changed(self.values.len()))
    }

    /// Adds the value (goodput, round-trip time) of the next slice.
    ///
    /// Negative, infinite and undefined values count as zero: nothing moved. A value below a thousandth of the largest
    /// one counts as that thousandth. The call fails if the slice is not the next one of the pattern; the comparison
    /// then stays as it was.
    pub fn push(&mut self, changed: bool, value: f64) -> Result<(), OutOfOrder> {
        if self.next_changed() != Some(changed) {
            return Err(OutOfOrder { at: self.values.len() });
        }
        let usable = value.is_finite() && value > 0.0;
        self.values.push(if usable { value } else { 0.0 });
        Ok(())
    }

    /// Number of slices measured so far.
    pub fn slices(&self) -> usize {
        self.values.len()
    }

    /// Whether all declared blocks are complete, so that the last interval is final.
    pub fn finished(&self) -> bool {
        self.values.len() >= self.max_blocks * BLOCK
    }

    /// The ratio B/A with its 95 % interval, over the complete blocks. `None` while there are fewer than [`MIN_BLOCKS`]
    /// blocks, and if every slice was zero.
    pub fn interval(&self) -> Option<Interval> {
        let blocks = self.values.len() / BLOCK;
        if blocks < MIN_BLOCKS {
            return None;
        }
        let pairs = log_ratios(self.values.get(..blocks * BLOCK)?)?;
        let n = pairs.len() as f64;
        let mean = pairs.iter().sum::<f64>() / n;
        let variance = pairs.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = critical(n - 1.0, self.max_blocks) * (variance / n).sqrt();
        Some(Interval { low: (mean - half).exp(), mid: mean.exp(), high: (mean + half).exp() })
    }
}

/// Whether slice `at` is measured with the changed setting (B). The pattern A B B A B A A B repeats.
fn is_changed(at: usize) -> bool {
    matches!(at % 8, 1 | 2 | 4 | 7)
}

/// The logarithm of B/A for each pair of slices; `None` if every slice was zero.
fn log_ratios(values: &[f64]) -> Option<Vec<f64>> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let share = |v: f64| (v / largest).max(FLOOR).ln();
    let pairs = values.chunks_exact(2).enumerate().map(|(k, pair)| {
        let forward = share(pair[1]) - share(pair[0]);
        if is_changed(2 * k) { -forward } else { forward }
    });
    Some(pairs.collect())
}

/// The factor by which the standard error is multiplied at a check with `freedom` degrees of freedom: Student's t, made
/// wider for the number of checks.
pub(super) fn critical(freedom: f64, max_blocks: usize) -> f64 {
    let looks = (max_blocks.clamp(MIN_BLOCKS, MAX_BLOCKS) - MIN_BLOCKS + 1) as f64;
    let widened = 1.0 + PER_LOOK * looks.ln();
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::MAX, |t| widened * t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fed(max: usize, values: impl Fn(bool, usize) -> f64, slices: usize) -> Comparison {
        let mut c = Comparison::new(max);
        for at in 0..slices {
            let b = c.next_changed().unwrap();
            c.push(b, values(b, at)).unwrap();
        }
        c
    }

    #[test]
    fn slices_run_in_mirrored_blocks() {
        let order: Vec<bool> = (0..8).map(is_changed).collect();
        assert_eq!(order, [false, true, true, false, true, false, false, true]);
    }

    #[test]
    fn a_linear_drift_cancels() {
        // The drift is linear in the logarithm, so that it cancels exactly.
        let c = fed(2, |b, at| (0.1 * at as f64).exp() * if b { 0.5 } else { 1.0 }, 8);
        let i = c.interval().unwrap();
        assert!((i.mid - 0.5).abs() < 1e-12, "{i:?}");
        assert!(i.low < 0.5 && 0.5 < i.high);
    }

    #[test]
    fn an_interval_needs_two_whole_blocks() {
        let value = |_, at| 1.0 + at as f64 / 100.0;
        assert_eq!(fed(4, value, 7).interval(), None);
        let eight = fed(4, value, 8).interval();
        assert!(eight.is_some());
        assert_eq!(fed(4, value, 11).interval(), eight, "a part of a block waits");
        assert_ne!(fed(4, value, 12).interval(), eight);
    }

    #[test]
    fn a_dead_slice_is_finite_and_a_dead_path_has_no_ratio() {
        let c = fed(2, |b, at| if b && at < 4 { f64::NAN } else { 100.0 }, 8);
        let i = c.interval().unwrap();
        assert!(i.low.is_finite() && i.high.is_finite() && i.mid > 0.0);
        assert!(i.mid < 0.1 && i.low > 0.0);
        assert_eq!(fed(2, |_, _| 0.0, 8).interval(), None);
        assert_eq!(fed(2, |_, _| -1.0, 8).interval(), None);
    }

    #[test]
    fn slices_out_of_order_are_refused_and_change_nothing() {
        let mut c = Comparison::new(2);
        assert_eq!(c.push(true, 1.0), Err(OutOfOrder { at: 0 }));
        assert_eq!(c.slices(), 0);
        let mut full = fed(2, |_, _| 1.0, 8);
        assert!(full.finished());
        assert_eq!(full.next_changed(), None);
        assert_eq!(full.push(false, 1.0), Err(OutOfOrder { at: 8 }));
    }

    proptest! {
        #[test]
        fn whatever_is_pushed_the_interval_is_finite_and_in_order(
            values in prop::collection::vec(prop::num::f64::ANY, 48),
            max in 0_usize..20,
        ) {
            let mut c = Comparison::new(max);
            for value in values {
                if let Some(b) = c.next_changed() {
                    c.push(b, value).unwrap();
                }
                if let Some(i) = c.interval() {
                    prop_assert!(i.low.is_finite() && i.high.is_finite(), "{i:?}");
                    prop_assert!(0.0 <= i.low && i.low <= i.mid && i.mid <= i.high, "{i:?}");
                }
            }
        }

        #[test]
        fn the_unit_of_the_values_does_not_matter(
            values in prop::collection::vec(1.0_f64..100.0, 16),
            unit in 1e-6_f64..1e12,
        ) {
            let of = |unit: f64| fed(4, |_, at| values[at] * unit, 16).interval().unwrap();
            let (one, other) = (of(1.0), of(unit));
            prop_assert!((one.low / other.low - 1.0).abs() < 1e-6);
            prop_assert!((one.high / other.high - 1.0).abs() < 1e-6);
        }
    }
}
