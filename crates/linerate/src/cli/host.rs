//! `linerate host`: shows the facts of one machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use linerate_facts::{Gap, Inventory};
use linerate_host::{Capture, Live, Machine, Replay, Watch, inventory};
use linerate_units::Nanos;

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::{capture, out, reach, signal};
use linerate_show::host;

/// Longest time between two checks for Ctrl-C.
const BETWEEN: Duration = Duration::from_millis(100);

/// Beginnings of hints that help only on this machine, and the hint that replaces them for another machine of which
/// only some files are here.
const LOCAL_HINTS: [&str; 3] = ["mount ", "sudo dmidecode", "sudo linerate"];
const REMOTE_HINT: &str = "on that machine: sudo linerate host --capture FILE";

/// Time between two readings with `--watch`.
const SECOND: Duration = Duration::from_secs(1);

// `linerate host`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Show another machine, from its capture or from a directory with its /proc and /sys
    #[arg(long, value_name = "PATH")]
    root: Option<PathBuf>,

    /// Save all readings to this file; `--root FILE` shows them on any machine
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,

    /// Do not mask names, addresses and serial numbers in the capture
    #[arg(long, requires = "capture")]
    unmasked: bool,

    /// Show changes once a second, until Ctrl-C
    #[arg(long, conflicts_with_all = ["root", "capture", "json", "format"])]
    watch: bool,

    /// Explain each oddity and its remedy, and list everything that could not be read
    #[arg(long, conflicts_with = "watch")]
    explain: bool,

    #[command(flatten)]
    pub(crate) json: options::Json,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    if args.watch {
        return watch(options);
    }
    let keep = args.capture.as_deref().map(|file| (file, args.unmasked));
    let inventory = match &args.root {
        None => look(Live::new(), &thread::sleep, keep)?,
        Some(root) => elsewhere(root, keep)?,
    };
    out::result(options, || host::json(&inventory), || host::page(&inventory, args.explain))?;
    Ok(Exit::Done)
}

/// Reads the facts of this machine, or of another one, without measuring activity, so that it does not wait.
pub(super) fn inventory_of(root: Option<&Path>) -> Result<Inventory, Failure> {
    match root {
        None => look(Live::new(), &|_| {}, None),
        Some(root) => elsewhere(root, None),
    }
}

/// Shows once a second what changed, until the user ends it.
fn watch(options: &Options) -> Result<Exit, Failure> {
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let machine = Live::new();
    let mut watch = Watch::new(&machine);
    let begin = Instant::now();
    let mut next = begin;
    loop {
        let now = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if let Some(change) = watch.look(&machine, Nanos(now)) {
            out::print(&host::watch(&change).text(out::style(&options.global)))?;
        }
        next = (next + SECOND).max(Instant::now());
        while Instant::now() < next {
            if stop.load(Ordering::Relaxed) {
                return Ok(Exit::Done);
            }
            thread::sleep(BETWEEN.min(next.saturating_duration_since(Instant::now())));
        }
    }
}

/// The file in which the readings are saved, and whether they are saved unmasked; `None` if they are not saved.
type Keep<'a> = Option<(&'a Path, bool)>;

/// Reads the facts of another machine from copies of its files. The copies do not change, so it does not wait between
/// readings.
fn elsewhere(root: &Path, keep: Keep<'_>) -> Result<Inventory, Failure> {
    if root.is_dir() {
        if !["proc", "sys"].iter().any(|part| root.join(part).is_dir()) {
            let error = anyhow::anyhow!("{} has neither proc nor sys", root.display());
            return Err(Failure::usage(error).hint(
                "--root takes the directory that has a machine's proc and sys, or a capture",
            ));
        }
        let machine = Live::under(root)
            .with_context(|| format!("failed to look into {}", root.display()))
            .map_err(Failure::usage)?;
        let mut inventory = look(machine, &|_| {}, keep)?;
        // A remedy for this machine does not help a machine that is elsewhere.
        let here = |gap: &&mut Gap| LOCAL_HINTS.iter().any(|hint| gap.hint.starts_with(hint));
        for gap in inventory.gaps.iter_mut().filter(here) {
            REMOTE_HINT.clone_into(&mut gap.hint);
        }
        return Ok(inventory);
    }
    let captured = capture::load(root).map_err(|error| {
        Failure::usage(error).hint("`linerate host --capture FILE` writes such a file")
    })?;
    look(Replay::new(captured), &|_| {}, keep)
}

/// Reads the inventory, and saves all readings if `keep` names a file.
fn look(
    machine: impl Machine,
    pause: &dyn Fn(Duration),
    keep: Keep<'_>,
) -> Result<Inventory, Failure> {
    let Some((path, is_unmasked)) = keep else {
        return Ok(inventory(&machine, pause));
    };
    let machine = Capture::new(machine);
    let inventory = inventory(&machine, pause);
    capture::save(path, machine.captured(), is_unmasked).map_err(|error| {
        let cause = error.downcast_ref::<std::io::Error>();
        let exists = cause.is_some_and(|e| e.kind() == std::io::ErrorKind::AlreadyExists);
        let hint = if exists { "name a new file: an unmasked capture replaces none" } else { "" };
        Failure::not_measured(error).hint(hint)
    })?;
    Ok(inventory)
}
