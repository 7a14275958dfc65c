//! The stages of the path.

use linerate_core::model::{Ceiling, Model};
use serde::Serialize;

use super::integer;

#[derive(Serialize)]
pub(super) struct StageOut {
    stage: &'static str,
    side: &'static str,
    parts: Vec<String>,
    forward: Option<CeilingOut>,
    reverse: Option<CeilingOut>,
}

#[derive(Serialize)]
struct CeilingOut {
    goodput_bps: [u64; 2],
    name: String,
    formula: String,
}

/// In the order of the forward direction.
pub(super) fn stages(model: &Model) -> Vec<StageOut> {
    let stages = linerate_core::model::stages(model).into_iter();
    let out = stages.map(|stage| {
        let [forward, reverse] = stage.ceilings.map(|c| c.map(ceiling));
        StageOut {
            stage: stage.stage.name(),
            side: stage.side.name(),
            parts: stage.parts,
            forward,
            reverse,
        }
    });
    out.collect()
}

fn ceiling(ceiling: Ceiling) -> CeilingOut {
    CeilingOut {
        goodput_bps: [ceiling.least, ceiling.rate].map(|rate| integer(rate.0 as f64)),
        name: ceiling.name,
        formula: ceiling.formula,
    }
}
