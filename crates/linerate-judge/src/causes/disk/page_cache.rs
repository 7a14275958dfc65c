//! The bytes were in the memory of the host, and the disk did not move them.

use crate::causes::predict::bystander;
use crate::causes::prelude::*;

/// Share of the payload that passes the disk, below which the page cache carries the load.
const FEW: f64 = 0.5;
/// Share of the payload that passes the disk, below which the page cache alone explains it.
const HARDLY_ANY: f64 = 0.05;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-page-cache",
    name: "the bytes were in memory, and the disk did not move them",
    needs: &[Feature::Disk],
    stage: Stage::Memory,
    decided_by: &[Factor::PastCache],
    page: include_str!("../pages/disk-page-cache.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let passed = load.disk_bytes.ok_or_else(|| {
        unknown(
            "how many bytes the disk moved",
            "no disk below the file is known, or its counters were not read",
        )
    })?;
    let goodput = load.goodput.mean / 8.0;
    let share = passed / goodput.max(1.0);
    let words = format!("{} of the bytes passed the disk", percent(share.min(1.0)));
    if share >= FEW {
        return Err(clear(words));
    }
    Ok(Finding::at(Place::Near, (1.0 - share).clamp(0.0, 1.0), vec![words])
        .enough(share < HARDLY_ANY))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
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
