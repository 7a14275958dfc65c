//! How long slices of a trial last.

use crate::model::{Load, Model, TcpShares};
use crate::signs::lossy::often_sent_again;
use linerate_plan::factor::Factor;
use linerate_plan::path::Direction;
use linerate_units::Nanos;

/// Time of a slice that counts.
pub(super) const SLICE: Nanos = Nanos::from_millis(400);

/// Time of a slice that counts where the rate of the base load varies little.
const SHORT: Nanos = Nanos::from_millis(200);

/// The deviation of the samples of a load, as a share of their mean, up to which its rate varies little. After eight short
/// slices the interval of an effect is then 17 % wide at most, either way: enough where a factor of two is expected. More
/// slices follow where it is not.
const CALM: f64 = 0.1;

/// Samples that show how much a rate varies.
const SAMPLES: usize = 8;

/// Longest time of a slice that counts.
const LONGEST: f64 = 1.0;

/// Segments that should be lost in a slice at half the pace, for their number to tell something.
const LOSSES: f64 = 4.0;

/// Round trips under load that a slice should hold, for a meaningful median.
const ROUND_TRIPS: f64 = 8.0;

/// Time of a slice of the next trial of a factor that counts. It is twice as long where the same trial was made before,
/// and did not decide.
pub fn next_slice(model: &Model, direction: Direction, factor: Factor) -> Option<Nanos> {
    let time = slice_time(&model.direction(direction)?.base, Some(factor));
    let again = model.tried(direction, factor).is_some();
    Some(if again { Nanos(time.0 * 2) } else { time })
}

/// Time of a slice of a trial of `factor` that counts: long enough to lose some segments, or for some
/// round trips, where they are what is counted.
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

/// Returns whether the rate varies little from sample to sample, after its start. If packets are lost or marked (ECN), it
/// may rise and fall slowly with each of them.
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

/// Seconds until enough segments are lost at half the pace to compare their number.
fn until_lost(load: &Load) -> Option<f64> {
    let segments = load.goodput.mean / 8.0 / load.packets?.payload.0.max(1) as f64;
    Some(LOSSES / (often_sent_again(load)? * segments / 2.0))
}

/// Whether the loss at half the pace is so small that slices hardly show it.
pub(super) fn loses_little(load: &Load) -> bool {
    until_lost(load).is_some_and(|secs| secs > LONGEST)
}

/// Time at the start of a slice for queues and windows to settle. The connections of the other setting were
/// idle meanwhile, so the kernel starts them slowly: about ten round trips of the empty path for a window of a
/// thousand segments. A standing queue is then filled and overrun, and lost segments are retransmitted: four
/// times the delay that the queue adds.
pub fn washout(tcp: &TcpShares) -> Nanos {
    let loaded = tcp.rtt.unwrap_or_default().0;
    let empty = tcp.min_rtt.map_or(loaded, |rtt| rtt.0.min(loaded));
    Nanos((empty * 12 + (loaded - empty) * 4).clamp(150_000_000, 1_500_000_000))
}
