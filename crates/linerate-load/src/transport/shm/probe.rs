//! How other threads close a stream while its worker uses it.

use super::region::Region;
use crate::Probe;

/// Probe that can close a stream. The stream's worker counts everything, so there is nothing else to sample.
pub(super) struct Brake(Region);

impl Brake {
    pub(super) fn of(region: &Region) -> Self {
        Self(region.clone())
    }
}

impl Probe for Brake {
    fn abort(&self) {
        self.0.close();
    }
}
