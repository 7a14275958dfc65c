//! Threads of this run, or a thread and the port's interrupts, share a full CPU, although another CPU is idle, or
//! because both ends may use no other.

use crate::causes::host::cpu_share::{self, ENOUGH, LOST};
use crate::causes::prelude::*;
use crate::model::{Cpu, idle};
use crate::signs::threads::{busiest, need, polls, threads};
use linerate_facts::odd::ranges;

/// Share of its CPU that a thread must need to be a suspect.
const SUSPECT: f64 = 0.8;

/// Minimum utilization at which a CPU is full.
const FULL: f64 = 0.95;

/// A thread that shares a full CPU with other threads of this run, or with interrupts.
struct Shared {
    side: Side,
    cpu: u32,
    busy: f64,
    need: f64,
    /// Share of time in which other threads of this run had the CPU.
    threads: f64,
    /// Share of time in which interrupts of the port used the CPU.
    interrupts: f64,
    /// CPUs that the threads of this end could use instead.
    idle: Vec<u32>,
}

impl Shared {
    fn got(&self) -> f64 {
        self.busy / (self.busy + self.threads + self.interrupts)
    }

    /// Whether the contended resource is used up: the thread's time or, if both ends can use no other CPU, the time of
    /// the CPU. On one CPU each end gets the time that the other leaves; it waits for that time asleep as well as in
    /// the run queue.
    ///
    /// A polling thread uses its CPU however little it carries, so it does not count.
    fn is_used_up(&self, polls: bool) -> bool {
        let by_both = self.busy + self.threads;
        (self.need >= ENOUGH && !polls) || (self.idle.is_empty() && by_both >= ENOUGH)
    }

    /// The end for which a trial is judged: if both ends share the CPU, the end to which the trial adds work.
    fn at(&self, trial: &TrialPlan) -> Side {
        match trial.factor() {
            Some(Factor::SenderWork) if self.idle.is_empty() => trial.direction.sender(),
            Some(Factor::ReceiverWork) if self.idle.is_empty() => trial.direction.receiver(),
            _ => self.side,
        }
    }
}

pub(crate) static CAUSE: Cause = Cause {
    id: "shared-core",
    name: "two busy threads share one CPU",
    stage: Stage::Cpu,
    decided_by: &[Factor::OtherCpu, Factor::SenderWork, Factor::ReceiverWork],
    page: include_str!("../pages/shared-core.md"),
    check,
    predict,
    decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let shared = worst(model, direction)?;
    let used_up = shared.is_used_up(polls(model, direction));
    let beside = [
        (shared.threads, "other threads of this run"),
        (shared.interrupts, "interrupts of the port"),
    ];
    let beside = beside.into_iter().filter(|(share, _)| *share >= LOST);
    let beside: Vec<String> =
        beside.map(|(share, who)| format!("{who} had it {}", percent(share))).collect();
    let evidence = vec![format!(
        "a thread of {} ran on CPU {} {} of the time, and {}, {}",
        shared.side.name(),
        shared.cpu,
        percent(shared.busy),
        beside.join(" and "),
        elsewhere(&shared.idle)
    )];
    Ok(Finding::at(shared.side, shared.threads + shared.interrupts, evidence)
        .enough(used_up)
        .reached(used_up))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let shared = worst(model, trial.direction).ok()?;
    cpu_share::predict(model, trial, shared.at(trial), shared.got())
}

