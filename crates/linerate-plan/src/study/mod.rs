//! A study: one or two factors varied, and a measurement at each of their values.
//!
//! This module owns the axes of a study, the settings of a load for each value of a factor, their order in interleaved
//! rounds, and how a study within one session spends its time.

pub mod trips;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::transport::rdma::{DEPTH, QUEUE_PAIRS};
use crate::transport::{Setting, Swept, TransportInfo};
use crate::{Handover, Knobs};
use linerate_units::stats::FEWEST;
use linerate_units::{Bytes, Nanos};

/// One axis of a study: what it varies, and the values in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Name of the varied option, or `run`, `layer`, `part`.
    pub name: String,
    /// The values, in the order in which they are measured.
    pub values: Vec<AxisValue>,
}

impl Axis {
    /// An axis whose values are words.
    pub fn of(name: &str, labels: impl IntoIterator<Item = String>) -> Self {
        let values = labels.into_iter().map(AxisValue::word);
        Self { name: name.to_owned(), values: values.collect() }
    }
}

/// One value on an axis of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AxisValue {
    /// The value in words: `zerocopy`, `64 KiB`, `4 streams`.
    pub label: String,
    /// The value as a number: bytes, connections, requests, queue pairs. Null if the value is a word.
    pub number: Option<u64>,
}

impl AxisValue {
    /// A value that is a word, without a number.
    pub const fn word(label: String) -> Self {
        Self { label, number: None }
    }

    /// A value that is a size. Its label is exact: different sizes have different labels.
    pub fn size(size: Bytes) -> Self {
        let unit = 1 << (size.0.max(1).ilog2() / 10 * 10);
        let is_whole = size.0.is_multiple_of(unit);
        let label = if is_whole { size.to_string() } else { format!("{} B", size.0) };
        Self { label, number: Some(size.0) }
    }
}

/// The study that a record is part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Wall-clock time at which the study began, in nanoseconds since 1970. All records of a study have the same one.
    pub id: u64,
    /// The axes of the study: first those that vary from record to record, then those that vary within each record.
    pub axes: Vec<Axis>,
    /// For each axis that varies from record to record: index of the value that this record has.
    pub at: Vec<usize>,
}

/// All ways to hand payload to the kernel, in the order of a study.
const WAYS: [Handover; 4] =
    [Handover::Copy, Handover::Zerocopy, Handover::Sendfile, Handover::IoUring];

/// Most requests in flight, and most queue pairs, of a sweep. Settings that the device refuses are left out.
const DEPTH_MOST: u64 = 1024;
const PAIRS_MOST: u64 = 64;

impl Swept {
    /// The knobs for each value of the swept factor, the usual or the smallest value first. All other knobs are as in
    /// `base`. A sweep of streams ends at `most` streams.
    pub fn settings(self, of: &TransportInfo, base: &Knobs, most: u32) -> Vec<Knobs> {
        let with = |set: &dyn Fn(&mut Knobs)| {
            let mut knobs = base.clone();
            set(&mut knobs);
            knobs
        };
        match self {
            Self::Copy => WAYS.map(|way| with(&|knobs| knobs.copy = way)).to_vec(),
            Self::Size => Self::sizes(base, of.sizes),
            Self::Streams => doubled(1, u64::from(most.max(1)))
                .map(|streams| with(&|knobs| knobs.streams = streams as u32))
                .collect(),
            Self::Depth => Self::numbers(base, DEPTH.key, DEPTH_MOST),
            Self::Qps => Self::numbers(base, QUEUE_PAIRS.key, PAIRS_MOST),
        }
    }

    /// The knobs of a sweep over operation sizes, from `ends[0]` to `ends[1]` bytes.
    pub fn sizes(base: &Knobs, ends: [u64; 2]) -> Vec<Knobs> {
        let sized =
            |size| Knobs { write_size: Bytes(size), read_size: Bytes(size), ..base.clone() };
        doubled(ends[0], ends[1]).map(sized).collect()
    }

