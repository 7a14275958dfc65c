//! Whole numbers in published facts, which every JSON reader must read exactly.

use serde::{Serialize, Serializer};

use linerate_units::{Bytes, EXACT};

/// A fact that is a whole number; the number may be unknown.
pub(super) trait Whole {
    fn whole(&self) -> Option<u64>;
}

impl Whole for u64 {
    fn whole(&self) -> Option<u64> {
        Some(*self)
    }
}

impl Whole for Bytes {
    fn whole(&self) -> Option<u64> {
        Some(self.0)
    }
}

impl<T: Whole> Whole for Option<T> {
    fn whole(&self) -> Option<u64> {
        self.as_ref()?.whole()
    }
}

/// Writes a number so that every JSON reader reads it exactly: a number above [`EXACT`] becomes [`EXACT`].
pub(super) fn exact<T: Whole, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.whole().map(|number| number.min(EXACT)).serialize(to)
}
