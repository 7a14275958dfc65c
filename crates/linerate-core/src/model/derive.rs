//! From a record to its model.

use std::collections::HashSet;

use super::ceilings::ceilings;
use super::datagrams::lost;
use super::ends::{end, index, is_alone, receiving, sending};
use super::interruptions::{outages, outages_beside, stalled};
use super::load::{judged_rate, load, slice_goodput, stream_set};
use super::readings::{Window, mean, per_second};
use super::tcp::sent;
use super::{DirectionModel, Estimate, Latency, Load, Model, PERCENTILES, TrialModel};
use crate::factor::Factor;
use crate::facts::Gap;
use crate::metric as m;
use crate::path::{Direction, Side};
use crate::plan::{Pattern, Purpose};
use crate::record::{End, Histogram, Record, Set, Step, TrialPlan};
use crate::stats::{Comparison, Count, merge, percentile, samples, share_ratio};
use crate::units::Nanos;

/// Derives the model of a record.
pub fn derive(record: &Record) -> Model {
    let directions: Vec<DirectionModel> = Direction::ALL
        .iter()
        .filter_map(|d| direction(record, *d))
        .collect();
    let same_machine = same_machine(record);
    Model {
        hosts: record.hosts.clone(),
        same_machine,
        idle: first(record, |p| matches!(p, Purpose::IdleLatency))
            .and_then(|step| latency_of(record, step)),
        both: both(record),
        trials: record
            .trials
            .iter()
            .filter_map(|t| trial(record, t.id))
            .collect(),
        directions,
        gaps: gaps(record),
        complete: matches!(record.end, Some(End::Complete)),
        watched: false,
        alone: is_alone(record),
    }
}

pub(super) fn first(record: &Record, is: impl Fn(&Purpose) -> bool) -> Option<&Step> {
    record.steps.iter().find(|s| is(&s.plan.purpose))
}

pub(super) fn same_machine(record: &Record) -> bool {
    match record.hosts.as_slice() {
        [near, far, ..] => {
            !near.facts.boot_id.is_empty() && near.facts.boot_id == far.facts.boot_id
        }
        _ => true,
    }
}

/// Every round trip of the ping-pong sets of a step.
pub fn round_trips(record: &Record, step: &Step) -> Option<Histogram> {
    let timed = |set: u32| {
        record
            .sets
            .iter()
            .any(|s| s.plan.id == set && matches!(s.plan.pattern, Pattern::PingPong { .. }))
    };
    let all = step
        .ends
        .iter()
        .flat_map(|e| &e.latencies)
        .filter(|h| timed(h.set));
    merge(all)
}

/// Round trips a second that were answered while a step counted; `None` where that was not read.
pub fn round_trip_rate(record: &Record, step: &Step) -> Option<f64> {
    let timed = round_trips(record, step)?.set;
    let set = record.sets.iter().find(|set| set.plan.id == timed)?;
    let Pattern::PingPong { size, .. } = set.plan.pattern else {
        return None;
    };
    let subject = format!("s{timed}/tx0");
    let mut workers = end(step, Side::Near)?.about(m::WORKER_BYTES.source, |s| s == subject);
    let bytes = per_second(workers.next()?, m::WORKER_BYTES, Window::of(step))?;
    Some(bytes / size.0.max(1) as f64)
}

/// Percentiles of the round trips of a step.
pub fn latency_of(record: &Record, step: &Step) -> Option<Latency> {
    let merged = round_trips(record, step)?;
    let percentiles = PERCENTILES
        .iter()
        .filter_map(|p| Some((*p, Nanos(percentile(&merged, p / 100.0)?))))
        .collect();
    Some(Latency {
        percentiles,
        samples: samples(&merged),
        least: Nanos(merged.counts.iter().map(|&(value, _)| value).min()?),
    })
}

