//! `linerate lab score`: how often the verdict names the planted fault.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args as ClapArgs;
use linerate_lab::CellKind;

use super::exit::{Exit, Failure, tell};
use super::options::Options;
use super::quantity::Budget;
use super::{out, signal};
use crate::demo::{Loader, Outcome};
use crate::score::{self, Kept, Outcomes, Row, Wish, table};

// `linerate lab score`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Cells, as `linerate demo --list` names them [default: all]
    #[arg(value_name = "CELL")]
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
    time: Option<Budget>,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let quiet = options.global.quiet == Some(true);
    let cells = cells(&args.cells)?;
    let stop = signal::interrupted().map_err(Failure::not_measured)?;
    let mut outcomes = Outcomes::open(&args.out).map_err(Failure::not_measured)?;
    let wish = Wish {
        cells: &cells,
        seeds: args.seed..args.seed + args.runs,
        congestion: &args.congestion,
        truth: args.truth,
        time: args.time.map(|t| t.0),
        dir: &args.out,
    };
    score::run(&wish, &mut outcomes, &stop, |i, of, row| {
        if !quiet {
            tell(&format!("{i} of {of}  {}  {}\n", row.key, words(row)));
        }
    })
    .map_err(Failure::not_measured)?;
    let page = table(&heading(args), outcomes.rows());
    let path = args.out.join("score.md");
    std::fs::write(&path, &page).map_err(|e| {
        Failure::not_measured(
            anyhow::Error::new(e).context(format!("cannot write {}", path.display())),
        )
    })?;
    out::print(&page)?;
    Ok(exit(outcomes.rows()))
}

fn cells(ids: &[String]) -> Result<Vec<&'static CellKind>, Failure> {
    if ids.is_empty() {
        return Ok(CellKind::answerable().collect());
    }
    let named = |id: &String| {
        CellKind::named(id).ok_or_else(|| {
            Failure::usage(anyhow::anyhow!("`{id}` is not a cell that can be scored"))
                .hint("linerate demo --list")
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

/// The exit code, as for a demonstration: a verdict that was not right, or a run that failed, decides it.
fn exit(rows: &[Row]) -> Exit {
    rows.iter().fold(Exit::Done, |exit, row| {
        exit.or(match &row.what {
            Kept::Failed(_) => Exit::NotMeasured,
            Kept::Report(report) => match report.outcome {
                Outcome::Right | Outcome::Acceptable => Exit::Done,
                Outcome::Unknown | Outcome::Wrong => Exit::Missed,
            },
        })
    })
}
