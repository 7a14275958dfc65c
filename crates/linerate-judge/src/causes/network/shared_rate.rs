//! A rate limit that all streams of a load share, whatever causes it.

use crate::causes::network::ack_way;
use crate::causes::network::ack_way::held_by_network;
use crate::causes::network::contended;
use crate::causes::network::held::{Held, SAME, no_rate};
use crate::causes::network::path_reordering;
use crate::causes::prelude::*;
use crate::causes::udp::datagrams::{self, on_the_way};
use crate::signs::crowd::GROWS;
use crate::signs::lossy::{
    erratic, filled, lost, lost_in_words, marked, of_a_rate, often_retransmitted,
};
use crate::signs::queue::standing_queue;
use linerate_units::Rate;
use linerate_units::stats::Interval;

/// The factors whose trials can prove a rate limit that all traffic shares.
pub(crate) const DECIDED_BY: &[Factor] = &[Factor::MoreStreams, Factor::Paced, Factor::Crowd];

/// The least factor by which the rate sent must grow with more streams, before their goodput shows a rate limit.
const MORE: f64 = 1.2;

/// Minimum rate of other traffic on a port, over the rate of the load, at which the path's rate is reported as higher
/// than that of the load.
const OTHERS: f64 = 0.05;

/// The result for any load, whether the rate fell during the run or not.
pub(crate) fn of_any(model: &Model, direction: Direction) -> Answer {
    of_datagrams(model, direction).unwrap_or_else(|| of_connections(model, direction))
}

/// The result for a load of connections, whatever fills the rate.
pub(crate) fn of_connections(model: &Model, direction: Direction) -> Answer {
    let held = held_by_network(model, direction)?;
    path_reordering::alone(model, direction)
        .map_or_else(|| finding(model, direction, &held), |why| Err(clear(why)))
}

fn finding(model: &Model, direction: Direction, held: &Held<'_>) -> Answer {
    let load = held.load;
    let mut evidence = vec![held.why.clone()];
    let mut same = false;
    let sweep = model.direction(direction).map(|d| d.sweep.iter());
    let gains = sweep.into_iter().flatten().map(|more| (more, gain(model, direction, load, more)));
    let gains: Vec<(&Load, Interval)> = gains.collect();
    let sure = gains.iter().max_by(|a, b| a.1.low.total_cmp(&b.1.low));
    if let Some((more, gain)) = sure.filter(|g| g.1.low > SAME.max(filled(model, load).high)) {
        return Err(clear(carried(more, gain.mid)));
    }
    // If twice the streams carried no more, a short measurement of even more streams counts only if it is certain.
    let twice = |more: &Load| Some(more.streams) == load.streams.checked_mul(2);
    let same_in_twice = gains.iter().find(|g| twice(g.0) && g.1.mid <= SAME);
    let most = gains.iter().max_by(|a, b| a.1.mid.total_cmp(&b.1.mid));
    if let Some((more, gain)) = same_in_twice.or(most) {
        let gain = gain.mid;
        evidence.push(if gain > SAME {
            format!(
                "{} streams carried {gain:.2} times as much, which is not clearly more than one rate",
                more.streams
            )
        } else {
            format!(
                "{} streams carried no more than {}: {}",
                more.streams,
                load.streams,
                Rate((load.goodput.mean * gain) as u64)
            )
        });
        same = gain <= SAME;
    }
    let queue = standing_queue(model, load);
    evidence.extend(queue.clone());
    let lossy = lost(load);
    evidence.extend(lossy.map(|share| lost_in_words(load, share)));
    let marked = marked(load);
    evidence.extend(marked.map(|r| format!("a queue marked {} of the segments (ECN)", percent(r))));
    evidence.extend(shared(load));
    Ok(Finding {
        side: Place::Path,
        share: held.share,
        // A queue on the path of the acknowledgements looks like one on the path of the payload.
        enough: same
            && !ack_way::may_hold(model, direction)
            && (queue.is_some()
                || held.lifted
                || (lossy.and(often_retransmitted(load)).or(marked).is_some() && !erratic(load))),
        reached: false,
        evidence,
    })
}

