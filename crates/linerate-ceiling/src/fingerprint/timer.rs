//! Finds times that a timer sets. If a card holds its interrupts back, or a kernel works at its tick, messages go
//! at whole periods: the time of a message is flat over sizes, and then rises in steps of equal height.
//!
//! A fitted line has no steps: where its time is above the floor, each doubling of the size adds to the time. So a
//! time that is flat above the floor is no line, and steps at whole multiples of one time show a timer.

use super::fit::{Fit, Point, fit, ordered};
use linerate_units::stats::median;
use linerate_units::{Bytes, Nanos};

/// A timer that a sweep shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// Time between two ticks, or a whole multiple of it. If round trips wait for a timer at each end, it is the
    /// sum of the two waits.
    pub period: Nanos,
    /// Number of points of the sweep whose time is this period or a multiple of it.
    pub points: usize,
}

/// Fewest points that the first step must have.
const FIRST: usize = 3;
/// Least ratio of the largest size to the smallest size of the first step.
const WIDE: u64 = 8;
/// Times that differ by no more than this share count as equal.
const SAME: f64 = 0.005;
/// A time that exceeds the first step by more than this share is no part of it.
const ABOVE: f64 = 0.03;
/// Highest step that is judged, in periods: above it, noise is as large as the distance to the next step.
const HIGHEST: f64 = 12.0;
/// How far a time may be from a step: the sum of a share of the period and a share of the time.
const OFF: [f64; 2] = [0.02, 0.004];
/// Fewest points that must be at higher steps.
const HIGHER: usize = 2;
/// Two neighbouring sizes have the same time: the rate of large messages must predict a rise of at least this share.
const RISE: f64 = 0.03;
/// Largest difference between the times of these two sizes, and between them and a step, as shares.
const STILL: [f64; 2] = [0.002, 0.005];

/// Returns the timer that a sweep shows; `None` if it shows none.
pub fn timer(points: &[Point]) -> Option<Timer> {
    let points = ordered(points);
    let (period, first, end) = first_step(&points, SAME)?;
    // Larger sizes only: a smaller size with a longer time was disturbed.
    let above = points.iter().filter(|point| {
        let steps = point.time.0 as f64 / period;
        point.size > end && steps > 1.0 + ABOVE && steps <= HIGHEST
    });
    let above: Vec<&Point> = above.collect();
    let is_at = |point: &&&Point| {
        from_step(point, period) <= OFF[0] * period + OFF[1] * point.time.0 as f64
    };
    let at_steps = above.iter().filter(is_at).count();
    let is_dense = above.windows(2).all(|pair| pair[1].size.0 <= 2 * pair[0].size.0);
    let all_at_steps = at_steps >= HIGHER && 2 * (above.len() - at_steps) <= at_steps;
    let higher = if is_dense && all_at_steps {
        at_steps
    } else if fit(&points).is_some_and(|fit| stands_still(&points, period, &fit)) {
        // Points that are less close may be at a step by chance, so they do not count.
        let is_still = |point: &&&Point| from_step(point, period) <= STILL[1] * point.time.0 as f64;
        above.iter().filter(is_still).count()
    } else {
        return None;
    };
    Some(Timer { period: Nanos(period as u64), points: first + higher })
}

/// The time that most of the shortest times share, the number of these times, and their largest size. `None` if too
/// few are equal, or if their sizes are too close. Times are equal if they differ by no more than the share `same`.
pub(super) fn first_step(points: &[Point], same: f64) -> Option<(f64, usize, Bytes)> {
    let least = points.iter().map(|point| point.time.0).min()? as f64;
    // A single time that is too short must not hide the step: the step may begin at any of the shortest times.
    let starts = points.iter().map(|point| point.time.0 as f64);
    let starts = starts.filter(|time| *time <= least * (1.0 + ABOVE));
    let of = |start: f64| {
        let within = |point: &&Point| {
            let time = point.time.0 as f64;
            (start..=start * (1.0 + same)).contains(&time)
        };
        points.iter().filter(within).collect::<Vec<&Point>>()
    };
    let step = starts.map(of).max_by_key(Vec::len)?;
    let (smallest, largest) = (step.first()?, step.last()?);
    let is_wide = largest.size.0 >= smallest.size.0.saturating_mul(WIDE);
    let mut times: Vec<f64> = step.iter().map(|point| point.time.0 as f64).collect();
    times.sort_by(f64::total_cmp);
    let period = median(&times)?;
    (step.len() >= FIRST && is_wide).then_some((period, step.len(), largest.size))
}

/// Distance in nanoseconds of a time from the nearest whole number of periods, two or more.
pub(super) fn from_step(point: &Point, period: f64) -> f64 {
    let time = point.time.0 as f64;
    let step = (time / period).round().max(2.0);
    (time - step * period).abs()
}

