//! Access of other threads to a stream while its own worker uses it.

use linerate_facts::Gap;
use linerate_record::Table;

use super::region::Region;
use crate::Probe;
use linerate_host::Machine;

/// Probe that can close a stream. The stream's worker counts everything, so there is nothing else to sample.
pub(super) struct Brake(Region);

impl Brake {
    pub(super) fn of(region: &Region) -> Self {
        Self(region.clone())
    }
}

impl Probe for Brake {
    fn observe(&mut self, _: &dyn Machine, _: &dyn Fn() -> u64) {}

    fn take(&mut self, _: &mut Vec<Gap>) -> Vec<Table> {
        Vec::new()
    }

    fn abort(&self) {
        self.0.close();
    }
}
