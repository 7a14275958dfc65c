//! How a step lies in a record: its tables packed, their times shared.
//!
//! The shapes here are format 1 and change only with [`super::FORMAT`]. Names, units and kinds stand
//! beside the values, so that a reader needs no table of metrics to understand them.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::pack::{pack, unpack};
use super::{ClockPair, Column, EndReadings, Histogram, Step, Table, Total, Trouble};
use crate::facts::Gap;
use crate::metric::{Kind, Unit};
use crate::plan::StepPlan;
use crate::units::Nanos;

/// [`Step`] with packed tables.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredStep {
    plan: StepPlan,
    began: Nanos,
    ends: Vec<StoredEnd>,
    clock: Option<ClockPair>,
    trouble: Option<Trouble>,
}

/// [`EndReadings`] with packed tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredEnd {
    /// Times of rows; tables read at one tick share one.
    axes: Vec<Axis>,
    tables: Vec<StoredTable>,
    latencies: Vec<Histogram>,
    send_gaps: Vec<Histogram>,
    totals: Vec<Total>,
    other_sessions: u32,
    gaps: Vec<Gap>,
}

#[derive(Serialize, Deserialize)]
struct Axis {
    rows: u64,
    at: Packed,
}

#[derive(Serialize, Deserialize)]
struct StoredTable {
    source: String,
    subject: String,
    /// Index into [`StoredEnd::axes`].
    axis: u32,
    columns: Vec<StoredColumn>,
}

#[derive(Serialize, Deserialize)]
struct StoredColumn {
    name: String,
    unit: Unit,
    kind: Kind,
    values: Packed,
}

/// A CBOR byte string (serde makes a list of numbers of a `Vec<u8>`).
struct Packed(Vec<u8>);

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Packed;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a packed column")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Packed, E> {
                Ok(Packed(bytes.to_owned()))
            }
            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Packed, E> {
                Ok(Packed(bytes))
            }
        }
        from.deserialize_byte_buf(Visitor)
    }
}

/// How many more values may be unpacked.
pub(super) struct Budget(pub(super) u64);

impl Budget {
    fn take(&mut self, values: usize) -> Result<(), &'static str> {
        self.0 = self
            .0
            .checked_sub(values as u64)
            .ok_or("it holds more readings than a record may")?;
        Ok(())
    }
}

impl From<&Step> for StoredStep {
    fn from(step: &Step) -> Self {
        Self {
            plan: step.plan.clone(),
            began: step.began,
            ends: step.ends.iter().map(StoredEnd::from).collect(),
            clock: step.clock,
            trouble: step.trouble.clone(),
        }
    }
}

impl From<&EndReadings> for StoredEnd {
    fn from(end: &EndReadings) -> Self {
        let mut known: HashMap<&[u64], u32> = HashMap::new();
        let mut shared = Vec::new();
        let tables = end.tables.iter().map(|table| {
            let axis = *known.entry(&table.at).or_insert_with(|| {
                shared.push(Axis::from(table.at.as_slice()));
                shared.len() as u32 - 1
            });
            StoredTable::new(table, axis)
        });
        Self {
            tables: tables.collect(),
            axes: shared,
            latencies: end.latencies.clone(),
            send_gaps: end.send_gaps.clone(),
            totals: end.totals.clone(),
            other_sessions: end.other_sessions,
            gaps: end.gaps.clone(),
        }
    }
}

impl From<&[u64]> for Axis {
    fn from(at: &[u64]) -> Self {
        let signed: Vec<i64> = at.iter().map(|t| *t as i64).collect();
        Self {
            rows: at.len() as u64,
            at: Packed(pack(&signed)),
        }
    }
}

impl StoredTable {
    fn new(table: &Table, axis: u32) -> Self {
        let columns = table.columns.iter().map(|column| StoredColumn {
            name: column.name.clone(),
            unit: column.unit,
            kind: column.kind,
            values: Packed(pack(&column.values)),
        });
        Self {
            source: table.source.clone(),
            subject: table.subject.clone(),
            axis,
            columns: columns.collect(),
        }
    }

    fn open(self, axes: &[Vec<u64>], budget: &mut Budget) -> Result<Table, &'static str> {
        let at = axes
            .get(self.axis as usize)
            .ok_or("a table names times that are not there")?;
        budget.take(at.len())?;
        let columns = self.columns.into_iter().map(|c| c.open(at.len(), budget));
        Ok(Table {
            source: self.source,
            subject: self.subject,
            columns: columns.collect::<Result<_, _>>()?,
            at: at.clone(),
        })
    }
}

impl StoredColumn {
    fn open(self, rows: usize, budget: &mut Budget) -> Result<Column, &'static str> {
        budget.take(rows)?;
        Ok(Column {
            name: self.name,
            unit: self.unit,
            kind: self.kind,
            values: unpack(&self.values.0, rows).ok_or("a column is not as long as its times")?,
        })
    }
}

impl Axis {
    fn open(&self, budget: &mut Budget) -> Result<Vec<u64>, &'static str> {
        let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
        budget.take(rows)?;
        let at = unpack(&self.at.0, rows).ok_or("the times of a table cannot be unpacked")?;
        Ok(at.into_iter().map(|t| t as u64).collect())
    }
}

impl StoredEnd {
    fn open(self, budget: &mut Budget) -> Result<EndReadings, &'static str> {
        let axes = self.axes.iter().map(|a| a.open(budget));
        let axes = axes.collect::<Result<Vec<_>, _>>()?;
        let tables = self.tables.into_iter().map(|t| t.open(&axes, budget));
        Ok(EndReadings {
            tables: tables.collect::<Result<_, _>>()?,
            latencies: self.latencies,
            send_gaps: self.send_gaps,
            totals: self.totals,
            other_sessions: self.other_sessions,
            gaps: self.gaps,
        })
    }
}

impl StoredStep {
    /// The step as it was read; says in words what does not fit.
    pub(super) fn open(self, budget: &mut Budget) -> Result<Step, &'static str> {
        let ends = self.ends.into_iter().map(|e| e.open(budget));
        Ok(Step {
            plan: self.plan,
            began: self.began,
            ends: ends.collect::<Result<_, _>>()?,
            clock: self.clock,
            trouble: self.trouble,
        })
    }
}
