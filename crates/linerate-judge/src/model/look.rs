//! The steps of a search for a rate, in the form that the search uses.

use super::datagrams::total;
use super::ends::{end, stream_set};
use super::once::once;
use linerate_plan::Purpose;
use linerate_plan::search::Look;
use linerate_record::{Record, Step};
use linerate_units::{Bytes, Nanos};

/// The results of a search's steps, in order; steps whose streams were not closed in order are left out.
pub fn looks(record: &Record) -> Vec<Look> {
    let steps = record.steps.iter();
    steps.filter_map(|step| look(record, step)).collect()
}

/// The result of a search's step. All of its datagrams count, however late they arrive.
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
    // Short steps have too few samples to find a steady part.
    let whole = Nanos(step.plan.washout.0 + step.plan.measure.0);
    let arrived = once.moved.receiver.filter(|_| long).unwrap_or((Bytes(received), whole));
    (sent > 0).then_some(Look {
        requested: plan.knobs.rate()?,
        sent: rate((Bytes(sent), whole)),
        received: rate(arrived),
        lost: sent.saturating_sub(received) as f64 / sent as f64,
        at_socket: once.datagrams.and_then(|counted| counted.at_socket),
        long,
    })
}
