//! `linerate diff`: two records, before and after.

use std::path::PathBuf;

use clap::Parser;
use linerate_explain::diff::{DiffError, Judged, diff_of_studies};
use linerate_explain::{Material, explain};
use linerate_record::{Record, Start};
use linerate_session::store;

use super::exit::{Exit, Failure};
use super::options::{self, Options, Records};
use super::session::records_of;
use super::{import, out, show};
use linerate_show::diff::{Compared, json, page};

// `linerate diff`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Record from before: `last`, the name or the note of a saved record, or the path of a record file. One of the
    /// records of a study, such as `run --repeat`, stands for all of them beside one of another study
    before: String,

    /// Record from after
    after: String,

    #[command(flatten)]
    pub(crate) json: options::Json,

    /// Directory of saved records [default: $XDG_STATE_HOME/linerate/records]
    #[arg(long, env = "LINERATE_SAVE", value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let (before, whole) = show::load(&options.records, &args.before)?;
    let (after, exit) = show::load(&options.records, &args.after)?;
    // Whole studies are compared only if both records belong to studies, and to different ones.
    let are_studies =
        matches!((study(&before.start), study(&after.start)), (Some(a), Some(b)) if a != b);
    let both = [before, after]
        .map(|record| if are_studies { of_study(record, &options.records) } else { vec![record] });
    let [before, after] = both.each_ref().map(|records| {
        records.iter().map(|record| judged(record, &import::material(record))).collect::<Vec<_>>()
    });
    let diff = diff_of_studies(&before, &after).map_err(|error| refusal(&error, args))?;
    let compared = Compared { before: &before[0], after: &after[0], diff: &diff };
    out::result(options, || json(&compared), || page(&compared))?;
    Ok(whole.or(exit))
}

/// Id of the study that this record is one of several records of.
fn study(start: &Start) -> Option<u64> {
    start.study.as_ref().filter(|study| !study.at.is_empty()).map(|study| study.id)
}

/// All records of the study that `record` is part of, in the order of its points.
fn of_study(record: Record, records: &Records) -> Vec<Record> {
    let Ok(store) = records_of(records) else {
        return vec![record];
    };
    let own = study(&record.start);
    let is_of = |path: &PathBuf| store::start(path).is_ok_and(|start| study(&start) == own);
    let paths = store.list().unwrap_or_default().into_iter().filter(is_of);
    let mut all: Vec<Record> =
        paths.filter_map(|path| Some(store::open(path).ok()?.record)).collect();
    if all.is_empty() {
        return vec![record];
    }
    all.sort_by_key(|record| record.start.study.as_ref().map(|study| study.at.clone()));
    all
}

/// A record with its verdict; `material` holds the results and facts of an imported record.
pub(super) fn judged<'a>(record: &'a Record, material: &Material) -> Judged<'a> {
    if record.imported.is_some() {
        Judged::import(record, &explain(material))
    } else {
        Judged::new(record)
    }
}

fn refusal(error: &DiffError, args: &Args) -> Failure {
    let Args { before, after, .. } = args;
    let words =
        anyhow::Error::new(error.clone()).context(format!("cannot compare {before} and {after}"));
    match error {
        DiffError::Same => Failure::usage(words).hint("name two runs: linerate diff BEFORE AFTER"),
        DiffError::Empty(_)
        | DiffError::NoResults(_)
        | DiffError::Sweep(_)
        | DiffError::Rows(_)
        | DiffError::Unlike => {
            Failure::not_measured(words).hint("linerate show NAME shows a record")
        }
        DiffError::Apart { .. } => {
            Failure::not_measured(words).hint("measure both directions: --direction both")
        }
    }
}
