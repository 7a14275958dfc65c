//! A table of messages of many sizes, with the line through its times by size.

use std::collections::BTreeMap;

use super::{Material, facts};
use linerate_ceiling::fingerprint::{Facts, Fit, Point, Timer, fit, timer};
use linerate_record::reported::{Carrier, Measured, Outcome, SizeRow, Sizes, Source, Trip};
use linerate_units::{Nanos, Rate};

/// A table of messages of many sizes, and what its times show.
#[derive(Debug)]
pub struct Table<'a> {
    /// The program output that holds the table.
    pub source: &'a Source,
    /// The result in `source` that the table was read from.
    pub outcome: &'a Outcome,
    /// The rows of the table, with how they were measured.
    pub sizes: &'a Sizes,
    /// Name of the table: the operation, or the file if other tables have the same operation.
    pub name: String,
    /// The line through the times by size; `None` without times, or if too few sizes are large.
    pub fit: Option<Fit>,
    /// The timer that sets the times, if one does.
    pub timer: Option<Timer>,
    /// What is known of the path, to compare the rate of `fit` with hardware.
    pub facts: Facts,
}

impl<'a> Table<'a> {
    /// The tables by message size in all outputs.
    pub(super) fn all(material: &'a Material) -> Vec<Self> {
        let found: Vec<(&Source, &Outcome, &Sizes)> = material
            .runs()
            .filter_map(|(source, outcome)| match &outcome.measured {
                Measured::Sizes(sizes) => Some((source, outcome, sizes)),
                _ => None,
            })
            .collect();
        // Count of tables by operation alone, and by operation and file.
        let mut alike: BTreeMap<(&str, Option<&str>), usize> = BTreeMap::new();
        for (source, _, sizes) in &found {
            for file in [None, Some(source.file.as_str())] {
                *alike.entry((&sizes.operation, file)).or_default() += 1;
            }
        }
        let count = |key: (&str, Option<&str>)| alike.get(&key).copied().unwrap_or(0);
        let table = |(source, outcome, sizes): &(&'a Source, &'a Outcome, &'a Sizes)| {
            let line = outcome.line;
            let (operation, file) = (sizes.operation.as_str(), source.file.as_str());
            let mut name = match (count((operation, None)), count((operation, Some(file)))) {
                (1, _) if !operation.is_empty() => operation.to_owned(),
                (_, 1) => file.to_owned(),
                _ if operation.is_empty() => format!("{file}, line {line}"),
                _ => format!("{operation} (line {line})"),
            };
            if Self::is_sum(sizes) {
                name.push_str(" (rates are the sum of both ways)");
            }
            let facts = facts::of(material, sizes.carrier);
            Self::new((source, outcome), sizes, name, facts)
        };
        found.iter().map(table).collect()
    }

    fn new(
        (source, outcome): (&'a Source, &'a Outcome),
        sizes: &'a Sizes,
        name: String,
        facts: Facts,
    ) -> Self {
        let point =
            |row: &SizeRow| Some(Point { size: row.size, time: moved_in(sizes, row.time()?) });
        // A collective operation of many processes has a time that is not that of its bytes alone: no points.
        let rows = sizes.rows.iter().filter(|_| !sizes.setup.collective);
        let points: Vec<Point> = rows.filter_map(point).collect();
        Self { source, outcome, sizes, name, fit: fit(&points), timer: timer(&points), facts }
    }

    /// Whether the messages are sent by verbs.
    pub(super) fn is_verbs(&self) -> bool {
        self.sizes.carrier == Some(Carrier::Rdma)
    }

    /// Whether the messages are sent through sockets.
    pub(super) fn is_sockets(&self) -> bool {
        matches!(self.sizes.carrier, Some(Carrier::Tcp | Carrier::Udp | Carrier::Sockets))
    }

    /// A time of the table as a round trip, there and back; `None` if the table does not say whether its times are
    /// halved.
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

    /// The rate of a row. As reported it is the sum of both directions where `is_sum` holds. Without a reported rate,
    /// it is the size over the time in which the payload moves one way.
    pub fn rate(sizes: &Sizes, row: &SizeRow) -> Option<Rate> {
        let moved = || Some(Rate::of(row.size, moved_in(sizes, row.time()?)));
        row.rate.or_else(|| moved().filter(|_| !sizes.setup.collective))
    }

    /// The rate of a row in each direction: half of a sum of both directions.
    pub fn each_way(sizes: &Sizes, row: &SizeRow) -> Option<Rate> {
        let ways = if Self::is_sum(sizes) { 2 } else { 1 };
        let reported = row.rate.map(|rate| Rate(rate.0 / ways));
        reported.or_else(|| Self::rate(sizes, row))
    }

    /// Whether the reported rates are sums of both directions, which were loaded at the same time. An exchange moves
    /// one way at a time: its rate is that of each direction.
    pub fn is_sum(sizes: &Sizes) -> bool {
        let has_time = || sizes.rows.first().is_some_and(|row| row.time().is_some());
        sizes.both && (sizes.trip == Trip::Unknown || !has_time())
    }
}

/// The part of a time in which the payload moves one way: half of an echo, which moves it there and back; all of a read
/// by verbs, which moves it once in a round trip.
fn moved_in(sizes: &Sizes, time: Nanos) -> Nanos {
    if is_echo(sizes) { Nanos(time.0 / 2) } else { time }
}

fn is_echo(sizes: &Sizes) -> bool {
    sizes.trip == Trip::Whole && sizes.carrier != Some(Carrier::Rdma)
}
