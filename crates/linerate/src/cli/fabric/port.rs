//! The port through which `linerate fabric` asks: of this host, of a simulator, or of a captured walk.

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

/// Variables by which programs of ibsim find their simulator and their node. Either one selects the simulator.
pub(in crate::cli) const SIMULATOR: &str = "IBSIM_SOCKNAME";
const NODE: &str = "SIM_HOST";

/// What was asked, and whether all of it was answered or given up.
pub(super) struct Asked<T> {
    pub(super) value: T,
    pub(super) ended: Ended,
}

/// Asks through the port that the arguments name: a captured walk or a port of this host, which may be captured. `ask`
/// gets the port, and its name in words. A capture that cannot be written is reported, and what was asked is kept.
pub(super) fn through<T>(
    args: &Args,
    ask: impl FnOnce(&mut dyn MadPort, String) -> Result<Asked<T>, Failure>,
) -> Result<(Asked<T>, Option<Failure>), Failure> {
    if let Some(file) = &args.root {
        let captured = load(file).map_err(|error| {
            Failure::usage(error).hint("`linerate fabric --capture FILE` writes such a file")
        })?;
        let name = format!("{} (a capture)", captured.through);
        let whole = captured.whole;
        let mut asked = ask(&mut Replay::new(captured), name)?;
        if !whole {
            asked.ended = Ended::Early;
        }
        return Ok((asked, None));
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
    // A file that cannot be made is known before the walk.
    let file = Pending::begin(path, false).map_err(unwritten)?;
    let mut port = Capturing::new(port, &name);
    let asked = ask(&mut port, name);
    // What was seen before a failure is worth keeping.
    let whole = asked.as_ref().is_ok_and(|asked| asked.ended == Ended::Whole);
    let written = file.end(&port.captured(whole).encode());
    Ok((asked?, written.err().map(unwritten)))
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
    format!("{} (--device chooses another one: {}{more})", port.name(), listed.join(", "))
}
