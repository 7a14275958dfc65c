//! Plans for the tests of transports.

use linerate_plan::path::Direction;
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_units::{Bytes, Nanos};

/// Makes the plan of a stream, and applies `change` to it.
pub(super) fn plan(change: impl FnOnce(&mut SetPlan)) -> SetPlan {
    let mut plan = SetPlan {
        id: 0,
        pattern: Pattern::Stream { direction: Direction::Forward },
        knobs: Knobs::default(),
    };
    change(&mut plan);
    plan
}

/// Pattern of round trips with messages of `size` bytes, one at a time.
pub(super) fn pings(size: u64) -> Pattern {
    Pattern::PingPong { size: Bytes(size), interval: Nanos(0) }
}

/// Changes a plan to round trips in open loop, with a message every `interval` nanoseconds.
pub(super) fn open_loop(interval: u64) -> impl FnOnce(&mut SetPlan) {
    move |plan| {
        plan.knobs.open_loop = true;
        plan.pattern = Pattern::PingPong { size: Bytes(64), interval: Nanos(interval) };
    }
}
