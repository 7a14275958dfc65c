//! Options of RDMA loads that a trial changes.

use crate::model::Load;
use linerate_plan::Knobs;
use linerate_plan::factor::Factor;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::Setting;
use linerate_plan::transport::rdma::{
    DEPTH, INLINE, INLINE_DEFAULT, POST_LIST, QUEUE_PAIRS, READS, depth as depth_of,
};

/// Largest number of requests that a trial keeps in flight in one queue pair.
const MOST_DEPTH: u64 = 1024;

/// Largest number of queue pairs that a trial gives to a stream.
const MOST_PAIRS: u64 = 64;

/// Whether a trial of this factor changes an option of RDMA loads.
pub(super) const fn has(factor: Factor) -> bool {
    matches!(
        factor,
        Factor::MoreDepth | Factor::MoreQueuePairs | Factor::MoreReads | Factor::MoreInline
    )
}

/// The settings before and after the change of a trial whose factor is an option of RDMA loads; `None` if it would
/// change nothing or is impossible.
pub(super) fn settings(
    factor: Factor,
    direction: Direction,
    load: &Load,
) -> Option<(Knobs, Knobs)> {
    let before = load.knobs.clone();
    let mut after = before.clone();
    match factor {
        Factor::MoreDepth => depth(&mut after)?,
        Factor::MoreQueuePairs => queue_pairs(&mut after)?,
        Factor::MoreReads => reads(&mut after, load, direction)?,
        Factor::MoreInline => inline(&mut after, load, direction)?,
        _ => return None,
    }
    Some((before, after))
}

/// Doubles the requests in flight.
fn depth(knobs: &mut Knobs) -> Option<()> {
    let twice = u64::from(depth_of(&knobs.options)) * 2;
    option(knobs, DEPTH.key, (twice <= MOST_DEPTH).then_some(twice)?);
    Some(())
}

/// Doubles the queue pairs, each with half the requests.
fn queue_pairs(knobs: &mut Knobs) -> Option<()> {
    let options = &knobs.options;
    let half = u64::from(depth_of(options) / 2);
    let list = options.number(POST_LIST.key).unwrap_or(1);
    let twice = options.number(QUEUE_PAIRS.key).unwrap_or(1) * 2;
    let is_possible = twice <= MOST_PAIRS && half >= 1 && list <= (half / 2).max(1);
    option(knobs, DEPTH.key, is_possible.then_some(half)?);
    option(knobs, QUEUE_PAIRS.key, twice);
    Some(())
}

/// Doubles the reads in flight, if fewer were requested than both devices support.
fn reads(knobs: &mut Knobs, load: &Load, direction: Direction) -> Option<()> {
    let twice = knobs.options.number(READS.key)? * 2;
    let [near, far] = [Side::Near, Side::Far].map(|side| load.rdma(direction, side));
    let (near, far) = near.zip(far)?;
    // Either end may be the one that reads from the other.
    let ends = [near, far].into_iter();
    let most = ends.map(|end| end.reads_out_most.min(end.reads_in_most)).min();
    option(knobs, READS.key, (twice <= u64::from(most?)).then_some(twice)?);
    Some(())
}

/// Requests room for the payload inside of requests.
fn inline(knobs: &mut Knobs, load: &Load, direction: Direction) -> Option<()> {
    let size = load.made.at(direction, direction.sender()).write_size;
    option(knobs, INLINE.key, (1..=INLINE_DEFAULT).contains(&size).then_some(size)?);
    Some(())
}

fn option(knobs: &mut Knobs, key: &str, number: u64) {
    knobs.options.set(key, Setting::Number(number));
}
