//! The ends of a step: which one sent, which one received.

use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::{self, TransportInfo};
use linerate_record::{EndReadings, Record, Set, Step};

/// Whether there is no far end: this host alone moved the bytes. Other runs may also have a step with readings of only
/// one end, if the far end was lost.
pub fn is_alone(record: &Record) -> bool {
    let plan = &record.start.plan;
    // If this version does not know the transport, only the plan shows whether there was a far end.
    let known = transport::named(&plan.engine);
    let alone = known.map_or(plan.peer.is_none(), TransportInfo::is_alone);
    record.hosts.len() == 1 && alone
}

/// The set of streams of a step that sends in `direction`.
pub(super) fn stream_set<'a>(
    record: &'a Record,
    step: &Step,
    direction: Direction,
) -> Option<&'a Set> {
    record.sets.iter().find(|s| {
        step.plan.sets.contains(&s.plan.id) && s.plan.pattern.direction() == Some(direction)
    })
}

/// Index of an end in lists of both ends.
pub(super) const fn index(side: Side) -> usize {
    match side {
        Side::Near => 0,
        Side::Far => 1,
    }
}

/// The readings of one end; `None` if it was lost.
pub(super) fn end(step: &Step, side: Side) -> Option<&EndReadings> {
    step.ends.get(index(side))
}

/// The readings of the sending end, or of the only end if there is no far end.
pub(super) fn sending<'a>(
    record: &Record,
    step: &'a Step,
    direction: Direction,
) -> Option<&'a EndReadings> {
    of(record, step, direction.sender())
}

/// The readings of the receiving end, or of the only end if there is no far end.
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
