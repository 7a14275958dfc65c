//! Other programs use the CPU that a thread of the load needs.

use crate::causes::host::cpu_quota;
use crate::causes::host::cpu_share::{self, ENOUGH, LOST, SUSPECT};
use crate::causes::prelude::*;
use crate::causes::{Cost, DISTURBS};
use crate::model::{Cpu, Thread, idle};
use crate::signs::threads::{kept_up, need, polls, threads};

/// Minimum share of a CPU's time that other programs must use to be named.
const OTHERS: f64 = 0.15;

/// Minimum share of its CPU that a thread must need, at which contention is enough evidence if no other cause is left.
const NEEDS: f64 = 0.8;

/// Minimum share of a thread's waiting time in which other programs must have run on its CPUs.
const MET: f64 = 0.5;

/// A thread of the load that waits for its CPU while other programs run on it.
struct Crowded {
    side: Side,
    /// The CPU that the thread is pinned to; `None` if the thread moved between several.
    cpu: Option<u32>,
    busy: f64,
    waiting: f64,
    need: f64,
    /// Share of time that other programs ran on its CPUs, at least; `None` if it was not read.
    others: Option<f64>,
}

impl Crowded {
    fn got(&self) -> f64 {
        self.busy / (self.busy + self.waiting)
    }

    fn others(&self) -> f64 {
        self.others.unwrap_or(0.0)
    }

    /// Whether other programs ran enough on the thread's CPUs to explain its wait. A control group that used up its
    /// quota waits in the run queue as well, and a thread that moved may have met more of them than the mean shows.
    fn explains_waiting(&self) -> bool {
        self.others() >= OTHERS.max(self.waiting * MET)
    }

