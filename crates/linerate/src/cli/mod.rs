//! The command line: verbs and their arguments.

mod beside;
mod bw;
mod capture;
mod causes;
mod changes;
mod config;
mod demo;
mod diff;
mod disk;
mod environment;
mod exit;
mod explain;
mod fabric;
mod far_end;
mod flows;
mod generate;
mod guide;
mod help;
mod host;
mod ib;
#[cfg(test)]
#[path = "tests/ids.rs"]
mod ids;
mod import;
mod lab;
mod lat;
mod letters;
mod list;
mod log;
mod note;
mod options;
mod out;
mod pair;
mod quantity;
mod reach;
mod report;
mod resolve;
mod run;
mod serve;
mod session;
mod show;
mod signal;
mod single;
mod ssh;
mod study;
mod vm;
mod whatif;

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches, Id, Parser, Subcommand};

use exit::{Exit, Failure};
use options::Options;

/// Measures how fast a path between two machines is and how fast it can be, names what limits it,
/// and proves it by experiment
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
  linerate demo         find a hidden fault in a network made on this machine
  linerate serve        on the far machine: shows a key
  linerate pair HOST    on this machine, once: asks for that key
  linerate run HOST     measures the path to the far machine, in both directions

Exit codes: 0 measured, whatever the verdict; 1 a bug in linerate; 2 wrong
usage; 3 could not measure, or only a part; 4 an --expect condition does not
hold, or the demo's verdict is not the planted fault.

Every option has an environment variable, such as LINERATE_WRITE_SIZE for
--write-size (serve: LINERATE_SERVE_OPEN, demo: LINERATE_DEMO_TIME), and a line
in the configuration file.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure the path to another machine in both directions, and name what limits it
    Run(Box<run::Args>),
    /// Be the far end: wait for measurements from other machines
    Serve(serve::Args),
    /// Save the key that `linerate serve` shows on the far machine
    Pair(pair::Args),
    /// Measure throughput once, without a verdict; the far end may be an iperf3 server
    Bw(Box<bw::Args>),
    /// Time round trips once, without a verdict, on an idle or a loaded path
    Lat(Box<lat::Args>),
    /// Measure a disk by the rows that disk benchmarks have, in a file of linerate's own, and name what limits it
    Disk(disk::Args),
    /// Show a saved run, and judge it again
    Show(show::Args),
    /// List the saved records with their answers, the newest last
    List(list::Args),
    /// Compare two saved runs: their hosts, figures and limits
    Diff(diff::Args),
    /// Show one machine: its hardware and settings, and what is odd about them
    Host(host::Args),
    /// Show what limits the transfers that already run on this machine; adds no load
    Flows(flows::Args),
    /// Show an InfiniBand network from this host's port, and what is wrong with it
    Fabric(fabric::Args),
    /// Check a first InfiniBand network step by step, and say what to type where a step fails
    Guide(guide::Args),
    /// Read results and facts that other programs printed, and say what they show
    Import(import::Args),
    /// Build a network with a hidden fault on this machine, and let linerate find the fault
    Demo(demo::Args),
    /// Compute what a path can carry from a description, and what a change would gain
    Whatif(whatif::Args),
    /// List the causes that can limit a path, or explain one of them
    Causes(causes::Args),
    /// Explain the words of a field, such as those of InfiniBand
    Explain(explain::Args),
    /// Run a command in a test network or a virtual machine that is made on this machine
    Lab(lab::Args),
    /// Print the manual page, shell completions, JSON schemas or a configuration file
    Generate(generate::Args),
}

impl Verb {
    /// The options of the command line and the environment, as one layer.
    fn typed(&self) -> Options {
        let mut options = Options::default();
        match self {
            Self::Run(args) => {
                options.run = args.run.clone();
                options.peer = args.reach.clone();
                options.load = args.load.clone();
                options.engine = args.own.set.clone();
                options.report = args.report.clone();
                args.json.typed(&mut options.report);
                options.records = args.records.clone();
            }
            Self::Serve(args) => {
                options.serve = args.serve.clone();
                options.peer.port = args.port;
            }
            Self::Bw(args) => {
                options.bw = args.bw.clone();
                options.load = args.load.clone();
                options.engine = args.own.set.clone();
                args.shared.typed(&mut options);
                options.records = args.records.clone();
            }
            Self::Lat(args) => {
                options.lat = args.lat.clone();
                args.beside.typed(&mut options);
                options.engine = args.own.set.clone();
                args.shared.typed(&mut options);
                options.records = args.records.clone();
            }
            Self::Disk(args) => args.typed(&mut options),
            Self::Pair(args) => options.peer = args.peer.clone(),
            Self::Show(args) => {
                options.report = args.report.clone();
                args.json.typed(&mut options.report);
                options.records.save.clone_from(&args.save);
            }
            Self::List(list::Args { json, save, .. })
            | Self::Diff(diff::Args { json, save, .. }) => {
                json.typed(&mut options.report);
                options.records.save.clone_from(save);
            }
            Self::Host(args) => args.json.typed(&mut options.report),
            Self::Guide(args) => args.json().typed(&mut options.report),
            Self::Flows(args) => {
                options.flows = args.flows.clone();
                args.json.typed(&mut options.report);
            }
            Self::Demo(args) => {
                options.demo = args.demo.clone();
                options.records = args.records.clone();
            }
            Self::Whatif(args) => args.json.typed(&mut options.report),
            Self::Import(args) => args.typed(&mut options),
            Self::Causes(args) => args.form.typed(&mut options.report),
            Self::Explain(args) => args.form.typed(&mut options.report),
            Self::Fabric(args) => args.typed(&mut options.report),
            Self::Lab(_) | Self::Generate(_) => {}
        }
        options
    }
}

