//! The bytes were in the memory of the host, and the disk did not read them.

use super::{FEW, HARDLY_ANY, counted, passed};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-page-cache",
    name: "the bytes were in memory, and the disk did not read them",
    needs: &[Feature::Disk],
    stage: Stage::Memory,
    decided_by: &[Factor::PastCache],
    page: include_str!("../pages/disk-page-cache.md"),
    check: |model, direction| {
        if direction == Direction::Forward {
            return Err(clear("nothing was read"));
        }
        cached(model, direction)
    },
    predict,
    advice,
    ..Cause::BASE
};

/// Judges whether the page cache carries a load.
pub(super) fn cached(model: &Model, direction: Direction) -> Answer {
    let (load, disk) = counted(model, direction)?;
    let share = passed(load, disk);
    let words = format!("{} of the bytes passed the disk", percent(share.min(1.0)));
    if share >= FEW {
        return Err(clear(words));
    }
    Ok(Finding::at(Place::Near, (1.0 - share).clamp(0.0, 1.0), vec![words])
        .enough(share < HARDLY_ANY))
}

pub(super) fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // The disk may be as fast as the copy from memory, and never much faster.
        Factor::PastCache => Some(Range { low: 0.0, high: 0.9 }),
        _ => bystander(model, trial),
    }
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![Advice::new(
        "to measure the disk, go past the page cache: leave out --buffered, or use more data than memory",
    )]
}
