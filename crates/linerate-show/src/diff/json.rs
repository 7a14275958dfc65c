//! The comparison of two records as one JSON document.
//!
//! The schema of the document is made from `Output`.

use linerate_explain::diff::{
    Change, Diff, DisturbanceChange, Fate, FigureChange, Judged, LimitChange, Outcome, RowChange,
};
use linerate_plan::path::{Certainty, Measure, Side};
use linerate_record::End;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{FigureId, Located, ValueOut, ends, exact, text};
use super::Compared;
use crate::head::Head;

/// One JSON document. The linerate that compares also judges both records. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate diff")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    before: RecordOut<'a>,
    after: RecordOut<'a>,
    /// False if the plans request different loads: figures under different loads cannot be compared.
    same_load: bool,
    /// What to know before reading the rest, in words: other hosts, interrupted runs.
    notes: &'a [String],
    /// Differences between the plans.
    plan: Vec<PlanOut<'a>>,
    figures: Vec<FigureOut>,
    /// Rows of tables that both records have: sizes of messages, operations on a disk, transfers.
    rows: Vec<RowOut<'a>>,
    limits: Vec<LimitOut<'a>>,
    /// What disturbed the measurement in at least one of the records.
    disturbances: Vec<DisturbanceOut>,
    /// Known differences between the facts of each host. A fact that was not read in one record is no difference.
    facts: Vec<FactOut<'a>>,
}

/// A record that is compared.
#[derive(Serialize, JsonSchema)]
struct RecordOut<'a> {
    /// Version of the linerate that measured.
    linerate: &'a str,
    /// Start of the run: wall-clock time in seconds since 1970.
    started_unix_s: u64,
    /// The far end as it was typed. Null for a machine measured against itself.
    peer: Option<&'a str>,
    /// False if the run was interrupted.
    complete: bool,
}

/// A difference between the plans.
#[derive(Serialize, JsonSchema)]
struct PlanOut<'a> {
    #[serde(flatten)]
    change: &'a Change,
    /// Whether this difference changes the load.
    other_load: bool,
}

/// A figure that at least one of the records has.
#[derive(Serialize, JsonSchema)]
struct FigureOut {
    #[serde(flatten)]
    id: FigureId,
    /// Value in the first record. Null if unknown.
    before: Option<ValueOut>,
    /// Value in the second record. Null if unknown.
    after: Option<ValueOut>,
    #[serde(flatten)]
    outcome: RatioOut,
}

/// A figure in a row of a table that both records have.
#[derive(Serialize, JsonSchema)]
struct RowOut<'a> {
    /// Title of the table that the row is in.
    of: &'a str,
    /// Message size of the row, in payload bytes. Null if the table is not by size.
    #[schemars(range(min = 0))]
    size_bytes: Option<u64>,
    /// Name of the figure, with its unit: `median_ns`.
    figure: &'static str,
    /// Value in the first record.
    before: ValueOut,
    /// Value in the second record.
    after: ValueOut,
    #[serde(flatten)]
    outcome: RatioOut,
}

/// How the value of the second record compares with that of the first.
#[derive(Serialize, JsonSchema)]
struct RatioOut {
    outcome: OutcomeOut,
    /// The second value divided by the first one. Null if there is no ratio.
    #[schemars(range(min = 0))]
    ratio: Option<f64>,
    /// 95 % interval of the ratio. Null if it is not known.
    ratio_ci: Option<[f64; 2]>,
    /// Why the ratio or its interval is missing. Null if both are known.
    why: Option<&'static str>,
}

/// What the ratio of two values shows.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum OutcomeOut {
    /// The values differ: all of the interval of the ratio lies outside 0.97 to 1.03.
    Differ,
    /// The values are equal: all of the interval of the ratio lies within 0.97 to 1.03.
    Same,
    /// Not shown: the interval of the ratio lies partly within 0.97 to 1.03, or is unknown.
    Unclear,
    /// The values have no ratio, such as when one is unknown or about zero.
    Nothing,
    /// The two runs requested different loads.
    NotComparable,
}

/// A limit that was found in at least one of the records.
#[derive(Serialize, JsonSchema)]
struct LimitOut<'a> {
    fate: Fate,
    metric: Measure,
    #[serde(flatten)]
    located: Located,
    /// How certain the limit was in the first record. Null if it was not found there.
    before: Option<Certainty>,
    /// How certain the limit was in the second record. Null if it was not found there.
    after: Option<Certainty>,
    /// What the record without the limit says about its cause. Null if both records have the limit.
    why: Option<&'a str>,
}

