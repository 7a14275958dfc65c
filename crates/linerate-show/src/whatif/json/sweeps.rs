//! What times by message size show about the hardware, as JSON.

use linerate_ceiling::fingerprint::{fit, timer};
use linerate_explain::case::{Case, SizeSeries};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::super::fitted::{Agreement, FitOut, TimerOut, fit_out, timer_out};

/// A published table of times by message size, and what it shows.
#[derive(Serialize, JsonSchema)]
pub(super) struct SweepOut<'a> {
    /// What was measured, in words.
    what: &'a str,
    /// The timer that sets the times. Null if they show none.
    timer: Option<TimerOut>,
    /// The line through the times. Null if too few messages are large enough to show a rate.
    fit: Option<FitOut>,
}

pub(super) fn all(case: &Case) -> Vec<SweepOut<'_>> {
    let agrees = Agreement::Path(case.facts());
    let sweeps = case.sweep.iter();
    sweeps.map(|one| sweep(one, &agrees)).collect()
}

fn sweep<'a>(sweep: &'a SizeSeries, agrees: &Agreement) -> SweepOut<'a> {
    SweepOut {
        what: &sweep.what,
        timer: timer(&sweep.points).map(|timer| timer_out(&timer, agrees)),
        fit: fit(&sweep.points).map(|fit| fit_out(&fit, agrees)),
    }
}
