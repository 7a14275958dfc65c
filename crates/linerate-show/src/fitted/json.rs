//! What the times of a sweep show about the hardware, as JSON.

use linerate_ceiling::Bounds;
use linerate_ceiling::fingerprint::{
    Candidate, Candidates, Excluded, Fit, Kind, Knee, Named, Standing, Stated, Timer, candidates,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::integer;
use super::Agreement;

/// A timer that delays messages, such as that of a card which holds its interrupts back.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TimerOut {
    /// The period of the timer, or a whole multiple of it.
    period_ns: u64,
    /// Number of sizes whose time is the period or a whole multiple of it.
    points: usize,
    /// What may set a timer of this period, the likeliest first.
    setters: Vec<SetterOut>,
}

/// A setting or a clock that may have set the timer.
#[derive(Serialize, JsonSchema)]
struct SetterOut {
    /// Name of the setting or clock, in words.
    name: &'static str,
    /// The command that shows the value of the setting. PORT is to be replaced by the name of the port.
    look: &'static str,
}

/// What the times of a sweep over message sizes show about the hardware.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FitOut {
    /// Rate of large messages, by how their time grows with size: the median of the spans between sizes.
    rate_bps: u64,
    /// Lower and upper end of the 95 % interval of `rate_bps`.
    interval_bps: [u64; 2],
    /// Number of spans (pairs of neighbouring sizes) that the rate was computed from.
    spans: usize,
    /// Shortest time of any message size.
    floor_ns: u64,
    /// Message size at which size over time is half of `rate_bps`.
    half_bytes: u64,
    /// Spans among large messages whose rate differs from `rate_bps`.
    knees: Vec<SpanOut>,
    /// Hardware that may explain the rate: what the path is known to have comes first, then the likeliest.
    candidates: Vec<CandidateOut>,
    /// Hardware whose ceiling agrees with the rate, but which the path does not have.
    excluded: Vec<ExcludedOut>,
    /// Ceilings of hardware that the path is known to have, compared with the rate.
    stated: Vec<StatedOut>,
}

/// A span between two sizes whose rate differs from `rate_bps`.
#[derive(Serialize, JsonSchema)]
struct SpanOut {
    from_bytes: u64,
    to_bytes: u64,
    rate_bps: u64,
}

/// Hardware that may explain the rate. Several names have equal ceilings, within 2 %.
#[derive(Serialize, JsonSchema)]
struct CandidateOut {
    /// The names of all its hardware, in words.
    name: String,
    /// The ceilings, the one nearest to the rate first.
    names: Vec<NamedOut>,
    /// Lower and upper end of the rate that the hardware carries.
    carries_bps: [u64; 2],
    /// How far the rate is outside of what the hardware carries, as a share of the nearer end. 0 inside.
    off: f64,
    /// How far the upper end of what the hardware carries is above the rate, as a share of the rate. Negative if
    /// below.
    margin: f64,
    /// Whether the path is known to have this hardware.
    known: bool,
}

/// The ceiling of a named kind of hardware.
#[derive(Serialize, JsonSchema)]
struct NamedOut {
    name: String,
    kind: Kind,
    /// Lower and upper end of the rate that the hardware carries: used in the slowest and in the fastest way.
    carries_bps: [u64; 2],
    /// The way to use the hardware whose rate is nearest to the measured one, in words. Empty if there is only one
    /// way.
    nearest: &'static str,
    /// The rate of the way `nearest`.
    nearest_bps: u64,
}

/// Hardware whose ceiling agrees with the rate, but which the path does not have.
#[derive(Serialize, JsonSchema)]
struct ExcludedOut {
    name: String,
    kind: Kind,
    /// Lower and upper end of the rate that the hardware carries.
    carries_bps: [u64; 2],
    /// The fact that rules the hardware out, in words.
    by: String,
}

/// Hardware that the path is known to have, compared with the rate.
#[derive(Serialize, JsonSchema)]
struct StatedOut {
    name: String,
    /// Lower and upper end of the rate that the hardware carries.
    carries_bps: [u64; 2],
    /// How far the upper end of what the hardware carries is above the rate, as a share of the rate. Negative if
    /// below.
    margin: f64,
    standing: Standing,
}

pub(crate) fn timer_out(timer: &Timer, agrees: &Agreement) -> TimerOut {
    let setters = agrees.setters(timer).into_iter();
    TimerOut {
        period_ns: timer.period.0,
        points: timer.points,
        setters: setters.map(|setter| SetterOut { name: setter.name, look: setter.look }).collect(),
    }
}

pub(crate) fn fit_out(fit: &Fit, agrees: &Agreement) -> FitOut {
    let found = match agrees {
        Agreement::Path(facts) => candidates(fit, facts),
        Agreement::NoLink(_) => Candidates::default(),
    };
    FitOut {
        rate_bps: integer(fit.rate),
        interval_bps: integers(fit.interval),
        spans: fit.spans,
        floor_ns: fit.floor.0,
        half_bytes: fit.half.0,
        knees: fit.knees.iter().map(knee).collect(),
        candidates: found.possible.into_iter().map(candidate).collect(),
        excluded: found.excluded.into_iter().map(excluded).collect(),
        stated: found.stated.into_iter().map(stated).collect(),
    }
}

fn knee(knee: &Knee) -> SpanOut {
    SpanOut { from_bytes: knee.from.0, to_bytes: knee.to.0, rate_bps: integer(knee.rate) }
}

fn candidate(candidate: Candidate) -> CandidateOut {
    CandidateOut {
        name: candidate.words(),
        carries_bps: integers(candidate.carries),
        off: candidate.off,
        margin: candidate.margin,
        known: candidate.is_known,
        names: candidate.names.into_iter().map(named).collect(),
    }
}

fn named(named: Named) -> NamedOut {
    NamedOut {
        name: named.name,
        kind: named.kind,
        carries_bps: integers(named.carries),
        nearest: named.nearest.name,
        nearest_bps: integer(named.nearest.rate),
    }
}

fn excluded(excluded: Excluded) -> ExcludedOut {
    ExcludedOut {
        name: excluded.named.name,
        kind: excluded.named.kind,
        carries_bps: integers(excluded.named.carries),
        by: excluded.by,
    }
}

fn stated(stated: Stated) -> StatedOut {
    StatedOut {
        name: stated.name,
        carries_bps: integers(stated.carries),
        margin: stated.margin,
        standing: stated.standing,
    }
}

fn integers(bounds: Bounds) -> [u64; 2] {
    [integer(bounds.low()), integer(bounds.high())]
}
