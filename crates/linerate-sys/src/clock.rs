//! The clock by which all times of a run are measured.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds on the monotonic clock, which starts at some time before this process.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the wall-clock time in nanoseconds, by which kernels timestamp packets. This clock may be set at any time.
pub fn wall() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until the monotonic clock shows `at` nanoseconds, but no longer than `most`.
pub fn sleep_until(at: u64, most: Duration) {
    let left = Duration::from_nanos(at.saturating_sub(now()));
    if !left.is_zero() {
        std::thread::sleep(left.min(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward_and_sleep_reaches_its_time() {
        let start = now();
        sleep_until(start + 2_000_000, Duration::from_secs(5));
        assert!(now() >= start + 2_000_000);
    }

    #[test]
    fn a_time_in_the_past_does_not_sleep_and_a_far_one_is_cut() {
        sleep_until(0, Duration::from_secs(3600));
        sleep_until(u64::MAX, Duration::from_millis(1));
    }
}
