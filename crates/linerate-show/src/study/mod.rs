//! A study as text and as JSON: one or two factors are varied, and figures are measured at each of their values.
//!
//! A part of a study has one record. It is one point of the study, or several, if the part varies a factor itself.

mod grid;
mod json;
mod layers;
mod loads;
mod mount;
mod rows;
mod runs;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod sizes;
mod text;

use linerate_explain::Headline;
use linerate_explain::diff::Judged;
use linerate_facts::Gap;
use linerate_judge::figure::{CEILING, Entry, GOODPUT, LATENCY, Subject, Summary};
use linerate_judge::model::{base_operations, derive, hardware, same_machine};
use linerate_judge::study::{Point, percentiles};
use linerate_plan::path::Direction;
use linerate_plan::study::Axis;
use linerate_record::Record;
use linerate_units::stats::samples;

pub use json::json;
pub(super) use json::{Output, output};
pub use layers::{LAYERS, PART};
pub use loads::Loads;
pub use mount::{PLACE, PLACES};
pub use rows::{ACCESS, ROW};
pub use sizes::{Sizes, not_measured};
pub use text::{page, run};

use super::fitted::Agreement;
use super::like::{self, Like, Timed};
use super::{bw, lat};

/// Name of the axis of a study with several runs of one plan.
pub const RUN: &str = "run";

/// The result of a study.
#[derive(Debug)]
pub struct Study<'a> {
    /// The far end in the form that the user typed; `None` if there is none.
    target: Option<&'a str>,
    /// The factors that differ between parts; then the factor that each part varies itself, if any.
    axes: Vec<Axis>,
    /// The parts, in the order in which they were to be measured.
    parts: Vec<Part<'a>>,
}

/// A measurement of a study, or the reason why there is none.
#[derive(Debug)]
pub struct Part<'a> {
    /// The part's value on each axis that the part does not vary itself.
    pub values: Vec<String>,
    /// The measurement, or why it was not made.
    pub made: Result<Made<'a>, Gap>,
}

/// A measurement that was made.
#[derive(Debug)]
pub struct Made<'a> {
    pub record: &'a Record,
    /// Name of the saved record; `None` if it was not saved.
    pub saved: Option<&'a str>,
    pub found: Found<'a>,
}

/// The result of a part's measurement.
#[derive(Debug)]
pub enum Found<'a> {
    /// A run with its verdict.
    Run(Box<Judged<'a>>),
    /// Round trips with one message size.
    Trips(Box<lat::Probe>),
    /// A load in one direction.
    Load(Box<bw::Probe>),
    /// Round trips with each of several message sizes.
    Sizes(Box<Sizes<'a>>),
    /// A load with each value of a factor.
    Loads(Box<Loads<'a>>),
}

impl Found<'_> {
    /// Whether everything that was requested was measured.
    pub fn complete(&self) -> bool {
        match self {
            Self::Run(judged) => judged.model.complete,
            Self::Trips(probe) => probe.complete(),
            Self::Load(probe) => probe.complete(),
            Self::Sizes(sizes) => sizes.complete(),
            Self::Loads(loads) => loads.complete(),
        }
    }

    /// The figures that sum up the measurement; none for round trips of several sizes.
    pub fn summary(&self) -> Summary {
        match self {
            Self::Run(judged) => judged.summary.clone(),
            Self::Trips(probe) => probe.summary(),
            Self::Load(probe) => probe.summary(),
            Self::Sizes(_) => Summary::default(),
            Self::Loads(loads) => loads.summary(),
        }
    }

    /// The headline; `None` if nothing was judged.
    pub fn headline(&self) -> Option<Headline> {
        match self {
            Self::Run(judged) => judged.headline.clone(),
            Self::Trips(probe) => probe.headline(),
            Self::Load(probe) => probe.headline(),
            Self::Sizes(_) | Self::Loads(_) => None,
        }
    }

    /// Values that could not be read, or settings that were refused.
    fn gaps(&self) -> Vec<Gap> {
        match self {
            Self::Run(_) => Vec::new(),
            Self::Trips(probe) => probe.gaps().to_vec(),
            Self::Load(probe) => probe.gaps().to_vec(),
            Self::Sizes(sizes) => sizes.gaps(),
            Self::Loads(loads) => loads.gaps(),
        }
    }

    /// The axis that the measurement varies itself; `None` if it varies none.
    fn axis(&self) -> Option<Axis> {
        match self {
            Self::Sizes(sizes) => Some(sizes.axis()),
            Self::Loads(loads) => Some(loads.axis()),
            Self::Run(_) | Self::Trips(_) | Self::Load(_) => None,
        }
    }

    /// The message sizes whose round trips were timed, with the times.
    fn timed(&self) -> Vec<Timed<'_>> {
        match self {
            Self::Trips(probe) => probe.timed().into_iter().collect(),
            Self::Sizes(sizes) => sizes.timed(),
            Self::Run(_) | Self::Load(_) | Self::Loads(_) => Vec::new(),
        }
    }
}

impl<'a> Study<'a> {
    /// Makes a study of the far end `target`, in which `axes` differ between the parts.
    pub fn new(target: Option<&'a str>, axes: &[Axis], parts: Vec<Part<'a>>) -> Self {
        let made = parts.iter().filter_map(|part| part.made.as_ref().ok());
        let own = made.filter_map(|made| made.found.axis()).reduce(joined);
        Self { target, axes: axes.iter().cloned().chain(own).collect(), parts }
    }

