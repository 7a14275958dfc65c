//! Tests of payload that both ends move by io_uring, over real sockets on loopback.

use std::thread;
use std::time::{Duration, Instant};

use crate::held::{last, within, without_the_right};
use linerate_facts::Gap;
use linerate_facts::metric::{
    ZEROCOPY_COMPLETIONS, ZEROCOPY_COPIED, ZEROCOPY_REFUSED, ZEROCOPY_SENDS,
};
use linerate_load::LoadError;
use linerate_plan::path::{Direction, Side};
use linerate_plan::{ExtraWork, Handover, Knobs, Receive};
use linerate_session::end::Running;
use linerate_test::{skip, turn};
use linerate_units::Bytes;

use crate::support::{Pair, assert_exact, eventually, step, stream};

fn knobs(streams: u32, size: u64) -> Knobs {
    Knobs {
        streams,
        write_size: Bytes(size),
        read_size: Bytes(size),
        copy: Handover::IoUring,
        ..Knobs::default()
    }
}

/// Settings with a receiver that works so long for each byte that its sender waits for room most of the time.
fn slow() -> Knobs {
    Knobs {
        extra_work: ExtraWork { sender_ps_per_byte: 0, receiver_ps_per_byte: 20_000 },
        ..knobs(1, 0)
    }
}

/// Returns whether this machine has io_uring. Without it, the ends report a gap
/// and copy, which other tests check. For an ordinary user, the kernel may also
/// hold too few pages, which is no lack of the machine: root runs these tests too.
fn is_there(gaps: &[Gap]) -> bool {
    let refused = gaps.iter().find(|gap| gap.what == "set.copy");
    if let Some(gap) = refused.filter(|_| rustix::process::geteuid().is_root()) {
        skip("io-uring", &gap.why);
    }
    refused.is_none()
}

#[test]
fn payload_arrives_to_the_byte_in_step_after_step_whatever_its_size() {
    let mut pair = Pair::new();
    let discards = Knobs { receive: Receive::Discard, ..knobs(1, 0) };
    for (id, direction, knobs) in [
        (0, Direction::Forward, knobs(1, 0)),
        (1, Direction::Reverse, knobs(2, 1)),
        (2, Direction::Forward, knobs(3, 100_000)),
        (3, Direction::Reverse, knobs(1, 3_000_000)),
        (4, Direction::Forward, discards),
        (5, Direction::Forward, slow()),
    ] {
        pair.connect(&stream(id, direction, knobs));
        for _ in 0..3 {
            pair.moves(&step(&[id], 10, 60, 10));
        }
        pair.near.release(id);
        pair.far.release(id);
    }
}

#[test]
fn the_sending_end_counts_what_became_of_it() {
    let mut pair = Pair::new();
    for (id, direction) in [(0, Direction::Forward), (1, Direction::Reverse)] {
        let ends = pair.connect(&stream(id, direction, knobs(1, 0)));
        if !ends.iter().all(|end| is_there(&end.gaps)) {
            return;
        }
        let ends = pair.run(&step(&[id], 10, 60, 10));
        let at = |side| &ends[usize::from(side == Side::Far)];
        let count = |metric| last(at(direction.sender()), id, metric).unwrap();
        let (sends, done) = (count(ZEROCOPY_SENDS), count(ZEROCOPY_COMPLETIONS));
        assert!(0 < done && done <= sends + 1, "{done} of {sends}");
        // Packets that stay on one machine are copied when they are
        // delivered. The row may be read between the two counts.
        let copied = count(ZEROCOPY_COPIED);
        assert!(copied.abs_diff(done) <= 1, "{copied} of {done}");
        let gaps = at(direction.sender()).gaps.len();
        assert_eq!(count(ZEROCOPY_REFUSED) > 0, gaps > 0);
        assert_eq!(last(at(direction.receiver()), id, ZEROCOPY_SENDS), None);
    }
}

