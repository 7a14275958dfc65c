//! The CPU of a thread without spare time runs below its nominal clock.

use crate::causes::host::busy_thread::{self, Role};
use crate::causes::host::core_bound;
use crate::causes::prelude::*;
use crate::signs::threads::{busiest, polls, threads, wanted};
use linerate_facts::HostFacts;
use linerate_facts::cpu::Clock;
use linerate_facts::odd::ranges;
use linerate_units::Hertz;
use linerate_units::shell::word;

/// Share of its CPU that a thread must need before the CPU's clock can matter.
const BUSY: f64 = 0.8;
/// Minimum utilization of a CPU, at which the CPU counts as used up.
const USED_UP: f64 = 0.95;
/// Share of its reference below which a clock is low. Governors and counters round by a step of 100 MHz, 4 % of 2.5
/// GHz.
const LOW: f64 = 0.95;
/// Share of the reference below which the low clock is named without a trial.
const ENOUGH: f64 = 0.9;

/// Ratio of goodput on another CPU, which may have another clock.
const MOVED: Range = Range { low: 0.5, high: 2.0 };

/// A thread without spare time, on a CPU whose clock is low.
struct Slow<'a> {
    side: Side,
    busy: f64,
    cpu: u32,
    now: Hertz,
    nominal: Hertz,
    clock: &'a Clock,
    /// The CPUs of this kind, which share their clock settings.
    cpus: &'a [u32],
}

impl Slow<'_> {
    fn ratio(&self) -> f64 {
        self.now.0 as f64 / self.nominal.0 as f64
    }
}

pub(crate) static CAUSE: Cause = Cause {
    id: "cpu-clock",
    name: "CPUs run below their full clock",
    stage: Stage::Cpu,
    explains: core_bound::IDS,
    // The clock's settings belong to the host: no trial of linerate changes them.
    decided_by: &[],
    page: include_str!("../pages/cpu-clock.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let slow = slowest(model, direction)?;
    Ok(Finding {
        side: Place::from(slow.side),
        share: 1.0 - slow.ratio(),
        // A polling thread uses its CPU however little it carries.
        enough: slow.ratio() < ENOUGH && slow.busy >= USED_UP && !polls(model, direction),
        reached: false,
        evidence: vec![format!(
            "CPU {} of {} ran at {}, {} of its nominal {}, while a thread wanted it {} of the \
             time{}",
            slow.cpu,
            slow.side.name(),
            slow.now,
            percent(slow.ratio()),
            slow.nominal,
            percent(slow.busy),
            setting(slow.clock)
        )],
    })
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let slow = slowest(model, trial.direction).ok()?;
    if matches!(trial.factor()?, Factor::NearInterrupts | Factor::OtherCpu) {
        return Some(MOVED);
    }
    let role = if slow.side == trial.direction.sender() { Role::Sender } else { Role::Receiver };
    busy_thread::predict(model, trial, role)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let slow = slowest(model, direction).ok();
    slow.map(|slow| remedy(&slow)).into_iter().collect()
}

/// The busy thread whose CPU has the lowest clock relative to its nominal one; else the reason why there is none.
fn slowest(model: &Model, direction: Direction) -> Result<Slow<'_>, NoFinding> {
    let load = base(model, direction)?;
    let (mut found, mut unknown, mut clear) = (None::<Slow<'_>>, None, Vec::new());
    for host in &model.hosts {
        match clock_of(&host.facts, load, direction, host.side) {
            Ok(slow) if slow.ratio() >= LOW => clear.push(format!(
                "the CPU of the full {} thread ran at {}, {} of its nominal clock",
                host.side.name(),
                slow.now,
                percent(slow.ratio())
            )),
            Ok(slow) => {
                if found.as_ref().is_none_or(|f| slow.ratio() < f.ratio()) {
                    found = Some(slow);
                }
            }
            Err(Why::Clear(why)) => clear.push(why),
            Err(Why::NoThread) => unknown = Some(lacks(model, "thread", host.side)),
            Err(Why::Unknown(gap)) => unknown = Some(NoFinding::Unknown(vec![gap])),
        }
    }
    let clear = || NoFinding::Clear(clear.join("; "));
    found.ok_or_else(|| unknown.unwrap_or_else(clear))
}

/// Why the clock at an end cannot be the cause, or cannot be judged.
enum Why {
    Clear(String),
    NoThread,
    Unknown(Gap),
}

/// The clock of the CPU of an end's busiest thread, if it is low; else the reason why not.
fn clock_of<'a>(
    facts: &'a HostFacts,
    load: &Load,
    direction: Direction,
    side: Side,
) -> Result<Slow<'a>, Why> {
    let name = side.name();
    let lacks = |why: String| {
        let what = format!("the clock of {name}");
        let hint = "linerate host".to_owned();
        Why::Unknown(Gap { what, why, hint })
    };
    if facts.clocks.as_ref().is_some_and(Vec::is_empty) {
        // The clock of a virtual machine is that of its host: there is no nominal clock to compare it with.
        return Err(Why::Clear(format!("nothing on {name} sets its clock")));
    }
    let workers = threads(load, direction, side);
    let busy = wanted(workers).ok_or(Why::NoThread)?;
    if busy < BUSY {
        let why = format!("{name} needed its CPU only {} of the time", percent(busy));
        return Err(Why::Clear(why));
    }
    let clocks = facts.clocks.as_ref();
    let clocks = clocks.ok_or_else(|| lacks("what sets it was not read".to_owned()))?;
    let cpu = busiest(workers).and_then(|thread| thread.cpu);
    let cpu = cpu.ok_or_else(|| lacks("the CPU of its busy thread is not known".to_owned()))?;
    let kind = clocks.iter().find(|kind| kind.cpus.contains(&cpu));
    let kind = kind.ok_or_else(|| lacks(format!("the clock of CPU {cpu} was not read")))?;
    let clock = &kind.clock;
    let cpus = load.cpus.at(direction, side);
    let now = cpus.iter().find(|c| c.number == cpu).and_then(|c| c.clock);
    // A CPU that worked had a clock: a reading of 0 is wrong.
    let now = now.filter(|now| now.0 > 0);
    let now =
        now.ok_or_else(|| lacks(format!("the clock of CPU {cpu} was not read under load")))?;
    // The highest clock that the CPU reports is an upper bound of the nominal clock, but not the nominal clock itself.
    let enough = clock.max.filter(|max| now.0 as f64 >= max.0 as f64 * LOW);
    let nominal = clock.nominal.or(enough).filter(|nominal| nominal.0 > 0);
    let nominal = nominal.ok_or_else(|| lacks("its nominal clock was not read".to_owned()))?;
    Ok(Slow { side, busy, cpu, now, nominal, clock, cpus: &kind.cpus })
}

