//! Shows a load measured with each value of a factor: the figures, the knee, and which way to hand payload over pays.

#[cfg(test)]
#[path = "tests/loads.rs"]
pub(super) mod sample;
#[path = "loads_text.rs"]
mod text;

use linerate_ceiling::fingerprint;
use linerate_facts::Gap;
use linerate_judge::figure::{Entry, GOODPUT, Subject, Summary};
use linerate_judge::model::{self, Setting, Sweep, is_alone};
use linerate_judge::study::{Point, varied};
use linerate_plan::Knobs;
use linerate_plan::path::Direction;
use linerate_plan::study::{Axis, Pace};
use linerate_plan::transport::Swept;
use linerate_plan::transport::rdma::QUEUE_PAIRS;
use linerate_record::Record;
use linerate_units::stats::Interval;
use linerate_units::{Bytes, Nanos};

pub(super) use text::{page, title};

use super::super::bw::own::broken;
use super::super::refused;

/// Smallest share of zerocopy sends copied anyway that is reported.
pub(super) const COPIED_LEAST: f64 = 0.001;

/// A load measured with each value of a factor, in interleaved rounds.
#[derive(Debug)]
pub struct Loads<'a> {
    pub(super) record: &'a Record,
    /// Address and port of the far end; empty if there is none, or if it is not known.
    pub(super) address: &'a str,
    pub(super) swept: Swept,
    axis: Axis,
    pub(super) direction: Direction,
    pub(super) pace: Pace,
    pub(super) found: Sweep,
    /// Values of the factor that an end refused, and why.
    left_out: Vec<Gap>,
}

impl<'a> Loads<'a> {
    /// Makes the result of a record in which one factor is varied; `None` for other records. `address` is that of
    /// the far end, `left_out` the values that an end refused.
    pub fn of(record: &'a Record, address: &'a str, left_out: Vec<Gap>) -> Option<Self> {
        let (swept, axis) = varied(record)?;
        let plan = &record.start.plan;
        let direction = *plan.directions.first()?;
        let pace = Pace::of(plan.time, axis.values.len())?;
        let found = model::sweep(record, swept, axis, direction);
        let axis = axis.clone();
        Some(Self { record, address, swept, axis, direction, pace, found, left_out })
    }

    pub(super) fn axis(&self) -> Axis {
        self.axis.clone()
    }

    /// Whether there is no far end: a load of this host's memory.
    fn alone(&self) -> bool {
        is_alone(self.record)
    }

    /// Whether everything that was requested was measured.
    pub(super) fn complete(&self) -> bool {
        let settings = &self.found.settings;
        broken(self.record).is_empty() && settings.iter().all(|setting| setting.goodput.is_some())
    }

    /// One figure for the whole sweep: the goodput of its best value.
    pub fn summary(&self) -> Summary {
        let all = self.found.settings.iter().filter_map(|s| s.goodput);
        let best = all.map(|goodput| goodput.mean).reduce(f64::max);
        let of = Subject::load(self.direction);
        Summary::sorted(best.map(|goodput| Entry::bare(&GOODPUT, of, goodput)))
    }

    /// The points of this part. `outer` are its values on the axes that it does not vary.
    pub(super) fn points(&self, outer: &[String]) -> Vec<Point> {
        let settings = self.found.settings.iter().enumerate();
        let point = |(at, setting): (usize, &Setting)| {
            let name = self.name(at);
            let values = outer.iter().cloned().chain([name.clone()]).collect();
            if setting.goodput.is_some() {
                return Point::of_setting(values, setting, self.direction);
            }
            let refused = self.left_out.iter().find(|gap| gap.what == name).cloned();
            let why = "no whole slice of it was measured";
            Point::lacking(values, refused.unwrap_or_else(|| super::gap(why)))
        };
        settings.map(point).collect()
    }

