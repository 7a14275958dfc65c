//! Percentiles of histograms, if there are enough samples, and the median of a few values.

use std::borrow::Cow;

use super::{Interval, exact};
use crate::stats::Histogram;

/// Number of samples that must lie on the thinner side of a percentile.
///
/// The number of samples beyond the true percentile is then Poisson with a mean of 10 or more: in 95 % of cases the
/// share that really lies beyond the reported value is within a factor of two of the requested share. With fewer
/// samples the share could be anything.
pub const BEYOND: f64 = 10.0;

/// The median of values in ascending order: of an even number of values, the mean of the two in the middle. `None` if
/// there are no values.
pub fn median(ascending: &[f64]) -> Option<f64> {
    let below = ascending.len().checked_sub(1)? / 2;
    let (low, high) = (ascending.get(below)?, ascending.get(ascending.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Number of samples in a histogram.
pub fn samples(histogram: &Histogram) -> u64 {
    let counts = histogram.counts.iter().map(|&(_, n)| n);
    counts.fold(0, u64::saturating_add)
}

/// The value that the share `q` (0 to 1) of all samples does not exceed. `None` if fewer than [`BEYOND`] samples lie on
/// either side of this value: 1,000 samples support p99, and 10,000 p99.9.
pub fn percentile(histogram: &Histogram, q: f64) -> Option<u64> {
    let all = samples(histogram) as f64;
    // A share such as 0.99 is not exact in binary: the check allows a millionth of a sample.
    if !(0.0..=1.0).contains(&q) || q.min(1.0 - q) * all + 1e-6 < BEYOND {
        return None;
    }
    at_rank(histogram, (q * all - 1e-6).ceil())
}

/// Fewest samples for a median. The shortest and the longest of six samples enclose the true median in 97 of 100 draws,
/// those of five in 94.
//= Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2
const MIDDLE: u64 = 6;

/// The median of the samples; `None` if there are fewer than six samples.
pub fn middle(histogram: &Histogram) -> Option<u64> {
    let all = samples(histogram);
    (all >= MIDDLE).then(|| at_rank(histogram, (all as f64 / 2.0).ceil()))?
}

/// Quantile of the normal distribution that bounds a two-sided interval of 95 %.
const NORMAL: f64 = 1.96;

/// A percentile with its 95 % interval; `None` in the same cases as for [`percentile`]. The ends of the interval are
/// samples. Their ranks follow from the binomial number of samples below the percentile (Conover, Practical
/// Nonparametric Statistics, 1999, section 3.2).
///
/// The interval is exact for independent round trips. Round trips through one queue resemble their neighbours, so the
/// true interval is at least this wide.
pub fn percentile_ci(histogram: &Histogram, q: f64) -> Option<Interval> {
    let mid = percentile(histogram, q)?;
    let all = samples(histogram) as f64;
    let half = NORMAL * (all * q * (1.0 - q)).sqrt();
    let low = at_rank(histogram, (q * all - half).floor())?;
    let high = at_rank(histogram, (q * all + half).ceil() + 1.0)?;
    Some(Interval { low: low as f64, mid: mid as f64, high: high as f64 })
}

/// The value of the sample with this rank. Ranks start at 1 and end at the number of samples.
fn at_rank(histogram: &Histogram, rank: f64) -> Option<u64> {
    let rank = (rank.max(1.0) as u64).min(samples(histogram));
    let mut counts = Cow::Borrowed(&histogram.counts[..]);
    // Counts that were read from a file may be in any order.
    if !counts.is_sorted() {
        counts.to_mut().sort_unstable();
    }
    let mut seen = 0_u64;
    let found = counts.iter().find(|&&(_, n)| {
        seen = seen.saturating_add(n);
        seen >= rank
    });
    let value = found.map(|&(value, _)| value)?;
    // Counts are rounded to three digits, so the value is kept between the shortest and the longest time.
    Some(match histogram.exact {
        Some(exact) => value.max(exact.least).min(exact.most),
        None => value,
    })
}

/// Merges several histograms into one, which has the set id of the first. `None` if there are none.
pub fn merge<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Option<Histogram> {
    let mut rest = histograms.into_iter();
    let mut merged = rest.next()?.clone();
    for histogram in rest {
        merged.exact = exact::joined(&merged, histogram);
        merged.counts.extend_from_slice(&histogram.counts);
        merged.unread.extend_from_slice(&histogram.unread);
        merged.unanswered = merged.unanswered.saturating_add(histogram.unanswered);
        merged.lost = merged.lost.saturating_add(histogram.lost);
    }
    for counts in [&mut merged.counts, &mut merged.unread] {
        counts.sort_unstable();
        counts.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(later.1);
            }
            same
        });
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(counts: Vec<(u64, u64)>) -> Histogram {
        Histogram { set: 0, counts, ..Histogram::default() }
    }

    #[test]
    fn a_median_lies_between_the_two_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let thousand = of((1..=1000).map(|v| (v, 1)).collect());
        assert_eq!(percentile(&thousand, 0.5), Some(500));
        assert_eq!(percentile(&thousand, 0.99), Some(990));
        assert_eq!(percentile(&thousand, 0.999), None);
        assert_eq!(percentile(&of((1..=990).map(|v| (v, 1)).collect()), 0.99), None);
        assert_eq!(percentile(&of(vec![(7, 20)]), 0.5), Some(7));
        assert_eq!(percentile(&of(vec![(7, 18)]), 0.5), None);
        assert_eq!(percentile(&thousand, f64::NAN), None);
    }

    #[test]
    fn a_rounded_value_is_within_the_exact_extremes() {
        let mut rounded = of(vec![(1000, 20)]);
        let exact = |least, most| crate::stats::Exact { least, most, ..Default::default() };
        rounded.exact = Some(exact(1002, 1003));
        assert_eq!(percentile(&rounded, 0.5), Some(1002));
        rounded.exact = Some(exact(997, 999));
        assert_eq!(percentile(&rounded, 0.5), Some(999));
        rounded.exact = Some(exact(9, 1));
        assert_eq!(percentile(&rounded, 0.5), Some(1), "a hostile record");
    }

    #[test]
    fn a_middle_needs_six_samples() {
        let first = |n: u64| middle(&of((1..=n).map(|v| (v, 1)).collect()));
        assert_eq!([5, 6, 7].map(first), [None, Some(3), Some(4)]);
        assert_eq!(middle(&of(vec![(9, u64::MAX), (1, 1)])), Some(9));
    }

    #[test]
    fn an_interval_lies_between_the_ranks_that_the_percentile_may_have() {
        let thousand = of((1..=1000).map(|v| (v, 1)).collect());
        let i = percentile_ci(&thousand, 0.5).unwrap();
        assert_eq!((i.low, i.mid, i.high), (469.0, 500.0, 532.0));
        let tail = percentile_ci(&thousand, 0.99).unwrap();
        assert_eq!((tail.low, tail.mid, tail.high), (983.0, 990.0, 998.0));
        assert_eq!(percentile_ci(&thousand, 0.999), None);
        let same = percentile_ci(&of(vec![(7, 20)]), 0.5).unwrap();
        assert_eq!((same.low, same.high), (7.0, 7.0));
    }

    #[test]
    fn hostile_counts_do_not_overflow() {
        assert!(percentile_ci(&of(vec![(2, u64::MAX), (1, u64::MAX)]), 0.5).is_some());
        let huge = of(vec![(2, u64::MAX), (1, u64::MAX)]);
        assert_eq!(percentile(&huge, 0.5), Some(1));
        assert_eq!(merge([&huge, &huge]).unwrap().counts[0], (1, u64::MAX));
        assert_eq!(merge([]), None);
    }

    proptest! {
        #[test]
        fn merged_halves_are_the_whole(values in prop::collection::vec(0_u64..50, 40..200), cut in 0_usize..40) {
            let sparse = |v: &[u64]| merge(&v.iter().map(|&x| of(vec![(x, 1)])).collect::<Vec<_>>())
                .unwrap_or(of(vec![]));
            let whole = sparse(&values);
            let halves = merge([&sparse(&values[..cut]), &sparse(&values[cut..])]).unwrap();
            prop_assert_eq!(&whole, &halves);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = values.len().div_ceil(2) - 1;
            prop_assert_eq!(percentile(&whole, 0.5), Some(sorted[rank]));
        }
    }
}
