//! Comparison of the share of rare events in two settings, such as retransmitted segments among the sent ones.
//!
//! Events come in bursts (a queue that overflows loses many packets at once), so their number varies more than that of
//! independent events. The slices themselves show how much more it varies, and how many events count as one
//! (quasi-Poisson: McCullagh and Nelder, Generalized Linear Models, 1989, section 6.2.3).

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::Interval;
use super::compare::{BLOCK, MIN_BLOCKS, critical};

/// The counts of one slice: events, and occasions at which one could have happened.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Count {
    /// Number of events, such as retransmitted segments.
    pub events: f64,
    /// Number of occasions for an event, such as sent segments.
    pub of: f64,
}

/// Number of events in a setting above which further events do not make its share more certain.
const ENOUGH: f64 = 1e4;

/// Quantile of the normal distribution that bounds a two-sided interval of 95 %.
const NORMAL: f64 = 1.96;

/// The share of events in the changed setting (B) divided by the share in the unchanged one (A), with a 95 % interval.
/// It covers the complete blocks of a comparison of at most `max_blocks`; slices are in the order of measurement.
/// `None` if there are fewer blocks than an interval needs, or if no event happened.
///
/// Each share is the rate of a Poisson process with Jeffreys' prior, so that a setting without events has an upper
/// bound too. The ratio of the two shares follows the F distribution.
pub fn share_ratio(slices: &[(bool, Count)], max_blocks: usize) -> Option<Interval> {
    let blocks = slices.len() / BLOCK;
    if blocks < MIN_BLOCKS {
        return None;
    }
    let whole = slices.get(..blocks * BLOCK)?;
    let [a, b] = [false, true].map(|changed| {
        let own = whole.iter().filter(|(setting, _)| *setting == changed);
        Setting::of(own.map(|(_, count)| count))
    });
    ratio(&a, &b, |freedom| critical(freedom, max_blocks))
}

/// The share of events `after` a change divided by the share `before`, with its 95 % interval. Each slice of both is
/// one part of a stretch of time. `None` if no event happened, or if either has fewer than two slices.
pub fn share_change(before: &[Count], after: &[Count]) -> Option<Interval> {
    if before.len() < 2 || after.len() < 2 {
        return None;
    }
    let [a, b] = [before, after].map(Setting::of);
    ratio(&a, &b, |freedom| critical(freedom, MIN_BLOCKS))
}

/// The share of `b` divided by the share of `a`. `critical` gives the factor of the standard error for a number of
/// degrees of freedom.
fn ratio(a: &Setting, b: &Setting, critical: impl Fn(f64) -> f64) -> Option<Interval> {
    if a.of <= 0.0 || b.of <= 0.0 || a.events + b.events <= 0.0 {
        return None;
    }
    let (spread, freedom) = overdispersion(&[a, b]);
    let [in_a, in_b] = [a, b].map(|s| (s.events / spread).min(ENOUGH));
    let share = |s: &Setting| (s.events / spread + 0.5) / s.of;
    let mid = share(b) / share(a);
    let ratio = FisherSnedecor::new(2.0 * in_b + 1.0, 2.0 * in_a + 1.0).ok()?;
    let interval = Interval {
        low: mid * ratio.inverse_cdf(0.025).min(1.0),
        mid,
        high: mid * ratio.inverse_cdf(0.975).max(1.0),
    };
    // The interval is made wider: the spread is only an estimate, and the comparison is checked repeatedly before it
    // ends.
    let interval = interval.widened(critical(freedom) / NORMAL);
    let finite = interval.low.is_finite() && interval.high.is_finite();
    (finite && interval.low <= mid && mid <= interval.high).then_some(interval)
}

/// All slices of one setting, and their sums.
struct Setting {
    slices: Vec<Count>,
    events: f64,
    of: f64,
}

impl Setting {
    fn of<'a>(slices: impl IntoIterator<Item = &'a Count>) -> Self {
        let usable = |v: f64| if v.is_finite() { v.max(0.0) } else { 0.0 };
        let slices: Vec<Count> = slices
            .into_iter()
            .map(|count| Count { events: usable(count.events), of: usable(count.of) })
            .collect();
        Self {
            events: slices.iter().map(|c| c.events).sum(),
            of: slices.iter().map(|c| c.of).sum(),
            slices,
        }
    }
}

