//! Trials: the values of each slice, and the effect of the change.

use super::datagrams::lost;
use super::derive::{round_trips, undisturbed};
use super::ends::{end, index, receiving, sending, stream_set};
use super::goodput::{judged_rate, slice_goodput};
use super::readings::{Window, mean, per_second};
use super::tcp::sent;
use super::{Load, TrialModel};
use linerate_facts::metric as m;
use linerate_plan::factor::Factor;
use linerate_plan::path::Direction;
use linerate_plan::{Pattern, Purpose};
use linerate_record::{Record, Set, Step, TrialPlan};
use linerate_units::stats::{Comparison, Count, samples, share_ratio};

/// The values of an undisturbed slice; `None` for values that were not read.
#[derive(Debug)]
pub(super) struct Slice {
    /// Whether the slice was measured with the change.
    pub(super) changed: bool,
    /// The rate that is judged: goodput, or operations per second.
    pub(super) rate: Option<f64>,
    /// Goodput of the slice, in bits per second.
    goodput: Option<f64>,
    /// Number of segments retransmitted, and of all segments sent; for datagrams, of those lost and sent.
    loss: Option<Count>,
    /// The median round trip during the slice, in nanoseconds. A slice gives one value, however many round trips were
    /// timed: their variation is part of the variation between slices.
    round_trip: Option<f64>,
    /// CPU time of the sending threads for each byte that arrived, in seconds.
    cost: Option<f64>,
}

impl Slice {
    /// The values of a step that is a slice; `None` if the step is no slice, or was disturbed.
    pub(super) fn of(record: &Record, step: &Step, direction: Direction) -> Option<Self> {
        let Purpose::Slice { changed, .. } = step.plan.purpose else {
            return None;
        };
        let judged = stream_set(record, step, direction);
        let set = judged.map(|set| set.plan.id);
        let window = Window::of(step);
        undisturbed(step).then(|| Self {
            changed,
            rate: judged.and_then(|set| {
                judged_rate(record, receiving(record, step, direction)?, set, window)
            }),
            goodput: set.and_then(|set| goodput(record, step, set, direction)),
            loss: set.and_then(|set| loss(step, set, direction)),
            round_trip: set.and_then(|_| median(record, step)),
            cost: set.and_then(|set| cost(record, step, set, direction)),
        })
    }
}

fn goodput(record: &Record, step: &Step, set: u32, direction: Direction) -> Option<f64> {
    slice_goodput(receiving(record, step, direction)?, set, Window::of(step))
}

fn loss(step: &Step, set: u32, direction: Direction) -> Option<Count> {
    let window = Window::of(step);
    let retransmitted = sent(end(step, direction.sender())?, set, window);
    retransmitted.or_else(|| lost(end(step, direction.receiver())?, set, window))
}

fn median(record: &Record, step: &Step) -> Option<f64> {
    let timed = round_trips(record, step)?;
    let middle = samples(&timed).div_ceil(2);
    let mut seen = 0_u64;
    let median = timed.counts.iter().find(|(_, count)| {
        seen = seen.saturating_add(*count);
        seen >= middle
    });
    median.map(|(value, _)| *value as f64)
}

fn cost(record: &Record, step: &Step, set: u32, direction: Direction) -> Option<f64> {
    let bytes = goodput(record, step, set, direction)? / 8.0;
    let prefix = format!("s{set}/tx");
    let threads = sending(record, step, direction)?.about("thread", |s| s.starts_with(&prefix));
    let ran: Option<Vec<f64>> =
        threads.map(|t| per_second(t, m::THREAD_RUN, Window::of(step))).collect();
    let ran: f64 = ran.filter(|all| !all.is_empty())?.iter().sum();
    (bytes > 0.0).then(|| ran / 1e9 / bytes)
}

/// The effect of a trial from its slices, in their planned order. A slice out of order ends the comparison.
pub fn effect(plan: &TrialPlan, slices: &[(bool, f64)]) -> Comparison {
    let mut comparison = Comparison::new(plan.max_blocks as usize);
    for (changed, value) in slices {
        if comparison.push(*changed, *value).is_err() {
            break;
        }
    }
    comparison
}

