//! The kernel reads ahead too little of a file, so that the disk waits for the program.

use super::{FEW, counted, facts, is_buffered, passed};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use linerate_plan::transport::file::is_random;
use linerate_units::Bytes;

/// Bytes in flight at the disk, over the kernel's window, up to which the window is what limits them: it asks for the
/// next window while it reads one.
const WINDOWS: f64 = 2.2;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-read-ahead",
    name: "the kernel reads ahead too little",
    needs: &[Feature::Disk],
    stage: Stage::Memory,
    decided_by: &[Factor::LargerReadAhead],
    page: include_str!("../pages/disk-read-ahead.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if direction == Direction::Forward || !is_buffered(load) || is_random(&load.knobs.options) {
        return Err(clear("nothing was read in order through the page cache"));
    }
    let (load, disk) = counted(model, direction)?;
    if passed(load, disk) < FEW {
        return Err(clear("the bytes were in memory"));
    }
    let window = facts(model).and_then(|facts| facts.disks.first()?.queue.read_ahead);
    let Some(window) = window else {
        return Err(unknown("how far the kernel reads ahead", "read_ahead_kb was not read"));
    };
    let in_flight = disk.in_flight * disk.own.size().unwrap_or(0.0);
    let words = format!(
        "the disk had {} in flight, and the kernel reads {window} ahead",
        Bytes(in_flight as u64)
    );
    if in_flight > window.0 as f64 * WINDOWS {
        return Err(clear(words));
    }
    Ok(Finding::at(Place::Near, 0.5, vec![words]))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // The kernel doubles the window for a descriptor that asks for it.
        Factor::LargerReadAhead => Some(Range { low: GAIN, high: 2.5 }),
        Factor::MoreStreams => None,
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Some(disk) = facts(model).and_then(|facts| facts.disks.first()) else {
        return Vec::new();
    };
    let tried = model.tried(direction, Factor::LargerReadAhead).and_then(|trial| trial.effect);
    let now = disk.queue.read_ahead.map_or(128, |window| window.0 / 1024);
    let set =
        |kib: u64| format!("echo {kib} | sudo tee /sys/class/bdi/{}/read_ahead_kb", disk.number);
    let advice = Advice::new("let the kernel read further ahead of sequential readers")
        .set(Side::Near, set(now.max(128) * 8))
        .undo_on(Side::Near, set(now));
    vec![advice.gain(tried.map(|effect| effect.mid))]
}
