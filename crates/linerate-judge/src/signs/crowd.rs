//! Compares many streams with a few. The comparison separates a rate that drops excess packets from loss at any
//! rate, on paths so long that one stream loses too few packets at half the pace.

use super::bbr;
use super::lossy::{FILLED, is_far, loss_leaves, often_retransmitted, only_dropped};
use crate::model::{Load, Model, Packets};
use linerate_plan::factor::Factor;
use linerate_plan::path::Direction;
use linerate_units::Nanos;
use linerate_units::stats::Range;

/// Ratio of the share that many streams lose to the share that a few streams lose, if one rate limits all streams.
/// Four times the streams have windows of a quarter, and lose at least as often as cubic's, whose rate follows loss
/// to the power of -3/4: 6 times.
//= RFC 9438, section 5.2
pub(crate) const GROWS: Range = Range { low: 2.5, high: f64::MAX };

/// Range of the ratio described at `GROWS`, if packets are lost at any rate: the share lost does not grow with the
/// streams.
pub(crate) const ALIKE: Range = Range { low: 0.3, high: 2.0 };

/// Ratio of a few streams to the streams of the load, and of many streams to a few.
const TIMES: u32 = 4;

/// Largest number of streams of a trial.
const MOST: u32 = 64;

/// Ratio of a load's goodput to the goodput that its loss would allow at half the pace. At this ratio and above, that
/// loss is not the limit.
const UNHELD: f64 = 3.0;

/// A comparison of a few streams and many, where it distinguishes one limited rate from loss at any rate. A
/// stream halves its window at each loss. So streams that share one rate lose more often the smaller their
/// windows are, and streams with random loss do not. If a few streams carry far more than the load did, a total
/// rate did not limit the load; and packets that are lost at half the pace, or all the time, are lost at any
/// rate.
pub(crate) fn crowds(model: &Model, direction: Direction) -> Option<[u32; 2]> {
    let dir = model.direction(direction)?;
    let load = &dir.base;
    let few = load.streams.checked_mul(TIMES)?;
    let many = few.checked_mul(TIMES).filter(|n| *n <= MOST)?;
    let more: Vec<f64> = dir.sweep.iter().map(|more| more.over(load).mid).collect();
    let share = !more.is_empty() && more.iter().all(|gain| *gain <= FILLED.high);
    let unheld = match lost_at_half_pace(model, direction) {
        Some(lost) => loss_leaves(load, lost)? >= load.goodput.mean * UNHELD,
        // If much was retransmitted, a further effect of more streams would be invisible.
        None => often_retransmitted(load).is_none() && !load.keeps_losing,
    };
    let law = follows_law(load) && !bbr::sends(load);
    (share && unheld && law && only_dropped(model, load)).then_some([few, many])
}

/// Minimum number of segments in flight at which each of many streams still has a window to halve.
const WINDOWS: f64 = 100.0;

/// Highest goodput of a load whose segments are lost in groups, in multiples of the goodput that its loss
/// would allow: cubic's own law allows up to ten times as much as the law that is used here.
//= RFC 9438, section 5.1
const IN_GROUPS: f64 = 10.0;

/// Whether the loss depends on the windows as the law of congestion control says. On short paths it does not: a
/// stream has a few segments in flight, loses them in groups, and waits for timers.
fn follows_law(load: &Load) -> bool {
    let in_flight = |rtt: Nanos, sizes: Packets| {
        load.goodput.mean / 8.0 * rtt.secs() / sizes.payload.0.max(1) as f64
    };
    let flown = load.tcp.min_rtt.zip(load.packets);
    let left = load.tcp.retransmitted.and_then(|lost| loss_leaves(load, lost));
    is_far(load)
        && flown.is_some_and(|(rtt, sizes)| in_flight(rtt, sizes) >= WINDOWS)
        && left.is_none_or(|left| load.goodput.mean <= left * IN_GROUPS)
}

/// The share of segments that were retransmitted at half the pace, if that was tried.
fn lost_at_half_pace(model: &Model, direction: Direction) -> Option<f64> {
    model.tried(direction, Factor::Paced)?.lost[1]
}
