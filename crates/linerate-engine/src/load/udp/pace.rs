//! When datagrams may be sent: a rate, kept by the sender's own clock in small bursts.
//!
//! `SO_MAX_PACING_RATE` would bind datagrams only where the port's queue is `fq`; this holds everywhere.

use linerate_core::units::Rate;

/// A burst holds about this much time's worth of datagrams, in nanoseconds: what a sleep may be late by.
const BURST_NANOS: u64 = 250_000;
/// A sender that fell behind catches up with this much time's worth at most: a stall is no reason for a
/// flood.
const CREDIT_NANOS: u64 = 1_000_000;

/// The schedule of a sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    bits_per_sec: u64,
    datagram_bits: u64,
    burst: usize,
    /// The schedule counts from here.
    epoch: u64,
    /// Datagrams since.
    sent: u64,
}

impl Pace {
    /// Datagrams of `size` bytes at `rate`, `most` of them in a burst: as many as one call sends.
    pub(super) fn new(rate: Rate, size: u16, most: usize) -> Self {
        let datagram_bits = u64::from(size) * 8;
        let bits = u128::from(rate.0) * u128::from(BURST_NANOS) / 1_000_000_000;
        Self {
            bits_per_sec: rate.0.max(1),
            datagram_bits,
            burst: (bits / u128::from(datagram_bits)).clamp(1, most.max(1) as u128) as usize,
            epoch: 0,
            sent: 0,
        }
    }

    /// Most datagrams of one burst.
    pub(super) fn burst(&self) -> usize {
        self.burst
    }

    /// The schedule begins now.
    pub(super) fn begin(&mut self, now: u64) {
        self.epoch = now;
        self.sent = 0;
    }

    /// When the next burst may be sent, seen at `now`.
    pub(super) fn due(&mut self, now: u64) -> u64 {
        let bits = u128::from(self.sent) * u128::from(self.datagram_bits);
        let after = bits * 1_000_000_000 / u128::from(self.bits_per_sec);
        let due = self
            .epoch
            .saturating_add(u64::try_from(after).unwrap_or(u64::MAX));
        let oldest = now.saturating_sub(CREDIT_NANOS);
        if due < oldest {
            self.begin(oldest);
            return oldest;
        }
        due
    }

    /// So many were sent.
    pub(super) fn sent(&mut self, datagrams: usize) {
        self.sent += datagrams as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends for `nanos` with a clock that wakes `late` after each due time; datagrams sent.
    fn run(pace: &mut Pace, from: u64, nanos: u64, late: u64) -> u64 {
        let (mut now, mut all) = (from, 0);
        while now < from + nanos {
            let due = pace.due(now);
            if due > now {
                now = due + late;
                continue;
            }
            pace.sent(pace.burst());
            all += pace.burst() as u64;
        }
        all
    }

    #[test]
    fn the_rate_is_kept_by_a_clock_that_wakes_late() {
        for (megabits, size, most) in [
            (1, 1472, 4096),
            (100, 64, 4096),
            (1000, 1472, 4096),
            (5000, 1472, 4096),
            // Less than a quarter of a millisecond's worth.
            (5000, 1472, 89),
            (40_000, 1472, 89),
            (40_000, 64, 2048),
        ] {
            for late in [0, 60_000] {
                let mut pace = Pace::new(Rate(megabits * 1_000_000), size, most);
                pace.begin(5);
                let second = 1_000_000_000;
                let bits = run(&mut pace, 5, second, late) * u64::from(size) * 8;
                let most = megabits * 1_000_000 + pace.burst() as u64 * u64::from(size) * 8;
                let least = megabits * 1_000_000 * 98 / 100 - u64::from(size) * 8;
                assert!((least..=most).contains(&bits), "{megabits} {size} {bits}");
            }
        }
    }

    #[test]
    fn a_stall_is_made_good_for_a_moment_only() {
        let mut pace = Pace::new(Rate(1_000_000_000), 1250, 4096);
        pace.begin(0);
        // One datagram is 10 us; ten milliseconds pass without any.
        let stalled = 10_000_000;
        let mut burst = 0;
        while pace.due(stalled) <= stalled {
            pace.sent(pace.burst());
            burst += pace.burst() as u64;
        }
        let credit = CREDIT_NANOS / 10_000;
        assert!(
            (credit..=credit + pace.burst() as u64).contains(&burst),
            "{burst}"
        );
    }

    #[test]
    fn slow_rates_send_one_at_a_time_and_fast_ones_as_many_as_a_call() {
        let burst = |rate, size, most| Pace::new(Rate(rate), size, most).burst();
        assert_eq!(burst(1, 1472, 89), 1);
        assert_eq!(burst(1_000_000_000, 1250, 89), 25);
        assert_eq!(burst(5_000_000_000, 1472, 106), 106);
        assert_eq!(burst(5_000_000_000, 1472, 107), 106);
        assert_eq!(burst(5_000_000_000, 1472, 105), 105);
        assert_eq!(burst(u64::MAX, 24, 4096), 4096);
        assert_eq!(burst(u64::MAX, 24, 0), 1);
    }
}
