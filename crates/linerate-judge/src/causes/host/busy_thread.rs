//! The threads of an end without spare CPU time: the effect of trials on their goodput.

use crate::causes::BUSY;
use crate::causes::predict::{UNCOPIED, added_work, bystander};
use crate::causes::prelude::*;
use crate::model::TrialModel;
use crate::signs::threads::{at_work, ps_per_byte, wanted};
use linerate_plan::factor::Class;
use linerate_units::stats::EQUAL;

/// Ratio of goodput with another size of buffers or batches, if a CPU is full.
const MOVED: Range = Range { low: 0.7, high: 1.15 };

/// Least time to copy a received byte, in picoseconds: 40 GB/s. The bytes received last were written by another core or
/// by a port, so they are read from a shared cache at best, and no core reads one that fast.
const COPY_LEAST_PS: f64 = 25.0;

/// Usual time to copy a byte, in picoseconds: 10 GB/s. It only decides whether a trial is worth its time, and affects
/// no verdict.
const COPY_USUAL_PS: f64 = 100.0;

/// Minimum speed-up of a thread that no longer copies, at which a gain of goodput is predicted: twice the least gain
/// that counts when a limit is removed.
const SAVES: f64 = 1.1;

/// The role of an end's threads in a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Threads that send.
    Sender,
    /// Threads that receive.
    Receiver,
}

impl Role {
    /// The role of the threads at one end in a direction.
    pub(crate) fn of(side: Side, direction: Direction) -> Self {
        if side == direction.sender() { Self::Sender } else { Self::Receiver }
    }
    pub(crate) fn side(self, direction: Direction) -> Side {
        match self {
            Self::Sender => direction.sender(),
            Self::Receiver => direction.receiver(),
        }
    }
    /// The factor whose trial adds work to the threads of this role.
    pub(crate) fn factor(self) -> Factor {
        match self {
            Self::Sender => Factor::SenderWork,
            Self::Receiver => Factor::ReceiverWork,
        }
    }
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Sender => "sending",
            Self::Receiver => "receiving",
        }
    }
}

/// The predicted ratio of goodput for a trial: added work slows a thread without spare time in proportion.
pub(crate) fn predict(model: &Model, trial: &TrialPlan, role: Role) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    let factor = trial.factor()?;
    if factor == role.factor() {
        return of_more_work(model, trial, role);
    }
    match factor {
        // The range extends from threads that share one CPU to twice as many CPUs in use.
        Factor::OtherCongestion => Some(Range { low: 0.3, high: 1.3 }),
        Factor::MoreStreams => Some(Range { low: 0.6, high: trial.stream_ratio() * 1.1 }),
        // Larger buffers move the work of a full CPU between caches. The effect is unknown.
        _ if factor.class() == Class::LargerBuffer => Some(MOVED),
        // The gain is unknown. With offloads it depends on the cost of each packet, with a longer backlog on how far
        // the CPU is behind, and with packets on other CPUs on the CPU time that packets used.
        _ if factor.class() == Class::Packets => None,
        Factor::Discard => match role {
            Role::Receiver => uncopied(load),
            // Payload that the receiver does not copy stays out of caches that both ends may share.
            Role::Sender => Some(MOVED),
        },
        Factor::ZeroCopy => match role {
            Role::Sender => handed_over(model, load, trial),
            // Payload that the sender does not copy stays out of caches that both ends may share.
            Role::Receiver => Some(Range { low: UNCOPIED.low, ..MOVED }),
        },
        // With half of the buffer space in use, the buffer may be the next limit, just below the present one.
        Factor::HalfWindow | Factor::HalfSendBuffer => {
            Some(bystander(model, trial).map_or(Range { low: 0.4, ..MOVED }, |_| MOVED))
        }
        // System calls may need any share of the thread's time, from none to all.
        Factor::SmallerReads if role == Role::Receiver => Some(Range { low: 0.5, high: 1.1 }),
        Factor::SmallerWrites if role == Role::Sender => Some(Range { low: 0.5, high: 1.1 }),
        // The other end has time for more system calls, but they change the size of the batches that arrive here. The
        // effect of these batches on a full CPU is unknown.
        Factor::SmallerReads | Factor::SmallerWrites => bystander(model, trial).map(|_| MOVED),
        _ => bystander(model, trial),
    }
}

/// The predicted ratio of goodput with added work: a thread without spare time slows down. `None` if the added work
/// made the thread's other work cheaper.
fn of_more_work(model: &Model, trial: &TrialPlan, role: Role) -> Option<Range> {
    let measured = model.trials.iter().find(|t| t.plan.id == trial.id);
    let cheaper = measured.filter(|_| role == Role::Sender);
    if cheaper.and_then(|t| made_cheaper(model, t)).is_some() {
        return None;
    }
    Some(slowed(added_work(model, trial, role == Role::Sender)?))
}

/// CPU time for each byte, without and with the work that a trial added to a sending thread without spare time. `Some`
/// if it rose so little that the thread's other work must have become cheaper. This happens because the kernel then
/// does work on other CPUs (it handles acknowledgements there, and sends the segments that they allow), or does more in
/// one go. With BBR, a quarter more work was measured to leave 1.09 to 1.41 of the goodput, since segments were
/// reordered less. Nothing is known of datagrams: a slower sender loses fewer, so each that arrives costs less,
/// whatever the limit is.
pub(crate) fn made_cheaper(model: &Model, trial: &TrialModel) -> Option<[f64; 2]> {
    let added = added_work(model, &trial.plan, true).filter(|added| *added > 0.0)?;
    let load = &model.direction(trial.plan.direction)?.base;
    let full = !load.has(Feature::Datagrams) && wanted(&load.senders)? > BUSY;
    let [without, with] = [trial.cost[0]?, trial.cost[1]?];
    (full && without / with > slowed(added).high).then_some([without, with])
}

/// Range of goodput for a thread without spare time, if work is added that takes the share `added` of its time: the
/// ratio is `1/(1+added)`, or higher, as a thread that starts later finds more work at once, and larger batches cost
/// less per byte. At least half of the loss must be seen. The loss may be somewhat larger, since the added work
/// competes for cache and CPU turns: a quarter more work was measured to leave 0.74 to 0.84.
fn slowed(added: f64) -> Range {
    let proportional = 1.0 / (1.0 + added);
    Range { low: proportional * 0.8, high: f64::midpoint(proportional, 1.0) }
}

/// The predicted gain of a receiving thread without spare time that no longer copies: the time of the copy, up to the
/// next limit. Only the least gain is known beforehand: a copy costs at least [`COPY_LEAST_PS`], and the sender may
/// have less spare time than that. `None` if the gain could be too small to differ from no change: then a trial without
/// a gain proves nothing.
fn uncopied(load: &Load) -> Option<Range> {
    let copy =
        COPY_LEAST_PS / ps_per_byte(load.goodput.mean, at_work(&load.receivers, load.streams))?;
    let sender = 1.0 / wanted(&load.senders)?;
    let least = (1.0 / (1.0 - copy)).min(sender);
    (copy < 1.0 && least > EQUAL.high).then_some(Range { low: least, high: f64::MAX })
}

/// The predicted gain of a sending thread without spare time that no longer copies: the CPU time saved on each byte, up
/// to the next limit. The trial itself measures this saving; before the trial, a copy is assumed to have its usual
/// cost. `None` if the saving, or the receiver's spare time, is so small that the gain could look like no change:
/// holding pages has a cost as well.
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
