//! Two records compared, as one JSON document.
//!
//! Its schema is `schema/diff.schema.json`.

use linerate_core::diff::{
    Change, Diff, DisturbanceChange, FigureChange, Judged, LimitChange, Outcome,
};
use linerate_core::figure::Value;
use linerate_core::path::{Direction, Measure, Side};
use linerate_core::record::End;
use linerate_core::stats::Interval;
use linerate_core::verdict::Certainty;
use serde::Serialize;

use super::Compared;

/// Version of the document; raised when a key changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../../schema/diff.schema.json");

#[derive(Serialize)]
struct Output<'a> {
    format: u32,
    before: RecordOut<'a>,
    after: RecordOut<'a>,
    same_load: bool,
    notes: &'a [String],
    plan: Vec<PlanOut<'a>>,
    figures: Vec<FigureOut>,
    limits: Vec<LimitOut<'a>>,
    disturbances: Vec<DisturbanceOut>,
    facts: Vec<FactOut<'a>>,
}

#[derive(Serialize)]
struct RecordOut<'a> {
    linerate: &'a str,
    started_unix_s: u64,
    peer: Option<&'a str>,
    complete: bool,
}

#[derive(Serialize)]
struct PlanOut<'a> {
    #[serde(flatten)]
    change: &'a Change,
    other_load: bool,
}

#[derive(Serialize)]
struct FigureOut {
    figure: &'static str,
    direction: Option<Direction>,
    percentile: Option<f64>,
    side: Option<Side>,
    before: Option<ValueOut>,
    after: Option<ValueOut>,
    told: &'static str,
    ratio: Option<f64>,
    ratio_ci: Option<[f64; 2]>,
    why: Option<&'static str>,
}

#[derive(Serialize)]
struct ValueOut {
    value: f64,
    ci: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct LimitOut<'a> {
    fate: &'static str,
    metric: Measure,
    cause: &'static str,
    stage: &'static str,
    side: &'static str,
    direction: Direction,
    before: Option<Certainty>,
    after: Option<Certainty>,
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct DisturbanceOut {
    fate: &'static str,
    cause: &'static str,
    stage: &'static str,
    side: &'static str,
    direction: Direction,
    gain_about: Option<f64>,
}

#[derive(Serialize)]
struct FactOut<'a> {
    side: Side,
    #[serde(flatten)]
    change: &'a Change,
}

/// The comparison as one JSON document, with a line feed at its end.
pub fn json(compared: &Compared<'_>) -> serde_json::Result<String> {
    let Diff {
        notes,
        plan,
        facts,
        figures,
        limits,
        disturbances,
    } = compared.diff;
    let output = Output {
        format: FORMAT,
        before: record(compared.before),
        after: record(compared.after),
        same_load: !plan.iter().any(|p| p.load),
        notes,
        plan: plan
            .iter()
            .map(|p| PlanOut {
                change: &p.change,
                other_load: p.load,
            })
            .collect(),
        figures: figures.iter().map(figure).collect(),
        limits: limits.iter().map(limit).collect(),
        disturbances: disturbances.iter().map(disturbance).collect(),
        facts: facts
            .iter()
            .map(|(side, change)| FactOut {
                side: *side,
                change,
            })
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&output)?;
    text.push('\n');
    Ok(text)
}

fn record<'a>(judged: &'a Judged<'_>) -> RecordOut<'a> {
    let start = &judged.record.start;
    RecordOut {
        linerate: &start.linerate,
        started_unix_s: start.wall_secs,
        peer: start.plan.peer.as_deref(),
        complete: matches!(judged.record.end, Some(End::Complete)),
    }
}

fn figure(change: &FigureChange) -> FigureOut {
    let (told, ratio, why) = match change.outcome {
        Outcome::Differ(i) => ("differ", Some(i), None),
        Outcome::Same(i) => ("same", Some(i), None),
        Outcome::Unsure(i) => ("untold", Some(i), None),
        Outcome::Nothing(why) => ("nothing", None, Some(why)),
        Outcome::OtherPlan => ("not-comparable", None, None),
    };
    FigureOut {
        figure: change.figure.key,
        direction: change.of.direction,
        percentile: change.of.percentile,
        side: change.of.side,
        before: change.before.as_ref().map(value),
        after: change.after.as_ref().map(value),
        told,
        ratio: ratio.map(|i| i.mid),
        ratio_ci: ratio.map(ends),
        why,
    }
}

fn value(value: &Value) -> ValueOut {
    ValueOut {
        value: value.mid,
        ci: value.interval().map(ends),
    }
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

fn limit(change: &LimitChange) -> LimitOut<'_> {
    let limit = &change.limit;
    LimitOut {
        fate: change.fate.name(),
        metric: limit.metric,
        cause: limit.cause,
        stage: limit.stage.name(),
        side: limit.side.name(),
        direction: limit.direction,
        before: change.before,
        after: change.after,
        why: (!change.why.is_empty()).then_some(&change.why),
    }
}

fn disturbance(change: &DisturbanceChange) -> DisturbanceOut {
    let disturbance = &change.disturbance;
    DisturbanceOut {
        fate: change.fate.name(),
        cause: disturbance.cause,
        stage: disturbance.stage.name(),
        side: disturbance.side.name(),
        direction: disturbance.direction,
        gain_about: disturbance.gain(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::show::schema::{fits, refuses};

    #[test]
    fn the_document_obeys_its_schema_and_the_schema_refuses_others() {
        let plain = sample::with(|compared| json(compared).unwrap());
        let other = sample::with_other_plans(|compared| json(compared).unwrap());
        for text in [&plain, &other] {
            fits(SCHEMA, &serde_json::from_str(text).unwrap());
        }
        let good: Value = serde_json::from_str(&plain).unwrap();
        let wrong = [
            ("/figures/0/told", Value::from("surely")),
            ("/figures/0/before", Value::from(1)),
            ("/limits/0/fate", Value::Null),
            ("/same_load", Value::Null),
        ];
        refuses(SCHEMA, &good, wrong, "");
    }
}