#[test]
fn an_early_stop_keeps_totals_exact_and_the_sets_warm() {
    let mut pair = Pair::new();
    for (id, knobs) in [(0, knobs(1, 0)), (1, slow())] {
        pair.connect(&stream(id, Direction::Forward, knobs));
        for _ in 0..2 {
            let began = Instant::now();
            let [near, far] = pair.start(&step(&[id], 20, 60_000, 20));
            eventually(|| near.live().rate.0 > 0);
            near.stop();
            far.stop();
            let ends = [near, far].map(Running::finish);
            assert!(began.elapsed() < Duration::from_secs(20));
            assert!(assert_exact(&ends) > 0);
        }
    }
}

#[test]
fn an_abort_returns_promptly_whichever_end_it_is_of() {
    let mut pair = Pair::new();
    for (id, of) in [(0, Side::Near), (1, Side::Far)] {
        pair.connect(&stream(id, Direction::Forward, slow()));
        let plan = step(&[id], 20, 60_000, 20);
        let began = Instant::now();
        let [near, far] = pair.start(&plan);
        eventually(|| far.live().rate.0 > 0);
        let (aborted, other) = match of {
            Side::Near => (near, far),
            Side::Far => (far, near),
        };
        aborted.abort();
        assert!(!aborted.finish().totals[0].complete);
        // The connection of the aborted end is shut down, so the other end's thread ends as well.
        assert!(!other.finish().totals[0].complete);
        assert!(began.elapsed() < Duration::from_secs(20));
        for end in [&mut pair.near, &mut pair.far] {
            assert!(matches!(
                end.arm(&plan),
                Err(LoadError::NotConnected { set }) if set == id
            ));
        }
    }
}

#[test]
fn an_end_that_may_hold_no_pages_copies_and_says_so() {
    let reported = thread::spawn(|| {
        // The turn is taken first, because the limit of held pages applies to the whole process.
        let mut pair = Pair::new();
        without_the_right();
        within(0, || {
            let ends = pair.connect(&stream(0, Direction::Forward, knobs(1, 0)));
            (ends, pair.run(&step(&[0], 10, 40, 10)))
        })
    });
    let ([near, _], ends) = reported.join().unwrap();
    assert!(assert_exact(&ends) > 0);
    let [gap] = near.gaps.as_slice() else {
        panic!("one gap for all streams: {:?}", near.gaps);
    };
    assert_eq!(gap.what, "set.copy");
    assert!(gap.why.starts_with("payload is sent with copies"), "{gap:?}");
    assert_eq!(last(&ends[0], 0, ZEROCOPY_SENDS), None);
}

#[test]
fn one_that_may_hold_fewer_than_it_needs_copies_what_it_must() {
    let reported = thread::spawn(|| {
        let mut pair = Pair::new();
        without_the_right();
        // These pages suffice to set up io_uring, but not for payload.
        within(64 * 1024, || {
            let plan = stream(0, Direction::Forward, knobs(1, 1 << 20));
            let ends = pair.connect(&plan);
            (ends, pair.run(&step(&[0], 10, 40, 10)))
        })
    });
    let (ends, [near, far]) = reported.join().unwrap();
    if !ends.iter().all(|end| is_there(&end.gaps)) {
        return;
    }
    assert!(last(&near, 0, ZEROCOPY_REFUSED).unwrap() > 0);
    assert_eq!(last(&near, 0, ZEROCOPY_SENDS), Some(0));
    let [gap] = near.gaps.as_slice() else {
        panic!("one gap for all sends: {:?}", near.gaps);
    };
    assert_eq!(gap.hint, "ulimit -l unlimited");
    assert!(assert_exact(&[near, far]) > 0);
}

#[test]
fn many_streams_are_refused_as_without_a_copy() {
    let _turn = turn();
    let mut end = crate::support::end(Side::Near, "tcp");
    let refused = end.prepare(&stream(0, Direction::Forward, knobs(65, 0)));
    assert!(refused.unwrap_err().to_string().contains("65 streams"));
}
