//! Counts the datagrams of a stream that a receiver gets.
//!
//! Goodput is payload received for the first time. A missing number counts as lost once a later one arrived: iperf3
//! sends no end mark. Anyone on the path can forge a datagram, so a number that no sender can have reached is
//! ignored. Otherwise one datagram could fake billions of losses.

use linerate_units::stats::Arrivals;

use super::datagram::{Header, Width};

/// Shortest time between two datagrams of a stream, in nanoseconds: no program sends 200 million in a second.
const FASTEST_NANOS: u64 = 5;
/// Most datagrams that a sender may have sent before the receiver started its clock.
const HEAD_START: u64 = 1 << 20;

/// The counts of the datagrams of one stream.
#[derive(Debug)]
pub struct Intake {
    width: Width,
    /// Start of the stream on the receiver's clock, in nanoseconds.
    begun: u64,
    /// The highest number of a datagram received.
    highest: u64,
    arrivals: Arrivals,
    jitter: Jitter,
    strays: u64,
}

impl Intake {
    /// Starts the counts of a stream that begins at `now`.
    pub fn new(width: Width, now: u64) -> Self {
        Self {
            width,
            begun: now,
            highest: 0,
            arrivals: Arrivals::default(),
            jitter: Jitter::default(),
            strays: 0,
        }
    }

    /// Counts a datagram that was read at `now`. Returns its payload in bytes, or 0 if it is not to be counted.
    #[inline]
    pub fn take(&mut self, datagram: &[u8], now: u64) -> u64 {
        let header = Header::read(datagram, self.width);
        let Some((header, number)) = header.and_then(|h| Some((h, self.number(h.number, now)?)))
        else {
            self.strays += 1;
            return 0;
        };
        if !self.arrivals.take(number - 1).counts() {
            return 0;
        }
        self.highest = self.highest.max(number);
        self.jitter.take(header.micros, now);
        datagram.len() as u64
    }

    /// The full number of a datagram from the number in its header; `None` if no sender can have reached it.
    fn number(&self, reported: u64, now: u64) -> Option<u64> {
        let number = match self.width {
            Width::Wide => reported,
            // The number nearest to the highest one that has these low bits.
            Width::Narrow => {
                let step = (reported as u32).wrapping_sub(self.highest as u32) as i32;
                self.highest.checked_add_signed(step.into())?
            }
        };
        let most = HEAD_START + now.saturating_sub(self.begun) / FASTEST_NANOS;
        (1..=most).contains(&number).then_some(number)
    }

    /// The counts of the stream's arrivals.
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// Jitter, the variation of the transit time, in nanoseconds.
    pub fn jitter(&self) -> u64 {
        (self.jitter.micros * 1e3) as u64
    }

    /// Number of received datagrams that do not belong to this stream: too short, or with an impossible number.
    pub fn strays(&self) -> u64 {
        self.strays
    }
}

/// How much the transit time changes from one datagram to the next, smoothed. The clocks of both ends need not agree:
/// their offset cancels out.
//= https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1
#[derive(Debug, Default)]
struct Jitter {
    /// Transit time of the previous datagram: receive time on this clock less send time on the sender's clock.
    last: Option<i64>,
    micros: f64,
}

