//! `linerate lat`: times round trips once, without a verdict, for scripts.

use anyhow::anyhow;
use clap::Parser;
use linerate_load::transport::memory;
use linerate_record::Record;
use linerate_session::run::RoundTrips;
use linerate_units::Nanos;

use super::exit::{Exit, Failure};
use super::options::own::{self, Flags};
use super::options::{self, Options, TripPattern};
use super::quantity::{Pace, Streams};
use super::resolve::Needs;
use super::session::Stop;
use super::single::{self, Measured, Shared, THIS_HOST, What, directions};
use super::study::{self, sizes, values};
use super::{out, resolve};
use crate::expect::Found;
use linerate_show::lat::{self, Probe};
use linerate_show::{like, noted};

/// Measuring time and message size if the user sets none.
const TIME: Nanos = Nanos::from_secs(10);

/// The verb `lat`; its flags include the options of all transports that can time round trips.
#[derive(Debug, Clone)]
pub(crate) struct Verb;

impl own::Verb for Verb {
    const NEEDS: Needs = Needs::RoundTrips;
    const SEVERAL: bool = true;
}

// `linerate lat`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Far machine where `linerate serve` runs, or ssh://HOST to start it there. Engines within this
    /// machine, such as shm, take none
    target: Option<String>,

    #[command(flatten)]
    pub(crate) lat: options::Lat,
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(flatten)]
    pub(crate) beside: Beside,
    #[command(flatten)]
    pub(crate) own: Flags<Verb>,
    #[command(flatten)]
    pub(crate) records: options::Records,
}

// Options of the load that runs during the round trips; the configuration file has more.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct Beside {
    /// Number of connections of the load of --beside, 1 to 10000 [default: 1]
    #[arg(short = 'P', long, env = "LINERATE_STREAMS", value_name = "N")]
    streams: Option<Streams>,

    /// Maximum rate of each of these connections, such as 1Gbit/s
    #[arg(long, env = "LINERATE_PACING", value_name = "RATE")]
    pacing: Option<Pace>,
}

impl Beside {
    pub(crate) fn typed(&self, options: &mut Options) {
        (options.load.streams, options.load.pacing) = (self.streams, self.pacing);
    }
}

/// Refuses options of the load on the command line if there is no load. In the environment they may be for other verbs.
fn fits(on_line: &[String], options: &Options) -> Result<(), Failure> {
    const OF_LOAD: [&str; 2] = ["streams", "pacing"];
    const OF_RECORD: [&str; 1] = ["no_save"];
    let typed =
        |ids: &[&'static str]| ids.iter().find(|id| on_line.iter().any(|one| one == *id)).copied();
    if let (Some(id), None) = (typed(&OF_RECORD), options.lat.sweep) {
        let flag = id.replace('_', "-");
        let error = anyhow!("--{flag} is of a record, and only a sweep keeps one unasked");
        return Err(Failure::usage(error).hint(format!("add --sweep size, or leave out --{flag}")));
    }
    let has_load = options.lat.beside.is_some() || resolve::is_memory(&options.run);
    match typed(&OF_LOAD) {
        Some(id) if !has_load => {
            let error =
                anyhow!("--{id} is of the load during the round trips, and none was asked for");
            Err(Failure::usage(error).hint("add --beside forward, reverse or both"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn run(args: &Args, options: &Options, on_line: &[String]) -> Result<Exit, Failure> {
    fits(on_line, options)?;
    let target = args.target.as_deref();
    let options = &if options.lat.sweep.is_some() {
        options.clone()
    } else {
        single::kept_on_request(options, on_line)
    };
    match values::several(&args.own.each, options)? {
        Some(several) => values::run(target, several, options),
        None if options.lat.sweep.is_some() => {
            let mut done = sizes::measure(target, options, &Stop::new()?)?;
            study::ended(&mut done, options)
        }
        None => once(target, options),
    }
}

/// Measures round trips once, as the options of `lat` request.
pub(super) fn measure(
    target: Option<&str>,
    options: &Options,
    stop: &Stop,
) -> Result<Measured, Failure> {
    let requested = &options.lat;
    let trips = RoundTrips {
        size: if resolve::is_memory(&options.run) {
            memory::LOAD
        } else {
            requested.size.map_or(resolve::message(&options.run), |s| s.0)
        },
        interval: requested.rate.map(|rate| Nanos(1_000_000_000 / u64::from(rate.0))),
        busy_poll: requested.busy_poll == Some(true),
        nagle: requested.nodelay == Some(false),
        two_writes: requested.pattern == Some(TripPattern::WriteWriteRead),
    };
    let beside = requested.beside.map(directions).unwrap_or_default();
    let time = requested.time.map_or(TIME, |t| t.0);
    single::measure(target, beside, time, What::Trips(trips), options, stop)
}

fn once(target: Option<&str>, options: &Options) -> Result<Exit, Failure> {
    let mut measured = measure(target, options, &Stop::new()?)?;
    let probe = Probe::of(target.unwrap_or(THIS_HOST), &measured.address, &measured.record);
    if let Some(like) = options.lat.like {
        let timed: Vec<_> = probe.timed().into_iter().collect();
        out::print(&like::page(like.into(), &timed))?;
    } else if let Some(mut stream) = measured.stream.take() {
        stream.lat(&probe, measured.shown_record(options));
        stream.finish().map_err(out::failed)?;
    } else {
        print(&probe, &measured.record, options)?;
    }
    let found = Found::figures(probe.summary());
    Ok(measured.exit(probe.complete(), &found, options))
}

/// Prints the result of a saved measurement.
pub(super) fn show_kept(record: &Record, options: &Options) -> Result<Exit, Failure> {
    let plan = &record.start.plan;
    // A record does not hold the address of the far end.
    let probe = Probe::of(plan.peer.as_deref().unwrap_or(THIS_HOST), "", record);
    print(&probe, record, options)?;
    let found = Found::figures(probe.summary());
    Ok(single::exit(probe.complete(), &plan.directions, &found, options))
}

fn print(probe: &Probe, record: &Record, options: &Options) -> Result<(), Failure> {
    let reported = (options.report.with_record == Some(true)).then_some(record);
    out::result(options, || lat::json(probe, reported), || noted(lat::page(probe), record))
}