/// The mean number of events that happen together, at least one (Pearson's chi-squared over its degrees of freedom),
/// and the degrees of freedom. A setting without events adds nothing to either.
fn overdispersion(settings: &[&Setting]) -> (f64, f64) {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for setting in settings.iter().filter(|s| s.events > 0.0) {
        freedom += setting.slices.len() as f64 - 1.0;
        for slice in setting.slices.iter().filter(|s| s.of > 0.0) {
            let expected = slice.of * setting.events / setting.of;
            squares += (slice.events - expected).powi(2) / expected;
        }
    }
    let freedom = freedom.max(1.0);
    ((squares / freedom).max(1.0), freedom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ORDER: [bool; 8] = [false, true, true, false, true, false, false, true];

    /// Slices of two or more blocks, with `a` or `b` events among a thousand in each slice of A or B.
    fn slices(blocks: usize, a: f64, b: f64) -> Vec<(bool, Count)> {
        let of = |changed| Count { events: if changed { b } else { a }, of: 1000.0 };
        let order = ORDER.iter().cycle().take(blocks * 4);
        order.map(|&changed| (changed, of(changed))).collect()
    }

    /// A small random generator (SplitMix64), with Poisson numbers (Knuth's method).
    struct Dice(u64);

    impl Dice {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }
        fn poisson(&mut self, mean: f64) -> f64 {
            let (bound, mut product, mut n) = ((-mean).exp(), self.uniform(), 0.0);
            while product > bound {
                product *= self.uniform();
                n += 1.0;
            }
            n
        }
    }

    #[test]
    fn the_same_share_is_one_and_half_of_it_a_half() {
        let same = share_ratio(&slices(5, 20.0, 20.0), 5).expect("counted");
        assert!((same.mid - 1.0).abs() < 1e-9, "{same:?}");
        let half = share_ratio(&slices(5, 200.0, 100.0), 5).expect("counted");
        assert!((half.mid - 0.5).abs() < 0.01, "{half:?}");
        assert!(half.low > 0.4 && half.high < 0.6, "{half:?}");
        assert!(same.high - same.low > half.high - half.low);
    }

    #[test]
    fn what_vanished_has_an_upper_bound_that_many_events_lower() {
        let bound = |a| share_ratio(&slices(2, a, 0.0), 5).expect("counted").high;
        assert!(bound(2.0) > 0.3, "{}", bound(2.0));
        assert!(bound(50.0) < 0.1, "{}", bound(50.0));
    }

    #[test]
    fn bursts_count_as_few() {
        let mut rough = slices(5, 20.0, 20.0);
        for (at, (_, count)) in rough.iter_mut().enumerate() {
            count.events = if at % 4 < 2 { 0.0 } else { 40.0 };
        }
        let (even, rough) = (slices(5, 20.0, 20.0), rough);
        let width = |s: &[(bool, Count)]| {
            let i = share_ratio(s, 5).expect("counted");
            (i.high / i.low).ln()
        };
        assert!(width(&rough) > 3.0 * width(&even));
    }

    #[test]
    fn nothing_and_too_little_say_nothing() {
        assert_eq!(share_ratio(&slices(5, 0.0, 0.0), 5), None);
        assert_eq!(share_ratio(&slices(2, 9.0, 9.0)[..7], 5), None);
        let mut dead = slices(2, 9.0, 0.0);
        for (_, count) in dead.iter_mut().filter(|(changed, _)| *changed) {
            count.of = 0.0;
        }
        assert_eq!(share_ratio(&dead, 5), None, "nothing was sent");
    }

    #[test]
    fn parts_of_two_stretches_compare_as_slices_do_and_few_say_nothing() {
        let parts = |events| vec![Count { events, of: 1000.0 }; 10];
        let half = share_change(&parts(200.0), &parts(100.0)).expect("counted");
        assert!((half.mid - 0.5).abs() < 0.01 && half.high < 0.6, "{half:?}");
        assert!(share_change(&parts(0.0), &parts(50.0)).expect("counted").low > 5.0);
        assert_eq!(share_change(&parts(0.0), &parts(0.0)), None);
        assert_eq!(share_change(&parts(9.0)[..1], &parts(9.0)), None);
    }

    /// Checks that the interval covers the truth as often as it claims: for single losses and bursts of five, and for
    /// shares that stay, halve and fall to a tenth.
    #[test]
    fn the_interval_covers_the_truth() {
        let mut dice = Dice(1);
        for (burst, ratio) in [(1.0, 1.0), (5.0, 1.0), (1.0, 0.5), (5.0, 0.1)] {
            let runs = 400;
            let mut covered = 0;
            for _ in 0..runs {
                let mut slices = slices(5, 0.0, 0.0);
                for (changed, count) in &mut slices {
                    let mean = if *changed { 8.0 * ratio } else { 8.0 };
                    count.events = burst * dice.poisson(mean);
                }
                let interval = share_ratio(&slices, 5);
                covered += usize::from(interval.is_some_and(|i| i.low <= ratio && ratio <= i.high));
            }
            assert!(covered >= runs * 93 / 100, "{burst} {ratio}: {covered}");
        }
    }

    proptest! {
        #[test]
        fn whatever_was_counted_the_interval_is_finite_and_in_order(
            counts in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 20),
            max in 0_usize..20,
        ) {
            let slices: Vec<(bool, Count)> = counts
                .iter()
                .zip(ORDER.iter().cycle())
                .map(|(&(events, of), &changed)| (changed, Count { events, of }))
                .collect();
            if let Some(i) = share_ratio(&slices, max) {
                prop_assert!(i.low.is_finite() && i.high.is_finite(), "{i:?}");
                prop_assert!(0.0 <= i.low && i.low <= i.mid && i.mid <= i.high, "{i:?}");
            }
        }
    }
}
