//! Judges a record and prints the result: the last step of `run`, and all of `show`.

use std::io::Write;

use linerate_judge::figure::Summary;
use linerate_judge::model::{Model, derive};
use linerate_judge::verdict::{Verdict, judge};
use linerate_plan::path::Direction;
use linerate_record::Record;

use super::exit::{Exit, Failure, tell};
use super::options::Options;
use super::out;
use crate::expect::Found;
use linerate_show::stream::Stream;
use linerate_show::{json, noted, text};

/// What is shown besides the verdict.
pub(crate) struct Shown<'a> {
    /// Name under which the record was saved, and the command that shows it.
    pub(crate) saved: Option<(&'a str, &'a str)>,
    /// Whether the result for every cause is shown, not only for limits.
    pub(crate) explain: bool,
}

/// Judges a record, prints the result, and checks the expectations.
pub(crate) fn show(record: &Record, how: &Shown<'_>, options: &Options) -> Result<Exit, Failure> {
    let model = derive(record);
    let verdict = judge(&model);
    let report = &options.report;
    let words = if report.json == Some(true) {
        json::verdict(record, &model, &verdict, report.with_record == Some(true))
            .map_err(Failure::not_measured)?
    } else {
        for_people(record, &model, &verdict, how, options)
    };
    out::last(&words)?;
    Ok(exit(record, &model, &verdict, options))
}

/// Judges a record, and writes the result as the last line of a stream.
pub(crate) fn end_stream<W: Write>(
    record: &Record,
    mut stream: Stream<W>,
    options: &Options,
) -> Result<Exit, Failure> {
    let model = derive(record);
    let verdict = judge(&model);
    let with_record = options.report.with_record == Some(true);
    stream.result(record, &model, &verdict, with_record);
    stream.finish().map_err(out::failed)?;
    Ok(exit(record, &model, &verdict, options))
}

/// The exit code after a run.
pub(super) fn exit(record: &Record, model: &Model, verdict: &Verdict, options: &Options) -> Exit {
    let measured = if model.complete { Exit::Done } else { Exit::NotMeasured };
    let requested = &record.start.plan.directions;
    if !is_bound(options) {
        return measured;
    }
    let found = Found { summary: Summary::of(record, model), verdict: Some(verdict) };
    measured.or(expectations(requested, &found, options))
}

fn for_people(
    record: &Record,
    model: &Model,
    verdict: &Verdict,
    how: &Shown<'_>,
    options: &Options,
) -> String {
    let document = noted(text::verdict(record, model, verdict, how.saved), record);
    let mut words = out::rendered(&document, options);
    if how.explain {
        words.push('\n');
        words += &out::rendered(&text::explain(record, model, verdict), options);
    }
    words
}

/// Whether the user set any bound with `--expect`.
pub(super) fn is_bound(options: &Options) -> bool {
    options.report.expect.iter().any(|all| !all.is_empty())
}

/// Checks the results against every bound, and reports the bounds that do not hold.
pub(crate) fn expectations(requested: &[Direction], found: &Found<'_>, options: &Options) -> Exit {
    let mut exit = Exit::Done;
    for expect in options.report.expect.iter().flatten() {
        if let Err(why) = expect.check(requested, found) {
            tell(&format!("expectation failed: {expect}: {why}\n"));
            exit = Exit::Missed;
        }
    }
    exit
}
