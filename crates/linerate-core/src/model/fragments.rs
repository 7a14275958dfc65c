//! Packets that are cut up.

use super::ends::end;
use super::readings::{Window, per_second};
use crate::metric as m;
use crate::path::{Direction, Side};
use crate::record::Step;

/// Fragments in a second: those that the sender's host made, and those that came to the receiver's; `None` where they
/// were not counted.
pub(super) fn fragments(step: &Step, direction: Direction, window: Window) -> [Option<f64>; 2] {
    let of = |side: Side, metric| {
        let table = end(step, side)?.about("fragments", |_| true).next()?;
        per_second(table, metric, window)
    };
    [
        of(direction.sender(), m::FRAGMENTS_CREATED),
        of(direction.receiver(), m::FRAGMENTS_RECEIVED),
    ]
}
