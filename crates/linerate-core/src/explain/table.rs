//! A table of sizes, with the line through its times.

use crate::ceiling::fingerprint::{Fit, Point, Timer, fit, timer};
use crate::reported::{Carrier, SizeRow, Sizes, Source, Trip};
use crate::units::{Nanos, Rate};

/// A table of sizes, and what its times show.
#[derive(Debug)]
pub struct Table<'a> {
    /// The output that has it.
    pub source: &'a Source,
    /// The table.
    pub sizes: &'a Sizes,
    /// The line through its times; `None` without times, or if too few sizes are large.
    pub fit: Option<Fit>,
    /// The timer that sets its times, if one does.
    pub timer: Option<Timer>,
}

impl<'a> Table<'a> {
    pub(super) fn new(source: &'a Source, sizes: &'a Sizes) -> Self {
        let point = |row: &SizeRow| {
            let time = row.time()?;
            Some(Point {
                size: row.size,
                time,
            })
        };
        let points: Vec<Point> = sizes.rows.iter().filter_map(point).collect();
        Self {
            source,
            sizes,
            fit: fit(&points),
            timer: timer(&points),
        }
    }

    /// The table in words: `RDMA read`, or the name of the file.
    pub fn name(&self) -> String {
        let operation = &self.sizes.operation;
        if operation.is_empty() {
            self.source.file.clone()
        } else {
            operation.clone()
        }
    }

    /// Whether the messages go by verbs.
    pub(super) fn is_verbs(&self) -> bool {
        self.sizes.carrier == Some(Carrier::Rdma)
    }

    /// Whether the messages go through sockets.
    pub(super) fn is_sockets(&self) -> bool {
        matches!(self.sizes.carrier, Some(Carrier::Tcp | Carrier::Udp))
    }

    /// A time of the table as a whole round trip; `None` if the table does not say what its times are.
    pub fn whole(&self, time: Nanos) -> Option<Nanos> {
        match self.sizes.trip {
            Trip::Whole => Some(time),
            Trip::Half => Some(Nanos(time.0.saturating_mul(2))),
            Trip::Unknown => None,
        }
    }

    /// The row with the smallest messages that has a time.
    pub fn smallest(&self) -> Option<&SizeRow> {
        let timed = self.sizes.rows.iter().filter(|row| row.time().is_some());
        timed.min_by_key(|row| row.size)
    }

    /// The rate of a row: as reported, else its size over its time.
    pub fn rate(row: &SizeRow) -> Option<Rate> {
        row.rate
            .or_else(|| row.time().map(|time| Rate::of(row.size, time)))
    }
}
