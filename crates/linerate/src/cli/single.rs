//! What `bw`, `lat` and their sweeps share: a session with a far end of linerate, from connecting to saving the record.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use linerate_judge::event::Sink;
use linerate_plan::Plan;
use linerate_plan::path::Direction;
use linerate_record::{Made, Record, RecordKind};
use linerate_session::link::{Link, LinkError};
use linerate_session::run::{Label, RoundTrips, once, search};
use linerate_session::store::Store;
use linerate_units::{Nanos, Rate};

use super::beside::Beside;
use super::exit::{Exit, Failure, tell};
use super::options::{self, LoadDirections, Options};
use super::resolve::Needs;
use super::session::{self, Maybe, Stop};
use super::{changes, out, report, resolve};
use crate::expect::Found;
use linerate_show::stream::Stream;

/// Time at the start of each measurement that is not counted: queues and windows settle in it.
pub(crate) const WASHOUT: Nanos = Nanos::from_secs(1);

/// Highest rate of a stream that a search tries if `--pacing` is not given: the rate of the fastest ports.
const RATE_MOST: Rate = Rate(800_000_000_000);

// Options that `bw` and `lat` share.
#[derive(Debug, Args)]
pub(crate) struct Shared {
    #[command(flatten)]
    pub(crate) reach: options::Peer,
    #[command(flatten)]
    pub(crate) json: options::Json,
    #[command(flatten)]
    pub(crate) report: options::Report,

    #[arg(
        long,
        env = "LINERATE_ENGINE",
        value_name = "NAME",
        help_heading = "Load",
        help = options::engines(Needs::Any)
    )]
    pub(crate) engine: Option<String>,

    /// Print events as they happen, one JSON object on each line; the last one is the result
    #[arg(long, env = "LINERATE_STREAM_JSON", value_name = "BOOL", help_heading = options::RESULT,
          conflicts_with = "format")]
    pub(crate) stream_json: Option<bool>,
}

impl Shared {
    pub(crate) fn typed(&self, options: &mut Options) {
        options.peer = self.reach.clone();
        options.report = self.report.clone();
        self.json.typed(&mut options.report);
        options.run.engine.clone_from(&self.engine);
        options.run.stream_json = self.stream_json;
    }
}

/// The result of one measurement.
pub(crate) struct Measured {
    pub(crate) record: Record,
    /// Address and port of the far end.
    pub(crate) address: String,
    pub(crate) error: Option<LinkError>,
    /// Name under which the record was saved.
    pub(crate) saved: Option<String>,
    /// Whether a record that the user requested could not be saved.
    pub(crate) unsaved: bool,
    pub(crate) stream: Option<Stream<Beside>>,
}

/// The name shown for the far end if the user named none.
pub(crate) const THIS_HOST: &str = "this host";

/// The quantity that a single measurement measures.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// A load of all directions at the same time.
    Load,
    /// Round trips; also a load, if directions are given.
    Trips(RoundTrips),
    /// The highest rate that loses at most the given share of datagrams.
    Rate(f64),
}

/// Measures the path to `peer` for `time` while `directions` are loaded. Some transports have no far end to name.
pub(crate) fn measure(
    peer: Option<&str>,
    directions: Vec<Direction>,
    time: Nanos,
    what: What,
    options: &Options,
    stop: &Stop,
) -> Result<Measured, Failure> {
    let engine = resolve::engine(&options.run, needs(what, &directions))?;
    let peer = resolve::far_end(&engine, peer)?;
    let mut knobs = match what {
        What::Load | What::Rate(_) => resolve::knobs_of_bw(options),
        What::Trips(_) if resolve::is_memory(&options.run) => resolve::knobs_of_loads(options),
        What::Trips(_) => resolve::knobs_of(options),
    };
    if let What::Rate(_) = what {
        knobs.pacing.get_or_insert(RATE_MOST);
    }
    let plan = Plan {
        peer: peer.map(|peer| resolve::named(&engine, peer)),
        engine,
        reach: Vec::new(),
        knobs,
        directions,
        time: Nanos(WASHOUT.0 + time.0),
        sweep: false,
        trials: false,
    };
    let trips = match what {
        What::Trips(trips) => Some(trips),
        What::Load | What::Rate(_) => None,
    };
    resolve::possible(&plan, trips)?;
    let made = trips.map_or(Made::Bw, |_| Made::Lat);
    open(plan, made, options, stop, |link, plan, label, sink| match what {
        What::Load => once(link, plan, WASHOUT, None, label, sink),
        What::Trips(trips) => once(link, plan, WASHOUT, Some(trips), label, sink),
        What::Rate(allowed) => search(link, plan, WASHOUT, allowed, label, sink),
    })
}

