//! Answers for directions in which nothing is wrong, or whose limit is unknown: which gain is still possible there.

use linerate_facts::advice::Advice;
use linerate_judge::causes::cause;
use linerate_judge::model::{DirectionModel, Model, Thread};
use linerate_judge::verdict::{Disturbance, Limit, Verdict};
use linerate_plan::path::{Direction, Side, Slowness};

/// Causes that only mean that a CPU of an end is full.
const CORES: [&str; 2] = ["sender-core", "receiver-core"];

/// Largest share of a full thread's time that its program may use for itself. Above it, the program sets the rate,
/// not the machine.
const OWN: f64 = 0.5;

/// Least gain of an advice, or of a disturbance's removal, that is shown in the answer.
const WORTH: f64 = 1.1;

/// Whether a direction is as fast as its ends: a CPU is full with the work of moving bytes, and no other cause of
/// slowness was found. A cause whose readings are missing may be a fault, so then the answer is no.
pub(super) fn is_as_fast_as_its_ends(model: &Model, verdict: &Verdict, limit: &Limit) -> bool {
    let direction = limit.direction;
    let Some(found) = model.direction(direction) else {
        return false;
    };
    let threads = match limit.cause {
        "sender-core" => &found.base.senders,
        "receiver-core" => &found.base.receivers,
        _ => return false,
    };
    let core = |id: &str| CORES.contains(&id);
    let answers = verdict.answers.iter().filter(|a| a.direction == direction);
    let limits = verdict.limits.iter().filter(|l| l.direction == direction);
    let mut disturbances = verdict.disturbances.iter();
    model.complete
        && model.slower() != Some(direction)
        && moves_bytes(threads)
        && limits.into_iter().all(|limit| core(limit.cause))
        && answers.into_iter().all(|a| match a.outcome {
            "finding" => core(a.cause),
            "unknown" => may_be_unread(a.cause),
            _ => true,
        })
        && disturbances.all(|d| d.direction != direction)
}

/// Whether a cause may go unread here: it only slows round trips, or few kernels count its readings.
fn may_be_unread(id: &str) -> bool {
    cause(id).is_some_and(|cause| cause.may_be_unread || cause.slows == Slowness::Latency)
}

/// Whether a limit is the only limit or disturbance that was found in its direction.
pub(super) fn is_alone(verdict: &Verdict, limit: &Limit) -> bool {
    let limits = verdict.limits.iter().filter(|l| l.direction == limit.direction);
    let disturbances = verdict.disturbances.iter();
    let mut disturbances = disturbances.filter(|d| d.direction == limit.direction);
    limits.count() == 1 && disturbances.next().is_none()
}

/// Whether the busiest thread spends most of its time in the kernel, which moves the bytes.
fn moves_bytes(threads: &[Thread]) -> bool {
    let busiest = threads
        .iter()
        .filter_map(|thread| Some((thread.busy?, thread.user?)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    busiest.is_some_and(|(_, user)| user <= OWN)
}

/// Advice to use as many streams as the sweep found useful, with their gain.
pub(super) fn more_streams(model: &Model, direction: &DirectionModel) -> Option<Advice> {
    let knee = direction.knee();
    let gain = knee.rate().mean / direction.base.rate().mean;
    if knee.streams <= direction.base.streams || gain < WORTH || !gain.is_finite() {
        return None;
    }
    let rerun = model.requested.run(&format!(" --streams {}", knee.streams));
    let what = format!("use {} streams, as was measured", knee.streams);
    Some(Advice::new(what).on(Side::Near, rerun).gain(Some(gain)))
}

/// The disturbance that took most goodput of a direction, if it took enough to be shown in the answer.
pub(super) fn disturbance(verdict: &Verdict, direction: Direction) -> Option<&Disturbance> {
    let gain = |d: &&Disturbance| d.gain().unwrap_or(0.0);
    let of = |d: &&Disturbance| d.direction == direction && gain(d) >= WORTH;
    let all = verdict.disturbances.iter().filter(of);
    all.max_by(|a, b| gain(a).total_cmp(&gain(b)))
}

/// The names of the causes that fit the readings of directions whose limit was not found.
pub(super) fn candidates(verdict: &Verdict, open: &[Direction]) -> Vec<&'static str> {
    let mut found = Vec::new();
    let fitting = verdict
        .answers
        .iter()
        .filter(|answer| answer.outcome == "finding" && open.contains(&answer.direction));
    for known in fitting.filter_map(|answer| cause(answer.cause)) {
        let limits = known.slows == Slowness::Rate && !known.only_disturbs;
        if limits && !found.contains(&known.name) {
            found.push(known.name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use linerate_plan::path::Place;

    use super::super::super::sample;
    use super::*;

    #[test]
    fn a_full_cpu_is_no_fault_where_nothing_else_was_found() {
        let is_sound = |change: &dyn Fn(&mut sample::Result)| {
            let mut result = sample::at_its_cpu();
            change(&mut result);
            let (_, model, verdict) = &result;
            is_as_fast_as_its_ends(model, verdict, &verdict.limits[0])
        };
        assert!(is_sound(&|_| ()));
        let user = |share| {
            move |(_, model, _): &mut sample::Result| {
                model.directions[0].base.senders[0].user = share;
            }
        };
        assert!(is_sound(&user(Some(OWN))));
        assert!(!is_sound(&user(Some(OWN + 0.01))), "its program is slow");
        assert!(!is_sound(&user(None)), "what was not read is not fine");
        assert!(!is_sound(&|(_, model, _)| model.complete = false));
        let other = |outcome| {
            move |(_, _, verdict): &mut sample::Result| {
                verdict.answers[0].cause = "small-packets";
                verdict.answers[0].outcome = outcome;
            }
        };
        assert!(is_sound(&other("clear")));
        assert!(!is_sound(&other("finding")));
        assert!(!is_sound(&other("unknown")), "it may be a fault");
        assert!(!is_sound(&|(_, model, _)| {
            model.directions[1].base.goodput.mean *= 2.1;
        }));
        assert!(!is_sound(&|(_, _, verdict)| {
            let (_, _, disturbed) = sample::disturbed();
            verdict.disturbances = disturbed.disturbances;
        }));
        assert!(!is_sound(&|(_, _, verdict)| {
            let mut other = verdict.limits[0].clone();
            (other.cause, other.side) = ("path-rate", Place::Path);
            verdict.limits.push(other);
        }));
    }

    #[test]
    fn more_streams_are_offered_where_the_sweep_gained() {
        let (_, model, _) = sample::unknowing();
        let mut direction = model.directions[0].clone();
        let mut gain = |ratio: f64| {
            direction.sweep = vec![sample::load(4, direction.base.goodput.mean * ratio)];
            more_streams(&model, &direction).map(|advice| advice.text())
        };
        assert_eq!(gain(1.09), None);
        let rerun = "on near: linerate run brook --streams 4";
        assert_eq!(gain(2.4).as_deref(), Some(rerun));
    }
}
