//! Whether something outside of the programs limits a sender: neither its window, nor a buffer, nor a CPU.

use crate::causes::host::busy_thread::Role;
use crate::causes::host::cpu_share::stands;
use crate::causes::host::softirq_core;
use crate::causes::prelude::*;
use crate::causes::{BUSY, reached};
use crate::model::{DirectionModel, TrialModel};
use crate::signs::queue::mostly_queued;
use crate::signs::threads::wanted_at;
use linerate_units::stats::EQUAL;

/// Minimum share of time limited by a buffer at which the buffer may be the cause.
pub(crate) const SUSPECT: f64 = 0.2;

/// Minimum share of time in which only congestion control limits the sender, for the path to be a suspect.
pub(crate) const HELD: f64 = 0.5;

/// Gain of goodput below which more streams count as carrying the same.
pub(crate) const SAME: f64 = 1.05;

/// The factors whose trials enlarge the receive window.
pub(crate) const LARGER_WINDOW: [Factor; 2] = [Factor::LargerWindow, Factor::HostWindow];

/// A load whose sender is limited by the network, not by a window, a buffer or a CPU.
pub(crate) struct Held<'a> {
    /// The load.
    pub load: &'a Load,
    /// Share of time in which the network limits the sender.
    pub(crate) share: f64,
    /// How it is known that the network is the limit, in words.
    pub(crate) why: String,
    /// Whether a trial removed a limit of the sender that took a good part of the time, without any gain.
    pub(crate) lifted: bool,
}

/// The load of a direction, if congestion control limits it, even for a reason inside the hosts; else the reason why
/// not.
pub(crate) fn held_back(model: &Model, direction: Direction) -> Result<Held<'_>, NoFinding> {
    let load = base(model, direction)?;
    if let Some(silent) = load.silent() {
        return Err(clear(no_rate(silent)));
    }
    let (Some(network), Some(starved)) = (load.tcp.network, load.tcp.starved) else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    // A window or buffer full of data that waits in a queue on the path is not the limit.
    let queued = mostly_queued(model, load);
    let lifted = lifted(model, direction);
    let share = if queued { 1.0 - starved } else { network + lifted };
    if let Some(why) = on_cpus(model, load, direction) {
        return Err(clear(why));
    }
    if let Some(ceiling) = reached(model, direction) {
        return Err(clear(format!(
            "{} itself carries no more than {}",
            ceiling.name, ceiling.rate
        )));
    }
    if share < HELD {
        return Err(clear(format!(
            "congestion control held the sender only {} of the time",
            percent(share)
        )));
    }
    Ok(Held { load, share, why: why(queued, network, share), lifted: lifted >= SUSPECT })
}

pub(crate) fn no_rate(silent: f64) -> String {
    format!("no payload arrived in {} of the samples: that is no rate", percent(silent))
}

/// A sentence with the evidence that the network limited the sender for the share `share` of the time. The kernel's
/// clocks show `network` of this share.
fn why(queued: bool, network: f64, share: f64) -> String {
    if queued && network < HELD {
        "most of what the sender kept in flight waited in a queue on the path".to_owned()
    } else if network < HELD {
        "more window or buffer, where one held the sender, carried no more".to_owned()
    } else {
        format!(
            "congestion control held the sender {} of the time, no window or buffer did",
            percent(share)
        )
    }
}

/// Share of time in which a window or a buffer limited the sender, although a trial that enlarged it, or more streams
/// with one each, gained nothing. A window slightly larger than the path needs looks like a limit, and is none. At most
/// the growth of the network's share in the enlarged load counts: a window and a buffer of one size hide each other,
/// and so does a slow reader.
fn lifted(model: &Model, direction: Direction) -> f64 {
    let Some(base) = model.direction(direction).map(|d| &d.base) else {
        return 0.0;
    };
    let each = without_gain(model, direction, &[Factor::MoreStreams]).is_some();
    let of = |factors: &[Factor], held: Option<f64>| {
        if each {
            return held;
        }
        let trial = without_gain(model, direction, factors)?;
        let network = trial.changed.as_ref().and_then(|l| by_network(model, l));
        let before = base.tcp.network.unwrap_or(0.0);
        let more = network.map_or(1.0, |share| (share - before).max(0.0));
        Some(held?.min(more))
    };
    let window = of(&LARGER_WINDOW, base.tcp.rwnd_limited);
    let buffer = of(&[Factor::LargerSendBuffer, Factor::HostSendBuffer], base.tcp.sndbuf_limited);
    window.into_iter().chain(buffer).sum()
}

/// The first trial of one of `factors` that certainly gained nothing.
pub(crate) fn without_gain<'a>(
    model: &'a Model,
    direction: Direction,
    factors: &[Factor],
) -> Option<&'a TrialModel> {
    let tried = factors.iter().filter_map(|factor| model.tried(direction, *factor));
    let gained_nothing = |trial: &&TrialModel| {
        let effect = trial.effect;
        effect.is_some_and(|e| e.high < GAIN && e.mid >= EQUAL.low)
    };
    tried.into_iter().find(gained_nothing)
}

/// Share of the time in which the network limited a load. If most of the data in flight waits in a queue on the path,
/// this is all the time in which the load had payload.
fn by_network(model: &Model, load: &Load) -> Option<f64> {
    if mostly_queued(model, load) {
        load.tcp.starved.map(|share| 1.0 - share)
    } else {
        load.tcp.network
    }
}

/// Names the part of an end that has no spare time: a thread, or a CPU that only handles packets.
pub(crate) fn on_cpus(model: &Model, load: &Load, direction: Direction) -> Option<String> {
    [direction.sender(), direction.receiver()].into_iter().find_map(|side| {
        let busy = wanted_at(load, direction, side).filter(|w| *w > BUSY);
        let busy = busy.filter(|_| !had_time(model, direction, side));
        let thread = busy.map(|w| {
            let w = percent(w);
            format!("the {} thread was busy {w} of the time", side.name())
        });
        thread.or_else(|| {
            let full = stands(&softirq_core::CAUSE, model, direction, side);
            full.then(|| format!("a CPU of {} is full of packets: softirq-core", side.name()))
        })
    })
}

/// Whether a trial gave the threads of an end more work and they carried as much: then they only looked busy.
fn had_time(model: &Model, direction: Direction, side: Side) -> bool {
    let work = model.tried(direction, Role::of(side, direction).factor());
    let effect = work.and_then(|trial| trial.effect);
    effect.is_some_and(|effect| effect.low >= EQUAL.low)
}

/// Factor for the evidence of a limit on each stream: small if a short measurement with twice as many streams carried
/// no more.
pub(crate) fn of_each_stream(model: &Model, direction: Direction) -> f64 {
    let scaled = model.direction(direction).and_then(scales);
    if scaled.is_some_and(|(_, gain)| gain <= SAME) { 0.1 } else { 1.0 }
}

/// The measured load with twice as many streams: their number, and its ratio of goodput to the base load's.
pub(crate) fn scales(direction: &DirectionModel) -> Option<(u32, f64)> {
    direction
        .sweep
        .iter()
        .find(|l| Some(l.streams) == direction.base.streams.checked_mul(2))
        .map(|l| (l.streams, l.goodput.mean / direction.base.goodput.mean))
}
