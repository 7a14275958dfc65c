//! What the round trip tells of queues on the way.

use crate::model::{Load, Model};
use crate::units::Nanos;

/// Longer than the idle round trip by this much at least: scheduling alone takes some.
const NOTABLE: Nanos = Nanos(200_000);

/// A round trip under load well over the idle one, in words.
pub(super) fn standing_queue(model: &Model, load: &Load) -> Option<String> {
    let (idle, loaded) = longer(model, load, 1.5)?;
    Some(format!(
        "a standing queue: the round trip took {loaded} under load, {idle} on the idle path"
    ))
}

/// Whether most of what is in flight stands in a queue: fewer bytes in flight would carry as much.
pub(super) fn mostly_queued(model: &Model, load: &Load) -> bool {
    longer(model, load, 2.0).is_some()
}

/// The idle and the loaded round trip, where the second is `times` the first.
fn longer(model: &Model, load: &Load, times: f64) -> Option<(Nanos, Nanos)> {
    let idle = model.idle.as_ref()?.percentile(50.0)?;
    let loaded = load.tcp.rtt?;
    let well = loaded.0 as f64 > idle.0 as f64 * times && loaded.0 > idle.0 + NOTABLE.0;
    well.then_some((idle, loaded))
}
