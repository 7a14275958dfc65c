//! Ratios: of two series that were read at the same times, and of two independent means.

use super::{Interval, mean_ci};

/// The mean of `over` divided by the mean of `under`, two series read at the same times, with its 95 % interval. `None`
/// if [`mean_ci`] gives none, if the series differ in length, or if the divisor is zero.
///
/// The difference between each value of `over` and its expected share of `under` is a series around zero, whose mean is
/// as uncertain as the ratio (Cochran, Sampling Techniques, 1977, section 6.4).
pub fn ratio_ci(over: &[f64], under: &[f64]) -> Option<Interval> {
    let below: f64 = under.iter().sum();
    if over.len() != under.len() || below <= 0.0 {
        return None;
    }
    let mid = over.iter().sum::<f64>() / below;
    let rest = over.iter().zip(under).map(|(o, u)| o - mid * u);
    let error = mean_ci(&rest.collect::<Vec<f64>>())?;
    let half = (error.high - error.low) / 2.0 / (below / under.len() as f64);
    let (low, high) = (mid - half, mid + half);
    (low.is_finite() && high.is_finite()).then_some(Interval { low, mid, high })
}

/// The mean `after` divided by the mean `before`, two positive means that are known independently of each other. `None`
/// if either interval reaches zero: the ratio could then be anything.
///
/// The distance of each estimate from an end of its interval counts as an error. Errors are added as squares, in the
/// logarithm, and for each side separately (MOVER: Zou and Donner, Statistics in Medicine 27, 2008).
pub fn change(before: Interval, after: Interval) -> Option<Interval> {
    if before.low <= 0.0 || after.low <= 0.0 {
        return None;
    }
    let ln = |end: f64, mid: f64| (end / mid).ln();
    let down = ln(after.low, after.mid).hypot(ln(before.high, before.mid));
    let up = ln(after.high, after.mid).hypot(ln(before.low, before.mid));
    let mid = after.mid / before.mid;
    let (low, high) = (mid * (-down).exp(), mid * up.exp());
    (low > 0.0 && high.is_finite()).then_some(Interval { low, mid, high })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(low: f64, mid: f64, high: f64) -> Interval {
        Interval { low, mid, high }
    }

    #[test]
    fn a_change_is_as_uncertain_as_both_ends_together() {
        let surely = change(of(10.0, 10.0, 10.0), of(20.0, 20.0, 20.0)).unwrap();
        assert_eq!((surely.low, surely.mid, surely.high), (2.0, 2.0, 2.0));
        let one = change(of(10.0, 10.0, 10.0), of(19.0, 20.0, 21.0)).unwrap();
        assert!((one.low - 1.9).abs() < 1e-9 && (one.high - 2.1).abs() < 1e-9);
        let two = change(of(9.5, 10.0, 10.5), of(19.0, 20.0, 21.0)).unwrap();
        assert!(two.low < one.low && one.high < two.high, "{two:?}");
        assert!(1.85 < two.low && two.high < 2.16, "{two:?}");
    }

    #[test]
    fn what_may_be_nothing_has_no_ratio() {
        assert_eq!(change(of(0.0, 1.0, 2.0), of(1.0, 1.0, 1.0)), None);
        assert_eq!(change(of(1.0, 1.0, 1.0), of(-1.0, 1.0, 2.0)), None);
    }

    #[test]
    fn a_ratio_of_series_that_swing_together_is_known_better_than_either() {
        let under: Vec<f64> = (0..30).map(|i| f64::from(100 + (i * 37) % 50)).collect();
        let over: Vec<f64> = under.iter().map(|u| 2.0 * u).collect();
        let exact = ratio_ci(&over, &under).unwrap();
        assert!((exact.mid - 2.0).abs() < 1e-9 && exact.high - exact.low < 1e-9);
        let apart: Vec<f64> = (0..30).map(|i| f64::from(200 + (i * 11) % 50)).collect();
        let loose = ratio_ci(&apart, &under).unwrap();
        assert!(loose.low < loose.mid && loose.mid < loose.high);
    }

    #[test]
    fn too_little_and_nothing_have_no_ratio() {
        assert_eq!(ratio_ci(&[1.0; 9], &[1.0; 9]), None);
        assert_eq!(ratio_ci(&[1.0; 20], &[0.0; 20]), None);
        assert_eq!(ratio_ci(&[1.0; 20], &[1.0; 19]), None);
        assert_eq!(ratio_ci(&[], &[]), None);
    }

    proptest! {
        #[test]
        fn whatever_was_read_an_interval_is_finite_and_in_order(
            values in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..30),
            ends in prop::array::uniform6(prop::num::f64::ANY),
        ) {
            let (over, under): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
            if let Some(i) = ratio_ci(&over, &under) {
                prop_assert!(i.low.is_finite() && i.low <= i.mid && i.mid <= i.high, "{i:?}");
            }
            let sorted = |at: usize| {
                let mut three = [ends[at], ends[at + 1], ends[at + 2]];
                three.sort_by(f64::total_cmp);
                of(three[0], three[1], three[2])
            };
            if let Some(i) = change(sorted(0), sorted(3)) {
                prop_assert!(i.low > 0.0 && i.high.is_finite(), "{i:?}");
                prop_assert!(i.low <= i.mid && i.mid <= i.high, "{i:?}");
            }
        }
    }
}
