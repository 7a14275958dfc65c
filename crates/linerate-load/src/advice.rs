//! Settings that the sampler changes for a worker while the worker runs.
//!
//! Workers do not read the clock. The sampler does: it computes rates and stores them here.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Smallest operation if the plan leaves the size open, in bytes.
const OP_MIN: u32 = 16 * 1024;
/// Size of the operations while the rate is not known yet, in bytes.
const OP_FIRST: u32 = 64 * 1024;
/// How long the payload of an operation lasts at the current rate, in nanoseconds: so long that calls cost little.
const OP_NANOS: u64 = 2_500_000;
/// Least size of an operation in bytes, even if the send buffer is smaller, unless its payload lasts too long. Linux
/// (seen on 6.18) applies the limit of the send buffer only from the second packet of a write on. So writes of a single
/// packet (64 KiB) exceed the limit many times, in bursts, and goodput depends on the size of the write.
const OP_WHOLE: u32 = 128 * 1024;
/// Longest time that an operation of `OP_WHOLE` bytes may last, in nanoseconds, so that a stop is noticed on slow
/// paths.
const OP_NANOS_MAX: u64 = 100_000_000;

/// Settings of one worker, in a pair of cache lines of their own; they are written a few times a second.
#[derive(Debug)]
#[repr(align(128))]
pub struct Advice {
    most: u32,
    fixed: bool,
    gather: u32,
    op: AtomicU32,
    rate: AtomicU64,
    /// Pace of a sender in bytes per second; zero if it has none.
    pace: u64,
    counting: AtomicBool,
    /// Times at which operations began and stopped counting, on this host's clock; zero before.
    counted: [AtomicU64; 2],
}

