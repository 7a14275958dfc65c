//! What times by size show, for programs.

use linerate_core::ceiling::Bounds;
use linerate_core::ceiling::fingerprint::{Candidate, Fit, Knee, Timer};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::integer;
use super::Agreement;

/// A timer that sets times, such as the hold-off of a card's interrupts.
#[derive(Serialize, JsonSchema)]
pub(in crate::show) struct TimerOut {
    /// Its period, or a whole multiple of it.
    period_ns: u64,
    /// Number of times that stand at the period or at whole multiples of it.
    points: usize,
}

/// What times by size say about the hardware.
#[derive(Serialize, JsonSchema)]
pub(in crate::show) struct FitOut {
    /// Rate at which large messages grow: the median of the spans between sizes.
    rate_bps: u64,
    /// Lower and upper end of that rate.
    interval_bps: [u64; 2],
    /// Number of spans used for the rate.
    spans: usize,
    /// Shortest time of any size.
    floor_ns: u64,
    /// Size at which half of the rate is reached.
    half_bytes: u64,
    /// Spans among large messages with another rate.
    knees: Vec<FitKneeOut>,
    /// Links that may have this rate, the nearest first.
    candidates: Vec<CandidateOut>,
}

/// A span of sizes with another rate.
#[derive(Serialize, JsonSchema)]
struct FitKneeOut {
    from_bytes: u64,
    to_bytes: u64,
    rate_bps: u64,
}

/// A link that may have the rate.
#[derive(Serialize, JsonSchema)]
struct CandidateOut {
    name: String,
    /// Lower and upper end of what the link carries.
    carries_bps: [u64; 2],
    /// How far the rate is outside of what the link carries, as a share of it. 0 inside.
    off: f64,
}

pub(in crate::show) fn timer_out(timer: &Timer) -> TimerOut {
    TimerOut {
        period_ns: timer.period.0,
        points: timer.points,
    }
}

pub(in crate::show) fn fit_out(fit: &Fit, agrees: Agreement) -> FitOut {
    FitOut {
        rate_bps: integer(fit.rate),
        interval_bps: integers(fit.interval),
        spans: fit.spans,
        floor_ns: fit.floor.0,
        half_bytes: fit.half.0,
        candidates: agrees.with(fit).into_iter().map(candidate).collect(),
        knees: fit.knees.iter().map(knee).collect(),
    }
}

fn knee(knee: &Knee) -> FitKneeOut {
    FitKneeOut {
        from_bytes: knee.from.0,
        to_bytes: knee.to.0,
        rate_bps: integer(knee.rate),
    }
}

fn candidate(candidate: Candidate) -> CandidateOut {
    CandidateOut {
        carries_bps: integers(candidate.carries),
        off: candidate.off,
        name: candidate.name,
    }
}

fn integers(bounds: Bounds) -> [u64; 2] {
    [integer(bounds.low()), integer(bounds.high())]
}
