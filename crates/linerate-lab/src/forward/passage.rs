//! Effects of faults on the packets of one direction: they depend only on the frames and their times.

use std::collections::HashMap;

use linerate_units::Rate;

use super::group::{ETHERNET, Group};
use crate::fault::{Manner, Share};
use crate::random::Random;

/// Delays, losses and limits for the packets of one direction. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Treatment {
    /// Delay of each packet, in nanoseconds.
    pub(crate) delay: u64,
    /// Largest additional delay, in nanoseconds; the actual one varies slowly.
    pub(crate) jitter: u64,
    /// Largest IP packet that passes, in bytes.
    pub(crate) largest: Option<u32>,
    /// Share of packets that is lost, and the number of packets lost in a row.
    pub(crate) loss: Option<(Share, u32)>,
    /// Rate of all flows together, above which packets are dropped.
    pub(crate) police: Option<Rate>,
    /// Highest rate of each flow, and what is done with packets above it.
    pub(crate) flow: Option<(Rate, Manner)>,
    /// Number of packets per delayed packet, and its delay in nanoseconds.
    pub(crate) reorder: Option<(u32, u64)>,
    /// Period of the tick at which packets leave, in nanoseconds; never zero.
    pub(crate) tick: Option<u64>,
}

/// A policer's burst is the bytes of 1/20 s (50 ms) at its rate. With a much smaller burst TCP reaches a fraction of
/// the rate, because it sends in groups.
const BURST: u64 = 20;
/// Smallest burst in bytes, so that a slow policer still lets a group of segments pass.
const LEAST_BURST: f64 = 32768.0;
/// Longest queueing delay of a shaped flow, in nanoseconds.
const DEEPEST: u64 = 100_000_000;
/// Longest duration of a row of lost packets, in nanoseconds: a radio fade or a full queue also ends without packets.
const ROW_LASTS: u64 = 10_000_000;
/// Time between the random values that a jitter interpolates, in nanoseconds.
const WANDER: u64 = 20_000_000;
/// Most flows whose state is kept at a time: far more than a lab has.
const MOST_FLOWS: usize = 4096;

/// The state of the treatment of one direction.
pub(super) struct Passage {
    treatment: Treatment,
    random: Random,
    /// Number of packets of the current row that are still to be lost.
    losing: u32,
    /// Time at which the current row ends, even if fewer packets were lost in it.
    loses_until: u64,
    police: Option<Bucket>,
    policed: HashMap<u64, Bucket>,
    /// Time at which each shaped flow has sent everything that is queued for it.
    shaped: HashMap<u64, u64>,
    /// Number of packets since the last one that reordering delayed.
    since_delayed: u32,
    /// Due time of the last frame: the next frame must not overtake it.
    last_due: u64,
    /// Due time of each packet of a group; `None` if it is dropped.
    fates: Vec<Option<u64>>,
    /// Buffer for a part of a group.
    part: Vec<u8>,
}

/// Number of packets of a frame, and of those that were dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) packets: u64,
    pub(super) dropped: u64,
}

impl Passage {
    pub(super) fn new(treatment: Treatment, seed: u64) -> Self {
        Self {
            treatment,
            random: Random::of(seed),
            losing: 0,
            loses_until: 0,
            police: treatment.police.map(Bucket::of),
            policed: HashMap::new(),
            shaped: HashMap::new(),
            since_delayed: 0,
            last_due: 0,
            fates: Vec::new(),
            part: Vec::new(),
        }
    }

    /// Gives the packets of a frame that are not dropped to `out`, with their due times. The frame was received at
    /// `arrived`.
    pub(super) fn frame(
        &mut self,
        arrived: u64,
        bytes: &[u8],
        mut out: impl FnMut(u64, &[u8]),
    ) -> Fate {
        let group = Group::read(bytes);
        let packets = group.packets as u64;
        let Some(due) = self.due(arrived, &group) else {
            let dropped = packets;
            return Fate { packets, dropped };
        };
        let mut fates = std::mem::take(&mut self.fates);
        fates.clear();
        fates.extend((0..group.packets).map(|number| {
            let due = self.packet(arrived, due, &group, number)?;
            Some(self.next_tick(due))
        }));
        let (mut at, mut dropped) = (0, 0);
        for run in fates.chunk_by(|a, b| a == b) {
            let part = at..at + run.len();
            at = part.end;
            match run[0] {
                None => dropped += run.len() as u64,
                Some(due) if run.len() == group.packets => out(due, bytes),
                Some(due) => {
                    group.cut(bytes, &part, &mut self.part);
                    out(due, &self.part);
                }
            }
        }
        self.fates = fates;
        Fate { packets, dropped }
    }

