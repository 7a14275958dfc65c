//! `linerate diff`: two records, before and after.

use std::path::PathBuf;

use clap::Parser;
use linerate_explain::diff::{DiffError, Judged, diff};
use linerate_explain::{Material, explain};
use linerate_record::Record;

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::{import, out, show};
use linerate_show::diff::{Compared, json, page};

// `linerate diff`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Record from before: `last`, the name or the note of a saved record, or the path of a record file
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
    let materials = [import::material(&before), import::material(&after)];
    let before = judged(&before, &materials[0]);
    let after = judged(&after, &materials[1]);
    let diff = diff(&before, &after).map_err(|error| refusal(&error, args))?;
    let compared = Compared { before: &before, after: &after, diff: &diff };
    out::result(options, || json(&compared), || page(&compared))?;
    Ok(whole.or(exit))
}

/// A record with its verdict; `material` is that of an import.
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
