//! A CPU quota stops the program of an end.

use crate::causes::host::cpu_share::{self, ENOUGH, SUSPECT};
use crate::causes::prelude::*;
use crate::model::Throttled;
use crate::signs::threads::{busiest, threads};
use linerate_facts::advice::Kept;
use linerate_units::shell::word;

/// Share of time in which the quota must have stopped an end to be named.
const STOPPED: f64 = 0.1;

/// Share of a CPU's time up to which other programs on it do not matter.
const NOBODY: f64 = 0.05;

/// An end whose program was stopped by a CPU quota.
struct ThrottledEnd<'a> {
    side: Side,
    by: &'a Throttled,
    /// Share of time in which the end's busiest thread ran.
    busy: f64,
    /// Share of time in which the quota kept the end from running.
    lost: f64,
}

/// Minimum share of periods with a used-up quota, at which the program needs more than the quota all the time.
const EVERY_PERIOD: f64 = 0.9;

impl ThrottledEnd<'_> {
    fn need(&self) -> f64 {
        (self.busy + self.lost).min(1.0)
    }
    fn got(&self) -> f64 {
        self.busy / (self.busy + self.lost)
    }
}

pub(crate) static CAUSE: Cause = Cause {
    id: "cpu-quota",
    name: "a CPU quota stops the program",
    stage: Stage::Cpu,
    decided_by: &[Factor::SenderWork, Factor::ReceiverWork],
    page: include_str!("../pages/cpu-quota.md"),
    check,
    predict,
    decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let throttled = worst(model, direction)?;
    let used_up = throttled.need() >= ENOUGH || throttled.by.periods >= EVERY_PERIOD;
    let evidence = vec![format!(
        "the CPU quota of {}'s control group {} was used up in {} of its periods and stopped it {} \
             of the time; its busiest thread ran {}",
        throttled.side.name(),
        throttled.by.group,
        percent(throttled.by.periods),
        percent(throttled.by.time),
        percent(throttled.busy)
    )];
    Ok(Finding::at(throttled.side, throttled.lost, evidence).enough(used_up).reached(used_up))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let throttled = worst(model, trial.direction).ok()?;
    // The quota applies to the program on any CPU, and all streams of the program share it.
    match trial.factor()? {
        Factor::OtherCpu => crate::causes::predict::bystander(model, trial),
        Factor::MoreStreams => Some(Range { low: 0.5, high: 1.2 }),
        _ => cpu_share::predict(model, trial, throttled.side, throttled.got()),
    }
}

fn decides(model: &Model, trial: &TrialPlan) -> bool {
    let at = worst(model, trial.direction).map(|throttled| throttled.side);
    trial.factor() != Some(Factor::OtherCpu)
        && at.is_ok_and(|side| cpu_share::is_about(trial, trial.direction, side))
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Ok(throttled) = worst(model, direction) else {
        return Vec::new();
    };
    let group = &throttled.by.group;
    let file = word(&format!("/sys/fs/cgroup{group}/cpu.max"));
    let what = "raise the CPU quota: of a container or service by its own setting (CPUQuota=, --cpus), else here; \
                version 1 of cgroups has it in cpu.cfs_quota_us";
    let kept = Kept {
        save: format!("cat {file} | tee cpu-max-before.txt"),
        restore: format!("sudo tee {file} < cpu-max-before.txt"),
    };
    let advice =
        Advice::new(what).keeping(throttled.side, kept, format!("echo max | sudo tee {file}"));
    vec![advice.gain(cpu_share::gain(model, direction, throttled.got()))]
}

fn worst(model: &Model, direction: Direction) -> Result<ThrottledEnd<'_>, NoFinding> {
    cpu_share::worst(model, direction, |side| at(model, direction, side), |s| s.lost)
}

fn at(model: &Model, direction: Direction, side: Side) -> Result<ThrottledEnd<'_>, NoFinding> {
    let load = base(model, direction)?;
    let name = side.name();
    let thread = busiest(threads(load, direction, side));
    let read = thread.and_then(|t| Some((t.busy?, t.waiting.unwrap_or(0.0))));
    let (busy, waiting) = read.ok_or_else(|| lacks(model, "thread", side))?;
    let waits = waiting >= cpu_share::LOST && busy + waiting >= SUSPECT;
    let home = thread.and_then(|t| cpu_share::home(t, cpu_share::cpus(load, direction, side)));
    // CPU time that a quota withholds from a thread is left to other programs, or is idle.
    let full = home.filter(|cpu| cpu.busy >= ENOUGH && cpu.others.is_some_and(|o| o < NOBODY));
    if let Some(cpu) = full {
        return Err(clear(format!(
            "CPU {} of {name} was busy {} of the time, with this run alone",
            cpu.number,
            percent(cpu.busy)
        )));
    }
    let Some(by) = load.throttled.at(direction, side) else {
        let unread = model.gaps.iter();
        let mut unread = unread.filter(|(s, g)| *s == side && g.what.starts_with("cgroup"));
        return Err(match unread.next() {
            Some((_, gap)) if waits => NoFinding::Unknown(vec![gap.clone()]),
            _ => clear(format!("no CPU quota stopped {name}")),
        });
    };
    if by.time < STOPPED {
        return Err(clear(format!("CPU quotas stopped {name} {} of the time", percent(by.time))));
    }
    // Since version 6.18 kernels do not count the stopped time as time that the thread waited.
    let lost = waiting.max(by.time.min(1.0 - busy));
    let throttled = ThrottledEnd { side, by, busy, lost };
    if throttled.need() < SUSPECT {
        return Err(clear(format!(
            "{name} needed its CPU only {} of the time",
            percent(throttled.need())
        )));
    }
    Ok(throttled)
}