    /// The knobs of a sweep over the numeric option `key`, from 1 to `most`.
    fn numbers(base: &Knobs, key: &str, most: u64) -> Vec<Knobs> {
        let with = |number| {
            let mut knobs = base.clone();
            knobs.options.set(key, Setting::Number(number));
            knobs
        };
        doubled(1, most).map(with).collect()
    }

    /// The value that the swept factor has in these knobs.
    pub fn value(self, knobs: &Knobs) -> AxisValue {
        let of = |number, label| AxisValue { label, number: Some(number) };
        match self {
            Self::Copy => AxisValue::word(knobs.copy.name().to_owned()),
            Self::Size => AxisValue::size(knobs.write_size),
            Self::Streams => {
                let streams = u64::from(knobs.streams);
                of(streams, counted(streams, "stream"))
            }
            Self::Depth => {
                let depth = number(knobs, DEPTH.key);
                of(depth, format!("depth {depth}"))
            }
            Self::Qps => {
                let pairs = number(knobs, QUEUE_PAIRS.key);
                of(pairs, counted(pairs, "queue pair"))
            }
        }
    }

    /// The axis with the swept factor's value in each of these settings.
    pub fn axis(self, settings: &[Knobs]) -> Axis {
        let values = settings.iter().map(|knobs| self.value(knobs)).collect();
        Axis { name: self.name().to_owned(), values }
    }
}

/// The numeric option `key` of these knobs, or 1 if it is not set.
fn number(knobs: &Knobs, key: &str) -> u64 {
    knobs.options.number(key).unwrap_or(1)
}

fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `first`, doubled again and again while below `last`, and then `last`.
fn doubled(first: u64, last: u64) -> impl Iterator<Item = u64> {
    let below = (0..).map(move |k| first << k);
    below.take_while(move |n| *n < last).chain([last])
}

/// The indexes of all settings, in the order of a round: odd rounds are reversed.
pub fn order(round: u32, settings: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..settings).collect();
    if !round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// How a sweep divides its time into rounds and slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Number of counted rounds, after one round that warms the connections up.
    pub rounds: u32,
    /// Time at the start of each slice that is not counted.
    pub washout: Nanos,
    /// Time of each slice that is counted, after the wash-out.
    pub measure: Nanos,
}

/// Length of a slice, in nanoseconds, before a sweep gets more rounds than the fewest that it needs.
const SLICE: u64 = 1_000_000_000;
/// Shortest slice, in nanoseconds: a wash-out, and a measured part of the same length.
const SLICE_LEAST: u64 = 400_000_000;
/// The wash-out of a slice is the slice divided by this number, within the bounds below, in nanoseconds.
const WASHOUT_DIVISOR: u64 = 4;
const WASHOUTS: [u64; 2] = [200_000_000, 1_000_000_000];
/// Largest number of counted rounds. More time gives longer slices: these give more information.
const ROUNDS: u64 = 12;

impl Pace {
    /// The pace of a sweep that lasts `time` and has `settings` settings; `None` if `time` is less than
    /// [`Pace::least`].
    pub fn of(time: Nanos, settings: usize) -> Option<Self> {
        let settings = settings.max(1) as u64;
        let wanted = (time.0 / (with_rest(SLICE) * settings)).saturating_sub(1);
        // The number of rounds is even, so that forward and reversed order are equally frequent.
        let rounds = wanted.clamp(FEWEST as u64, ROUNDS) / 2 * 2;
        let slice = without_rest(time.0 / (settings * (rounds + 1)));
        if slice < SLICE_LEAST {
            return None;
        }
        let washout = (slice / WASHOUT_DIVISOR).clamp(WASHOUTS[0], WASHOUTS[1]);
        Some(Self {
            rounds: rounds as u32,
            washout: Nanos(washout),
            measure: Nanos(slice - washout),
        })
    }

    /// The shortest time, in whole seconds, in which a sweep can measure `settings` settings.
    pub fn least(settings: usize) -> Nanos {
        let all = with_rest(SLICE_LEAST) * settings.max(1) as u64 * (FEWEST as u64 + 1);
        Nanos::from_secs(all.div_ceil(1_000_000_000))
    }

