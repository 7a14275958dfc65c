//! The result of `linerate list` as JSON: the saved records. The schema is made from `Output`.

use linerate_plan::path::{Certainty, Direction};
use linerate_record::{RecordKind, Start};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{CauseId, text};
use super::{Answer, Goodput, Listed, Row};
use crate::head::Head;

/// One JSON document. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate list")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// Directory in which the records are saved.
    directory: &'a str,
    /// Number of older records that match the filter and are not listed.
    left_out: u64,
    /// The records, oldest first.
    records: Vec<KeptOut<'a>>,
}

/// A file in the directory of records.
#[derive(Serialize, JsonSchema)]
struct KeptOut<'a> {
    /// Name of the record.
    name: &'a str,
    /// Start of the run: wall-clock time in seconds since 1970. Null if the file is no record.
    started_unix_s: Option<u64>,
    /// Kind of the record. Null if the file is no record.
    kind: Option<RecordKind>,
    /// The far end as it was typed; for an import the first file. Null if a machine was measured against itself,
    /// and if the file is no record.
    peer: Option<&'a str>,
    /// The user's note. Null if there is none.
    note: Option<&'a str>,
    /// Version of the linerate that made the record. Null if the file is no record.
    made_by: Option<&'a str>,
    /// The result in brief. Null if the record was not judged.
    answer: Option<AnswerOut<'a>>,
    /// Why the file is no record, or which part of it is missing, in words. Null if the part that was read is whole.
    problem: Option<&'a str>,
}

/// The result of a record in brief.
#[derive(Serialize, JsonSchema)]
struct AnswerOut<'a> {
    /// False if the run was interrupted.
    complete: bool,
    /// Goodput of each direction that was measured.
    goodput: Vec<DirectionOut>,
    /// Typical round trip on the idle path; for a sweep that of its smallest messages. Null if it was not measured.
    #[schemars(range(min = 0))]
    round_trip_ns: Option<f64>,
    /// Payload of the messages of `round_trip_ns`. Null unless the record is a sweep.
    size_bytes: Option<u64>,
    /// Names of the files of an import.
    files: &'a [String],
}

/// The goodput of a direction.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ListedDirection")]
struct DirectionOut {
    direction: Direction,
    #[schemars(range(min = 0))]
    goodput_bps: f64,
    /// The first limit of the goodput. Null if it is unknown, or if the command looked for no limit.
    #[schemars(with = "Option<CauseId>")]
    cause: Option<&'static str>,
    /// How certain the limit is. Null if there is none.
    certainty: Option<Certainty>,
}

/// The records as one JSON document, with a line feed at its end.
pub fn json(listed: &Listed) -> serde_json::Result<String> {
    text(&Output {
        head: Head::new(listed.headline()),
        directory: &listed.dir,
        left_out: listed.left_out as u64,
        records: listed.rows.iter().map(kept).collect(),
    })
}

fn kept(row: &Row) -> KeptOut<'_> {
    let start = row.start.as_ref().ok();
    let note = start.map(|start| start.note.as_str());
    let problem = row.start.as_ref().err().unwrap_or(&row.problem);
    KeptOut {
        name: &row.name,
        started_unix_s: start.map(|start| start.wall_secs),
        kind: start.map(Start::kind),
        peer: start.and_then(|start| start.plan.peer.as_deref()),
        note: note.filter(|note| !note.is_empty()),
        made_by: start.map(|start| start.linerate.as_str()),
        answer: row.answer.as_ref().map(answer),
        problem: Some(problem.as_str()).filter(|problem| !problem.is_empty()),
    }
}

fn answer(answer: &Answer) -> AnswerOut<'_> {
    let goodput = |one: &Goodput| DirectionOut {
        direction: one.direction,
        goodput_bps: one.rate,
        cause: one.limit.map(|(cause, _)| cause),
        certainty: one.limit.map(|(_, certainty)| certainty),
    };
    AnswerOut {
        complete: answer.complete,
        goodput: answer.rates.iter().map(goodput).collect(),
        round_trip_ns: answer.round_trip,
        size_bytes: answer.size.map(|size| size.0),
        files: &answer.files,
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
        for listed in [sample::several(), Listed::default()] {
            fits("list", &serde_json::from_str(&json(&listed).unwrap()).unwrap());
        }
        let good = serde_json::from_str(&json(&sample::several()).unwrap()).unwrap();
        let wrong = [
            ("/records/0/kind", Value::from("walk")),
            ("/records/0/answer/goodput/0/cause", Value::from("luck")),
            ("/records/0/name", Value::Null),
        ];
        refuses("list", &good, wrong, "/records/0");
    }
}
