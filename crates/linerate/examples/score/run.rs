//! Runs the score: every cell is demonstrated several times, each outcome is kept, and no run is repeated.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_lab::CellKind;
use linerate_units::Nanos;

use linerate::demo::Loader;

use crate::kept::{Kept, Outcomes, Row, ScoreError};

/// The cells and seeds to be scored.
pub(crate) struct Wish<'a> {
    /// The cells to be scored.
    pub(crate) cells: &'a [&'static CellKind],
    /// The seeds of each cell.
    pub(crate) seeds: std::ops::Range<u64>,
    /// The congestion controls under which each seed is run.
    pub(crate) congestion: &'a [String],
    /// The program whose load measures the truth.
    pub(crate) truth: Loader,
    /// Budget of each run; `None` for the default of `linerate demo`.
    pub(crate) time: Option<Nanos>,
    /// Directory of outcomes and records.
    pub(crate) dir: &'a Path,
}

/// One demonstration to be scored.
struct Case<'a> {
    kind: &'static CellKind,
    seed: u64,
    congestion: &'a str,
}

impl Case<'_> {
    fn key(&self) -> String {
        format!("{}-{}-{}", self.kind.id, self.congestion, self.seed)
    }
}

/// Runs the cases that have no outcome yet, and reports each result. Once `stop` is set, it ends early and
/// keeps the results so far.
pub(crate) fn run(
    wish: &Wish<'_>,
    outcomes: &mut Outcomes,
    stop: &AtomicBool,
    mut tell: impl FnMut(usize, usize, &Row),
) -> Result<(), ScoreError> {
    let cases = cases(wish);
    for (i, case) in cases.iter().enumerate() {
        if outcomes.holds(&case.key()) {
            continue;
        }
        let what = demonstrate(case, wish)?;
        // An interrupted run has no outcome; it is run again when the score continues.
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let row = Row { key: case.key(), what };
        tell(i + 1, cases.len(), &row);
        outcomes.keep(row)?;
    }
    Ok(())
}

/// All cases, ordered by seed and then by cell, so that an interrupted score has outcomes of every cell.
fn cases<'a>(wish: &'a Wish<'_>) -> Vec<Case<'a>> {
    let mut all = Vec::new();
    for seed in wish.seeds.clone() {
        for kind in wish.cells {
            for congestion in wish.congestion {
                all.push(Case { kind, seed, congestion });
            }
        }
    }
    all
}

/// Runs a demonstration in its own process, because a lab must be built before any thread is started.
fn demonstrate(case: &Case<'_>, wish: &Wish<'_>) -> Result<Kept, ScoreError> {
    let myself = std::env::current_exe().map_err(ScoreError::Start)?;
    let mut command = Command::new(myself);
    command
        .args(["demo", case.kind.id, "--json", "--quiet", "--both"])
        .args(["--seed", &case.seed.to_string()])
        .args(["--congestion", case.congestion])
        .args(["--truth", wish.truth.name()])
        .arg("--save")
        .arg(wish.dir.join("records").join(case.key()))
        .stdin(Stdio::null());
    if let Some(time) = wish.time {
        command.args(["--time", &format!("{}ns", time.0)]);
    }
    let output = command.output().map_err(ScoreError::Start)?;
    // A wrong verdict has its own exit code, so success is determined by the output.
    Ok(match serde_json::from_slice(&output.stdout) {
        Ok(report) => Kept::Report(report),
        Err(_) => Kept::Failed(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_had_a_seed_before_any_has_its_second() {
        let cells: Vec<_> = linerate_lab::CELLS.iter().take(3).collect();
        let congestion = ["cubic".to_owned(), "bbr".to_owned()];
        let wish = Wish {
            cells: &cells,
            seeds: 5..7,
            congestion: &congestion,
            truth: Loader::Own,
            time: None,
            dir: Path::new("x"),
        };
        let cases = cases(&wish);
        assert_eq!(cases.len(), 12);
        assert!(cases[..6].iter().all(|c| c.seed == 5));
        assert_eq!(cases[1].key(), format!("{}-bbr-5", cells[0].id));
    }
}
