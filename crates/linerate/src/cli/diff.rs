//! `linerate diff`: two records, before and after.

use std::path::PathBuf;

use clap::Parser;
use linerate_core::diff::{DiffError, Judged, diff};

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::{out, show};
use crate::show::diff::{Compared, json, page};

// `linerate diff`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Record from before: `last`, the name of a saved record, or the path of a record file
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
    let before = show::load(&options.records, &args.before)?;
    let after = show::load(&options.records, &args.after)?;
    let (before, after) = (Judged::new(&before), Judged::new(&after));
    let diff = diff(&before, &after).map_err(|error| refusal(error, args))?;
    let compared = Compared {
        before: &before,
        after: &after,
        diff: &diff,
    };
    out::result(options, || json(&compared), || page(&compared))?;
    Ok(Exit::Done)
}

fn refusal(error: DiffError, args: &Args) -> Failure {
    let Args { before, after, .. } = args;
    let words = anyhow::Error::new(error).context(format!("cannot compare {before} and {after}"));
    match error {
        DiffError::Same => Failure::usage(words).hint("name two runs: linerate diff BEFORE AFTER"),
        DiffError::Empty(_) => {
            Failure::not_measured(words).hint("linerate show NAME shows a record")
        }
        DiffError::Apart { .. } => {
            Failure::not_measured(words).hint("measure both directions: --direction both")
        }
    }
}
