//! Round-trip times of one step.

use hdrhistogram::Histogram;
use linerate_units::stats::Exact;

use super::LoadError;

/// Longest round trip that the counts distinguish, in nanoseconds; longer ones are counted at this value.
const LONGEST_NANOS: u64 = 60_000_000_000;
/// Number of significant digits of a time that the counts keep.
const DIGITS: u8 = 3;

/// Maximum memory for the times of a step in bytes: 1024 counts for each power of two.
pub(super) const ROOM: usize = 256 * 1024;

/// Round-trip times with three significant digits and their counts, and exact sums.
#[derive(Debug, Default)]
pub(super) struct Times {
    counts: Option<Histogram<u64>>,
    sums: Sums,
}

/// Sums of round-trip times, to the nanosecond.
#[derive(Debug, Clone, Copy)]
struct Sums {
    number: u64,
    least: u64,
    most: u64,
    sum: u64,
    squares: u128,
}

impl Default for Sums {
    fn default() -> Self {
        Self { number: 0, least: u64::MAX, most: 0, sum: 0, squares: 0 }
    }
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, nanos: u64, times: u64) {
        let all = nanos.saturating_mul(times);
        self.number += times;
        self.least = self.least.min(nanos);
        self.most = self.most.max(nanos);
        self.sum = self.sum.saturating_add(all);
        let squares = u128::from(nanos) * u128::from(all);
        self.squares = self.squares.saturating_add(squares);
    }

    /// Returns the sums in the form of a record; `None` if no time was added.
    fn exact(&self) -> Option<Exact> {
        let number = self.number as f64;
        let mean = self.sum as f64 / number;
        let variance = self.squares as f64 / number - mean * mean;
        (self.number > 0).then(|| Exact {
            least: self.least,
            most: self.most,
            sum: self.sum,
            deviation_ps: (variance.max(0.0).sqrt() * 1e3).round() as u64,
        })
    }
}

impl Times {
    /// Allocates the memory for the times of a new step, so that recording allocates nothing.
    pub(super) fn renew(&mut self) -> Result<(), LoadError> {
        let room = Histogram::new_with_bounds(1, LONGEST_NANOS, DIGITS);
        self.sums = Sums::default();
        self.counts = Some(room.map_err(|e| LoadError::Unsupported {
            what: format!("no room for round-trip times: {e}"),
        })?);
        Ok(())
    }

    /// Counts `times` round trips, each of `nanos` nanoseconds.
    #[inline(always)]
    pub(super) fn record(&mut self, nanos: u64, times: u64) {
        if let Some(room) = &mut self.counts {
            room.saturating_record_n(nanos, times);
            self.sums.add(nanos, times);
        }
    }

    /// Returns the exact sums of this step's times; `None` if there are none.
    pub(super) fn exact(&self) -> Option<Exact> {
        self.sums.exact()
    }

    /// Takes all times: values in nanoseconds, ascending, each with its count.
    pub(super) fn take(&mut self) -> Vec<(u64, u64)> {
        let Some(room) = self.counts.take() else {
            return Vec::new();
        };
        let each = room.iter_recorded().map(|step| {
            let value = room.median_equivalent(step.value_iterated_to());
            (value, step.count_at_value())
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_kept_to_three_digits_and_a_step_has_its_own() {
        let mut times = Times::default();
        times.record(7, 1);
        assert_eq!(times.take(), [], "before the first step");
        times.renew().unwrap();
        let counts = times.counts.as_ref().unwrap().distinct_values();
        assert!((ROOM / 2..ROOM).contains(&(counts * size_of::<u64>())));
        times.record(1_000_000, 2);
        times.record(500, 1);
        times.record(u64::MAX, 1);
        let reported = times.take();
        assert_eq!(reported.iter().map(|(_, n)| n).sum::<u64>(), 4);
        assert_eq!(reported[0], (500, 1));
        assert!(reported[1].0.abs_diff(1_000_000) < 1_000 && reported[1].1 == 2);
        assert!(reported[2].0 >= LONGEST_NANOS);
        assert_eq!(times.take(), []);
    }

    #[test]
    fn one_long_time_of_a_thousand_stays() {
        let mut times = Times::default();
        times.renew().unwrap();
        times.record(2_000, 500);
        times.record(100_000, 1);
        times.record(2_000, 499);
        assert_eq!(times.exact().map(|exact| exact.most), Some(100_000));
        let reported = times.take();
        assert_eq!((reported[0], reported[1].1), ((2_000, 999), 1));
        assert!(reported[1].0.abs_diff(100_000) < 100, "{reported:?}");
    }

    #[test]
    fn sums_are_exact_where_counts_are_not() {
        let mut times = Times::default();
        assert_eq!(times.exact(), None);
        times.renew().unwrap();
        times.record(1_000_001, 1);
        times.record(1_000_003, 3);
        times.record(90_000_000_001, 1);
        let exact = times.exact().unwrap();
        assert_eq!((exact.least, exact.most), (1_000_001, 90_000_000_001));
        assert_eq!(exact.sum, 90_004_000_011);
        times.renew().unwrap();
        times.record(4, 1);
        times.record(10, 1);
        assert_eq!(times.exact().unwrap().deviation_ps, 3_000);
    }
}
