//! What timed round trips show about the path.

use crate::model::{Latency, Model};
use linerate_units::Nanos;

/// Minimum number of timed round trips: the shortest of six is at most the true median in 98 % of cases. No more are
/// required, as a load has only few long round trips.
pub(crate) const FEW: u64 = 6;

/// The median round trip; `None` if too few were timed for a median.
pub(crate) fn median(latency: Option<&Latency>) -> Option<Nanos> {
    latency?.percentile(50.0)
}

/// The median round trip of the idle path. If too few were timed for a median, the shortest of at least `FEW`, which
/// the median is not below.
pub(crate) fn idle_at_least(model: &Model) -> Option<Nanos> {
    let idle = model.idle.as_ref();
    let few = idle.filter(|idle| idle.samples >= FEW);
    median(idle).or_else(|| few.map(|idle| idle.least))
}
