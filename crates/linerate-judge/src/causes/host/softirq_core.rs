//! A CPU spends nearly all of its time on packets.

use crate::causes::host::cpu_share::{cpus, worst};
use crate::causes::host::shared_core::serves;
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::causes::rdma;
use crate::model::{Cpu, Local, LocalEvent};
use crate::signs::threads::threads;
use linerate_facts::advice::Kept;
use linerate_units::shell::word;
use linerate_units::stats::EQUAL;

/// Minimum share of a CPU's time in softirq, at which it has no spare time (METHOD section 2).
pub(crate) const FULL: f64 = 0.9;

/// Minimum share of the CPU's time that a thread of the load needs, to count as the source of the packets.
const THREAD: f64 = 0.05;

/// A CPU that spends nearly all of its time on received packets (softirq).
struct Full<'a> {
    side: Side,
    cpu: &'a Cpu,
    /// Whether the packets are known to belong to this path; false if unknown.
    ours: bool,
}

pub(crate) static CAUSE: Cause = Cause {
    id: "softirq-core",
    name: "one CPU handles all packets",
    needs: &[Feature::Card],
    stage: Stage::Cpu,
    decided_by: &[Factor::MoreStreams, Factor::HostSpread],
    page: include_str!("../pages/softirq-core.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let full = fullest(model, direction)?;
    let packets = full.cpu.packets.filter(|n| *n > 0.0);
    let packets = packets.map(|n| format!(": {n:.0} packets per second"));
    let mut evidence = vec![format!(
        "CPU {} of {} handled packets {} of the time{}",
        full.cpu.number,
        full.side.name(),
        percent(full.cpu.softirq),
        packets.unwrap_or_default()
    )];
    if let Ok(load) = base(model, direction) {
        let here = |l: &&Local| matches!(l.what, LocalEvent::Backlog | LocalEvent::Ring);
        evidence.extend(load.local.iter().find(here).map(Local::words));
    }
    Ok(Finding::at(full.side, full.cpu.softirq, evidence).enough(full.ours).reached(full.ours))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    fullest(model, trial.direction).ok()?;
    of_full(model, trial)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Ok(Full { side, cpu, .. }) = fullest(model, direction) else {
        return Vec::new();
    };
    spread(model, side, cpu.number).into_iter().collect()
}

/// The predicted ratio of goodput for a trial, if a CPU has no time for more packets.
pub(crate) fn of_full(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // More streams share the CPU if their packets arrive in one queue; in other queues they have other CPUs.
        Factor::MoreStreams => Some(Range { low: 0.8, high: trial.stream_ratio() * 1.1 }),
        Factor::OtherCongestion => Some(Range { low: 0.3, high: 1.3 }),
        // A smaller window makes smaller batches, and a larger window larger ones.
        Factor::LargerWindow | Factor::LargerSendBuffer => Some(Range { low: 0.8, high: 1.2 }),
        Factor::HalfWindow | Factor::HalfSendBuffer => Some(Range { low: 0.4, high: 1.15 }),
        // At best the work is spread over all CPUs of the new setting. The driver's part is not spread, and each flow
        // stays on one CPU: a trial without a gain proves nothing.
        Factor::HostSpread => {
            let more = trial.after.host?.value.count_ones();
            let measured = model.trials.iter().find(|t| t.plan.id == trial.id);
            let effect = measured.and_then(|t| t.effect);
            let reported = effect.is_none_or(|effect| effect.low > EQUAL.high);
            reported.then_some(Range { low: GAIN, high: f64::from(more + 1) * 1.1 })
        }
        // A CPU that is behind for a moment drops fewer packets. How far it is behind is unknown.
        Factor::HostRoom => None,
        Factor::OtherCpu => Some(Range { low: 0.7, high: 1.5 }),
        _ => bystander(model, trial),
    }
}

/// Advice to spread the packets of a queue over the host's other CPUs.
pub(crate) fn spread(model: &Model, side: Side, full: u32) -> Option<Advice> {
    let facts = &model.hosts.iter().find(|h| h.side == side)?.facts;
    let port = word(&facts.port.as_ref()?.name);
    // The mask is one word: it holds the other CPUs below number 32.
    let others = facts.cpus.iter().filter(|cpu| **cpu != full && **cpu < 32);
    let mask = others.fold(0_u32, |mask, cpu| mask | 1 << cpu);
    let queues = format!("/sys/class/net/{port}/queues/rx-*");
    (mask != 0).then(|| {
        // Each queue may have had its own setting before.
        Advice::new(format!(
            "let all CPUs process the packets of {port}; more streams do the same where it has more queues (ethtool -l)"
        ))
        .keeping(
            side,
            Kept::files(&format!("{queues}/rps_cpus"), "rps-before.txt"),
            format!("for q in {queues}; do echo {mask:x} | sudo tee $q/rps_cpus; done"),
        )
    })
}

