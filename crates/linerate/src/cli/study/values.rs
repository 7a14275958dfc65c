//! `linerate lat --op read,write`, `linerate lat --engine tcp,udp`: round trips with each of several values of an
//! option.

use anyhow::anyhow;
use linerate_plan::study::Axis;

use super::super::exit::{Exit, Failure, tell};
use super::super::options::Options;
use super::super::options::own::Each;
use super::super::session::Stop;
use super::super::{lat, out, resolve};
use super::{Done, Parts, sizes};
use crate::expect::Found;

/// The name of the option that selects transports.
const ENGINE: &str = "engine";

/// One of several values of an option, and all options with that value set.
type Variant = (String, Options);

/// The option that has several values, and its variants; `None` if no option has several.
pub(in super::super) fn several(
    each: &[Each],
    options: &Options,
) -> Result<Option<(String, Vec<Variant>)>, Failure> {
    let of_engine = engines(options)?;
    let of_own = each.iter().map(|(key, settings)| {
        let with = |setting: &_| {
            let engine = options.engine.with(key, setting);
            (setting.to_string(), Options { engine, ..options.clone() })
        };
        ((*key).to_owned(), settings.iter().map(with).collect())
    });
    let all: Vec<(String, Vec<Variant>)> = of_engine.into_iter().chain(of_own).collect();
    match all.as_slice() {
        [(one, _), (other, _), ..] => {
            let error = anyhow!("--{one} and --{other} have several values each");
            Err(Failure::usage(error).hint("several values of one of them"))
        }
        _ => Ok(all.into_iter().next()),
    }
}

/// The variants of `--engine`, if it names several transports.
fn engines(options: &Options) -> Result<Option<(String, Vec<Variant>)>, Failure> {
    let typed = options.run.engine.as_deref().unwrap_or_default();
    if !typed.contains(',') {
        return Ok(None);
    }
    let with = |name: &str| {
        let mut options = options.clone();
        options.run.engine = Some(name.to_owned());
        resolve::engine(&options.run, resolve::Needs::RoundTrips)?;
        Ok((name.to_owned(), options))
    };
    let all: Result<_, Failure> = typed.split(',').map(with).collect();
    Ok(Some((ENGINE.to_owned(), all?)))
}

/// Measures with each value in turn.
pub(in super::super) fn run(
    target: Option<&str>,
    (key, variants): (String, Vec<Variant>),
    options: &Options,
) -> Result<Exit, Failure> {
    let axis = Axis::of(&key, variants.iter().map(|(value, _)| value.clone()));
    refuse(&axis, options)?;
    let parts = Parts::measured(vec![axis], false, options, |at, own, stop| {
        let mut options = at.first().map_or_else(Options::default, |at| variants[*at].1.clone());
        options.records = own.records.clone();
        let mut done = measure(target, &options, stop)?;
        let found = done.found();
        let (complete, summary) = (found.complete(), found.summary());
        if options.lat.like.is_some() {
            tell(&linerate_show::study::not_measured(&found));
        }
        drop(found);
        let exit = done.measured.exit(complete, &Found::figures(summary), &options);
        Ok((done, exit))
    })?;
    if let Some(like) = options.lat.like {
        out::print(&parts.study(target).like(like.into()))?;
        return Ok(parts.exit);
    }
    parts.shown(target, options)
}

/// Measures with one variant: a sweep of sizes, or round trips of one size.
fn measure(target: Option<&str>, options: &Options, stop: &Stop) -> Result<Done, Failure> {
    if options.lat.sweep.is_some() {
        sizes::measure(target, options, stop)
    } else {
        lat::measure(target, options, stop).map(Done::from)
    }
}

/// Refuses options that do not fit several values, and a value that is named twice.
fn refuse(axis: &Axis, options: &Options) -> Result<(), Failure> {
    let key = &axis.name;
    if options.run.stream_json == Some(true) {
        let error =
            anyhow!("--stream-json reports one measurement, and --{key} has several values");
        return Err(Failure::usage(error).hint("--json prints one document of all"));
    }
    let values = &axis.values;
    let twice = (0..values.len()).find(|at| values[..*at].contains(&values[*at]));
    match twice {
        Some(at) => {
            let error = anyhow!("--{key} has {} twice", values[at].label);
            Err(Failure::usage(error).hint("name each value once"))
        }
        None => Ok(()),
    }
}