    fn words(&self) -> String {
        let place = self.cpu.map_or("its CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
        format!(
            "a thread of {} waited for {place} {} of the time and ran {}, while other programs ran there {} of \
             the time at least",
            self.side.name(),
            percent(self.waiting),
            percent(self.busy),
            percent(self.others())
        )
    }
}

pub(crate) static CAUSE: Cause = Cause {
    id: "cpu-contention",
    name: "other programs use the same CPU",
    stage: Stage::Cpu,
    decided_by: &[Factor::OtherCpu, Factor::SenderWork, Factor::ReceiverWork],
    page: include_str!("../pages/cpu-contention.md"),
    check,
    costs,
    is_last,
    predict,
    decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let crowded = worst(model, direction)?;
    // A polling thread uses its CPU however little it carries.
    let used_up = crowded.need >= ENOUGH && !polls(model, direction);
    Ok(Finding::at(crowded.side, crowded.waiting, vec![crowded.words()])
        .enough(used_up)
        .reached(used_up))
}

fn costs(model: &Model, direction: Direction) -> Vec<Cost> {
    let load = model.direction(direction).map(|dir| &dir.base);
    let sides = model.ends(direction);
    let waited = sides.filter_map(|side| waits(model, direction, side).ok());
    let disturbed = waited.filter(|c| {
        let quota = cpu_share::stands(&cpu_quota::CAUSE, model, direction, c.side);
        c.waiting >= DISTURBS && c.explains_waiting() && !quota
    });
    let lost = |side| load.is_some_and(|load| !kept_up(load, direction, side));
    let cost = |crowded: Crowded| Cost {
        side: Place::from(crowded.side),
        share: Some(crowded.waiting).filter(|_| lost(crowded.side)),
        evidence: vec![crowded.words()],
        advice: vec![remedy(model, direction, &crowded, None)],
    };
    disturbed.map(cost).collect()
}

fn is_last(model: &Model, direction: Direction) -> bool {
    let needs = |crowded: Crowded| crowded.need >= NEEDS && !polls(model, direction);
    worst(model, direction).is_ok_and(needs)
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let crowded = worst(model, trial.direction).ok()?;
    cpu_share::predict(model, trial, crowded.side, crowded.got())
}

fn decides(model: &Model, trial: &TrialPlan) -> bool {
    let at = worst(model, trial.direction).map(|crowded| crowded.side);
    at.is_ok_and(|side| cpu_share::is_about(trial, trial.direction, side))
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let crowded = worst(model, direction).into_iter();
    let advise = |crowded: Crowded| {
        let gain = cpu_share::gain_of_one(model, direction, crowded.got());
        remedy(model, direction, &crowded, gain)
    };
    crowded.map(advise).collect()
}

/// Advice to leave the CPU to the other programs, or to move them to another CPU.
fn remedy(model: &Model, direction: Direction, crowded: &Crowded, gain: Option<f64>) -> Advice {
    let free = idle(model, direction, crowded.side);
    let advice = if free.is_empty() {
        let who =
            crowded.cpu.map_or(String::new(), |cpu| format!(" | awk 'NR == 1 || $2 == {cpu}'"));
        let look = format!("ps -eLo pid,psr,pcpu,comm --sort=-pcpu{who} | head");
        Advice::new("find the programs that use the same CPU, and stop or move them (taskset -acp)")
            .on(crowded.side, look)
    } else {
        cpu_share::taskset(model, crowded.side, &free)
    };
    advice.gain(gain)
}

fn worst(model: &Model, direction: Direction) -> Result<Crowded, NoFinding> {
    cpu_share::worst(model, direction, |side| at(model, direction, side), |c| c.waiting)
}

/// The thread of an end that waited longest for its CPU.
fn waits(model: &Model, direction: Direction, side: Side) -> Result<Crowded, NoFinding> {
    let load = base(model, direction)?;
    let waited = |t: &Thread| t.waiting.unwrap_or(0.0);
    let workers = threads(load, direction, side).iter();
    let thread = workers.max_by(|a, b| waited(a).total_cmp(&waited(b)));
    let read = thread.and_then(|t| Some((t, t.busy?, need(t)?)));
    let (thread, busy, need) = read.ok_or_else(|| lacks(model, "thread", side))?;
    Ok(Crowded {
        side,
        cpu: thread.home,
        busy,
        waiting: waited(thread),
        need,
        others: others(model, load, direction, side, thread),
    })
}

fn at(model: &Model, direction: Direction, side: Side) -> Result<Crowded, NoFinding> {
    let name = side.name();
    let crowded = waits(model, direction, side)?;
    if crowded.waiting < LOST || crowded.need < SUSPECT {
        return Err(clear(format!(
            "threads of {name} waited for their CPUs {} of the time at most, and needed them {}",
            percent(crowded.waiting),
            percent(crowded.need)
        )));
    }
    if cpu_share::stands(&cpu_quota::CAUSE, model, direction, side) {
        return Err(clear(format!("a CPU quota stopped {name}")));
    }
    if kept_up(base(model, direction)?, direction, side) {
        return Err(clear(format!(
            "threads of {name} waited for their CPUs {}, and served their connections in time all the same",
            percent(crowded.waiting)
        )));
    }
    match crowded.others {
        None => Err(lacks(model, "cpu", side)),
        Some(others) if others < OTHERS => Err(clear(format!(
            "other programs used the CPU of {name}'s thread only {} of the time",
            percent(others)
        ))),
        Some(_) => Ok(crowded),
    }
}

/// Largest share of a CPU's time that other programs may have taken from the threads of an end.
pub(crate) fn most(model: &Model, load: &Load, direction: Direction, side: Side) -> f64 {
    let workers = threads(load, direction, side).iter();
    let each = workers.filter_map(|thread| others(model, load, direction, side, thread));
    each.fold(0.0, f64::max)
}

/// Share of time of other programs on the thread's CPU; if the thread moved, on all CPUs that it may use.
fn others(
    model: &Model,
    load: &Load,
    direction: Direction,
    side: Side,
    thread: &Thread,
) -> Option<f64> {
    let cpus = cpu_share::cpus(load, direction, side);
    if thread.home.is_some() {
        return cpu_share::home(thread, cpus)?.others;
    }
    let allowed = &model.hosts.iter().find(|h| h.side == side)?.facts.cpus;
    let may = |cpu: &&Cpu| allowed.contains(&cpu.number);
    let all: Option<Vec<f64>> = cpus.iter().filter(may).map(|cpu| cpu.others).collect();
    let all = all.filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() / all.len() as f64)
}
