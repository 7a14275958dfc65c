//! Code shared by the causes by which a thread gets only a part of the CPU time that it needs.

use crate::causes::host::busy_thread::{self, Role};
use crate::causes::predict::added_work;
use crate::causes::prelude::*;
use crate::causes::{excludes, rerun};
use crate::model::{Cpu, DirectionModel, Thread};
use linerate_facts::advice::Step;
use linerate_facts::odd::ranges;

/// Share of its CPU that a thread must need before a loss of CPU time can matter: a thread that sleeps half of the time
/// waits for something else as well.
pub(crate) const SUSPECT: f64 = 0.5;

/// Minimum share of its CPU that a thread needs, at which a loss of CPU time is the limit without a trial.
pub(crate) const ENOUGH: f64 = 0.95;

/// Share of time that a thread must lose to be named: a loss of a tenth of the goodput would not be noticed.
pub(crate) const LOST: f64 = 0.15;

/// Largest extra cost of added work, relative to that work. A thread that is stopped makes round trips long, and the
/// kernel then makes small segments: the time for each byte was measured to become three times as long.
const COSTS_MORE: f64 = 0.25;

/// The finding of the end with the strongest evidence. Without a finding, an unknown end counts before a clear one.
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

/// The CPU on which a thread stayed throughout; `None` if it moved.
pub(crate) fn home<'a>(thread: &Thread, cpus: &'a [Cpu]) -> Option<&'a Cpu> {
    cpus.iter().find(|cpu| Some(cpu.number) == thread.home)
}

/// Whether a trial changes one end: it adds work to the end's threads, or moves them to another CPU.
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

/// The predicted ratio of goodput for a thread that gets only the share `got` of the CPU time that it needs. Added work
/// costs `1/got` of its own time: less if the work is done in larger batches, more if it makes the other work cost
/// more. A trial that frees the thread gains up to `1/got`.
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
        // More streams may use other CPUs that are idle.
        Factor::MoreStreams => up_to(0.6, trial.stream_ratio() * 1.1),
        // Buffered data bridges the time in which the thread does not run.
        Factor::LargerWindow | Factor::LargerSendBuffer => up_to(0.7, 1.15),
        Factor::HalfWindow | Factor::HalfSendBuffer => Some(Range { low: 0.4, high: 1.15 }),
        _ => busy_thread::predict(model, trial, role),
    }
}

/// Least share of the goodput expected from more streams, in proportion to their number, at which nothing shared stops
/// them.
const SCALES: f64 = 0.9;

/// The gain that more streams reached, if it is below proportion: each had its own thread, and something else limits
/// them together. `None` if it was in proportion, or not measured.
fn stopped(dir: &DirectionModel) -> Option<f64> {
    let base = &dir.base;
    let more = dir.sweep.iter().filter(|load| load.streams > base.streams);
    let best = more.max_by(|a, b| a.goodput.mean.total_cmp(&b.goodput.mean))?;
    let gain = best.goodput.mean / base.goodput.mean.max(1.0);
    let promised = f64::from(best.streams) / f64::from(base.streams.max(1));
    (gain < promised * SCALES).then_some(gain)
}

/// The most that one thread gains if it gets all the CPU time it needs. It is at most what more streams gained, each
/// with its own thread. `None` if nothing is left to gain.
pub(crate) fn gain_of_one(model: &Model, direction: Direction, got: f64) -> Option<f64> {
    let gain = gain(model, direction, got)?;
    let stopped = stopped(model.direction(direction)?);
    Some(stopped.map_or(gain, |most| gain.min(most))).filter(|gain| *gain >= GAIN)
}

/// The most that the threads gain if they get all the CPU time they need: at most up to the lowest ceiling.
pub(crate) fn gain(model: &Model, direction: Direction, got: f64) -> Option<f64> {
    let dir = model.direction(direction)?;
    let ceiling = dir.ceiling().map(|c| c.rate.0 as f64 / dir.base.goodput.mean.max(1.0));
    Some((1.0 / got.max(0.05)).min(ceiling.unwrap_or(f64::MAX)).max(1.0))
}

/// Whether a cause is found at this end and no trial has excluded it.
pub(crate) fn stands(cause: &Cause, model: &Model, direction: Direction, side: Side) -> bool {
    let found = matches!(cause.check(model, direction), Ok(f) if f.side == side.into());
    found && !is_excluded(cause, model, direction)
}

/// Whether a trial of a direction has excluded a cause.
pub(crate) fn is_excluded(cause: &Cause, model: &Model, direction: Direction) -> bool {
    let mut trials = model.trials.iter();
    trials.any(|t| t.plan.direction == direction && excludes(t, cause, model))
}

/// The advice to keep an end's program on `cpus`.
pub(crate) fn taskset(model: &Model, side: Side, cpus: &[u32]) -> Advice {
    let (command, about) = match side {
        Side::Near => (rerun(model, ""), ""),
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
