//! `linerate show`: a record that was kept, judged again.

use clap::Parser;
use linerate_core::model::is_by_size;
use linerate_core::record::{Record, RecordKind};

use super::exit::{Exit, Failure, tell};
use super::options::{self, Options, Records};
use super::report::{self, Shown};
use super::session::records_of;
use super::{bw, import, lat, trips};

// `linerate show`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// `last`, the name or the note of a saved record, or the path of a record file
    #[arg(default_value = "last")]
    record: String,

    /// Show every cause with its result and its numbers
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    pub(crate) json: options::Json,
    #[command(flatten)]
    pub(crate) report: options::Report,

    /// Directory of saved records [default: $XDG_STATE_HOME/linerate/records]
    #[arg(long, env = "LINERATE_SAVE", value_name = "DIR")]
    pub(crate) save: Option<std::path::PathBuf>,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let record = load(&options.records, &args.record)?;
    match record.start.kind() {
        _ if record.imported.is_some() => return import::show(&record, None, options),
        _ if is_by_size(&record) => return trips::shown(&record, options),
        RecordKind::Bw => return bw::again(&record, options),
        RecordKind::Lat => return lat::again(&record, options),
        RecordKind::Run | RecordKind::Sweep | RecordKind::Import => {}
    }
    let how = Shown {
        saved: None,
        explain: args.explain,
    };
    report::show(&record, &how, options)
}

/// The record called `name`. Warns of unusable parts of its file.
pub(super) fn load(records: &Records, name: &str) -> Result<Record, Failure> {
    let loaded = records_of(records)?.load(name).map_err(|e| {
        let hint = e.hint();
        Failure::not_measured(e).hint(hint)
    })?;
    if let Some(choice) = loaded.choice() {
        tell(&format!("note: {choice}\n"));
    }
    if let Some(warning) = loaded.warning() {
        tell(&format!("warning: {warning}\n"));
    }
    Ok(loaded.record)
}
