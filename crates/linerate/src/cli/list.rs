//! `linerate list`: lists the saved records.

use std::path::{Path, PathBuf};

use clap::Parser;
use linerate_explain::diff::Judged;
use linerate_judge::model::is_by_size;
use linerate_record::{Record, RecordKind, Start};
use linerate_session::store::{self, StoreError};
use linerate_units::stats::middle;

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::session::records_of;
use super::single::THIS_HOST;
use super::{diff, import, out, study};
use linerate_show::list::{self as view, Answer, Listed, Row};
use linerate_show::study::Found;

/// Number of records that are judged if `--judge` is not given: judging one takes some hundredths of a second.
const JUDGED: usize = 50;

/// Longest record file, in bytes, that is judged for the list.
const LONGEST: u64 = 64 << 20;

// `linerate list`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Text in the name, the note or the far end of the records to list
    text: Option<String>,

    /// List only the newest N of them
    #[arg(long, value_name = "N")]
    last: Option<usize>,

    /// Judge the newest N of these; older ones are listed without their answer
    #[arg(long, value_name = "N", default_value_t = JUDGED)]
    judge: usize,

    #[command(flatten)]
    pub(crate) json: options::Json,

    /// Directory of saved records [default: $XDG_STATE_HOME/linerate/records]
    #[arg(long, env = "LINERATE_SAVE", value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let store = records_of(&options.records)?;
    let paths = store.list().map_err(|error| {
        let hint = error.hint();
        Failure::not_measured(error).hint(hint)
    })?;
    let wanted = args.text.as_deref().unwrap_or_default().to_lowercase();
    let rows = paths.into_iter().map(|path| (row(&path), path));
    let mut rows: Vec<(Row, PathBuf)> = rows.filter(|(row, _)| matches(row, &wanted)).collect();
    let left_out = rows.len().saturating_sub(args.last.unwrap_or(usize::MAX));
    rows.drain(..left_out);
    let from = rows.len().saturating_sub(args.judge);
    for (row, path) in rows.iter_mut().skip(from).filter(|(row, _)| row.start.is_ok()) {
        match judged(path) {
            Ok((answer, problem)) => {
                row.answer = Some(answer);
                row.problem = problem;
            }
            Err(why) => row.problem = why,
        }
    }
    let listed = Listed {
        dir: store.dir().display().to_string(),
        rows: rows.into_iter().map(|(row, _)| row).collect(),
        left_out,
    };
    out::result(options, || view::json(&listed), || view::page(&listed))?;
    Ok(Exit::Done)
}

/// A row of the list from the start of a record; the rest of the file is not read.
fn row(path: &Path) -> Row {
    let name = path.file_stem().unwrap_or_default();
    Row {
        name: name.to_string_lossy().into_owned(),
        start: store::start(path).map_err(why),
        answer: None,
        problem: String::new(),
    }
}

/// The reason why a file cannot be read as a record, without its path.
fn why(error: StoreError) -> String {
    match error {
        StoreError::Format { source, .. } => source.to_string(),
        StoreError::Read { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

fn matches(row: &Row, wanted: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(wanted);
    let of = |start: &Start| {
        let peer = start.plan.peer.as_deref();
        has(&start.note) || has(peer.unwrap_or(THIS_HOST))
    };
    has(&row.name) || row.start.as_ref().is_ok_and(of)
}

/// The answer of a record, and words about the part that is lost; empty if it is whole.
fn judged(path: &Path) -> Result<(Answer, String), String> {
    let length = path.metadata().map_err(|error| error.to_string())?.len();
    if length > LONGEST {
        return Err("too long for a list: linerate show judges it".to_owned());
    }
    let loaded = store::open(path.to_owned()).map_err(why)?;
    let damage = loaded.damage.map(|damage| damage.to_string());
    Ok((answer(&loaded.record), damage.unwrap_or_default()))
}

fn answer(record: &Record) -> Answer {
    let is_single = matches!(record.start.kind(), RecordKind::Bw | RecordKind::Lat);
    if !is_single && !is_by_size(record) {
        let material = import::material(record);
        let Judged { summary, headline, verdict, .. } = diff::judged(record, &material);
        return Answer::of(record, &summary, headline, Some(&verdict));
    }
    match study::found(record, "", Vec::new()) {
        Found::Sizes(sizes) => {
            let timed = sizes.timed();
            let smallest = timed.iter().min_by_key(|one| one.size);
            let middle = smallest.and_then(|one| Some((one.size, middle(one.times)?)));
            Answer::of_sweep(record, middle)
        }
        found => Answer::of(record, &found.summary(), found.headline(), None),
    }
}
