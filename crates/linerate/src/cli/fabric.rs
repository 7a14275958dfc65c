//! `linerate fabric`: an InfiniBand network, from this host's port.

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};
use clap::{Parser, Subcommand};
use linerate_core::fabric::capture::{self, Captured};
use linerate_core::fabric::walk::Walk;
use linerate_core::units::Nanos;
use linerate_engine::fabric::{Capturing, Ended, Ibsim, Port, PortError, Replay, drive};

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::quantity::{Interval, LookTime};
use super::{out, reach, signal};
use crate::show::fabric::{self, Walked};

/// Variables by which programs of ibsim find their simulator and their node.
pub(super) const SIMULATOR: &str = "IBSIM_SOCKNAME";
const NODE: &str = "SIM_HOST";

/// Longest time of a walk without `--time`.
const LONGEST: Nanos = Nanos::from_secs(30);

/// Time between two readings of the counters without `--interval`.
const BETWEEN: Nanos = Nanos::from_secs(1);

// `linerate fabric`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Show a network from a file that `--capture` wrote
    #[arg(long, value_name = "FILE", conflicts_with = "capture")]
    root: Option<PathBuf>,

    /// Save all requests and replies to this file, with the names and GUIDs of all nodes
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,

    /// Time between two readings of the counters; 0 reads them once [default: 1s]
    #[arg(long, value_name = "TIME")]
    interval: Option<Interval>,

    /// Longest time of the walk [default: 30s]
    #[arg(long, value_name = "TIME")]
    time: Option<LookTime>,

    /// Explain each problem and its remedy, and list all links
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    pub(crate) json: options::Json,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum What {
    /// Print one line for each problem; the exit code is 4 if there is one
    Check,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let walked = walked(args, &stop)?;
    out::result(
        options,
        || fabric::json(&walked),
        || match args.what {
            Some(What::Check) => fabric::check(&walked),
            None => fabric::page(&walked, args.explain),
        },
    )?;
    let is_wrong = walked.findings.iter().any(|finding| finding.now);
    Ok(match args.what {
        _ if !walked.whole => Exit::NotMeasured,
        Some(What::Check) if is_wrong => Exit::Missed,
        _ => Exit::Done,
    })
}

/// Walks through the network, or through a captured one.
fn walked(args: &Args, stop: &AtomicBool) -> Result<Walked, Failure> {
    if let Some(file) = &args.root {
        let captured = load(file).map_err(|error| {
            Failure::usage(error).hint("`linerate fabric --capture FILE` writes such a file")
        })?;
        let through = format!("{} (a capture)", captured.through);
        return walk(&mut Replay::new(captured), through, args, stop).map_err(failed);
    }
    let (mut port, through) = open().map_err(failed)?;
    let Some(file) = &args.capture else {
        return walk(&mut port, through, args, stop).map_err(failed);
    };
    let mut port = Capturing::new(port, &through);
    let walked = walk(&mut port, through, args, stop);
    // What was seen before a failure is worth keeping.
    fs::write(file, port.captured().encode())
        .with_context(|| format!("failed to write {}", file.display()))
        .map_err(Failure::not_measured)?;
    walked.map_err(failed)
}

/// Walks once through the network of this machine's port, for other verbs.
pub(super) fn here(stop: &AtomicBool) -> Result<Walked, Failure> {
    walked(&Args::once(None), stop)
}

/// Walks once through a network in a file, for other verbs.
pub(super) fn captured(file: &Path, stop: &AtomicBool) -> Result<Walked, Failure> {
    walked(&Args::once(Some(file.to_owned())), stop)
}

impl Args {
    /// A walk that reads counters once.
    fn once(root: Option<PathBuf>) -> Self {
        Self {
            what: None,
            root,
            capture: None,
            interval: Some(Interval(Nanos(0))),
            time: None,
            explain: false,
            json: options::Json::default(),
        }
    }
}

fn load(file: &Path) -> anyhow::Result<Captured> {
    let mut text = String::new();
    let opened =
        fs::File::open(file).with_context(|| format!("failed to open {}", file.display()))?;
    let read = opened.take(capture::LARGEST + 1).read_to_string(&mut text);
    let read = read.with_context(|| format!("failed to read {}", file.display()))?;
    if read as u64 > capture::LARGEST {
        return Err(anyhow!(
            "{} is larger than {} MiB",
            file.display(),
            capture::LARGEST >> 20
        ));
    }
    Captured::decode(&text).with_context(|| format!("failed to read {}", file.display()))
}

fn failed(error: PortError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}

/// Opens the port of the simulator that the environment names.
fn open() -> Result<(Box<dyn Port>, String), PortError> {
    let (name, node) = (env::var(SIMULATOR).ok(), env::var(NODE).ok());
    let port = Ibsim::attach(name.as_deref(), node.as_deref())?;
    let through = format!("ibsim, as {}", port.node());
    Ok((Box::new(port), through))
}

/// Finds the network and reads its counters twice.
fn walk(
    port: &mut impl Port,
    through: String,
    args: &Args,
    stop: &AtomicBool,
) -> Result<Walked, PortError> {
    let until = args.time.map_or(LONGEST, |time| time.0);
    let interval = args.interval.map_or(BETWEEN, |time| time.0);
    let mut walk = Walk::default();
    let stopped = || stop.load(Ordering::Relaxed);
    let mut ended = drive(port, &mut walk, until, &stopped)?;
    if ended == Ended::Whole {
        walk.ask_managers();
        ended = drive(port, &mut walk, until, &stopped)?;
    }
    if ended == Ended::Whole {
        walk.read_counters();
        ended = drive(port, &mut walk, until, &stopped)?;
    }
    if ended == Ended::Whole && interval.0 > 0 && walk.has_counters() {
        port.pause(interval.duration());
        walk.read_counters();
        ended = drive(port, &mut walk, until, &stopped)?;
    }
    let (requests, took) = (walk.sent(), port.now());
    Ok(Walked::of(
        walk.into_network(),
        through,
        requests,
        took,
        ended == Ended::Whole,
    ))
}