fn direction(record: &Record, direction: Direction) -> Option<DirectionModel> {
    let base = record
        .steps
        .iter()
        .filter(|s| matches!(s.plan.purpose, Purpose::Base { direction: d } if d == direction))
        .find_map(|s| load(record, s, direction))?;
    let started = |step: &&Step| has_started(step, base.tcp.min_rtt);
    let mut sweep: Vec<Load> = record
        .steps
        .iter()
        .filter(|s| matches!(s.plan.purpose, Purpose::Sweep { direction: d } if d == direction))
        .filter(started)
        .filter_map(|s| load(record, s, direction))
        .collect();
    let mut base = base;
    let loaded = |s: &&Step| stream_set(record, s, direction).is_some();
    base.contended |= record.steps.iter().filter(loaded).any(contended);
    let is_base = |s: &Step| matches!(s.plan.purpose, Purpose::Base { .. });
    let others = record.steps.iter().filter(loaded).filter(|s| !is_base(s));
    base.interruptions.extend(outages_beside(others));
    sweep.sort_by_key(|l| l.streams);
    Some(DirectionModel {
        direction,
        ceilings: ceilings(
            &record.hosts,
            direction,
            base.packets,
            base.shapers.as_deref().unwrap_or_default(),
            base.goodput.mean,
        ),
        base,
        sweep,
    })
}

/// Round trips after which streams have begun: they double what is in flight with each, from ten segments on, so that
/// 12 of them make 50 MB of it.
//= RFC 6928, section 2; RFC 5681, section 3.1
const BEGIN: u64 = 12;

/// Whether new streams had the time to begin in a step: before, they carry little, however much the path does.
fn has_started(step: &Step, rtt: Option<Nanos>) -> bool {
    let took = step.plan.washout.0.saturating_add(step.plan.measure.0);
    took >= rtt.unwrap_or_default().0.saturating_mul(BEGIN)
}

fn both(record: &Record) -> Vec<(Direction, Estimate)> {
    let Some(step) = first(record, |p| matches!(p, Purpose::Both)) else {
        return Vec::new();
    };
    Direction::ALL
        .iter()
        .filter_map(|d| Some((*d, load(record, step, *d)?.goodput)))
        .collect()
}

/// The rate that is judged of each slice of a trial, in order: goodput, or operations.
pub fn slices(record: &Record, id: u32) -> Vec<(bool, f64)> {
    each_slice(record, id, |step, set, direction| {
        judged_rate(receiving(record, step, direction)?, set, Window::of(step))
    })
}

/// Goodput of each slice of a trial, in order.
fn goodputs(record: &Record, id: u32) -> Vec<(bool, f64)> {
    each_slice(record, id, |step, set, direction| {
        let receiving = receiving(record, step, direction)?;
        slice_goodput(receiving, set.plan.id, Window::of(step))
    })
}

/// Segments sent, and sent again, in each slice of a trial, in order; datagrams sent, and lost.
fn losses(record: &Record, id: u32) -> Vec<(bool, Count)> {
    each_slice(record, id, |step, set, direction| {
        let window = Window::of(step);
        let again = sent(end(step, direction.sender())?, set.plan.id, window);
        again.or_else(|| lost(end(step, direction.receiver())?, set.plan.id, window))
    })
}

/// The median round trip beside each slice of a trial, in order. A slice is one value, however few round
/// trips it held: what they scatter is in the interval of the slices.
fn medians(record: &Record, id: u32) -> Vec<(bool, f64)> {
    each_slice(record, id, |step, _, _| {
        let timed = round_trips(record, step)?;
        let middle = samples(&timed).div_ceil(2);
        let mut seen = 0_u64;
        let median = timed.counts.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= middle
        });
        median.map(|(value, _)| *value as f64)
    })
}

/// What `of` says of the load of each undisturbed slice of a trial: step, set and direction.
fn each_slice<T>(
    record: &Record,
    id: u32,
    of: impl Fn(&Step, &Set, Direction) -> Option<T>,
) -> Vec<(bool, T)> {
    let Some(plan) = record.trials.iter().find(|t| t.id == id) else {
        return Vec::new();
    };
    let slice = |step: &Step| match step.plan.purpose {
        Purpose::Slice { trial, changed } if trial == id && undisturbed(step) => {
            let set = stream_set(record, step, plan.direction)?;
            Some((changed, of(step, set, plan.direction)?))
        }
        _ => None,
    };
    record.steps.iter().filter_map(slice).collect()
}

