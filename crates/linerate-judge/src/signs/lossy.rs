//! Loss on the path, and what becomes of it at half the pace.

use super::queue::{mostly_queued, standing_queue};
use super::{LOSSY, bbr, percent};
use crate::model::{Load, Model, TIMEOUT};
use linerate_plan::factor::Factor;
use linerate_plan::transport::Feature;
use linerate_record::TrialPlan;
use linerate_units::Nanos;
use linerate_units::stats::{EQUAL, Range, without_swing};

/// Ratio of the share retransmitted at half the pace to the share before, where an exceeded rate causes the loss.
const VANISHES: Range = Range { low: 0.0, high: 0.3 };

/// Ratio of the share retransmitted at half the pace to the share before, if packets are lost at any rate: about 1.
/// The range is wide, since losses may be few or come in bursts. It has no upper end, since no competing cause
/// predicts more loss at half the pace.
pub(crate) const STAYS: Range = Range { low: 0.31, high: f64::MAX };

/// Largest gain of goodput by another congestion control where a rate is exceeded: one loss-based stream uses at
/// least a quarter of that rate.
const FILLED_BY_OTHER: f64 = 4.0;

/// The change in goodput with more streams on a path that drops packets above its rate. Each stream halves its
/// window on loss, and many packets are lost at once. Several streams may thus fill the rate better, or a
/// little worse.
pub(crate) const FILLED: Range = Range { low: 0.9, high: 1.5 };

/// The share of bytes retransmitted, or of datagrams lost; `None` if it is no reason for congestion control to slow
/// down.
pub(crate) fn retransmitted_share(load: &Load) -> Option<f64> {
    let lost = load.datagrams.as_ref().map(|reported| reported.lost);
    lost.or(load.tcp.retransmitted).filter(|share| *share > LOSSY || matters_far(load, *share))
}

/// The share of bytes really lost, without segments that were only late; `None` if it is no reason for congestion
/// control to slow down.
pub(crate) fn lost(load: &Load) -> Option<f64> {
    let lost = retransmitted_share(load)? * on_time(load);
    (lost > LOSSY || matters_far(load, lost)).then_some(lost)
}

/// A share lost, in words that name the counter. A kernel counts retransmissions; they exceed what was lost where
/// segments were only late.
pub(crate) fn lost_in_words(load: &Load, lost: f64) -> String {
    let retransmitted = load.tcp.retransmitted.filter(|_| load.datagrams.is_none());
    let [lost, retransmitted] =
        [Some(lost), retransmitted].map(|share| share.map(percent).unwrap_or_default());
    if retransmitted == lost {
        format!("{retransmitted} of the bytes were retransmitted")
    } else if retransmitted.is_empty() {
        format!("{lost} of the bytes were lost")
    } else {
        format!(
            "{retransmitted} of the bytes were retransmitted, and {lost} of all bytes were lost"
        )
    }
}

/// The share of bytes retransmitted, or of datagrams lost, if it is so high that every slice of a trial shows some
/// loss.
pub(crate) fn often_retransmitted(load: &Load) -> Option<f64> {
    retransmitted_share(load).filter(|share| *share > LOSSY)
}

/// The share of segments that a queue marked (ECN); `None` if it is no reason for congestion control to slow down.
pub(crate) fn marked(load: &Load) -> Option<f64> {
    load.tcp.marked.filter(|share| *share > LOSSY)
}

/// The share of the retransmitted segments that were really lost, not late.
fn on_time(load: &Load) -> f64 {
    1.0 - late(load).map_or(0.0, Late::share)
}

//= Mathis, Semke, Mahdavi, Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm",
//= CCR 27(3), 1997: rate = MSS/RTT x sqrt(3/2)/sqrt(p)
const MATHIS: f64 = 1.2247;

/// Minimum round trip at which one lost segment among very many matters: the sender is still recovering from it when
/// the next one is lost. On paths with shorter round trips CPUs are the limit long before.
const FAR: Nanos = Nanos(1_000_000);

/// Minimum share of the goodput that the loss allows to loss-based congestion control: a load that carries
/// less has another limit.
const EXPLAINED: f64 = 1.0 / 3.0;

/// Whether a share of loss that would not matter on every path matters on this one: the path is long, segments are
/// lost all the time, and the loss allows about as much goodput as the load carried.
fn matters_far(load: &Load, share: f64) -> bool {
    let leaves = |share| loss_leaves(load, share);
    let explains = leaves(share).is_some_and(|left| load.goodput.mean >= left * EXPLAINED);
    share > 0.0 && is_far(load) && load.keeps_losing && explains
}

