//! The stages of the path in the JSON document of a run.

use linerate_judge::model::{Ceiling, Model};
use linerate_plan::path::{Place, Stage};
use schemars::JsonSchema;
use serde::Serialize;

use super::exact;

/// A stage of the path, and its ceilings.
#[derive(Serialize, JsonSchema)]
pub(super) struct PathStageOut {
    stage: Stage,
    side: Place,
    /// Hardware that the stage is made of. Empty if unknown.
    parts: Vec<String>,
    /// Ceiling from near to far. Null if unknown.
    forward: Option<CeilingOut>,
    /// Ceiling from far to near. Null if unknown.
    reverse: Option<CeilingOut>,
}

/// The highest goodput that a stage allows in one direction.
#[derive(Serialize, JsonSchema)]
struct CeilingOut {
    /// Lower and upper end of the ceiling. They are equal if every input was read.
    goodput_bps: [u64; 2],
    /// Name of the hardware that gives the ceiling.
    name: String,
    /// The formula of the ceiling, with its numbers.
    formula: String,
}

/// The stages of the path with their ceilings, in the order of the forward direction.
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
