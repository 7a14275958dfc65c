//! A session for all verbs that measure: it connects to the far end, shows progress and saves the record.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use linerate_host::Live;
use linerate_host::change::Ledger;
use linerate_judge::event::{Event, RunControl, Silence, Sink};
use linerate_plan::subject::Subject;
use linerate_plan::{Plan, transport};
use linerate_record::{End, Made, Record};
use linerate_session::link::alone::Alone;
use linerate_session::link::{Link, LinkError};
use linerate_session::peer::client::{Client, ClientOptions, GIVEN_UP, Storage};
use linerate_session::run::Label;
use linerate_session::store::{Recorder, Store};

use super::beside::Beside;
use super::exit::{Failure, tell};
use super::far_end::FarEnd;
use super::options::{Options, Records};
use super::reach::Origin;
use super::{out, reach, signal, ssh};
use linerate_show::progress::{Mode, Progress, unanswered};
use linerate_show::stream::Stream;

/// Lines of progress or of a stream that may wait for their reader: ten minutes of lines.
const WAITING: usize = 16_384;

/// Time to write the last lines of progress once the measurement has ended.
const LAST: Duration = Duration::from_secs(1);

/// Time after which the user is told that the far end does not respond to a connection attempt. A host that does not
/// exist is reported earlier.
const SILENT: Duration = Duration::from_millis(5_500);

/// Whether the user has requested a stop.
pub(crate) struct Stop {
    pub(crate) flag: Arc<AtomicBool>,
    /// Whether something was measured that must be shown.
    keeps: bool,
}

impl Stop {
    pub(crate) fn new() -> Result<Self, Failure> {
        let flag = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
        Ok(Self { flag, keeps: false })
    }

    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Notes that something was measured: from now on the first Ctrl-C ends only the part that is being measured.
    pub(crate) fn keep(&mut self) {
        self.keeps = true;
    }
}

/// Opens a session. While it connects, the first Ctrl-C ends the program at once if nothing was measured yet.
pub(crate) fn reached(
    plan: &Plan,
    options: &Options,
    changes: Option<Ledger>,
    stop: &Stop,
) -> Result<Reached, Failure> {
    if stop.keeps {
        return connect(plan, options, changes, &stop.flag, &|| stop.is_set());
    }
    at_once(&stop.flag, || connect(plan, options, changes, &stop.flag, &|| false))
}

/// The name of the record if it was saved whole. Warns if it was not.
pub(crate) fn kept(recorder: &Recorder) -> Option<String> {
    if let Some(problem) = recorder.problem() {
        tell(&format!("warning: the record is not saved: {}\n", problem.why));
        if !problem.hint.is_empty() {
            tell(&format!("hint: {}\n", problem.hint));
        }
    }
    saved_as(recorder)
}

/// Runs `work`, which needs no orderly end: meanwhile the first Ctrl-C ends the program at once, as the second one does
/// later. Looking up an address, for example, has no time limit.
pub(super) fn at_once<T>(
    stop: &AtomicBool,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    stop.store(true, Ordering::Relaxed);
    let done = work();
    stop.store(false, Ordering::Relaxed);
    done
}

/// Measures, with progress on stderr. `sinks` get each event first, so that whatever is shown has been stored.
pub(crate) fn watched(
    options: &Options,
    made: Made,
    sinks: impl Sink,
    stop: &Arc<AtomicBool>,
    measure: impl FnOnce(Label, &mut dyn Sink) -> (Record, Option<LinkError>),
) -> (Record, Option<LinkError>) {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    let label = Label {
        wall_secs: wall.map_or(0, |d| d.as_secs()),
        made,
        note: note(options),
        study: options.records.study.clone(),
    };
    let how = match options.global.quiet {
        Some(true) => Mode::Quiet,
        _ if io::stderr().is_terminal() => Mode::Rewritten(out::columns()),
        _ => Mode::Lines,
    };
    let beside = Beside::to(WAITING, io::stderr());
    let out: Box<dyn Write + Send> = match &beside {
        Ok(beside) => Box::new(beside.giver()),
        Err(_) => Box::new(io::stderr()),
    };
    let mut sink = (sinks, Progress::new(out, how, Arc::clone(stop)));
    let measured = measure(label, &mut sink);
    // Lines of progress that a stopped terminal did not accept in time are dropped.
    let _ = beside.map(|beside| beside.finish(LAST));
    measured
}

/// The note for the record; empty if the user gave none.
pub(super) fn note(options: &Options) -> String {
    let note = options.records.note.clone();
    note.map(String::from).unwrap_or_default()
}

/// A sink that may be absent.
pub(crate) struct Maybe<'a, S>(pub(crate) Option<&'a mut S>);

impl<S: Sink> Sink for Maybe<'_, S> {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        match &mut self.0 {
            Some(sink) => sink.event(event),
            None => RunControl::Go,
        }
    }
}

/// The stream of `--stream-json`, if the user requested it.
pub(crate) fn stream(options: &Options) -> Result<Option<Stream<Beside>>, Failure> {
    let wanted = options.run.stream_json == Some(true);
    if wanted && options.report.json == Some(true) {
        let error = anyhow!("a run prints one JSON document, or a stream of lines, but not both");
        return Err(Failure::usage(error).hint("leave out --json or --stream-json"));
    }
    let lines = || reach::system(Beside::to(WAITING, io::stdout()), "cannot start a thread");
    wanted.then(|| lines().map(Stream::new)).transpose()
}