pub(crate) fn is_far(load: &Load) -> bool {
    load.tcp.min_rtt.is_some_and(|rtt| rtt >= FAR)
}

/// Goodput in bits per second that random loss allows all streams together under loss-based congestion control.
pub fn loss_leaves(load: &Load, lost: f64) -> Option<f64> {
    let (payload, rtt) = (load.packets?.payload, load.tcp.rtt.filter(|rtt| rtt.0 > 0)?);
    let each = payload.0 as f64 * 8.0 / rtt.secs() * MATHIS / lost.sqrt();
    (!bbr::sends(load)).then_some(each * f64::from(load.streams))
}

/// Largest ratio of the mean duration of expired retransmission timers to the shortest one: each consecutive timeout
/// doubles the duration.
const BACKED_OFF: f64 = 4.0;

/// The least goodput that this loss allows, if retransmission timers expire as well. It is unknown how many losses
/// end in a timeout: nearly all, if only a few segments are in flight. It equals [`loss_leaves`] if no timer expired,
/// and is never below the goodput of the time without timeouts.
pub(crate) fn loss_leaves_at_least(load: &Load, lost: f64) -> Option<f64> {
    let most = loss_leaves(load, lost)?;
    if load.tcp.timeouts == Some(0.0) {
        return Some(most);
    }
    let (payload, rtt) = (load.packets?.payload, load.tcp.rtt?);
    let each = payload.0 as f64 * 8.0 / segment_time(rtt.secs(), lost);
    let waited = load.tcp.timer_limited.map(|share| share * BACKED_OFF);
    let beside = waited.map_or(0.0, |waited| most * (1.0 - waited));
    let all = each * f64::from(load.streams);
    Some(all.max(beside).min(most))
}

/// Whether this loss explains the goodput of a load: the loss would allow about as much.
pub(crate) fn explains(load: &Load, lost: f64) -> bool {
    let left = loss_leaves_at_least(load, lost);
    left.is_none_or(|left| load.goodput.mean >= left * EXPLAINED)
}

/// Mean seconds for each segment of one stream: the time between losses, and the waits for timers, which double.
//= Padhye, Firoiu, Towsley, Kurose, "Modeling TCP throughput: a simple model and its empirical validation", SIGCOMM
//= 1998; RFC 5348, section 3.1. One acknowledgement for each segment, b = 1; Linux waits 200 ms and a round trip.
fn segment_time(rtt: f64, lost: f64) -> f64 {
    let by_timer = (3.0 * (3.0 * lost / 8.0).sqrt()).min(1.0);
    let waits = (TIMEOUT.secs() + rtt) * by_timer * lost * (1.0 + 32.0 * lost * lost);
    rtt * (2.0 * lost / 3.0).sqrt() + waits
}

/// Minimum increase of the round trip that shows a queue: hosts with busy CPUs add less.
const LONG: Nanos = Nanos(5_000_000);

/// Minimum ratio of a load's goodput to the goodput that its loss would allow, at which the load overflows a
/// queue by itself.
const BEYOND: f64 = 3.0;

/// Describes a queue whose overflow explains all losses. If the loss had limited the sender, there would be no queue.
pub(crate) fn overrun(model: &Model, load: &Load, lost: f64) -> Option<String> {
    let beyond = load.goodput.mean >= loss_leaves(load, lost)? * BEYOND;
    beyond.then(|| long_queue(model, load))?
}

/// Describes a queue on the path that holds most of the data in flight: then the path stays full even when the window
/// shrinks for a while.
pub(crate) fn long_queue(model: &Model, load: &Load) -> Option<String> {
    let empty = load.tcp.min_rtt?;
    let long = load.tcp.rtt?.0 >= empty.0.saturating_add(LONG.0);
    (long && mostly_queued(model, load)).then(|| standing_queue(model, load))?
}

/// Minimum number of late segments for each retransmitted segment at which reordering may be the reason.
const OVERTAKEN: f64 = 0.2;

/// Minimum number of duplicates received for each retransmitted segment at which the network copied some.
const COPIED: f64 = 1.5;

/// The evidence that retransmitted segments were only late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Late {
    /// The number of duplicates that the receiver reports for each retransmission.
    Reported(f64),
    /// The number of reordered packets for each retransmission; the receiver does not report duplicates.
    Overtook(f64),
}

impl Late {
    /// The share of retransmissions that were only late, at most 1.
    pub(crate) fn share(self) -> f64 {
        let (Self::Reported(share) | Self::Overtook(share)) = self;
        share.min(1.0)
    }
}