    /// Returns the due time of a whole frame; `None` if the queue of its flow is full.
    fn due(&mut self, arrived: u64, group: &Group) -> Option<u64> {
        let due = arrived + self.treatment.delay + self.jitter(arrived);
        self.last_due = self.last_due.max(due);
        let due = self.last_due;
        let (Some((rate, Manner::Shaped)), Some(flow)) = (self.treatment.flow, group.flow) else {
            return Some(due);
        };
        forget_all_when_full(&mut self.shaped);
        let sent = self.shaped.entry(flow).or_default();
        let start = due.max(*sent);
        if start - due > DEEPEST {
            return None;
        }
        let time = group.all_bytes() as f64 * 8e9 / rate.0.max(1) as f64;
        *sent = start + time as u64;
        Some(*sent)
    }

    /// Returns the due time of one packet of a group; `None` if it is dropped.
    fn packet(&mut self, arrived: u64, due: u64, group: &Group, number: usize) -> Option<u64> {
        let bytes = group.bytes(number);
        let largest = self.treatment.largest.map(|l| l as usize + ETHERNET);
        if group.vital {
            return Some(due);
        }
        let dropped = largest.is_some_and(|largest| bytes > largest)
            || self.is_lost(arrived)
            || self.police.as_mut().is_some_and(|b| !b.take(arrived, bytes))
            || self.is_above_its_flow(arrived, group, bytes);
        if dropped {
            return None;
        }
        match self.treatment.reorder {
            Some((every, by)) if group.flow.is_some() => {
                self.since_delayed += 1;
                if self.since_delayed < every {
                    return Some(due);
                }
                self.since_delayed = 0;
                Some(due + by)
            }
            _ => Some(due),
        }
    }

    /// A row of `row` lost packets begins with probability q at each packet outside a row. Then the share row q / (row
    /// q + 1 - q) of all packets is lost; q is chosen so that it is the planted share.
    ///
    /// A row also ends after some time: otherwise a single, nearly idle connection would lose its retransmissions for
    /// minutes.
    fn is_lost(&mut self, arrived: u64) -> bool {
        let Some((share, row)) = self.treatment.loss else {
            return false;
        };
        if arrived > self.loses_until {
            self.losing = 0;
        }
        if self.losing > 0 {
            self.losing -= 1;
            return true;
        }
        let share = share.part();
        let chance = share / (f64::from(row) * (1.0 - share) + share);
        let begins = self.random.part() < chance;
        if begins {
            self.losing = row.saturating_sub(1);
            self.loses_until = arrived + ROW_LASTS;
        }
        begins
    }

    fn is_above_its_flow(&mut self, arrived: u64, group: &Group, bytes: usize) -> bool {
        let (Some((rate, Manner::Policed)), Some(flow)) = (self.treatment.flow, group.flow) else {
            return false;
        };
        forget_all_when_full(&mut self.policed);
        let bucket = self.policed.entry(flow).or_insert_with(|| Bucket::of(rate));
        !bucket.take(arrived, bytes)
    }

    /// Returns the first tick that is not before `due`; `due` itself if the treatment has no tick.
    fn next_tick(&self, due: u64) -> u64 {
        match self.treatment.tick {
            Some(period) => due.checked_next_multiple_of(period).unwrap_or(due),
            None => due,
        }
    }

    /// Interpolates linearly between random values, so that packets close to each other have almost equal delays.
    fn jitter(&self, now: u64) -> u64 {
        if self.treatment.jitter == 0 {
            return 0;
        }
        let value = |number: u64| Random::of(number).part();
        let (number, into) = (now / WANDER, (now % WANDER) as f64 / WANDER as f64);
        let part = value(number) * (1.0 - into) + value(number + 1) * into;
        (part * self.treatment.jitter as f64) as u64
    }
}

