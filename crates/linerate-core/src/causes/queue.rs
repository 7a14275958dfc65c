//! What the round trip tells of queues on the way.

use crate::model::{Load, Model};
use crate::units::Nanos;

/// Longer than the idle round trip by this much at least: scheduling alone takes some.
const NOTABLE: Nanos = Nanos(200_000);

/// A round trip under load well over that of an empty path, in words.
pub(super) fn standing_queue(model: &Model, load: &Load) -> Option<String> {
    let (empty, loaded) = longer(model, load, 1.5)?;
    Some(format!(
        "a standing queue: the round trip took {loaded} under load, {}",
        match empty {
            Empty::Idle(rtt) => format!("{rtt} on the idle path"),
            Empty::Least(rtt) => format!("{rtt} at least"),
        }
    ))
}

/// Whether most of what is in flight stands in a queue: fewer bytes in flight would carry as much.
pub(super) fn mostly_queued(model: &Model, load: &Load) -> bool {
    longer(model, load, 2.0).is_some()
}

/// How the round trip of a path without queues is known.
enum Empty {
    /// It was timed before the load.
    Idle(Nanos),
    /// So few were timed that they have no median: the shortest that the kernel saw under load.
    Least(Nanos),
}

/// The round trip of the empty path and the loaded one, where the second is `times` the first.
fn longer(model: &Model, load: &Load, times: f64) -> Option<(Empty, Nanos)> {
    let idle = model.idle.as_ref().and_then(|idle| idle.percentile(50.0));
    let empty = idle.map(Empty::Idle);
    let empty = empty.or_else(|| load.tcp.min_rtt.map(Empty::Least))?;
    let (Empty::Idle(before) | Empty::Least(before)) = empty;
    let loaded = load.tcp.rtt?;
    let well = loaded.0 as f64 > before.0 as f64 * times && loaded.0 > before.0 + NOTABLE.0;
    well.then_some((empty, loaded))
}
