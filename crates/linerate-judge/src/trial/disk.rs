//! Settings of trials that change an option of loads of files.

use super::settings::{MOST_DEPTH, twice};
use crate::model::Load;
use linerate_plan::Knobs;
use linerate_plan::factor::Factor;
use linerate_plan::transport::{Setting, file};

/// Whether a factor is an option of loads of files.
pub(super) const fn has(factor: Factor) -> bool {
    matches!(factor, Factor::PastCache | Factor::MoreDepth)
}

/// Settings A and B of a trial of `factor`; `None` if the trial would change nothing.
pub(super) fn settings(factor: Factor, load: &Load) -> Option<(Knobs, Knobs)> {
    let before = load.knobs.clone();
    let mut after = before.clone();
    if factor == Factor::PastCache {
        let is_buffered = before.options.is_on(file::BUFFERED.key);
        after.options.set(file::BUFFERED.key, Setting::Switch(false));
        return is_buffered.then_some((before, after));
    }
    after.depth = twice(before.depth, MOST_DEPTH)?;
    after.options.set(file::DEPTH.key, Setting::Number(after.depth.into()));
    Some((before, after))
}
