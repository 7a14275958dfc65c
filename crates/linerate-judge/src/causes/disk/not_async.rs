//! The file system makes each operation wait in the call, so that only threads bring several in flight.

use super::{BETWEEN, HOLDS, asked, between, counted};
use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;

/// How operations reach the kernel where the file refuses not to wait.
const WORKERS: &str = "io_uring, by kernel workers";
const THREADS: &str = "threads";

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-not-async",
    name: "the file system handles one operation of a thread at a time",
    needs: &[Feature::Disk],
    stage: Stage::App,
    decided_by: &[Factor::MoreStreams],
    may_be_unread: true,
    page: include_str!("../pages/disk-not-async.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

/// How the operations of a load reach the kernel.
fn way_of(load: &Load, direction: Direction) -> &str {
    let end = match direction {
        Direction::Forward => &load.made.sender,
        Direction::Reverse => &load.made.receiver,
    };
    &end.way
}

/// Whether each operation of a load takes a thread.
pub(super) fn takes_threads(load: &Load, direction: Direction) -> bool {
    [WORKERS, THREADS].contains(&way_of(load, direction))
}

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if load.knobs.depth <= 1 {
        return Err(clear("one operation was in flight"));
    }
    let way = match way_of(load, direction) {
        "" => return Err(unknown("how operations reach the kernel", "the load does not say it")),
        way if takes_threads(load, direction) => way,
        way => return Err(clear(format!("operations went by {way}"))),
    };
    if between(model) {
        return Err(clear(BETWEEN));
    }
    let words = format!(
        "the file refuses operations that do not wait (RWF_NOWAIT), so they went by {way}: each costs a thread"
    );
    let disk = match counted(model, direction) {
        Ok((_, disk)) => disk,
        // Of a file in memory each thread moves its bytes itself.
        Err(NoFinding::Clear(why)) => return Err(clear(why)),
        Err(NoFinding::Unknown(_)) => return Ok(Finding::at(Place::Near, 0.5, vec![words])),
    };
    let held = disk.in_flight / f64::from(asked(load));
    let at_disk =
        format!("of {} operations in flight the disk had {:.1}", asked(load), disk.in_flight);
    if held >= HOLDS {
        return Err(clear(at_disk));
    }
    Ok(Finding::at(Place::Near, 1.0 - held, vec![words, at_disk]).enough(true))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreStreams => Some(per_stream(trial)),
        Factor::MoreDepth => None,
        _ => bystander(model, trial),
    }
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![Advice::new(
        "use more threads in place of a larger depth, or a file system that takes operations without waiting (ext4 or \
         xfs on the disk itself, in place of an overlay or a network file system)",
    )]
}
