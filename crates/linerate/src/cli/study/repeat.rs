//! `linerate run --repeat`: runs one plan several times and compares the runs.

use anyhow::anyhow;
use linerate_explain::diff::Judged;
use linerate_plan::Plan;
use linerate_plan::study::Axis;
use linerate_record::Made;
use linerate_show::study::{self as show, RUN};

use super::super::exit::{Exit, Failure, tell};
use super::super::options::Options;
use super::super::session;
use super::super::single::{self, Measured};
use super::super::{out, report, run};
use super::{Done, Parts};

/// Runs a plan `times` times. Failing to save a record that the user requested makes the exit code a failure.
pub(in super::super) fn run(
    plan: &Plan,
    times: u32,
    options: &Options,
    requested: bool,
) -> Result<Exit, Failure> {
    if options.run.stream_json == Some(true) {
        let error = anyhow!("--stream-json reports only one run");
        return Err(Failure::usage(error).hint("--json prints one document of all runs"));
    }
    let runs = Axis::of(RUN, (1..=times).map(|number| number.to_string()));
    let parts = Parts::measured(vec![runs], true, options, |at, options, stop| {
        let run = linerate_session::run::run;
        let mut measured = single::open(plan.clone(), Made::Run, options, stop, run)?;
        let number = at.first().map_or(1, |at| at + 1);
        let exit = print_run(&measured, number, times as usize, options)?;
        let exit = exit.or(measured.kept(requested));
        if let Some(error) = measured.error.take() {
            tell(&session::link_failure(error).words());
        }
        Ok((Done::from(measured), exit))
    })?;
    if options.report.json != Some(true) {
        out::print("\n")?;
    }
    parts.shown(plan.peer.as_deref(), options)
}

/// In text output, prints one run in short. Checks the bounds of `--expect`.
fn print_run(
    measured: &Measured,
    number: usize,
    of: usize,
    options: &Options,
) -> Result<Exit, Failure> {
    let judged = Judged::new(&measured.record);
    if options.report.json != Some(true) {
        let saved = measured.saved.as_deref();
        let shown_by = saved.map(|name| run::shown_by(name, &options.records));
        let page = show::run(&judged, number, of, shown_by.as_deref());
        out::print(&out::rendered(&page, options))?;
    }
    Ok(report::exit(&measured.record, &judged.model, &judged.verdict, options))
}
