//! A value of a figure, the part of a measurement that it describes, and its uncertainty.

use linerate_plan::path::{Direction, Side};
use linerate_units::stats::{Count, Interval, change, share_change};

/// The part of a measurement that a value describes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Subject {
    /// Direction of the load; `None` for the idle path.
    pub direction: Option<Direction>,
    /// The end that is described; `None` for figures that do not differ by end.
    pub side: Option<Side>,
    /// The percentile that is described; `None` for figures without percentiles.
    pub percentile: Option<f64>,
}

impl Subject {
    /// The load of a direction, without an end or a percentile.
    pub const fn load(direction: Direction) -> Self {
        Self { direction: Some(direction), side: None, percentile: None }
    }
}

/// How well a value is known. A ratio of two values is computed from the evidence of both.
#[derive(Debug, Clone, PartialEq)]
pub enum Evidence {
    /// The variation of the value is unknown.
    None,
    /// The 95 % interval of the value.
    Interval(Interval),
    /// The value's relative error in either direction, at 95 %; and its interval, if the samples give one.
    Relative(f64, Option<Interval>),
    /// Number of events in equal parts of the time, each with the number of all that could have been one.
    Counts(Vec<Count>),
}

/// A value of a figure, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The value, in the unit of its figure.
    pub mid: f64,
    /// How well the value is known.
    pub evidence: Evidence,
}

impl Value {
    /// A value without evidence.
    pub const fn bare(mid: f64) -> Self {
        Self { mid, evidence: Evidence::None }
    }

    /// A value with this interval, whose middle it is.
    pub const fn within(interval: Interval) -> Self {
        Self { mid: interval.mid, evidence: Evidence::Interval(interval) }
    }

    /// The number of events over all that could have been one; `None` if nothing could.
    pub fn share(counts: Vec<Count>) -> Option<Self> {
        let of: f64 = counts.iter().map(|count| count.of).sum();
        let events: f64 = counts.iter().map(|count| count.events).sum();
        (of > 0.0).then(|| Self { mid: events / of, evidence: Evidence::Counts(counts) })
    }

    /// The 95 % interval of the value, if there is one.
    pub fn interval(&self) -> Option<Interval> {
        match self.evidence {
            Evidence::Interval(interval) => Some(interval),
            Evidence::Relative(_, interval) => interval,
            Evidence::None | Evidence::Counts(_) => None,
        }
    }

    /// The ratio of this value to `before`, with its 95 % interval; `None` if the evidence of the two gives no ratio.
    pub fn over(&self, before: &Self) -> Option<Interval> {
        match (&before.evidence, &self.evidence) {
            (Evidence::Relative(a, _), Evidence::Relative(b, _)) => {
                relative(before.mid, self.mid, a.hypot(*b))
            }
            (Evidence::Counts(a), Evidence::Counts(b)) => share_change(a, b),
            _ => change(before.interval()?, self.interval()?),
        }
    }

    /// Whether the value counts events, and there were none.
    pub fn is_no_event(&self) -> bool {
        matches!(self.evidence, Evidence::Counts(_)) && self.mid <= 0.0
    }
}

/// The ratio of two values, with an interval; `wide` is the relative error of that ratio.
fn relative(before: f64, after: f64, wide: f64) -> Option<Interval> {
    let mid = after / before;
    let wide = 1.0 + wide;
    (mid.is_finite() && mid > 0.0 && wide.is_finite()).then_some(Interval {
        low: mid / wide,
        mid,
        high: mid * wide,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(mid: f64, evidence: Evidence) -> Value {
        Value { mid, evidence }
    }

    #[test]
    fn a_ratio_needs_evidence_of_one_kind_on_both_sides() {
        let rate = |mid: f64, off: f64| value(mid, Evidence::Relative(off, None));
        let ratio = rate(4.0, 0.03).over(&rate(2.0, 0.04)).unwrap();
        assert!((ratio.mid - 2.0).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.high - 2.1).abs() < 1e-9 && (ratio.low - 2.0 / 1.05).abs() < 1e-9);
        assert_eq!(rate(4.0, 0.03).over(&rate(0.0, 0.03)), None);
        assert_eq!(Value::bare(4.0).over(&rate(2.0, 0.1)), None);
        assert_eq!(Value::bare(4.0).over(&Value::bare(2.0)), None);
    }

    #[test]
    fn intervals_of_an_estimate_and_of_another_program_have_a_ratio() {
        let interval = |mid: f64| Interval { low: mid * 0.99, mid, high: mid * 1.01 };
        let own = value(2.0, Evidence::Relative(0.01, Some(interval(2.0))));
        let ratio = Value::within(interval(4.0)).over(&own).unwrap();
        assert!(ratio.low > 1.9 && ratio.high < 2.1, "{ratio:?}");
    }

    #[test]
    fn a_share_is_of_all_that_could_have_been_an_event() {
        let count = |events| Count { events, of: 100.0 };
        let share = Value::share(vec![count(0.0), count(4.0)]).unwrap();
        assert!((share.mid - 0.02).abs() < 1e-9 && !share.is_no_event());
        assert!(Value::share(vec![count(0.0)]).unwrap().is_no_event());
        assert_eq!(Value::share(Vec::new()), None);
        assert!(!Value::bare(0.0).is_no_event());
    }
}