/// How late segments explain the retransmissions. The receiver's report of duplicates is preferred: many paths
/// reorder packets without causing retransmissions, and a segment that arrives after its retransmission is not
/// counted as reordered. `None` if nothing was counted, or if the network copies packets.
pub(crate) fn late(load: &Load) -> Option<Late> {
    let retransmitted = load.tcp.repeated.filter(|retransmitted| *retransmitted > 0.0)?;
    let of = |events: f64| events / retransmitted;
    let late = load.tcp.needless.map(|n| Late::Reported(of(n)));
    late.or_else(|| load.tcp.reordered.map(|n| Late::Overtook(of(n))))
        .filter(|late| late.share() >= OVERTAKEN)
        .filter(|late| !matches!(late, Late::Reported(share) if *share >= COPIED))
}

/// Share of the retransmitted segments that must have been late for reordering to be the main reason.
pub(crate) const MOST_LATE: f64 = 0.5;

/// Highest goodput of a load with reordered packets that looks like one with loss, in multiples of the goodput that
/// real loss would allow. The sender undoes part of its slowdown when the receiver reports the duplicates, and cubic
/// allows up to ten times Mathis' formula.
//= RFC 9438, section 5.1; Linux, tcp_try_undo_dsack()
const MADE_UP: f64 = 10.0;

/// The share of retransmitted segments that the receiver reports as duplicates, if it is most of them, all the time,
/// and enough to limit the sender. A rate that is exceeded now and then does not look like this.
pub(crate) fn mostly_late(load: &Load) -> Option<f64> {
    let Some(Late::Reported(share)) = late(load) else {
        return None;
    };
    let left = loss_leaves(load, retransmitted_share(load)?);
    let held = left.is_none_or(|left| load.goodput.mean <= left * MADE_UP);
    (held && load.keeps_losing && share >= MOST_LATE).then_some(share.min(1.0))
}

/// Standard deviation of the samples' goodput, as a share of their mean, above which the mean does not predict
/// the next second.
const ERRATIC: f64 = 0.25;

/// The least number of samples that show how a load's goodput varies.
const SAMPLES: usize = 8;

/// Whether the goodput of a load varies widely, or has too few samples. Another load with as much goodput then
/// proves nothing.
pub(crate) fn erratic(load: &Load) -> bool {
    let ticks = without_swing(&load.ticks);
    let n = ticks.len() as f64;
    let mean = ticks.iter().sum::<f64>() / n;
    let variance = ticks.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / n;
    load.ticks.len() < SAMPLES || variance.sqrt() > ERRATIC * mean
}

/// Whether loss, or a congestion mark, is the only sign that a rate is exceeded: excess packets are dropped or
/// marked, not queued.
pub(crate) fn only_dropped(model: &Model, load: &Load) -> bool {
    let lost = lost(load).is_some() || recovering(load).is_some() || marked(load).is_some();
    lost && standing_queue(model, load).is_none()
}

/// Number of segments retransmitted since the load's connections began, on a path so long that a stream may take
/// longer than a load to recover: at 1 Gb/s and 1 ms cubic needs four seconds to return to its old rate.
//= RFC 9438, section 4.2: K = cubic_root(W_max x (1 - 0.7) / 0.4)
pub(crate) fn recovering(load: &Load) -> Option<u64> {
    let slow = is_far(load) && !bbr::sends(load) && load.has(Feature::Connections);
    load.tcp.repeated_ever.filter(|n| *n > 0 && slow)
}

/// The effect of more streams on a rate limit that they all share: none, unless the limit drops excess packets;
/// somewhat less goodput if many streams overflow a queue more often than one. Datagrams fill any rate, whatever
/// share of them is lost.
pub(crate) fn filled(model: &Model, load: &Load) -> Range {
    let queued = standing_queue(model, load).is_some();
    if load.has(Feature::Datagrams) || queued {
        Range { high: EQUAL.high, ..FILLED }
    } else if only_dropped(model, load) {
        FILLED
    } else {
        EQUAL
    }
}

/// The effect of another congestion control where a rate limits all traffic: it fills that rate no better, and maybe
/// worse if the queue is shallow.
pub(crate) fn of_other_congestion(model: &Model, load: &Load) -> Range {
    Range { low: 0.3, high: if only_dropped(model, load) { FILLED_BY_OTHER } else { EQUAL.high } }
}

/// The predicted ratio of the share retransmitted at half the pace, if a rate limit drops excess traffic. `None` if
/// there is a queue: packets may then be lost at random too.
pub(crate) fn of_a_rate(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    let paced = trial.factor() == Some(Factor::Paced);
    (paced && only_dropped(model, load)).then_some(VANISHES)
}