/// Whether two neighbouring sizes have the same time, at a step, although the rate of large messages predicts a rise.
fn stands_still(points: &[Point], period: f64, fit: &Fit) -> bool {
    let mut pairs = points.windows(2);
    pairs.any(|pair| {
        let [from, to] = [pair[0], pair[1]];
        let (low, high) = (from.time.0 as f64, to.time.0 as f64);
        let rise = (to.size.0 - from.size.0) as f64 * 8e9 / fit.rate;
        let is_same = (high / low - 1.0).abs() <= STILL[0];
        let is_at = |point: &Point| from_step(point, period) <= STILL[1] * low;
        let is_low = low <= HIGHEST * period;
        is_same && is_low && rise >= RISE * low && pair.iter().all(is_at)
    })
}

#[cfg(test)]
mod tests {
    use super::super::draw::Draw;
    use super::*;

    fn points(times: &[(u64, f64)]) -> Vec<Point> {
        let point = |(size, micros): &(u64, f64)| Point {
            size: Bytes(*size),
            time: Nanos((micros * 1e3) as u64),
        };
        times.iter().map(point).collect()
    }

    /// Published one-way times in microseconds by size, for sockets between two cards whose driver holds interrupts
    /// back.
    const HELD: [(u64, f64); 12] = [
        (8, 200.02),
        (64, 200.02),
        (512, 199.99),
        (2048, 378.09),
        (4096, 400.95),
        (8192, 401.45),
        (16384, 417.79),
        (32768, 900.17),
        (65536, 1810.75),
        (131_072, 3899.35),
        (262_144, 7686.67),
        (524_288, 14_123.33),
    ];

    /// Published one-way times in microseconds by size, for sockets between two cards of another type.
    const OTHER: [(u64, f64); 12] = [
        (8, 118.08),
        (64, 104.68),
        (512, 141.55),
        (2048, 176.95),
        (4096, 189.26),
        (8192, 288.70),
        (16384, 373.21),
        (32768, 613.52),
        (65536, 1122.05),
        (131_072, 1952.56),
        (262_144, 3632.72),
        (524_288, 7034.63),
    ];

    #[test]
    fn the_published_table_of_held_interrupts_shows_its_timer() {
        let found = timer(&points(&HELD)).unwrap();
        assert!((199_500..200_500).contains(&found.period.0), "{found:?}");
        // Three points at 200 us and two at 400 us; 1810.75 us is near a ninth multiple by chance and does not count.
        assert_eq!(found.points, 5);
        assert_eq!(timer(&points(&OTHER)), None);
    }

    /// A random sweep of sizes that double: a floor and a rate, perhaps with another rate or floor for large
    /// messages, noise, and 5 % of the times too long. With `tick`, a timer of that period delays the messages.
    fn sweep(draw: &mut Draw, noise: f64, tick: Option<f64>) -> Vec<Point> {
        let floor = match tick {
            Some(tick) => tick * draw.between(0.1, 0.95),
            None => draw.between(2.0, 200.0),
        };
        let gigabits = draw.between(0.5, 10.0);
        let (turn, slower) = (draw.between(12.0, 18.0), draw.between(0.5, 1.0));
        let (jump, higher) = (draw.between(8.0, 16.0), draw.between(1.0, 3.0));
        let times = (1..24).map(|k| {
            let size = 1_u64 << k;
            let rate =
                if tick.is_none() && f64::from(k) > turn { gigabits * slower } else { gigabits };
            let jumped = tick.is_none() && f64::from(k) > jump;
            let own = floor * if jumped { higher } else { 1.0 };
            let plain = own + size as f64 * 8e-3 / rate;
            let time = tick.map_or(plain, |tick| (plain / tick).ceil() * tick);
            let late = draw.late();
            (size, time * draw.normal(noise).exp() * late)
        });
        points(&times.collect::<Vec<_>>())
    }

    #[test]
    fn sweeps_without_a_timer_name_none() {
        let mut draw = Draw(0x1234_5677);
        for noise in [0.001, 0.01, 0.03] {
            for n in 0..300 {
                let sweep = sweep(&mut draw, noise, None);
                assert_eq!(timer(&sweep), None, "{noise} {n}: {sweep:?}");
            }
        }
    }

    #[test]
    fn timers_are_found_with_their_period() {
        let mut draw = Draw(0x1234_5679);
        let mut found = 0;
        for n in 0..500 {
            let tick = draw.between(20.0, 1000.0);
            let sweep = sweep(&mut draw, 0.001, Some(tick));
            let Some(timer) = timer(&sweep) else {
                continue;
            };
            found += 1;
            let off = timer.period.0 as f64 / (tick * 1e3) - 1.0;
            assert!(off.abs() < 0.02, "{n}: {off} {sweep:?}");
        }
        assert!(found >= 475, "{found} of 500");
    }

    #[test]
    fn few_points_show_none() {
        assert_eq!(timer(&[]), None);
        let flat = points(&[(2, 200.0), (4, 200.0), (8, 200.0), (16, 200.0)]);
        assert_eq!(timer(&flat), None);
    }
}
