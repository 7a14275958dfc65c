//! Pacing of datagrams: the sender keeps a rate by its own clock, and sends in bursts.
//!
//! `SO_MAX_PACING_RATE` would limit datagrams only if the port's queueing discipline is `fq`; pacing by the sender
//! works on every port.

use linerate_units::Rate;

/// How long a burst lasts at the rate, in nanoseconds: as long as the delay with which a sleep may end.
const BURST_NANOS: u64 = 250_000;

/// When a sender may send its next datagrams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    bits_per_sec: u64,
    datagram_bits: u64,
    burst: usize,
    /// Longest delay that the sender makes up for by sending faster, in nanoseconds.
    credit: u64,
    /// Time at which the schedule began, in nanoseconds of this host's clock.
    epoch: u64,
    /// Number of datagrams that were sent since the epoch.
    sent: u64,
    /// Number of datagrams of the current burst that may still be sent.
    left: usize,
}

/// Returns how many datagrams of `size` bytes a burst at `rate` has: as few as the precision of sleeps permits, and at
/// most `most`.
pub(crate) fn burst(rate: Rate, size: u16, most: usize) -> usize {
    let bits = u128::from(rate.0) * u128::from(BURST_NANOS) / 1_000_000_000;
    let fits = bits / (u128::from(size).max(1) * 8);
    usize::try_from(fits).unwrap_or(most).clamp(1, most.max(1))
}

impl Pace {
    /// Makes a pace for datagrams of `size` bytes at `rate`, in bursts of `burst` datagrams. A sender that is late
    /// makes up for at most `credit` nanoseconds, or one burst. A measurement needs little credit, since a flood after
    /// a stall disturbs it; a test that requests a mean rate needs more.
    pub(crate) fn new(rate: Rate, size: u16, burst: usize, credit: u64) -> Self {
        Self {
            bits_per_sec: rate.0.max(1),
            datagram_bits: u64::from(size).max(1) * 8,
            burst: burst.max(1),
            credit,
            epoch: 0,
            sent: 0,
            left: 0,
        }
    }

    /// Starts the schedule at `now`.
    pub(crate) fn begin(&mut self, now: u64) {
        (self.epoch, self.sent, self.left) = (now, 0, 0);
    }

    /// Returns how many datagrams may be sent at `now`. If none may, the error is the time at which the next burst is
    /// due.
    pub(crate) fn may(&mut self, now: u64) -> Result<usize, u64> {
        if self.left == 0 {
            let due = self.due(now);
            if due > now {
                return Err(due);
            }
            self.left = self.burst;
        }
        Ok(self.left)
    }

    /// Counts datagrams that the sender has sent.
    pub(crate) fn sent(&mut self, datagrams: usize) {
        self.sent += datagrams as u64;
        self.left = self.left.saturating_sub(datagrams);
    }

    /// Returns when the next burst is due. If that is more than the credit ago, the schedule begins anew.
    fn due(&mut self, now: u64) -> u64 {
        let due = self.epoch.saturating_add(self.takes(self.sent));
        let credit = self.credit.max(self.takes(self.burst as u64));
        let oldest = now.saturating_sub(credit);
        if due < oldest {
            self.begin(oldest);
            return oldest;
        }
        due
    }

    /// Returns how long `datagrams` datagrams last at the rate, in nanoseconds.
    fn takes(&self, datagrams: u64) -> u64 {
        let bits = u128::from(datagrams) * u128::from(self.datagram_bits);
        let nanos = bits * 1_000_000_000 / u128::from(self.bits_per_sec);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const CREDIT: u64 = SECOND / 1000;

    /// Sends for a second, at most `call` datagrams at once, with a clock that wakes the sender `late` nanoseconds
    /// after each due time. Returns the number of datagrams sent.
    fn run(pace: &mut Pace, late: u64, call: usize) -> u64 {
        let (mut now, mut all) = (5, 0);
        pace.begin(now);
        while now < SECOND {
            match pace.may(now) {
                Ok(n) => {
                    pace.sent(n.min(call));
                    all += n.min(call) as u64;
                }
                Err(due) => now = due + late,
            }
        }
        all
    }

    #[test]
    fn the_rate_is_kept_by_a_clock_that_wakes_late() {
        for (megabits, size, most) in [
            (1, 1472, 4096),
            (50, 1448, 4096),
            (100, 64, 4096),
            (1000, 64, 4096),
            (5000, 1472, 4096),
            // A burst of less than a quarter of a millisecond.
            (5000, 1472, 89),
            (40_000, 1472, 89),
            (40_000, 64, 2048),
        ] {
            let rate = Rate(megabits * 1_000_000);
            let fits = burst(rate, size, most);
            for (burst, late) in [(fits, 0), (fits, 60_000), (1000, 60_000)] {
                let mut pace = Pace::new(rate, size, burst, CREDIT);
                let bits = run(&mut pace, late, 64) * u64::from(size) * 8;
                let most = rate.0 + burst as u64 * u64::from(size) * 8;
                let least = rate.0 * 98 / 100 - u64::from(size) * 8;
                assert!((least..=most).contains(&bits), "{megabits} {size} {bits}");
            }
        }
    }

    #[test]
    fn a_burst_that_was_asked_for_is_sent_in_one_go() {
        // A datagram of 1250 bytes lasts a millisecond at 10 Mb/s.
        let mut pace = Pace::new(Rate(10_000_000), 1250, 100, CREDIT);
        assert_eq!(pace.may(0), Ok(100));
        pace.sent(64);
        assert_eq!(pace.may(0), Ok(36));
        pace.sent(36);
        assert_eq!(pace.may(0), Err(SECOND / 10));
    }

    #[test]
    fn a_short_stall_is_made_good_and_a_long_one_up_to_a_bound() {
        // One datagram lasts 10 us at this rate.
        let after = |stall: u64, credit: u64| {
            let mut pace = Pace::new(Rate(1_000_000_000), 1250, 25, credit);
            let mut sent = 0;
            while let Ok(n) = pace.may(stall) {
                pace.sent(n);
                sent += n as u64;
            }
            sent
        };
        for credit in [CREDIT, 100 * CREDIT] {
            for stall in [credit / 2, credit, 10 * SECOND] {
                let (sent, missed) = (after(stall, credit), stall.min(credit) / 10_000);
                assert!((missed..=missed + 25).contains(&sent), "{stall}: {sent}");
            }
        }
    }

    #[test]
    fn slow_rates_send_one_at_a_time_and_fast_ones_as_many_as_a_call() {
        let burst = |rate, size, most| burst(Rate(rate), size, most);
        assert_eq!(burst(1, 1472, 89), 1);
        assert_eq!(burst(1_000_000_000, 1250, 89), 25);
        assert_eq!(burst(5_000_000_000, 1472, 106), 106);
        assert_eq!(burst(5_000_000_000, 1472, 107), 106);
        assert_eq!(burst(5_000_000_000, 1472, 105), 105);
        assert_eq!(burst(u64::MAX, 24, 4096), 4096);
        assert_eq!(burst(u64::MAX, 24, 0), 1);
    }

    #[test]
    fn no_rate_and_no_size_make_it_overflow() {
        for rate in [0, 1, u64::MAX] {
            let mut pace = Pace::new(Rate(rate), 65_507, usize::MAX / 4, CREDIT);
            assert!(pace.may(u64::MAX).is_ok());
            pace.sent(usize::MAX / 2);
            let _ = pace.may(u64::MAX);
        }
        assert_eq!(burst(Rate(0), 0, usize::MAX), 1);
    }
}
