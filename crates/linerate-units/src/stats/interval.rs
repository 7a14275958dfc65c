//! Intervals of measured values, and ranges of predicted effects.

use serde::{Deserialize, Serialize};

/// An estimate of a ratio or of a mean, with its 95 % interval. `low <= mid <= high`, all finite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// The estimate.
    pub mid: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// Half the width of the interval, as a share of the estimate: 0.004 is written as +-0.4 %. `None` if the estimate
    /// is zero.
    pub fn relative(self) -> Option<f64> {
        (self.mid != 0.0).then(|| (self.high - self.low) / 2.0 / self.mid.abs())
    }

    /// The interval of a ratio, made `factor` times as wide in its logarithm, for decisions that need more than 95 %
    /// confidence. An interval that reaches zero stays as it is.
    #[must_use]
    pub fn widened(self, factor: f64) -> Self {
        if self.low <= 0.0 {
            return self;
        }
        Self {
            low: self.mid * (self.low / self.mid).powf(factor),
            mid: self.mid,
            high: self.mid * (self.high / self.mid).powf(factor),
        }
    }
}

/// The range of effects (ratios of changed to unchanged setting) that a cause predicts, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Smallest predicted ratio.
    pub low: f64,
    /// Largest predicted ratio.
    pub high: f64,
}

/// The range that counts as no change: at most 3 % in either direction.
pub const EQUAL: Range = Range { low: 0.97, high: 1.03 };

impl Range {
    /// The range between two values, in either order.
    pub fn new(a: f64, b: f64) -> Self {
        Self { low: a.min(b), high: a.max(b) }
    }

    /// Whether the whole `interval` is in the range: the effect is as predicted.
    pub fn contains(self, interval: Interval) -> bool {
        self.low <= interval.low && interval.high <= self.high
    }

    /// Whether the whole `interval` is outside the range: the prediction failed.
    pub fn excludes(self, interval: Interval) -> bool {
        interval.high < self.low || self.high < interval.low
    }

    /// Whether the two ranges have a ratio in common, so that a trial may not distinguish the predictions.
    pub fn overlaps(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Whether the interval shows that nothing changed, to within 3 %. This is proof of equality, not just a failure to
/// find a difference.
pub fn is_equal(interval: Interval) -> bool {
    EQUAL.contains(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(low: f64, high: f64) -> Interval {
        Interval { low, mid: f64::midpoint(low, high), high }
    }

    #[test]
    fn equality_needs_the_whole_interval() {
        assert!(is_equal(of(0.97, 1.03)));
        assert!(!is_equal(of(0.969, 1.0)));
        assert!(!is_equal(of(1.0, 1.031)));
        assert!(!is_equal(of(0.5, 2.0)), "wide is not equal");
    }

    #[test]
    fn a_range_excludes_only_what_is_disjoint() {
        let half = Range::new(0.55, 0.45);
        assert!(half.contains(of(0.45, 0.55)));
        assert!(!half.excludes(of(0.55, 0.7)));
        assert!(half.excludes(of(0.551, 0.7)));
        assert!(half.excludes(of(0.3, 0.449)));
        assert!(half.overlaps(Range::new(0.55, 1.0)));
        assert!(!half.overlaps(EQUAL));
    }

    #[test]
    fn the_relative_half_width_is_a_share_of_the_estimate() {
        assert_eq!(of(9.0, 11.0).relative(), Some(0.1));
        assert_eq!(of(0.0, 0.0).relative(), None);
    }
}
