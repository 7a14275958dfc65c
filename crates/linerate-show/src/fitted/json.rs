//! What times by size show, for programs.

use linerate_ceiling::Bounds;
use linerate_ceiling::fingerprint::{
    Candidate, Candidates, Excluded, Fit, Kind, Knee, Named, Standing, Stated, Timer, candidates,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::integer;
use super::Agreement;

/// A timer that sets times, such as the hold-off of a card's interrupts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TimerOut {
    /// Its period, or a whole multiple of it.
    period_ns: u64,
    /// Number of times that stand at the period or at whole multiples of it.
    points: usize,
    /// What may set a timer of this period, the likeliest first.
    setters: Vec<SetterOut>,
}

/// A setting or a clock that may set a timer.
#[derive(Serialize, JsonSchema)]
struct SetterOut {
    /// What it is, in words.
    name: &'static str,
    /// The command that shows its value. PORT stands for the name of the port.
    look: &'static str,
}

/// What times by size say about the hardware.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FitOut {
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
    knees: Vec<SpanOut>,
    /// Hardware that may have this rate: what the path is known to have comes first, then the likeliest.
    candidates: Vec<CandidateOut>,
    /// Hardware with such a rate that the path does not have.
    excluded: Vec<ExcludedOut>,
    /// Links that are known beside this rate.
    stated: Vec<StatedOut>,
}

/// A span of sizes with another rate.
#[derive(Serialize, JsonSchema)]
struct SpanOut {
    from_bytes: u64,
    to_bytes: u64,
    rate_bps: u64,
}

/// Hardware that may have the rate. Several names have equal ceilings, within 2 %.
#[derive(Serialize, JsonSchema)]
struct CandidateOut {
    /// All names in words.
    name: String,
    /// The ceilings, the nearest first.
    names: Vec<NamedOut>,
    /// Lower and upper end of what the hardware carries.
    carries_bps: [u64; 2],
    /// How far the rate is outside of what the hardware carries, as a share of it. 0 inside.
    off: f64,
    /// How far the upper end of what it carries is above the rate, as a share of the rate. Negative below it.
    margin: f64,
    /// Whether the path is known to have this hardware.
    known: bool,
}

/// A ceiling.
#[derive(Serialize, JsonSchema)]
struct NamedOut {
    name: String,
    kind: Kind,
    /// Lower and upper end of what it carries: the least and the best way to use the hardware.
    carries_bps: [u64; 2],
    /// The way to use it whose rate is nearest to the measured one, in words. Empty if there is only one.
    nearest: &'static str,
    /// The rate of this way.
    nearest_bps: u64,
}

/// Hardware that the path does not have.
#[derive(Serialize, JsonSchema)]
struct ExcludedOut {
    name: String,
    kind: Kind,
    /// Lower and upper end of what it carries.
    carries_bps: [u64; 2],
    /// The fact that rules it out, in words.
    by: String,
}

/// Hardware that is known.
#[derive(Serialize, JsonSchema)]
struct StatedOut {
    name: String,
    /// Lower and upper end of what it carries.
    carries_bps: [u64; 2],
    /// How far the upper end of what it carries is above the rate, as a share of the rate. Negative below it.
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
