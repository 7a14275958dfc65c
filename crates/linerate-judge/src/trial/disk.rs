//! Settings of trials that change an option of loads of files.

use super::settings::{MOST_DEPTH, twice};
use crate::model::{Load, Model, largest};
use linerate_plan::Knobs;
use linerate_plan::factor::Factor;
use linerate_plan::path::Side;
use linerate_plan::transport::{OptionInfo, Setting, file};
use linerate_units::Bytes;

/// Whether a factor is an option of loads of files.
pub(super) const fn has(factor: Factor) -> bool {
    matches!(
        factor,
        Factor::PastCache
            | Factor::MoreDepth
            | Factor::SmallerOperations
            | Factor::Unsynced
            | Factor::LargerReadAhead
    )
}

/// Settings A and B of a trial of `factor`; `None` if the trial would change nothing.
pub(super) fn settings(factor: Factor, model: &Model, load: &Load) -> Option<(Knobs, Knobs)> {
    let before = load.knobs.clone();
    let mut after = before.clone();
    let is_on = |option: &OptionInfo| before.options.is_on(option.key);
    let is_buffered = is_on(&file::BUFFERED);
    let can = match factor {
        Factor::PastCache => {
            after.options.set(file::BUFFERED.key, Setting::Switch(false));
            is_buffered
        }
        Factor::Unsynced => {
            after.options.set(file::SYNC.key, Setting::Switch(false));
            is_on(&file::SYNC)
        }
        Factor::LargerReadAhead => {
            after.options.set(file::READ_AHEAD.key, Setting::Switch(true));
            is_buffered && !is_on(&file::READ_AHEAD) && !file::is_random(&before.options)
        }
        Factor::SmallerOperations => return smaller(model, load),
        _ => {
            set_depth(&mut after, twice(before.depth, MOST_DEPTH)?);
            true
        }
    };
    can.then_some((before, after))
}

/// Operations of a whole request of the disk, and of half of one, as many in flight: both need no splitting. `None` if
/// the operations of the load are no larger than a request.
fn smaller(model: &Model, load: &Load) -> Option<(Knobs, Knobs)> {
    let operation = load.made.receiver.read_size.max(load.made.sender.write_size);
    let largest = largest(&model.host(Side::Near)?.facts)?;
    if operation <= largest {
        return None;
    }
    let of = |size: u64| {
        let mut knobs = load.knobs.clone();
        (knobs.write_size, knobs.read_size) = (Bytes(size), Bytes(size));
        let depth = u64::from(knobs.depth.max(1)).saturating_mul(operation / largest);
        set_depth(&mut knobs, depth.min(MOST_DEPTH.into()) as u32);
        knobs
    };
    Some((of(largest), of(largest / 2)))
}

fn set_depth(knobs: &mut Knobs, depth: u32) {
    knobs.depth = depth;
    knobs.options.set(file::DEPTH.key, Setting::Number(depth.into()));
}
