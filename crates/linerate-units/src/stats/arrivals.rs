//! The fate of numbered datagrams: lost, duplicated, reordered.

/// How many numbers below the highest received one are remembered by default. An older datagram cannot be distinguished
/// from a duplicate.
pub const WINDOW: u64 = 1 << 17;
/// The most numbers that may be remembered: one bit each, 128 KiB in all.
pub const WINDOW_MAX: u64 = 1 << 20;
const WORD: u64 = u64::BITS as u64;

/// How a datagram arrived, compared with those received before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The datagram is in order. Datagrams whose numbers were skipped are lost or still in flight.
    Fresh,
    /// The datagram arrived for the first time, after one that was sent later.
    Reordered,
    /// The datagram is a duplicate.
    Duplicate,
    /// The datagram is older than all remembered numbers: it may be a duplicate.
    Late,
}

impl Arrival {
    /// Whether the datagram's payload counts as received.
    pub fn counts(self) -> bool {
        matches!(self, Self::Fresh | Self::Reordered)
    }
}

/// The numbers of received datagrams, from 0. A bit is kept for each of the last [`WINDOW`] numbers, or of more on
/// request.
///
/// A datagram is reordered when a datagram that was sent later has arrived before it.
//= https://www.rfc-editor.org/rfc/rfc4737#section-3.3
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// The highest number received so far, plus one.
    next: u64,
    taken: u64,
    reordered: u64,
    duplicated: u64,
    late: u64,
    /// How many numbers are remembered: a power of two.
    window: u64,
    seen: Box<[u64]>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::over(WINDOW)
    }
}

impl Arrivals {
    /// Makes a count that remembers at least `numbers` numbers, within [`WINDOW`] and [`WINDOW_MAX`].
    pub fn over(numbers: u64) -> Self {
        let window = window(numbers);
        Self {
            next: 0,
            taken: 0,
            reordered: 0,
            duplicated: 0,
            late: 0,
            window,
            seen: vec![0; (window / WORD) as usize].into_boxed_slice(),
        }
    }

    /// Bytes of memory that are needed to remember `numbers` numbers.
    pub fn room(numbers: u64) -> u64 {
        window(numbers) / 8
    }

    /// Counts a received datagram by its number, which is below 2^63, and returns how it arrived.
    #[inline]
    pub fn take(&mut self, number: u64) -> Arrival {
        if number >= self.next {
            self.forget(self.next, number);
            self.next = number + 1;
            self.mark(number);
            self.taken += 1;
            return Arrival::Fresh;
        }
        if self.next - number > self.window {
            self.late += 1;
            return Arrival::Late;
        }
        if self.mark(number) {
            self.duplicated += 1;
            return Arrival::Duplicate;
        }
        self.taken += 1;
        self.reordered += 1;
        Arrival::Reordered
    }

    /// Counts the datagrams after the last received one as lost, if `sent` datagrams were sent.
    pub fn expect(&mut self, sent: u64) {
        if sent > self.next {
            self.forget(self.next, sent - 1);
            self.next = sent;
        }
    }

    /// Forgets all received numbers, so that the next step starts at 0.
    pub fn clear(&mut self) {
        let (window, seen) = (self.window, std::mem::take(&mut self.seen));
        *self = Self { next: 0, taken: 0, reordered: 0, duplicated: 0, late: 0, window, seen };
        self.seen.fill(0);
    }

    /// The word of the window that contains the bit of a number.
    #[inline]
    fn word(&mut self, number: u64) -> &mut u64 {
        &mut self.seen[((number & (self.window - 1)) / WORD) as usize]
    }

    /// Sets the bit of a number. Returns whether the bit was set before.
    #[inline]
    fn mark(&mut self, number: u64) -> bool {
        let word = self.word(number);
        let bit = 1 << (number % WORD);
        let was = *word & bit != 0;
        *word |= bit;
        was
    }

    /// Clears the bits of the numbers `from` to `to`, both included.
    #[inline]
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= self.window {
            self.seen.fill(0);
            return;
        }
        let mut at = from;
        while at <= to {
            let word = self.word(at);
            if at.is_multiple_of(WORD) && to - at >= WORD {
                *word = 0;
                at += WORD;
            } else {
                *word &= !(1 << (at % WORD));
                at += 1;
            }
        }
    }

    /// Datagrams received, each counted once.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Datagrams up to the highest received number that have not arrived: they are lost, or still in flight.
    pub fn missing(&self) -> u64 {
        self.next - self.taken
    }

    /// Datagrams received after one that was sent later.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Duplicates: datagrams that were received once more.
    pub fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// Number of datagrams that arrived too late to be distinguished from duplicates. They count as missing.
    pub fn late(&self) -> u64 {
        self.late
    }
}

