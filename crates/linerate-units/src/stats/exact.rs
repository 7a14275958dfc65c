//! Mean and deviation of times. They are exact: the times were summed as they were measured, while histograms keep
//! three digits.

use super::samples;
use crate::stats::{Exact, Histogram};

/// Mean and standard deviation of times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Mean time, in nanoseconds.
    pub mean: f64,
    /// Standard deviation in nanoseconds, with the number of samples as the divisor.
    pub deviation: f64,
}

/// The moments of a histogram's times; `None` if it has no times, or was made by a version that did not sum them.
pub fn moments(histogram: &Histogram) -> Option<Moments> {
    let exact = histogram.exact?;
    let all = samples(histogram);
    (all > 0).then(|| Moments {
        mean: exact.sum as f64 / all as f64,
        deviation: exact.deviation_ps as f64 / 1e3,
    })
}

/// The exact figures of two histograms together; `None` if one has times but no exact figures.
pub(super) fn joined(one: &Histogram, other: &Histogram) -> Option<Exact> {
    let (a, b) = match (moments(one), moments(other)) {
        (Some(a), Some(b)) => (a, b),
        (Some(_), None) if samples(other) == 0 => return one.exact,
        (None, Some(_)) if samples(one) == 0 => return other.exact,
        _ => return None,
    };
    let (first, second) = (one.exact?, other.exact?);
    let (m, n) = (samples(one) as f64, samples(other) as f64);
    let within = m * a.deviation.powi(2) + n * b.deviation.powi(2);
    let between = (a.mean - b.mean).powi(2) * m * n / (m + n);
    Some(Exact {
        least: first.least.min(second.least),
        most: first.most.max(second.most),
        sum: first.sum.saturating_add(second.sum),
        deviation_ps: (((within + between) / (m + n)).sqrt() * 1e3).round() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::super::merge;
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let n = values.len() as f64;
        let mean = values.iter().sum::<u64>() as f64 / n;
        let squares: f64 = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
        Histogram {
            counts: values.iter().map(|v| (*v, 1)).collect(),
            exact: values.iter().min().map(|least| Exact {
                least: *least,
                most: values.iter().max().copied().unwrap_or_default(),
                sum: values.iter().sum(),
                deviation_ps: ((squares / n).sqrt() * 1e3).round() as u64,
            }),
            ..Histogram::default()
        }
    }

    #[test]
    fn parts_that_are_merged_have_the_moments_of_the_whole() {
        let all = [1_000, 1_010, 1_300, 900, 250_000, 1_000];
        let whole = moments(&of(&all)).unwrap();
        let parts = merge([&of(&all[..2]), &of(&all[2..5]), &of(&all[5..])]).unwrap();
        let joined = moments(&parts).unwrap();
        assert!((joined.mean - whole.mean).abs() < 1e-9);
        assert!((joined.deviation - whole.deviation).abs() < 0.01, "{joined:?} {whole:?}");
        let exact = parts.exact.unwrap();
        assert_eq!((exact.least, exact.most, exact.sum), (900, 250_000, 255_210));
    }

    #[test]
    fn what_was_not_summed_is_not_told() {
        let old = Histogram { exact: None, ..of(&[5, 6]) };
        let none = of(&[]);
        assert_eq!(moments(&old), None);
        assert_eq!(moments(&none), None);
        assert_eq!(merge([&of(&[5]), &old]).unwrap().exact, None);
        assert_eq!(merge([&none, &of(&[5])]).unwrap().exact, of(&[5]).exact);
        assert_eq!(merge([&of(&[5]), &none]).unwrap().exact, of(&[5]).exact);
    }

    #[test]
    fn hostile_sums_do_not_overflow() {
        let most = Histogram {
            counts: vec![(1, u64::MAX), (2, u64::MAX)],
            exact: Some(Exact { least: u64::MAX, most: 0, sum: u64::MAX, deviation_ps: u64::MAX }),
            ..Histogram::default()
        };
        let joined = merge([&most, &most]).unwrap();
        assert!(moments(&joined).unwrap().deviation.is_finite());
    }
}
