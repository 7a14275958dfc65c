//! The disk is so hot that it slows itself down.

use super::{NO_GAIN, counted, facts};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::model::leaves;

/// Thousandths of a degree below its limit, from which on a disk slows down: sensors and steps of control differ.
const CLOSE: f64 = 2_000.0;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-thermal",
    name: "the disk is too hot, and slows itself down",
    needs: &[Feature::Disk],
    stage: Stage::Device,
    explains: &["disk-capped"],
    decided_by: &[Factor::MoreDepth],
    page: include_str!("../pages/disk-thermal.md"),
    check,
    predict: |model, trial| match trial.factor()? {
        Factor::MoreDepth => Some(NO_GAIN),
        Factor::MoreStreams => None,
        _ => bystander(model, trial),
    },
    advice: |_, _| {
        vec![Advice::new(
            "cool the disk: a heat sink, air over it, another slot away from the graphics card; then measure again after \
             some minutes of load",
        )]
    },
    ..Cause::BASE
};

/// The temperature of the hottest disk and its limit, in thousandths of a degree; `None` if one was not read.
fn temperature(model: &Model, direction: Direction) -> Option<(f64, f64)> {
    let limit = leaves(&facts(model)?.disks).filter_map(|disk| disk.hottest).min()?;
    let (_, disk) = counted(model, direction).ok()?;
    Some((disk.hottest?, limit as f64))
}

/// Whether a disk is so hot that it slows down.
pub(super) fn is_hot(model: &Model, direction: Direction) -> bool {
    temperature(model, direction).is_some_and(|(hottest, limit)| hottest >= limit - CLOSE)
}

fn check(model: &Model, direction: Direction) -> Answer {
    base(model, direction)?;
    let Some((hottest, limit)) = temperature(model, direction) else {
        return Err(clear("the disk has no sensor of temperature that can be read"));
    };
    let words =
        format!("the disk had {:.0} °C, and slows down at {:.0} °C", hottest / 1e3, limit / 1e3);
    if !is_hot(model, direction) {
        return Err(clear(words));
    }
    let fell = model.direction(direction).is_some_and(|dir| dir.fell.is_some());
    Ok(Finding::at(Place::Far, 0.8, vec![words]).enough(fell))
}