/// The governor and the limit that determine the clock, as far as known, in words.
fn setting(clock: &Clock) -> String {
    let governor = (!clock.governor.is_empty())
        .then(|| format!("; governor {} ({})", clock.governor, clock.driver));
    let limit = capped(clock).map(|(limit, _)| format!("; settings allow {limit} at most"));
    [governor, limit].into_iter().flatten().collect()
}

/// The limit of the clock by settings, if it is below the nominal clock; and that nominal clock.
fn capped(clock: &Clock) -> Option<(Hertz, Hertz)> {
    let both = clock.limit.zip(clock.nominal);
    both.filter(|(limit, nominal)| (limit.0 as f64) < nominal.0 as f64 * LOW)
}

fn remedy(slow: &Slow<'_>) -> Advice {
    let Slow { side, clock, cpus, .. } = slow;
    let on = ranges(cpus);
    // Memory does not become faster with the CPU's clock, so the gain is unknown.
    if let Some((limit, nominal)) = capped(clock) {
        let set = |hertz: Hertz| {
            let most = hertz.0 / 1000;
            format!("sudo cpupower -c {on} frequency-set -u {most}kHz")
        };
        let most = clock.max.unwrap_or(nominal);
        let advice = Advice::new(format!("allow CPU clocks of {most}"));
        return advice.set(*side, set(most)).undo_on(*side, set(limit));
    }
    if clock.governor.is_empty() || clock.governor == "performance" {
        let what = "find what limits the clock: heat or a power limit";
        let command =
            "sudo turbostat --quiet --num_iterations 5 --show CPU,Busy%,Bzy_MHz,CoreTmp,PkgWatt";
        return Advice::new(what).on(*side, command);
    }
    let set = |governor: &str| {
        let governor = word(governor);
        format!("sudo cpupower -c {on} frequency-set -g {governor}")
    };
    let advice = Advice::new("let the CPUs run at their full clock");
    let advice = advice.set(*side, set("performance"));
    advice.undo_on(*side, set(&clock.governor))
}
