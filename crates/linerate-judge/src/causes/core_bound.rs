//! The common part of the two core causes: one thread that has no time left.

use super::cpu_contention::CpuContention;
use super::cpu_quota::CpuQuota;
use super::cpu_share::{cpus, home, stands};
use super::cpu_steal::CpuSteal;
use super::predict::{UNCOPIED, added_work, bystander};
use super::shared_core::{self, SharedCore};
use super::{Answer, BUSY, Cause, Finding, NoFinding, again, base, datagrams, lacks};
use crate::model::{Cpu, Load, Model, Thread, TrialModel};
use crate::signs::threads::{at_work, busiest, ps_per_byte, threads, wanted, wanted_at};
use crate::signs::{GAIN, percent};
use linerate_facts::advice::Advice;
use linerate_plan::factor::{Class, Factor};
use linerate_plan::path::{Direction, Place, Side};
use linerate_plan::transport::Transport;
use linerate_record::TrialPlan;
use linerate_units::stats::{EQUAL, Range};

/// Ids of both core causes.
pub(super) const IDS: &[&str] = &["sender-core", "receiver-core"];

/// Share of its CPU that a thread must want to be suspected.
const SUSPECT: f64 = 0.8;

/// Minimum utilization of the busiest thread's CPU at which the evidence is enough without a trial (METHOD
/// section 2).
const ENOUGH: f64 = 0.95;

/// Effect on goodput of another size of buffers or batches, if a CPU is full.
const MOVED: Range = Range { low: 0.7, high: 1.15 };

/// Least time to copy a received byte, in picoseconds: 40 GB/s. The newest received bytes were written by
/// another core or by a port, so they come from a shared cache at best, and no core reads one that fast.
const COPY_LEAST_PS: f64 = 25.0;

/// Usual time to copy a byte, in picoseconds: 10 GB/s. It decides only whether a trial is worth its time, and
/// no verdict.
const COPY_USUAL_PS: f64 = 100.0;

/// How many times as fast a thread must become without the copy for a gain to be expected: twice the least gain
/// that counts when a limit is removed.
const SAVES: f64 = 1.1;

/// The end whose threads are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Threads that send.
    Sender,
    /// Threads that receive.
    Receiver,
}

impl Role {
    /// The activity of an end's threads.
    pub(super) fn of(side: Side, direction: Direction) -> Self {
        if side == direction.sender() { Self::Sender } else { Self::Receiver }
    }
    fn side(self, direction: Direction) -> Side {
        match self {
            Self::Sender => direction.sender(),
            Self::Receiver => direction.receiver(),
        }
    }
    /// The factor whose trial adds work to these threads.
    pub(super) fn factor(self) -> Factor {
        match self {
            Self::Sender => Factor::SenderWork,
            Self::Receiver => Factor::ReceiverWork,
        }
    }
    fn word(self) -> &'static str {
        match self {
            Self::Sender => "sending",
            Self::Receiver => "receiving",
        }
    }
}

/// The result of the counters.
pub(super) fn check(model: &Model, direction: Direction, role: Role) -> Answer {
    let load = base(model, direction)?;
    let side = role.side(direction);
    if model.ends(direction).all(|end| end != side) {
        return Err(NoFinding::Clear("there is no far end".to_owned()));
    }
    if load.transport == Transport::Rdma && load.knobs.busy_poll {
        return Err(NoFinding::Clear(format!(
            "the {} thread polls for completions, and is busy at any load",
            role.word()
        )));
    }
    let workers = threads(load, direction, side);
    let Some(share) = wanted_at(load, direction, side) else {
        return Err(lacks(model, "thread", side));
    };
    if share < SUSPECT {
        return Err(NoFinding::Clear(format!(
            "the {} thread needed its CPU only {} of the time",
            role.word(),
            percent(share)
        )));
    }
    if let Some(id) = kept_from_its_cpu(model, direction, side) {
        return Err(NoFinding::Clear(format!(
            "the {} thread does not get its CPU: {id}",
            role.word()
        )));
    }
    let lost = match of_datagrams(model, load, direction, role) {
        Some(Ok(lost)) => Some(lost),
        Some(Err(answer)) => return Err(answer),
        None => None,
    };
    let busiest = busiest(workers);
    let used = |t| used(t, cpus(load, direction, side));
    // A polling thread is always busy: only a trial shows whether it has time left.
    let polls = load.knobs.busy_poll;
    let used_up = !polls && busiest.and_then(used).is_some_and(|used| used >= ENOUGH);
    Ok(Finding {
        side: Place::from(side),
        share,
        enough: used_up,
        reached: used_up,
        evidence: busiest
            .and_then(|t| sentence(t, role))
            .into_iter()
            .chain(polls.then(|| "it polls, and is busy at any load".to_owned()))
            .chain(lost)
            .collect(),
    })
}

