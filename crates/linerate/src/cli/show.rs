//! `linerate show`: judges a saved record again, and prints it.

use clap::Parser;
use linerate_record::{Record, RecordKind};

use super::exit::{Exit, Failure, tell};
use super::options::{self, Options, Records};
use super::report::{self, Shown};
use super::session::records_of;
use super::{bw, import, lat, study};
use linerate_show::one_line;

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
    let (record, whole) = load(&options.records, &args.record)?;
    shown(args, &record, options).map(|exit| whole.or(exit))
}

fn shown(args: &Args, record: &Record, options: &Options) -> Result<Exit, Failure> {
    if let Some(study) = study::of_record(record) {
        return study::show_kept(&study, options);
    }
    match record.start.kind() {
        _ if record.imported.is_some() => return import::show(record, None, options),
        RecordKind::Bw => return bw::show_kept(record, options),
        RecordKind::Lat => return lat::show_kept(record, options),
        RecordKind::Run | RecordKind::Sweep | RecordKind::Import => {}
    }
    let how = Shown { saved: None, explain: args.explain };
    report::show(record, &how, options)
}

/// The record called `name`, and the exit code: a record of which parts are lost is incomplete, because these parts
/// were measured and cannot be shown. Warns of lost parts.
pub(super) fn load(records: &Records, name: &str) -> Result<(Record, Exit), Failure> {
    let loaded = records_of(records)?.load(name).map_err(|e| {
        let hint = e.hint();
        Failure::not_measured(e).hint(hint)
    })?;
    if let Some(choice) = loaded.choice() {
        tell(&format!("note: {}\n", one_line(&choice)));
    }
    if let Some(warning) = loaded.warning() {
        tell(&format!("warning: {}\n", one_line(&warning)));
    }
    let exit = if loaded.is_damaged() { Exit::NotMeasured } else { Exit::Done };
    Ok((loaded.record, exit))
}
