//! The common part of the causes by which a thread gets only a part of the CPU time that it needs.

use crate::causes::host::busy_thread::{self, Role};
use crate::causes::predict::added_work;
use crate::causes::prelude::*;
use crate::causes::{again, excludes};
use crate::model::{Cpu, DirectionModel, Thread};
use linerate_facts::advice::Step;
use linerate_facts::odd::ranges;

/// Share of its CPU that a thread must need before a loss of CPU time can matter: a thread that blocks half of
/// the time waits for something else as well.
pub(crate) const SUSPECT: f64 = 0.5;

/// Minimum share of its CPU that a thread needs, at which a loss of CPU time is the limit without a trial.
pub(crate) const ENOUGH: f64 = 0.95;

/// Share of time that a thread must lose to be named. A tenth less goodput would not be noticed.
pub(crate) const LOST: f64 = 0.15;

/// Factor for the extra cost of added work, on top of its own time. A thread that is stopped makes round trips
/// long, and the kernel then makes small segments: the time for each byte was measured to become three times as
/// long.
const COSTS_MORE: f64 = 0.25;

/// The end with the strongest evidence. Without any, an unknown answer takes precedence over a clear one.
pub(crate) fn worst<T>(
    model: &Model,
    direction: Direction,
    at: impl Fn(Side) -> Result<T, NoFinding>,
    weight: impl Fn(&T) -> f64,
) -> Result<T, NoFinding> {
    let (mut found, mut unknown, mut clear) = (None::<T>, None, Vec::new());
    for side in model.ends(direction) {
        match at(side) {
            Ok(one) if found.as_ref().is_none_or(|f| weight(f) < weight(&one)) => found = Some(one),
            Ok(_) => {}
            Err(NoFinding::Clear(why)) => clear.push(why),
            Err(other) => unknown = Some(other),
        }
    }
    found.ok_or_else(|| unknown.unwrap_or_else(|| NoFinding::Clear(clear.join("; "))))
}

/// The CPUs of an end's host.
pub(crate) fn cpus(load: &Load, direction: Direction, side: Side) -> &[Cpu] {
    load.cpus.at(direction, side)
}

/// The CPU that a thread never left.
pub(crate) fn home<'a>(thread: &Thread, cpus: &'a [Cpu]) -> Option<&'a Cpu> {
    cpus.iter().find(|cpu| Some(cpu.number) == thread.home)
}

/// Whether a trial is about an end: more work on its threads, or another CPU for them.
pub(crate) fn is_about(trial: &TrialPlan, direction: Direction, side: Side) -> bool {
    let factor = trial.factor();
    factor == Some(Role::of(side, direction).factor())
        || (factor == Some(Factor::OtherCpu) && moves(trial, direction, side))
}

fn moves(trial: &TrialPlan, direction: Direction, side: Side) -> bool {
    let cpus = if side == direction.sender() {
        &trial.after.sender_cpus
    } else {
        &trial.after.receiver_cpus
    };
    !cpus.is_empty()
}

/// The effect that a trial has on a thread that gets only the share `got` of the CPU time that it needs. Added
/// work takes `1/got` of its time: less if the work is done in larger batches, more if it makes the other work
/// cost more. A trial that frees the thread gains up to `1/got`.
pub(crate) fn predict(model: &Model, trial: &TrialPlan, side: Side, got: f64) -> Option<Range> {
    let direction = trial.direction;
    let role = Role::of(side, direction);
    let got = got.clamp(0.05, 1.0);
    let factor = trial.factor()?;
    if factor == role.factor() {
        let added = added_work(model, trial, role == Role::Sender)?;
        return Some(Range {
            low: COSTS_MORE / (1.0 + added / got),
            high: f64::midpoint(1.0 / (1.0 + added), 1.0),
        });
    }
    let up_to = |low, gain: f64| Some(Range { low, high: gain / got });
    match factor {
        Factor::OtherCpu if moves(trial, direction, side) => up_to(GAIN, 1.15),
        // The other CPUs may be idle.
        Factor::MoreStreams => up_to(0.6, trial.stream_ratio() * 1.1),
        // Buffered data covers the time in which the thread does not run.
        Factor::LargerWindow | Factor::LargerSendBuffer => up_to(0.7, 1.15),
        Factor::HalfWindow | Factor::HalfSendBuffer => Some(Range { low: 0.4, high: 1.15 }),
        _ => busy_thread::predict(model, trial, role),
    }
}

/// Share of what its streams promise that a doubling must carry, at least, for nothing that they share to stop it.
const SCALES: f64 = 0.9;

/// The gain at which more streams stopped: each had a thread of its own, and something else limits them together.
/// `None` if they carried in proportion, or were not measured.
fn stopped(dir: &DirectionModel) -> Option<f64> {
    let base = &dir.base;
    let more = dir.sweep.iter().filter(|load| load.streams > base.streams);
    let best = more.max_by(|a, b| a.goodput.mean.total_cmp(&b.goodput.mean))?;
    let gain = best.goodput.mean / base.goodput.mean.max(1.0);
    let promised = f64::from(best.streams) / f64::from(base.streams.max(1));
    (gain < promised * SCALES).then_some(gain)
}

/// The most that one thread gains which gets all it needs: up to what more streams carried, each by a thread of its own.
/// `None` if nothing is left to gain.
pub(crate) fn gain_of_one(model: &Model, direction: Direction, got: f64) -> Option<f64> {
    let gain = gain(model, direction, got)?;
    let stopped = stopped(model.direction(direction)?);
    Some(stopped.map_or(gain, |most| gain.min(most))).filter(|gain| *gain >= GAIN)
}

/// The most that threads gain which get all they need: up to the lowest ceiling.
pub(crate) fn gain(model: &Model, direction: Direction, got: f64) -> Option<f64> {
    let dir = model.direction(direction)?;
    let ceiling = dir.ceiling().map(|c| c.rate.0 as f64 / dir.base.goodput.mean.max(1.0));
    Some((1.0 / got.max(0.05)).min(ceiling.unwrap_or(f64::MAX)).max(1.0))
}

/// Whether a cause was found at an end and no trial has excluded it.
pub(crate) fn stands(cause: &Cause, model: &Model, direction: Direction, side: Side) -> bool {
    let found = matches!(cause.check(model, direction), Ok(f) if f.side == side.into());
    found && !is_excluded(cause, model, direction)
}

/// Whether a trial of a direction has excluded a cause.
pub(crate) fn is_excluded(cause: &Cause, model: &Model, direction: Direction) -> bool {
    let mut trials = model.trials.iter();
    trials.any(|t| t.plan.direction == direction && excludes(t, cause, model))
}

/// The advice that keeps an end's program on `cpus`.
pub(crate) fn taskset(model: &Model, side: Side, cpus: &[u32]) -> Advice {
    let (command, about) = match side {
        Side::Near => (again(model, ""), ""),
        Side::Far => ("linerate serve".to_owned(), "in place of the one there"),
    };
    let cpus = ranges(cpus);
    let s = if cpus.contains([',', '-']) { "s" } else { "" };
    let what = format!("keep the program on CPU{s} {cpus}");
    if model.watched {
        return Advice::new(format!("{what} (taskset)"));
    }
    let step = Step::on(side, format!("taskset -c {cpus} {command}"));
    Advice::new(what).step(step.about(about))
}