impl Jitter {
    #[inline]
    fn take(&mut self, sent_micros: u64, now: u64) {
        let passed = (now / 1000) as i64 - sent_micros as i64;
        if let Some(last) = self.last.replace(passed) {
            let change = last.abs_diff(passed) as f64;
            self.micros += (change - self.micros) / 16.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn datagram(number: u64, micros: u64, width: Width) -> [u8; 100] {
        let mut bytes = [0; 100];
        Header { micros, number }.write(width, &mut bytes);
        bytes
    }

    /// Counts datagrams with these numbers, all at `now`; returns the payload that was counted.
    fn take(intake: &mut Intake, numbers: impl IntoIterator<Item = u64>, now: u64) -> u64 {
        let width = intake.width;
        let each = numbers.into_iter();
        each.map(|n| intake.take(&datagram(n, 0, width), now)).sum()
    }

    #[test]
    fn what_came_once_counts_and_the_rest_is_told_apart() {
        for width in [Width::Narrow, Width::Wide] {
            let mut intake = Intake::new(width, 0);
            // 4 is lost, 3 is late, 2 is a duplicate.
            let bytes = take(&mut intake, [1, 2, 5, 3, 2, 6], SECOND);
            assert_eq!(bytes, 500);
            let arrivals = intake.arrivals();
            assert_eq!((arrivals.taken(), arrivals.missing()), (5, 1));
            assert_eq!((arrivals.reordered(), arrivals.duplicated()), (1, 1));
            assert_eq!(intake.strays(), 0);
        }
    }

    #[test]
    fn what_is_short_or_of_an_impossible_number_is_a_stray() {
        for (width, wrong) in [(Width::Narrow, u64::from(u32::MAX)), (Width::Wide, u64::MAX)] {
            let mut intake = Intake::new(width, 0);
            take(&mut intake, [1], 0);
            let short = datagram(2, 0, width);
            assert_eq!(intake.take(&short[..width.header_len() - 1], 0), 0);
            assert_eq!(intake.take(&[], 0), 0);
            assert_eq!(take(&mut intake, [0, wrong, HEAD_START + 1], 0), 0);
            assert_eq!(intake.strays(), 5);
            assert_eq!(intake.arrivals().missing(), 0, "{width:?}");
            // A number that may just have been sent is believed: a path can lose that many datagrams.
            assert_eq!(take(&mut intake, [HEAD_START], 0), 100);
            assert_eq!(intake.arrivals().missing(), HEAD_START - 2);
            assert_eq!(take(&mut intake, [HEAD_START + 7], 7 * FASTEST_NANOS), 100);
        }
    }

    #[test]
    fn narrow_numbers_go_on_behind_their_last() {
        let lap = 1u64 << 32;
        let mut intake = Intake::new(Width::Narrow, 0);
        // A time long enough for so many datagrams.
        let now = 10 * lap * FASTEST_NANOS;
        for at in (0..=lap).step_by(1 << 30) {
            take(&mut intake, [at + 1], now);
        }
        let missing = intake.arrivals().missing();
        assert_eq!(intake.arrivals().taken() + missing, lap + 1);
        // A number from before the wrap is late. It does not move the highest number.
        take(&mut intake, [lap - 1, lap + 2], now);
        assert_eq!(intake.arrivals().reordered(), 1);
        assert_eq!(intake.arrivals().taken() + intake.arrivals().missing(), lap + 2);
    }

    #[test]
    fn jitter_is_of_the_way_and_not_of_the_clocks() {
        // Datagrams are sent each millisecond, by a clock that is hours ahead.
        let ahead = 40_000_000_000;
        let jitter = |late: fn(u64) -> u64| {
            let mut intake = Intake::new(Width::Wide, 0);
            for n in 1..=400 {
                let sent = ahead + n * 1000;
                let now = n * 1_000_000 + late(n);
                intake.take(&datagram(n, sent, Width::Wide), now);
            }
            intake.jitter()
        };
        assert_eq!(jitter(|_| 5_000_000), 0);
        // Every second datagram is 80 us late.
        let uneven = jitter(|n| n % 2 * 80_000);
        assert!((79_900..=80_000).contains(&uneven), "{uneven}");
    }

    proptest! {
        #[test]
        fn any_datagrams_count_no_more_than_they_hold(
            datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..50),
            now: u64, wide: bool,
        ) {
            let width = if wide { Width::Wide } else { Width::Narrow };
            let mut intake = Intake::new(width, now / 2);
            let held: u64 = datagrams.iter().map(|d| d.len() as u64).sum();
            let counted: u64 = datagrams.iter().map(|d| intake.take(d, now)).sum();
            prop_assert!(counted <= held);
            let arrivals = intake.arrivals();
            let all = arrivals.taken() + arrivals.duplicated() + arrivals.late() + intake.strays();
            prop_assert_eq!(all, datagrams.len() as u64);
        }
    }
}
