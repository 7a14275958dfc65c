//! The figures of a measurement in documents, in one form: keys and units are in the table of
//! `linerate_judge::figure`.

use std::borrow::Cow;

use linerate_judge::figure::{ALL, Better, Entry, Figure, OF_POINTS, Subject, Summary, Value};
use linerate_plan::path::{Direction, Side};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use super::parts::ends;

/// Name of a figure, with its unit, as documents write it.
struct FigureName(&'static Figure);

impl Serialize for FigureName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.key)
    }
}

impl JsonSchema for FigureName {
    fn schema_name() -> Cow<'static, str> {
        "FigureName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let each = ALL.iter().chain(OF_POINTS);
        let rows = each.map(|figure| {
            json_schema!({ "type": "string", "const": figure.key, "description": figure.doc })
        });
        json_schema!({
            "description": "Name of a figure, with its unit; a share is from 0 to 1.",
            "oneOf": rows.collect::<Vec<Schema>>(),
        })
    }
}

/// A figure, and the part of the measurement that it describes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FigureId {
    figure: FigureName,
    better: Better,
    /// Direction of the load that the figure is about. Null for the idle path.
    direction: Option<Direction>,
    /// Percentile of round trips. Null for other figures.
    #[schemars(range(min = 0, max = 100))]
    percentile: Option<f64>,
    /// End that the figure is about. Null for figures of the whole load.
    side: Option<Side>,
}

impl FigureId {
    pub(crate) const fn new(figure: &'static Figure, of: Subject) -> Self {
        Self {
            figure: FigureName(figure),
            better: figure.better,
            direction: of.direction,
            percentile: of.percentile,
            side: of.side,
        }
    }
}

/// A value with its 95 % interval.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ValueOut {
    value: f64,
    /// 95 % interval of the value within its run. Null if unknown.
    ci: Option<[f64; 2]>,
}

impl From<&Value> for ValueOut {
    fn from(value: &Value) -> Self {
        Self { value: value.mid, ci: value.interval().map(ends) }
    }
}

/// A figure with the value that was measured.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FigureOut {
    #[serde(flatten)]
    id: FigureId,
    #[serde(flatten)]
    value: ValueOut,
}

/// All figures of a measurement that have a value.
pub(crate) fn figures(summary: &Summary) -> Vec<FigureOut> {
    let figure = |entry: &Entry| {
        let value = entry.value.as_ref().ok()?;
        Some(FigureOut { id: FigureId::new(entry.figure, entry.of), value: value.into() })
    };
    summary.entries.iter().filter_map(figure).collect()
}