    /// Makes a study of a single record that varies a factor itself.
    pub fn of_one(record: &'a Record, saved: Option<&'a str>, found: Found<'a>) -> Self {
        let made = Ok(Made { record, saved, found });
        let target = record.start.plan.peer.as_deref();
        Self::new(target, &[], vec![Part { values: Vec::new(), made }])
    }

    /// The parts that were measured, each with its values in words.
    fn made(&self) -> impl Iterator<Item = (String, &Made<'a>)> {
        let parts = self.parts.iter();
        parts.filter_map(|part| Some((self.named(&part.values), part.made.as_ref().ok()?)))
    }

    /// The only part, if it varies all factors of the study itself.
    fn alone(&self) -> Option<&Made<'a>> {
        let [Part { values, made: Ok(made) }] = self.parts.as_slice() else { return None };
        values.is_empty().then_some(made)
    }

    /// The judged runs of a study of one plan.
    fn runs(&self) -> Vec<&Judged<'a>> {
        let runs = self.parts.iter().filter_map(|part| match &part.made {
            Ok(Made { found: Found::Run(judged), .. }) => Some(judged.as_ref()),
            _ => None,
        });
        runs.collect()
    }

    /// Values of a part with the names of their axes: `op read`, `layer verbs, part 64 B`.
    fn named(&self, values: &[String]) -> String {
        let each = self.axes.iter().zip(values);
        let each: Vec<String> =
            each.map(|(axis, value)| format!("{} {value}", axis.name)).collect();
        each.join(", ")
    }

    /// The points of all parts, in order.
    fn points(&self) -> Vec<Point> {
        self.parts.iter().flat_map(Part::points).collect()
    }

    /// Whether everything that was requested was measured.
    pub fn complete(&self) -> bool {
        let whole = |part: &Part<'_>| part.made.as_ref().is_ok_and(|made| made.found.complete());
        self.parts.iter().all(whole)
    }

    /// The headline over all runs; `None` if no part has a verdict.
    fn headline(&self) -> Option<Headline> {
        let runs = self.runs();
        let answers = runs::answers(&runs);
        let headline = Headline::of_entries(answers.iter().map(|answer| answer.entry));
        Some(headline?.of_part(self.complete()))
    }

    /// The sizes that were not timed, in words: tables in the form of other tools leave them out.
    pub fn not_measured(&self) -> String {
        self.made().map(|(_, made)| not_measured(&made.found)).collect()
    }

    /// The tables in the output format of a tool. If there are several parts, a line before each table names its part.
    pub fn like(&self, like: Like) -> String {
        let tables = self.made().map(|(name, made)| {
            let page = like::page(like, &made.found.timed());
            if name.is_empty() { page } else { format!("{name}\n{page}") }
        });
        tables.collect()
    }
}

impl Part<'_> {
    fn points(&self) -> Vec<Point> {
        let values = || self.values.clone();
        let made = match &self.made {
            Ok(made) => made,
            Err(why) => return vec![Point::lacking(values(), why.clone())],
        };
        match &made.found {
            Found::Run(judged) => {
                let times = timed_operations(made.record);
                let own = judged.summary.entries.iter().cloned();
                // Single operations beside a load are not those of the load.
                let own = own.filter(|entry| times.is_empty() || *entry.figure != LATENCY);
                let entries: Vec<Entry> = own.collect();
                vec![Point::new(values(), 1, entries.into_iter().chain(times).collect())]
            }
            Found::Trips(probe) => {
                let lacking = || Point::lacking(values(), gap("no round trip was answered"));
                let mut point = probe.timed().map_or_else(lacking, |timed| {
                    if probe.is_loaded() {
                        let entries = probe.summary().entries;
                        return Point::new(values(), samples(timed.times), entries);
                    }
                    Point::of_times(values(), timed.times)
                });
                point.lost = probe.lost();
                vec![point]
            }
            Found::Load(probe) => {
                let share = share(made.record, &probe.summary().entries);
                let times = timed_operations(made.record);
                let entries = probe.summary().entries.into_iter().chain(share).chain(times);
                vec![Point::new(values(), 1, entries.collect())]
            }
            Found::Sizes(sizes) => sizes.points(&self.values),
            Found::Loads(loads) => loads.points(&self.values),
        }
    }
}

/// The percentiles of the operations that a load timed; none if it timed none.
fn timed_operations(record: &Record) -> Vec<Entry> {
    let each = Direction::ALL.into_iter().filter_map(|direction| {
        let times = base_operations(record, direction)?;
        Some(percentiles(&times, Subject::load(direction)))
    });
    each.flatten().collect()
}

/// The figure of a load's goodput as a share of the lowest known ceiling.
fn share(record: &Record, entries: &[Entry]) -> Option<Entry> {
    let goodput = entries.iter().find(|entry| *entry.figure == GOODPUT)?;
    let direction = goodput.of.direction?;
    let model = derive(record);
    let ceiling = model.direction(direction)?.ceiling()?.rate.0 as f64;
    let share = goodput.value.as_ref().ok()?.mid / ceiling.max(1.0);
    Some(Entry::bare(&CEILING, Subject::load(direction), share))
}

/// The hardware that a rate of this record may be compared with.
fn agreement(record: &Record) -> Agreement {
    Agreement::of(same_machine(record), hardware(&record.hosts))
}

/// A gap that says why a point has no figures.
fn gap(why: impl Into<String>) -> Gap {
    Gap { what: String::new(), why: why.into(), hint: String::new() }
}

/// An axis with the values of both axes, in ascending order if they are numbers.
fn joined(mut one: Axis, other: Axis) -> Axis {
    one.values.extend(other.values);
    one.values.sort_by_key(|value| value.number);
    one.values.dedup();
    one
}