impl Advice {
    /// Makes the settings for operations of `requested` bytes or, if that is zero, of a size that follows the rate up
    /// to `cap`.
    pub fn new(requested: u64, cap: u32) -> Self {
        let fixed = requested != 0;
        let most = if fixed { u32::try_from(requested).unwrap_or(u32::MAX) } else { cap.max(1) };
        Self {
            most,
            fixed,
            gather: 0,
            op: AtomicU32::new(if fixed { most } else { most.min(OP_FIRST) }),
            rate: AtomicU64::new(0),
            pace: 0,
            counting: AtomicBool::new(false),
            counted: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// Sets the payload in bytes that may gather in the receive buffer before a receiver reads it. Zero, the default,
    /// means none.
    #[must_use]
    pub fn gathering(self, bytes: u32) -> Self {
        Self { gather: bytes, ..self }
    }

    /// Sets the pace of each stream of a sender, in bytes per second. While no rate is known, the sender is assumed to
    /// be no faster than this.
    #[must_use]
    pub fn paced(self, pace: Option<u64>) -> Self {
        let pace = pace.map_or(0, |pace| pace.max(1));
        Self { pace, ..self }
    }

    /// Returns the most payload that may gather before it is read, in bytes.
    pub fn gather(&self) -> u32 {
        self.gather
    }

    /// Returns the size of the largest possible operation, in bytes.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Returns the size of the next operation, in bytes.
    pub fn op(&self) -> u32 {
        self.op.load(Relaxed)
    }

    /// Returns the worker's rate in bytes per second; zero if it is not known yet. If a sender has a pace, an unknown
    /// rate is assumed to be the pace, but at most `OP_FIRST`.
    pub fn rate(&self) -> u64 {
        match self.rate.load(Relaxed) {
            0 => self.pace.min(u64::from(OP_FIRST)),
            rate => rate,
        }
    }

    /// Returns the rate of each of the worker's `streams` streams in bytes per second, but at most their pace. The
    /// first data of a paced stream are accepted faster than its pace, because the send buffer is empty. A write of a
    /// size for that rate would take long to send.
    pub fn rate_of_each(&self, streams: usize) -> u64 {
        let each = self.rate() / streams.max(1) as u64;
        match self.pace {
            0 => each,
            pace => each.min(pace),
        }
    }

    /// Returns whether operations count now: after the washout and before the end of the step.
    pub fn counting(&self) -> bool {
        self.counting.load(Relaxed)
    }

    /// Returns when operations began and when they stopped counting, on this host's clock; `None` before.
    pub fn counted(&self) -> [Option<u64>; 2] {
        let at = |edge: &AtomicU64| Some(edge.load(Relaxed)).filter(|at| *at > 0);
        [at(&self.counted[0]), at(&self.counted[1])]
    }

    /// Returns whether an operation counts that was due at the time `due` of this host's clock, however late it is
    /// completed.
    pub fn counts(&self, due: u64) -> bool {
        let [from, until] = self.counted();
        from.is_some_and(|from| due >= from) && until.is_none_or(|until| due < until)
    }

    /// Begins a new step, in which no operation counts yet.
    pub fn renew(&self) {
        self.counting.store(false, Relaxed);
        self.counted.iter().for_each(|edge| edge.store(0, Relaxed));
    }

    /// Makes operations count from `now` on, unless they count already.
    pub fn count_from(&self, now: u64) {
        if !self.counting.swap(true, Relaxed) {
            self.counted[0].store(now, Relaxed);
        }
    }

    /// Makes operations not count from `now` on.
    pub fn count_until(&self, now: u64) {
        self.counted[1].store(now, Relaxed);
        self.counting.store(false, Relaxed);
    }

    /// Stores a new rate in bytes per second, and chooses the size of operations for it.
    pub fn follow(&self, rate: u64) {
        self.rate.store(rate, Relaxed);
        if !self.fixed {
            let op = next_op(self.op(), rate, self.most);
            self.op.store(op, Relaxed);
        }
    }
}

/// Returns the size of the next operation: doubled, halved or unchanged. There is hysteresis, since a larger operation
/// itself raises the rate.
fn next_op(now: u32, rate: u64, most: u32) -> u32 {
    let in_time = |nanos: u64| (u128::from(rate) * u128::from(nanos) / 1_000_000_000) as u64;
    // If the largest size is at most twice `OP_WHOLE`, there is no room to follow the rate: that size is used.
    let least = if most <= 2 * OP_WHOLE { most } else { OP_WHOLE };
    let whole = in_time(OP_NANOS_MAX).min(u64::from(least));
    let fits = in_time(OP_NANOS).max(whole).min(u64::from(most));
    let fits = (fits as u32).max(OP_MIN).min(most);
    let mut op = now;
    while op < fits && (op <= fits / 2 || fits == most) {
        op = op.saturating_mul(2).min(most);
    }
    while op > OP_MIN && op / 2 > fits {
        op /= 2;
    }
    op
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAP: u32 = 1536 * 1024;

    #[test]
    fn a_fast_path_gets_the_largest_operation_and_a_slow_one_a_small_one() {
        assert_eq!(next_op(OP_FIRST, 5_000_000_000, CAP), CAP);
        assert_eq!(next_op(CAP, 1_000, CAP), 24 * 1024);
        assert_eq!(next_op(OP_FIRST, 1_000, CAP), OP_MIN * 2);
    }

    #[test]
    fn a_sender_that_keeps_to_a_pace_is_taken_to_do_so_where_nothing_moved() {
        let advice = Advice::new(0, CAP).paced(Some(10_000));
        let rate = |seen| {
            advice.follow(seen);
            advice.rate()
        };
        assert_eq!(advice.rate(), 10_000);
        assert_eq!([9_000, 20_000, 0].map(rate), [9_000, 20_000, 10_000]);
        let fast = Advice::new(0, CAP).paced(Some(1 << 30));
        assert_eq!(fast.rate(), u64::from(OP_FIRST), "before anything moved");
        let free = Advice::new(0, CAP).paced(None);
        free.follow(20_000);
        assert_eq!(free.rate(), 20_000);
        free.follow(0);
        assert_eq!(free.rate(), 0);
    }

    #[test]
    fn no_stream_is_faster_than_its_pace() {
        let advice = Advice::new(0, CAP).paced(Some(10_000));
        // Rates of two streams: below their pace, at their pace, and in a burst at the start.
        for (seen, each) in [(18_000, 9_000), (20_000, 10_000), (64_000_000, 10_000)] {
            advice.follow(seen);
            assert_eq!(advice.rate_of_each(2), each, "{seen}");
        }
        let free = Advice::new(0, CAP).paced(None);
        free.follow(64_000_000);
        assert_eq!(free.rate_of_each(2), 32_000_000);
        assert_eq!(free.rate_of_each(0), 64_000_000);
    }

    #[test]
    fn an_operation_is_more_than_one_packet_unless_that_takes_too_long() {
        let rate = |op: u32| u64::from(op) * 1_000_000_000 / OP_NANOS_MAX;
        assert!(next_op(OP_FIRST, rate(OP_WHOLE), CAP) >= OP_WHOLE);
        assert!(next_op(OP_FIRST, rate(OP_WHOLE / 4), CAP) < OP_WHOLE);
        let at_most = |most| next_op(OP_FIRST, rate(4 * OP_WHOLE), most);
        assert_eq!(at_most(2 * OP_WHOLE), 2 * OP_WHOLE);
        assert_eq!(at_most(2 * OP_WHOLE + 1), OP_WHOLE);
    }

    #[test]
    fn a_rate_beside_a_threshold_does_not_make_the_size_flap() {
        let rate = |op: u32| u64::from(op) * 1_000_000_000 / OP_NANOS;
        let op = 512 * 1024;
        for near in [op * 3 / 4, op, op * 3 / 2] {
            assert_eq!(next_op(op, rate(near), CAP), op);
        }
        assert_eq!(next_op(op, rate(op * 2 + 4096), CAP), op * 2);
        assert_eq!(next_op(op, rate(op / 2 - 4096), CAP), op / 2);
    }

    #[test]
    fn what_counts_has_a_begin_and_an_end_in_each_step() {
        let advice = Advice::new(1, 1);
        advice.count_from(5);
        advice.count_from(6);
        assert!(advice.counting());
        assert_eq!(advice.counted(), [Some(5), None]);
        advice.count_until(9);
        assert!(!advice.counting());
        assert_eq!(advice.counted(), [Some(5), Some(9)]);
        assert_eq!([4, 5, 8, 9].map(|due| advice.counts(due)), [false, true, true, false]);
        advice.renew();
        assert_eq!(advice.counted(), [None, None]);
    }

    #[test]
    fn a_size_that_was_asked_for_stays() {
        let advice = Advice::new(1000, CAP);
        advice.follow(10_000_000_000);
        assert_eq!((advice.op(), advice.most()), (1000, 1000));
    }

    proptest! {
        #[test]
        fn the_size_stays_within_its_bounds(rate: u64, cap in 1u32..4_000_000, steps in 0usize..5) {
            let advice = Advice::new(0, cap);
            for _ in 0..=steps {
                advice.follow(rate);
                prop_assert!(advice.op() >= 1 && advice.op() <= cap);
            }
        }
    }
}
