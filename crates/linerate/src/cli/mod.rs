//! The command line: verbs and what they take.

mod causes;
mod config;
mod exit;
mod options;
mod out;
mod quantity;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use exit::{Exit, Failure};
use options::Options;

/// How fast a path between two machines can go, how fast it goes, what holds it back - and the
/// proof
#[derive(Debug, Parser)]
#[command(name = "linerate", version, max_term_width = 100, after_help = AFTER)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    global: options::Global,
    #[command(subcommand)]
    verb: Verb,
}

const AFTER: &str = "\
Start here:
  linerate demo                  see it at work on a network made on this machine
  linerate serve                 on the far machine; it shows a key
  linerate pair HOST             on the near machine, once: takes that key
  linerate run HOST              measure the path to it, both ways

Exit codes: 0 measured, whatever the verdict; 1 a bug in linerate; 2 wrong usage;
3 could not measure, or only in part; 4 an --expect bound, or the demo's truth, failed.
Every option has an environment variable and an entry in the configuration file.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List what can hold a path back, or explain one cause
    Causes(causes::Args),
}