/// What disturbed the measurement in at least one of the records.
#[derive(Serialize, JsonSchema)]
struct DisturbanceOut {
    fate: Fate,
    #[serde(flatten)]
    located: Located,
    /// Estimated goodput without the disturbance, divided by the measured goodput. Null if unknown.
    #[schemars(range(min = 1))]
    gain_about: Option<f64>,
}

/// A difference between the facts of a host.
#[derive(Serialize, JsonSchema)]
struct FactOut<'a> {
    side: Side,
    #[serde(flatten)]
    change: &'a Change,
}

/// The comparison as one JSON document, with a line feed at its end.
pub fn json(compared: &Compared<'_>) -> serde_json::Result<String> {
    let Diff { notes, plan, facts, figures, rows, limits, disturbances } = compared.diff;
    let output = Output {
        head: Head::new(compared.after.headline.clone()),
        before: record(compared.before),
        after: record(compared.after),
        same_load: !plan.iter().any(|p| p.load),
        notes,
        plan: plan.iter().map(|p| PlanOut { change: &p.change, other_load: p.load }).collect(),
        figures: figures.iter().map(figure).collect(),
        rows: rows.iter().map(row).collect(),
        limits: limits.iter().map(limit).collect(),
        disturbances: disturbances.iter().map(disturbance).collect(),
        facts: facts.iter().map(|(side, change)| FactOut { side: *side, change }).collect(),
    };
    text(&output)
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
    FigureOut {
        id: FigureId::new(change.figure, change.of),
        before: change.before.as_ref().map(ValueOut::from),
        after: change.after.as_ref().map(ValueOut::from),
        outcome: ratio_of(change.outcome),
    }
}

fn row(change: &RowChange) -> RowOut<'_> {
    RowOut {
        of: &change.title,
        size_bytes: change.size.map(|size| exact(size.0)),
        figure: change.figure.key,
        before: ValueOut::from(&change.before),
        after: ValueOut::from(&change.after),
        outcome: ratio_of(change.outcome),
    }
}

fn ratio_of(outcome: Outcome) -> RatioOut {
    let (word, ratio, why) = match outcome {
        Outcome::Differ(i) => (OutcomeOut::Differ, Some(i), None),
        Outcome::Same(i) => (OutcomeOut::Same, Some(i), None),
        Outcome::Unclear(i) => (OutcomeOut::Unclear, Some(i), None),
        Outcome::Bare(_) => (OutcomeOut::Unclear, None, Some("no interval")),
        Outcome::Nothing(why) => (OutcomeOut::Nothing, None, Some(why)),
        Outcome::OtherPlan => (OutcomeOut::NotComparable, None, None),
    };
    let bare = match outcome {
        Outcome::Bare(ratio) => Some(ratio),
        _ => None,
    };
    RatioOut { outcome: word, ratio: ratio.map(|i| i.mid).or(bare), ratio_ci: ratio.map(ends), why }
}

fn limit(change: &LimitChange) -> LimitOut<'_> {
    let limit = &change.limit;
    LimitOut {
        fate: change.fate,
        metric: limit.metric,
        located: limit.into(),
        before: change.before,
        after: change.after,
        why: (!change.why.is_empty()).then_some(&change.why),
    }
}

fn disturbance(change: &DisturbanceChange) -> DisturbanceOut {
    let disturbance = &change.disturbance;
    DisturbanceOut {
        fate: change.fate,
        located: disturbance.into(),
        gain_about: disturbance.gain(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::schema::{fits, refuses};

    #[test]
    fn the_document_obeys_its_schema_and_the_schema_refuses_others() {
        let plain = sample::with(|compared| json(compared).unwrap());
        let other = sample::with_other_plans(|compared| json(compared).unwrap());
        let rows = sample::with_rows(|compared| json(compared).unwrap());
        for text in [&plain, &other, &rows] {
            fits("diff", &serde_json::from_str(text).unwrap());
        }
        let good: Value = serde_json::from_str(&plain).unwrap();
        let wrong = [
            ("/figures/0/outcome", Value::from("surely")),
            ("/figures/0/before", Value::from(1)),
            ("/limits/0/fate", Value::Null),
            ("/same_load", Value::Null),
        ];
        refuses("diff", &good, wrong, "");
    }
}
