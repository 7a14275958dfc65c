//! Trials: the settings before and after a change of one factor, and how long each is measured.
//!
//! A trial changes one factor of linerate's own connections or, only if the user allowed it, one setting of a host.
//! Trials are separate from causes, because one trial separates several rivals. The kinds of trials are rows of
//! [`linerate_plan::factor::TRIALS`].

mod disk;
mod host;
mod settings;
mod slice;
mod verbs;

pub use slice::{next_slice, slice_time, washout};

use std::cmp::Ordering;

use crate::model::Model;
use linerate_plan::factor::TrialKind;
use linerate_plan::path::Direction;
use linerate_record::TrialPlan;

/// Work that the work trials add for each byte, as a share of the wall time of a byte.
pub const WORK_SHARE: f64 = 0.25;

/// Segment size that fits an IPv4 packet of 576 bytes, which every host must accept (RFC 9293, section 3.7.1).
pub const SMALL_MSS: u32 = 536;

/// Largest number of blocks of four slices in a trial.
pub const BLOCKS: u32 = 5;

/// Largest number of blocks if slices are short: they take as much time as five blocks of longer slices.
const SHORT_BLOCKS: u32 = 8;

/// Largest number of blocks if slices are long: if three blocks do not decide, five seldom do.
const LONG_BLOCKS: u32 = 3;

/// The plan of a trial of this kind in one direction; `None` if it would change nothing or cannot be made.
pub fn propose(
    kind: &TrialKind,
    model: &Model,
    direction: Direction,
    id: u32,
) -> Option<TrialPlan> {
    let load = &model.direction(direction)?.base;
    if !load.transport.has_all(kind.factor.needs()) {
        return None;
    }
    let (before, after) = settings::settings(kind.factor, model, direction, load)?;
    let slice = next_slice(model, direction, kind.factor)?;
    (before != after).then(|| TrialPlan {
        id,
        kind: kind.id.to_owned(),
        direction,
        before,
        after,
        max_blocks: match slice.cmp(&slice::SLICE) {
            Ordering::Less => SHORT_BLOCKS,
            Ordering::Equal => BLOCKS,
            Ordering::Greater => LONG_BLOCKS,
        },
    })
}
