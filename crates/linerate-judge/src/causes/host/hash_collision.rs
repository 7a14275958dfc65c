//! Streams share a receive queue whose CPU is full, while other queues of the port are idle.

use crate::causes::host::cpu_share::cpus;
use crate::causes::host::softirq_core::{self, FULL, spread};
use crate::causes::prelude::*;
use crate::model::Cpu;
use linerate_facts::odd::ranges;

/// Share of its CPU's time in softirq, below which a queue has next to nothing to do.
const IDLE: f64 = 0.2;

/// A CPU that is full with the packets of several streams, while other receive queues are idle.
pub(crate) struct Crowded {
    side: Side,
    cpu: u32,
    softirq: f64,
    /// The number of streams whose packets the CPU receives.
    streams: u32,
    /// CPUs of receive queues that have next to nothing to do.
    idle: Vec<u32>,
}

pub(crate) static CAUSE: Cause = Cause {
    id: "hash-collision",
    name: "streams share one queue",
    needs: &[Feature::Stack],
    stage: Stage::Cpu,
    explains: &["softirq-core"],
    decided_by: &[Factor::OtherPorts],
    page: include_str!("../pages/hash-collision.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let crowded = find(model, direction)?;
    let s = if crowded.idle.len() == 1 { "" } else { "s" };
    Ok(Finding {
        side: Place::from(crowded.side),
        // A full CPU is the limit itself; the collision is the reason for it. The share that the collision explains is
        // unknown without a trial.
        share: crowded.softirq / 2.0,
        enough: !refused(model, direction),
        reached: false,
        evidence: vec![format!(
            "CPU {} of {} received the packets of {} streams and processed packets {} of the time, \
             while CPU{s} {}, which other queues of the port are served by, had next to none",
            crowded.cpu,
            crowded.side.name(),
            crowded.streams,
            percent(crowded.softirq),
            ranges(&crowded.idle)
        )],
    })
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let crowded = crowded(model, trial.direction)?;
    if trial.factor()? == Factor::OtherPorts {
        // Streams on separate queues gain at most a factor of the number of streams that shared one.
        return spread_out(model, trial)
            .then(|| Range { low: GAIN, high: f64::from(crowded.streams) * 1.1 });
    }
    softirq_core::CAUSE.predict(model, trial)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Some(crowded) = crowded(model, direction) else {
        return Vec::new();
    };
    let rerun = (!refused(model, direction)).then(|| {
        Advice::new("connect again: from other source ports the streams may fall into other queues")
    });
    let steered = spread(model, crowded.side, crowded.cpu);
    rerun.into_iter().chain(steered).collect()
}

/// The CPU at the receiving end on which streams collide; `None` if they do not.
pub(crate) fn crowded(model: &Model, direction: Direction) -> Option<Crowded> {
    find(model, direction).ok()
}

/// Whether the new connections of a trial used one queue each time: then the hash does not include TCP ports.
fn refused(model: &Model, direction: Direction) -> bool {
    let tried = model.tried(direction, Factor::OtherPorts);
    tried.is_some_and(|trial| trial.slices == 0)
}

/// Whether the streams of a trial's changed setting used separate queues all the time, or whether that is unknown.
fn spread_out(model: &Model, trial: &TrialPlan) -> bool {
    let base = model.direction(trial.direction).map(|d| &d.base);
    let before = base.and_then(Load::crowd);
    let run = model.trials.iter().find(|t| t.plan.id == trial.id);
    match run.and_then(|run| run.changed.as_ref()) {
        Some(changed) => changed
            .crowd()
            .zip(before)
            .is_some_and(|(after, before)| after.streams < before.streams),
        None => true,
    }
}

fn find(model: &Model, direction: Direction) -> Result<Crowded, NoFinding> {
    let load = base(model, direction)?;
    let side = direction.receiver();
    let clear = |why: String| Err(NoFinding::Clear(why));
    if load.streams < 2 {
        return clear("one stream shares its receive queue with no other".to_owned());
    }
    let host = model.host(side);
    let port = host.and_then(|host| host.facts.port.as_ref());
    let served = port.map_or(&[][..], |port| port.served_by.as_slice());
    if served.len() < 2 {
        return clear(format!(
            "the {} port is not known to send interrupts to more than one CPU",
            side.name()
        ));
    }
    let all = cpus(load, direction, side);
    if all.is_empty() {
        return Err(lacks(model, "cpu", side));
    }
    let serving = all.iter().filter(|cpu| served.contains(&cpu.number));
    let Some(full) = serving.clone().max_by(|a, b| a.softirq.total_cmp(&b.softirq)) else {
        return Err(lacks(model, "cpu", side));
    };
    if full.softirq < FULL {
        return clear(format!(
            "no CPU that serves queues of the {} port handled packets more than {} of the time",
            side.name(),
            percent(full.softirq)
        ));
    }
    let idle: Vec<u32> = serving.filter(|cpu| cpu.softirq < IDLE).map(|cpu| cpu.number).collect();
    if idle.is_empty() {
        return clear(format!("no queue of the {} port was idle", side.name()));
    }
    Ok(Crowded {
        side,
        cpu: full.number,
        softirq: full.softirq,
        streams: taken_in(load, side, full)?,
        idle,
    })
}

/// The number of streams whose packets the full CPU receives, if there are several; else the reason why not.
fn taken_in(load: &Load, side: Side, full: &Cpu) -> Result<u32, NoFinding> {
    let name = side.name();
    let known: Option<Vec<u32>> = load.receivers.iter().map(|t| t.takes_in).collect();
    let Some(known) = known else {
        return Err(NoFinding::Unknown(vec![Gap {
            what: format!("the receive queue of each stream at {name}"),
            why: "the CPU that receives its packets is unknown, or changed".to_owned(),
            hint: String::new(),
        }]));
    };
    match known.iter().filter(|cpu| **cpu == full.number).count() {
        several @ 2.. => Ok(several as u32),
        few => Err(clear(format!(
            "CPU {} of {name} received the packets of {few} of {} streams",
            full.number,
            known.len()
        ))),
    }
}
