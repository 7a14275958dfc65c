//! The path or an end did not work for part of the measurement.

use crate::causes::prelude::*;
use crate::causes::{Cost, disturbed};

pub(crate) static CAUSE: Cause = Cause {
    id: "interrupted",
    name: "the measurement was interrupted",
    stage: Stage::Net,
    only_disturbs: true,
    may_be_unread: true,
    decided_by: &[],
    page: include_str!("../pages/interrupted.md"),
    check,
    costs,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let clear = "payload arrived in every sample, no link changed and no end stood still";
    disturbed(&CAUSE, model, direction, clear)
}

fn costs(model: &Model, direction: Direction) -> Vec<Cost> {
    let load = model.direction(direction).map(|d| &d.base);
    let Some(load) = load.filter(|load| !load.interruptions.is_empty()) else {
        return Vec::new();
    };
    let silent = load.ticks.iter().filter(|rate| **rate <= 0.0).count();
    vec![Cost {
        side: Place::Path,
        // Interruptions in other steps cost nothing in the step that is judged.
        share: (silent > 0).then(|| silent as f64 / load.ticks.len() as f64),
        evidence: load.interruptions.clone(),
        advice: advice(model, direction),
    }]
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![Advice::new(
        "look for link changes in `dmesg` and for an end that was paused, then run again",
    )]
}
