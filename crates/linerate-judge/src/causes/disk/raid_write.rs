//! Software RAID makes several requests to its members of each write.

use super::{counted, facts, requests_each};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use linerate_facts::advice::Step;
use linerate_facts::block::{BlockDevice, Layer};

/// Bytes that the members read for each byte that is written, from which on parity is read first.
const READ_FIRST: f64 = 0.25;
/// Requests for each write, over what the copies need, from which on something else is written as well.
const MORE: f64 = 1.2;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-raid-write",
    name: "software RAID writes more than the data",
    needs: &[Feature::Disk],
    stage: Stage::Device,
    decided_by: &[],
    page: include_str!("../pages/disk-raid-write.md"),
    check,
    predict: |model, trial| match trial.factor()? {
        Factor::MoreDepth | Factor::MoreStreams | Factor::SmallerOperations => None,
        _ => bystander(model, trial),
    },
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    base(model, direction)?;
    if direction == Direction::Reverse {
        return Err(clear("nothing was written"));
    }
    let Some(raid) = raid(model) else {
        return Err(clear("no software RAID with copies or parity is below the file"));
    };
    let (load, disk) = counted(model, direction)?;
    let payload = (load.goodput.mean / 8.0).max(1.0);
    let read = disk.other.bytes / payload;
    let each = requests_each(load, disk).unwrap_or(0.0);
    let words = format!(
        "{} ({}) made {each:.1} requests to its members of each write, and read {} of what was written",
        raid.name,
        raid.raid,
        percent(read)
    );
    let copies = copies(raid);
    let parity = read >= READ_FIRST;
    let marks = raid.bitmap.starts_with('+') && each >= copies * MORE;
    if !parity && !marks {
        return Err(clear(words));
    }
    let mut evidence = vec![words];
    evidence.extend(marks.then(|| "its bitmap is on the members themselves".to_owned()));
    let share = 1.0 - copies / each.max(copies);
    Ok(Finding::at(Place::Far, share.max(read.min(1.0) / 2.0), evidence).enough(true))
}

/// The software RAID below the file that has copies or parity.
fn raid(model: &Model) -> Option<&BlockDevice> {
    let mut disks = facts(model)?.disks.iter();
    disks.find(|disk| {
        disk.layer == Layer::Raid && !["", "raid0", "linear"].contains(&disk.raid.as_str())
    })
}

/// Requests that a write needs at least.
fn copies(raid: &BlockDevice) -> f64 {
    match raid.raid.as_str() {
        "raid1" => raid.below.len().max(1) as f64,
        _ => 2.0,
    }
}

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    let Some(raid) = raid(model) else { return Vec::new() };
    let mut all = Vec::new();
    if raid.bitmap.starts_with('+') {
        let [command, undo] = ["none", "internal"]
            .map(|to| format!("sudo mdadm --grow --bitmap={to} /dev/{}", raid.name));
        all.push(
            Advice::new(
                "take the bitmap off, or give it larger parts (--bitmap-chunk): without it a crash needs a check of the \
                 whole array",
            )
            .step(Step::act(Side::Near, command))
            .undo(Step::act(Side::Near, undo)),
        );
    }
    if raid.raid != "raid1" && raid.raid != "raid10" {
        all.push(Advice::new(
            "write whole stripes, or keep small random writes on RAID 1 or 10: with parity each costs two reads and two \
             writes",
        ));
    }
    all
}