/// The number of bits that are kept when `numbers` are requested.
fn window(numbers: u64) -> u64 {
    numbers.clamp(WINDOW, WINDOW_MAX).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The same count as [`Arrivals`], but it remembers all received numbers instead of a window.
    #[derive(Default)]
    struct Naive {
        next: u64,
        seen: HashSet<u64>,
    }

    impl Naive {
        fn take(&mut self, number: u64) -> Arrival {
            let before = self.next;
            self.next = before.max(number + 1);
            match number {
                _ if number >= before => {
                    self.seen.insert(number);
                    Arrival::Fresh
                }
                _ if before - number > WINDOW => Arrival::Late,
                _ if self.seen.insert(number) => Arrival::Reordered,
                _ => Arrival::Duplicate,
            }
        }
    }

    #[test]
    fn what_is_expected_forgets_nothing_that_is_within_the_window() {
        for sent in [5, WINDOW - 1, WINDOW, WINDOW + 1] {
            let mut arrivals = Arrivals::default();
            arrivals.take(0);
            arrivals.expect(sent);
            assert_eq!(arrivals.missing(), sent - 1);
            let second = if sent > WINDOW { Arrival::Late } else { Arrival::Duplicate };
            assert_eq!(arrivals.take(0), second, "{sent}");
        }
    }

    fn agree(numbers: &[u64]) {
        let (mut arrivals, mut naive) = (Arrivals::default(), Naive::default());
        let mut reported = Vec::new();
        for number in numbers {
            let arrival = arrivals.take(*number);
            assert_eq!(arrival, naive.take(*number), "{number} of {numbers:?}");
            reported.push(arrival);
        }
        let count = |kind| reported.iter().filter(|a| **a == kind).count() as u64;
        assert_eq!(arrivals.taken(), naive.seen.len() as u64);
        assert_eq!(arrivals.missing(), naive.next - naive.seen.len() as u64);
        assert_eq!(arrivals.reordered(), count(Arrival::Reordered));
        assert_eq!(arrivals.duplicated(), count(Arrival::Duplicate));
        assert_eq!(arrivals.late(), count(Arrival::Late));
    }

    #[test]
    fn in_order_nothing_is_missing() {
        let mut arrivals = Arrivals::default();
        (0..3 * WINDOW).for_each(|n| assert_eq!(arrivals.take(n), Arrival::Fresh));
        assert_eq!((arrivals.taken(), arrivals.missing()), (3 * WINDOW, 0));
    }

    #[test]
    fn the_window_has_two_sides() {
        for (back, arrival) in [(WINDOW, Arrival::Reordered), (WINDOW + 1, Arrival::Late)] {
            let mut arrivals = Arrivals::default();
            arrivals.take(5 * WINDOW);
            assert_eq!(arrivals.take(5 * WINDOW + 1 - back), arrival);
        }
        // The ring of bits is used again: a bit of the previous lap belongs to another number.
        agree(&[0, 1, 2, WINDOW, WINDOW + 1, 2 * WINDOW + 5, WINDOW + 6, WINDOW + 6]);
    }

    #[test]
    fn a_window_is_as_large_as_it_is_asked_for_within_bounds() {
        for (requested, window) in [
            (0, WINDOW),
            (WINDOW, WINDOW),
            (WINDOW + 1, 2 * WINDOW),
            (1_000_000, WINDOW_MAX),
            (WINDOW_MAX, WINDOW_MAX),
            (u64::MAX, WINDOW_MAX),
        ] {
            assert_eq!(Arrivals::room(requested) * 8, window, "{requested}");
            for (back, arrival) in [(window, Arrival::Reordered), (window + 1, Arrival::Late)] {
                let mut arrivals = Arrivals::over(requested);
                arrivals.take(3 * window);
                assert_eq!(arrivals.take(3 * window + 1 - back), arrival, "{requested}");
                // After it was cleared, the window is as large as before.
                arrivals.clear();
                arrivals.take(3 * window);
                assert_eq!(arrivals.take(3 * window + 1 - back), arrival, "{requested}");
            }
        }
    }

    #[test]
    fn the_tail_is_lost_once_the_total_is_known() {
        let mut arrivals = Arrivals::default();
        for n in 0..10 {
            arrivals.take(n);
        }
        arrivals.expect(12);
        assert_eq!((arrivals.taken(), arrivals.missing()), (10, 2));
        assert_eq!(arrivals.take(11), Arrival::Reordered);
        assert_eq!(arrivals.take(11), Arrival::Duplicate);
        arrivals.expect(3);
        assert_eq!(arrivals.missing(), 1);
        arrivals.clear();
        assert_eq!(arrivals.take(11), Arrival::Fresh);
        assert_eq!((arrivals.taken(), arrivals.missing()), (1, 11));
    }

    #[test]
    fn the_highest_number_overflows_nothing() {
        let mut arrivals = Arrivals::default();
        arrivals.take(u64::MAX / 2);
        assert_eq!(arrivals.take(0), Arrival::Late);
        assert_eq!(arrivals.missing(), u64::MAX / 2);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_all_numbers(
            numbers in prop::collection::vec(0u64..400, 0..600),
        ) {
            agree(&numbers);
        }

        #[test]
        fn it_agrees_over_many_laps(
            steps in prop::collection::vec((0u64..3, 0u64..200), 0..200),
            wide in prop::collection::vec(0u64..5 * WINDOW, 0..50),
        ) {
            let mut at = 0;
            let near: Vec<u64> = steps
                .iter()
                .map(|(jump, back)| {
                    at += jump * (WINDOW / 3);
                    (at + 100).saturating_sub(*back)
                })
                .collect();
            agree(&near);
            agree(&wide);
        }
    }
}
