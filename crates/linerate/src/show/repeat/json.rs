//! Several runs together, as one JSON document.
//!
//! Its schema is `schema/repeat.schema.json`; each result in it is a document of `schema/run.schema.json`.

use linerate_core::figure::{LATENCY, Spread};
use linerate_core::path::{Direction, Measure};
use linerate_core::verdict::{Disturbance, Entry};
use serde::Serialize;

use super::super::json::{HeadlineOut, Output, first, integer, output};
use super::{Answer, IDLE, Run, answers, disturbances, goodput, limit_of, spread};

/// Version of the document; raised when a key changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../../schema/repeat.schema.json");

#[derive(Serialize)]
struct Repeated<'a> {
    format: u32,
    asked: usize,
    runs: Vec<RunOut<'a>>,
    goodput_bps: Goodput,
    idle_p50_ns: Option<SpreadOut>,
    headline: Option<HeadlineOut>,
    limits: Vec<LimitOut<'a>>,
    unknown: Vec<UnknownOut>,
    disturbances: Vec<DisturbanceOut>,
}

#[derive(Serialize)]
struct RunOut<'a> {
    record: Option<&'a str>,
    result: Output<'a>,
}

#[derive(Serialize)]
struct Goodput {
    forward: Option<SpreadOut>,
    reverse: Option<SpreadOut>,
}

#[derive(Serialize)]
struct SpreadOut {
    runs: usize,
    median: u64,
    lowest: u64,
    highest: u64,
}

/// A direction in which runs upheld no limit.
#[derive(Serialize)]
struct UnknownOut {
    direction: &'static str,
    runs: usize,
}

#[derive(Serialize)]
struct DisturbanceOut {
    cause: &'static str,
    stage: &'static str,
    side: &'static str,
    direction: &'static str,
    runs: usize,
    gain_about: Option<f64>,
}

#[derive(Serialize)]
struct LimitOut<'a> {
    metric: Measure,
    cause: &'a str,
    stage: &'static str,
    side: &'static str,
    direction: &'static str,
    runs: usize,
    proved: usize,
}

/// The runs as one JSON document, with a line feed at its end. `asked` is how many there were to be;
/// `with_record` adds the readings of each.
pub fn json(runs: &[Run<'_>], asked: usize, with_record: bool) -> serde_json::Result<String> {
    let answers = answers(runs);
    let output = Repeated {
        format: FORMAT,
        asked,
        runs: runs.iter().map(|run| one(run, with_record)).collect(),
        goodput_bps: Goodput {
            forward: goodput(runs, Direction::Forward).map(spread_out),
            reverse: goodput(runs, Direction::Reverse).map(spread_out),
        },
        idle_p50_ns: spread(runs, &LATENCY, IDLE).map(spread_out),
        headline: answers.first().map(|answer| first(answer.told)),
        limits: answers.iter().filter_map(limit).collect(),
        unknown: answers.iter().filter_map(unknown).collect(),
        disturbances: disturbances(runs).into_iter().map(disturbance).collect(),
    };
    let mut text = serde_json::to_string_pretty(&output)?;
    text.push('\n');
    Ok(text)
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

fn limit<'a>(answer: &Answer<'a>) -> Option<LimitOut<'a>> {
    limit_of(answer.told).map(|limit| LimitOut {
        metric: limit.metric,
        cause: limit.cause,
        stage: limit.stage.name(),
        side: limit.side.name(),
        direction: limit.direction.name(),
        runs: answer.runs,
        proved: answer.proved,
    })
}

fn unknown(answer: &Answer<'_>) -> Option<UnknownOut> {
    match answer.told {
        Entry::Unknown(direction) => Some(UnknownOut {
            direction: direction.name(),
            runs: answer.runs,
        }),
        Entry::Limit(_) => None,
    }
}

fn disturbance((disturbance, runs): (&Disturbance, usize)) -> DisturbanceOut {
    DisturbanceOut {
        cause: disturbance.cause,
        stage: disturbance.stage.name(),
        side: disturbance.side.name(),
        direction: disturbance.direction.name(),
        runs,
        gain_about: disturbance.gain(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::super::{json as one, sample};
    use super::super::tests::sample_runs;
    use super::*;
    use crate::show::schema::{fits, refuses};

    #[test]
    fn the_document_and_each_result_in_it_obey_their_schemas() {
        let results = [sample::limited(), sample::healthy(), sample::disturbed()];
        let text = json(&sample_runs(&results), 3, false).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        fits(SCHEMA, &document);
        for run in document["runs"].as_array().unwrap() {
            fits(one::SCHEMA, &run["result"]);
        }
        fits(
            SCHEMA,
            &serde_json::from_str(&json(&[], 3, false).unwrap()).unwrap(),
        );
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
        refuses(SCHEMA, &serde_json::from_str(&text).unwrap(), wrong, "");
    }
}
