//! Signs of the path in timed round trips.

use crate::model::{Latency, Model};
use linerate_units::Nanos;

/// Number of round trips at which the shortest is at most their true median in 98 % of cases. More are not
/// required: a load has only few long round trips.
pub(crate) const FEW: u64 = 6;

/// The median round trip, where enough were timed for one.
pub(crate) fn median(latency: Option<&Latency>) -> Option<Nanos> {
    latency?.percentile(50.0)
}

/// The median round trip of the idle path; where too few were timed for one, the shortest of some, which it is no less
/// than.
pub(crate) fn idle_at_least(model: &Model) -> Option<Nanos> {
    let idle = model.idle.as_ref();
    let few = idle.filter(|idle| idle.samples >= FEW);
    median(idle).or_else(|| few.map(|idle| idle.least))
}
