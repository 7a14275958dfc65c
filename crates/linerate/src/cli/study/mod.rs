//! Studies: one or two factors varied, and a measurement at each of their values.
//!
//! A study continues after a part that failed; only the user ends it. A part that has its own session also has its own
//! plan and record, as if it had been requested alone.

pub(super) mod layers;
pub(super) mod loads;
pub(super) mod mount;
pub(super) mod repeat;
pub(super) mod rows;
pub(super) mod sizes;
pub(super) mod values;

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use linerate_explain::diff::Judged;
use linerate_facts::Gap;
use linerate_plan::study::{Axis, Part};
use linerate_record::{End, Record, RecordKind};

use super::exit::{Exit, Failure, tell};
use super::options::Options;
use super::session::Stop;
use super::single::{Measured, THIS_HOST};
use super::{out, report};
use crate::expect::Found;
use linerate_judge::model::is_by_size;
use linerate_show::study::{self as show, Loads, Made, Sizes, Study};
use linerate_show::{bw, lat};

/// The measurement of one part.
pub(super) struct Done {
    pub(super) measured: Measured,
    /// The values that an end refused of the factor that this part itself varies, and why.
    pub(super) left_out: Vec<Gap>,
}

impl From<Measured> for Done {
    fn from(measured: Measured) -> Self {
        Self { measured, left_out: Vec::new() }
    }
}

impl Done {
    /// The results in the record of this part.
    pub(super) fn found(&self) -> show::Found<'_> {
        found(&self.measured.record, &self.measured.address, self.left_out.clone())
    }
}

/// The results in a record that may be part of a study.
pub(super) fn found<'a>(
    record: &'a Record,
    address: &'a str,
    left_out: Vec<Gap>,
) -> show::Found<'a> {
    let target = record.start.plan.peer.as_deref().unwrap_or(THIS_HOST);
    if is_by_size(record) {
        let sizes = sizes::carried(record);
        return show::Found::Sizes(Box::new(Sizes::of(record, &sizes, left_out)));
    }
    match record.start.kind() {
        RecordKind::Bw => match Loads::of(record, address, left_out) {
            Some(loads) => show::Found::Loads(Box::new(loads)),
            None => show::Found::Load(Box::new(bw::Probe::own(target, address, record, None))),
        },
        RecordKind::Lat => show::Found::Trips(Box::new(lat::Probe::of(target, address, record))),
        RecordKind::Run | RecordKind::Sweep | RecordKind::Import => {
            show::Found::Run(Box::new(Judged::new(record)))
        }
    }
}

/// The study that one record holds, if the record varies a factor by itself.
pub(super) fn of_record(record: &Record) -> Option<Study<'_>> {
    if !is_by_size(record) && record.start.kind() != RecordKind::Bw {
        return None;
    }
    let found = found(record, "", Vec::new());
    let varies = matches!(found, show::Found::Sizes(_) | show::Found::Loads(_));
    varies.then(|| Study::of_one(record, None, found))
}

/// A part of the study: its value on each axis, and its measurement or the reason why there is none.
pub(super) type Outcome = (Vec<String>, Result<Done, Gap>);

/// All parts of a study, and the exit code that they cause.
pub(super) struct Parts {
    axes: Vec<Axis>,
    outcomes: Vec<Outcome>,
    exit: Exit,
}

impl Parts {
    /// Measures at all combinations of values of `axes` in turn; `measure` gets the index of the value on each axis.
    /// Parts that are `alike` fail alike: a failure of the first one ends the study.
    pub(super) fn measured(
        axes: Vec<Axis>,
        alike: bool,
        options: &Options,
        mut measure: impl FnMut(&[usize], &Options, &Stop) -> Result<(Done, Exit), Failure>,
    ) -> Result<Self, Failure> {
        let mut stop = Stop::new()?;
        let began = SystemTime::now().duration_since(UNIX_EPOCH);
        let id = began.map_or(0, |began| began.as_nanos() as u64);
        let mut all = Self { axes, outcomes: Vec::new(), exit: Exit::Done };
        let (mut interrupted, mut failures) = (false, Failures::default());
        let places = places(&all.axes);
        for (number, at) in places.iter().enumerate() {
            interrupted |= stop.is_set();
            let values = labels(&all.axes, at);
            if interrupted {
                all.lacks(values, anyhow!("interrupted before"));
                continue;
            }
            let name = named(&all.axes, &values);
            if options.global.quiet != Some(true) || report::is_bound(options) {
                tell(&format!("{name}, {} of {}\n", number + 1, places.len()));
            }
            let mut own = options.clone();
            own.records.study = Some(Part { id, axes: all.axes.clone(), at: at.clone() });
            match measure(at, &own, &stop) {
                Ok((done, exit)) => {
                    all.exit = all.exit.or(exit);
                    interrupted = done.measured.record.end == Some(End::Interrupted);
                    stop.keep();
                    all.outcomes.push((values, Ok(done)));
                }
                Err(failure) if alike && number == 0 || failure.is_of_output() => {
                    return Err(failure);
                }
                Err(failure) => all.failed(values, failures.tell_failure(&name, failure)),
            }
        }
        if all.outcomes.iter().any(|(_, made)| made.is_ok()) {
            return Ok(all);
        }
        Err(failures.of_all())
    }

