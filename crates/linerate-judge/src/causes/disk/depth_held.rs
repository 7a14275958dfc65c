//! A layer holds fewer requests at once than the program has in flight: the rest waits above the disk.

use super::{BETWEEN, HOLDS, NO_GAIN, between, direct, facts, names, not_async, requests_asked};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::model::room;

/// Share of a known limit of requests, from which on the disk has as many in flight as the limit allows.
const FULL: f64 = 0.85;

/// Fewest requests in flight that tell whether a queue holds them back.
const FEWEST: f64 = 4.0;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-depth-held",
    name: "the queue of the disk takes fewer requests than the program has in flight",
    needs: &[Feature::Disk],
    stage: Stage::Device,
    decided_by: &[Factor::MoreDepth],
    explains: &["disk-capped"],
    page: include_str!("../pages/disk-depth-held.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let (load, disk) = direct(model, direction)?;
    if not_async::takes_threads(load, direction) {
        return Err(clear("the file system makes each operation wait"));
    }
    if between(model) {
        return Err(clear(BETWEEN));
    }
    let asked = requests_asked(load, disk);
    if asked < FEWEST {
        return Err(clear(format!("only {asked:.0} requests were in flight")));
    }
    let words =
        format!("of {asked:.0} requests in flight the disk had {:.1}, on average", disk.in_flight);
    if disk.in_flight >= asked * HOLDS {
        return Err(clear(words));
    }
    let room = facts(model).and_then(|facts| room(facts, load.streams));
    let Some(limit) = room else {
        // A thread without time for more, or a layer that has the requests without a queue, looks the same.
        return Ok(Finding::at(Place::Far, 0.5, vec![words]));
    };
    if limit as f64 >= asked {
        return Err(clear(format!("{words}, and its queue takes {limit}")));
    }
    let share = disk.in_flight / limit as f64;
    let evidence = vec![words, format!("the queue of {} takes {limit} at once", names(model))];
    if share < HOLDS {
        return Err(clear(evidence.join(", and ")));
    }
    Ok(Finding::at(Place::Far, share.min(1.0), evidence).enough(share >= FULL))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreDepth => Some(NO_GAIN),
        // Another thread may have a queue of its own.
        Factor::MoreStreams => None,
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    let disk = names(model);
    vec![Advice::new(format!(
        "raise the limit of the queue of {disk} (queue/nr_requests; device/queue_depth of a SCSI disk; the queue size of \
         its driver or its target), or use more disks; more in flight from the program gain nothing"
    ))]
}
