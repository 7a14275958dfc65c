//! Each write waits until the disk has stored its data for good.

use super::facts;
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use linerate_plan::transport::file::SYNC;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-sync",
    name: "each write waits until its data are stored for good",
    needs: &[Feature::Disk],
    stage: Stage::Device,
    decided_by: &[Factor::Unsynced],
    page: include_str!("../pages/disk-sync.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

/// Mount options by which a file system waits for the disk in each write.
const SYNCED: [&str; 2] = ["sync", "dirsync"];

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if direction == Direction::Reverse {
        return Err(clear("nothing was written"));
    }
    let mounted = facts(model).and_then(|facts| facts.filesystem.as_ref());
    let mounted =
        mounted.and_then(|held| held.options.iter().find(|o| SYNCED.contains(&o.as_str())));
    let words = match mounted {
        _ if load.knobs.options.is_on(SYNC.key) => "--sync was given".to_owned(),
        Some(option) => format!("the file system is mounted with {option}"),
        None => return Err(clear("no write waited for more than its data")),
    };
    // Only a trial shows what the wait costs: a disk with a protected cache has the data at once.
    Ok(Finding::at(Place::Far, 0.5, vec![words]))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::Unsynced => Some(Range { low: GAIN, high: f64::MAX }),
        // More writes may be stored together.
        Factor::MoreDepth | Factor::MoreStreams => None,
        _ => bystander(model, trial),
    }
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![Advice::new(
        "use a disk whose cache survives a power failure, or a fast log device for synchronous writes (ZFS: a SLOG); \
         leave out the sync only where the last seconds may be lost",
    )]
}