impl Verb {
    /// Whether the verb has `--engine`.
    fn has_engine(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Bw(_) | Self::Lat(_))
    }

    /// Whether the result is one table.
    fn is_table(&self) -> bool {
        matches!(self, Self::Whatif(args) if args.is_table())
    }
}

/// Parses the arguments, runs the command, and returns its exit code.
pub fn main() -> ExitCode {
    signal::large_files_fail_in_words();
    if let Some(ended) = linerate_load::transport::program::started_as(std::env::args_os()) {
        return ended.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let exit = exit::guarded(|| match parse() {
        Ok((cli, typed)) => obey(cli, &typed),
        Err(error) => usage(&error),
    });
    let exit = if exit::panicked() { Exit::Bug } else { exit };
    ExitCode::from(exit as u8)
}

/// The command, and the names of the options on the command line. Options from the environment are not among them,
/// because a variable may be set for other verbs.
fn parse() -> Result<(Cli, Vec<String>), clap::Error> {
    let mut program = help::command();
    let matches = program.try_get_matches_from_mut(std::env::args_os())?;
    let unread = environment::unread(&program);
    if !unread.is_empty() {
        let names = unread.join(", ");
        exit::tell(&format!("note: no option reads these environment variables: {names}\n"));
    }
    Ok((Cli::from_arg_matches(&matches)?, on_line(&matches)))
}

fn on_line(matches: &ArgMatches) -> Vec<String> {
    let Some((_, verb)) = matches.subcommand() else {
        return Vec::new();
    };
    let typed = |id: &&str| verb.value_source(id) == Some(ValueSource::CommandLine);
    let ids = verb.ids().map(Id::as_str).filter(typed);
    ids.map(str::to_owned).collect()
}

/// Reports an error of usage. Help and version are no errors: they are printed to standard output.
fn usage(error: &clap::Error) -> Result<Exit, Failure> {
    if !error.use_stderr() {
        out::print(&error.render().to_string())?;
        return Ok(Exit::Done);
    }
    exit::tell(&error.render().to_string());
    if let Some(hint) = letters::hint(error) {
        exit::tell(&hint);
    }
    let set = environment::set();
    if !set.is_empty() {
        exit::tell(&format!("note: these environment variables are set: {}\n", set.join(", ")));
    }
    Ok(Exit::Usage)
}

fn obey(cli: Cli, on_line: &[String]) -> Result<Exit, Failure> {
    let mut typed = cli.verb.typed();
    typed.global = cli.global;
    let options = config::resolve(&typed)?;
    if options.report.format == Some(options::Format::Csv) && !cli.verb.is_table() {
        let why =
            anyhow::anyhow!("`--format csv` is only for the table of `linerate whatif --compare`");
        return Err(Failure::usage(why).hint("--json prints every result for programs"));
    }
    // With `--layers` several transports are used, and each uses only the options that it has.
    if cli.verb.has_engine() && options.run.layers != Some(true) {
        resolve::fits(on_line, &options.run)?;
    }
    match &cli.verb {
        Verb::Run(args) => run::run(args, &options, on_line),
        Verb::Serve(args) => serve::run(args, &options),
        Verb::Bw(args) => bw::run(args, &options, on_line),
        Verb::Lat(args) => lat::run(args, &options, on_line),
        Verb::Disk(args) => disk::run(args, &options),
        Verb::Pair(args) => pair::run(args, &options),
        Verb::Show(args) => show::run(args, &options),
        Verb::List(args) => list::run(args, &options),
        Verb::Diff(args) => diff::run(args, &options),
        Verb::Host(args) => host::run(args, &options),
        Verb::Flows(args) => flows::run(args, &options),
        Verb::Fabric(args) => fabric::run(args, &options),
        Verb::Guide(args) => guide::run(args, &options),
        Verb::Demo(args) => demo::run(args, &options),
        Verb::Whatif(args) => whatif::run(args, &options),
        Verb::Import(args) => import::run(args, &options),
        Verb::Causes(args) => causes::run(args, &options),
        Verb::Explain(args) => explain::run(args, &options),
        Verb::Lab(args) => lab::run(args),
        Verb::Generate(args) => generate::run(args),
    }
}