/// Saves the record of a single measurement only if the user requests it, by a note or by a directory on the command
/// line: scripts measure often.
pub(crate) fn kept_on_request(options: &Options, on_line: &[String]) -> Options {
    let has_directory = on_line.iter().any(|id| id == "save");
    let mut options = options.clone();
    if options.records.note.is_none() && !has_directory {
        options.records.no_save = Some(true);
    }
    options
}

/// The kinds of traffic that this measurement needs of its transport.
fn needs(what: What, directions: &[Direction]) -> Needs {
    match what {
        What::Trips(_) if directions.is_empty() => Needs::RoundTrips,
        What::Trips(_) => Needs::Both,
        What::Load | What::Rate(_) => Needs::Load,
    }
}

/// Opens a session with the far end of `plan`, runs `body` over it, and saves the record unless the options forbid
/// that.
pub(crate) fn open(
    plan: Plan,
    made: Made,
    options: &Options,
    stop: &Stop,
    body: impl FnOnce(&mut dyn Link, Plan, Label, &mut dyn Sink) -> (Record, Option<LinkError>),
) -> Result<Measured, Failure> {
    let stream = session::stream(options)?;
    let stream = if made == Made::Run { stream } else { stream.map(Stream::of_a_probe) };
    let changes = match made {
        Made::Run => changes::ledger(options.run.allow_changes)?,
        // A single measurement changes no settings of hosts.
        Made::Bw | Made::Lat | Made::Import => None,
    };
    let mut reached = session::reached(&plan, options, changes, stop)?;
    let address = reached.address.clone();
    over((address, made), stream, options, &stop.flag, |label, sink| {
        let measured = body(&mut *reached.link, plan, label, sink);
        drop(reached);
        measured
    })
}

/// Runs `body` over a link to the far end at `address`. `stream` gets its events.
pub(crate) fn over(
    (address, made): (String, Made),
    mut stream: Option<Stream<Beside>>,
    options: &Options,
    stop: &Arc<AtomicBool>,
    body: impl FnOnce(Label, &mut dyn Sink) -> (Record, Option<LinkError>),
) -> Result<Measured, Failure> {
    let store = session::store(&options.records)?;
    let mut recorder = store.as_ref().map(Store::recorder);
    let sinks = (Maybe(recorder.as_mut()), Maybe(stream.as_mut()));
    let (record, error) = session::watched(options, made, sinks, stop, body);
    if record.steps.is_empty() {
        if let Some(stream) = stream {
            stream.finish().map_err(out::failed)?;
        }
        return Err(session::nothing(&record, error));
    }
    let saved = recorder.as_ref().and_then(session::kept);
    // By default, only a sweep of round trips saves its record.
    let is_requested = options.records.note.is_some() || record.start.kind() != RecordKind::Sweep;
    Ok(Measured {
        record,
        address,
        error,
        stream,
        unsaved: recorder.is_some() && saved.is_none() && is_requested,
        saved,
    })
}

impl Measured {
    /// The exit code of a measurement whose record was `requested`.
    pub(crate) fn kept(&self, requested: bool) -> Exit {
        if requested && self.saved.is_none() { Exit::NotMeasured } else { Exit::Done }
    }

    /// The raw readings, if the user wants them in the JSON document.
    pub(crate) fn shown_record(&self, options: &Options) -> Option<&Record> {
        (options.report.with_record == Some(true)).then_some(&self.record)
    }

    /// Reports the saved name and any error; returns the exit code.
    pub(crate) fn exit(&mut self, complete: bool, found: &Found<'_>, options: &Options) -> Exit {
        if let Some(name) = &self.saved {
            tell(&format!("saved as {name}\n"));
        }
        if let Some(error) = self.error.take() {
            tell(&session::link_failure(error).words());
        }
        let requested = &self.record.start.plan.directions;
        exit(complete && !self.unsaved, requested, found, options)
    }
}

/// The exit code: a failed measurement takes precedence over a bound that does not hold.
pub(super) fn exit(
    complete: bool,
    requested: &[Direction],
    found: &Found<'_>,
    options: &Options,
) -> Exit {
    let measured = if complete { Exit::Done } else { Exit::NotMeasured };
    measured.or(report::expectations(requested, found, options))
}

/// The directions that are loaded at once.
pub(crate) fn directions(ways: LoadDirections) -> Vec<Direction> {
    match ways {
        LoadDirections::Forward => vec![Direction::Forward],
        LoadDirections::Reverse => vec![Direction::Reverse],
        LoadDirections::Both => Direction::ALL.to_vec(),
    }
}