/// Forgets all flows if there are too many. A forgotten flow begins with a new state.
fn forget_all_when_full<T>(flows: &mut HashMap<u64, T>) {
    if flows.len() >= MOST_FLOWS {
        flows.clear();
    }
}

/// A token bucket without a queue: it drops what exceeds it.
struct Bucket {
    /// Rate of the bucket in bytes per second.
    rate: f64,
    burst: f64,
    tokens: f64,
    filled: u64,
}

impl Bucket {
    fn of(rate: Rate) -> Self {
        let rate = rate.0 as f64 / 8.0;
        let burst = (rate / BURST as f64).max(LEAST_BURST);
        Self { rate, burst, tokens: burst, filled: 0 }
    }

    fn take(&mut self, now: u64, bytes: usize) -> bool {
        let time = now.saturating_sub(self.filled) as f64 / 1e9;
        self.filled = self.filled.max(now);
        self.tokens = (self.tokens + time * self.rate).min(self.burst);
        let bytes = bytes as f64;
        if bytes > self.tokens {
            return false;
        }
        self.tokens -= bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::group::tests::group;
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sends packets of 1000 bytes of payload at each of these times; returns the due times of those that passed, and
    /// the number that were dropped.
    fn send(treatment: Treatment, times: impl Iterator<Item = u64>, port: u16) -> (Vec<u64>, u64) {
        let mut passage = Passage::new(treatment, 1);
        let bytes = group(1000, 1000, port);
        let (mut due, mut dropped) = (Vec::new(), 0);
        for time in times {
            dropped += passage.frame(time, &bytes, |at, _| due.push(at)).dropped;
        }
        (due, dropped)
    }

    fn share(millionths: u32) -> Share {
        Share::millionths(millionths).unwrap()
    }

    fn within(value: f64, range: Range<f64>) {
        assert!(range.contains(&value), "{value} in {range:?}");
    }

    #[test]
    fn a_delay_alone_passes_frames_whole() {
        let delay = Treatment { delay: 5 * MS, ..Treatment::default() };
        let mut passage = Passage::new(delay, 1);
        let bytes = group(20_000, 1000, 1);
        let mut seen = Vec::new();
        let fate = passage.frame(MS, &bytes, |due, frame| seen.push((due, frame.to_vec())));
        assert_eq!(seen, [(6 * MS, bytes)]);
        assert_eq!((fate.packets, fate.dropped), (20, 0));
    }

    #[test]
    fn as_many_are_lost_as_was_asked_singly_and_in_rows() {
        for row in [1, 20] {
            let loss = Treatment { loss: Some((share(20_000), row)), ..Treatment::default() };
            let (due, dropped) = send(loss, 0..200_000, 1);
            within(dropped as f64 / 200_000.0, 0.016..0.024);
            // The times are 1 ns apart: a larger gap is a row of lost packets.
            let rows = due.windows(2).filter(|w| w[1] > w[0] + 1).count();
            within(dropped as f64 / rows as f64, f64::from(row)..f64::from(row) * 1.2);
        }
    }

    #[test]
    fn a_row_does_not_wait_for_packets() {
        let loss = Treatment { loss: Some((share(20_000), 20)), ..Treatment::default() };
        let (_, dropped) = send(loss, (0..200_000).map(|n| n * 2 * ROW_LASTS), 1);
        // A row begins at the share 0.02 / (20 * 0.98 + 0.02) of the packets, and only its first packet is lost.
        within(dropped as f64 / 200_000.0, 0.000_8..0.001_3);
    }

    #[test]
    fn single_packets_of_a_group_are_lost() {
        let loss = Treatment { loss: Some((share(100_000), 1)), ..Treatment::default() };
        let mut passage = Passage::new(loss, 1);
        let bytes = group(45_000, 1000, 1);
        let (mut payload, mut all) = (0, Fate::default());
        for time in 0..1000 {
            let fate = passage.frame(time, &bytes, |_, frame| payload += frame.len() - 64);
            all.packets += fate.packets;
            all.dropped += fate.dropped;
        }
        assert_eq!(all.packets, 45_000);
        within(all.dropped as f64 / 45_000.0, 0.09..0.11);
        assert_eq!(payload as u64, (all.packets - all.dropped) * 1000);
    }

    #[test]
    fn a_policer_passes_its_rate_and_delays_nothing() {
        let police = Treatment { police: Some(Rate(100_000_000)), ..Treatment::default() };
        // One packet of 1054 bytes each 40 us: 210.8 Mb/s for a second.
        let times = || (0..25_000).map(|n| n * 40_000);
        let (due, dropped) = send(police, times(), 1);
        // The policer lets pass one second at its rate, and the burst at the beginning.
        within(due.len() as f64 * 1054.0 * 8.0 / 1.05e8, 0.99..1.02);
        assert_eq!(due.len() as u64 + dropped, 25_000);
        assert!(due.iter().all(|due| due % 40_000 == 0));
        let half = Treatment { police: Some(Rate(220_000_000)), ..Treatment::default() };
        assert_eq!(send(half, times(), 1).1, 0, "below the rate nothing is dropped");
    }

    #[test]
    fn each_flow_gets_its_rate() {
        for manner in [Manner::Shaped, Manner::Policed] {
            let limit =
                Treatment { flow: Some((Rate(100_000_000), manner)), ..Treatment::default() };
            let mut passage = Passage::new(limit, 1);
            let flows = [1, 2, 3].map(|port| group(1000, 1000, port));
            let mut last = 0;
            let mut passed = 0;
            for n in 0..25_000 {
                for bytes in &flows {
                    passage.frame(n * 40_000, bytes, |due, _| {
                        passed += 1;
                        last = last.max(due);
                    });
                }
            }
            let burst = if manner == Manner::Policed { 0.05 } else { 0.0 };
            let seconds = (last as f64 / 1e9).max(1.0) + burst;
            within(f64::from(passed) * 1054.0 * 8.0 / seconds / 3e8, 0.98..1.02);
            let queued = last.saturating_sub(25_000 * 40_000);
            assert_eq!(queued > 50 * MS, manner == Manner::Shaped, "{queued}");
        }
    }

    #[test]
    fn what_is_too_large_vanishes() {
        let hole = |largest| Treatment { largest: Some(largest), ..Treatment::default() };
        assert_eq!(send(hole(1040), 0..10, 1).1, 0);
        assert_eq!(send(hole(1039), 0..10, 1).1, 10);
    }

    #[test]
    fn one_of_so_many_is_overtaken() {
        let reorder = Treatment { reorder: Some((10, MS)), ..Treatment::default() };
        let (due, _) = send(reorder, (0..100).map(|n| n * 1000), 1);
        let late = due.iter().enumerate().filter(|(n, due)| **due > *n as u64 * 1000);
        let late: Vec<usize> = late.map(|(n, _)| n).collect();
        assert_eq!(late, (9..100).step_by(10).collect::<Vec<_>>());
    }

    #[test]
    fn packets_leave_at_the_first_tick_that_is_not_before_them() {
        let hold = Treatment { tick: Some(200), ..Treatment::default() };
        let (due, dropped) = send(hold, [0, 1, 199, 200, 201, 399].into_iter(), 1);
        assert_eq!(due, [0, 200, 200, 200, 400, 400]);
        assert_eq!(dropped, 0);
        let late = Treatment { delay: 150, ..hold };
        let (due, _) = send(late, [49, 50, 51].into_iter(), 1);
        assert_eq!(due, [200, 200, 400], "a tick comes after all delays");
    }

    #[test]
    fn jitter_wanders_and_keeps_the_order() {
        let jitter = Treatment { jitter: 100 * MS, ..Treatment::default() };
        let (due, _) = send(jitter, (0..5000).map(|n| n * MS), 1);
        assert!(due.is_sorted());
        let late = due.iter().enumerate().map(|(n, due)| due - n as u64 * MS);
        let late: Vec<u64> = late.collect();
        assert!(late.iter().all(|late| *late <= 100 * MS));
        let (least, most) = (late.iter().min().unwrap(), late.iter().max().unwrap());
        assert!(most - least > 50 * MS, "{least} to {most}");
        let far = late.windows(2).filter(|w| w[0].abs_diff(w[1]) > 10 * MS);
        assert_eq!(far.count(), 0, "packets near each other are as late");
    }
}
