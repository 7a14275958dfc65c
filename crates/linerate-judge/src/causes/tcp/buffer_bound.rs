//! Code shared by the two causes of a small buffer: a buffer that is smaller than the path could use.

use crate::causes::network::ack_way;
use crate::causes::predict::{around, bystander, per_stream};
use crate::causes::prelude::*;
use crate::model::{TrialModel, a_read};
use crate::signs::queue::{is_full, mostly_queued};
use linerate_facts::BufferLimits;
use linerate_plan::Knobs;
use linerate_units::Bytes;

/// Minimum share of time limited by a buffer at which the evidence is enough without a trial.
pub(crate) const ENOUGH: f64 = 0.5;

/// Share of time that a sender must wait for its timers, at which the path is why its buffers are full.
pub(crate) const WAITS: f64 = 0.5;

/// The result if data kept for retransmission fills any buffer: nothing arrives, or the sender waits for its timers
/// most of the time. Acknowledgements that wait on the reverse path have this effect as well.
pub(crate) fn overruled(model: &Model, direction: Direction, load: &Load) -> Option<Answer> {
    let silent = load.silent().map(|silent| {
        format!("no payload arrived in {} of the samples, whatever a buffer holds", percent(silent))
    });
    let waits = load.tcp.timer_limited.filter(|share| *share >= WAITS);
    let waits = waits.map(|share| {
        format!(
            "the sender waited for its retransmission timer {} of the time at least",
            percent(share)
        )
    });
    let late = silent.or(waits);
    let late = late.or_else(|| ack_way::holds(model, direction));
    late.map(|why| Err(clear(why)))
}

/// The receive buffer or the send buffer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Buffer {
    /// The receive buffer, which limits the offered window.
    Receive,
    /// The send buffer, which keeps unacknowledged data.
    Send,
}

impl Buffer {
    pub(crate) fn side(self, direction: Direction) -> Side {
        match self {
            Self::Receive => direction.receiver(),
            Self::Send => direction.sender(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive window",
            Self::Send => "send buffer",
        }
    }

    /// Name of the buffer in the words of an advice.
    fn way(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Send => "send",
        }
    }

    /// Memory of the buffer in bytes, as `SO_RCVBUF` and `SO_SNDBUF` count it.
    fn memory(self, load: &Load) -> Option<Bytes> {
        match self {
            Self::Receive => load.recv_memory,
            Self::Send => load.tcp.send_room(),
        }
    }

    /// The requested size of the buffer; the kernel doubles it.
    fn requested(self, knobs: &Knobs) -> Option<Bytes> {
        match self {
            Self::Receive => knobs.recv_buffer,
            Self::Send => knobs.send_buffer,
        }
    }

    /// Whether a trial of `factor` makes the buffer larger.
    fn is_larger(self, factor: Factor) -> bool {
        match self {
            Self::Receive => matches!(factor, Factor::LargerWindow | Factor::HostWindow),
            Self::Send => matches!(factor, Factor::LargerSendBuffer | Factor::HostSendBuffer),
        }
    }

    /// Memory that the changed setting of a trial allows for the buffer. The kernel doubles a size that a program
    /// requests; without one, autotuning may go up to the host's limit.
    fn given(self, trial: &TrialPlan) -> Option<f64> {
        let requested = self.requested(&trial.after).map(|ask| ask.0 as f64 * 2.0);
        requested.or_else(|| Some(trial.after.host?.value as f64))
    }

    /// The sysctl that limits the buffer's autotuning, and its value on a host.
    fn sysctl(self, limits: &BufferLimits) -> (&'static str, Option<[u64; 3]>) {
        match self {
            Self::Receive => ("net.ipv4.tcp_rmem", limits.tcp_rmem),
            Self::Send => ("net.ipv4.tcp_wmem", limits.tcp_wmem),
        }
    }
}

/// A sentence with the share of time in which the buffer limited the sender.
pub(crate) fn held(buffer: Buffer, limited: f64, only: &str) -> String {
    format!("the {} held the sender {only}{} of the time", buffer.name(), percent(limited))
}

/// The finding of a buffer that limited the sender for the share `limited` of the time.
pub(crate) fn finding(
    model: &Model,
    direction: Direction,
    buffer: Buffer,
    limited: f64,
    evidence: Option<String>,
) -> Finding {
    // A standing queue on the path would fill any buffer. But if a larger buffer gained goodput, the path had room.
    let queued = model.direction(direction).is_some_and(|d| is_full(model, &d.base))
        && !gained(model, direction, buffer);
    let evidence = [Some(held(buffer, limited, "")), evidence].into_iter().flatten().collect();
    Finding::at(buffer.side(direction), limited, evidence).enough(limited >= ENOUGH && !queued)
}

