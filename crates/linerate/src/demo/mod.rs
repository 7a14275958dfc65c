//! The demonstration: plants a fault, makes a real run that does not know of it, and compares the verdict with
//! the truth, which is measured by other means.

mod report;
mod score;
mod stage;
mod truth;

pub use report::Report;
pub use score::Outcome;
pub(crate) use score::{Named, Scored, score};
pub(crate) use stage::{Problem, Stage};
pub use truth::Loader;
pub(crate) use truth::Truth;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use linerate_judge::model::{Model, derive};
use linerate_judge::verdict::{Verdict, entries, judge};
use linerate_lab::{Cell, Company};
use linerate_record::Record;
use linerate_session::store::Loaded;

/// The result of one demonstration.
pub(crate) struct Shown {
    /// The record of the run that did not know of the fault.
    pub(crate) record: Record,
    /// The verdict of the run.
    pub(crate) verdict: Verdict,
    /// The measured truth. `None` if the path has no fault, if the fault is an event (which needs no measurement), or
    /// if the user ended the demonstration.
    pub(crate) truth: Option<Truth>,
    /// Whether the verdict is right; `None` if the user ended the demonstration before that could be known.
    pub(crate) scored: Option<Scored>,
}

/// The settings of a demonstration.
pub(crate) struct Wish<'a> {
    /// The cell whose faults are planted.
    pub(crate) cell: &'a Cell,
    /// Congestion control of both hosts; `None` leaves the system's default.
    pub(crate) congestion: Option<String>,
    /// Arguments of the run besides the address.
    pub(crate) run_args: Vec<String>,
    /// The program whose load measures the truth.
    pub(crate) loader: Loader,
    /// Whether the progress of the run is printed.
    pub(crate) audible: bool,
    /// Folder of the run's record; no other program may write there.
    pub(crate) folder: &'a Path,
    /// Set when the user presses Ctrl-C.
    pub(crate) stop: &'a Arc<AtomicBool>,
}

/// Builds the lab, makes the run, passes its result to `reported`, and then measures the truth.
pub(crate) fn show(
    wish: &Wish<'_>,
    reported: impl FnOnce(&Loaded, &Model, &Verdict),
) -> Result<Shown, Problem> {
    let planted = wish.cell.planted().cloned().collect();
    let stage = Stage::on_path(wish.cell.path, planted, wish.congestion.clone())?;
    let stage = stage.heed(wish.stop);
    let company = wish.cell.company;
    let loaded = stage.run(&wish.run_args, company, wish.folder, wish.audible)?;
    let model = derive(&loaded.record);
    let verdict = judge(&model);
    reported(&loaded, &model, &verdict);
    let truth = match wish.cell.direction.filter(|_| !stage.is_stopped()) {
        Some(direction) => match truth::measure(&stage, wish.cell, direction, wish.loader) {
            Err(Problem::Interrupted) => None,
            measured => Some(measured?),
        },
        None => None,
    };
    let answers = entries(&model, &verdict);
    let scored = || score(wish.cell, truth.as_ref(), &answers, &verdict.disturbances);
    let scored = (!stage.is_stopped()).then(scored);
    Ok(Shown { record: loaded.record, verdict, truth, scored })
}

/// The planted faults and the background load of another client, in words.
pub(crate) fn planted(cell: &Cell) -> String {
    let faults = cell.planted().map(ToString::to_string);
    let company = cell.company.map(company);
    let all: Vec<String> = faults.chain(company).collect();
    if all.is_empty() {
        return "nothing: the path is as good as this machine makes it".to_owned();
    }
    all.join("; ")
}

fn company(company: Company) -> String {
    let server = if company.apart { "another server" } else { "the same server" };
    format!(
        "another client loads {}, from {} against {server}",
        company.direction.name(),
        company.host
    )
}