fn decides(model: &Model, trial: &TrialPlan) -> bool {
    // If threads can move to other CPUs, only the trial that moves them tests the cause; otherwise a trial that adds
    // work.
    worst(model, trial.direction).is_ok_and(|shared| {
        let moves = trial.factor() == Some(Factor::OtherCpu);
        moves != shared.idle.is_empty()
            && cpu_share::is_about(trial, trial.direction, shared.at(trial))
    })
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Ok(shared) = worst(model, direction) else {
        return Vec::new();
    };
    let advice = if shared.idle.is_empty() {
        Advice::new(format!(
            "move one end to another machine, or let it use other CPUs than CPU {} if there are \
             others (taskset, cpuset)",
            shared.cpu
        ))
    } else {
        cpu_share::taskset(model, shared.side, &shared.idle)
    };
    // If two CPUs were never used, it is unknown how much they carry: payload that crosses from one CPU to the other
    // costs more than payload in the cache of one, and sometimes more than the second CPU saves.
    let parts = !shared.idle.is_empty();
    let gain = parts.then(|| cpu_share::gain(model, direction, shared.got()));
    vec![advice.gain(gain.flatten())]
}

fn worst(model: &Model, direction: Direction) -> Result<Shared, NoFinding> {
    let weight = |s: &Shared| s.threads + s.interrupts;
    cpu_share::worst(model, direction, |side| at(model, direction, side), weight)
}

fn at(model: &Model, direction: Direction, side: Side) -> Result<Shared, NoFinding> {
    let load = base(model, direction)?;
    let name = side.name();
    let thread = busiest(threads(load, direction, side));
    let read = thread.and_then(|t| Some((t, t.busy?, need(t)?)));
    let (thread, busy, need) = read.ok_or_else(|| lacks(model, "thread", side))?;
    if need < SUSPECT {
        return Err(clear(format!("{name} needed its CPU only {} of the time", percent(need))));
    }
    let Some(cpu) = cpu_share::home(thread, cpu_share::cpus(load, direction, side)) else {
        return Err(clear(format!("threads of {name} are not pinned to one CPU")));
    };
    let threads = (cpu.ours.unwrap_or(busy) - busy).max(0.0);
    let interrupts = if serves(model, side, cpu) { cpu.softirq } else { 0.0 };
    if cpu.busy < FULL || threads.max(interrupts) < LOST {
        return Err(clear(format!(
            "CPU {} of {name} was busy {}, other threads of this run had it {}, interrupts sent there {}",
            cpu.number,
            percent(cpu.busy),
            percent(threads),
            percent(interrupts)
        )));
    }
    let idle = idle(model, direction, side);
    if idle.is_empty() && of_the_other_end(model, load, direction, side, cpu) < LOST {
        return Err(clear(format!("no other CPU that {name} may use had time to spare")));
    }
    Ok(Shared { side, cpu: cpu.number, busy, need, threads, interrupts, idle })
}

/// Whether the two ends share a CPU, and no trial has excluded this cause.
pub(crate) fn between(model: &Model, direction: Direction) -> bool {
    worst(model, direction).is_ok_and(|shared| {
        shared.idle.is_empty() && cpu_share::stands(&CAUSE, model, direction, shared.side)
    })
}

/// The idle CPUs that the threads could use instead, in words.
fn elsewhere(idle: &[u32]) -> String {
    match idle {
        [] => "and no other CPU that they may use was idle".to_owned(),
        [one] => format!("while CPU {one} had little to do"),
        several => format!("while CPUs {} had little to do", ranges(several)),
    }
}

/// Share of a CPU's time in which threads of the other end used it, if both ends are on one machine.
fn of_the_other_end(
    model: &Model,
    load: &Load,
    direction: Direction,
    side: Side,
    cpu: &Cpu,
) -> f64 {
    let other = if side == direction.sender() { direction.receiver() } else { direction.sender() };
    let there = threads(load, direction, other).iter();
    let there = there.filter(|t| model.same_machine && t.home == Some(cpu.number));
    there.filter_map(|t| t.busy).sum()
}

/// Whether interrupts of an end's port are sent to a CPU. If no such CPU is known, as behind a virtual port, softirq
/// follows the sending thread, and cannot be told apart from it.
pub(crate) fn serves(model: &Model, side: Side, cpu: &Cpu) -> bool {
    let host = model.hosts.iter().find(|h| h.side == side);
    let port = host.and_then(|h| h.facts.port.as_ref());
    port.is_some_and(|port| port.served_by.contains(&cpu.number))
}
