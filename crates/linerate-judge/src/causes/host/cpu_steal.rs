//! The hypervisor gives a host's CPU to other virtual machines, and the load waits for it.

use crate::causes::host::cpu_quota;
use crate::causes::host::cpu_share::{self, ENOUGH, LOST, cpus, home};
use crate::causes::host::softirq_core;
use crate::causes::prelude::*;
use crate::causes::udp::datagrams;
use crate::causes::{Cost, DISTURBS};
use crate::model::{Cpu, Thread};
use crate::signs::threads::{busiest, kept_up, need, threads};

/// The share of its CPU that the load's work must need before stolen time can limit it. Below this the CPU is idle at
/// times, so something else limits the load.
const SUSPECT: f64 = 0.8;

/// Minimum share of samples with an empty send buffer, at which the sending thread gets too little time to write.
const STARVED: f64 = 0.5;

/// Work for the load on a CPU whose time the hypervisor steals.
struct Robbed {
    side: Side,
    /// The CPU on which the work ran; `None` for a thread that moved between several.
    cpu: Option<u32>,
    /// Share of time in which the hypervisor took the CPU; the mean for several CPUs.
    steal: f64,
    /// Share of time in which a thread ran on the CPU, or packets were handled.
    ran: f64,
    /// Largest share of time in which the work ran or would have run.
    need: f64,
    /// Largest share of time in which stealing kept the work from running.
    lost: f64,
    /// Whether the work is packet processing outside of the load's threads.
    packets: bool,
}

impl Robbed {
    /// The work of a thread that stays on one CPU; `None` if it moved or was not read.
    ///
    /// A kernel with steal-time accounting does not count stolen time as the thread's; it is part of the time in which
    /// the thread neither ran nor slept. A kernel without it counts stolen time as time that the thread ran: this shows
    /// where the two shares add up to more than 1.
    //= Linux, update_rq_clock_task(): CONFIG_PARAVIRT_TIME_ACCOUNTING
    fn of_thread(side: Side, thread: &Thread, cpus: &[Cpu]) -> Option<Self> {
        let cpu = home(thread, cpus)?;
        let (ran, need) = (thread.busy?, need(thread)?);
        let beside = (need - ran).min(cpu.steal);
        let within = ran + thread.waiting.unwrap_or(0.0) + cpu.steal - 1.0;
        Some(Self {
            side,
            cpu: Some(cpu.number),
            steal: cpu.steal,
            ran,
            need,
            lost: beside.max(within).clamp(0.0, cpu.steal),
            packets: false,
        })
    }

    /// The work of packet processing on a CPU of its own.
    fn of_packets(side: Side, cpu: &Cpu) -> Self {
        let need = (cpu.softirq + cpu.steal).min(cpu.busy);
        Self {
            side,
            cpu: Some(cpu.number),
            steal: cpu.steal,
            ran: cpu.softirq,
            need,
            lost: (need - cpu.softirq).max(0.0),
            packets: true,
        }
    }

    /// The work of a thread that moved between CPUs. How much of the stolen time it waited for is unknown: at most all
    /// of it.
    fn of_moved(side: Side, thread: &Thread, (steal, busy): (f64, f64)) -> Option<Self> {
        let (ran, need) = (thread.busy?, need(thread)?);
        Some(Self {
            side,
            cpu: None,
            steal,
            ran,
            need: (need + steal).min(1.0).min(busy.max(need)),
            lost: steal,
            packets: false,
        })
    }

    /// The share of the needed CPU time that the work gets.
    fn got(&self) -> f64 {
        1.0 - self.lost / self.need.max(0.01)
    }

