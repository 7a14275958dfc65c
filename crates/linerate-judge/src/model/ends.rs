//! The ends of a step: which one sent, which one received.

use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::{self, TransportInfo};
use linerate_record::{EndReadings, Record, Step};

/// Whether there is no far end: this host alone moved the bytes. In other runs a step may have readings of only
/// one end too, if the far end was lost.
pub fn is_alone(record: &Record) -> bool {
    let plan = &record.start.plan;
    // Of a transport that this version does not know, only the plan says whether anything was called.
    let known = transport::named(&plan.engine);
    let alone = known.map_or(plan.peer.is_none(), TransportInfo::is_alone);
    record.hosts.len() == 1 && alone
}

/// Index of a side in lists of both ends.
pub(super) const fn index(side: Side) -> usize {
    match side {
        Side::Near => 0,
        Side::Far => 1,
    }
}

/// The readings of one side; `None` if it was lost.
pub(super) fn end(step: &Step, side: Side) -> Option<&EndReadings> {
    step.ends.get(index(side))
}

/// The readings of the end that sends; the only one if there is no far end.
pub(super) fn sending<'a>(
    record: &Record,
    step: &'a Step,
    direction: Direction,
) -> Option<&'a EndReadings> {
    of(record, step, direction.sender())
}

/// The readings of the end that receives; the only one if there is no far end.
pub(super) fn receiving<'a>(
    record: &Record,
    step: &'a Step,
    direction: Direction,
) -> Option<&'a EndReadings> {
    of(record, step, direction.receiver())
}

fn of<'a>(record: &Record, step: &'a Step, side: Side) -> Option<&'a EndReadings> {
    end(step, if is_alone(record) { Side::Near } else { side })
}
