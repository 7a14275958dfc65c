//! `linerate fabric`: shows or checks an InfiniBand network through this host's port.

mod ping;
mod place;
mod port;
mod route;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use clap::{Parser, Subcommand};
use linerate_fabric::finding::full;
use linerate_fabric::walk::{PARTS, Part, Walk};
use linerate_facts::finding::Finding;
use linerate_host::fabric::{Ended, MadPort, PortError, Wanted, drive};
use linerate_units::Nanos;

use super::exit::{Exit, Failure, tell};
use super::options::{self, Options};
use super::quantity::{Interval, LookTime};
use super::{out, reach, signal};
use linerate_show::fabric::{self, Walked};
pub(super) use port::SIMULATOR;
use port::{Outcome, through};

/// Longest time of a walk if `--time` is not given.
const LONGEST: Nanos = Nanos::from_secs(30);

/// Time between two readings of the port counters if `--interval` is not given.
const BETWEEN: Nanos = Nanos::from_secs(1);

// `linerate fabric`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Show a network from a file that `--capture` wrote
    #[arg(long, value_name = "FILE", conflicts_with = "capture", global = true)]
    root: Option<PathBuf>,

    /// Save all requests and replies to this file, with the names and GUIDs of all nodes
    #[arg(long, value_name = "FILE", global = true)]
    capture: Option<PathBuf>,

    /// Time between two readings of the counters; 0s reads them once [default: 1s]
    #[arg(long, value_name = "TIME", global = true)]
    interval: Option<Interval>,

    /// Longest time of the walk [default: 30s]
    #[arg(long, value_name = "TIME", global = true)]
    time: Option<LookTime>,

    /// Ask through this InfiniBand port: mlx5_0, or mlx5_0:2 [default: the first one with a link]
    #[arg(long, value_name = "DEVICE[:PORT]", global = true)]
    device: Option<Wanted>,

    /// Explain each problem and its remedy, and list all links
    #[arg(long, global = true)]
    explain: bool,

    #[command(flatten)]
    json: options::Json,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Print one line for each problem; the exit code is 4 if there is one
    Check {
        #[command(flatten)]
        json: options::Json,
    },
    /// Time requests to a node on the management path; starts nothing there
    Ping {
        /// LID, GUID, or name of the node; NODE:PORT for one of its ports
        to: String,

        /// Number of requests
        #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,

        #[command(flatten)]
        json: options::Json,
    },
    /// Show the links that packets to a node pass, by the forwarding tables of the switches, and what the subnet
    /// manager gives for this path
    Route {
        /// LID, GUID, or name of the node; NODE:PORT for one of its ports
        to: String,

        /// LID, GUID, or name of the node where the route begins [default: this host]
        #[arg(long, value_name = "NODE")]
        from: Option<String>,

        #[command(flatten)]
        json: options::Json,
    },
}

impl Args {
    /// Copies the flags for the result, typed before or after `check`, `ping` or `route`, to `report`.
    pub(crate) fn typed(&self, report: &mut options::Report) {
        let behind = match &self.what {
            Some(What::Check { json } | What::Ping { json, .. } | What::Route { json, .. }) => json,
            None => &self.json,
        };
        self.json.or(behind).typed(report);
    }
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let until = args.time.map_or(LONGEST, |time| time.0);
    match &args.what {
        Some(What::Ping { .. }) if args.root.is_some() => {
            Err(Failure::usage(anyhow!("a capture answers no `ping`")))
        }
        Some(What::Ping { to, count, .. }) => {
            ended(through(args, |port, _| ping::run(port, (to, *count), until, &stop, options))?)
        }
        Some(What::Route { to, from, .. }) => ended(through(args, |port, _| {
            route::run(port, (to, from.as_deref()), until, &stop, options)
        })?),
        Some(What::Check { .. }) => shown(args, options, &stop, true),
        None => shown(args, options, &stop, false),
    }
}

/// The exit code; a failure if the capture could not be written.
fn ended((outcome, unwritten): (Outcome<Exit>, Option<Failure>)) -> Result<Exit, Failure> {
    unwritten.map_or(Ok(outcome.value), Err)
}

