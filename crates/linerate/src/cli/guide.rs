//! `linerate guide`: checks a system that somebody sets up for the first time.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::{Parser, Subcommand};
use linerate_fabric::guide::{self, Guide};
use linerate_facts::Inventory;
use linerate_facts::finding::Stands;

use super::exit::{Exit, Failure, tell};
use super::options::{self, Options};
use super::{fabric, host, out, reach, signal};
use linerate_show as show;

// `linerate guide`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check a first InfiniBand network step by step, and say what to type where a step fails
    ///
    /// The steps are card, driver, cable, subnet manager, LID, ping by LID, IPoIB and rates; each needs those
    /// before it. It changes nothing. Exit codes: 0 all are ok; 3 one is unknown; 4 one is wrong.
    Ib(Ib),
}

#[derive(Debug, Parser)]
struct Ib {
    /// Check another machine, from its capture or from a directory with its /proc and /sys
    #[arg(long, value_name = "PATH")]
    root: Option<PathBuf>,

    /// Use the network in a file that `linerate fabric --capture` wrote
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,

    #[command(flatten)]
    json: options::Json,
}

impl Args {
    /// The flags that choose the form of the result.
    pub(crate) fn json(&self) -> &options::Json {
        let What::Ib(args) = &self.what;
        &args.json
    }
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let What::Ib(args) = &args.what;
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let inventory = host::inventory_of(args.root.as_deref())?;
    let guide = judged(&inventory, args, &stop)?;
    out::result(options, || show::guide::json(&guide), || show::guide::page(&guide))?;
    Ok(exit(&guide))
}

fn exit(guide: &Guide) -> Exit {
    match (guide.is_wrong(), guide.is_well()) {
        (true, _) => Exit::Missed,
        (false, true) => Exit::Done,
        (false, false) => Exit::NotMeasured,
    }
}

/// Runs the checks, with a walk through the network if it can be reached.
fn judged(inventory: &Inventory, args: &Ib, stop: &AtomicBool) -> Result<Guide, Failure> {
    let alone = guide::infiniband(inventory, None);
    let has_cable = |guide: &Guide| {
        let mut checks = guide.checks.iter();
        checks.any(|check| check.id == "cable" && check.stands == Stands::Good)
    };
    let walked = match &args.network {
        Some(file) => Some(fabric::captured(file, stop)?),
        None if has_cable(&alone) && is_reachable(args.root.as_deref()) => {
            let unasked = |failure: &Failure| {
                tell(&format!("note: the network was not asked\n{}", failure.words()));
            };
            fabric::here(stop).inspect_err(unasked).ok()
        }
        None => None,
    };
    Ok(walked.map_or(alone, |walked| guide::infiniband(inventory, Some(&walked.network))))
}

/// Whether the network that this process can reach (by this machine's ports or a simulator) is that of the checked
/// machine.
fn is_reachable(root: Option<&Path>) -> bool {
    root.is_none() || env::var_os(fabric::SIMULATOR).is_some()
}
