//! `linerate run`: measures the path, and shows what holds it back.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use clap::Parser;
use linerate_core::plan::Plan;
use linerate_core::record::{End, Record};
use linerate_engine::change::Ledger;
use linerate_engine::event::{Event, Flow, Sink};
use linerate_engine::host::Live;
use linerate_engine::link::LinkError;
use linerate_engine::peer::client::{Client, ClientOptions};
use linerate_engine::store::{Recorder, Store};

use super::exit::{Exit, Failure, tell};
use super::options::{self, Options, Records};
use super::report::{self, Shown};
use super::{changes, out, reach, resolve, signal};
use crate::show::progress::{Mode, Progress};

// `linerate run`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The far end, where `linerate serve` runs; left out: this machine against itself
    peer: Option<String>,

    #[command(flatten)]
    pub(crate) run: options::Run,
    #[command(flatten)]
    pub(crate) reach: options::Peer,
    #[command(flatten)]
    pub(crate) load: options::Load,
    #[command(flatten)]
    pub(crate) report: options::Report,
    #[command(flatten)]
    pub(crate) records: Records,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let plan = resolve::plan(options, args.peer.as_deref())?;
    let store = store(&options.records)?;
    let changes = changes::ledger(options.run.allow_changes)?;
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    // Until there is something to end in order, the first Ctrl-C is as good as the second: asking
    // for an address has no deadline.
    stop.store(true, Ordering::Relaxed);
    let mut client = connect(&plan, options, changes)?;
    stop.store(false, Ordering::Relaxed);
    let mut recorder = store.as_ref().map(Store::recorder);
    let (record, error) = measure(&mut client, plan, options, recorder.as_mut(), &stop);
    drop(client);
    if let Some(problem) = recorder.as_ref().and_then(Recorder::problem) {
        tell(&format!(
            "warning: the record is not kept: {}\n",
            problem.why
        ));
        if !problem.hint.is_empty() {
            tell(&format!("hint: {}\n", problem.hint));
        }
    }
    let saved = recorder.as_ref().and_then(saved_as);
    let how = Shown {
        saved: saved.as_deref(),
        explain: false,
    };
    if record.steps.is_empty() {
        return Err(nothing(&record, error));
    }
    let exit = report::show(&record, &how, options)?;
    if let Some(error) = error {
        tell(&link_failure(error).words());
    }
    Ok(exit)
}

fn measure(
    client: &mut Client,
    plan: Plan,
    options: &Options,
    recorder: Option<&mut Recorder>,
    stop: &Arc<AtomicBool>,
) -> (Record, Option<LinkError>) {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    let wall_secs = wall.map_or(0, |d| d.as_secs());
    let mode = match options.global.quiet {
        Some(true) => Mode::Quiet,
        _ if io::stderr().is_terminal() => Mode::Rewritten(out::columns()),
        _ => Mode::Lines,
    };
    // The recorder first: what is shown has been written down.
    let mut sink = (
        Keep(recorder),
        Progress::new(io::stderr(), mode, Arc::clone(stop)),
    );
    linerate_engine::run::run(client, plan, wall_secs, &mut sink)
}

/// A recorder that may be absent.
struct Keep<'a>(Option<&'a mut Recorder>);

impl Sink for Keep<'_> {
    fn event(&mut self, event: &Event<'_>) -> Flow {
        match &mut self.0 {
            Some(recorder) => recorder.event(event),
            None => Flow::Go,
        }
    }
}

fn connect(plan: &Plan, options: &Options, changes: Option<Ledger>) -> Result<Client, Failure> {
    let machine = Arc::new(Live::new());
    let Some(peer) = &plan.peer else {
        return Client::local(&plan.engine, machine, changes).map_err(reach::peer_failure);
    };
    let target = reach::target(peer, &options.peer)?;
    let key = reach::key(&target, &options.peer)?;
    Client::connect(&ClientOptions {
        target,
        family: reach::family(&options.peer),
        key,
        open: options.peer.open == Some(true),
        engine: plan.engine.clone(),
        machine,
        changes,
    })
    .map_err(reach::peer_failure)
}

/// Where the record goes; `None` with `--no-save`.
fn store(records: &Records) -> Result<Option<Store>, Failure> {
    if records.no_save == Some(true) {
        return Ok(None);
    }
    records_of(records).map(Some)
}

/// The directory of records.
pub(crate) fn records_of(records: &Records) -> Result<Store, Failure> {
    match &records.save {
        Some(dir) => Ok(Store::new(dir)),
        None => Store::of_user(|name| std::env::var_os(name)).map_err(|e| {
            let hint = e.hint();
            Failure::not_measured(e).hint(hint)
        }),
    }
}

fn saved_as(recorder: &Recorder) -> Option<String> {
    let name = recorder.path()?.file_stem()?;
    Some(name.to_string_lossy().into_owned())
}

/// Why not even one step was measured.
fn nothing(record: &Record, error: Option<LinkError>) -> Failure {
    match (error, &record.end) {
        (Some(error), _) => link_failure(error),
        (None, Some(End::Interrupted)) => {
            Failure::not_measured(anyhow!("interrupted before anything was measured"))
        }
        (None, _) => Failure::not_measured(anyhow!("nothing was measured")),
    }
}

fn link_failure(error: LinkError) -> Failure {
    let hint = match &error {
        LinkError::Lost { hint, .. } | LinkError::Refused { hint, .. } => hint.clone(),
        LinkError::Interrupted => String::new(),
    };
    Failure::not_measured(error).hint(hint)
}
