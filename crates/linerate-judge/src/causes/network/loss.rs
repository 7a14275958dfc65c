//! Loss of packets that limits a load, whatever happened to the packets.

use crate::causes::network::ack_way::held_by_network;
use crate::causes::network::beyond_hosts::of_a_host;
use crate::causes::network::held::{of_each_stream, scales};
use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::udp::datagrams::{self, on_the_way};
use crate::signs::bbr;
use crate::signs::crowd::ALIKE;
use crate::signs::lossy::{
    Late, STAYS, erratic, explains, late, loss_leaves, loss_leaves_at_least, lost, lost_in_words,
    often_retransmitted, overrun, retransmitted_share,
};
use crate::signs::own_loss::{self, own_loss};
use linerate_units::Rate;

/// Share of bytes retransmitted below which BBR loses less than 10 % of its goodput: it retransmits, and does not slow
/// down. This does not hold if it waits for timeouts and its goodput varies: one timeout lasts a thousand round trips
/// of a short path.
const BBR_MINDS: f64 = 0.1;

/// Minimum share of bytes lost at which the third version of BBR sends less. The kernel's name of that version is also
/// `bbr`.
//= draft-ietf-ccwg-bbr: BBR.LossThresh is 2 %
const BBR3_MINDS: f64 = 0.02;

/// Largest ratio of the goodput with timeouts to the goodput without, at which timeouts are mentioned.
const NEARLY: f64 = 0.8;

/// Minimum share of lost bytes at which retransmission timers expire one after the other, each lasting twice as long as
/// the one before, so that almost nothing arrives.
const IN_ROWS: f64 = 0.2;

/// Segments lost in each round trip at which the first version of BBR sends less too: for one round trip of recovery it
/// sends no more than what arrives, and if each round trip has a loss, recovery never ends.
//= Linux, net/ipv4/tcp_bbr.c: bbr_set_cwnd_to_recover_or_restore, "packet conservation" in the first round of recovery
const EACH_ROUND: f64 = 1.0;

/// The finding of a loss that limits a load, whether the packets did not arrive or arrived damaged.
pub(crate) fn found(model: &Model, direction: Direction) -> Answer {
    let apart = of_datagrams(model, direction).or_else(|| of_silence(model, direction));
    if let Some(answer) = apart {
        return answer;
    }
    let held = held_by_network(model, direction)?;
    let load = held.load;
    let Some(share) = load.tcp.retransmitted else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    let Some(lost) = lost(load) else {
        return Err(clear(too_few(load, share)));
    };
    if let Some(queue) = overrun(model, load, lost) {
        return Err(clear(format!("it is the overflow of {queue}")));
    }
    if shrugged_off(model, direction, lost) {
        return Err(clear(format!(
            "bbr does not slow down where {} of the bytes are lost",
            percent(lost)
        )));
    }
    if let Some(left) = leaves(load, lost).filter(|_| !explains(load, lost)) {
        return Err(clear(format!("{}, which would leave {left}", lost_in_words(load, lost))));
    }
    let evidence = evidence(model, direction, load, lost);
    let share = held.share * of_each_stream(model, direction);
    Ok(finding(load, direction, share, evidence))
}

/// The result for a load of datagrams; `None` for a load of connections.
fn of_datagrams(model: &Model, direction: Direction) -> Option<Answer> {
    let load = &model.direction(direction)?.base;
    let reported = load.datagrams.as_ref()?;
    if load.silent().is_some() && own_loss(load, direction).is_none() {
        let why = "no datagram arrived: that is no loss by chance";
        return Some(Err(clear(why)));
    }
    Some(match on_the_way(model, direction, (load, reported)) {
        Ok(way) => {
            let evidence = vec![datagrams::words(reported, way, "lost on the path")];
            Ok(finding(load, direction, way, evidence))
        }
        Err(answer) => Err(answer),
    })
}

/// The finding of a loss. A queueing discipline of the sender's own port may drop packets on purpose. Otherwise only a
/// trial can exclude an exceeded rate, which loses packets as well.
fn finding(load: &Load, direction: Direction, share: f64, evidence: Vec<String>) -> Finding {
    let own = own_loss(load, direction);
    let evidence = evidence.into_iter().chain(own.map(own_loss::words)).collect();
    Finding::at(own.map_or(Place::Path, |own| Place::from(own.side)), share, evidence)
        .enough(own.is_some())
}

/// The result for connections of which almost nothing arrives; `None` for others. With so much loss that retransmission
/// timers expire in a row, most samples are silent. If nothing arrives at all, it is no random loss.
fn of_silence(model: &Model, direction: Direction) -> Option<Answer> {
    let load = &model.direction(direction)?.base;
    let silent = load.silent()?;
    if !load.arrived() && own_loss(load, direction).is_none() {
        let why = "no payload arrived at all: that is no loss by chance";
        return Some(Err(clear(why)));
    }
    let Some(share) = load.tcp.retransmitted else {
        return Some(Err(lacks(model, "tcp", direction.sender())));
    };
    let Some(lost) = lost(load) else {
        return Some(Err(clear(too_few(load, share))));
    };
    if let Some(own) = of_a_host(model, load, direction) {
        return Some(Err(clear(format!("a host does it itself: {own}"))));
    }
    let evidence = vec![
        format!("{} of the bytes were retransmitted", percent(share)),
        format!(
            "payload arrived in {} of the samples, whenever a timer had run out",
            percent(1.0 - silent)
        ),
    ];
    let found = finding(load, direction, silent, evidence);
    // At a very low goodput, a trial at half the pace proves nothing: heavy loss is enough without one.
    let enough = found.enough || lost >= IN_ROWS;
    Some(Ok(Finding { enough, ..found }))
}

