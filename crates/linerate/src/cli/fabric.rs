//! `linerate fabric`: an InfiniBand network, from this host's port.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::Parser;
use linerate_core::fabric::walk::Walk;
use linerate_core::units::Nanos;
use linerate_engine::fabric::{Clock, Ended, Ibsim, Name, Port, PortError, Umad, Wanted, drive};
use linerate_engine::host::Live;

use super::exit::{Exit, Failure};
use super::options::Options;
use super::{out, reach, signal};
use crate::show::fabric::{self, Walked};

/// Variables by which programs of ibsim find their simulator and their node. Either one selects the simulator.
const SIMULATOR: &str = "IBSIM_SOCKNAME";
const NODE: &str = "SIM_HOST";

/// Longest time of a walk.
const LONGEST: Nanos = Nanos::from_secs(30);

/// Time between two readings of the counters.
const BETWEEN: Nanos = Nanos::from_secs(1);

// `linerate fabric`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Ask through this InfiniBand port: mlx5_0, or mlx5_0:2 [default: the first one with a link]
    #[arg(long, value_name = "DEVICE[:PORT]")]
    device: Option<Wanted>,

    /// Explain each problem and its remedy, and list all links
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let (mut port, through) = open(args.device.as_ref()).map_err(failed)?;
    let walked = walk(&mut *port, through, &stop).map_err(failed)?;
    out::print(&out::rendered(
        &fabric::page(&walked, args.explain),
        options,
    ))?;
    Ok(if walked.whole {
        Exit::Done
    } else {
        Exit::NotMeasured
    })
}

fn failed(error: PortError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}

/// Opens a port: the simulator's, if the environment names one and the user names no device; else one of this host.
fn open(wanted: Option<&Wanted>) -> Result<(Box<dyn Port>, String), PortError> {
    let named = |variable| env::var(variable).ok().filter(|name| !name.is_empty());
    let (name, node) = (named(SIMULATOR), named(NODE));
    if wanted.is_none() && (name.is_some() || node.is_some()) {
        let port = Ibsim::attach(name.as_deref(), node.as_deref())?;
        let through = format!("ibsim, as {}", port.node());
        return Ok((Box::new(port), through));
    }
    let port = Umad::open(&Live::new(), wanted)?;
    let through = through(&port);
    Ok((Box::new(port), through))
}

/// The port of this host in words, with the others that could have been chosen.
fn through(port: &Umad) -> String {
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

/// Finds the network and reads its counters twice.
fn walk(port: &mut dyn Port, through: String, stop: &AtomicBool) -> Result<Walked, PortError> {
    let clock = Clock::start();
    let mut walk = Walk::default();
    let stopped = || stop.load(Ordering::Relaxed);
    let mut go = |walk: &mut Walk| drive(port, walk, &clock, LONGEST, &stopped);
    let mut ended = go(&mut walk)?;
    if ended == Ended::Whole {
        walk.ask_managers();
        ended = go(&mut walk)?;
    }
    for round in 0..2 {
        if ended == Ended::Early || (round > 0 && !walk.has_counters()) {
            break;
        }
        if round > 0 {
            thread::sleep(BETWEEN.duration());
        }
        walk.read_counters();
        ended = go(&mut walk)?;
    }
    let (requests, took) = (walk.sent(), clock.now());
    Ok(Walked::of(
        walk.into_network(),
        through,
        requests,
        took,
        ended == Ended::Whole,
    ))
}
