//! What times by size say about the hardware, for people.

use linerate_core::case::Case;
use linerate_core::ceiling::fingerprint::{fit, timer};

use super::super::Document;
use super::super::fitted::{self, Agreement};

/// Writes the hardware that the slopes of times over sizes agree with.
pub(super) fn sweeps(doc: &mut Document, case: &Case) {
    if case.sweep.is_empty() {
        return;
    }
    let agrees = Agreement::Path(case.facts());
    doc.gap();
    doc.heading("What times by size show about the hardware");
    for sweep in &case.sweep {
        if let Some(timer) = timer(&sweep.points) {
            fitted::ticks(doc, &sweep.what, &timer, &agrees);
        }
        fitted::rate(doc, &sweep.what, fit(&sweep.points).as_ref(), &agrees);
    }
}
