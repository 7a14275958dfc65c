//! `linerate run`: measures the path, and shows what limits it.

use clap::Parser;
use linerate_record::Made;
use linerate_session::store::Store;
use linerate_units::shell::word;

use super::exit::{Exit, Failure, tell};
use super::options::own::{self, Flags};
use super::options::{self, Options, Records};
use super::report::{self, Shown};
use super::resolve::Needs;
use super::session::{self, Stop};
use super::study::{layers, repeat};
use super::{resolve, single};

/// The verb `run`; its flags include the options of all transports that can measure a path.
#[derive(Debug, Clone)]
pub(crate) struct Verb;

impl own::Verb for Verb {
    const NEEDS: Needs = Needs::Both;
}

// `linerate run`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Far machine where `linerate serve` runs, or ssh://[USER@]HOST[:PORT][/PATH/OF/LINERATE] to start
    /// it there for this run [default: measure this machine against itself]
    peer: Option<String>,

    #[command(flatten)]
    pub(crate) run: options::Run,
    #[command(flatten)]
    pub(crate) reach: options::Peer,
    #[command(flatten)]
    pub(crate) load: options::LoadOptions,
    #[command(flatten)]
    pub(crate) own: Flags<Verb>,
    #[command(flatten)]
    pub(crate) json: options::Json,
    #[command(flatten)]
    pub(crate) report: options::Report,
    #[command(flatten)]
    pub(crate) records: Records,
}

pub(crate) fn run(args: &Args, options: &Options, on_line: &[String]) -> Result<Exit, Failure> {
    let plan = resolve::plan(options, args.peer.as_deref())?;
    if options.run.layers == Some(true) {
        let target = layers::target(args.peer.as_deref())?;
        return layers::run(&plan, target, &single::kept_on_request(options, on_line));
    }
    resolve::possible(&plan, None)?;
    if let Some(times) = options.run.repeat {
        return repeat::run(&plan, times.0, options, is_kept_requested(options, on_line));
    }
    let body = linerate_session::run::run;
    let mut measured = single::open(plan, Made::Run, options, &Stop::new()?, body)?;
    let exit = if let Some(stream) = measured.stream.take() {
        report::end_stream(&measured.record, stream, options)?
    } else {
        let shown_by = shown_by("last", &options.records);
        let how = Shown {
            saved: measured.saved.as_deref().map(|name| (name, &*shown_by)),
            explain: false,
        };
        report::show(&measured.record, &how, options)?
    };
    let exit = exit.or(measured.kept(is_kept_requested(options, on_line)));
    if let Some(error) = measured.error {
        tell(&session::link_failure(error).words());
    }
    Ok(exit)
}

/// Whether the user requested a record. By default a run is also saved, but then a full disk is no failure of the run.
fn is_kept_requested(options: &Options, on_line: &[String]) -> bool {
    let is_requested = options.records.note.is_some() || on_line.iter().any(|id| id == "save");
    is_requested && options.records.no_save != Some(true)
}

/// The command that shows the record `name`.
pub(super) fn shown_by(name: &str, records: &Records) -> String {
    let own = Store::of_user(|name| std::env::var_os(name)).ok();
    let own = own.as_ref().map(Store::dir);
    let elsewhere = records.save.as_deref().filter(|dir| Some(*dir) != own);
    let save = elsewhere
        .map_or_else(String::new, |dir| format!(" --save {}", word(&dir.to_string_lossy())));
    format!("linerate show {name}{save}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_kept_elsewhere_is_shown_from_there() {
        let shown = |save: Option<&str>| {
            let records = Records { save: save.map(Into::into), ..Records::default() };
            shown_by("last", &records)
        };
        assert_eq!(shown(None), "linerate show last");
        assert_eq!(shown(Some("/srv/r")), "linerate show last --save /srv/r");
        assert_eq!(shown(Some("/srv/a b")), "linerate show last --save '/srv/a b'");
        let own = Store::of_user(|name| std::env::var_os(name)).ok();
        let own = own.and_then(|store| Some(store.dir().to_str()?.to_owned()));
        assert!(own.is_none_or(|own| shown(Some(&own)) == "linerate show last"));
    }
}
