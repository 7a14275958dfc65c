//! The next limit, which is expected once the limits that were found are removed.

use std::cmp::Ordering::Equal;

use super::Limit;
use super::case::{Case, Party};
use crate::causes::{Cause, FULL, Finding};
use crate::model::{Ceiling, DirectionModel, Load, Model};
use linerate_plan::path::{Certainty, Place, Slowness, Stage};

/// Minimum ratio of goodput without a limit to the goodput with it, at which another limit may show.
const LIFTED: f64 = 1.1;

/// Share of the time, or of the missing goodput, that the next limit must explain. One load alone cannot distinguish a
/// limit of each flow from one rate for all, so half of the share is enough for a limit of each flow.
const MOST: f64 = 0.45;

/// Minimum ratio of the growth of data in flight to the growth of goodput, at which the additional data wait in a queue
/// on the path.
const STANDS: f64 = 1.1;

/// The share of the goodput that more streams must carry, after a limit was removed, to show whether they share one
/// rate.
const AS_MUCH: f64 = 0.9;

/// The next limit of a direction with a known limit. It is the limit of a load without the known one, else the lowest
/// ceiling that was not reached.
pub(super) fn next(
    model: &Model,
    causes: &[&'static Cause],
    dir: &DirectionModel,
    found: &[Limit],
) -> Option<Limit> {
    if found.is_empty() {
        return None;
    }
    behind(model, causes, dir, found).or_else(|| ceiling(causes, dir, found))
}

/// A load that carried more than the limits that were found allow, and the ratio of its goodput to that of the base
/// load.
struct Beyond<'a> {
    load: &'a Load,
    change: String,
    gain: f64,
    /// Whether the load differs in more than the removed limit: several streams share the CPUs that one stream had
    /// alone.
    crowded: bool,
}

/// The load of a trial that removed the limit, or the load with the number of streams that carried most.
fn beyond<'a>(model: &'a Model, dir: &'a DirectionModel, found: &[Limit]) -> Option<Beyond<'a>> {
    let trials = found.iter().filter_map(|limit| limit.trial.as_ref());
    let lifted = trials.filter_map(|decided| {
        let trial = model.trials.iter().find(|t| t.plan.id == decided.id)?;
        let load = trial.changed.as_ref()?;
        Some(Beyond {
            load,
            change: decided.words.to_owned(),
            gain: decided.effect.mid,
            crowded: load.streams > dir.base.streams,
        })
    });
    let knee = dir.knee();
    let streams = Beyond {
        load: knee,
        change: format!("{} streams", knee.streams),
        gain: knee.rate().mean / dir.base.rate().mean,
        crowded: true,
    };
    let all = lifted.chain([streams]);
    // A trial that removes one limit is better evidence than the largest number of streams.
    all.filter(|beyond| beyond.gain >= LIFTED)
        .min_by(|a, b| (a.crowded, b.gain).partial_cmp(&(b.crowded, a.gain)).unwrap_or(Equal))
}

/// Whether a larger window or buffer fills without a gain: the data in flight grew more than goodput, and the
/// additional data wait in a queue on the path.
fn stands(before: &Load, beyond: &Load) -> bool {
    let flight = |load: &Load| Some(load.tcp.in_flight?.0 as f64 * f64::from(load.streams));
    let trip = |load: &Load| Some(flight(load)? / load.goodput.mean.max(1.0));
    let trips = trip(before).zip(trip(beyond));
    trips.is_some_and(|(before, beyond)| beyond >= before * STANDS)
}

/// A load whose window or buffer filled without a gain: the time that it limited the sender is counted as limited by
/// the network.
fn relieved(load: &Load) -> Load {
    let mut load = load.clone();
    let tcp = &mut load.tcp;
    let held = tcp.rwnd_limited.unwrap_or(0.0) + tcp.sndbuf_limited.unwrap_or(0.0);
    tcp.network = tcp.network.map(|share| (share + held).min(1.0));
    tcp.rwnd_limited = tcp.rwnd_limited.map(|_| 0.0);
    tcp.sndbuf_limited = tcp.sndbuf_limited.map(|_| 0.0);
    load
}

/// Whether measurements show that a rate limits the whole load or each of its streams: more streams carried about as
/// much, or more.
fn is_parted(sweep: &[Load], load: &Load) -> bool {
    let most = sweep.iter().map(|l| l.goodput.mean).fold(0.0, f64::max);
    most >= load.goodput.mean * AS_MUCH
}

