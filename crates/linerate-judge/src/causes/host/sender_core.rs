//! The sending thread has no spare CPU time.

use crate::causes::host::busy_thread::{self, Role, made_cheaper};
use crate::causes::host::core_bound;
use crate::causes::prelude::*;
use crate::causes::rerun;
use crate::model::TrialModel;
use linerate_units::stats::{EQUAL, Interval};

pub(crate) static CAUSE: Cause = Cause {
    id: "sender-core",
    name: "the sending thread fills one CPU",
    stage: Stage::Cpu,
    decided_by: &[Factor::SenderWork],
    page: include_str!("../pages/sender-core.md"),
    check,
    is_last: |model, direction| core_bound::is_last(model, direction, Role::Sender),
    predict: |model, trial| busy_thread::predict(model, trial, Role::Sender),
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    match core_bound::check(model, direction, Role::Sender) {
        Ok(mut found) => {
            found.evidence.extend(price(model, direction));
            found.evidence.extend(moved(model, direction));
            Ok(found)
        }
        other => other,
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let mut all = core_bound::advice(model, direction);
    let gained = uncopied(model, direction).filter(|(_, effect)| effect.low > EQUAL.high);
    all.extend(gained.map(|(_, effect)| {
        Advice::new("let the program send without copies (MSG_ZEROCOPY)")
            .on(Side::Near, rerun(model, " --copy zerocopy"))
            .gain(Some(effect.mid))
    }));
    all
}

/// The trial of sending without a copy, and its effect on goodput.
fn uncopied(model: &Model, direction: Direction) -> Option<(&TrialModel, Interval)> {
    let trial = model.tried(direction, Factor::ZeroCopy)?;
    Some((trial, trial.effect?))
}

/// The CPU time that the copy costs for each byte, in words; `None` if it was not measured.
fn price(model: &Model, direction: Direction) -> Option<String> {
    let (trial, _) = uncopied(model, direction)?;
    let [with, without] = trial.cost;
    Some(in_place_of("without the copy", without?, with?))
}

/// Why a trial of added work proves nothing about the thread; `None` if it does.
fn moved(model: &Model, direction: Direction) -> Option<String> {
    let trial = model.tried(direction, Factor::SenderWork)?;
    let [without, with] = made_cheaper(model, trial)?;
    let times = in_place_of("with more work", with, without);
    Some(format!("{times}: the rest became cheaper by it"))
}

/// A sentence with the CPU time for each byte with a change and without; the arguments are in seconds.
fn in_place_of(change: &str, with: f64, without: f64) -> String {
    let [with, without] = [with, without].map(|secs| secs * 1e9);
    format!("{change} each byte took {with:.3} ns of CPU time in place of {without:.3}")
}
