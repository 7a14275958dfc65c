//! A table of sizes, with the line through its times.

use super::Material;
use super::facts;
use crate::ceiling::fingerprint::{Facts, Fit, Point, Timer, fit, timer};
use crate::reported::{Carrier, Measured, SizeRow, Sizes, Source, Trip};
use crate::units::{Nanos, Rate};

/// A table of sizes, and what its times show.
#[derive(Debug)]
pub struct Table<'a> {
    /// The output that has it.
    pub source: &'a Source,
    /// The table.
    pub sizes: &'a Sizes,
    /// Its name: the operation, or the file if other tables have the same operation.
    pub name: String,
    /// The line through its times; `None` without times, or if too few sizes are large.
    pub fit: Option<Fit>,
    /// The timer that sets its times, if one does.
    pub timer: Option<Timer>,
    /// What is known of its path, to compare its rate with hardware.
    pub facts: Facts,
}

impl<'a> Table<'a> {
    /// The tables of all outputs.
    pub(super) fn all(material: &'a Material) -> Vec<Self> {
        let found: Vec<(&Source, &Sizes)> = material
            .all(|measured| match measured {
                Measured::Sizes(sizes) => Some(sizes),
                _ => None,
            })
            .collect();
        let alike = |sizes: &Sizes| {
            let same = |(_, other): &&(&Source, &Sizes)| other.operation == sizes.operation;
            found.iter().filter(same).count()
        };
        let table = |(source, sizes): &(&'a Source, &'a Sizes)| {
            let is_name = !sizes.operation.is_empty() && alike(sizes) == 1;
            let name = if is_name {
                &sizes.operation
            } else {
                &source.file
            };
            Self::new(
                source,
                sizes,
                name.clone(),
                facts::of(material, sizes.carrier),
            )
        };
        found.iter().map(table).collect()
    }

    fn new(source: &'a Source, sizes: &'a Sizes, name: String, facts: Facts) -> Self {
        let point = |row: &SizeRow| {
            Some(Point {
                size: row.size,
                time: moved_in(sizes, row.time()?),
            })
        };
        let points: Vec<Point> = sizes.rows.iter().filter_map(point).collect();
        Self {
            source,
            sizes,
            name,
            fit: fit(&points),
            timer: timer(&points),
            facts,
        }
    }

    /// Whether the messages go by verbs.
    pub(super) fn is_verbs(&self) -> bool {
        self.sizes.carrier == Some(Carrier::Rdma)
    }

    /// Whether the messages go through sockets.
    pub(super) fn is_sockets(&self) -> bool {
        matches!(
            self.sizes.carrier,
            Some(Carrier::Tcp | Carrier::Udp | Carrier::Sockets)
        )
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

    /// The rate of a row in one direction: as reported, else its size over the time in which it moves one way. An
    /// echo moves one way at a time: a rate that counts both directions is that of either, while it is busy.
    pub fn rate(sizes: &Sizes, row: &SizeRow) -> Option<Rate> {
        let ways = if sizes.both && !is_echo(sizes) { 2 } else { 1 };
        let reported = row.rate.map(|rate| Rate(rate.0 / ways));
        let moved = || Some(Rate::of(row.size, moved_in(sizes, row.time()?)));
        reported.or_else(moved)
    }
}

/// The part of a time in which the payload moves one way. An echo moves it there and back; a read by verbs moves it
/// once in a whole round trip.
fn moved_in(sizes: &Sizes, time: Nanos) -> Nanos {
    if is_echo(sizes) {
        Nanos(time.0 / 2)
    } else {
        time
    }
}

fn is_echo(sizes: &Sizes) -> bool {
    sizes.trip == Trip::Whole && sizes.carrier != Some(Carrier::Rdma)
}
