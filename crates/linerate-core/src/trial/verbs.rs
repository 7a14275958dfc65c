//! Options of RDMA loads that a trial changes.

use crate::model::Load;
use crate::path::Direction;
use crate::plan::Knobs;
use crate::transport::Setting;
use crate::transport::rdma::{
    DEPTH, INLINE, POST_LIST, QUEUE_PAIRS, READS, READS_DEFAULT, depth as depth_of,
};

/// Most requests that a trial keeps in flight in one queue pair.
const MOST_DEPTH: u64 = 1024;

/// Most queue pairs that a trial gives to a stream.
const MOST_PAIRS: u64 = 64;

/// Twice as many requests in flight.
pub(super) fn depth(knobs: &mut Knobs) -> Option<()> {
    let twice = u64::from(depth_of(&knobs.options)) * 2;
    set(knobs, DEPTH.key, (twice <= MOST_DEPTH).then_some(twice)?);
    Some(())
}

/// Twice as many queue pairs, each with half the requests.
pub(super) fn queue_pairs(knobs: &mut Knobs) -> Option<()> {
    let options = &knobs.options;
    let half = u64::from(depth_of(options) / 2);
    let list = options.number(POST_LIST.key).unwrap_or(1);
    let twice = options.number(QUEUE_PAIRS.key).unwrap_or(1) * 2;
    let is_possible = twice <= MOST_PAIRS && half >= 1 && list <= (half / 2).max(1);
    set(knobs, DEPTH.key, is_possible.then_some(half)?);
    set(knobs, QUEUE_PAIRS.key, twice);
    Some(())
}

/// Twice as many reads in flight, if fewer were asked for than devices usually have.
pub(super) fn reads(knobs: &mut Knobs) -> Option<()> {
    let twice = knobs.options.number(READS.key)? * 2;
    set(knobs, READS.key, (twice <= READS_DEFAULT).then_some(twice)?);
    Some(())
}

/// Room for the payload inside of requests.
pub(super) fn inline(knobs: &mut Knobs, load: &Load, direction: Direction) -> Option<()> {
    let size = load.made.at(direction, direction.sender()).write_size;
    set(knobs, INLINE.key, (size > 0).then_some(size)?);
    Some(())
}

fn set(knobs: &mut Knobs, key: &str, number: u64) {
    knobs.options.set(key, Setting::Number(number));
}