/// Whether nothing but the load was on the path, and all of it was; or nothing got through.
pub fn undisturbed(step: &Step) -> bool {
    (step.trouble.is_none() || stalled(step)) && !contended(step) && outages(step).is_empty()
}

/// Whether another session loaded a host meanwhile.
pub(super) fn contended(step: &Step) -> bool {
    step.ends.iter().any(|e| e.other_sessions > 0)
}

/// CPU time of the sending threads for each byte, in each slice of a trial, in order.
fn costs(record: &Record, id: u32) -> Vec<(bool, f64)> {
    each_slice(record, id, |step, set, direction| {
        let window = Window::of(step);
        let receiving = receiving(record, step, direction)?;
        let bytes = slice_goodput(receiving, set.plan.id, window)? / 8.0;
        let prefix = format!("s{}/tx", set.plan.id);
        let threads = sending(record, step, direction)?.about("thread", |s| s.starts_with(&prefix));
        let ran: Option<Vec<f64>> = threads
            .map(|t| per_second(t, m::THREAD_RUN, window))
            .collect();
        let ran: f64 = ran.filter(|all| !all.is_empty())?.iter().sum();
        (bytes > 0.0).then(|| ran / 1e9 / bytes)
    })
}

/// The effect of slices that came in their order; a slice out of order ends the comparison.
pub fn effect(plan: &TrialPlan, slices: &[(bool, f64)]) -> Comparison {
    let mut comparison = Comparison::new(plan.max_blocks as usize);
    for (changed, value) in slices {
        if comparison.push(*changed, *value).is_err() {
            break;
        }
    }
    comparison
}

/// A trial as far as it went; `None` for one that is not in the record.
pub fn trial(record: &Record, id: u32) -> Option<TrialModel> {
    let plan = record.trials.iter().find(|t| t.id == id)?;
    let slices = slices(record, id);
    let goodput = of_each(&goodputs(record, id)).map(Option::unwrap_or_default);
    let [before, changed] = [false, true].map(|changed| last(record, plan, changed));
    let as_planned =
        made_as_planned(record, id) && took_effect(plan, before.as_ref(), changed.as_ref());
    let losses = losses(record, id);
    let loss = share_ratio(&losses, plan.max_blocks as usize);
    Some(TrialModel {
        plan: plan.clone(),
        effect: effect(plan, &slices).interval().filter(|_| as_planned),
        slices: slices.len() as u32,
        goodput,
        cost: of_each(&costs(record, id)),
        lost: [false, true].map(|changed| lost_of(&losses, changed)),
        changed,
        loss: loss.filter(|_| as_planned),
        latency: effect(plan, &medians(record, id))
            .interval()
            .filter(|_| as_planned),
    })
}

/// Share of all segments of one setting that were sent again.
fn lost_of(losses: &[(bool, Count)], changed: bool) -> Option<f64> {
    let own = || losses.iter().filter(|(setting, _)| *setting == changed);
    let all: f64 = own().map(|(_, count)| count.of).sum();
    let lost: f64 = own().map(|(_, count)| count.events).sum();
    (all > 0.0).then(|| lost / all)
}

/// The mean of each setting.
fn of_each(slices: &[(bool, f64)]) -> [Option<f64>; 2] {
    [false, true].map(|changed| {
        let of = slices.iter().filter(|s| s.0 == changed);
        mean(of.map(|s| s.1))
    })
}

