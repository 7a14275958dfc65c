//! Tests of shared memory with both ends in one process.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linerate_host::Live;
use linerate_load::transport::NoLines;
use linerate_plan::path::{Direction, Side};
use linerate_plan::subject::Subject;
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_record::EndReadings;
use linerate_session::end::{LocalEnd, Running};
use linerate_units::{Bytes, Nanos};

/// Bytes that a ring holds by default.
const RING: u64 = 1 << 20;
/// Size of the largest message, in bytes.
const SIZE_MAX: u64 = 16 << 20;

fn plan(pattern: Pattern, change: impl FnOnce(&mut Knobs)) -> SetPlan {
    let mut knobs = Knobs::default();
    change(&mut knobs);
    SetPlan { id: 0, pattern, knobs }
}

/// Runs two steps of a set; returns the readings of both ends for each step.
fn run(plan: &SetPlan) -> Vec<[EndReadings; 2]> {
    let end =
        |side| LocalEnd::new(side, "shm", Arc::new(Live::new()), IpAddr::from([127, 0, 0, 1]));
    let (mut near, mut far) = (end(Side::Near), end(Side::Far));
    let far_offer = far.prepare(plan).unwrap();
    let near_offer = near.prepare(plan).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| far.connect(0, &near_offer, &mut NoLines(&Subject::Host)).unwrap());
        near.connect(0, &far_offer, &mut NoLines(&Subject::Host)).unwrap();
    });
    let step = |index| {
        let step = StepPlan {
            index,
            purpose: Purpose::Both,
            sets: vec![0],
            washout: Nanos(0),
            measure: Nanos::from_millis(60),
            tick: Nanos::from_millis(20),
        };
        let mut both = [far.arm(&step).unwrap(), near.arm(&step).unwrap()];
        both.iter_mut().for_each(Running::go);
        for running in &mut both {
            while !running.done(Duration::from_secs(1)) {}
        }
        let [far, near] = both.map(Running::finish);
        [near, far]
    };
    (0..2).map(step).collect()
}

#[test]
fn both_ends_count_the_same_in_every_direction_and_step() {
    for direction in Direction::ALL {
        for change in [
            (|_| ()) as fn(&mut Knobs),
            |k| k.streams = 3,
            |k| k.write_size = Bytes(1),
            |k| (k.write_size, k.read_size) = (Bytes(5 << 20), Bytes(3)),
        ] {
            let plan = plan(Pattern::Stream { direction }, change);
            for [near, far] in run(&plan) {
                for (a, b) in near.totals.iter().zip(&far.totals) {
                    assert!(a.complete && b.complete, "{near:?} {far:?}");
                    assert_eq!((a.sent, a.received), (b.received, b.sent));
                    assert!(a.sent + a.received > 0);
                }
                assert_eq!(near.totals.len() as u32, plan.knobs.streams);
            }
        }
    }
}

#[test]
fn messages_of_any_size_are_answered_on_either_schedule() {
    for (size, interval, busy) in [
        (1, 0, false),
        (64, 0, true),
        (64, 100_000, false),
        (64, 100_000, true),
        (RING + 1, 0, false),
        (3 * RING, 2_000_000, false),
        (SIZE_MAX, 0, false),
    ] {
        let plan =
            plan(Pattern::PingPong { size: Bytes(size), interval: Nanos(interval) }, |knobs| {
                knobs.open_loop = interval > 0;
                knobs.busy_poll = busy;
            });
        for [near, far] in run(&plan) {
            let (a, b) = (&near.totals[0], &far.totals[0]);
            assert!(a.complete && b.complete, "{size}: {near:?} {far:?}");
            assert_eq!((a.sent, a.received), (b.received, b.sent), "{size}");
            assert!(a.sent > 0 && a.sent % size == 0, "{size}");
        }
    }
}
