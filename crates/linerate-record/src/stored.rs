//! How a step is stored in a record: its tables are packed, and tables read at the same times share these.
//!
//! The types here are part of format 1 and change only with [`super::FORMAT`]. Names, units and kinds are stored with
//! the values, so that a reader needs no table of metrics. A type borrows its names and packed columns from the step
//! that is written, or from the bytes that are read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::pack::{pack, unpack};
use super::{ClockPair, Column, EndReadings, Histogram, Step, Table, Total, Trouble};
use linerate_facts::Gap;
use linerate_facts::metric::{self, Kind, Unit};
use linerate_plan::StepPlan;
use linerate_units::Nanos;

/// [`Step`] with packed tables.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredStep<'a> {
    plan: StepPlan,
    began: Nanos,
    #[serde(borrow)]
    ends: Vec<StoredEnd<'a>>,
    clock: Option<ClockPair>,
    #[serde(default, skip_serializing_if = "Nanos::is_zero")]
    took: Nanos,
    trouble: Option<Trouble>,
}

/// [`EndReadings`] with packed tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredEnd<'a> {
    /// Times of the rows of tables; tables that were read at the same times share one entry.
    #[serde(borrow)]
    axes: Vec<Axis<'a>>,
    #[serde(borrow)]
    tables: Vec<StoredTable<'a>>,
    latencies: Vec<Histogram>,
    send_gaps: Vec<Histogram>,
    totals: Vec<Total>,
    other_sessions: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<String>,
    gaps: Vec<Gap>,
}

#[derive(Serialize, Deserialize)]
struct Axis<'a> {
    rows: u64,
    #[serde(borrow)]
    at: Packed<'a>,
}

#[derive(Serialize, Deserialize)]
struct StoredTable<'a> {
    #[serde(borrow)]
    source: Cow<'a, str>,
    #[serde(borrow)]
    subject: Cow<'a, str>,
    /// Index of the table's times in [`StoredEnd::axes`].
    axis: u32,
    #[serde(borrow)]
    columns: Vec<StoredColumn<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StoredColumn<'a> {
    #[serde(deserialize_with = "metric::name")]
    name: Cow<'static, str>,
    unit: Unit,
    kind: Kind,
    #[serde(borrow)]
    values: Packed<'a>,
}

/// Bytes stored as a CBOR byte string: serde would store a `Vec<u8>` as a list of numbers.
struct Packed<'a>(Cow<'a, [u8]>);

impl Serialize for Packed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Packed<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Packed<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a packed column")
            }
            fn visit_borrowed_bytes<E: de::Error>(
                self,
                bytes: &'de [u8],
            ) -> Result<Packed<'de>, E> {
                Ok(Packed(Cow::Borrowed(bytes)))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}

/// The number of values that may still be unpacked.
pub(super) struct Budget(pub(super) u64);

impl Budget {
    fn take(&mut self, values: usize) -> Result<(), &'static str> {
        self.0 = self
            .0
            .checked_sub(values as u64)
            .ok_or("it has more readings than a record may have")?;
        Ok(())
    }
}

impl<'a> From<&'a Step> for StoredStep<'a> {
    fn from(step: &'a Step) -> Self {
        Self {
            plan: step.plan.clone(),
            began: step.began,
            ends: step.ends.iter().map(StoredEnd::from).collect(),
            clock: step.clock,
            took: step.took,
            trouble: step.trouble.clone(),
        }
    }
}

impl<'a> From<&'a EndReadings> for StoredEnd<'a> {
    fn from(end: &'a EndReadings) -> Self {
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
            congestion: end.congestion.clone(),
            gaps: end.gaps.clone(),
        }
    }
}

impl From<&[u64]> for Axis<'_> {
    fn from(at: &[u64]) -> Self {
        let signed: Vec<i64> = at.iter().map(|t| *t as i64).collect();
        Self { rows: at.len() as u64, at: Packed(pack(&signed).into()) }
    }
}

impl<'a> StoredTable<'a> {
    fn new(table: &'a Table, axis: u32) -> Self {
        let columns = table.columns.iter().map(|column| StoredColumn {
            name: column.name.clone(),
            unit: column.unit,
            kind: column.kind,
            values: Packed(pack(&column.values).into()),
        });
        Self {
            source: Cow::Borrowed(&table.source),
            subject: Cow::Borrowed(&table.subject),
            axis,
            columns: columns.collect(),
        }
    }

    fn open(self, axes: &[Vec<u64>], budget: &mut Budget) -> Result<Table, &'static str> {
        let at = axes.get(self.axis as usize).ok_or("a table names times that are not there")?;
        budget.take(at.len())?;
        let columns = self.columns.into_iter().map(|c| c.open(at.len(), budget));
        Ok(Table {
            source: self.source.into_owned(),
            subject: self.subject.into_owned(),
            columns: columns.collect::<Result<_, _>>()?,
            at: at.clone(),
        })
    }
}

impl StoredColumn<'_> {
    fn open(self, rows: usize, budget: &mut Budget) -> Result<Column, &'static str> {
        budget.take(rows)?;
        Ok(Column {
            name: self.name,
            unit: self.unit,
            kind: self.kind,
            values: unpack(&self.values.0, rows)
                .ok_or("a column has another length than its times")?,
        })
    }
}

impl Axis<'_> {
    fn open(&self, budget: &mut Budget) -> Result<Vec<u64>, &'static str> {
        let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
        budget.take(rows)?;
        let at = unpack(&self.at.0, rows).ok_or("the times of a table cannot be unpacked")?;
        Ok(at.into_iter().map(|t| t as u64).collect())
    }
}

impl StoredEnd<'_> {
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
            congestion: self.congestion,
            gaps: self.gaps,
        })
    }
}

impl StoredStep<'_> {
    /// Unpacks the step that was read; the error names what is inconsistent.
    pub(super) fn open(self, budget: &mut Budget) -> Result<Step, &'static str> {
        let ends = self.ends.into_iter().map(|e| e.open(budget));
        Ok(Step {
            plan: self.plan,
            began: self.began,
            ends: ends.collect::<Result<_, _>>()?,
            clock: self.clock,
            took: self.took,
            trouble: self.trouble,
        })
    }
}
