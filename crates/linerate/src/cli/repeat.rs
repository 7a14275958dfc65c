//! `linerate run --repeat`: one plan several times, to see what stays the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_explain::diff::Judged;
use linerate_plan::Plan;
use linerate_record::End;

use super::exit::{Exit, Failure, tell};
use super::options::Options;
use super::session::{self, FirstEnds, Outcome};
use super::{out, reach, report, run, signal};
use linerate_show::repeat::{self, Run};

/// Runs a plan `times` times; a run that was ended, or that failed, is the last one. Records that were `asked` for and
/// cannot be kept are a failure.
pub(super) fn run(
    plan: &Plan,
    times: u32,
    options: &Options,
    asked: bool,
) -> Result<Exit, Failure> {
    if options.run.stream_json == Some(true) {
        let error = anyhow!("--stream-json reports only one run");
        return Err(Failure::usage(error).hint("--json prints one document of all runs"));
    }
    let of = times as usize;
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let mut exit = Exit::Done;
    let mut kept: Vec<Outcome> = Vec::new();
    for number in 1..=of {
        // Between two runs no other code checks for a stop.
        if stop.load(Ordering::Relaxed) {
            exit = exit.or(Exit::NotMeasured);
            break;
        }
        if options.global.quiet != Some(true) {
            tell(&format!("run {number} of {of}\n"));
        }
        // From the second run on there is a comparison to print.
        let first = if kept.is_empty() { FirstEnds::Program } else { FirstEnds::Run };
        let mut outcome = match measured(plan, options, &stop, first) {
            Ok(outcome) => outcome,
            Err(failure) if kept.is_empty() => return Err(failure),
            // Runs that were measured before the failure are kept.
            Err(failure) => {
                tell(&failure.words());
                exit = exit.or(Exit::NotMeasured);
                break;
            }
        };
        exit = exit.or(told(&outcome, number, of, options)?);
        if asked && outcome.saved.is_none() {
            exit = exit.or(Exit::NotMeasured);
        }
        let last = outcome.error.is_some() || outcome.record.end == Some(End::Interrupted);
        if let Some(error) = outcome.error.take() {
            tell(&session::link_failure(error).words());
        }
        kept.push(outcome);
        if last {
            break;
        }
    }
    let runs: Vec<Run<'_>> = kept.iter().map(judged).collect();
    let words = if options.report.json == Some(true) {
        repeat::json(&runs, of, options.report.with_record == Some(true))
            .map_err(Failure::not_measured)?
    } else {
        format!("\n{}", out::rendered(&repeat::summary(&runs), options))
    };
    out::print(&words)?;
    Ok(exit)
}

/// Makes one run, in which something was measured.
fn measured(
    plan: &Plan,
    options: &Options,
    stop: &Arc<AtomicBool>,
    first: FirstEnds,
) -> Result<Outcome, Failure> {
    let outcome = session::measure(plan.clone(), options, None, stop, first)?;
    if outcome.record.steps.is_empty() {
        return Err(session::nothing(&outcome.record, outcome.error));
    }
    Ok(outcome)
}

/// Prints one run in short, for text output, and checks the expected conditions.
fn told(outcome: &Outcome, number: usize, of: usize, options: &Options) -> Result<Exit, Failure> {
    let one = judged(outcome);
    if options.report.json != Some(true) {
        let shown_by = one.saved.map(|name| run::shown_by(name, &options.records));
        let page = repeat::run(&one, number, of, shown_by.as_deref());
        out::print(&out::rendered(&page, options))?;
    }
    let Judged { record, model, verdict, .. } = &one.judged;
    Ok(report::exit(record, model, verdict, options))
}

fn judged(outcome: &Outcome) -> Run<'_> {
    Run { judged: Judged::new(&outcome.record), saved: outcome.saved.as_deref() }
}
