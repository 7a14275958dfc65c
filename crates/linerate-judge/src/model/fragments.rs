//! Counts of IP fragments.

use super::ends::end;
use super::readings::{Window, per_second};
use linerate_facts::metric as m;
use linerate_plan::path::{ByRole, Direction, Side};
use linerate_record::Step;

/// IP fragments per second: those that the sender's host made, and those that the receiver's host received. `None` if
/// they were not counted.
pub(super) fn fragments(step: &Step, direction: Direction, window: Window) -> ByRole<Option<f64>> {
    let of = |side: Side, metric| {
        let table = end(step, side)?.about("fragments", |_| true).next()?;
        per_second(table, metric, window)
    };
    ByRole {
        sender: of(direction.sender(), m::FRAGMENTS_CREATED),
        receiver: of(direction.receiver(), m::FRAGMENTS_RECEIVED),
    }
}
