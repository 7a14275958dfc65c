//! Finds a free-running timer, by the spread of the round trips of each of many sizes.
//!
//! The typical times alone are not enough: on a long path whose window grows by round trips, they too are flat and
//! rise in equal steps. But there no round trip is shorter than that of the path. Where packets wait for a
//! free-running timer, a message that arrives just before a tick is answered early.

use super::timer::{Timer, first_step, from_step};
use super::{MOST_POINTS, Point};
use linerate_units::stats::median;
use linerate_units::{Bytes, Nanos};

/// Shortest and median round trip of one message size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// Size of the message and of its answer.
    pub size: Bytes,
    /// Shortest round trip of this size.
    pub least: Nanos,
    /// Median of the round trips of this size.
    pub typical: Nanos,
}

/// Typical times that differ by no more than this share count as equal.
const SAME: f64 = 0.02;
/// Fewest sizes that must have the same typical time.
const FLAT: usize = 6;
/// Of all sizes up to the largest flat one, at least this share must have the same time.
const FLAT_SHARE: f64 = 0.75;
/// The shortest round trip, as a share of the typical one: half of the flat sizes must be at or below it, as some
/// messages are answered early.
const EARLY: f64 = 0.8;
/// The flat sizes would differ by at least this share of their time, had they the rate of larger messages.
const RISE: f64 = 0.1;
/// A time counts as longer than the first step if it exceeds it by this share.
const ABOVE: f64 = 0.5;
/// Largest distance of a time from a whole number of periods at which it counts as one, as a share of the period.
const OFF: f64 = 0.05;

/// Returns the timer that the round trips of a sweep show; `None` if they show none.
pub fn tick(rows: &[Spread]) -> Option<Timer> {
    let mut rows: Vec<Spread> = rows.iter().take(MOST_POINTS).copied().collect();
    rows.sort_by_key(|row| row.size);
    let points: Vec<Point> = rows.iter().map(point).collect();
    let (period, flat, end) = first_step(&points, SAME)?;
    let within: Vec<&Spread> = rows.iter().filter(|row| row.size <= end).collect();
    let is_flat = flat >= FLAT && flat as f64 >= within.len() as f64 * FLAT_SHARE;
    let mut early: Vec<f64> = within.iter().map(|row| share(row)).collect();
    early.sort_by(f64::total_cmp);
    if !is_flat || median(&early)? > EARLY || rise(&points, end)? < RISE * period {
        return None;
    }
    let above = points.iter().filter(|point| point.size > end);
    let at_steps = above.filter(|point| from_step(point, period) <= OFF * period);
    Some(Timer { period: Nanos(period as u64), points: flat + at_steps.count() })
}

fn point(row: &Spread) -> Point {
    Point { size: row.size, time: row.typical }
}

/// The shortest round trip as a share of the typical one.
fn share(row: &Spread) -> f64 {
    row.least.0 as f64 / (row.typical.0 as f64).max(1.0)
}

