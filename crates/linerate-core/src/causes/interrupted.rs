//! The path or an end was away for part of the measurement.

use super::{Answer, Cause, Finding, base};
use crate::model::Model;
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `interrupted`.
pub(super) struct Interrupted;

impl Cause for Interrupted {
    fn id(&self) -> &'static str {
        "interrupted"
    }
    fn stage(&self) -> Stage {
        Stage::Net
    }
    fn invalidates(&self) -> bool {
        true
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        if load.interruptions.is_empty() {
            return Answer::Clear(
                "payload arrived in every sample, no link changed and no end stood still"
                    .to_owned(),
            );
        }
        Answer::Finding(Finding {
            side: Place::Path,
            share: 1.0,
            enough: true,
            reached: false,
            evidence: load.interruptions.clone(),
        })
    }
    fn predict(&self, _: &Model, _: &TrialPlan) -> Option<Range> {
        None
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[]
    }
    fn advice(&self, _: &Model, _: Direction) -> Vec<Advice> {
        vec![Advice {
            action:
                "look for link changes in `dmesg` and for an end that was paused, then run again"
                    .to_owned(),
            undo: String::new(),
            gain: None,
        }]
    }
    fn page(&self) -> &'static str {
        include_str!("pages/interrupted.md")
    }
}
