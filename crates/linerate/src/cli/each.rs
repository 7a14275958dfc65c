//! `linerate lat --op read,write`: the same measurement with each of several values of an option, one after the other.
//!
//! Each has a session, a plan and a record of its own, as if it had been asked for alone.

use std::sync::atomic::Ordering;

use anyhow::anyhow;
use linerate_judge::figure::Summary;
use linerate_record::End;

use super::exit::{Exit, Failure, tell};
use super::options::Options;
use super::options::own::Each;
use super::single::Measured;
use super::{lat, out, reach, report, signal, trips};
use crate::expect::Found;
use linerate_show::each::{self as show, Done, Part, View};

/// Why a value was not measured.
const BEFORE: &str = "interrupted before";

/// What one value gave: a result, or why there is none.
type Outcome = Result<(Measured, View), String>;

pub(super) fn run(target: Option<&str>, each: &Each, options: &Options) -> Result<Exit, Failure> {
    let (key, settings) = each;
    let values: Vec<String> = settings.iter().map(ToString::to_string).collect();
    refuse(key, &values, options)?;
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let mut exit = Exit::Done;
    let mut stopped = false;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (number, (setting, value)) in settings.iter().zip(&values).enumerate() {
        if stopped || stop.load(Ordering::Relaxed) {
            exit = exit.or(Exit::NotMeasured);
            outcomes.push(Err(BEFORE.to_owned()));
            continue;
        }
        if options.global.quiet != Some(true) || report::is_bound(options) {
            tell(&format!("{key} {value}, {} of {}\n", number + 1, values.len()));
        }
        let mut options = options.clone();
        options.engine = options.engine.with(key, setting);
        match measure(target, &options) {
            Ok((mut measured, view)) => {
                exit = exit.or(ended(&mut measured, &view, &options));
                stopped = measured.record.end == Some(End::Interrupted);
                outcomes.push(Ok((measured, view)));
            }
            Err(failure) if number == 0 => return Err(failure),
            Err(failure) => {
                let words = failure.words();
                tell(&words);
                exit = exit.or(Exit::NotMeasured);
                outcomes.push(Err(words.trim_end().to_owned()));
            }
        }
    }
    print(key, &values, &outcomes, options)?;
    Ok(exit)
}

/// Measures with one value.
fn measure(target: Option<&str>, options: &Options) -> Result<(Measured, View), Failure> {
    if options.lat.sweep.is_some() {
        let (measured, probe) = trips::measure(target, options)?;
        Ok((measured, View::Sweep(Box::new(probe))))
    } else {
        let (measured, probe) = lat::measure(target, options)?;
        Ok((measured, View::Once(Box::new(probe))))
    }
}

/// Tells what is told of one measurement, and checks its expectations.
fn ended(measured: &mut Measured, view: &View, options: &Options) -> Exit {
    let summary = match view {
        View::Once(probe) => probe.summary(),
        View::Sweep(probe) => {
            if options.lat.like.is_some() {
                tell(&trips::not_measured(probe));
            }
            Summary::default()
        }
    };
    measured.exit(view.complete(), &Found::figures(summary), options)
}

fn print(
    key: &str,
    values: &[String],
    outcomes: &[Outcome],
    options: &Options,
) -> Result<(), Failure> {
    let parts = values.iter().zip(outcomes).map(|(value, outcome)| Part {
        value,
        measured: match outcome {
            Ok((measured, view)) => {
                Ok(Done { view, record: &measured.record, saved: measured.saved.as_deref() })
            }
            Err(why) => Err(why.as_str()),
        },
    });
    let each = show::Each { option: key, parts: parts.collect() };
    if let Some(like) = options.lat.like {
        return out::print(&each.like(like.into()));
    }
    let with_record = options.report.with_record == Some(true);
    out::result(options, || show::json(&each, with_record), || show::page(&each))
}

/// Refuses what cannot be done with each value.
fn refuse(key: &str, values: &[String], options: &Options) -> Result<(), Failure> {
    if options.run.stream_json == Some(true) {
        let error =
            anyhow!("--stream-json reports one measurement, and --{key} has several values");
        return Err(Failure::usage(error).hint("--json prints one document of all"));
    }
    let twice = |(at, value): (usize, &String)| values[..at].contains(value).then(|| value.clone());
    match values.iter().enumerate().find_map(twice) {
        Some(value) => {
            let error = anyhow!("--{key} has {value} twice");
            Err(Failure::usage(error).hint("name each value once"))
        }
        None => Ok(()),
    }
}
