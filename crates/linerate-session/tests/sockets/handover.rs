//! Tests of the ways to pass payload to the kernel, over real sockets on loopback.

use std::thread;

use crate::held::{last, within, without_the_right};
use linerate_facts::metric::{
    ZEROCOPY_COMPLETIONS, ZEROCOPY_COPIED, ZEROCOPY_REFUSED, ZEROCOPY_SENDS,
};
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Handover, Knobs};
use linerate_units::Bytes;

use crate::support::{Pair, step, stream};

fn knobs(copy: Handover, streams: u32, write_size: u64) -> Knobs {
    Knobs { streams, write_size: Bytes(write_size), copy, ..Knobs::default() }
}

#[test]
fn each_way_arrives_to_the_byte_in_step_after_step() {
    let mut pair = Pair::new();
    let mut id = 0;
    for copy in [Handover::Copy, Handover::Zerocopy, Handover::Sendfile, Handover::IoUring] {
        for (direction, streams, size) in [
            (Direction::Forward, 1, 0),
            (Direction::Reverse, 2, 1),
            (Direction::Forward, 3, 100_000),
        ] {
            pair.connect(&stream(id, direction, knobs(copy, streams, size)));
            for _ in 0..2 {
                let Some(ends) = pair.moves(&step(&[id], 10, 40, 10)) else {
                    return;
                };
                // The kernel may refuse to hold so many pages for an ordinary user.
                let mut gaps = ends.iter().flat_map(|end| &end.gaps);
                let of_room = copy.is_reported();
                assert!(gaps.all(|gap| of_room && gap.what == "set.copy"), "{copy:?}");
            }
            pair.near.release(id);
            pair.far.release(id);
            id += 1;
        }
    }
}

#[test]
fn the_end_that_sends_without_a_copy_counts_what_became_of_it() {
    let mut pair = Pair::new();
    for (id, direction) in [(0, Direction::Forward), (1, Direction::Reverse)] {
        let ends = pair.connect(&stream(id, direction, knobs(Handover::Zerocopy, 1, 0)));
        assert!(ends.iter().all(|end| end.gaps.is_empty()), "{ends:?}");
        let ends = pair.run(&step(&[id], 10, 60, 10));
        let at = |side| &ends[usize::from(side == Side::Far)];
        let count = |metric| last(at(direction.sender()), id, metric).unwrap();
        let (sends, done) = (count(ZEROCOPY_SENDS), count(ZEROCOPY_COMPLETIONS));
        // The kernel may have completed a send before the sending thread counts it.
        assert!(0 < done && done <= sends + 1, "{done} of {sends}");
        // Packets that stay on one machine are copied when they are delivered.
        assert_eq!(count(ZEROCOPY_COPIED), done);
        let gaps = at(direction.sender()).gaps.len();
        assert_eq!(count(ZEROCOPY_REFUSED) > 0, gaps > 0);
        assert_eq!(last(at(direction.receiver()), id, ZEROCOPY_SENDS), None);
    }
    pair.connect(&stream(2, Direction::Forward, knobs(Handover::Sendfile, 1, 0)));
    let ends = pair.run(&step(&[2], 10, 20, 10));
    assert_eq!(last(&ends[0], 2, ZEROCOPY_SENDS), None);
}

#[test]
fn without_room_to_hold_pages_payload_is_copied_and_that_is_told() {
    let refused = thread::spawn(|| {
        // The turn is taken first, because the limit of held pages applies to the whole process.
        let mut pair = Pair::new();
        without_the_right();
        let plan = stream(0, Direction::Forward, knobs(Handover::Zerocopy, 1, 50_000));
        within(0, || {
            pair.connect(&plan);
            pair.moves(&step(&[0], 10, 40, 10))
        })
    });
    let Some([near, far]) = refused.join().unwrap() else {
        return;
    };
    assert!(last(&near, 0, ZEROCOPY_REFUSED).unwrap() > 0);
    assert_eq!(last(&near, 0, ZEROCOPY_SENDS), Some(0));
    let [gap] = near.gaps.as_slice() else {
        panic!("one gap for all sends: {:?}", near.gaps);
    };
    assert_eq!(gap.what, "set.copy");
    assert!(gap.hint.contains("ulimit -l") && gap.hint.contains("optmem_max"));
    assert_eq!(far.gaps, []);
}
