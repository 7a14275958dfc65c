//! Queues on the path, as round-trip times show them.

use super::lossy::retransmitted_share;
use super::round_trips::idle_at_least;
use crate::model::{Load, Model};
use linerate_units::{Bytes, Nanos};

/// Minimum increase over the idle round trip that is notable: scheduling alone adds some time.
pub(crate) const NOTABLE: Nanos = Nanos(200_000);

/// Duration of the largest burst of a sender: the kernel sends a group of as many segments as the pace carries in
/// this time.
//= Linux, tcp_tso_autosize(): sk_pacing_shift is 10
const BURST: Nanos = Nanos(1_000_000);
const GROUP: Bytes = Bytes(64 << 10);

/// Describes a round trip under load that is well above the one of an empty path. If packets are lost, a wait
/// behind the sender's own burst is no queue: a rate that drops excess packets slows the sender down, and
/// makes its bursts long.
pub(crate) fn standing_queue(model: &Model, load: &Load) -> Option<String> {
    let (empty, loaded) = longer(model, load, 1.5)?;
    Some(match empty {
        Empty::Idle(rtt) => format!(
            "a standing queue: the round trip took {loaded} under load, {rtt} on the idle path"
        ),
        // A packet that arrives just before a timer expires does not wait, although all others do.
        Empty::Least(rtt) => format!(
            "a standing queue, or a timer that holds packets: the round trip took {loaded} under load, {rtt} at least"
        ),
    })
}

/// Whether most of the data in flight waits in a queue: half of it would carry as much.
pub(crate) fn mostly_queued(model: &Model, load: &Load) -> bool {
    longer(model, load, 2.0).is_some()
}

/// Whether part of the data in flight waits in a queue: then the path is full, and a little less in flight
/// carries as much.
pub(crate) fn is_full(model: &Model, load: &Load) -> bool {
    longer(model, load, 1.2).is_some()
}

/// The round trip of a path without queues, by the way in which it is known.
enum Empty {
    /// The round trips were timed before the load.
    Idle(Nanos),
    /// Too few round trips were timed for a median: the shortest of them, or the shortest that the kernel measured
    /// under load.
    Least(Nanos),
}

/// The round trips of the empty and of the loaded path, if the loaded one is at least `times` as long.
fn longer(model: &Model, load: &Load, times: f64) -> Option<(Empty, Nanos)> {
    let idle = model.idle.as_ref().and_then(|idle| idle.percentile(50.0));
    let empty = idle.map(Empty::Idle);
    let least = || idle_at_least(model).max(load.tcp.min_rtt);
    let empty = empty.or_else(|| least().map(Empty::Least))?;
    let (Empty::Idle(before) | Empty::Least(before)) = empty;
    let loaded = load.tcp.rtt?;
    let notable =
        if retransmitted_share(load).is_some() { NOTABLE.max(burst(load)) } else { NOTABLE };
    let well = loaded.0 as f64 > before.0 as f64 * times && loaded.0 > before.0 + notable.0;
    well.then_some((empty, loaded))
}

/// The duration of a burst of one stream at its rate.
pub(crate) fn burst(load: &Load) -> Nanos {
    let each = load.goodput.mean / f64::from(load.streams.max(1));
    let group = GROUP.0 as f64 * 8.0 / each.max(1.0) * 1e9;
    BURST.min(Nanos(group as u64))
}
