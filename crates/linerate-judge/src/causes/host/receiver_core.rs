//! The receiving thread has no spare CPU time.

use crate::causes::host::busy_thread::{self, Role};
use crate::causes::host::core_bound;
use crate::causes::prelude::*;
use crate::causes::udp::datagrams;

pub(crate) static CAUSE: Cause = Cause {
    id: "receiver-core",
    name: "the receiving thread fills one CPU",
    stage: Stage::Cpu,
    // A trial of `Discard` cannot decide: its range has no upper end, so any gain is inside, whatever caused it.
    decided_by: &[Factor::ReceiverWork],
    page: include_str!("../pages/receiver-core.md"),
    check,
    is_last: |model, direction| core_bound::is_last(model, direction, Role::Receiver),
    predict: |model, trial| busy_thread::predict(model, trial, Role::Receiver),
    predict_loss,
    advice: |model, direction| core_bound::advice(model, direction),
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    core_bound::check(model, direction, Role::Receiver)
}

fn predict_loss(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    let larger = load.has(Feature::Datagrams) && trial.factor()? == Factor::LargerWindow;
    larger.then_some(datagrams::AS_MANY)
}
