//! Which CPU each thread is kept on, and how large operations may grow there.

use linerate_core::plan::{Direction, Pattern, SetPlan, Side};
use linerate_core::units::Bytes;

/// Largest operation where the second-level cache is not known.
const CAP_UNKNOWN: u32 = 512 * 1024;
/// Bounds of the largest operation.
const CAP_MIN: u32 = 128 * 1024;
const CAP_MAX: u32 = 1024 * 1024;

/// The CPU of each stream's thread; empty when threads are left to the scheduler: where there are
/// more of them than CPUs, and for round trips, which should not depend on one CPU's state.
///
/// Forward streams take CPUs from the first on and reverse streams the ones after them, so that
/// both directions can run at once; an end that shares its machine with the near end takes them
/// from the last one down. Sets with as many streams get the same CPUs, so that trials compare
/// like with like.
pub(super) fn cpus(allowed: &[u32], side: Side, shared: bool, plan: &SetPlan) -> Vec<u32> {
    let Pattern::Stream { direction } = plan.pattern else {
        return Vec::new();
    };
    let streams = plan.knobs.streams as usize;
    if streams > allowed.len() {
        return Vec::new();
    }
    let room = streams * if shared { 4 } else { 2 } <= allowed.len();
    let skip = if direction == Direction::Reverse && room {
        streams
    } else {
        0
    };
    let down = shared && side == Side::Far;
    let nth = |i: usize| {
        if down {
            allowed[allowed.len() - 1 - i]
        } else {
            allowed[i]
        }
    };
    (skip..skip + streams).map(nth).collect()
}

/// Largest operation that is chosen where the plan leaves the size open: its buffer should stay in
/// the second-level cache beside what the kernel touches on the way.
pub(super) fn op_cap(l2_cache: Option<Bytes>) -> u32 {
    let share = |l2: Bytes| (l2.0 / 4 * 3).clamp(u64::from(CAP_MIN), u64::from(CAP_MAX)) as u32;
    l2_cache.map_or(CAP_UNKNOWN, share)
}

#[cfg(test)]
mod tests {
    use linerate_core::plan::Knobs;

    use super::*;

    fn plan(direction: Direction, streams: u32) -> SetPlan {
        SetPlan {
            id: 0,
            pattern: Pattern::Stream { direction },
            knobs: Knobs {
                streams,
                ..Knobs::default()
            },
        }
    }

    #[test]
    fn streams_take_cpus_in_order_and_reverse_ones_the_next() {
        let all = [2, 3, 5, 7];
        let take = |d, n| cpus(&all, Side::Near, false, &plan(d, n));
        assert_eq!(take(Direction::Forward, 2), [2, 3]);
        assert_eq!(take(Direction::Reverse, 2), [5, 7]);
        assert_eq!(take(Direction::Reverse, 3), [2, 3, 5]);
    }

    #[test]
    fn ends_that_share_a_machine_begin_at_its_two_ends() {
        let all = [0, 1, 2, 3];
        let take = |side, d| cpus(&all, side, true, &plan(d, 1));
        assert_eq!(take(Side::Near, Direction::Forward), [0]);
        assert_eq!(take(Side::Far, Direction::Forward), [3]);
        assert_eq!(take(Side::Near, Direction::Reverse), [1]);
        assert_eq!(take(Side::Far, Direction::Reverse), [2]);
    }

    #[test]
    fn more_streams_than_cpus_are_not_pinned() {
        let take = |n| cpus(&[0, 1], Side::Far, true, &plan(Direction::Forward, n));
        assert_eq!(take(2), [1, 0]);
        assert_eq!(take(3), [] as [u32; 0]);
    }

    #[test]
    fn operations_are_bounded_on_both_sides() {
        assert_eq!(op_cap(None), CAP_UNKNOWN);
        assert_eq!(op_cap(Some(Bytes(0))), CAP_MIN);
        assert_eq!(op_cap(Some(Bytes(1 << 20))), 768 * 1024);
        assert_eq!(op_cap(Some(Bytes(u64::MAX))), CAP_MAX);
    }
}
