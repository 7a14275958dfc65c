//! Time as a function of size: a floor, and the rate that large messages approach.

use crate::Bounds;
use linerate_units::stats::median;
use linerate_units::{Bytes, Nanos};

/// Largest number of points of a sweep that are used.
pub const MOST_POINTS: usize = 1_000;

/// Fewest spans (pairs of neighbouring sizes) that give a rate.
const FEWEST_SPANS: usize = 4;

/// Smallest size from which a span counts, in multiples of the size that reaches half of the rate: below it the
/// fixed time dominates, not the rate.
const LARGE: f64 = 4.0;

/// Most passes that search the set of used sizes; the set settles after two passes in every known sweep.
const PASSES: usize = 8;

/// Smallest difference, as a share, between the rate of a span and the rate of the fit at which the span is a knee.
const KNEE: f64 = 0.03;

/// One message size of a sweep, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Size of the message.
    pub size: Bytes,
    /// Time in one direction, or of a round trip: any, if it is alike for all points. Only the floor depends on it.
    pub time: Nanos,
}

/// A span between two sizes in which the rate differs from that of the fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// The smaller size of the span.
    pub from: Bytes,
    /// The larger size of the span.
    pub to: Bytes,
    /// Rate of the span, in bits per second.
    pub rate: f64,
}

/// A sweep as a fitted line.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Shortest time of any message size.
    pub floor: Nanos,
    /// Rate of the line in bits per second: what one more byte costs among large messages. It is the median of the
    /// spans between neighbouring sizes.
    pub rate: f64,
    /// The interval that contains the median slope of the spans in 95 of 100 sweeps, in bits per second.
    pub interval: Bounds,
    /// Number of spans that the rate was computed from.
    pub spans: usize,
    /// Size at which size over time is half of `rate`; the time includes the floor.
    pub half: Bytes,
    /// Spans among large messages whose rate differs from `rate`.
    pub knees: Vec<Knee>,
}

/// Two points of neighbouring sizes, and the rate between them.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: Point,
    to: Point,
    rate: f64,
}

/// Fits a sweep; `None` if too few of its sizes are large enough to show a rate.
pub fn fit(points: &[Point]) -> Option<Fit> {
    let points = ordered(points);
    let spans = spans(&points);
    let floor = points.iter().map(|p| p.time).min()?;
    // Start with the spans of the largest messages: they show the rate best, and any sweep has them.
    let mut large: Vec<Span> = spans.iter().rev().take(FEWEST_SPANS).copied().collect();
    for _ in 0..PASSES {
        let rate = median(&sorted(&large))?;
        let half = rate / 8.0 * floor.secs();
        let counting = |s: &&Span| s.from.size.0 as f64 >= LARGE * half;
        let next: Vec<Span> = spans.iter().filter(counting).copied().collect();
        let settled = next.len() == large.len();
        large = next;
        if settled {
            break;
        }
    }
    if large.len() < FEWEST_SPANS {
        return None;
    }
    let rate = median(&sorted(&large))?;
    let knee = |s: &&Span| (s.rate / rate - 1.0).abs() > KNEE;
    Some(Fit {
        floor,
        rate,
        interval: interval(&large),
        spans: large.len(),
        half: half(&points, rate)?,
        knees: large
            .iter()
            .filter(knee)
            .map(|s| Knee { from: s.from.size, to: s.to.size, rate: s.rate })
            .collect(),
    })
}

/// The points sorted by size, one for each size: of several times the shortest, which other traffic disturbed least.
pub(super) fn ordered(points: &[Point]) -> Vec<Point> {
    let mut all: Vec<Point> = points.iter().take(MOST_POINTS).copied().collect();
    all.retain(|p| p.time.0 > 0);
    all.sort_by_key(|p| (p.size, p.time));
    all.dedup_by_key(|p| p.size);
    all
}

/// Pairs of neighbouring points between which the time increases; without an increase a pair has no rate.
fn spans(points: &[Point]) -> Vec<Span> {
    let span = |pair: &[Point]| {
        let [from, to] = *pair else { return None };
        let time = to.time.0.checked_sub(from.time.0).filter(|t| *t > 0)?;
        let rate = (to.size.0 - from.size.0) as f64 * 8e9 / time as f64;
        Some(Span { from, to, rate })
    };
    points.windows(2).filter_map(span).collect()
}