/// Why retransmissions of the share `share` of the bytes are no loss that matters.
fn too_few(load: &Load, share: f64) -> String {
    let retransmitted = percent(share);
    match retransmitted_share(load).and(late(load)) {
        None => format!("only {retransmitted} of the bytes were retransmitted"),
        Some(Late::Reported(late)) => format!(
            "{retransmitted} of the bytes were retransmitted, and {} of that had arrived, only late",
            percent(late.min(1.0))
        ),
        Some(Late::Overtook(late)) => format!(
            "{retransmitted} of the bytes were retransmitted, and packets were reordered {} as often",
            percent(late)
        ),
    }
}

/// Whether BBR carries about as much as without the loss: it never waited for a timeout, or its rate was steady. If its
/// version may slow down nevertheless, more streams must also have gained nothing.
fn shrugged_off(model: &Model, direction: Direction, lost: f64) -> bool {
    let Some(dir) = model.direction(direction) else {
        return false;
    };
    let waited = dir.base.tcp.timeouts.is_none_or(|timeouts| timeouts > 0.0);
    let stopped = waited && erratic(&dir.base);
    let mut more = dir.sweep.iter();
    let slowed = bbr_may_slow(&dir.base, lost) && more.any(|more| more.over(&dir.base).low > GAIN);
    bbr::sends(&dir.base) && lost < BBR_MINDS && !stopped && !slowed
}

/// Whether some version of BBR sends less when the share `lost` of its packets is lost.
fn bbr_may_slow(load: &Load, lost: f64) -> bool {
    let payload = load.packets.map(|sizes| sizes.payload);
    let payload = payload.filter(|bytes| bytes.0 > 0);
    let segments = load.tcp.in_flight.zip(payload);
    let segments = segments.map(|(flight, payload)| flight.0 as f64 / payload.0 as f64);
    lost > BBR3_MINDS || segments.is_some_and(|n| n * lost >= EACH_ROUND)
}

fn evidence(model: &Model, direction: Direction, load: &Load, lost: f64) -> Vec<String> {
    let retransmitted = lost_in_words(load, lost);
    let rtt = load.tcp.rtt.unwrap_or_default();
    let name = load.made.sender.congestion.as_str();
    let law = leaves(load, lost).map(|left| {
        format!(
            "at a round trip of {rtt} that leaves {} {left}",
            if name.is_empty() { "congestion control" } else { name }
        )
    });
    let scaled = model.direction(direction).and_then(scales);
    let scaled = scaled.map(|(n, gain)| format!("{n} streams carried {gain:.2} times as much"));
    [Some(retransmitted), law, scaled].into_iter().flatten().collect()
}

/// Describes the goodput that random loss allows to loss-based congestion control; it is less where retransmission
/// timers expire as well.
fn leaves(load: &Load, lost: f64) -> Option<String> {
    let most = loss_leaves(load, lost)?;
    let least = loss_leaves_at_least(load, lost)?;
    let [low, high] = [least, most].map(|left| Rate(left as u64));
    Some(if least < most * NEARLY {
        format!("{low} to {high}, the less the oftener it waits for timers")
    } else {
        format!("about {high}")
    })
}

pub(crate) fn is_last(model: &Model, direction: Direction) -> bool {
    // Half the pace would not show a loss that is so rare; and the host may have no other congestion control.
    let load = model.direction(direction).map(|dir| &dir.base);
    let load = load.filter(|load| load.has(Feature::Connections));
    load.is_some_and(|load| often_retransmitted(load).is_none() && lost(load).is_some())
}

pub(crate) fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    // Any gain is possible, up to the next limit.
    let any_gain = Range { low: GAIN, high: f64::MAX };
    match trial.factor()? {
        // One stream sends while another one pauses.
        Factor::MoreStreams if bbr::sends(load) && erratic(load) => Some(any_gain),
        // Datagram streams are not slowed down by loss: their hosts decide how much more they send.
        Factor::MoreStreams if load.has(Feature::Datagrams) => None,
        // If BBR loses packets, all streams lose them at one rate limit that they share.
        Factor::MoreStreams | Factor::OtherCongestion if bbr::sends(load) => None,
        Factor::MoreStreams => Some(per_stream(trial)),
        Factor::OtherCongestion => Some(any_gain),
        _ => bystander(model, trial),
    }
}

pub(crate) fn predict_loss(_: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::Paced => Some(STAYS),
        Factor::Crowd => Some(ALIKE),
        _ => None,
    }
}