/// A session with the far end of a plan.
pub(crate) struct Reached {
    pub(crate) link: Box<dyn Link>,
    /// Address and port of the far end; empty if there is none.
    pub(crate) address: String,
    /// The far end, if it was started for this session: it ends when the session does.
    _far: Option<FarEnd>,
}

impl Reached {
    /// A session with a far end; it stops waiting for data connections once `stop` is set.
    fn session(mut client: Client, far: Option<FarEnd>, stop: &Arc<AtomicBool>) -> Self {
        client.heed(stop);
        Self { address: client.address().to_string(), link: Box::new(client), _far: far }
    }

    /// A session about the disk of a far host.
    fn storage(mut storage: Storage, stop: &Arc<AtomicBool>) -> Self {
        storage.client().heed(stop);
        let address = storage.client().address().to_string();
        Self { address, link: Box::new(storage), _far: None }
    }

    /// A session with this host alone; it stops preparing a file once `stop` is set.
    fn alone(plan: &Plan, stop: &Arc<AtomicBool>) -> Self {
        let mut link = Alone::new(&plan.engine, Arc::new(Live::new()), Subject::here(plan));
        link.heed(stop);
        Self { address: String::new(), link: Box::new(link), _far: None }
    }
}

/// Opens a session with the far end of a plan, or with this host alone. Ends early if `stopped` returns true.
fn connect(
    plan: &Plan,
    options: &Options,
    changes: Option<Ledger>,
    stop: &Arc<AtomicBool>,
    stopped: &dyn Fn() -> bool,
) -> Result<Reached, Failure> {
    let is_alone = transport::of(&plan.engine).is_alone();
    let host = plan.peer.as_ref().filter(|peer| is_alone && !peer.contains('/'));
    if is_alone && host.is_none() {
        return Ok(Reached::alone(plan, stop));
    }
    let machine = Arc::new(Live::new());
    let far = far_end(plan, options, changes.is_some())?;
    let (target, (key, origin)) = match (&far, &plan.peer) {
        (Some(far), _) => {
            let key = Some(far.key.clone());
            (far.target.clone(), (key, Origin::Own))
        }
        (None, Some(peer)) => {
            let target = reach::target(peer, &options.peer)?;
            let key = reach::key(&target, &options.peer)?;
            (target, key)
        }
        (None, None) => {
            let client = Client::local(&plan.engine, machine, changes);
            let client = client.map_err(reach::peer_failure)?;
            return Ok(Reached::session(client, None, stop));
        }
    };
    let session = ClientOptions {
        target,
        family: reach::family(&options.peer).filter(|_| plan.peer.is_some()),
        key,
        open: far.is_none() && options.peer.open == Some(true),
        engine: plan.engine.clone(),
        machine,
        changes,
    };
    let reported = Cell::new(options.global.quiet == Some(true));
    let began = Instant::now();
    let stopped = || {
        if began.elapsed() >= SILENT && !reported.replace(true) {
            let (lasted, left) = (SILENT, GIVEN_UP.saturating_sub(SILENT));
            let silence = Silence { lasted, left };
            tell(&format!("note: {}\n", unanswered(silence)));
        }
        stopped()
    };
    if host.is_some() {
        let storage = Storage::connect_unless(&session, &stopped);
        let storage = storage.map_err(|error| reach::session_failure(error, origin))?;
        return Ok(Reached::storage(storage, stop));
    }
    let client = Client::connect_unless(&session, &stopped);
    let client = client.map_err(|error| reach::session_failure(error, origin))?;
    Ok(Reached::session(client, far, stop))
}

/// Starts the far end of a plan if this program must do so: over ssh, or as another process of this host.
fn far_end(plan: &Plan, options: &Options, changes: bool) -> Result<Option<FarEnd>, Failure> {
    match &plan.peer {
        Some(peer) => {
            let url = ssh::url(peer);
            url.map(|url| ssh::start(url, options, changes)).transpose()
        }
        None if transport::of(&plan.engine).far_end == transport::FarEnd::Process => {
            FarEnd::process(changes).map(Some)
        }
        None => Ok(None),
    }
}

/// The directory in which the record is saved; `None` with `--no-save`.
pub(crate) fn store(records: &Records) -> Result<Option<Store>, Failure> {
    if records.no_save == Some(true) {
        return Ok(None);
    }
    records_of(records).map(Some)
}

/// The directory of saved records.
pub(crate) fn records_of(records: &Records) -> Result<Store, Failure> {
    match &records.save {
        Some(dir) => Ok(Store::new(dir)),
        None => Store::of_user(|name| std::env::var_os(name)).map_err(|e| {
            let hint = e.hint();
            Failure::not_measured(e).hint(hint)
        }),
    }
}

/// The name of a record that was saved whole.
fn saved_as(recorder: &Recorder) -> Option<String> {
    if recorder.problem().is_some() {
        return None;
    }
    let name = recorder.path()?.file_stem()?;
    Some(name.to_string_lossy().into_owned())
}

/// The failure if not even one step was measured.
pub(crate) fn nothing(record: &Record, error: Option<LinkError>) -> Failure {
    match (error, &record.end) {
        (Some(error), _) => link_failure(error),
        (None, Some(End::Interrupted)) => {
            Failure::not_measured(anyhow!("interrupted before anything was measured"))
        }
        (None, _) => Failure::not_measured(anyhow!("nothing was measured")),
    }
}

/// The failure for an error of the session.
pub(crate) fn link_failure(error: LinkError) -> Failure {
    let hint = match &error {
        LinkError::Lost { hint, .. } | LinkError::Refused { hint, .. } => hint.clone(),
        LinkError::Interrupted => String::new(),
    };
    Failure::not_measured(error).hint(hint)
}
