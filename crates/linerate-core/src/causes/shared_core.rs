//! Threads of this run, or a thread and the port's interrupts, share a full CPU beside an idle one.

use super::cpu_share::{self, ENOUGH, LOST};
use super::predict::{busiest, need, threads};
use super::{Answer, Cause, Finding, base, lacks, percent};
use crate::facts::odd::ranges;
use crate::model::{Cpu, Model, idle};
use crate::plan::{Direction, Side};
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `shared-core`.
pub(super) struct SharedCore;

/// Share of its CPU that a thread must need.
const SUSPECT: f64 = 0.8;

/// Share of time from which a CPU is full.
const FULL: f64 = 0.95;

/// A thread beside others of this run, or beside interrupts, on a full CPU.
struct Shared {
    side: Side,
    cpu: u32,
    busy: f64,
    need: f64,
    /// Share of time of the other threads of this run.
    threads: f64,
    /// Share of time of interrupts of the port that are sent there.
    interrupts: f64,
    /// CPUs that this end could use instead.
    idle: Vec<u32>,
}

impl Shared {
    fn got(&self) -> f64 {
        self.busy / (self.busy + self.threads + self.interrupts)
    }
}

impl Cause for SharedCore {
    fn id(&self) -> &'static str {
        "shared-core"
    }
    fn stage(&self) -> Stage {
        Stage::Cpu
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let shared = match worst(model, direction) {
            Ok(shared) => shared,
            Err(answer) => return answer,
        };
        let used_up = shared.need >= ENOUGH;
        let beside = [
            (shared.threads, "other threads of this run"),
            (shared.interrupts, "interrupts of the port"),
        ];
        let beside = beside.into_iter().filter(|(share, _)| *share >= LOST);
        let beside: Vec<String> = beside
            .map(|(share, who)| format!("{who} had it {}", percent(share)))
            .collect();
        let s = if shared.idle.len() == 1 { "" } else { "s" };
        Answer::Finding(Finding {
            side: Place::from(shared.side),
            share: shared.threads + shared.interrupts,
            enough: used_up,
            reached: used_up,
            evidence: vec![format!(
                "a thread of {} ran on CPU {} {} of the time, and {}, while CPU{s} {} had little to do",
                shared.side.name(),
                shared.cpu,
                percent(shared.busy),
                beside.join(" and "),
                ranges(&shared.idle)
            )],
        })
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        let shared = worst(model, trial.direction).ok()?;
        cpu_share::predict(model, trial, shared.side, shared.got())
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[Factor::OtherCpu]
    }
    fn is_about(&self, model: &Model, trial: &TrialPlan) -> bool {
        let at = worst(model, trial.direction).map(|shared| shared.side);
        trial.factor() == Some(Factor::OtherCpu)
            && at.is_ok_and(|side| cpu_share::is_about(trial, trial.direction, side))
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        let Ok(shared) = worst(model, direction) else {
            return Vec::new();
        };
        vec![Advice {
            action: cpu_share::taskset(shared.side, &shared.idle),
            undo: String::new(),
            gain: cpu_share::gain(model, direction, shared.got()),
        }]
    }
    fn page(&self) -> &'static str {
        include_str!("pages/shared-core.md")
    }
}

fn worst(model: &Model, direction: Direction) -> Result<Shared, Answer> {
    let weight = |s: &Shared| s.threads + s.interrupts;
    cpu_share::worst(direction, |side| at(model, direction, side), weight)
}

fn at(model: &Model, direction: Direction, side: Side) -> Result<Shared, Answer> {
    let load = base(model, direction)?;
    let name = side.name();
    let thread = busiest(threads(load, direction, side));
    let read = thread.and_then(|t| Some((t, t.busy?, need(t)?)));
    let (thread, busy, need) = read.ok_or_else(|| lacks(model, "thread", side))?;
    if need < SUSPECT {
        return Err(Answer::Clear(format!(
            "{name} needed its CPU only {} of the time",
            percent(need)
        )));
    }
    let Some(cpu) = cpu_share::home(thread, cpu_share::cpus(load, direction, side)) else {
        return Err(Answer::Clear(format!(
            "threads of {name} are not kept on one CPU"
        )));
    };
    let threads = (cpu.ours.unwrap_or(busy) - busy).max(0.0);
    let interrupts = if serves(model, side, cpu) {
        cpu.softirq
    } else {
        0.0
    };
    if cpu.busy < FULL || threads.max(interrupts) < LOST {
        return Err(Answer::Clear(format!(
            "CPU {} of {name} was busy {}, other threads of this run had it {}, interrupts sent there {}",
            cpu.number,
            percent(cpu.busy),
            percent(threads),
            percent(interrupts)
        )));
    }
    let idle = idle(model, direction, side);
    if idle.is_empty() {
        return Err(Answer::Clear(format!(
            "no other CPU that {name} may use had time to spare"
        )));
    }
    Ok(Shared {
        side,
        cpu: cpu.number,
        busy,
        need,
        threads,
        interrupts,
        idle,
    })
}

/// Whether interrupts of the port are sent to a CPU. Where none is known to be, as behind a virtual
/// port, softirq follows the thread that sends, and cannot be parted from it.
pub(super) fn serves(model: &Model, side: Side, cpu: &Cpu) -> bool {
    let host = model.hosts.iter().find(|h| h.side == side);
    let port = host.and_then(|h| h.facts.port.as_ref());
    port.is_some_and(|port| port.served_by.contains(&cpu.number))
}
