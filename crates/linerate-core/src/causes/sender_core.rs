//! The thread that sends has no CPU time left.

use super::core_bound::{self, Role};
use super::{Answer, Cause};
use crate::model::Model;
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Stage};

/// Cause `sender-core`.
pub(super) struct SenderCore;

impl Cause for SenderCore {
    fn id(&self) -> &'static str {
        "sender-core"
    }
    fn stage(&self) -> Stage {
        Stage::Cpu
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        core_bound::check(model, direction, Role::Sender)
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        core_bound::predict(model, trial, Role::Sender)
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[Factor::SenderWork]
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        core_bound::advice(model, direction)
    }
    fn page(&self) -> &'static str {
        include_str!("pages/sender-core.md")
    }
}
