//! The disk has all that the program gives it in flight, and does no more in a second.

use super::{HOLDS, NO_GAIN, direct, names, requests_asked};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;

/// Share of the time in which the disk must have a request in flight.
const BUSY: f64 = 0.9;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-capped",
    name: "the disk itself: it does no more, however much is in flight",
    needs: &[Feature::Disk],
    stage: Stage::Device,
    decided_by: &[Factor::MoreDepth],
    page: include_str!("../pages/disk-capped.md"),
    check,
    is_last: |model, direction| is_full(model, direction),
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let (load, disk) = direct(model, direction)?;
    let asked = requests_asked(load, disk);
    let words = format!(
        "the disk had {:.1} of {asked:.0} requests in flight, and was at work {} of the time",
        disk.in_flight,
        percent(disk.busy)
    );
    if !is_full(model, direction) {
        return Err(clear(words));
    }
    Ok(Finding::at(Place::Far, disk.busy, vec![words]))
}

/// Whether the disk always has work, and takes all that it is given.
fn is_full(model: &Model, direction: Direction) -> bool {
    direct(model, direction).is_ok_and(|(load, disk)| {
        disk.busy >= BUSY && disk.in_flight >= requests_asked(load, disk) * HOLDS
    })
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreDepth => Some(NO_GAIN),
        // Several threads in order are no order to the disk, and may have queues of their own.
        Factor::MoreStreams | Factor::PastCache => None,
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|dir| &dir.base);
    let rate = load.and_then(|load| load.operations.as_ref()).map(|rate| rate.mean);
    let rate =
        rate.map_or_else(String::new, |rate| format!(": here {rate:.0} operations a second"));
    vec![Advice::new(format!(
        "compare with what {} should do{rate}. A volume of a cloud or of an array has limits of operations and of bytes \
         in a second; a disk with moving heads does 100 to 200 random operations",
        names(model)
    ))]
}
