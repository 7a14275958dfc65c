//! The thread that receives has no CPU time left.

use super::core_bound::{self, Role};
use super::{Answer, Cause, CauseInfo, datagrams};
use crate::model::Model;
use linerate_facts::advice::Advice;
use linerate_plan::factor::Factor;
use linerate_plan::path::{Direction, Stage};
use linerate_plan::transport::{Scope, Transport};
use linerate_record::TrialPlan;
use linerate_units::stats::Range;

/// Cause `receiver-core`.
pub(super) struct ReceiverCore;

static INFO: CauseInfo = CauseInfo {
    id: "receiver-core",
    name: "the receiving thread fills one CPU",
    scope: Scope::Any,
    stage: Stage::Cpu,
    // `Discard` cannot decide: any gain is inside a range without an upper end, whatever caused it.
    decided_by: &[Factor::ReceiverWork],
    page: include_str!("pages/receiver-core.md"),
    ..CauseInfo::BASE
};

impl Cause for ReceiverCore {
    fn info(&self) -> &'static CauseInfo {
        &INFO
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        core_bound::check(model, direction, Role::Receiver)
    }
    fn is_last(&self, model: &Model, direction: Direction) -> bool {
        core_bound::is_last(model, direction, Role::Receiver)
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        core_bound::predict(model, trial, Role::Receiver)
    }
    fn predict_loss(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        let load = &model.direction(trial.direction)?.base;
        let larger = load.transport == Transport::Udp && trial.factor()? == Factor::LargerWindow;
        larger.then_some(datagrams::AS_MANY)
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        core_bound::advice(model, direction)
    }
}
