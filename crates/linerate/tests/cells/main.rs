//! Cells: records with the expected causes, stated beforehand. Kept ones are real runs in a lab. Replayed ones
//! show hardware that no lab here has, each with a near miss, and are scored separately. Together they need
//! every cause that there is.
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

mod commands;
mod documents;
mod growing;
mod hardware;
mod kept;
#[path = "../../../linerate-judge/tests/machines/mod.rs"]
mod machines;
mod mutation;
mod operations;
mod pasted;
mod replayed;
#[path = "../../../linerate-show/src/tests/schema/fits.rs"]
mod schema;
mod simulated;
#[path = "../../../linerate-judge/tests/slot/mod.rs"]
mod slot;
mod text;

use std::sync::LazyLock;

use linerate_judge::causes::{Cause, cause};
use linerate_judge::model::{Model, derive};
use linerate_judge::verdict::{Verdict, judge_by};
use linerate_plan::path::{Direction, Slowness};
use linerate_record::{Record, frame};

/// Causes of the connections of other programs: no record of a run has them. `tests/labs/flows.rs` plants them.
const OF_FLOWS: [&str; 2] = ["latency-nagle", "exchange-deadlock"];

/// All of them.
static CELLS: LazyLock<Vec<Cell>> = LazyLock::new(|| {
    let mut all = kept::cells();
    all.extend(operations::cells());
    all.extend(replayed::cells());
    all
});

/// A record as it lies in a file, and what is to be named on it.
struct Cell {
    name: String,
    bytes: Vec<u8>,
    model: Model,
    /// Limits forward of the metric that the first of them is of, binding first; others may follow.
    first: &'static [&'static str],
    /// The expected disturbances of forward, and no others.
    disturbed: &'static [&'static str],
    /// A cause that must not be among the limits; empty where none is close.
    not: &'static str,
}

impl Cell {
    fn new(
        name: String,
        record: &Record,
        [first, disturbed]: [&'static [&'static str]; 2],
        not: &'static str,
    ) -> Self {
        let bytes = frame::encode_all(record).unwrap();
        let (read, damage) = frame::decode(&bytes).unwrap();
        assert_eq!(damage, None, "{name}");
        Self { name, bytes, model: derive(&read), first, disturbed, not }
    }

    /// The limits that these causes alone name, and the disturbances.
    fn named(&self, causes: &[&'static Cause]) -> [Vec<&'static str>; 2] {
        let Verdict { limits, disturbances, .. } = judge_by(&self.model, causes);
        let first = self.first.first().and_then(|id| cause(id));
        let slowness = first.map_or(Slowness::Rate, |cause| cause.slows);
        let forward = limits
            .iter()
            .filter(|l| l.metric.slowness() == slowness && l.direction == Direction::Forward);
        let disturbs = disturbances.iter().filter(|d| d.direction == Direction::Forward);
        [forward.map(|l| l.cause).collect(), disturbs.map(|d| d.cause).collect()]
    }

    fn is_right(&self, causes: &[&'static Cause]) -> bool {
        let [named, disturbed] = self.named(causes);
        let limits = named.starts_with(self.first) && !named.contains(&self.not);
        limits && disturbed == self.disturbed
    }

    /// The position of a cause in the expected answers: limits first.
    fn place_of(&self, cause: &str) -> Option<usize> {
        let mut told = self.first.iter().chain(self.disturbed);
        told.position(|id| *id == cause)
    }
}