    fn lacks(&mut self, values: Vec<String>, why: anyhow::Error) {
        self.failed(values, Failure::not_measured(why));
    }

    fn failed(&mut self, values: Vec<String>, failure: Failure) {
        let gap =
            Gap { what: String::new(), why: format!("{:#}", failure.error), hint: failure.hint };
        self.exit = self.exit.or(Exit::NotMeasured);
        self.outcomes.push((values, Err(gap)));
    }

    /// The study, as it is printed.
    pub(super) fn study<'a>(&'a self, target: Option<&'a str>) -> Study<'a> {
        let part = |(values, made): &'a Outcome| show::Part {
            values: values.clone(),
            made: made.as_ref().map_err(Gap::clone).map(|done| Made {
                record: &done.measured.record,
                saved: done.measured.saved.as_deref(),
                found: done.found(),
            }),
        };
        Study::new(target, &self.axes, self.outcomes.iter().map(part).collect())
    }

    /// Prints the study; returns the exit code.
    pub(super) fn shown(&self, target: Option<&str>, options: &Options) -> Result<Exit, Failure> {
        print(&self.study(target), options)?;
        Ok(self.exit)
    }
}

/// Failures of parts. Words equal to those of the failure before are not printed again.
#[derive(Default)]
struct Failures {
    first: Option<(Exit, String)>,
    last: String,
}

impl Failures {
    /// Prints a failure of the part `name`, unless the failure before had the same words.
    fn tell_failure(&mut self, name: &str, failure: Failure) -> Failure {
        let words = failure.words();
        self.first.get_or_insert((failure.exit, failure.hint.clone()));
        if words != self.last {
            tell(&format!("{name} was not measured\n{words}"));
        }
        self.last = words;
        failure
    }

    /// The failure of a study in which no part was measured.
    fn of_all(self) -> Failure {
        let (exit, hint) = self.first.unwrap_or((Exit::NotMeasured, String::new()));
        let error = anyhow!("nothing was measured");
        Failure { exit, error, hint }
    }
}

/// All combinations of the indices of values, one index for each axis; the last axis varies fastest.
fn places(axes: &[Axis]) -> Vec<Vec<usize>> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        let longer = |at: Vec<usize>| {
            (0..axis.values.len()).map(move |value| at.iter().copied().chain([value]).collect())
        };
        all.into_iter().flat_map(longer).collect()
    })
}

fn labels(axes: &[Axis], at: &[usize]) -> Vec<String> {
    let each = axes.iter().zip(at);
    each.filter_map(|(axis, at)| Some(axis.values.get(*at)?.label.clone())).collect()
}

/// The name of a part, such as `run 2` or `layer verbs, part 64 B`.
fn named(axes: &[Axis], values: &[String]) -> String {
    let each = axes.iter().zip(values).map(|(axis, value)| format!("{} {value}", axis.name));
    each.collect::<Vec<_>>().join(", ")
}

/// Prints a study in the form that the options select.
pub(super) fn print(study: &Study<'_>, options: &Options) -> Result<(), Failure> {
    let with_record = options.report.with_record == Some(true);
    out::result(options, || show::json(study, with_record), || show::page(study))
}

/// Prints a study that one session measured, as lines of JSON if `--stream-json` is given; returns the exit code.
pub(super) fn ended(done: &mut Done, options: &Options) -> Result<Exit, Failure> {
    let stream = done.measured.stream.take();
    let Measured { record, saved, .. } = &done.measured;
    let found = done.found();
    let (complete, summary) = (found.complete(), found.summary());
    let is_timed = matches!(found, show::Found::Sizes(_));
    let study = Study::of_one(record, saved.as_deref(), found);
    // A load has no table of round trips, so `like` in the configuration file does not apply to it.
    let like = options.lat.like.filter(|_| is_timed);
    if let Some(like) = like {
        out::print(&study.like(like.into()))?;
        tell(&study.not_measured());
    } else if let Some(mut stream) = stream {
        stream.study(&study, options.report.with_record == Some(true));
        stream.finish().map_err(out::failed)?;
    } else {
        print(&study, options)?;
    }
    Ok(done.measured.exit(complete, &Found::figures(summary), options))
}

/// Prints a saved study; returns the exit code.
pub(super) fn show_kept(study: &Study<'_>, options: &Options) -> Result<Exit, Failure> {
    print(study, options)?;
    Ok(if study.complete() { Exit::Done } else { Exit::NotMeasured })
}
