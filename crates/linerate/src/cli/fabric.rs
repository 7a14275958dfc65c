//! `linerate fabric`: an InfiniBand network, from this host's port.

mod ping;
mod route;

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};
use clap::{Parser, Subcommand};
use linerate_core::fabric::capture::{self, Captured};
use linerate_core::fabric::finding::full;
use linerate_core::fabric::network::{Network, PortAt};
use linerate_core::fabric::walk::{PARTS, Part, Walk};
use linerate_core::facts::infiniband::Guid;
use linerate_core::units::Nanos;
use linerate_engine::fabric::{
    Capturing, Ended, Ibsim, MadPort, Name, PortError, Replay, Umad, Wanted, drive,
};
use linerate_engine::host::Live;

use super::exit::{Exit, Failure, tell};
use super::options::{self, Options};
use super::quantity::{Interval, LookTime};
use super::{out, reach, signal};
use crate::show::fabric::{self, Walked};

/// Variables by which programs of ibsim find their simulator and their node. Either one selects the simulator.
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
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    pub(crate) json: options::Json,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Print one line for each problem; the exit code is 4 if there is one
    Check,
    /// Time requests to a node on the management path; starts nothing there
    Ping {
        /// LID, GUID, or name of the node
        to: String,

        /// Number of requests
        #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
    },
    /// Show the links that packets to a node pass, by the forwarding tables of the switches
    Route {
        /// LID, GUID, or name of the node
        to: String,

        /// LID, GUID, or name of the node where the route begins [default: this host]
        #[arg(long, value_name = "NODE")]
        from: Option<String>,
    },
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let is_json = options.report.json == Some(true);
    match &args.what {
        Some(What::Ping { .. } | What::Route { .. }) if is_json => Err(Failure::usage(anyhow!(
            "`ping` and `route` print text only"
        ))
        .hint("linerate fabric --json")),
        Some(What::Ping { .. }) if args.root.is_some() => {
            Err(Failure::usage(anyhow!("a capture answers no `ping`")))
        }
        Some(What::Ping { to, count }) => {
            through(args, |port, _| ping::run(port, to, *count, &stop, options))
        }
        Some(What::Route { to, from }) => through(args, |port, _| {
            route::run(port, to, from.as_deref(), &stop, options)
        }),
        Some(What::Check) => shown(args, options, &stop, true),
        None => shown(args, options, &stop, false),
    }
}

/// Shows the whole network, or checks it.
fn shown(args: &Args, options: &Options, stop: &AtomicBool, checks: bool) -> Result<Exit, Failure> {
    let walked = walked(args, stop)?;
    out::result(
        options,
        || fabric::json(&walked),
        || {
            if checks {
                fabric::check(&walked)
            } else {
                fabric::page(&walked, args.explain)
            }
        },
    )?;
    // Counters that are full show no new errors: a check cannot know.
    let is_known = walked.knows_own_port() && (!checks || full(&walked.network).is_empty());
    let is_wrong = walked.findings.iter().any(|finding| finding.now);
    Ok(match walked.whole {
        true if checks && is_wrong => Exit::Missed,
        true if is_known => Exit::Done,
        _ => Exit::NotMeasured,
    })
}

/// Asks through the port that the arguments name: a captured walk or a port of this host, which may be captured. `ask`
/// gets the port, and its name in words.
fn through<T>(
    args: &Args,
    ask: impl FnOnce(&mut dyn MadPort, String) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(file) = &args.root {
        let captured = load(file).map_err(|error| {
            Failure::usage(error).hint("`linerate fabric --capture FILE` writes such a file")
        })?;
        let name = format!("{} (a capture)", captured.through);
        return ask(&mut Replay::new(captured), name);
    }
    let (mut port, name) = open(args.device.as_ref()).map_err(failed)?;
    let Some(file) = &args.capture else {
        return ask(&mut port, name);
    };
    let mut port = Capturing::new(port, &name);
    let asked = ask(&mut port, name);
    // What was seen before a failure is worth keeping.
    fs::write(file, port.captured().encode())
        .with_context(|| format!("failed to write {}", file.display()))
        .map_err(Failure::not_measured)?;
    asked
}