    fn words(&self) -> String {
        let (place, who) = match self.cpu {
            Some(cpu) if self.packets => (format!("CPU {cpu}"), "packets were handled there"),
            Some(cpu) => (format!("CPU {cpu}"), "a thread of the load ran there"),
            None => ("a CPU".to_owned(), "a thread of the load moved between them, ran"),
        };
        format!(
            "{place} of the {} host was stolen {} of the time; {who} {} of the time, and needed it {}",
            self.side.name(),
            percent(self.steal),
            percent(self.ran),
            percent(self.need)
        )
    }
}

pub(crate) static CAUSE: Cause = Cause {
    id: "cpu-steal",
    name: "the hypervisor takes CPU time",
    stage: Stage::Cpu,
    may_be_unread: true,
    decided_by: &[Factor::OtherCpu, Factor::SenderWork, Factor::ReceiverWork],
    page: include_str!("../pages/cpu-steal.md"),
    check,
    costs,
    predict,
    decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let robbed = worst(model, direction)?;
    let stayed = robbed.cpu.is_some();
    let used_up = stayed && robbed.need >= ENOUGH && paces(model, direction, robbed.side);
    Ok(Finding::at(robbed.side, robbed.lost, vec![robbed.words()]).enough(used_up).reached(used_up))
}

fn costs(model: &Model, direction: Direction) -> Vec<Cost> {
    let Some(load) = model.direction(direction).map(|d| &d.base) else {
        return Vec::new();
    };
    let sides = model.ends(direction);
    let costs = sides.filter_map(|side| {
        let (place, steal, busy) = most_stolen(model, load, direction, side)?;
        (steal >= DISTURBS).then(|| Cost {
            side: Place::from(side),
            share: Some(steal).filter(|_| !kept_up(load, direction, side)),
            evidence: vec![format!(
                "{place} of the {} host was stolen {} of the time, and idle {}",
                side.name(),
                percent(steal),
                percent((1.0 - busy).max(0.0))
            )],
            advice: vec![remedy(None)],
        })
    });
    costs.collect()
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let robbed = worst(model, trial.direction).ok()?;
    if robbed.packets {
        return softirq_core::of_full(model, trial);
    }
    cpu_share::predict(model, trial, robbed.side, robbed.got())
}

fn decides(model: &Model, trial: &TrialPlan) -> bool {
    let robbed = worst(model, trial.direction);
    robbed.is_ok_and(|r| !r.packets && cpu_share::is_about(trial, trial.direction, r.side))
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let robbed = worst(model, direction).ok();
    vec![remedy(robbed.and_then(|r| cpu_share::gain_of_one(model, direction, r.got())))]
}

fn remedy(gain: Option<f64>) -> Advice {
    Advice::new(
        "run again while the hypervisor has CPU time to spare, or use a machine with CPUs of its own",
    )
    .gain(gain)
}

/// Whether the load looks like one whose end lacks CPU time. A sender without CPU time leaves its send buffer empty; a
/// sender with a slow receiver does not. Datagrams always count, since another check covers their loss, unless their
/// sender keeps a pace: then the sender waits for the pace.
fn paces(model: &Model, direction: Direction, side: Side) -> bool {
    let is_sender = side == direction.sender();
    model.direction(direction).is_some_and(|dir| {
        let load = &dir.base;
        let of_datagrams = load.has(Feature::Datagrams) && load.knobs.pacing.is_none();
        let starved = load.tcp.starved.map(|share| share >= STARVED);
        starved.map_or(of_datagrams, |starved| starved == is_sender)
    })
}

/// Largest share of a CPU's time that the hypervisor may have taken from the threads of an end.
pub(crate) fn most(model: &Model, load: &Load, direction: Direction, side: Side) -> f64 {
    let of_machine = |other: &Side| *other == side || model.same_machine;
    let sides = [Side::Near, Side::Far].into_iter().filter(of_machine);
    let stolen = sides.filter_map(|side| most_stolen(model, load, direction, side));
    stolen.map(|(_, steal, _)| steal).fold(0.0, f64::max)
}

