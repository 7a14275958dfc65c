//! The kernel cuts each operation into several requests, and requests are what the disk has no room for.

use super::{direct, facts, names, requests_asked, requests_each};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::model::{largest, room};
use linerate_units::Bytes;

/// Requests for each operation, from which on operations are split.
const SPLIT: f64 = 1.5;
/// Share of a known limit of requests, from which on parts of an operation wait for each other.
const FULL: f64 = 0.85;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-split",
    name: "operations are cut into many requests",
    needs: &[Feature::Disk],
    stage: Stage::Device,
    decided_by: &[Factor::SmallerOperations],
    explains: &["disk-depth-held"],
    page: include_str!("../pages/disk-split.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let (load, disk) = direct(model, direction)?;
    let Some(each) = requests_each(load, disk) else {
        return Err(unknown("requests for each operation", "operations were not counted"));
    };
    let size = Bytes(disk.own.size().unwrap_or(0.0) as u64);
    let words = format!("each operation became {each:.1} requests of {size}");
    if each < SPLIT {
        return Err(clear(words));
    }
    let facts = facts(model);
    if super::is_raid(model) {
        return Err(clear(format!("{words}: they go to the members of a RAID")));
    }
    let Some(largest) = facts.and_then(largest) else {
        return Err(unknown("the largest request of the disk", "its limits were not read"));
    };
    let operation = load.made.receiver.read_size.max(load.made.sender.write_size);
    if operation <= largest {
        return Err(clear(format!("{words}, though the disk takes {} at once", Bytes(largest))));
    }
    let room = facts.and_then(|facts| room(facts, load.streams));
    let is_full = room.is_some_and(|room| {
        let room = room as f64;
        requests_asked(load, disk) > room && disk.in_flight >= room * FULL
    });
    if room.is_some() && !is_full {
        return Err(clear(format!("{words}, and the queue has room for them")));
    }
    let evidence = vec![words, format!("the largest request is {}", Bytes(largest))];
    Ok(Finding::at(Place::Far, 1.0 - 1.0 / each, evidence).enough(is_full))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // Half as large a request carries half as much, if requests are what there is no room for.
        Factor::SmallerOperations => Some(Range { low: 0.3, high: 0.75 }),
        Factor::MoreDepth | Factor::MoreStreams => None,
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    let disks = facts(model).map(|facts| facts.disks.as_slice()).unwrap_or_default();
    let able = disks.iter().find(|disk| disk.queue.largest < disk.queue.largest_hardware);
    let Some(disk) = able else {
        return vec![Advice::new(format!(
            "{} takes no larger request: a driver, a controller or a target with a larger limit",
            names(model)
        ))];
    };
    let [now, most] = [disk.queue.largest, disk.queue.largest_hardware];
    let [now, most] = [now, most].map(|size| size.map_or(0, |size| size.0 / 1024));
    let set =
        |kib: u64| format!("echo {kib} | sudo tee /sys/block/{}/queue/max_sectors_kb", disk.name);
    let advice =
        Advice::new(format!("let the kernel send requests of {most} KiB to {}", disk.name));
    vec![advice.set(Side::Near, set(most)).undo_on(Side::Near, set(now))]
}
