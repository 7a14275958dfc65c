//! Round trips with each of several values of an option, for programs.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::super::json::{Format, text};
use super::super::{lat, trips};
use super::{Each, Part, View};

/// One JSON document: round trips with each of several values of an option, one after the other.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate lat with several values of an option")]
pub(crate) struct Output<'a> {
    /// Version of this document.
    format: Format<1>,
    /// Version of linerate.
    linerate: &'static str,
    /// The option that differs between the measurements.
    option: &'a str,
    /// False if a measurement is lacking or not complete.
    complete: bool,
    /// The measurements, in the order in which the values were typed.
    #[schemars(length(min = 2))]
    measurements: Vec<PartOut<'a>>,
}

/// A value of the option, and its measurement.
#[derive(Serialize, JsonSchema)]
struct PartOut<'a> {
    value: &'a str,
    /// Name of the saved record. Null if it was not saved.
    record: Option<&'a str>,
    /// The document of lat.schema.json, with `--sweep` that of lat-sweep.schema.json. Null if nothing was measured.
    #[schemars(schema_with = "of_lat")]
    result: Option<ViewOut<'a>>,
    /// Why nothing was measured. Null if something was.
    not_measured: Option<&'a str>,
}

/// Another document, or null.
fn of_lat(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"] })
}

/// The document of a measurement.
#[derive(Serialize)]
#[serde(untagged)]
enum ViewOut<'a> {
    Once(Box<lat::Output<'a>>),
    Sweep(Box<trips::Output<'a>>),
}

/// All measurements as one JSON document, with a line feed at its end; `with_record` adds the raw readings.
pub fn json(each: &Each<'_>, with_record: bool) -> serde_json::Result<String> {
    text(&Output {
        format: Format,
        linerate: env!("CARGO_PKG_VERSION"),
        option: each.option,
        complete: each.complete(),
        measurements: each.parts.iter().map(|one| part(one, with_record)).collect(),
    })
}

fn part<'a>(part: &Part<'a>, with_record: bool) -> PartOut<'a> {
    let done = part.measured.ok();
    let result = done.map(|done| {
        let record = with_record.then_some(done.record);
        match done.view {
            View::Once(probe) => ViewOut::Once(Box::new(lat::output(probe, record))),
            View::Sweep(probe) => ViewOut::Sweep(Box::new(trips::output(probe, record))),
        }
    });
    PartOut {
        value: part.value,
        record: done.and_then(|done| done.saved),
        result,
        not_measured: part.measured.err(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::super::sample as records;
    use super::super::sample;
    use super::*;
    use crate::schema::{fits, needs_all, refuses};

    #[test]
    fn the_document_fits_its_schema_and_says_what_is_lacking() {
        let record = records::healthy().0;
        let views = sample::sweeps();
        let told = json(&sample::each(&views, &record), false).unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        fits("lat-each", &told);
        let [read, write, send] = [0, 1, 2].map(|at| &told["measurements"][at]);
        fits("lat-sweep", &read["result"]);
        assert_eq!(told["complete"], false);
        assert_eq!(read["result"]["complete"], true);
        assert_eq!(write["result"]["ended_early"], "interrupted");
        assert_eq!(
            (&send["result"], &send["not_measured"]),
            (&Value::Null, &"interrupted before".into())
        );
        let wrong = [
            ("/format", Value::from(2)),
            ("/measurements/0/record", Value::from(7)),
            ("/measurements", Value::Null),
        ];
        refuses("lat-each", &told, wrong, "");
        needs_all("lat-each", &told, "");
    }
}
