//! A study, for people and for programs: one or two factors varied, and the figures at each point.
//!
//! A part of a study is one record. It is a point of the study, or it has several: those of a factor that it varies itself.

mod grid;
mod json;
mod layers;
mod loads;
mod runs;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod sizes;
mod text;

use linerate_explain::Headline;
use linerate_explain::diff::Judged;
use linerate_facts::Gap;
use linerate_judge::figure::{CEILING, Entry, GOODPUT, Subject, Summary};
use linerate_judge::model::{derive, hardware, same_machine};
use linerate_judge::study::Point;
use linerate_plan::study::Axis;
use linerate_record::Record;
use linerate_units::stats::samples;

pub use json::json;
pub(super) use json::{Output, output};
pub use layers::{LAYERS, PART};
pub use loads::Loads;
pub use sizes::{Sizes, not_measured};
pub use text::{page, run};

use super::fitted::Agreement;
use super::like::{self, Like, Timed};
use super::{bw, lat};

/// The axis of runs of one plan.
pub const RUN: &str = "run";

/// A study.
#[derive(Debug)]
pub struct Study<'a> {
    /// The far end in the form that the user typed; `None` if there is none.
    target: Option<&'a str>,
    /// What is varied from part to part, then what each part varies itself.
    axes: Vec<Axis>,
    /// In the order in which they were to be measured.
    parts: Vec<Part<'a>>,
}

/// A measurement of a study, or the reason why there is none.
#[derive(Debug)]
pub struct Part<'a> {
    /// Its value of each axis that it does not vary itself.
    pub values: Vec<String>,
    /// What was measured.
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

/// What a measurement says.
#[derive(Debug)]
pub enum Found<'a> {
    /// The verdict of a run.
    Run(Box<Judged<'a>>),
    /// Round trips of one size.
    Trips(Box<lat::Probe>),
    /// A load of one direction.
    Load(Box<bw::Probe>),
    /// Round trips of each size.
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

    /// The figures of all of it. Round trips of several sizes have none.
    pub fn summary(&self) -> Summary {
        match self {
            Self::Run(judged) => judged.summary.clone(),
            Self::Trips(probe) => probe.summary(),
            Self::Load(probe) => probe.summary(),
            Self::Sizes(_) => Summary::default(),
            Self::Loads(loads) => loads.summary(),
        }
    }

    /// The answer to read first; `None` if nothing was judged.
    pub fn headline(&self) -> Option<Headline> {
        match self {
            Self::Run(judged) => judged.headline.clone(),
            Self::Trips(probe) => probe.headline(),
            Self::Load(probe) => probe.headline(),
            Self::Sizes(_) | Self::Loads(_) => None,
        }
    }

    /// What could not be read, or was refused.
    fn gaps(&self) -> Vec<Gap> {
        match self {
            Self::Run(_) => Vec::new(),
            Self::Trips(probe) => probe.gaps().to_vec(),
            Self::Load(probe) => probe.gaps().to_vec(),
            Self::Sizes(sizes) => sizes.gaps(),
            Self::Loads(loads) => loads.gaps(),
        }
    }

    /// The axis that it varies itself.
    fn axis(&self) -> Option<Axis> {
        match self {
            Self::Sizes(sizes) => Some(sizes.axis()),
            Self::Loads(loads) => Some(loads.axis()),
            Self::Run(_) | Self::Trips(_) | Self::Load(_) => None,
        }
    }

    /// The sizes of messages whose round trips were timed.
    fn timed(&self) -> Vec<Timed<'_>> {
        match self {
            Self::Trips(probe) => probe.timed().into_iter().collect(),
            Self::Sizes(sizes) => sizes.timed(),
            Self::Run(_) | Self::Load(_) | Self::Loads(_) => Vec::new(),
        }
    }
}

impl<'a> Study<'a> {
    /// A study of the far end `target` that varies `axes` from part to part.
    pub fn new(target: Option<&'a str>, axes: &[Axis], parts: Vec<Part<'a>>) -> Self {
        let made = parts.iter().filter_map(|part| part.made.as_ref().ok());
        let own = made.filter_map(|made| made.found.axis()).reduce(joined);
        Self { target, axes: axes.iter().cloned().chain(own).collect(), parts }
    }

    /// A study of one record that varies a factor by itself.
    pub fn of_one(record: &'a Record, saved: Option<&'a str>, found: Found<'a>) -> Self {
        let made = Ok(Made { record, saved, found });
        let target = record.start.plan.peer.as_deref();
        Self::new(target, &[], vec![Part { values: Vec::new(), made }])
    }

    /// The parts that were measured, with their values in words.
    fn made(&self) -> impl Iterator<Item = (String, &Made<'a>)> {
        let parts = self.parts.iter();
        parts.filter_map(|part| Some((self.named(&part.values), part.made.as_ref().ok()?)))
    }

    /// The part alone that has what the study varies.
    fn alone(&self) -> Option<&Made<'a>> {
        let [Part { values, made: Ok(made) }] = self.parts.as_slice() else { return None };
        values.is_empty().then_some(made)
    }

    /// Runs of one plan.
    fn runs(&self) -> Vec<&Judged<'a>> {
        let runs = self.parts.iter().filter_map(|part| match &part.made {
            Ok(Made { found: Found::Run(judged), .. }) => Some(judged.as_ref()),
            _ => None,
        });
        runs.collect()
    }

    /// `op read`, `layer verbs, part 64 B`.
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

    /// The answer to read first; `None` if no part has a verdict.
    fn headline(&self) -> Option<Headline> {
        let runs = self.runs();
        let answers = runs::answers(&runs);
        let headline = Headline::of_entries(answers.iter().map(|answer| answer.told));
        Some(headline?.of_part(self.complete()))
    }

    /// The sizes that tables of other tools leave out.
    pub fn not_measured(&self) -> String {
        self.made().map(|(_, made)| not_measured(&made.found)).collect()
    }

    /// Tables in the form of a tool, each after a line that names its part, if there are several.
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
                vec![Point::new(values(), 1, judged.summary.entries.clone())]
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
                let entries = probe.summary().entries.into_iter().chain(share);
                vec![Point::new(values(), 1, entries.collect())]
            }
            Found::Sizes(sizes) => sizes.points(&self.values),
            Found::Loads(loads) => loads.points(&self.values),
        }
    }
}

/// The goodput of a load as a share of the lowest known ceiling.
fn share(record: &Record, entries: &[Entry]) -> Option<Entry> {
    let goodput = entries.iter().find(|entry| *entry.figure == GOODPUT)?;
    let direction = goodput.of.direction?;
    let model = derive(record);
    let ceiling = model.direction(direction)?.ceiling()?.rate.0 as f64;
    let share = goodput.value.as_ref().ok()?.mid / ceiling.max(1.0);
    Some(Entry::bare(&CEILING, Subject::load(direction), share))
}

/// What a rate of this record may be compared with.
fn agreement(record: &Record) -> Agreement {
    Agreement::of(same_machine(record), hardware(&record.hosts))
}

/// The reason why a point has no figures.
fn gap(why: impl Into<String>) -> Gap {
    Gap { what: String::new(), why: why.into(), hint: String::new() }
}

/// The values of two axes, in ascending order where they are numbers.
fn joined(mut one: Axis, other: Axis) -> Axis {
    one.values.extend(other.values);
    one.values.sort_by_key(|value| value.number);
    one.values.dedup();
    one
}
