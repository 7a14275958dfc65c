//! Cells: records with the expected causes, stated beforehand. Kept cells are real runs in a lab. Replayed cells show
//! hardware that no lab has, each with a near miss, and are scored separately. Without any one cause, some cell would
//! be judged wrongly.
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

/// Causes that only connections of other programs have, so no record of a run shows them. `tests/labs/flows.rs` plants
/// them.
const OF_FLOWS: [&str; 2] = ["latency-nagle", "exchange-deadlock"];

/// All cells.
static CELLS: LazyLock<Vec<Cell>> = LazyLock::new(|| {
    let mut all = kept::cells();
    all.extend(operations::cells());
    all.extend(replayed::cells());
    all
});

/// A record, encoded as in its file, and the causes that must be named for it.
struct Cell {
    name: String,
    bytes: Vec<u8>,
    model: Model,
    /// The direction that is judged: forward, unless only the other one was measured.
    direction: Direction,
    /// Expected limits of the direction, the binding one first, of rate or of time as the first is; other limits may follow
    /// them.
    first: &'static [&'static str],
    /// All expected disturbances of the direction.
    disturbed: &'static [&'static str],
    /// A cause that must not be among the limits; empty if no cause is similar.
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
        let model = derive(&read);
        let measured = |one| model.direction(one).is_some();
        let direction =
            if measured(Direction::Forward) { Direction::Forward } else { Direction::Reverse };
        Self { name, bytes, model, direction, first, disturbed, not }
    }

    /// The limits and the disturbances that are found if only these causes are judged.
    fn named(&self, causes: &[&'static Cause]) -> [Vec<&'static str>; 2] {
        let Verdict { limits, disturbances, .. } = judge_by(&self.model, causes);
        let first = self.first.first().and_then(|id| cause(id));
        let slowness = first.map_or(Slowness::Rate, |cause| cause.slows);
        let forward = limits
            .iter()
            .filter(|l| l.metric.slowness() == slowness && l.direction == self.direction);
        let disturbs = disturbances.iter().filter(|d| d.direction == self.direction);
        [forward.map(|l| l.cause).collect(), disturbs.map(|d| d.cause).collect()]
    }

    fn is_right(&self, causes: &[&'static Cause]) -> bool {
        let [named, disturbed] = self.named(causes);
        let limits = named.starts_with(self.first) && !named.contains(&self.not);
        limits && disturbed == self.disturbed
    }

    /// The position of a cause in the expected answers: limits come before disturbances.
    fn place_of(&self, cause: &str) -> Option<usize> {
        let mut reported = self.first.iter().chain(self.disturbed);
        reported.position(|id| *id == cause)
    }
}