/// The model of a trial from its undisturbed slices, in order. `last` returns the load of the last slice with the
/// change, or of the last one without.
pub(super) fn trial_of<'a>(
    record: &Record,
    plan: &TrialPlan,
    slices: &[&Slice],
    last: impl Fn(bool) -> Option<&'a Load>,
) -> TrialModel {
    // Operations of another size are compared by their bytes.
    let is_same = plan.before.write_size == plan.after.write_size;
    let rates = each(slices, |slice| if is_same { slice.rate } else { slice.goodput });
    let losses = each(slices, |slice| slice.loss);
    let loss = share_ratio(&losses, plan.max_blocks as usize);
    let as_planned = made_as_planned(record, plan.id) && took_effect(plan, &last);
    let effect_of = |values: &[(bool, f64)]| {
        let interval = effect(plan, values).interval();
        interval.filter(|_| as_planned)
    };
    TrialModel {
        plan: plan.clone(),
        effect: effect_of(&rates),
        slices: rates.len() as u32,
        goodput: of_each(&each(slices, |slice| slice.goodput)).map(Option::unwrap_or_default),
        cost: of_each(&each(slices, |slice| slice.cost)),
        lost: [false, true].map(|changed| lost_of(&losses, changed)),
        changed: last(true).cloned(),
        loss: loss.filter(|_| as_planned),
        latency: effect_of(&each(slices, |slice| slice.round_trip)),
    }
}

/// The values of one figure over the slices that have it, each with the mark whether the slice had the change.
fn each<T>(slices: &[&Slice], figure: impl Fn(&Slice) -> Option<T>) -> Vec<(bool, T)> {
    let slices = slices.iter();
    slices.filter_map(|slice| Some((slice.changed, figure(slice)?))).collect()
}

/// Share of all segments in one setting that were retransmitted.
fn lost_of(losses: &[(bool, Count)], changed: bool) -> Option<f64> {
    let own = || losses.iter().filter(|(setting, _)| *setting == changed);
    let all: f64 = own().map(|(_, count)| count.of).sum();
    let lost: f64 = own().map(|(_, count)| count.events).sum();
    (all > 0.0).then(|| lost / all)
}

/// The mean value of the slices without the change, and of those with it.
fn of_each(slices: &[(bool, f64)]) -> [Option<f64>; 2] {
    [false, true].map(|changed| {
        let of = slices.iter().filter(|s| s.0 == changed);
        mean(of.map(|s| s.1))
    })
}

/// Whether the change took effect. A kernel that copies despite zero-copy sends has not made the change, and has the
/// cost of both ways. A connection may keep the congestion control of its route, and a window may keep the limit of its
/// route, whatever its buffer is.
fn took_effect<'a>(plan: &TrialPlan, last: impl Fn(bool) -> Option<&'a Load>) -> bool {
    match plan.factor() {
        Some(Factor::LargerWindow | Factor::HostWindow) => !stayed(last(false), last(true)),
        Some(Factor::HalfWindow) => !stayed(last(true), last(false)),
        Some(Factor::ZeroCopy) => last(true).is_some_and(Load::uncopied),
        Some(Factor::OtherCongestion) => {
            last(true).map(|load| &load.made.sender.congestion) == plan.after.congestion.as_ref()
        }
        _ => true,
    }
}

/// Minimum ratio of a window after a change to the window before, at which it counts as larger.
const GROWN: f64 = 1.05;

/// Whether the offered window is no larger in the load `large` than in the load `small`; false if unknown.
pub(crate) fn stayed(small: Option<&Load>, large: Option<&Load>) -> bool {
    let window = |load: Option<&Load>| Some(load?.tcp.window?.0 as f64);
    window(small).zip(window(large)).is_some_and(|(small, large)| large < small * GROWN)
}

/// Whether both settings of a trial were made as planned: a change that an end refused is no change.
fn made_as_planned(record: &Record, id: u32) -> bool {
    record
        .steps
        .iter()
        .filter(|s| matches!(s.plan.purpose, Purpose::Slice { trial, .. } if trial == id))
        .flat_map(|s| &s.plan.sets)
        .filter_map(|set| record.sets.iter().find(|s| s.plan.id == *set))
        .all(|set| set.ends.iter().all(|e| e.gaps.is_empty()) && placed(set))
}

/// Whether threads are pinned as the plan says: an older far end does not know that option.
fn placed(set: &Set) -> bool {
    let Pattern::Stream { direction } = set.plan.pattern else {
        return true;
    };
    let knobs = &set.plan.knobs;
    let requested =
        [(direction.sender(), &knobs.sender_cpus), (direction.receiver(), &knobs.receiver_cpus)];
    requested.into_iter().all(|(side, cpus)| {
        let end = set.ends.get(index(side));
        cpus.is_empty() || end.is_some_and(|end| end.cpus == *cpus)
    })
}
