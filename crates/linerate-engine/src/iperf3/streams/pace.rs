//! When datagrams may be sent: a rate, kept by the sender's own clock.

use linerate_core::units::Rate;

/// A burst holds about this much time's worth of datagrams, in nanoseconds: what a sleep may be late by.
const BURST_NANOS: u64 = 250_000;
/// A sender that fell behind catches up with this much time's worth at most, or one burst. iperf3 catches up
/// with all that it missed since the start, so what its users ask for is the mean: a thread that shares its
/// CPU is late by some milliseconds again and again. A longer stall is no reason for a flood.
const CREDIT_NANOS: u64 = 100_000_000;

/// The schedule of a sender.
#[derive(Debug)]
pub(super) struct Pace {
    bits_per_sec: u64,
    datagram_bits: u64,
    burst: usize,
    /// The schedule counts from here.
    epoch: u64,
    /// Datagrams since.
    sent: u64,
    /// Datagrams of this burst that may still be sent.
    left: usize,
}

impl Pace {
    /// Datagrams of `size` bytes at `rate`, in bursts of so many, or as small as sleeps allow; from `now` on.
    pub(super) fn new(rate: Rate, size: u16, burst: Option<usize>, now: u64) -> Self {
        let datagram_bits = u64::from(size).max(1) * 8;
        let bits = u128::from(rate.0) * u128::from(BURST_NANOS) / 1_000_000_000;
        let fits = (bits / u128::from(datagram_bits)).clamp(1, 4096) as usize;
        Self {
            bits_per_sec: rate.0.max(1),
            datagram_bits,
            burst: burst.unwrap_or(fits).max(1),
            epoch: now,
            sent: 0,
            left: 0,
        }
    }

    /// How many may be sent `now`; or when the next may be.
    pub(super) fn may(&mut self, now: u64) -> Result<usize, u64> {
        if self.left == 0 {
            let due = self.due(now);
            if due > now {
                return Err(due);
            }
            self.left = self.burst;
        }
        Ok(self.left)
    }

    /// So many were sent.
    pub(super) fn sent(&mut self, datagrams: usize) {
        self.sent += datagrams as u64;
        self.left = self.left.saturating_sub(datagrams);
    }

    /// When the next burst is due.
    fn due(&mut self, now: u64) -> u64 {
        let due = self.epoch.saturating_add(self.takes(self.sent));
        let credit = CREDIT_NANOS.max(self.takes(self.burst as u64));
        let oldest = now.saturating_sub(credit);
        if due < oldest {
            (self.epoch, self.sent) = (oldest, 0);
            return oldest;
        }
        due
    }

    /// How long so many datagrams take at the rate, in nanoseconds.
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

    /// Sends for a second by a clock that wakes `late` after each due time, no more than `call` at once;
    /// datagrams sent.
    fn run(pace: &mut Pace, late: u64, call: usize) -> u64 {
        let (mut now, mut all) = (0, 0);
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
        for (megabits, size) in [(1, 1472), (50, 1448), (1000, 64), (10_000, 1472)] {
            for (burst, late) in [(None, 0), (None, 60_000), (Some(1000), 60_000)] {
                let rate = Rate(megabits * 1_000_000);
                let mut pace = Pace::new(rate, size, burst, 0);
                let bits = run(&mut pace, late, 64) * u64::from(size) * 8;
                let most = rate.0 + pace.burst as u64 * u64::from(size) * 8;
                let least = rate.0 * 98 / 100 - u64::from(size) * 8;
                assert!((least..=most).contains(&bits), "{megabits} {size} {bits}");
            }
        }
    }

    #[test]
    fn a_burst_that_was_asked_for_is_sent_in_one_go() {
        // A datagram of 1250 B is a millisecond at 10 Mb/s.
        let mut pace = Pace::new(Rate(10_000_000), 1250, Some(100), 0);
        assert_eq!(pace.may(0), Ok(100));
        pace.sent(64);
        assert_eq!(pace.may(0), Ok(36));
        pace.sent(36);
        assert_eq!(pace.may(0), Err(SECOND / 10));
    }

    #[test]
    fn a_short_stall_is_made_good_and_a_long_one_up_to_a_bound() {
        // One datagram is 10 us.
        let after = |stall: u64| {
            let mut pace = Pace::new(Rate(1_000_000_000), 1250, None, 0);
            let mut sent = 0;
            while let Ok(n) = pace.may(stall) {
                pace.sent(n);
                sent += n as u64;
            }
            (sent, pace.burst as u64)
        };
        for (stall, missed) in [
            (10_000_000, 1000),
            (CREDIT_NANOS, CREDIT_NANOS / 10_000),
            (10 * SECOND, CREDIT_NANOS / 10_000),
        ] {
            let (sent, burst) = after(stall);
            assert!((missed..=missed + burst).contains(&sent), "{stall}: {sent}");
        }
    }

    #[test]
    fn no_rate_and_no_size_make_it_overflow() {
        for rate in [0, 1, u64::MAX] {
            let mut pace = Pace::new(Rate(rate), 65_507, None, 0);
            assert!(pace.may(u64::MAX).is_ok());
            pace.sent(usize::MAX / 2);
            let _ = pace.may(u64::MAX);
        }
    }
}
