//! Several runs together, as one JSON document.
//!
//! The schema of the document is made from `Repeated`; each result in the document has the form of
//! `schema/run.schema.json`.

use linerate_explain::Headline;
use linerate_judge::figure::{Figure, LATENCY, Spread, Subject};
use linerate_judge::verdict::{Disturbance, Entry};
use linerate_plan::path::{Direction, Measure};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{FigureId, Located, Output, described_elsewhere, integer, output, text};
use super::{Answer, IDLE, Run, answers, disturbances, goodput, limit_of, spread, spreads};
use crate::head::Head;

/// One JSON document: every run, and a summary of all. Keys contain the units. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate run --repeat")]
pub(crate) struct Repeated<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// Number of requested runs. Fewer were made if the user or the path ended them.
    #[schemars(range(min = 1))]
    asked: usize,
    /// The runs in their order.
    runs: Vec<RunOut<'a>>,
    /// Goodput of each direction over the runs.
    goodput_bps: SpreadOfGoodput,
    /// Median round trip of the idle path over the runs. Null if unknown.
    idle_p50_ns: Option<SpreadOut>,
    /// Every figure over the runs.
    figures: Vec<FigureOut>,
    /// Limits that any run found: goodput before latency, a direction whose median is less than half of the
    /// other one's before that one, then the limits of most runs.
    limits: Vec<LimitOut>,
    /// Directions in which runs found no limit of goodput.
    unknown: Vec<UnknownOut>,
    /// The disturbances of any run that are not its limit; those of most runs first.
    disturbances: Vec<DisturbanceOut>,
}

/// A run.
#[derive(Serialize, JsonSchema)]
struct RunOut<'a> {
    /// Name of the saved record. Null if it was not saved.
    record: Option<&'a str>,
    /// The result of the run: a document of run.schema.json.
    #[schemars(schema_with = "described_elsewhere")]
    result: Output<'a>,
}

/// Goodput of each direction over the runs.
#[derive(Serialize, JsonSchema)]
struct SpreadOfGoodput {
    /// Null if not measured.
    forward: Option<SpreadOut>,
    /// Null if not measured.
    reverse: Option<SpreadOut>,
}

/// A figure over the runs.
#[derive(Serialize, JsonSchema)]
struct SpreadOut {
    /// Runs that have the figure.
    #[schemars(range(min = 1))]
    runs: usize,
    median: u64,
    lowest: u64,
    highest: u64,
}

/// A figure over the runs that have it.
#[derive(Serialize, JsonSchema)]
struct FigureOut {
    #[serde(flatten)]
    id: FigureId,
    /// Runs that have the figure.
    #[schemars(range(min = 1))]
    runs: usize,
    /// All runs in one value: the median; for shares, the events of all runs over all that could have been one.
    merged: f64,
    lowest: f64,
    highest: f64,
}

/// A direction in which runs found no limit.
#[derive(Serialize, JsonSchema)]
struct UnknownOut {
    direction: Direction,
    /// Runs that found none.
    #[schemars(range(min = 1))]
    runs: usize,
}

/// What disturbed runs and was not found to limit them.
#[derive(Serialize, JsonSchema)]
struct DisturbanceOut {
    #[serde(flatten)]
    located: Located,
    /// Runs that it disturbed.
    #[schemars(range(min = 1))]
    runs: usize,
    /// Estimated goodput without it over the measured goodput, in the run that it took most of. Null if unknown.
    #[schemars(range(min = 1))]
    gain_about: Option<f64>,
}

/// A limit that runs found.
#[derive(Serialize, JsonSchema)]
struct LimitOut {
    metric: Measure,
    #[serde(flatten)]
    located: Located,
    /// Runs that found it.
    #[schemars(range(min = 1))]
    runs: usize,
    /// Runs that proved it.
    proved: usize,
}

/// The runs as one JSON document, with a line feed at its end. `asked` is how many there were to be;
/// `with_record` adds the readings of each.
pub fn json(runs: &[Run<'_>], asked: usize, with_record: bool) -> serde_json::Result<String> {
    let answers = answers(runs);
    let output = Repeated {
        head: Head::new(Headline::of_entries(answers.iter().map(|answer| answer.told))),
        asked,
        runs: runs.iter().map(|run| one(run, with_record)).collect(),
        goodput_bps: SpreadOfGoodput {
            forward: goodput(runs, Direction::Forward).map(spread_out),
            reverse: goodput(runs, Direction::Reverse).map(spread_out),
        },
        idle_p50_ns: spread(runs, &LATENCY, IDLE).map(spread_out),
        figures: spreads(runs).into_iter().map(figure).collect(),
        limits: answers.iter().filter_map(limit).collect(),
        unknown: answers.iter().filter_map(unknown).collect(),
        disturbances: disturbances(runs).into_iter().map(disturbance).collect(),
    };
    text(&output)
}

fn one<'a>(run: &'a Run<'_>, with_record: bool) -> RunOut<'a> {
    let judged = &run.judged;
    RunOut {
        record: run.saved,
        result: output(judged.record, &judged.model, &judged.verdict, with_record),
    }
}

fn spread_out(spread: Spread) -> SpreadOut {
    SpreadOut {
        runs: spread.runs,
        median: integer(spread.middle),
        lowest: integer(spread.low),
        highest: integer(spread.high),
    }
}

fn figure((figure, of, spread): (&'static Figure, Subject, Spread)) -> FigureOut {
    FigureOut {
        id: FigureId::new(figure, of),
        runs: spread.runs,
        merged: spread.middle,
        lowest: spread.low,
        highest: spread.high,
    }
}

fn limit(answer: &Answer<'_>) -> Option<LimitOut> {
    limit_of(answer.told).map(|limit| LimitOut {
        metric: limit.metric,
        located: limit.into(),
        runs: answer.runs,
        proved: answer.proved,
    })
}

fn unknown(answer: &Answer<'_>) -> Option<UnknownOut> {
    match answer.told {
        Entry::Unknown(direction) => Some(UnknownOut { direction, runs: answer.runs }),
        Entry::Limit(_) => None,
    }
}

fn disturbance((disturbance, runs): (&Disturbance, usize)) -> DisturbanceOut {
    DisturbanceOut { located: disturbance.into(), runs, gain_about: disturbance.gain() }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::super::sample;
    use super::super::tests::sample_runs;
    use super::*;
    use crate::schema::{fits, refuses};

    #[test]
    fn the_document_and_each_result_in_it_obey_their_schemas() {
        let results = [sample::limited(), sample::healthy(), sample::disturbed()];
        let text = json(&sample_runs(&results), 3, false).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        fits("repeat", &document);
        // One direction is as fast as its wire, and the other one is not.
        let headline = &document["headline"];
        assert_eq!(
            (&headline["cause"], &headline["stands"]),
            (&"wire-full".into(), &"limit".into())
        );
        for run in document["runs"].as_array().unwrap() {
            fits("run", &run["result"]);
        }
        fits("repeat", &serde_json::from_str(&json(&[], 3, false).unwrap()).unwrap());
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let results = [sample::limited()];
        let text = json(&sample_runs(&results), 1, false).unwrap();
        let wrong = [
            ("/format", Value::from(2)),
            ("/asked", Value::from(0)),
            ("/runs/0/result", Value::Null),
            ("/goodput_bps/forward/median", Value::from(1.5)),
            ("/limits/0/proved", Value::from(-1)),
        ];
        refuses("repeat", &serde_json::from_str(&text).unwrap(), wrong, "");
    }
}
