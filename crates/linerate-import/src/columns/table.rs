//! Reads the rows of a table.

use linerate_record::reported::SizeRow;
use linerate_units::Bytes;

use super::KEYS;
use super::cells::{Separator, value};
use super::name::{Column, Key, Kind, Unit};
use crate::reading::{Notes, bytes, nanos};

/// A row while the units of its rates are not known.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) number: u64,
    /// The cell in the key column.
    pub(super) key: String,
    pub(super) row: SizeRow,
    /// The rate, in the unit of its column.
    pub(super) rate: Option<f64>,
    /// Time of all messages of the row together, in seconds.
    pub(super) seconds: Option<f64>,
    pub(super) streams: Option<u32>,
}

/// The units that the figures of a row prove.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Proof {
    /// Number of bytes in a unit of the size.
    pub(super) bytes: u64,
    /// Number of directions that the rate counts.
    pub(super) ways: u64,
    /// Bits per second in a unit of the rate.
    pub(super) unit: f64,
}

/// A table while its rows are read.
pub(super) struct Table<'a> {
    pub(super) columns: &'a [Column],
    /// Index of the key column, and its kind.
    pub(super) key: (usize, Key),
    /// Whether the column of times has the time of all messages of a row.
    pub(super) is_total: bool,
    /// The units that size, count, seconds and rate of all rows prove.
    pub(super) proof: Option<Proof>,
    pub(super) lines: Vec<Line>,
    pub(super) has_comma: bool,
    pub(super) has_letters: bool,
}

impl<'a> Table<'a> {
    /// A table with these columns; refused if a column of figures has no unit.
    pub(super) fn new(columns: &'a [Column]) -> Result<Self, String> {
        let of_kind = |wanted: Key| {
            columns.iter().position(|column| match column.kind {
                Kind::Key(key) => std::mem::discriminant(&key) == std::mem::discriminant(&wanted),
                _ => false,
            })
        };
        let at = KEYS.iter().find_map(|key| of_kind(*key));
        let at = at.ok_or("it has no column of a size, streams or an operation")?;
        let Kind::Key(key) = columns[at].kind else {
            return Err("it has no column of a size, streams or an operation".into());
        };
        let has_count = columns.iter().any(|column| column.kind == Kind::Count);
        let table = Self {
            columns,
            key: (at, key),
            is_total: has_count && columns.iter().any(Column::is_total),
            proof: None,
            lines: Vec::new(),
            has_comma: false,
            has_letters: false,
        };
        table.refuse_missing()?;
        Ok(table)
    }

    fn refuse_missing(&self) -> Result<(), String> {
        for column in self.columns {
            let name = &column.name;
            let missing = match column.kind {
                Kind::Key(Key::UnclearSize) => {
                    "whether it counts by 1000 or by 1024 bytes, as `KiB` does".to_owned()
                }
                Kind::Time(_, None) if !self.may_prove(column) => {
                    format!("its unit of time, as `{name}_us` does")
                }
                Kind::Rate(Unit::Missing) => format!("its unit, as `{name} (Mbit/s)` does"),
                Kind::Rate(Unit::Unclear(_)) if !self.is_total => {
                    "bits or bytes, as `Mbit/s` and `MB/s` do".to_owned()
                }
                _ => continue,
            };
            return Err(format!("the column `{name}` does not say {missing}"));
        }
        Ok(())
    }

    /// Whether the rates can prove the unit of a column of times.
    fn may_prove(&self, column: &Column) -> bool {
        let has_rate = || self.columns.iter().any(|column| matches!(column.kind, Kind::Rate(_)));
        self.is_total && column.is_total() && has_rate()
    }

    /// Reads a row; `false` if the line is not a row.
    pub(super) fn row(
        &mut self,
        number: u64,
        cells: &[&str],
        separator: Separator,
        notes: &mut Notes,
    ) -> bool {
        let mut line = Line {
            number,
            key: cells[self.key.0].to_owned(),
            row: SizeRow::default(),
            rate: None,
            seconds: None,
            streams: None,
        };
        let mut has_any = false;
        for (column, cell) in self.columns.iter().zip(cells) {
            match column.kind {
                Kind::Key(key) if !self.key_cell(&mut line, key, cell, separator) => return false,
                Kind::Key(_) | Kind::Unknown => {}
                kind => {
                    let Some((value, has_comma)) = value(cell, separator) else {
                        continue;
                    };
                    self.has_comma |= has_comma;
                    has_any |= kind != Kind::Count;
                    self.figure(&mut line, column, value);
                }
            }
        }
        if has_any {
            notes.keep(&mut self.lines, line);
        }
        has_any
    }

    fn key_cell(&mut self, line: &mut Line, key: Key, cell: &str, separator: Separator) -> bool {
        match key {
            Key::Operation => return !cell.is_empty(),
            Key::Streams => {
                line.streams = cell.parse().ok();
                return line.streams.is_some();
            }
            Key::Size(_) | Key::UnclearSize => {}
        }
        let Key::Size(unit) = key else { return false };
        let size = match value(cell, separator) {
            Some((value, _)) => Some(value),
            None => bytes(cell).map(|size| size.0 as f64),
        };
        self.has_letters |= cell.ends_with(|c: char| c.is_alphabetic());
        let size = size.map(|size| (size * unit).round());
        let size = size.filter(|size| *size <= linerate_units::EXACT as f64);
        line.row.size = Bytes(size.unwrap_or(0.0) as u64);
        size.is_some()
    }

    fn figure(&self, line: &mut Line, column: &Column, value: f64) {
        let row = &mut line.row;
        match column.kind {
            Kind::Time(_, unit) if self.is_total && column.is_total() => {
                let unit = unit.unwrap_or(crate::reading::SECOND);
                line.seconds = Some(value * unit / crate::reading::SECOND);
            }
            Kind::Time(stat, Some(unit)) => {
                stat.set(row, nanos(value, unit));
            }
            Kind::Rate(_) => line.rate = line.rate.or(Some(value)),
            Kind::Messages(unit) => row.messages = Some(value * unit),
            Kind::Count => row.samples = Some(value.round() as u64),
            Kind::Time(_, None) | Kind::Key(_) | Kind::Unknown => {}
        }
    }
}
