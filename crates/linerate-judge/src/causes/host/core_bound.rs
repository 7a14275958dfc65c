//! Code shared by the causes `sender-core` and `receiver-core`: one thread that has no spare CPU time.

use crate::causes::host::busy_thread::Role;
use crate::causes::host::cpu_contention;
use crate::causes::host::cpu_quota;
use crate::causes::host::cpu_share::{cpus, home, stands};
use crate::causes::host::cpu_steal;
use crate::causes::host::shared_core;
use crate::causes::prelude::*;
use crate::causes::udp::datagrams;
use crate::causes::{BUSY, rerun};
use crate::model::{Cpu, Thread};
use crate::signs::threads::{busiest, threads, wanted_at};

/// Ids of the two causes in which one thread uses all of its CPU.
pub(crate) const IDS: &[&str] = &["sender-core", "receiver-core"];

/// Share of its CPU that a thread must need to be a suspect.
const SUSPECT: f64 = 0.8;

/// Minimum utilization of the busiest thread's CPU at which the evidence is enough without a trial (METHOD
/// section 2).
const ENOUGH: f64 = 0.95;

/// Judges by counters whether the threads of an end are the limit.
pub(crate) fn check(model: &Model, direction: Direction, role: Role) -> Answer {
    let load = base(model, direction)?;
    let side = role.side(direction);
    if model.ends(direction).all(|end| end != side) {
        return Err(clear("there is no far end"));
    }
    if load.has(Feature::Verbs) && load.knobs.busy_poll {
        return Err(clear(format!(
            "the {} thread polls for completions, and is busy at any load",
            role.word()
        )));
    }
    let workers = threads(load, direction, side);
    let Some(share) = wanted_at(load, direction, side) else {
        return Err(lacks(model, "thread", side));
    };
    if share < SUSPECT {
        return Err(clear(format!(
            "the {} thread needed its CPU only {} of the time",
            role.word(),
            percent(share)
        )));
    }
    if let Some(id) = kept_from_its_cpu(model, direction, side) {
        return Err(clear(format!("the {} thread does not get its CPU: {id}", role.word())));
    }
    let lost = match of_datagrams(model, load, direction, role) {
        Some(Ok(lost)) => Some(lost),
        Some(Err(answer)) => return Err(answer),
        None => None,
    };
    let busiest = busiest(workers);
    let used = |t| used(t, cpus(load, direction, side));
    // A polling thread is always busy: only a trial shows whether it has spare time.
    let polls = load.knobs.busy_poll;
    let used_up = !polls && busiest.and_then(used).is_some_and(|used| used >= ENOUGH);
    let evidence = busiest
        .and_then(|t| sentence(t, role))
        .into_iter()
        .chain(polls.then(|| "it polls, and is busy at any load".to_owned()))
        .chain(lost)
        .collect();
    Ok(Finding::at(side, share, evidence).enough(used_up).reached(used_up))
}

/// Whether a thread needs so much of its CPU that the network cannot be the limit, and gets most of what it needs. Then
/// no other cause is left.
pub(crate) fn is_last(model: &Model, direction: Direction, role: Role) -> bool {
    let side = role.side(direction);
    let dir = model.direction(direction);
    dir.filter(|dir| !dir.base.knobs.busy_poll).is_some_and(|dir| {
        let workers = threads(&dir.base, direction, side);
        let used = busiest(workers).and_then(|t| used(t, cpus(&dir.base, direction, side)));
        wanted_at(&dir.base, direction, side).is_some_and(|share| share > BUSY)
            && used.is_some_and(|u| u >= SUSPECT)
    })
}

/// Describes the datagrams that a reader had no time for; else why there are none. `None` for a sender, and for a load
/// of connections.
fn of_datagrams(
    model: &Model,
    load: &Load,
    direction: Direction,
    role: Role,
) -> Option<Result<String, NoFinding>> {
    let reported = load.datagrams.as_ref().filter(|_| role == Role::Receiver)?;
    let dropped = datagrams::at_the_socket(model, direction, reported);
    Some(dropped.map(|dropped| datagrams::words(reported, dropped, "dropped at its socket")))
}

/// Id of the cause that keeps an end's threads from a CPU that they could have; `None` if there is none.
pub(crate) fn kept_from_its_cpu(
    model: &Model,
    direction: Direction,
    side: Side,
) -> Option<&'static str> {
    let causes: [&Cause; 4] =
        [&cpu_quota::CAUSE, &cpu_contention::CAUSE, &cpu_steal::CAUSE, &shared_core::CAUSE];
    let mut standing = causes.into_iter().filter(|c| stands(c, model, direction, side));
    let both = || shared_core::between(model, direction).then_some(shared_core::CAUSE.id);
    standing.next().map(|cause| cause.id).or_else(both)
}

/// Share of its CPU that a thread's work used: the thread's own time, interrupts on that CPU, and other threads of this
/// run for which it waited. The wait for other programs does not count.
fn used(thread: &Thread, cpus: &[Cpu]) -> Option<f64> {
    let busy = thread.busy?;
    let ours = home(thread, cpus).and_then(|cpu| cpu.ours).unwrap_or(busy);
    let behind_ours = thread.waiting.unwrap_or(0.0).min((ours - busy).max(0.0));
    Some(busy + thread.taken.unwrap_or(0.0) + behind_ours)
}

fn sentence(thread: &Thread, role: Role) -> Option<String> {
    let busy = thread.busy?;
    let place = thread.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let kernel = thread
        .user
        .map_or(String::new(), |u| format!(", {} of it in the kernel", percent(1.0 - u)));
    let waited = thread
        .waiting
        .filter(|w| *w >= 0.02)
        .map_or(String::new(), |w| format!("; it waited for the CPU {} of the time", percent(w)));
    Some(format!("one {} thread{place} was {} busy{kernel}{waited}", role.word(), percent(busy)))
}

/// Advice to use more streams, if they carried more in a measurement.
pub(crate) fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Some(dir) = model.direction(direction) else {
        return Vec::new();
    };
    let knee = dir.knee();
    let gain = knee.goodput.mean / dir.base.goodput.mean;
    if knee.streams <= dir.base.streams || gain < 1.05 {
        return Vec::new();
    }
    let advice = Advice::new(format!(
        "use {} streams, so that more CPUs share the work (your own program: several connections, each with a thread of \
         its own)",
        knee.streams
    ));
    let rerun = rerun(model, &format!(" --streams {}", knee.streams));
    vec![advice.on(Side::Near, rerun).gain(Some(gain))]
}
