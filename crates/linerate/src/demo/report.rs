//! The outcome of a demonstration as one line of JSON, for scripts that score many demonstrations.

use linerate_judge::verdict::{Disturbance, Limit};
use linerate_lab::{Cell, Fault};
use linerate_plan::Purpose;
use linerate_plan::path::Certainty;
use linerate_record::{Record, Step};
use serde::{Deserialize, Serialize};

use super::{Named, Outcome, Scored, Shown};

/// The line of JSON for one demonstration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Id of the cell whose faults were planted.
    pub fault: String,
    /// Seed from which severity, side and direction were drawn.
    pub seed: u64,
    /// Congestion control of both hosts; `None` for the system's default.
    pub congestion: Option<String>,
    /// The planted faults, as users type them.
    pub planted: Vec<String>,
    /// The other client that loaded the path at the same time, if any.
    pub company: Option<CompanyReport>,
    /// The measured truth, if it was measured.
    pub truth: Option<TruthReport>,
    /// Ids of the causes that are right answers.
    pub expected: Vec<String>,
    /// Ids of the causes that are acceptable answers.
    pub neighbours: Vec<String>,
    /// Id of the cause that the verdict names first.
    pub named: Option<String>,
    /// The place of the named cause.
    pub side: Option<String>,
    /// The direction of the named cause.
    pub direction: Option<String>,
    /// The certainty of the named cause; `None` for a disturbance.
    pub certainty: Option<String>,
    /// The effect of the trial that decided.
    pub effect: Option<EffectReport>,
    /// How the verdict compares with the measured truth.
    pub outcome: Outcome,
    /// All limits that the verdict names.
    pub limits: Vec<LimitReport>,
    /// All disturbances that the verdict names.
    #[serde(default)]
    pub disturbances: Vec<DisturbanceReport>,
    /// Number of steps of the run.
    pub steps: usize,
    /// Seconds from the first step of the run to the end of the trial that proved the named cause.
    pub proved_after: Option<f64>,
    /// Seconds from the first step of the run to the end of the last step.
    pub seconds: f64,
}

/// Another client that loaded the path during the demonstration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompanyReport {
    host: String,
    direction: String,
    apart: bool,
}

/// The truth: goodput with and without the fault, measured by other means, in bits per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TruthReport {
    direction: String,
    /// The program whose load measured the truth.
    by: String,
    with_bps: u64,
    without_bps: u64,
    /// Whether the planted fault limits the path.
    pub bites: bool,
}

/// The effect of a trial: goodput with the new setting over goodput with the old one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectReport {
    trial: String,
    low: f64,
    mid: f64,
    high: f64,
    slices: u32,
}

/// A disturbance that the verdict names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DisturbanceReport {
    cause: String,
    side: String,
    direction: String,
    gain_about: Option<f64>,
}

/// A limit that the verdict names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitReport {
    cause: String,
    side: String,
    direction: String,
    certainty: String,
}

impl Report {
    /// The line for `shown`, the demonstration of `cell`, which was drawn from `seed` and is of the kind `fault`.
    pub(crate) fn of(
        (fault, seed, cell): (&str, u64, &Cell),
        congestion: Option<&str>,
        (shown, scored): (&Shown, &Scored),
    ) -> Self {
        let named = scored.named.as_ref();
        Self {
            fault: fault.to_owned(),
            seed,
            congestion: congestion.map(str::to_owned),
            planted: cell.planted().map(Fault::code).collect(),
            company: cell.company.map(|c| CompanyReport {
                host: c.host.to_string(),
                direction: c.direction.name().to_owned(),
                apart: c.apart,
            }),
            truth: shown.truth.map(|t| TruthReport {
                direction: t.direction.name().to_owned(),
                by: t.loader.name().to_owned(),
                with_bps: t.with as u64,
                without_bps: t.without as u64,
                bites: t.bites(),
            }),
            expected: scored.expected.iter().map(|s| (*s).to_owned()).collect(),
            neighbours: cell.neighbours.iter().map(|s| (*s).to_owned()).collect(),
            named: named.map(|l| l.cause.to_owned()),
            side: named.map(|l| l.side.name().to_owned()),
            direction: named.map(|l| l.direction.name().to_owned()),
            certainty: named.and_then(|l| Some(l.certainty?.name().to_owned())),
            effect: named.and_then(|l| l.trial.as_ref()).map(|t| EffectReport {
                trial: t.kind.to_owned(),
                low: t.effect.low,
                mid: t.effect.mid,
                high: t.effect.high,
                slices: t.slices,
            }),
            outcome: scored.outcome,
            limits: shown.verdict.limits.iter().map(limit).collect(),
            disturbances: shown.verdict.disturbances.iter().map(disturbance).collect(),
            steps: shown.record.steps.len(),
            proved_after: named.and_then(|named| proved_after(&shown.record, named)),
            seconds: seconds(&shown.record, |_| true).unwrap_or(0.0),
        }
    }
}

fn limit(limit: &Limit) -> LimitReport {
    LimitReport {
        cause: limit.cause.to_owned(),
        side: limit.side.name().to_owned(),
        direction: limit.direction.name().to_owned(),
        certainty: limit.certainty.name().to_owned(),
    }
}

fn disturbance(disturbance: &Disturbance) -> DisturbanceReport {
    DisturbanceReport {
        cause: disturbance.cause.to_owned(),
        side: disturbance.side.name().to_owned(),
        direction: disturbance.direction.name().to_owned(),
        gain_about: disturbance.gain(),
    }
}

/// Seconds to the end of the trial that proved the named cause; `None` if no trial proved it.
fn proved_after(record: &Record, named: &Named) -> Option<f64> {
    let trial = named.trial.as_ref()?.id;
    let its = |s: &&Step| matches!(s.plan.purpose, Purpose::Slice { trial: id, .. } if id == trial);
    (named.certainty == Some(Certainty::Proved)).then(|| seconds(record, its)).flatten()
}

/// Seconds from the first step of a run to the end of its last step that `counted` accepts.
fn seconds(record: &Record, counted: impl Fn(&&Step) -> bool) -> Option<f64> {
    let first = record.steps.first()?.began;
    let end = record.steps.iter().rfind(counted)?.ended();
    Some(end.0.saturating_sub(first.0) as f64 / 1e9)
}
