//! A summary: the figures of one measurement.

use super::derive::Source;
use super::{ALL, Figure, Subject, Value};
use crate::model::Model;
use linerate_plan::path::Direction;
use linerate_record::Record;

/// A figure's value for one part of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The figure that was measured.
    pub figure: &'static Figure,
    /// The part of the measurement: the idle path, or a direction.
    pub of: Subject,
    /// The value, or the reason why there is none although the figure was measured: `58 round trips are too few for
    /// p99.9`.
    pub value: Result<Value, String>,
}

impl Entry {
    /// An entry whose value has no evidence.
    pub const fn bare(figure: &'static Figure, of: Subject, value: f64) -> Self {
        Self { figure, of, value: Ok(Value::bare(value)) }
    }
}

/// The figures of one measurement, whatever program made it. Figures that were not measured are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// The figures: first those of the idle path, then those of each direction, in the order of [`ALL`].
    pub entries: Vec<Entry>,
}

impl Summary {
    /// The figures of a record and its model.
    pub fn of(record: &Record, model: &Model) -> Self {
        let source = Source::new(record, model);
        Self::sorted(ALL.iter().flat_map(|figure| (figure.derive)(&source)))
    }

    /// The figures of any measurement, sorted in the order in which views show them.
    pub fn sorted(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut entries: Vec<Entry> = entries.into_iter().collect();
        entries.sort_by(|a, b| {
            let (earlier, later) = (order(a), order(b));
            earlier.0.cmp(&later.0).then(earlier.1.total_cmp(&later.1))
        });
        Self { entries }
    }

    /// All entries of one figure.
    pub fn all(&self, figure: &'static Figure) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |e| e.figure == figure)
    }

    /// The value of a figure for a part of the measurement; `None` if it was not measured.
    pub fn value(&self, figure: &'static Figure, of: Subject) -> Option<&Value> {
        self.all(figure).find(|entry| entry.of == of).and_then(|entry| entry.value.as_ref().ok())
    }
}

/// Sort key of entries: the idle path first, the sender before the receiver, low percentiles first.
fn order(entry: &Entry) -> ((Option<Direction>, usize, bool), f64) {
    let Subject { direction, side, percentile } = entry.of;
    let row = ALL.iter().position(|figure| *figure == entry.figure);
    let receives = side.is_some() && side == direction.map(Direction::receiver);
    let row = row.unwrap_or(ALL.len());
    ((direction, row, receives), percentile.unwrap_or(0.0))
}
