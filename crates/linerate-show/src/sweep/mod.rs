//! A sweep, for people and for programs: what each setting gave, the knee, and which way pays.

mod json;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod text;

use linerate_ceiling::fingerprint::Point;
use linerate_facts::Gap;
use linerate_judge::figure::{Entry, GOODPUT, Subject, Summary};
use linerate_judge::model::{self, Estimate, Setting, SweepPlan, hardware, is_alone, same_machine};
use linerate_plan::Knobs;
use linerate_plan::path::{Direction, Side};
use linerate_plan::sweep::Pace;
use linerate_plan::transport::Options;
use linerate_plan::transport::Swept;
use linerate_plan::transport::rdma::QUEUE_PAIRS;
use linerate_record::Record;
use linerate_units::stats::Interval;
use linerate_units::{Bytes, Nanos};

pub use json::{FORMAT, SCHEMA, json};
pub(super) use json::{Output, output};
pub use text::page;

use super::bw::own::broken;
use super::fitted::Agreement;
use super::refused;

/// Minimum share of zero-copy sends that the kernel copied anyway, at which this is reported.
const COPIED: f64 = 0.001;

/// The result of a sweep.
#[derive(Debug)]
pub struct Probe {
    target: String,
    /// Address and port of the far end.
    address: String,
    swept: Swept,
    direction: Direction,
    pace: Pace,
    same_machine: bool,
    /// What a rate may be compared with.
    agreement: Agreement,
    /// The engine, with its options that are set.
    engine: String,
    options: Options,
    /// Whether there is no far end.
    alone: bool,
    /// Payload of a request, where all settings have the same one; `None` if it is unknown.
    request: Option<Bytes>,
    /// Why the sweep ended early; empty if it did not.
    broken: String,
    found: model::Sweep,
    gaps: Vec<Gap>,
}

impl Probe {
    /// Makes the result of the record of a sweep with the far end `target` at `address`.
    pub fn of(target: &str, address: &str, record: &Record, asked: &SweepPlan) -> Self {
        let found = model::sweep(record, asked.swept, &asked.settings, asked.direction);
        let alone = is_alone(record);
        let mut gaps = asked.left_out.clone();
        gaps.extend(refused::of_all(record));
        gaps.extend(by_copies(record));
        let name = |setting: &Setting| asked.swept.words(&setting.knobs);
        gaps.extend(
            found.settings.iter().flat_map(|setting| lacking(setting, &name(setting), alone)),
        );
        Self {
            target: target.to_owned(),
            address: address.to_owned(),
            swept: asked.swept,
            direction: asked.direction,
            pace: asked.pace,
            agreement: Agreement::of(same_machine(record), hardware(&record.hosts)),
            same_machine: same_machine(record),
            engine: record.start.plan.engine.clone(),
            options: record.start.plan.knobs.options.clone(),
            alone,
            request: request(record, asked),
            broken: broken(record),
            found,
            gaps,
        }
    }

    /// Whether everything that was requested was measured.
    pub fn complete(&self) -> bool {
        let settings = &self.found.settings;
        self.broken.is_empty() && settings.iter().all(|setting| setting.goodput.is_some())
    }

    /// The figure of the sweep: the goodput of the best setting.
    pub fn summary(&self) -> Summary {
        let all = self.found.settings.iter().filter_map(|s| s.goodput);
        let best = all.map(|goodput| goodput.mean).reduce(f64::max);
        let of = Subject::load(self.direction);
        Summary::sorted(best.map(|goodput| Entry::bare(&GOODPUT, of, goodput)))
    }

    /// Times of operations by size, as goodput says: size over rate. Empty for other factors, and for memory, whose
    /// arrays are no messages.
    fn points(&self) -> Vec<Point> {
        if self.swept != Swept::Size || self.alone {
            return Vec::new();
        }
        let point = |setting: &Setting| {
            let (size, rate) = (setting.knobs.write_size, setting.goodput?.mean);
            let time = size.0 as f64 * 8e9 / rate;
            (rate > 0.0).then_some(Point { size, time: Nanos(time.round() as u64) })
        };
        self.found.settings.iter().filter_map(point).collect()
    }

    /// What the goodput of one request in flight says: how long a request takes, and how many of them the path holds at the
    /// best goodput. `None` for other factors, and if a queue of one was not compared with the best.
    fn held(&self) -> Option<Held> {
        let best = self.found.reference?;
        let first = self.found.settings.first()?;
        let size = self.request?;
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

    /// What the rate of a fit may be compared with.
    fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    fn name(&self, at: usize) -> String {
        self.swept.words(&self.found.settings[at].knobs)
    }
}

/// Payload of a request of a sweep whose settings do not differ in it.
fn request(record: &Record, asked: &SweepPlan) -> Option<Bytes> {
    if asked.swept == Swept::Size {
        return None;
    }
    let mut made = record.sets.iter().flat_map(|set| &set.ends);
    let size = made.next()?.write_size;
    (size > 0).then_some(Bytes(size))
}

/// Queue pairs of a setting, of all streams together.
fn pairs(knobs: &Knobs) -> u64 {
    let each = knobs.options.number(QUEUE_PAIRS.key).unwrap_or(1);
    u64::from(knobs.streams) * each
}

/// The product of bandwidth and delay, in requests of each queue pair.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    /// Payload of a request.
    size: Bytes,
    /// Time of a request that is alone in flight.
    time: Nanos,
    /// Requests that move at the best goodput in that time.
    requests: Interval,
}

/// CPU time of one end for each byte, where it was read.
fn cpu(setting: &Setting, direction: Direction, side: Side) -> Option<&Estimate> {
    setting.cpu.at(direction, side).as_ref()
}

/// The share of sends that the kernel copied anyway, if there were any.
fn copied(setting: &Setting) -> Option<f64> {
    setting.copied.filter(|share| *share >= COPIED)
}

/// The gap for sends that were copied because the kernel had no room to send without a copy.
fn by_copies(record: &Record) -> Option<Gap> {
    let ends = record.steps.iter().flat_map(|step| &step.ends);
    let mut gaps = ends.flat_map(|end| &end.gaps);
    gaps.find(|gap| gap.what == "set.copy").cloned()
}

/// Gaps for values of a setting that should be known, and are not.
fn lacking(setting: &Setting, name: &str, alone: bool) -> Vec<Gap> {
    let gap = |what: String, why: &str| Gap { what, why: why.to_owned(), hint: String::new() };
    if setting.goodput.is_none() {
        return vec![gap(name.to_owned(), "no whole slice of it was measured")];
    }
    let mut gaps = Vec::new();
    if setting.cpu.sender.is_none() || !alone && setting.cpu.receiver.is_none() {
        let what = format!("CPU time with {name}");
        gaps.push(gap(what, "the times of all threads could not be read"));
    }
    if setting.knobs.copy.is_told() && setting.copied.is_none() {
        let what = format!("completions of sends with {name}");
        gaps.push(gap(what, "the kernel reported none"));
    }
    gaps
}