/// Whether one stream could carry as much as many streams did, with the largest buffers that both ends allow. Otherwise
/// buffers are the next limit, which many streams do not show.
fn fits_one_stream(model: &Model, dir: &DirectionModel, many: &Load) -> bool {
    let most = |side, is_sender: bool| {
        let limits = model.host(side)?.facts.buffers;
        let [.., most] = if is_sender { limits.tcp_wmem } else { limits.tcp_rmem }?;
        // Half of a buffer's memory holds payload.
        Some(most as f64 / 2.0)
    };
    let (sender, receiver) = (dir.direction.sender(), dir.direction.receiver());
    let needs = dir.base.tcp.min_rtt.map(|rtt| many.goodput.mean / 8.0 * rtt.secs());
    let fits = |room: Option<f64>| room.zip(needs).is_some_and(|(room, needs)| room >= needs);
    fits(most(sender, true)) && fits(most(receiver, false))
}

/// The limit of the load that carried more than the limits found. `None` if it is one of these: that limit then applies
/// again, at a higher rate.
fn behind(
    model: &Model,
    causes: &[&'static Cause],
    dir: &DirectionModel,
    found: &[Limit],
) -> Option<Limit> {
    let beyond = beyond(model, dir, found)?;
    let more = dir.sweep.iter();
    let more = more.filter(|load| load.streams > beyond.load.streams);
    let sweep: Vec<Load> = more.cloned().collect();
    let parted = is_parted(&sweep, beyond.load);
    let stands = stands(&dir.base, beyond.load);
    let lifted = Model {
        directions: vec![DirectionModel {
            base: if stands { relieved(beyond.load) } else { beyond.load.clone() },
            sweep,
            ..dir.clone()
        }],
        trials: Vec::new(),
        ..model.clone()
    };
    let case = Case::of(&lifted, dir.direction, Slowness::Rate, causes);
    // A standing queue on the path already explains that congestion control slows down.
    let reason = |p: &&Party| !(stands && p.cause.slowed_by_queue);
    let (party, finding) = foremost(case.parties.iter().filter(reason))?;
    if beyond.crowded && !(finding.enough && fits_one_stream(model, dir, beyond.load)) {
        return None;
    }
    if party.cause.stage == Stage::Net && !parted {
        return None;
    }
    let known = found.iter().any(|limit| limit.cause == party.cause.id);
    (!known).then(|| Limit {
        metric: dir.base.measure(),
        cause: party.cause.id,
        stage: party.cause.stage,
        side: finding.side,
        direction: dir.direction,
        certainty: Certainty::Supported,
        evidence: evidence(&beyond, finding),
        trial: None,
        advice: party.cause.advice(&lifted, dir.direction),
    })
}

/// The remaining cause that explains most of a load.
fn foremost<'a>(parties: impl Iterator<Item = &'a Party>) -> Option<(&'a Party, &'a Finding)> {
    parties
        .filter(|p| p.stands())
        .filter_map(|p| match &p.answer {
            Ok(f) if f.share >= MOST => Some((p, f)),
            _ => None,
        })
        // Causes with enough evidence come before rivals without it; among equals, the first in the list is used.
        .reduce(|a, b| {
            let more = (b.1.enough, b.1.share) > (a.1.enough, a.1.share);
            if more { b } else { a }
        })
}

fn evidence(beyond: &Beyond<'_>, finding: &Finding) -> Vec<String> {
    let first = finding.evidence.first().map_or("", String::as_str);
    vec![format!("{} gave x{:.2}, and then {first}", beyond.change, beyond.gain)]
}

/// The lowest ceiling that was not reached: removing limits below it cannot exceed it.
fn ceiling(causes: &[&'static Cause], dir: &DirectionModel, found: &[Limit]) -> Option<Limit> {
    // A slot may be a known limit inside of its interval, and a shaper just below its ceiling.
    let named = |cause: &Cause| found.iter().any(|l| l.cause == cause.id);
    let lowest = dir.ceilings.iter().find_map(|ceiling| {
        let cause = cause_of(causes, ceiling)?;
        let above = ceiling.reached(&dir.base) < FULL && !named(cause);
        above.then_some((ceiling, cause))
    });
    let (ceiling, cause) = lowest?;
    Some(limit_of(ceiling, cause, dir))
}

fn limit_of(ceiling: &Ceiling, cause: &Cause, dir: &DirectionModel) -> Limit {
    Limit {
        metric: dir.base.measure(),
        cause: cause.id,
        stage: ceiling.stage,
        side: match ceiling.stage {
            Stage::Net => Place::Path,
            _ => ceiling.side,
        },
        direction: dir.direction,
        certainty: Certainty::Supported,
        evidence: vec![format!(
            "{} carries {} = {}",
            ceiling.name,
            ceiling.formula,
            ceiling.words()
        )],
        trial: None,
        advice: Vec::new(),
    }
}

/// The cause of goodput that reaches this ceiling: the one of its stage, else that of the wire.
fn cause_of(causes: &[&'static Cause], ceiling: &Ceiling) -> Option<&'static Cause> {
    let of = |stage| {
        let mut causes = causes.iter().copied();
        causes.find(|cause| cause.ceiling == Some(stage))
    };
    of(ceiling.stage).or_else(|| of(Stage::Net))
}