/// Whether a thread needs so much of its CPU that the network cannot be the limit, and gets most of it. Then it
/// is the only cause left.
pub(super) fn is_last(model: &Model, direction: Direction, role: Role) -> bool {
    let side = role.side(direction);
    let dir = model.direction(direction);
    dir.filter(|dir| !dir.base.knobs.busy_poll).is_some_and(|dir| {
        let workers = threads(&dir.base, direction, side);
        let used = busiest(workers).and_then(|t| used(t, cpus(&dir.base, direction, side)));
        wanted_at(&dir.base, direction, side).is_some_and(|share| share > BUSY)
            && used.is_some_and(|u| u >= SUSPECT)
    })
}

/// Describes the datagrams that a reader had no time for; else why there are none. `None` for a sender, and for
/// a load by connections.
fn of_datagrams(
    model: &Model,
    load: &Load,
    direction: Direction,
    role: Role,
) -> Option<Result<String, NoFinding>> {
    let told = load.datagrams.as_ref().filter(|_| role == Role::Receiver)?;
    let dropped = datagrams::at_the_socket(model, direction, told);
    Some(dropped.map(|dropped| datagrams::words(told, dropped, "dropped at its socket")))
}

/// The cause that keeps an end's threads from a CPU that they could have, if there is one.
pub(super) fn kept_from_its_cpu(
    model: &Model,
    direction: Direction,
    side: Side,
) -> Option<&'static str> {
    let causes: [&dyn Cause; 4] = [&CpuQuota, &CpuContention, &CpuSteal, &SharedCore];
    let mut standing = causes.into_iter().filter(|c| stands(*c, model, direction, side));
    let both = || shared_core::between(model, direction).then_some(SharedCore.id());
    standing.next().map(Cause::id).or_else(both)
}

/// Share of its CPU that a thread's work used: its own time, interrupts on that CPU, and other threads of this
/// run for which it waited. Time spent waiting for other programs does not count.
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

/// The expected effect of a trial: more work slows a thread without slack down in proportion.
pub(super) fn predict(model: &Model, trial: &TrialPlan, role: Role) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    let factor = trial.factor()?;
    if factor == role.factor() {
        return of_more_work(model, trial, role);
    }
    match factor {
        // The range reaches from threads that share one CPU to twice as many CPUs at work.
        Factor::OtherCongestion => Some(Range { low: 0.3, high: 1.3 }),
        Factor::MoreStreams => Some(Range { low: 0.6, high: trial.stream_ratio() * 1.1 }),
        // Buffers move the work of a full CPU between caches. The effect is unknown.
        _ if factor.class() == Class::LargerBuffer => Some(MOVED),
        // The gain is unknown. It depends on the cost of each packet (offloads), on how far the CPU is behind
        // (backlog), and on the CPU time that packets used (packets on other CPUs).
        _ if factor.class() == Class::Packets => None,
        Factor::Discard => match role {
            Role::Receiver => uncopied(load),
            // Payload that is not copied stays out of caches that both ends may share.
            Role::Sender => Some(MOVED),
        },
        Factor::ZeroCopy => match role {
            Role::Sender => handed_over(model, load, trial),
            // Payload stays out of caches that both ends may share.
            Role::Receiver => Some(Range { low: UNCOPIED.low, ..MOVED }),
        },
        // Half of the buffer space in use may be the next limit, just below the present one.
        Factor::HalfWindow | Factor::HalfSendBuffer => {
            Some(bystander(model, trial).map_or(Range { low: 0.4, ..MOVED }, |_| MOVED))
        }
        // Calls cost between nothing and all of the thread's time.
        Factor::SmallerReads if role == Role::Receiver => Some(Range { low: 0.5, high: 1.1 }),
        Factor::SmallerWrites if role == Role::Sender => Some(Range { low: 0.5, high: 1.1 }),
        // Calls at the other end, which has time for them, change the size of the batches that arrive here.
        // The effect of these batches on a full CPU is unknown.
        Factor::SmallerReads | Factor::SmallerWrites => bystander(model, trial).map(|_| MOVED),
        _ => bystander(model, trial),
    }
}

