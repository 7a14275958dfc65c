//! Simulated round trips of a connection.

use std::collections::BTreeMap;

use linerate_units::stats::Histogram;

use super::flow::{ThreadCounts, Work};
use super::noise::Random;

/// Most round-trip times that are drawn in one tick; further round trips of the tick get the same times.
const DRAWN: u64 = 16;

/// CPU time that one end needs for one round trip, in seconds.
const PER_TRIP: f64 = 5e-6;

/// A connection whose round trips are measured.
#[derive(Debug)]
pub(super) struct Ping {
    pub size: f64,
    /// Seconds between two messages. With zero, each message is sent when the previous one is answered.
    pub interval: f64,
    /// CPUs of both ends' threads, near end first.
    pub work: [Work; 2],
    pub counts: ThreadCounts,
    pub rtt: f64,
    pub min_rtt: f64,
    /// Fraction of the next round trip that has passed.
    due: f64,
    seen: BTreeMap<u64, u64>,
}

impl Ping {
    pub(super) fn new(size: u64, interval: f64, rtt: f64, work: [Work; 2]) -> Self {
        Self {
            size: size as f64,
            interval,
            work,
            counts: ThreadCounts::default(),
            rtt,
            min_rtt: rtt,
            due: 0.0,
            seen: BTreeMap::new(),
        }
    }

    /// Simulates the round trips of `dt` seconds on a path whose round-trip time, including queues, is `rtt`.
    pub(super) fn advance(
        &mut self,
        dt: f64,
        rtt: f64,
        spread: f64,
        counted: bool,
        random: &mut Random,
    ) {
        self.rtt = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        let every = if self.interval > 0.0 { self.interval } else { rtt + 2.0 * PER_TRIP };
        self.due += dt / every;
        let trips = self.due.floor();
        self.due -= trips;
        let trips = trips as u64;
        self.counts.bytes += trips as f64 * self.size;
        self.counts.ops += 2.0 * trips as f64;
        self.counts.kernel += trips as f64 * PER_TRIP;
        let drawn = trips.min(DRAWN);
        for k in 0..if counted { drawn } else { 0 } {
            let share = trips / drawn + u64::from(k < trips % drawn);
            let time = (rtt + 2.0 * PER_TRIP) * (spread * random.normal()).exp();
            *self.seen.entry(three_digits(time * 1e9)).or_default() += share;
        }
    }

    /// Takes the round-trip times since the last call.
    pub(super) fn take(&mut self, set: u32) -> Histogram {
        Histogram {
            set,
            counts: std::mem::take(&mut self.seen).into_iter().collect(),
            ..Histogram::default()
        }
    }
}

/// Rounds a value to three significant digits.
fn three_digits(value: f64) -> u64 {
    let step = 10.0_f64.powf((value.max(1.0).log10().floor() - 2.0).max(0.0));
    ((value / step).round() * step) as u64
}
