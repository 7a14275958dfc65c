//! How long the slices of a trial last.

use crate::model::{Load, Model, TcpShares};
use crate::signs::lossy::often_retransmitted;
use linerate_plan::factor::Factor;
use linerate_plan::path::Direction;
use linerate_units::Nanos;

/// Measured time of a slice.
pub(super) const SLICE: Nanos = Nanos::from_millis(400);

/// Measured time of a slice if the rate of the base load varies little.
const SHORT: Nanos = Nanos::from_millis(200);

/// Largest standard deviation of the samples of a load, as a share of their mean, at which its rate varies little.
/// After eight short slices the interval of an effect is then at most 17 % wide on either side: enough if a factor of
/// two is expected. Otherwise more slices follow.
const CALM: f64 = 0.1;

/// Number of samples that show how much a rate varies.
const SAMPLES: usize = 8;

/// Longest measured time of a slice, in seconds.
const LONGEST: f64 = 1.0;

/// Number of segments that a slice at half the pace should lose, so that their number shows something.
const LOSSES: f64 = 4.0;

/// Number of round trips under load that a slice should hold, for a meaningful median.
const ROUND_TRIPS: f64 = 8.0;

/// Measured time of a slice in the next trial of a factor. It is twice as long if that trial was made before and did
/// not decide.
pub fn next_slice(model: &Model, direction: Direction, factor: Factor) -> Option<Nanos> {
    let time = slice_time(&model.direction(direction)?.base, Some(factor));
    let was_tried = model.tried(direction, factor).is_some();
    Some(if was_tried { Nanos(time.0 * 2) } else { time })
}

/// Measured time of a slice in a trial of `factor`. A slice at half the pace must be long enough to lose some segments,
/// or for some round trips, whichever are counted.
pub fn slice_time(load: &Load, factor: Option<Factor>) -> Nanos {
    if factor != Some(Factor::Paced) {
        return if is_calm(load) { SHORT } else { SLICE };
    }
    let beside = load.latency.as_ref().and_then(|l| l.percentile(50.0));
    let trips = beside.map(|trip| trip.secs() * ROUND_TRIPS);
    let losses = until_lost(load).unwrap_or(0.0);
    let longest = losses.max(trips.unwrap_or(0.0));
    Nanos((longest.clamp(SLICE.secs(), LONGEST) * 1e9) as u64)
}

/// Whether the rate varies little from sample to sample, after the first third of the load. If packets are lost or
/// marked (ECN), the rate may rise and fall slowly with each of them.
fn is_calm(load: &Load) -> bool {
    let ticks = &load.ticks[load.ticks.len() / 3..];
    let n = ticks.len();
    let mean = ticks.iter().sum::<f64>() / n as f64;
    let square = ticks.iter().map(|tick| (tick - mean).powi(2)).sum::<f64>() / n as f64;
    load.tcp.retransmitted == Some(0.0)
        && load.tcp.marked.is_none_or(|share| share == 0.0)
        && n >= SAMPLES
        && mean > 0.0
        && square.sqrt() <= mean * CALM
}

/// Seconds until enough segments are lost at half the pace to compare their numbers.
fn until_lost(load: &Load) -> Option<f64> {
    let segments = load.goodput.mean / 8.0 / load.packets?.payload.0.max(1) as f64;
    Some(LOSSES / (often_retransmitted(load)? * segments / 2.0))
}

/// Whether so little is lost at half the pace that slices hardly show it.
pub(super) fn loses_little(load: &Load) -> bool {
    until_lost(load).is_some_and(|secs| secs > LONGEST)
}

/// Time at the start of a slice that is not measured, so that queues and windows settle. The connections of the other
/// setting were idle meanwhile, so the kernel starts them slowly: about ten round trips of the empty path for a window
/// of a thousand segments. A standing queue is then filled and overrun, and lost segments are retransmitted: four times
/// the delay that the queue adds.
pub fn washout(tcp: &TcpShares) -> Nanos {
    let loaded = tcp.rtt.unwrap_or_default().0;
    let empty = tcp.min_rtt.map_or(loaded, |rtt| rtt.0.min(loaded));
    Nanos((empty * 12 + (loaded - empty) * 4).clamp(150_000_000, 1_500_000_000))
}
