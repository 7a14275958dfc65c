//! What causes predict for trials of factors that they do not depend on.

use crate::model::{Load, Model};
use crate::signs::GAIN;
use crate::signs::lossy::{filled, of_other_congestion};
use crate::signs::threads::{at_work, ps_per_byte, wanted_at};
use linerate_plan::factor::{Class, Factor};
use linerate_plan::path::Direction;
use linerate_record::TrialPlan;
use linerate_units::stats::{EQUAL, Range};

/// Minimum share of its CPU that a thread needs, at which no spare time can be relied on.
const NO_TIME_LEFT: f64 = 0.92;

/// Minimum gain of goodput at which more streams show that no shared resource was the limit.
const SCALES: f64 = 1.1;

/// The predicted ratio of goodput, if a sender that has spare CPU time sends without a copy.
pub(crate) const UNCOPIED: Range = Range { low: 0.3, high: EQUAL.high };

/// Work that a trial adds on one end, as a share of the wall time of each byte. The time is that of the trial's
/// own unchanged setting, once it was measured, since a load may run at another rate than before.
pub(crate) fn added_work(model: &Model, trial: &TrialPlan, on_sender: bool) -> Option<f64> {
    let (a, b) = (trial.before.extra_work, trial.after.extra_work);
    let extra = if on_sender {
        b.sender_ps_per_byte.saturating_sub(a.sender_ps_per_byte)
    } else {
        b.receiver_ps_per_byte.saturating_sub(a.receiver_ps_per_byte)
    };
    let base = &model.direction(trial.direction)?.base;
    let measured = model.trials.iter().find(|t| t.plan.id == trial.id);
    let goodput = measured.map(|t| t.goodput[0]).filter(|a| *a > 0.0).unwrap_or(base.goodput.mean);
    let threads = if on_sender { &base.senders } else { &base.receivers };
    let threads = at_work(threads, trial.before.streams);
    Some(extra as f64 / ps_per_byte(goodput, threads)?)
}

/// The range of ratios that differ from `ratio` by at most the share `by` of it.
pub(crate) fn around(ratio: f64, by: f64) -> Range {
    Range { low: ratio * (1.0 - by), high: ratio * (1.0 + by) }
}

/// The prediction for a trial whose factor the cause does not depend on: no change of goodput, unless the trial
/// itself creates a new limit. `None` if this is unknown.
pub(crate) fn bystander(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    let factor = trial.factor()?;
    let direction = trial.direction;
    let ends = [direction.sender(), direction.receiver()];
    let [sender, receiver] = ends.map(|side| wanted_at(load, direction, side));
    // Only a part of the path that lacks time, room or CPU gains. Elsewhere goodput may fall to a new limit.
    let may_lose = |low: f64| Some(Range { low, ..EQUAL });
    match (factor.class(), factor) {
        (Class::LargerBuffer | Class::Redial, _)
        | (
            _,
            Factor::MoreDepth
            | Factor::MoreQueuePairs
            | Factor::MoreReads
            | Factor::MoreInline
            | Factor::Unpaced
            | Factor::Discard,
        ) => Some(EQUAL),
        // More streams or another congestion control may meet any next limit. Half the pace carries half, whatever
        // the limit is.
        (Class::Parallel | Class::Congestion | Class::Pace, _) => None,
        // A send buffer holds at most half its memory as payload in flight.
        (_, Factor::HalfSendBuffer) => roomy(load, trial.after.send_buffer?.0).then_some(EQUAL),
        (Class::HalfBuffer, _) => roomy(load, trial.after.window_clamp?.0).then_some(EQUAL),
        (_, Factor::SenderWork) => Some(work(sender, added_work(model, trial, true)?)),
        (Class::Work, _) => Some(work(receiver, added_work(model, trial, false)?)),
        (_, Factor::SmallerWrites) => cheap(sender),
        (Class::Calls, _) => cheap(receiver),
        // Bursts may overrun a queue on the path.
        (Class::Packets, _) => may_lose(0.3),
        // Smaller segments cost more CPU time. They raise goodput only where the path discards larger ones.
        (Class::Segment, _) => may_lose(0.0),
        // A request of half the size carries half as much where requests are limited, and as much elsewhere.
        (_, Factor::SmallerOperations) => None,
        (Class::Storage, _) => Some(EQUAL),
        // It may cost more CPU time to pin pages of memory than to copy them.
        (Class::Copy, _) => Some(UNCOPIED),
        // Threads gain only if they had to wait for memory of another NUMA node.
        (Class::Placement, _) => may_lose(0.5),
    }
}

/// A sentence that the resource `shared` did not limit the base load, since more streams carried more through it.
pub(crate) fn scaled(model: &Model, direction: Direction, shared: &str) -> Option<String> {
    let model = model.direction(direction)?;
    let base = &model.base;
    let more = model.sweep.iter().filter(|l| l.streams > base.streams);
    let best = more.max_by(|a, b| a.goodput.mean.total_cmp(&b.goodput.mean))?;
    let gain = best.goodput.mean / base.goodput.mean;
    (gain >= SCALES).then(|| {
        format!(
            "{} streams carried {gain:.2} times as much through the same {shared}",
            best.streams
        )
    })
}

/// The prediction for one rate limit that all traffic shares: more streams divide it, and another congestion control
/// fills it no better. If the limit drops excess packets, either of these fills it a little better.
pub(crate) fn one_rate(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    match trial.factor()? {
        Factor::MoreStreams | Factor::Crowd => Some(filled(model, load)),
        Factor::OtherCongestion => Some(of_other_congestion(model, load)),
        _ => bystander(model, trial),
    }
}

/// The effect of added work on a thread that is not the limit: none while the thread has spare time, otherwise a loss
/// of up to the missing time.
fn work(wanted: Option<f64>, added: f64) -> Range {
    // If the CPU use was not read, the thread may have no time left.
    let need = wanted.unwrap_or(1.0) + added;
    if need < NO_TIME_LEFT { EQUAL } else { Range { low: 0.95 / need.max(1.0), high: EQUAL.high } }
}

/// Whether `bytes` in flight for each stream carry the goodput with room to spare; the round trip is that of an empty
/// path.
fn roomy(load: &Load, bytes: u64) -> bool {
    let per_stream = load.goodput.mean / f64::from(load.streams.max(1));
    load.tcp.min_rtt.is_some_and(|rtt| bytes as f64 * 8.0 > 1.5 * per_stream * rtt.secs())
}

/// The effect of writes of half the size: twice the calls at most double a thread's work, so none while it has time.
fn cheap(wanted: Option<f64>) -> Option<Range> {
    wanted.filter(|w| w * 2.0 < NO_TIME_LEFT).map(|_| EQUAL)
}

/// The prediction for more streams, where each single stream is limited: a new stream carries as much as an old one,
/// or less where another limit follows.
pub(crate) fn per_stream(trial: &TrialPlan) -> Range {
    Range { low: GAIN, high: trial.stream_ratio() * 1.1 }
}