/// The predicted ratio of goodput for a trial, if the buffer is the limit.
pub(crate) fn predict(model: &Model, trial: &TrialPlan, buffer: Buffer) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    let factor = trial.factor()?;
    if factor == Factor::MoreStreams {
        return Some(per_stream(trial));
    }
    if buffer.is_larger(factor) {
        // The upper end is the payload that the buffer could hold without any overhead, since autotuning learns to
        // reserve less and less for overhead. The gain is lower where another limit follows.
        let memory = buffer.given(trial)?;
        let in_flight = load.tcp.in_flight?.0.max(1) as f64;
        return Some(Range {
            low: GAIN,
            high: (memory / in_flight).max(times(load, trial, buffer)?) * 1.25,
        });
    }
    match (buffer, factor) {
        (Buffer::Send, Factor::HalfSendBuffer) => Some(around(times(load, trial, buffer)?, 0.2)),
        // The kernel accounts for pinned pages differently than for copies, so it is unknown how many of them fit.
        (Buffer::Send, Factor::ZeroCopy) => None,
        (Buffer::Receive, Factor::HalfWindow) => {
            let ratio = trial.after.window_clamp?.0 as f64 / load.tcp.in_flight?.0 as f64;
            Some(around(ratio, 0.2))
        }
        _ => bystander(model, trial),
    }
}

/// Whether a trial can prove that the buffer is the limit. If a window is slightly larger than a full path needs, half
/// of it halves the goodput as well, which proves nothing. If there is a queue, more streams prove nothing: they keep
/// more packets in it, and take its space from other traffic.
pub(crate) fn proves(model: &Model, trial: &TrialPlan) -> bool {
    let Some(load) = model.direction(trial.direction).map(|d| &d.base) else {
        return true;
    };
    match trial.factor() {
        Some(Factor::HalfSendBuffer | Factor::HalfWindow) => !is_full(model, load),
        Some(Factor::MoreStreams) => !mostly_queued(model, load),
        _ => true,
    }
}

/// Whether a larger buffer carried more, although perhaps not certainly enough for a proof.
fn gained(model: &Model, direction: Direction, buffer: Buffer) -> bool {
    larger(model, direction, buffer).filter_map(|t| t.effect).any(|e| e.low > 1.0 && e.mid >= GAIN)
}

/// The trials that made the buffer larger.
fn larger(
    model: &Model,
    direction: Direction,
    buffer: Buffer,
) -> impl Iterator<Item = &TrialModel> {
    model.trials.iter().filter(move |t| {
        t.plan.direction == direction && t.plan.factor().is_some_and(|f| buffer.is_larger(f))
    })
}

/// The ratio of the buffer's memory in the changed setting of a trial to its memory in the load.
fn times(load: &Load, trial: &TrialPlan, buffer: Buffer) -> Option<f64> {
    Some(buffer.given(trial)? / buffer.memory(load)?.0.max(1) as f64)
}

/// Advice to enlarge the buffer, if the host allows a larger one.
pub(crate) fn advice(model: &Model, direction: Direction, buffer: Buffer) -> Option<Advice> {
    let load = &model.direction(direction)?.base;
    let side = buffer.side(direction);
    let host = model.host(side)?;
    let (sysctl, limits) = buffer.sysctl(&host.facts.buffers);
    let [min, default, max] = limits?;
    let (times, gain) = tried(model, direction, buffer).unzip();
    // Advise twice the memory in use, if no larger buffer was tried.
    let memory = (buffer.memory(load)?.0 as f64 * times.unwrap_or(2.0)) as u64;
    let memory = memory.min(BufferLimits::MOST);
    // If autotuning may already use that much memory, something else keeps it from doing so.
    let set = |most: u64| format!("sudo sysctl -w {sysctl}=\"{min} {default} {most}\"");
    let what = format!("allow {} buffers of {}", buffer.way(), Bytes(memory));
    (memory > max).then(|| {
        let advice = Advice::new(what).set(side, set(memory));
        advice.undo_on(side, set(max)).gain(gain)
    })
}

/// The trial that enlarged the buffer: by which factor, and the ratio of goodput.
fn tried(model: &Model, direction: Direction, buffer: Buffer) -> Option<(f64, f64)> {
    let load = &model.direction(direction)?.base;
    let trial = larger(model, direction, buffer).next()?;
    Some((times(load, &trial.plan, buffer)?, trial.effect?.mid))
}

/// Minimum unread payload, as a share of the window, at which a slow reader is the reason that the window closes,
/// rather than the window's size.
pub(crate) const UNREAD: f64 = 0.3;

/// Unread payload over the data that one stream had outstanding: in flight and unread. As much as one read takes is
/// left out: a reader may let that much collect before it wakes (`SO_RCVLOWAT`).
pub(crate) fn unread_share(load: &Load) -> Option<f64> {
    let unread = (load.unread? - a_read(&load.receivers)).max(0.0);
    let flight = load.tcp.in_flight?.0 as f64;
    let outstanding = unread + flight;
    Some(if outstanding > 0.0 { unread / outstanding } else { 0.0 })
}