/// Nanoseconds by which the flat sizes would differ at the rate of larger messages; `None` if no larger message
/// takes longer.
fn rise(points: &[Point], end: Bytes) -> Option<f64> {
    let flat = points.iter().find(|point| point.size == end)?;
    let largest = points.last()?;
    let longer = largest.time.0 as f64 - flat.time.0 as f64;
    let is_longer = largest.size > end && longer > ABOVE * flat.time.0 as f64;
    let bytes = largest.size.0.saturating_sub(end.0) as f64;
    let smallest = points.first()?.size.0;
    is_longer.then(|| longer / bytes.max(1.0) * (end.0 - smallest) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::draw::Draw;
    use super::*;

    fn row(size: u64, least: f64, typical: f64) -> Spread {
        Spread {
            size: Bytes(size),
            least: Nanos((least * 1e3) as u64),
            typical: Nanos((typical * 1e3) as u64),
        }
    }

    /// Rows for sizes from 2 B to 8 MiB. `times` gives the shortest and the typical time of a size, in microseconds.
    fn rows(times: impl FnMut(u64) -> (f64, f64)) -> Vec<Spread> {
        let mut times = times;
        let sized = (1..24).map(|k| {
            let size = 1 << k;
            let (least, typical) = times(size);
            row(size, least, typical)
        });
        sized.collect()
    }

    /// Typical times as measured where packets were held until a tick of 200 us; with shortest times.
    fn held() -> Vec<Spread> {
        let above = [375.0, 773.0, 1390.0, 2760.0, 5180.0, 11_600.0];
        rows(|size| match size.ilog2() {
            ..=17 => (75.0, 198.0 + f64::from(size.ilog2() % 3) * 0.2),
            k => (above[k as usize - 18] * 0.75, above[k as usize - 18]),
        })
    }

    #[test]
    fn packets_that_wait_for_a_tick_show_its_period() {
        let found = tick(&held()).unwrap();
        assert!((196_000..204_000).contains(&found.period.0), "{found:?}");
        assert!(found.points >= 17, "{found:?}");
    }

    #[test]
    fn a_tick_is_found_where_its_times_scatter_as_measured() {
        // Measured where packets were held until a tick of 1 ms, on a busy machine: shortest and typical time.
        let measured = [
            (196, 990),
            (200, 994),
            (362, 990),
            (367, 989),
            (209, 998),
            (287, 991),
            (219, 995),
            (235, 995),
            (433, 993),
            (245, 992),
            (368, 994),
            (328, 990),
            (366, 994),
            (456, 991),
            (269, 990),
            (400, 995),
            (523, 996),
            (617, 996),
            (813, 993),
            (1942, 2770),
            (4248, 4921),
            (6904, 7895),
            (15_949, 16_560),
        ];
        let rows = rows(|size| {
            let (least, typical) = measured[size.ilog2() as usize - 1];
            (f64::from(least), f64::from(typical))
        });
        let found = tick(&rows).unwrap();
        assert!((980_000..1_000_000).contains(&found.period.0), "{found:?}");
    }

    #[test]
    fn a_long_path_is_no_timer_though_its_window_grows_by_round_trips() {
        // Measured over a path with a round trip of 10 ms.
        let long = rows(|size| {
            let trips = match size.ilog2() {
                ..=13 => 1.0,
                14..=21 => 2.0,
                22 => 4.0,
                _ => 6.0,
            };
            (trips * 10_000.0, trips * 10_100.0)
        });
        assert_eq!(tick(&long), None);
        // A window slows large messages down: the times rise as if a timer held the small ones, but no small one is
        // answered early.
        let answered = |share: f64| {
            let mut rows = held();
            for row in &mut rows {
                row.least = Nanos((row.typical.0 as f64 * share) as u64);
            }
            tick(&rows)
        };
        assert_eq!(answered(0.85), None, "above the threshold");
        assert!(answered(0.75).is_some(), "below it");
    }

    #[test]
    fn times_that_larger_messages_explain_are_none() {
        // 10 Gb/s over a round trip of 20 us: small messages are flat, as the rate of larger ones predicts.
        let line = rows(|size| (10.0, 20.0 + size as f64 * 16e-4));
        assert_eq!(tick(&line), None);
        let few: Vec<Spread> = held().split_off(12);
        assert_eq!(tick(&few), None, "few sizes");
        let flat_alone: Vec<Spread> = held().into_iter().take(17).collect();
        assert_eq!(tick(&flat_alone), None, "nothing larger");
        assert_eq!(tick(&[]), None);
    }

    /// A random sweep over a path with a floor and a rate, with noise in the medians. If `period` is set, a timer
    /// answers some messages early.
    fn drawn(draw: &mut Draw, period: Option<f64>) -> Vec<Spread> {
        let floor = match period {
            Some(period) => period * draw.between(0.1, 0.7),
            None => draw.between(5.0, 500.0),
        };
        let gigabits = draw.spread(0.5, 40.0);
        let early = draw.between(0.2, 0.7);
        rows(|size| {
            let plain = floor + size as f64 * 16e-3 / gigabits;
            let waited = period.map_or(plain, |period| (plain / period).ceil() * period);
            let noise = if period.is_some() { 0.003 } else { 0.01 };
            (waited * early, waited * draw.normal(noise).exp())
        })
    }

    #[test]
    fn simulated_ticks_are_found_and_none_where_there_is_none() {
        let mut draw = Draw(0x51ed_2701);
        let mut found = 0;
        for n in 0..500 {
            let period = draw.spread(20.0, 10_000.0);
            let Some(timer) = tick(&drawn(&mut draw, Some(period))) else {
                continue;
            };
            found += 1;
            let off = timer.period.0 as f64 / (period * 1e3) - 1.0;
            assert!(off.abs() < 0.02, "{n}: {off}");
        }
        assert!(found >= 475, "{found} of 500");
        for n in 0..300 {
            let rows = drawn(&mut draw, None);
            assert_eq!(tick(&rows), None, "{n}: {rows:?}");
        }
    }
}