/// Shows the whole network, or checks it.
fn shown(args: &Args, options: &Options, stop: &AtomicBool, checks: bool) -> Result<Exit, Failure> {
    let (walked, unwritten) = walked(args, stop)?;
    out::result(
        options,
        || fabric::json(&walked),
        || {
            if checks { fabric::check(&walked) } else { fabric::page(&walked, args.explain) }
        },
    )?;
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    // A counter at its maximum shows no new errors, so a check cannot know whether all is well.
    let is_known = walked.knows_own_port() && (!checks || full(&walked.network).is_empty());
    let is_wrong = walked.findings.iter().any(Finding::is_now);
    Ok(match walked.whole {
        true if checks && is_wrong => Exit::Missed,
        true if is_known => Exit::Done,
        _ => Exit::NotMeasured,
    })
}

/// Walks once through the network at this machine's port, for other verbs.
pub(super) fn here(stop: &AtomicBool) -> Result<Walked, Failure> {
    Ok(walked(&Args::once(None), stop)?.0)
}

/// Walks once through a network in a file, for other verbs.
pub(super) fn captured(file: &Path, stop: &AtomicBool) -> Result<Walked, Failure> {
    Ok(walked(&Args::once(Some(file.to_owned())), stop)?.0)
}

/// Walks through a network. The failure beside the walk is that of writing its capture.
fn walked(args: &Args, stop: &AtomicBool) -> Result<(Walked, Option<Failure>), Failure> {
    let (outcome, unwritten) =
        through(args, |port, name| walk(port, name, args, stop).map_err(failed))?;
    let (walk, through, took) = outcome.value;
    let requests = walk.sent();
    let is_whole = outcome.ended == Ended::Whole;
    let walked = Walked::of(walk.into_network(), through, requests, took, is_whole);
    Ok((walked, unwritten))
}

impl Args {
    /// Arguments of a walk that reads the counters once.
    fn once(root: Option<PathBuf>) -> Self {
        Self {
            what: None,
            root,
            capture: None,
            device: None,
            interval: Some(Interval(Nanos(0))),
            time: None,
            explain: false,
            json: options::Json::default(),
        }
    }
}

fn failed(error: PortError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}

/// Finds all nodes and links of the network.
fn found(port: &mut dyn MadPort, until: Nanos, stop: &AtomicBool) -> Result<Walk, PortError> {
    let mut walk = Walk::default();
    drive(port, &mut walk, until, &|| stop.load(Ordering::Relaxed))?;
    Ok(walk)
}

/// Finds the network and reads its counters twice. If the port fails after the first reply, the walk ends early, and
/// what was found so far is kept.
fn walk(
    port: &mut dyn MadPort,
    through: String,
    args: &Args,
    stop: &AtomicBool,
) -> Result<Outcome<(Walk, String, Nanos)>, PortError> {
    let mut walk = Walk::default();
    let ended = match steps(port, &mut walk, args, stop) {
        Err(error) if !walk.network().nodes.is_empty() => {
            tell(&failed(error).words());
            Ended::Early
        }
        other => other?,
    };
    let value = (walk, through, port.now());
    Ok(Outcome { value, ended })
}

/// Waits for `time` between two readings, unless `until` is reached or the user stops the walk.
fn pause(port: &mut dyn MadPort, time: Nanos, until: Nanos, stopped: &dyn Fn() -> bool) {
    const SLICE: Nanos = Nanos::from_millis(100);
    let mut left = time;
    while left.0 > 0 && port.now() < until && !stopped() {
        let slice = left.min(SLICE);
        port.pause(slice.duration());
        left = Nanos(left.0 - slice.0);
    }
}

fn steps(
    port: &mut dyn MadPort,
    walk: &mut Walk,
    args: &Args,
    stop: &AtomicBool,
) -> Result<Ended, PortError> {
    let until = args.time.map_or(LONGEST, |time| time.0);
    let interval = args.interval.map_or(BETWEEN, |time| time.0);
    let stopped = || stop.load(Ordering::Relaxed);
    let mut ended = drive(port, walk, until, &stopped)?;
    for part in PARTS {
        if ended == Ended::Early {
            break;
        }
        if part == Part::Pause {
            if interval.0 == 0 || !walk.has_counters() {
                break;
            }
            pause(port, interval, until, &stopped);
        }
        walk.begin(part);
        ended = drive(port, walk, until, &stopped)?;
    }
    Ok(ended)
}