/// The CPU at an end, among those that work for the load, with the most stolen time: its name, the stolen share, and
/// the share in which it was not idle. If a thread moves, the means of all CPUs that it may run on.
fn most_stolen(
    model: &Model,
    load: &Load,
    direction: Direction,
    side: Side,
) -> Option<(String, f64, f64)> {
    let all = cpus(load, direction, side);
    let workers = threads(load, direction, side).iter();
    let homes: Option<Vec<&Cpu>> = workers.map(|thread| home(thread, all)).collect();
    let Some(mut used) = homes.filter(|homes| !homes.is_empty()) else {
        return mean_of(model, all, side);
    };
    used.extend(softirq_core::of_the_load(model, load, direction, side));
    let most = used.into_iter().max_by(|a, b| a.steal.total_cmp(&b.steal))?;
    Some((format!("CPU {}", most.number), most.steal, most.busy))
}

fn mean_of(model: &Model, all: &[Cpu], side: Side) -> Option<(String, f64, f64)> {
    let allowed = &model.host(side)?.facts.cpus;
    let may = |cpu: &&Cpu| allowed.is_empty() || allowed.contains(&cpu.number);
    let used: Vec<&Cpu> = all.iter().filter(may).collect();
    let mean = |of: fn(&Cpu) -> f64| used.iter().map(|c| of(c)).sum::<f64>() / used.len() as f64;
    (!used.is_empty()).then(|| ("a CPU".to_owned(), mean(|c| c.steal), mean(|c| c.busy)))
}

fn worst(model: &Model, direction: Direction) -> Result<Robbed, NoFinding> {
    cpu_share::worst(model, direction, |side| at(model, direction, side), |r| r.lost)
}

/// The work at an end that waits for a stolen CPU, if this may limit the load; else the reason why not.
fn at(model: &Model, direction: Direction, side: Side) -> Result<Robbed, NoFinding> {
    let load = base(model, direction)?;
    let all = robbed(model, load, direction, side)?;
    let may = |r: &Robbed| r.lost >= LOST && r.need >= SUSPECT;
    let (found, rest): (Vec<Robbed>, Vec<Robbed>) = all.into_iter().partition(may);
    let most = |all: Vec<Robbed>| all.into_iter().max_by(|a, b| a.lost.total_cmp(&b.lost));
    let Some(found) = most(found) else {
        let words = most(rest).map_or(String::new(), |r| r.words());
        return Err(clear(words));
    };
    if cpu_share::stands(&cpu_quota::CAUSE, model, direction, side) {
        let name = side.name();
        return Err(clear(format!("a CPU quota stopped {name}")));
    }
    // A reader of datagrams is not the limit where its socket drops none.
    let reported = load.datagrams.as_ref();
    if let Some(reported) = reported.filter(|_| side == direction.receiver()) {
        datagrams::at_the_socket(model, direction, reported)?;
    }
    Ok(found)
}

/// The work for the load at an end: its busiest thread, and the CPU that handles its packets.
fn robbed(
    model: &Model,
    load: &Load,
    direction: Direction,
    side: Side,
) -> Result<Vec<Robbed>, NoFinding> {
    let all = cpus(load, direction, side);
    let thread = busiest(threads(load, direction, side));
    let thread = thread.ok_or_else(|| lacks(model, "thread", side))?;
    if all.is_empty() {
        return Err(lacks(model, "cpu", side));
    }
    let packets = softirq_core::of_the_load(model, load, direction, side);
    let packets = packets.map(|cpu| Robbed::of_packets(side, cpu));
    let stays = Robbed::of_thread(side, thread, all);
    if stays.is_none() && packets.is_none() {
        let mean = mean_of(model, all, side).map_or((0.0, 0.0), |(_, steal, busy)| (steal, busy));
        let moved = Robbed::of_moved(side, thread, mean);
        return Ok(vec![moved.ok_or_else(|| lacks(model, "thread", side))?]);
    }
    Ok(stays.into_iter().chain(packets).collect())
}
