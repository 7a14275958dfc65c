//! The port through which `linerate fabric` sends requests: of this host, of a simulator, or of a captured walk.

use std::io::{self, Read};
use std::path::Path;
use std::{env, fs};

use anyhow::{Context, anyhow};
use linerate_fabric::capture::{self, Captured};
use linerate_host::Live;
use linerate_host::fabric::{
    Capturing, Ended, Ibsim, MadPort, Name, PortError, Replay, Umad, Wanted,
};

use super::super::capture::Pending;
use super::super::exit::Failure;
use super::{Args, failed};

/// Environment variables by which programs of ibsim find its socket and the node to act as. Either one selects ibsim.
pub(in crate::cli) const SIMULATOR: &str = "IBSIM_SOCKNAME";
const NODE: &str = "SIM_HOST";

/// The result of some requests, and whether all of them were done or it ended early.
pub(super) struct Outcome<T> {
    pub(super) value: T,
    pub(super) ended: Ended,
}

/// Runs `ask` with the port that the arguments name, and that port's name in words. The port is a replay of a captured
/// walk, or a port of this host or of a simulator, whose requests may be captured. A capture that cannot be written is
/// a separate failure: the result is kept.
pub(super) fn through<T>(
    args: &Args,
    ask: impl FnOnce(&mut dyn MadPort, String) -> Result<Outcome<T>, Failure>,
) -> Result<(Outcome<T>, Option<Failure>), Failure> {
    if let Some(file) = &args.root {
        let captured = load(file).map_err(|error| {
            Failure::usage(error).hint("`linerate fabric --capture FILE` writes such a file")
        })?;
        let name = format!("{} (a capture)", captured.through);
        let whole = captured.whole;
        let mut outcome = ask(&mut Replay::new(captured), name)?;
        if !whole {
            outcome.ended = Ended::Early;
        }
        return Ok((outcome, None));
    }
    let (mut port, name) = open(args.device.as_ref()).map_err(failed)?;
    let Some(path) = &args.capture else {
        return Ok((ask(&mut port, name)?, None));
    };
    let unwritten = |error: io::Error| {
        let error =
            anyhow::Error::new(error).context(format!("failed to write {}", path.display()));
        Failure::not_measured(error)
    };
    // A file that cannot be created must be reported before the walk begins.
    let file = Pending::begin(path, false).map_err(unwritten)?;
    let mut port = Capturing::new(port, &name);
    let outcome = ask(&mut port, name);
    // Replies received before a failure are worth keeping.
    let whole = outcome.as_ref().is_ok_and(|outcome| outcome.ended == Ended::Whole);
    let written = file.end(&port.captured(whole).encode());
    Ok((outcome?, written.err().map(unwritten)))
}

fn load(file: &Path) -> anyhow::Result<Captured> {
    let mut text = String::new();
    let opened =
        fs::File::open(file).with_context(|| format!("failed to open {}", file.display()))?;
    let read = opened.take(capture::LARGEST + 1).read_to_string(&mut text);
    let read = read.with_context(|| format!("failed to read {}", file.display()))?;
    if read as u64 > capture::LARGEST {
        return Err(anyhow!("{} is larger than {} MiB", file.display(), capture::LARGEST >> 20));
    }
    Captured::decode(&text).with_context(|| format!("failed to read {}", file.display()))
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

/// Name of this host's port for the page, with the other ports that `--device` could choose.
fn name_of(port: &Umad) -> String {
    /// Most other ports that are named.
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
    format!("{} (--device chooses another one: {}{more})", port.name(), listed.join(", "))
}
