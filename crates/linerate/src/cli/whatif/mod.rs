//! `linerate whatif`: the capacity of a path described in a file, and the effect of changes to it.

mod compare;
mod explained;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use clap::Parser;
use linerate_explain::case::{
    Answer, Case, CaseError, FigureCheck, answer, check_figures, imported, measured,
};
use linerate_record::frame::MAGIC;

use super::exit::{Exit, Failure};
use super::options::{self, Options, Records};
use super::session::records_of;
use super::{import, out, show};
use crate::cases::CASES;
use linerate_show::whatif::{self as view, Change, PathResults};

/// Largest case file that is read, in bytes: the limit also ends the reading of a device file.
const LONGEST: u64 = 256 << 10;

const HINT: &str = "docs/cases.md has a sample with every key";

// `linerate whatif`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Description of a path: a case file, one of the built-in cases case1 to case5, or a record (`last`,
    /// the name of a saved record, or the path of a record file)
    #[arg(required_unless_present = "compare")]
    case: Option<String>,

    /// Change one value, such as near.port.pcie=gen3x16; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,

    /// Compare several paths in one table: ceiling, best published rate, latency, price, watts, next limit;
    /// `--format csv` prints it for spreadsheets
    #[arg(long, value_name = "CASE", num_args = 1.., conflicts_with_all = ["case", "sets"])]
    compare: Vec<String>,

    #[command(flatten)]
    pub(crate) json: options::Json,
}

impl Args {
    /// Whether the result is one table, which can be CSV.
    pub(super) fn is_table(&self) -> bool {
        !self.compare.is_empty()
    }
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    if args.is_table() {
        return compare::run(&args.compare, options);
    }
    let name = args.case.as_deref().unwrap_or_default();
    let text = text_of(name, &options.records)?;
    let solved = Solved::of(&text, &args.sets).map_err(|error| refused(name, error))?;
    let paths = explained::read(&text).map_err(|error| refused(name, error))?;
    let explained = explained::explained(&paths);
    let change = solved.change(&args.sets, &explained);
    out::result(options, || view::document(&change), || view::page(&change))?;
    Ok(Exit::Done)
}

/// The failure for a case that is not valid.
fn refused(name: &str, error: impl Into<anyhow::Error>) -> Failure {
    let what = format!("the case {name} is not valid");
    Failure::usage(error.into().context(what)).hint(HINT)
}

/// A case and its answer, before and after the changes of `--set`.
struct Solved {
    before: (Case, Answer),
    after: Option<(Case, Answer)>,
    checks: Vec<FigureCheck>,
}

impl Solved {
    fn of(text: &str, sets: &[String]) -> Result<Self, CaseError> {
        let solve = |sets: &[String]| {
            let case = Case::read(text, sets)?;
            let answer = answer(&case)?;
            Ok((case, answer))
        };
        Ok(Self {
            before: solve(&[])?,
            after: (!sets.is_empty()).then(|| solve(sets)).transpose()?,
            checks: check_figures(text)?,
        })
    }

    fn change<'a>(&'a self, sets: &'a [String], explained: &'a [PathResults<'a>]) -> Change<'a> {
        Change {
            before: (&self.before.0, &self.before.1),
            after: self.after.as_ref().map(|(case, answer)| (case, answer)),
            sets,
            checks: &self.checks,
            results: explained,
        }
    }
}

/// The text of a built-in case or of a file. A record is turned into the text of a case that describes its path.
fn text_of(name: &str, records: &Records) -> Result<String, Failure> {
    if let Some((_, text)) = CASES.iter().find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    // If the directory of records is unknown, the name may still be that of a case file.
    let store = records_of(records).ok();
    if store.is_some_and(|store| store.find(name).is_ok_and(|path| is_record(&path))) {
        return of_record(records, name);
    }
    read(name).map_err(|error| {
        let known = CASES.map(|(name, _)| name).join(", ");
        Failure::usage(error)
            .hint(format!("the built-in cases are {known}; `last` is the newest record"))
    })
}

/// Whether a regular file begins with the magic bytes of a record.
fn is_record(path: &Path) -> bool {
    let mut start = Vec::new();
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let file = is_file.then(|| File::open(path).ok()).flatten();
    let read = file.map(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    matches!(read, Some(Ok(_))) && start == MAGIC
}

fn of_record(records: &Records, name: &str) -> Result<String, Failure> {
    let (record, _) = show::load(records, name)?;
    let case = match record.imported {
        Some(_) => imported(&import::material(&record)),
        None => measured(&record),
    };
    case.map_err(|error| {
        let what = format!("the record {name} describes no case");
        Failure::usage(anyhow::Error::new(error).context(what))
    })
}

fn read(name: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let file = File::open(name).with_context(|| format!("failed to read the case file {name}"))?;
    file.take(LONGEST + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("failed to read the case file {name}"))?;
    anyhow::ensure!(text.len() as u64 <= LONGEST, "the case file {name} is longer than 256 KiB");
    Ok(text)
}

#[cfg(test)]
mod tests;
