//! The stages of the path.

use linerate_judge::model::{Ceiling, Model};
use linerate_plan::path::{Place, Stage};
use schemars::JsonSchema;
use serde::Serialize;

use super::exact;

/// A stage that bytes cross.
#[derive(Serialize, JsonSchema)]
pub(super) struct PathStageOut {
    stage: Stage,
    side: Place,
    /// What it is made of. Empty if unknown.
    parts: Vec<String>,
    /// Null if unknown.
    forward: Option<CeilingOut>,
    /// Null if unknown.
    reverse: Option<CeilingOut>,
}

/// The most goodput that a stage allows in one direction.
#[derive(Serialize, JsonSchema)]
struct CeilingOut {
    /// Lower and upper bound. They are equal if every input was read.
    goodput_bps: [u64; 2],
    /// What gives the ceiling.
    name: String,
    /// The formula, with its numbers.
    formula: String,
}

/// The stages of the path, in the order of the forward direction.
pub(super) fn stages(model: &Model) -> Vec<PathStageOut> {
    let stages = linerate_judge::model::stages(model).into_iter();
    let out = stages.map(|stage| {
        let [forward, reverse] = stage.ceilings.map(|c| c.map(ceiling));
        PathStageOut { stage: stage.stage, side: stage.side, parts: stage.parts, forward, reverse }
    });
    out.collect()
}

fn ceiling(ceiling: Ceiling) -> CeilingOut {
    CeilingOut {
        goodput_bps: [ceiling.least, ceiling.rate].map(|rate| exact(rate.0)),
        name: ceiling.name,
        formula: ceiling.formula,
    }
}
