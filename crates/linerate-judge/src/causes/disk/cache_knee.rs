//! Writes fall to a lower rate once the fast part of the disk is full.

use super::{NO_GAIN, is_buffered, thermal};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-cache-knee",
    name: "writes fall once the fast cache of the disk is full",
    needs: &[Feature::Disk],
    stage: Stage::Device,
    explains: &["disk-capped"],
    decided_by: &[Factor::MoreDepth],
    page: include_str!("../pages/disk-cache-knee.md"),
    check,
    predict: |model, trial| match trial.factor()? {
        Factor::MoreDepth => Some(NO_GAIN),
        Factor::MoreStreams => None,
        _ => bystander(model, trial),
    },
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if direction == Direction::Reverse || is_buffered(load) {
        return Err(clear("nothing was written past the page cache"));
    }
    if thermal::is_hot(model, direction) {
        return Err(clear("the disk was so hot that it slows down by itself"));
    }
    let fell = model.direction(direction).and_then(|dir| dir.fell.as_ref());
    let Some(fell) = fell else {
        return Err(clear("the rate did not fall"));
    };
    let words = format!(
        "the rate fell: {} until {} were written, in {}, and {} from then on",
        fell.first.with_bytes(),
        fell.bytes,
        fell.loaded,
        fell.lasting.with_bytes()
    );
    Ok(Finding::at(Place::Far, 1.0, vec![words]).enough(true))
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let fell = model.direction(direction).and_then(|dir| dir.fell.as_ref());
    fell.map(|fell| {
        Advice::new(format!(
            "count on {} for writes of more than {}; the cache empties while less is written",
            fell.lasting.with_bytes(),
            fell.bytes
        ))
    })
    .into_iter()
    .collect()
}