/// More work slows down a thread without slack; there is no prediction if that work made its other work
/// cheaper.
fn of_more_work(model: &Model, trial: &TrialPlan, role: Role) -> Option<Range> {
    let measured = model.trials.iter().find(|t| t.plan.id == trial.id);
    let cheaper = measured.filter(|_| role == Role::Sender);
    if cheaper.and_then(|t| made_cheaper(model, t)).is_some() {
        return None;
    }
    Some(slowed(added_work(model, trial, role == Role::Sender)?))
}

/// CPU time for each byte, without and with the work that a trial added to a sending thread that had no time
/// left. `Some` where it rose so little that the other work must have become cheaper. This happens because the
/// kernel then does work on other CPUs (it handles acknowledgements there, and sends the segments that they
/// allow), or does more in one go. With BBR, a quarter more work was measured to leave 1.09 to 1.41 of the
/// goodput, since segments were reordered less. Nothing is known of datagrams: a slower sender loses fewer, so
/// each that arrives costs less, whatever the limit is.
pub(super) fn made_cheaper(model: &Model, trial: &TrialModel) -> Option<[f64; 2]> {
    let added = added_work(model, &trial.plan, true).filter(|added| *added > 0.0)?;
    let load = &model.direction(trial.plan.direction)?.base;
    let full = load.transport != Transport::Udp && wanted(&load.senders)? > BUSY;
    let [without, with] = [trial.cost[0]?, trial.cost[1]?];
    (full && without / with > slowed(added).high).then_some([without, with])
}

/// A thread without slack loses the added share of its time, `1/(1+w)`, or less: a thread that starts later
/// finds more work at once, and larger batches cost less per byte. At least half of the loss must be seen. It
/// may lose somewhat more, since the added work competes for cache and CPU turns: a quarter more work was
/// measured to leave 0.74 to 0.84.
fn slowed(added: f64) -> Range {
    let proportional = 1.0 / (1.0 + added);
    Range { low: proportional * 0.8, high: f64::midpoint(proportional, 1.0) }
}

/// A receiving thread without slack gains the time of the copy, up to the next limit. Only the least gain is
/// known beforehand: a copy costs at least [`COPY_LEAST_PS`], and the sender may have less time left than that.
/// `None` if the gain could be too small to differ from no change: then a trial without a gain proves nothing.
fn uncopied(load: &Load) -> Option<Range> {
    let copy =
        COPY_LEAST_PS / ps_per_byte(load.goodput.mean, at_work(&load.receivers, load.streams))?;
    let sender = 1.0 / wanted(&load.senders)?;
    let least = (1.0 / (1.0 - copy)).min(sender);
    (copy < 1.0 && least > EQUAL.high).then_some(Range { low: least, high: f64::MAX })
}

/// A sending thread without slack gains the CPU time that it saves on each byte, up to the next limit. The
/// trial itself measures this saving; before that, a copy is assumed to have its usual cost. `None` if the
/// saving, or the receiver's spare time, is so small that the gain could look like no change: holding pages has
/// a cost as well.
fn handed_over(model: &Model, load: &Load, trial: &TrialPlan) -> Option<Range> {
    let left = 1.0 / wanted(&load.receivers)?;
    let measured = model.trials.iter().find(|t| t.plan.id == trial.id);
    let (gain, high) = if let Some(TrialModel { cost: [a, b], .. }) = measured {
        let gain = (*a)? / (*b)?;
        (gain, gain * MOVED.high)
    } else {
        let copy =
            COPY_USUAL_PS / ps_per_byte(load.goodput.mean, at_work(&load.senders, load.streams))?;
        (1.0 / (1.0 - copy.min(0.9)), f64::MAX)
    };
    (gain.min(left) >= SAVES).then_some(Range { low: GAIN, high })
}

/// Advice to use more streams, if they carried more.
pub(super) fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
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
    let again = again(model, &format!(" --streams {}", knee.streams));
    vec![advice.on(Side::Near, again).gain(Some(gain))]
}