    /// Duration of one round of `settings` settings.
    pub fn round(&self, settings: usize) -> Nanos {
        Nanos(with_rest(self.washout.0 + self.measure.0) * settings as u64)
    }
}

/// A slice and the time until the next one starts (arming both ends, clock pairs, readings): a fifth more in all.
fn with_rest(slice: u64) -> u64 {
    slice * 6 / 5
}

fn without_rest(slice: u64) -> u64 {
    slice * 5 / 6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::TCP;

    #[test]
    fn labels_of_sizes_tell_the_largest_datagram_from_64_kib() {
        let labels = [0, 2, 1500, 65_507, 65_536, 1_000 << 10, (1 << 20) + 1024, 4 << 20];
        let labels = labels.map(|size| AxisValue::size(Bytes(size)).label);
        let want = ["0 B", "2 B", "1500 B", "65507 B", "64 KiB", "1000 KiB", "1049600 B", "4 MiB"];
        assert_eq!(labels, want);
    }

    #[test]
    fn settings_differ_in_the_one_factor_and_end_at_the_bound() {
        let base = Knobs { streams: 3, nodelay: true, ..Knobs::default() };
        let words = |swept: Swept, most| -> Vec<String> {
            let settings = swept.settings(&TCP, &base, most);
            settings.iter().map(|knobs| swept.value(knobs).label).collect()
        };
        let ways = ["copy", "zerocopy", "sendfile", "io-uring"];
        assert_eq!(words(Swept::Copy, 9), ways);
        assert_eq!(words(Swept::Streams, 1), ["1 stream"]);
        let five = ["1 stream", "2 streams", "4 streams", "5 streams"];
        assert_eq!(words(Swept::Streams, 5), five);
        assert_eq!(words(Swept::Streams, 4), five[..3]);
        let sizes = words(Swept::Size, 9);
        assert_eq!((sizes.len(), &*sizes[0], &*sizes[12]), (13, "1 KiB", "4 MiB"));
        let depths = words(Swept::Depth, 9);
        assert_eq!((depths.len(), &*depths[0], &*depths[10]), (11, "depth 1", "depth 1024"));
        let pairs = words(Swept::Qps, 9);
        assert_eq!((pairs.len(), &*pairs[0], &*pairs[6]), (7, "1 queue pair", "64 queue pairs"));
        for knobs in Swept::Size.settings(&TCP, &base, 1) {
            assert_eq!((knobs.streams, knobs.nodelay), (3, true));
            assert_eq!(knobs.write_size, knobs.read_size);
        }
    }

    #[test]
    fn rounds_run_there_and_back() {
        assert_eq!([0, 1, 2].map(|r| order(r, 3)), [[0, 1, 2], [2, 1, 0], [0, 1, 2]]);
    }

    #[test]
    fn a_sweep_keeps_to_its_time_and_refuses_too_little() {
        for settings in [1, 3, 7, 13, 14] {
            let least = Pace::least(settings);
            for time in [least, Nanos::from_secs(60), Nanos::from_secs(600)] {
                let pace = Pace::of(time, settings).unwrap();
                assert!(pace.rounds >= FEWEST as u32 && pace.rounds.is_multiple_of(2));
                assert!(pace.washout.0 >= WASHOUTS[0] && pace.measure.0 >= WASHOUTS[0]);
                let all = pace.round(settings).0 * u64::from(pace.rounds + 1);
                assert!(all <= time.0 && all > time.0 / 100 * 99, "{time}: {pace:?}");
            }
            assert_eq!(Pace::of(Nanos(least.0 - 1_000_000_000), settings), None);
        }
    }

    #[test]
    fn more_time_first_buys_rounds() {
        let of = |secs| Pace::of(Nanos::from_secs(secs), 3).unwrap();
        assert_eq!((of(8).rounds, of(60).rounds, of(600).rounds), (4, 12, 12));
        assert!(of(600).measure > of(60).measure);
    }
}