/// The result for a load of datagrams. They are not slowed down, so the path loses those that exceed its rate. `None`
/// for a load of connections.
fn of_datagrams(model: &Model, direction: Direction) -> Option<Answer> {
    let dir = model.direction(direction)?;
    let reported = dir.base.datagrams.as_ref()?;
    let way = match on_the_way(model, direction, (&dir.base, reported)) {
        Ok(way) => way,
        Err(answer) => return Some(Err(answer)),
    };
    if let Some(silent) = dir.base.silent() {
        return Some(Err(clear(no_rate(silent))));
    }
    let gains = || dir.sweep.iter().map(|more| (more, gain(model, direction, &dir.base, more)));
    if let Some((more, gain)) = gains().find(|(_, gain)| gain.low > SAME) {
        return Some(Err(clear(carried(more, gain.mid))));
    }
    let sent_more = |more: &Load| {
        let more_datagrams = more.datagrams.as_ref();
        more_datagrams
            .is_some_and(|m| m.sent >= reported.sent * MORE && datagrams::surely_on_the_way(m))
    };
    let same = gains().find(|(more, gain)| sent_more(more) && gain.mid <= SAME);
    let more = same.map(|(more, gain)| {
        let sent = more.datagrams.map_or(0.0, |m| m.sent) / reported.sent;
        let streams = more.streams;
        format!(
            "{streams} streams sent {sent:.2} times as much, and {:.2} times as much arrived",
            gain.mid
        )
    });
    let is_same = more.is_some();
    let evidence = std::iter::once(datagrams::words(reported, way, "lost on the path"))
        .chain(more)
        .chain(shared(&dir.base))
        .collect();
    Some(Ok(Finding::at(Place::Path, way, evidence)
        .enough(is_same && datagrams::surely_on_the_way(reported))))
}

fn carried(more: &Load, gain: f64) -> String {
    format!("{} streams carried {gain:.2} times as much", more.streams)
}

/// A remark that other traffic uses a part of the rate, if that part is too small to invalidate the measurement.
fn shared(load: &Load) -> Option<String> {
    let few = OTHERS..contended::FOREIGN;
    let foreign = load.foreign.filter(|f| few.contains(&f.share))?;
    Some(format!(
        "the port of {} carried {} as many bytes of others",
        foreign.side.name(),
        percent(foreign.share)
    ))
}

/// The ratio of goodput of `more` to `load`. It is the effect of the trial with as many streams, if it was made, as its
/// slices alternate; else it is from one short measurement.
fn gain(model: &Model, direction: Direction, load: &Load, more: &Load) -> Interval {
    let tried = model.tried(direction, Factor::MoreStreams);
    let tried = tried.filter(|t| t.plan.after.streams == more.streams);
    tried.and_then(|t| t.effect).unwrap_or_else(|| more.over(load))
}

pub(crate) fn is_last(model: &Model, direction: Direction) -> bool {
    // Datagrams do not show a standing queue: their loss decides.
    let load = model.direction(direction).map(|dir| &dir.base);
    let load = load.filter(|load| load.has(Feature::Connections));
    load.is_some_and(|load| standing_queue(model, load).is_some())
}

pub(crate) fn predict_loss(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::Crowd => Some(GROWS),
        _ => of_a_rate(model, trial),
    }
}

pub(crate) fn decides(model: &Model, trial: &TrialPlan) -> bool {
    // More streams of datagrams carry no more either if their hosts have no time to send more.
    let datagrams =
        model.direction(trial.direction).is_some_and(|d| d.base.has(Feature::Datagrams));
    match trial.factor() {
        Some(Factor::MoreStreams) => !datagrams,
        factor => matches!(factor, Some(Factor::Paced | Factor::Crowd)),
    }
}
