//! An interval: the lowest and the highest possible value of a quantity.

/// Upper limit of every value in [`Bounds`]: larger than any real rate, price or size, and far from an overflow.
const LARGEST: f64 = 1e18;

/// Which end of every interval is used: the one that gives the least goodput, or the one that gives the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end that gives the least goodput.
    Low,
    /// The end that gives the most goodput.
    High,
}

impl End {
    /// Both ends of an interval.
    pub const ALL: [Self; 2] = [Self::Low, Self::High];

    /// End of a cost interval that gives this end of the goodput: the high cost gives the low goodput.
    pub(super) const fn of_cost(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }
}

/// The range from `low` to `high`, both included, in the unit of its context. `0 <= low <= high`, and both are
/// finite, whatever the input was.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// The range between two values, given in either order.
    pub fn new(a: f64, b: f64) -> Self {
        let (a, b) = (sane(a), sane(b));
        Self { low: a.min(b), high: a.max(b) }
    }

    /// The interval of a value that is known exactly.
    pub fn exact(value: f64) -> Self {
        Self::new(value, value)
    }

    /// The interval from the smallest to the largest of `values`; zero when there is none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let around = |sum: Self, v: f64| Self::new(sum.low.min(sane(v)), sum.high.max(sane(v)));
        let mut values = values.into_iter();
        let first = values.next().map_or_else(Self::default, Self::exact);
        values.fold(first, around)
    }

    /// Lower end of the interval.
    pub const fn low(self) -> f64 {
        self.low
    }

    /// Upper end of the interval.
    pub const fn high(self) -> f64 {
        self.high
    }

    /// The end of the interval that `end` names.
    pub const fn at(self, end: End) -> f64 {
        match end {
            End::Low => self.low,
            End::High => self.high,
        }
    }

    /// Whether lower and upper end are equal, except for rounding.
    pub fn is_exact(self) -> bool {
        self.high - self.low <= self.high * 1e-9
    }

    /// Whether `value` is inside the interval, ends included.
    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The interval with both ends multiplied by a factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self::new(self.low * factor, self.high * factor)
    }

    /// The value in words, or both ends of the interval with a shared unit named once: `9.41 to 9.49 Gb/s`.
    pub fn words(self, one: impl Fn(f64) -> String) -> String {
        let (low, high) = (one(self.low), one(self.high));
        if low == high {
            return low;
        }
        match (low.split_once(' '), high.split_once(' ')) {
            (Some((number, a)), Some((_, b))) if a == b => format!("{number} to {high}"),
            _ => format!("{low} to {high}"),
        }
    }
}

fn sane(value: f64) -> f64 {
    if value.is_nan() {
        return 0.0;
    }
    value.clamp(0.0, LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_makes_bounds_that_are_not_bounds() {
        for (a, b) in [(f64::NAN, 2.0), (-1.0, 2.0), (f64::INFINITY, 2.0), (3.0, 2.0)] {
            let bounds = Bounds::new(a, b);
            assert!(0.0 <= bounds.low && bounds.low <= bounds.high, "{bounds:?}");
            assert!(bounds.high.is_finite());
        }
        assert_eq!(Bounds::of([2.0, 1.0, 3.0]), Bounds::new(1.0, 3.0));
        assert_eq!(Bounds::of([]), Bounds::exact(0.0));
    }

    #[test]
    fn words_name_a_common_unit_once_and_a_value_is_no_interval() {
        let words = |a, b| Bounds::new(a, b).words(|v| linerate_units::Rate(v as u64).to_string());
        assert_eq!(words(9.41e9, 9.41e9), "9.41 Gb/s");
        assert_eq!(words(9.41e9, 9.49e9), "9.41 to 9.49 Gb/s");
        assert_eq!(words(949e6, 2e9), "949 Mb/s to 2 Gb/s");
        assert_eq!(Bounds::new(1.0, 2.0).words(|v| v.to_string()), "1 to 2");
    }
}
