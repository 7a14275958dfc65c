//! A rule about rates at which a standard link is full.

use super::super::Explained;
use super::Remark;

pub(super) fn at_one(_: &Explained<'_>, _: &'static str) -> Vec<Remark> {
    Vec::new()
}
