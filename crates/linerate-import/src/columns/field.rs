//! Columns of a program whose names are known: each says which figure of a row by size its cells set.

use linerate_record::reported::SizeRow;
use linerate_units::{Bytes, Nanos};

use crate::reading::{MICRO, count, nanos, number, rate};

/// Which statistic of many times a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stat {
    /// The name of the column does not say which statistic it is.
    Plain,
    Mean,
    Deviation,
    Least,
    Most,
    Typical,
    P99,
    P999,
    /// The time of all messages of a row together.
    Total,
    /// Another percentile, or the jitter: a row has no place for it.
    Other,
}

impl Stat {
    /// Sets this statistic in a row, if the row has a place for it.
    pub(crate) fn set(self, row: &mut SizeRow, time: Option<Nanos>) {
        match self {
            Self::Plain => row.mean = row.mean.or(time),
            Self::Mean => row.mean = time,
            Self::Deviation => row.deviation = time,
            Self::Least => row.least = time,
            Self::Most => row.most = time,
            Self::Typical => row.typical = time,
            Self::P99 => row.p99 = time,
            Self::P999 => row.p999 = time,
            Self::Total | Self::Other => {}
        }
    }
}

/// What the cells of a column are, and their unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Field {
    Size,
    Samples,
    /// A time in microseconds.
    Micros(Stat),
    /// A rate, in units of this many bits per second.
    Rate(f64),
    /// Messages per second, in units of this many.
    Messages(f64),
    Passed,
}

impl Field {
    /// Sets the figure of a cell in the row. A cell without a number sets nothing; returns `false` if it should be a
    /// size.
    pub(crate) fn set(self, row: &mut SizeRow, cell: &str) -> bool {
        let value = number(cell);
        match self {
            Self::Size => {
                let size = count(cell);
                row.size = Bytes(size.unwrap_or(0));
                return size.is_some();
            }
            Self::Samples => row.samples = count(cell),
            Self::Micros(stat) => stat.set(row, value.and_then(|value| nanos(value, MICRO))),
            Self::Rate(unit) => row.rate = value.and_then(|value| rate(value, unit)),
            Self::Messages(unit) => {
                row.messages = value.filter(|value| *value > 0.0).map(|value| value * unit);
            }
            Self::Passed => {}
        }
        true
    }

    /// Reads a line that has one cell for each column; `None` if it has not, or if its size is no number.
    pub(crate) fn row(columns: &[Self], line: &str) -> Option<SizeRow> {
        let cells: Vec<&str> = line.split_whitespace().take(columns.len() + 1).collect();
        let mut row = SizeRow::default();
        let is_row = !columns.is_empty()
            && cells.len() == columns.len()
            && columns.iter().zip(cells).all(|(column, cell)| column.set(&mut row, cell));
        is_row.then_some(row)
    }
}
