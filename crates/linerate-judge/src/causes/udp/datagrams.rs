//! Shared code of the causes for loads with datagrams. Datagrams are neither delayed nor retransmitted, so
//! those that exceed a limit are lost. The place of the loss shows which limit it is.

use crate::causes::host::shared_core;
use crate::causes::network::host_shaping;
use crate::causes::network::local_drops;
use crate::causes::prelude::*;
use crate::model::Datagrams;
use crate::signs::threads::wanted;
use crate::signs::{LOSSY, OVERRUN};
use linerate_plan::path::Slowness;

/// Minimum part of the loss at which drops at the socket are one of its reasons.
const PART: f64 = 0.3;

/// Minimum part of the loss that drops at hosts do not explain, at which the path lost datagrams too. The
/// number of datagrams dropped as one at the socket is an estimate from those that were read, and may be a
/// quarter too low: a smaller rest proves nothing.
const REST: f64 = 0.5;

/// The ways in which the receiving host discards datagrams.
pub(crate) const AT_SOCKET: &str = "dropped at the receiver's socket";
pub(crate) const DAMAGED: &str = "discarded by the receiving host for a bad checksum";

/// Largest number of datagrams that are dropped as one.
//= Linux, include/linux/udp.h: UDP_MAX_SEGMENTS is 128 since 6.9, 64 before
const JOINED: f64 = 128.0;

/// Ratio of the loss with a larger receive buffer to the loss before, if too little room is the reason for
/// the loss.
pub(crate) const FEWER: Range = Range { low: 0.0, high: 0.7 };

/// Ratio of the loss with a larger receive buffer to the loss before, if the reader is too slow in the mean:
/// the larger buffer is full a moment later.
pub(crate) const AS_MANY: Range = Range { low: 0.71, high: f64::MAX };

/// Memory for some groups of joined datagrams of 64 KiB each.
const GROUPS: f64 = (4 * (64 << 10)) as f64;

/// Time in seconds for which a receive buffer must hold arriving data before it is full: a reader is certainly
/// woken in that time.
const WOKEN: f64 = 0.001;

/// Whether a trial's larger receive buffer is so large that a reader which is only sometimes late loses
/// nothing. The kernel doubles the requested size, and uses about half of it for itself.
pub(crate) fn has_room(load: &Load, trial: &TrialPlan) -> bool {
    let arrives = load.datagrams.map(|told| load.goodput.mean / 8.0 / (1.0 - told.lost).max(0.01));
    let asked = trial.after.recv_buffer.map(|bytes| bytes.0 as f64);
    arrives.zip(asked).is_some_and(|(arrives, asked)| asked >= GROUPS.max(arrives * WOKEN))
}

/// The reason why a finding at one end does not limit a load by datagrams. A slow sender is not the limit
/// where many datagrams are lost; a slow reader is not the limit where few are. Ports and the network lose
/// datagrams themselves, and a CPU that both ends share slows both.
pub(crate) fn moot(
    cause: &Cause,
    model: &Model,
    direction: Direction,
    found: &Finding,
) -> Option<Answer> {
    let told = model.direction(direction)?.base.datagrams?;
    let aside = cause.proves_itself
        || cause.only_disturbs
        || cause.slows == Slowness::Latency
        || cause.id == shared_core::CAUSE.id
        || matches!(cause.stage, Stage::Port | Stage::Net);
    let of_sender = found.side == direction.sender().into();
    if aside || of_sender != lossy(&told).is_some() {
        return None;
    }
    let few = || format!("only {} of the datagrams were lost: it keeps up", share(told.lost));
    Some(Err(clear(lossy(&told).unwrap_or_else(few))))
}

/// Reports that so many datagrams are lost that a slow sender cannot be the limit.
pub(crate) fn lossy(told: &Datagrams) -> Option<String> {
    (told.lost >= OVERRUN).then(|| {
        format!(
            "{} of the datagrams that it sent were lost: the loss comes first",
            share(told.lost)
        )
    })
}

/// Share of the datagrams that was lost between the hosts; else why the loss does not matter, or which reading
/// is missing.
pub(crate) fn on_the_way(
    model: &Model,
    direction: Direction,
    (load, told): (&Load, &Datagrams),
) -> Result<f64, NoFinding> {
    let discarded = dropped(model, direction, told)? + told.damaged.unwrap_or(0.0);
    let own =
        host_shaping::holds(load, direction).or_else(|| local_drops::holds(model, load, direction));
    if let Some(own) = own {
        return Err(clear(format!("a host does it itself: {own}")));
    }
    let way = told.lost - discarded;
    if way < OVERRUN.max(told.lost * REST) {
        return Err(clear(format!(
            "{} of the datagrams were lost, about {} of them {}",
            share(told.lost),
            share(discarded),
            if told.damaged.is_some_and(|damaged| damaged * 2.0 > discarded) {
                "by the receiving host, for their bad checksum"
            } else {
                "at the receiver's socket"
            }
        )));
    }
    Ok(way)
}

/// Whether most of the loss was certainly not at the socket, however many datagrams the kernel had joined.
pub(crate) fn surely_on_the_way(told: &Datagrams) -> bool {
    let damaged = told.damaged.unwrap_or(0.0);
    let most = told.at_socket.map(|drops| drops * JOINED + damaged);
    most.is_some_and(|most| told.lost - most >= told.lost * REST)
}

/// Share of the datagrams that was dropped at the receiver's socket. Else why this does not matter, or which
/// reading is missing.
pub(crate) fn at_the_socket(
    model: &Model,
    direction: Direction,
    told: &Datagrams,
) -> Result<f64, NoFinding> {
    surely(told, dropped(model, direction, told)?, AT_SOCKET)
}

/// The share of the datagrams that was discarded in this way, if it is a good part of the loss.
pub(crate) fn surely(told: &Datagrams, discarded: f64, way: &str) -> Result<f64, NoFinding> {
    if discarded < OVERRUN.max(told.lost * PART) {
        return Err(clear(format!(
            "{} of the datagrams were lost, and only {} {way}",
            share(told.lost),
            share(discarded)
        )));
    }
    Ok(discarded)
}

fn dropped(model: &Model, direction: Direction, told: &Datagrams) -> Result<f64, NoFinding> {
    if told.lost < LOSSY {
        return Err(clear(format!("only {} of the datagrams were lost", share(told.lost))));
    }
    told.dropped().ok_or_else(|| lacks(model, "udp", direction.receiver()))
}

/// `21.30 % of 81000 datagrams a second were lost on the path`.
pub(crate) fn words(told: &Datagrams, part: f64, place: &str) -> String {
    format!("{} of {:.0} datagrams a second were {place}", share(part), told.sent)
}

/// Share of its CPU that the reading thread needed, in words.
pub(crate) fn reader(load: &Load) -> Option<String> {
    let busy = wanted(&load.receivers)?;
    Some(format!("the receiving thread needed its CPU {} of the time", percent(busy)))
}

/// A share of datagrams: small ones count.
fn share(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