fn sorted(spans: &[Span]) -> Vec<f64> {
    let mut rates: Vec<f64> = spans.iter().map(|s| s.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// The interval between two of the sorted rates that holds the median in 95 of 100 draws, by the binomial
/// distribution; from the lowest to the highest rate if there are too few.
//= Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2
fn interval(spans: &[Span]) -> Bounds {
    let rates = sorted(spans);
    let n = rates.len();
    let mut below = 0.0;
    let mut ways = 0.5f64.powi(n as i32);
    let mut cut = 0;
    // Twice the probability that at most `cut` of n values are below the median.
    for k in 0..n / 2 {
        below += ways;
        if 2.0 * below > 0.05 {
            break;
        }
        cut = k + 1;
        ways *= (n - k) as f64 / (k + 1) as f64;
    }
    let low = cut.saturating_sub(1).min(n - 1);
    Bounds::new(rates[low], rates[n - 1 - low])
}

/// The size at which size over time reaches half of `rate`, on a straight line between the two nearest points.
fn half(points: &[Point], rate: f64) -> Option<Bytes> {
    let of = |p: &Point| p.size.0 as f64 * 8.0 / p.time.secs() / rate;
    let above = points.iter().position(|p| of(p) >= 0.5)?;
    let to = &points[above];
    let Some(from) = above.checked_sub(1).map(|i| &points[i]) else {
        return Some(to.size);
    };
    let (a, b) = (of(from), of(to));
    let share = (0.5 - a) / (b - a);
    let size = from.size.0 as f64 + share * (to.size.0 - from.size.0) as f64;
    Some(Bytes(size as u64))
}

#[cfg(test)]
mod tests {
    use super::super::draw::Draw;
    use super::*;
    use proptest::prelude::*;

    /// Points of a line with a floor and a rate, at `sizes` sizes that double.
    fn line(floor_ns: f64, gigabits: f64, sizes: u32) -> Vec<Point> {
        let point = |i: u32| {
            let size = 1u64 << i;
            let time = floor_ns + size as f64 * 8.0 / gigabits;
            Point { size: Bytes(size), time: Nanos(time as u64) }
        };
        (0..sizes).map(point).collect()
    }

    fn is_near(a: f64, b: f64, by: f64) -> bool {
        (a / b - 1.0).abs() <= by
    }

    #[test]
    fn a_line_gives_back_its_rate_floor_and_half_size() {
        for (floor, gigabits) in [(1_000.0, 100.0), (20_000.0, 1.0), (300.0, 0.01)] {
            let fit = fit(&line(floor, gigabits, 30)).unwrap();
            assert!(is_near(fit.rate, gigabits * 1e9, 0.001), "{fit:?}");
            assert!(fit.interval.contains(fit.rate));
            assert!(fit.floor.0 as f64 >= floor);
            let half = floor * gigabits / 8.0;
            assert!(half < 2.0 || is_near(fit.half.0 as f64, half, 0.1), "{fit:?}");
            assert_eq!(fit.knees, []);
        }
    }

    #[test]
    fn too_few_large_sizes_give_nothing() {
        // 100 Gb/s and 1 us: half of the rate at 12.5 kB, so sizes from 50 kB on count: 2^16 to 2^20 are four spans.
        assert_eq!(fit(&line(1_000.0, 100.0, 21)).unwrap().spans, 4);
        assert_eq!(fit(&line(1_000.0, 100.0, 20)), None);
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&line(1_000.0, 100.0, 1)), None);
    }

    #[test]
    fn one_size_that_is_off_makes_a_knee_and_no_other_rate() {
        let mut points = line(1_000.0, 10.0, 24);
        let last = points.last_mut().unwrap();
        last.time = Nanos((last.time.0 as f64 * 1.04) as u64);
        let off = fit(&points).unwrap();
        assert!(is_near(off.rate, 1e10, 0.002), "{off:?}");
        let [knee] = off.knees.as_slice() else { panic!("{off:?}") };
        assert_eq!((knee.from, knee.to), (Bytes(1 << 22), Bytes(1 << 23)));
        points.pop();
        assert_eq!(fit(&points).unwrap().knees, []);
    }

    /// Points of a line with noise in the times; 5 % of the times are 1.2 to 3 times as long.
    fn disturbed(draw: &mut Draw, noise: f64) -> Vec<Point> {
        let mut points = line(1_000.0, 10.0, 24);
        for point in &mut points {
            let factor = draw.normal(noise).exp() * draw.late();
            point.time = Nanos((point.time.0 as f64 * factor) as u64);
        }
        points
    }

    #[test]
    fn a_few_late_times_change_no_rate() {
        let mut draw = Draw(0x1234_5685);
        // Noise of the times; and the error of the rate that 95 % of the sweeps must not exceed.
        for (noise, most) in [(0.0, 0.002), (0.005, 0.01), (0.03, 0.06)] {
            let sweeps = 400;
            let (mut near, mut inside) = (0, 0);
            for _ in 0..sweeps {
                let fit = fit(&disturbed(&mut draw, noise)).unwrap();
                near += usize::from(is_near(fit.rate, 1e10, most));
                inside += usize::from(fit.interval.contains(1e10));
                assert!((fit.rate / 1e10 - 1.0).abs() < 0.2, "{fit:?}");
            }
            println!("{noise}: {near} near, {inside} inside of {sweeps}");
            assert!(near * 100 >= 95 * sweeps, "{noise}: {near}");
            assert!(noise == 0.0 || inside * 100 >= 95 * sweeps, "{noise}: {inside}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic_or_lie_outside_of_its_interval(
            points in prop::collection::vec((0u64.., 0u64..), 0..40),
        ) {
            let points: Vec<Point> = points
                .into_iter()
                .map(|(size, time)| Point { size: Bytes(size), time: Nanos(time) })
                .collect();
            if let Some(fit) = fit(&points) {
                prop_assert!(fit.rate.is_finite() && fit.rate > 0.0);
                prop_assert!(fit.knees.len() <= fit.spans);
            }
        }
    }
}
