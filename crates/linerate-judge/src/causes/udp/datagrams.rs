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

/// Minimum share of the loss, at which drops at the socket are one of its reasons.
const PART: f64 = 0.3;

/// Minimum share of the loss that drops at hosts do not explain, at which the path lost datagrams too. The number of
/// datagrams dropped together at the socket is an estimate from those that were read, and may be a quarter too low: a
/// smaller rest proves nothing.
const REST: f64 = 0.5;

/// The two ways in which the receiving host discards datagrams, in words.
pub(crate) const AT_SOCKET: &str = "dropped at the receiver's socket";
pub(crate) const DAMAGED: &str = "discarded by the receiving host for a bad checksum";

/// Largest number of coalesced datagrams that are dropped as one.
//= Linux, include/linux/udp.h: UDP_MAX_SEGMENTS is 128 since 6.9, 64 before
const JOINED: f64 = 128.0;

/// Range of the loss with a larger receive buffer over the loss before, if a small buffer is the reason for the loss.
pub(crate) const FEWER: Range = Range { low: 0.0, high: 0.7 };

/// Range of the loss with a larger receive buffer over the loss before, if the reader is too slow on average: the
/// larger buffer is full a moment later.
pub(crate) const AS_MANY: Range = Range { low: 0.71, high: f64::MAX };

/// Memory for four groups of coalesced datagrams of 64 KiB each.
const GROUPS: f64 = (4 * (64 << 10)) as f64;

/// Time in seconds for which a receive buffer must hold arriving data: a reader certainly wakes within that time.
const WOKEN: f64 = 0.001;

/// Whether the larger receive buffer of a trial would lose nothing with a reader that is only late at times. The kernel
/// doubles the requested size, and uses about half of it for itself.
pub(crate) fn has_room(load: &Load, trial: &TrialPlan) -> bool {
    let arrives =
        load.datagrams.map(|reported| load.goodput.mean / 8.0 / (1.0 - reported.lost).max(0.01));
    let requested = trial.after.recv_buffer.map(|bytes| bytes.0 as f64);
    arrives
        .zip(requested)
        .is_some_and(|(arrives, requested)| requested >= GROUPS.max(arrives * WOKEN))
}

/// The reason why a finding at one end does not limit a load of datagrams. A slow sender is not the limit if many
/// datagrams are lost; a slow reader is not the limit if few are. Ports and the network lose datagrams themselves, and
/// a CPU that both ends share slows both down.
pub(crate) fn moot(
    cause: &Cause,
    model: &Model,
    direction: Direction,
    found: &Finding,
) -> Option<Answer> {
    let reported = model.direction(direction)?.base.datagrams?;
    let aside = cause.proves_itself
        || cause.only_disturbs
        || cause.slows == Slowness::Latency
        || cause.id == shared_core::CAUSE.id
        || matches!(cause.stage, Stage::Port | Stage::Net);
    let of_sender = found.side == direction.sender().into();
    if aside || of_sender != lossy(&reported).is_some() {
        return None;
    }
    let few = || format!("only {} of the datagrams were lost: it keeps up", share(reported.lost));
    Some(Err(clear(lossy(&reported).unwrap_or_else(few))))
}

/// Says that so many datagrams are lost that a slow sender cannot be the limit; `None` if they are not.
pub(crate) fn lossy(reported: &Datagrams) -> Option<String> {
    (reported.lost >= OVERRUN).then(|| {
        format!(
            "{} of the datagrams that it sent were lost: the loss comes first",
            share(reported.lost)
        )
    })
}

/// Share of the datagrams that was lost between the hosts; else why this loss does not matter, or which reading is
/// missing.
pub(crate) fn on_the_way(
    model: &Model,
    direction: Direction,
    (load, reported): (&Load, &Datagrams),
) -> Result<f64, NoFinding> {
    let discarded = dropped(model, direction, reported)? + reported.damaged.unwrap_or(0.0);
    let own =
        host_shaping::holds(load, direction).or_else(|| local_drops::holds(model, load, direction));
    if let Some(own) = own {
        return Err(clear(format!("a host does it itself: {own}")));
    }
    let way = reported.lost - discarded;
    if way < OVERRUN.max(reported.lost * REST) {
        return Err(clear(format!(
            "{} of the datagrams were lost, about {} of them {}",
            share(reported.lost),
            share(discarded),
            if reported.damaged.is_some_and(|damaged| damaged * 2.0 > discarded) {
                "by the receiving host, for their bad checksum"
            } else {
                "at the receiver's socket"
            }
        )));
    }
    Ok(way)
}

/// Whether most of the loss was certainly not at the socket, however many datagrams the kernel had coalesced.
pub(crate) fn surely_on_the_way(reported: &Datagrams) -> bool {
    let damaged = reported.damaged.unwrap_or(0.0);
    let most = reported.at_socket.map(|drops| drops * JOINED + damaged);
    most.is_some_and(|most| reported.lost - most >= reported.lost * REST)
}

/// Share of the datagrams that was dropped at the receiver's socket; else why this does not matter, or which reading is
/// missing.
pub(crate) fn at_the_socket(
    model: &Model,
    direction: Direction,
    reported: &Datagrams,
) -> Result<f64, NoFinding> {
    surely(reported, dropped(model, direction, reported)?, AT_SOCKET)
}

/// The share of the datagrams that the receiver discarded in the way `way`, if it is a good part of the loss.
pub(crate) fn surely(reported: &Datagrams, discarded: f64, way: &str) -> Result<f64, NoFinding> {
    if discarded < OVERRUN.max(reported.lost * PART) {
        return Err(clear(format!(
            "{} of the datagrams were lost, and only {} {way}",
            share(reported.lost),
            share(discarded)
        )));
    }
    Ok(discarded)
}

fn dropped(model: &Model, direction: Direction, reported: &Datagrams) -> Result<f64, NoFinding> {
    if reported.lost < LOSSY {
        return Err(clear(format!("only {} of the datagrams were lost", share(reported.lost))));
    }
    reported.dropped().ok_or_else(|| lacks(model, "udp", direction.receiver()))
}

/// The loss in words: `21.30 % of 81000 datagrams a second were lost on the path`.
pub(crate) fn words(reported: &Datagrams, part: f64, place: &str) -> String {
    format!("{} of {:.0} datagrams a second were {place}", share(part), reported.sent)
}

/// Share of its CPU that the reading thread needed, in words.
pub(crate) fn reader(load: &Load) -> Option<String> {
    let busy = wanted(&load.receivers)?;
    Some(format!("the receiving thread needed its CPU {} of the time", percent(busy)))
}

/// A share of datagrams in words, with two decimals, since small shares matter.
fn share(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