/// Walks once through the network of this machine's port, for other verbs.
pub(super) fn here(stop: &AtomicBool) -> Result<Walked, Failure> {
    walked(&Args::once(None), stop)
}

/// Walks once through a network in a file, for other verbs.
pub(super) fn captured(file: &Path, stop: &AtomicBool) -> Result<Walked, Failure> {
    walked(&Args::once(Some(file.to_owned())), stop)
}

fn walked(args: &Args, stop: &AtomicBool) -> Result<Walked, Failure> {
    through(args, |port, name| {
        walk(port, name, args, stop).map_err(failed)
    })
}

impl Args {
    /// A walk that reads counters once.
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

/// Opens a port: the simulator's, if the environment names one and the user names no device; else one of this host.
fn open(wanted: Option<&Wanted>) -> Result<(Box<dyn MadPort>, String), PortError> {
    let named = |variable| env::var(variable).ok().filter(|name| !name.is_empty());
    let (name, node) = (named(SIMULATOR), named(NODE));
    if wanted.is_none() && (name.is_some() || node.is_some()) {
        let port = Ibsim::attach(name.as_deref(), node.as_deref())?;
        let through = format!("ibsim, as {}", port.node());
        return Ok((Box::new(port), through));
    }
    let port = Umad::open(&Live::new(), wanted)?;
    let through = name_of(&port);
    Ok((Box::new(port), through))
}

/// The port of this host in words, with the others that could have been chosen.
fn name_of(port: &Umad) -> String {
    /// Most other ports that are listed.
    const MOST: usize = 4;
    let others = port.others();
    if others.is_empty() {
        return port.name().to_string();
    }
    let listed: Vec<String> = others.iter().take(MOST).map(Name::option).collect();
    let more = others.len() - listed.len();
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} (--device chooses another one: {}{more})",
        port.name(),
        listed.join(", ")
    )
}

/// Returns the place that a user's words name: a LID, the GUID of a node or port, or the name of a node.
fn place(network: &Network, text: &str) -> Result<PortAt, Failure> {
    let number = |digits: &str| match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    let of_node = |node: usize| {
        let of = &network.nodes[node];
        let port = if of.is_switch() {
            0
        } else {
            of.info.local_port
        };
        PortAt { node, port }
    };
    let by_number = number(text).and_then(|number| {
        let lid = u16::try_from(number)
            .ok()
            .and_then(|lid| network.by_lid(lid));
        let guid = Guid(number);
        let by_port = || {
            let mut ports = network.ports();
            ports
                .find(|(_, port)| port.guid == Some(guid))
                .map(|(at, _)| at)
        };
        lid.or_else(|| network.by_guid(guid).map(of_node))
            .or_else(by_port)
    });
    let named = network.by_name(text);
    match (by_number, named.as_slice()) {
        (Some(at), _) => Ok(at),
        (None, [node]) => Ok(of_node(*node)),
        (None, []) => Err(
            Failure::usage(anyhow!("no node of this network is `{text}`"))
                .hint("linerate fabric --explain lists all links with the names of both ends"),
        ),
        (None, _) => Err(Failure::usage(anyhow!("several nodes are called `{text}`"))
            .hint("a LID or a GUID names one: linerate fabric --json")),
    }
}

/// Finds the network.
fn found(port: &mut dyn MadPort, stop: &AtomicBool) -> Result<Walk, PortError> {
    let mut walk = Walk::default();
    drive(port, &mut walk, LONGEST, &|| stop.load(Ordering::Relaxed))?;
    Ok(walk)
}

/// Finds the network and reads its counters twice. A port that fails after the first reply ends the walk early, and
/// what was seen is shown.
fn walk(
    port: &mut dyn MadPort,
    through: String,
    args: &Args,
    stop: &AtomicBool,
) -> Result<Walked, PortError> {
    let mut walk = Walk::default();
    let ended = match steps(port, &mut walk, args, stop) {
        Err(error) if !walk.network().nodes.is_empty() => {
            tell(&failed(error).words());
            Ended::Early
        }
        other => other?,
    };
    let (requests, took) = (walk.sent(), port.now());
    Ok(Walked::of(
        walk.into_network(),
        through,
        requests,
        took,
        ended == Ended::Whole,
    ))
}

/// Waits between two readings, unless the time is up or the user wants to stop.
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