/// Returns the end whose CPU spends nearly all of its time on received packets.
pub(crate) fn side(model: &Model, direction: Direction) -> Option<Side> {
    fullest(model, direction).ok().map(|full| full.side)
}

/// The CPU that spends the largest share of its time on packets; else the reason why none is full.
fn fullest(model: &Model, direction: Direction) -> Result<Full<'_>, NoFinding> {
    worst(model, direction, |side| at(model, direction, side), |full| full.cpu.softirq)
}

fn at(model: &Model, direction: Direction, side: Side) -> Result<Full<'_>, NoFinding> {
    let load = base(model, direction)?;
    if rdma::port::carries(load) && !rdma::port::is_software(load, direction) {
        return Err(clear("RDMA devices move payload without the kernel"));
    }
    let all = cpus(load, direction, side);
    if let (true, Some((_, gap))) = (all.is_empty(), unread(model, side)) {
        return Err(NoFinding::Unknown(vec![gap.clone()]));
    }
    let full = apart(model, load, direction, side);
    let full = full.max_by(|a, b| a.softirq.total_cmp(&b.softirq));
    match full {
        Some(cpu) if cpu.softirq >= FULL => {
            let ours =
                takes_in(load, direction, side, cpu).unwrap_or(true) || serves(model, side, cpu);
            Ok(Full { side, cpu, ours })
        }
        Some(cpu) => Err(clear(format!(
            "no CPU of {} handled packets more than {} of the time",
            side.name(),
            percent(cpu.softirq)
        ))),
        None => Err(clear(format!(
            "no CPU of {} is known to handle packets apart from the load's own threads",
            side.name()
        ))),
    }
}

/// CPUs of an end that process packets separately from the load's own threads, for this path or others. If the
/// ends share a machine, both see all CPUs: a CPU belongs to the end whose port sends interrupts to it, or else
/// to the receiving end.
fn apart<'a>(
    model: &Model,
    load: &'a Load,
    direction: Direction,
    side: Side,
) -> impl Iterator<Item = &'a Cpu> {
    let other = if side == Side::Near { Side::Far } else { Side::Near };
    let mine = move |cpu: &&Cpu| {
        !model.same_machine
            || serves(model, side, cpu)
            || (side == direction.receiver() && !serves(model, other, cpu))
    };
    let apart = move |cpu: &&Cpu| {
        let by_port = serves(model, side, cpu);
        by_port || !runs(load, model.same_machine, direction, side, cpu.number)
    };
    cpus(load, direction, side).iter().filter(mine).filter(apart)
}

/// The CPU that processes most packets in addition to the load's threads, if these packets belong to the load.
pub(crate) fn of_the_load<'a>(
    model: &Model,
    load: &'a Load,
    direction: Direction,
    side: Side,
) -> Option<&'a Cpu> {
    let known =
        |cpu: &&Cpu| takes_in(load, direction, side, cpu) == Some(true) || serves(model, side, cpu);
    let all = apart(model, load, direction, side).filter(known);
    let busy = all.filter(|cpu| cpu.softirq >= THREAD);
    busy.max_by(|a, b| a.softirq.total_cmp(&b.softirq))
}

/// Whether a CPU receives packets of a stream. `None` if the CPU of a stream is unknown or changed, and for the sender,
/// whose sockets receive no payload.
fn takes_in(load: &Load, direction: Direction, side: Side, cpu: &Cpu) -> Option<bool> {
    let receivers = (side == direction.receiver()).then_some(&load.receivers)?;
    let known: Option<Vec<u32>> = receivers.iter().map(|thread| thread.takes_in).collect();
    Some(known?.contains(&cpu.number))
}

fn unread(model: &Model, side: Side) -> Option<&(Side, Gap)> {
    let mut gaps = model.gaps.iter();
    gaps.find(|(s, gap)| *s == side && gap.what == "cpu")
}

/// Whether a thread of the load runs on a CPU. Packets that a thread sends over a virtual port are handled in the
/// thread's own time.
fn runs(load: &Load, same_machine: bool, direction: Direction, side: Side, cpu: u32) -> bool {
    let sides = [direction.sender(), direction.receiver()].into_iter();
    let mut ends = sides.filter(|s| same_machine || *s == side);
    ends.any(|s| {
        let mut all = threads(load, direction, s).iter();
        all.any(|t| t.cpu == Some(cpu) && t.busy.is_none_or(|busy| busy >= THREAD))
    })
}
