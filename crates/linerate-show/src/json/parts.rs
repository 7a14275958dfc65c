//! Types and functions that several JSON documents share.

use std::borrow::Cow;
use std::fmt::Write;

use linerate_judge::causes::CAUSES;
use linerate_judge::model::Estimate;
use linerate_judge::verdict::{Disturbance, Limit};
use linerate_plan::path::{Direction, Place, Stage};
use linerate_units::EXACT;
use linerate_units::stats::Interval;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::document::clean;

/// Schema of a string that is the id of a cause.
pub(crate) struct CauseId;

impl JsonSchema for CauseId {
    fn schema_name() -> Cow<'static, str> {
        "CauseId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let ids = CAUSES.iter().map(|cause| cause.id);
        let mut schema = one_of(ids);
        schema.insert(
            "description".to_owned(),
            "Id of a cause. `linerate causes ID` explains it.".into(),
        );
        schema
    }
}

/// Schema of a string that is one of `names`.
pub(crate) fn one_of(names: impl IntoIterator<Item = &'static str>) -> Schema {
    let names: Vec<&str> = names.into_iter().collect();
    json_schema!({ "type": "string", "enum": names })
}

/// Schema of a field that holds any object: a document inside a document, which has its own schema, or a record, which has
/// none.
pub(crate) fn described_elsewhere(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// A cause, and the stage and end at which it acts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Acting {
    #[schemars(with = "CauseId")]
    cause: &'static str,
    stage: Stage,
    side: Place,
}

/// A cause, and the stage, end and direction in which it acts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Located {
    #[serde(flatten)]
    acting: Acting,
    direction: Direction,
}

impl From<&Limit> for Acting {
    fn from(limit: &Limit) -> Self {
        Self { cause: limit.cause, stage: limit.stage, side: limit.side }
    }
}

impl From<&Disturbance> for Acting {
    fn from(disturbance: &Disturbance) -> Self {
        Self { cause: disturbance.cause, stage: disturbance.stage, side: disturbance.side }
    }
}

impl From<&Limit> for Located {
    fn from(limit: &Limit) -> Self {
        Self { acting: limit.into(), direction: limit.direction }
    }
}

impl From<&Disturbance> for Located {
    fn from(disturbance: &Disturbance) -> Self {
        Self { acting: disturbance.into(), direction: disturbance.direction }
    }
}

/// Goodput: payload that reached the receiving program, over the receiver's clock.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Goodput {
    /// Payload that reached the receiving program, over the receiver's clock, in the steady part of the load.
    goodput_bps: u64,
    /// 95 % interval of `goodput_bps`. Null if there are too few samples.
    goodput_ci_bps: Option<[u64; 2]>,
}

impl From<&Estimate> for Goodput {
    fn from(goodput: &Estimate) -> Self {
        Self { goodput_bps: integer(goodput.mean), goodput_ci_bps: ci(goodput) }
    }
}

/// A JSON document as text, with a line feed at its end. Control characters of terminals and invisible characters
/// are escaped.
pub(crate) fn text(document: &impl Serialize) -> serde_json::Result<String> {
    let mut text = String::new();
    for c in serde_json::to_string_pretty(document)?.chars() {
        if c == '\n' || clean(c) == c {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text.push('\n');
    Ok(text)
}

pub(crate) fn ci(estimate: &Estimate) -> Option<[u64; 2]> {
    estimate.interval.map(|i| [integer(i.low), integer(i.high)])
}

/// Lower and upper end of an interval.
pub(crate) fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

/// A number as an integer that every JSON reader keeps exactly. Negative values, such as ends of intervals, become 0.
pub(crate) fn integer(value: f64) -> u64 {
    value.clamp(0.0, EXACT as f64) as u64
}

/// An integer that every JSON reader keeps exactly: at most 2^53.
pub(crate) fn exact(value: u64) -> u64 {
    value.min(EXACT)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        let value = "a\u{9b}2J\u{202e}\u{7f}\u{e0041}\u{e9}\u{1f600}\n";
        let text = super::text(&value).unwrap();
        assert_eq!(text, "\"a\\u009b2J\\u202e\\u007f\\udb40\\udc41\u{e9}\u{1f600}\\n\"\n");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), value);
    }
}
