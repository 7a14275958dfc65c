//! The steps of a search for a rate, as the search takes them.

use super::load::{end, stream_set};
use super::once::once;
use crate::plan::Purpose;
use crate::record::{EndReadings, Record, Step, Total};
use crate::search::Look;
use crate::units::{Bytes, Nanos};

/// What the steps of a search showed, in order; those that did not end in order are left out.
pub fn looks(record: &Record) -> Vec<Look> {
    let steps = record.steps.iter();
    steps.filter_map(|step| look(record, step)).collect()
}

/// What a step of a search showed: all of its datagrams to the last, however late they came.
fn look(record: &Record, step: &Step) -> Option<Look> {
    let (direction, long) = match step.plan.purpose {
        Purpose::Sweep { direction } => (direction, false),
        Purpose::Base { direction } => (direction, true),
        _ => return None,
    };
    step.trouble.is_none().then_some(())?;
    let plan = &stream_set(record, step, direction)?.plan;
    let once = once(record, step, direction)?;
    let sent = total(end(step, direction.sender())?, plan.id, |t| t.sent)?;
    let received = total(end(step, direction.receiver())?, plan.id, |t| t.received)?;
    let rate = |(bytes, time): (Bytes, Nanos)| bytes.0 as f64 * 8.0 / time.secs();
    // Short steps have too few samples for a steady part.
    let whole = Nanos(step.plan.washout.0 + step.plan.measure.0);
    let arrived = once.moved[1]
        .filter(|_| long)
        .unwrap_or((Bytes(received), whole));
    (sent > 0).then_some(Look {
        asked: plan.knobs.rate()?,
        sent: rate((Bytes(sent), whole)),
        received: rate(arrived),
        lost: sent.saturating_sub(received) as f64 / sent as f64,
        at_socket: once.datagrams.and_then(|counted| counted.at_socket),
        long,
    })
}

/// A sum over the streams of a set; `None` where one of them did not end in order.
fn total(end: &EndReadings, set: u32, of: impl Fn(&Total) -> u64) -> Option<u64> {
    let mut streams = end
        .totals
        .iter()
        .filter(|total| total.set == set)
        .peekable();
    streams.peek()?;
    streams.try_fold(0_u64, |sum, total| {
        sum.checked_add(total.complete.then(|| of(total))?)
    })
}