    /// Values that are unknown at points that were measured, and settings that were refused.
    pub(super) fn gaps(&self) -> Vec<Gap> {
        let mut gaps = refused::of_all(self.record);
        gaps.extend(by_copies(self.record));
        let measured = (0..).zip(&self.found.settings).filter(|(_, s)| s.goodput.is_some());
        gaps.extend(
            measured.flat_map(|(at, setting)| lacking(setting, &self.name(at), self.alone())),
        );
        gaps
    }

    /// Time of an operation for each size, as size divided by goodput. Empty for other factors, and for memory,
    /// where the size is that of an array and not of a message.
    pub(super) fn times(&self) -> Vec<fingerprint::Point> {
        if self.swept != Swept::Size || self.alone() {
            return Vec::new();
        }
        let point = |setting: &Setting| {
            let (size, rate) = (setting.knobs.write_size, setting.goodput?.mean);
            let time = Nanos((size.0 as f64 * 8e9 / rate).round() as u64);
            (rate > 0.0).then_some(fingerprint::Point { size, time })
        };
        self.found.settings.iter().filter_map(point).collect()
    }

    /// The bandwidth-delay product: from the goodput of one request in flight follows how long a request takes, and
    /// how many the path holds at the best goodput. `None` for other factors, and if one request was not compared
    /// with the best.
    pub(super) fn held(&self) -> Option<Held> {
        let best = self.found.reference?;
        let first = self.found.settings.first()?;
        let size = request(self.record, self.swept)?;
        let ratio = first.goodput_ratio.filter(|ratio| ratio.low > 0.0)?;
        if self.swept != Swept::Depth || best == 0 {
            return None;
        }
        let one = first.goodput?.mean / pairs(&first.knobs) as f64;
        let time = size.0 as f64 * 8e9 / one;
        Some(Held {
            size,
            time: Nanos(time.round() as u64),
            requests: Interval {
                low: 1.0 / ratio.high,
                mid: 1.0 / ratio.mid,
                high: 1.0 / ratio.low,
            },
        })
    }

    fn name(&self, at: usize) -> String {
        self.axis.values.get(at).map_or_else(String::new, |value| value.label.clone())
    }
}

/// Payload of a request; `None` if the sweep varies the size, or if it is unknown.
fn request(record: &Record, swept: Swept) -> Option<Bytes> {
    if swept == Swept::Size {
        return None;
    }
    let mut made = record.sets.iter().flat_map(|set| &set.ends);
    let size = made.next()?.write_size;
    (size > 0).then_some(Bytes(size))
}

/// Number of queue pairs of a setting, of all streams together.
fn pairs(knobs: &Knobs) -> u64 {
    let each = knobs.options.number(QUEUE_PAIRS.key).unwrap_or(1);
    u64::from(knobs.streams) * each
}

/// The bandwidth-delay product, as requests on each queue pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Held {
    /// Payload of a request.
    pub(super) size: Bytes,
    /// Time of a request that is alone in flight.
    pub(super) time: Nanos,
    /// Number of requests that the best goodput moves in `time`.
    pub(super) requests: Interval,
}

/// The gap for zerocopy sends that were copied, because the kernel had no room for them.
fn by_copies(record: &Record) -> Option<Gap> {
    let ends = record.steps.iter().flat_map(|step| &step.ends);
    let mut gaps = ends.flat_map(|end| &end.gaps);
    gaps.find(|gap| gap.what == "set.copy").cloned()
}

/// Gaps for values of a setting that are unknown.
fn lacking(setting: &Setting, name: &str, alone: bool) -> Vec<Gap> {
    let gap = |what: String, why: &str| Gap { what, why: why.to_owned(), hint: String::new() };
    let mut gaps = Vec::new();
    if setting.cpu.sender.is_none() || !alone && setting.cpu.receiver.is_none() {
        let what = format!("CPU time with {name}");
        gaps.push(gap(what, "the times of all threads could not be read"));
    }
    if setting.knobs.copy.is_reported() && setting.copied.is_none() {
        let what = format!("completions of sends with {name}");
        gaps.push(gap(what, "the kernel reported none"));
    }
    gaps
}
