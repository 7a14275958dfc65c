//! Scores how often the verdict names the planted fault: `cargo run --release --example score -- --out DIR`.
//!
//! Runs the demo of every cell several times. Each outcome is saved with its record as soon as its run ends. No run is
//! repeated, whatever its outcome. With the same directory, an interrupted score continues. With a verb of linerate as
//! its first argument this program acts as linerate, because labs start their programs so.

mod kept;
mod run;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Parser;
use linerate::demo::{Loader, Outcome};
use linerate_lab::CellKind;
use linerate_units::Nanos;

use kept::{Kept, Outcomes, Row};
use run::Wish;
use table::table;

#[derive(Debug, Parser)]
struct Args {
    /// Cell, as `linerate demo --list` names it; may be repeated [default: all]
    #[arg(long = "cell", value_name = "CELL")]
    cells: Vec<String>,

    /// Directory for the outcomes and the records of all runs; a score that is already there continues
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Runs of each cell under each congestion control
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,

    /// First seed; choose it before the first run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    seed: u64,

    /// Congestion control at both hosts; may be repeated
    #[arg(long, value_name = "NAME", default_values_t = ["cubic".to_owned(), "bbr".to_owned()])]
    congestion: Vec<String>,

    /// Program whose load measures the effect of the planted fault
    #[arg(long, value_name = "WHO", default_value = "iperf3")]
    truth: Loader,

    /// Time for each run [default: that of the demo]
    #[arg(short, long, value_name = "TIME")]
    time: Option<Nanos>,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| !first.starts_with('-')) {
        return linerate::cli::main();
    }
    match score(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(3)
        }
    }
}

fn score(args: &Args) -> anyhow::Result<ExitCode> {
    let cells = cells(&args.cells)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 3, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut outcomes = Outcomes::open(&args.out)?;
    let wish = Wish {
        cells: &cells,
        seeds: args.seed..args.seed + args.runs,
        congestion: &args.congestion,
        truth: args.truth,
        time: args.time,
        dir: &args.out,
    };
    run::run(&wish, &mut outcomes, &stop, |i, of, row| {
        eprintln!("{i} of {of}  {}  {}", row.key, words(row));
    })?;
    let page = table(&heading(args), outcomes.rows());
    let path = args.out.join("score.md");
    std::fs::write(&path, &page).with_context(|| format!("cannot write {}", path.display()))?;
    print!("{page}");
    Ok(exit(outcomes.rows()))
}

fn cells(ids: &[String]) -> anyhow::Result<Vec<&'static CellKind>> {
    if ids.is_empty() {
        return Ok(CellKind::answerable().collect());
    }
    let named = |id: &String| {
        CellKind::named(id).with_context(|| {
            format!("`{id}` is not a cell that can be scored: linerate demo --list")
        })
    };
    ids.iter().map(named).collect()
}

fn heading(args: &Args) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let day = linerate_units::stamp(now.map_or(0, |d| d.as_secs()));
    format!(
        "# Score of the planted cells\n\n{}, linerate {}, seeds from {}, {} each under {}. No run \
         was repeated.",
        day.split('T').next().unwrap_or_default(),
        env!("CARGO_PKG_VERSION"),
        args.seed,
        args.runs,
        args.congestion.join(" and "),
    )
}

fn words(row: &Row) -> String {
    match &row.what {
        Kept::Failed(why) => format!("failed: {why}"),
        Kept::Report(report) => format!(
            "{}: {}{} in {:.0} s",
            word(report.outcome),
            report.named.as_deref().unwrap_or("nothing named"),
            report.certainty.as_ref().map_or(String::new(), |c| format!(", {c},")),
            report.seconds,
        ),
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Right => "right",
        Outcome::Acceptable => "acceptable",
        Outcome::Unknown => "unknown",
        Outcome::Wrong => "wrong",
    }
}

/// The exit code, as for a demonstration: it depends on failed runs and on verdicts that were not right.
fn exit(rows: &[Row]) -> ExitCode {
    let failed = rows.iter().any(|row| matches!(row.what, Kept::Failed(_)));
    let missed = rows.iter().any(|row| match &row.what {
        Kept::Failed(_) => false,
        Kept::Report(report) => matches!(report.outcome, Outcome::Unknown | Outcome::Wrong),
    });
    ExitCode::from(if failed { 3 } else { u8::from(missed) })
}