/// Whether the change was one: a kernel that copies what it was asked not to has changed nothing that a
/// trial could be about, and has the trouble of both; a connection may keep its route's congestion control, and
/// a window its route's clamp, whatever its buffer is.
fn took_effect(plan: &TrialPlan, before: Option<&Load>, changed: Option<&Load>) -> bool {
    match plan.factor() {
        Some(Factor::LargerWindow | Factor::HostWindow) => !stayed(before, changed),
        Some(Factor::HalfWindow) => !stayed(changed, before),
        Some(Factor::ZeroCopy) => changed.is_some_and(Load::uncopied),
        Some(Factor::OtherCongestion) => {
            changed.map(|load| &load.made[0].congestion) == plan.after.congestion.as_ref()
        }
        _ => true,
    }
}

/// A window that grows by less has not grown.
const GROWN: f64 = 1.05;

/// Whether the window that is offered is no larger in the second load; not where it was not told.
pub(crate) fn stayed(small: Option<&Load>, large: Option<&Load>) -> bool {
    let window = |load: Option<&Load>| Some(load?.tcp.window?.0 as f64);
    window(small)
        .zip(window(large))
        .is_some_and(|(small, large)| large < small * GROWN)
}

/// The load of the last slice of a trial that was made with its change, or without.
fn last(record: &Record, plan: &TrialPlan, with: bool) -> Option<Load> {
    let of_trial = |p: &Purpose| matches!(p, Purpose::Slice { trial, changed } if *trial == plan.id && *changed == with);
    let mut steps = record.steps.iter().rev();
    let step = steps.find(|s| of_trial(&s.plan.purpose) && undisturbed(s))?;
    load(record, step, plan.direction)
}

/// Whether both settings of a trial are what was asked for: a change that was refused is no change.
fn made_as_planned(record: &Record, id: u32) -> bool {
    record
        .steps
        .iter()
        .filter(|s| matches!(s.plan.purpose, Purpose::Slice { trial, .. } if trial == id))
        .flat_map(|s| &s.plan.sets)
        .filter_map(|set| record.sets.iter().find(|s| s.plan.id == *set))
        .all(|set| set.ends.iter().all(|e| e.gaps.is_empty()) && placed(set))
}

/// Whether threads are kept where the plan says: an older far end does not know that part of it.
fn placed(set: &Set) -> bool {
    let Pattern::Stream { direction } = set.plan.pattern else {
        return true;
    };
    let knobs = &set.plan.knobs;
    let asked = [
        (direction.sender(), &knobs.sender_cpus),
        (direction.receiver(), &knobs.receiver_cpus),
    ];
    asked.into_iter().all(|(side, cpus)| {
        let end = set.ends.get(index(side));
        cpus.is_empty() || end.is_some_and(|end| end.cpus == *cpus)
    })
}

/// Gaps of facts, sets and steps, once each.
fn gaps(record: &Record) -> Vec<(Side, Gap)> {
    let facts = record.hosts.iter().map(|h| (h.side, &h.facts.gaps));
    let sets = record.sets.iter().flat_map(|s| {
        s.ends
            .iter()
            .zip([Side::Near, Side::Far])
            .map(|(e, side)| (side, &e.gaps))
    });
    let steps = record.steps.iter().flat_map(|s| {
        s.ends
            .iter()
            .zip([Side::Near, Side::Far])
            .map(|(e, side)| (side, &e.gaps))
    });
    // An end may tell as many as an answer holds.
    let mut seen: HashSet<(Side, &Gap)> = HashSet::new();
    let all = facts.chain(sets).chain(steps);
    let each = all.flat_map(|(side, gaps)| gaps.iter().map(move |gap| (side, gap)));
    each.filter(|one| seen.insert(*one))
        .map(|(side, gap)| (side, gap.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StepPlan;

    #[test]
    fn streams_have_begun_after_twelve_round_trips() {
        let step = Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::Both,
                sets: Vec::new(),
                washout: Nanos::from_millis(200),
                measure: Nanos::from_millis(1_000),
                tick: Nanos::from_millis(100),
            },
            began: Nanos(0),
            ends: Vec::new(),
            clock: None,
            trouble: None,
        };
        let after = |millis| has_started(&step, Some(Nanos::from_millis(millis)));
        assert!(after(0) && after(100) && !after(101));
        assert!(has_started(&step, None), "a round trip that nobody read");
    }
}
