//! Makes results from the rows of a table.

use linerate_plan::path::Direction;
use linerate_record::reported::{
    Access, Carrier, Counted, Disk, DiskRow, Does, Measured, Outcome, Sizes, Transfer, Trip,
};
use linerate_units::{Nanos, Rate};

use super::field::Stat;
use super::name::{Column, Key, Kind, Unit};
use super::table::{Line, Proof, Table};
use crate::reading::{Notes, nanos, outcome, quoted, rate, sizes};

/// Number of messages from which on a time must be that of many in turn: no test keeps more in flight.
const MANY_MESSAGES: f64 = 1_000.0;
/// Number of bytes of a word.
const WORD: u64 = 8;

impl Table<'_> {
    /// The results in all rows.
    pub(super) fn results(mut self, line: u64, notes: &mut Notes) -> Result<Vec<Outcome>, String> {
        if self.lines.is_empty() {
            return Err("no row of it has a time or a rate".into());
        }
        self.note(line, notes);
        self.proof = self.proven();
        let unit = self.unit()?;
        let bytes = self.proof.map_or(1, |proof| proof.bytes);
        if bytes > 1 {
            notes.whole(format!("sizes are words of {bytes} bytes: count, time and rate prove it"));
        }
        for line in &mut self.lines {
            line.row.size.0 = line.row.size.0.saturating_mul(bytes);
            line.row.rate = line.rate.zip(unit).and_then(|(value, unit)| rate(value, unit));
            let each = line.seconds.zip(line.row.samples).filter(|(_, count)| *count > 0);
            if let Some((seconds, count)) = each {
                line.row.mean = nanos(seconds / count as f64, crate::reading::SECOND);
            }
        }
        self.of_many(notes);
        match self.key.1 {
            Key::Operation => self.disk(line, notes),
            Key::Streams => self.transfers(notes),
            Key::Size(bytes) => {
                let is_proven = self.proof.is_some();
                if bytes.round() as u64 == WORD && !is_proven {
                    notes.whole("words are taken for 8 bytes");
                }
                Ok(vec![self.sizes(line, notes)])
            }
            Key::UnclearSize => Err("the unit of its sizes is not clear".into()),
        }
    }

    /// Divides times of many messages together by their number, if the table has it; else removes them. Size and rate
    /// of each row prove that a time is that of many.
    fn of_many(&mut self, notes: &mut Notes) {
        let messages = |line: &Line| {
            let (rate, time) = (line.row.rate?, line.row.mean?);
            let bits = line.row.size.0 as f64 * 8.0;
            (bits > 0.0).then(|| rate.0 as f64 * time.0 as f64 / 1e9 / bits)
        };
        let all: Option<Vec<f64>> = self.lines.iter().map(messages).collect();
        let Some(all) = all else { return };
        let is_count = |(line, many): (&Line, &f64)| {
            let ways = many / line.row.samples.unwrap_or(0).max(1) as f64;
            [1.0, 2.0].iter().any(|known| (ways / known - 1.0).abs() < 0.02)
        };
        // A rate that follows from the time of one message gives a number of 1.
        let is_known = self.lines.iter().any(|line| line.row.samples > Some(2))
            && self.lines.iter().zip(&all).all(is_count);
        if !is_known && all.iter().all(|many| *many < MANY_MESSAGES) {
            return;
        }
        for row in self.lines.iter_mut().map(|line| &mut line.row) {
            let count = row.samples.filter(|_| is_known);
            row.mean = row.mean.zip(count).map(|(time, count)| Nanos(time.0 / count.max(1)));
        }
        notes.whole(if is_known {
            "a time is that of all messages of its row: size, count and rate prove it"
        } else {
            "a time is that of many messages, as size and rate of its row prove, and no column says how many: times are left out"
        });
    }

    fn note(&self, line: u64, notes: &mut Notes) {
        if self.has_comma {
            notes.whole("its numbers have decimal commas");
        }
        if self.has_letters {
            notes.whole("letters behind sizes are powers of 1024");
        }
        let plain = |column: &&Column| {
            matches!(column.kind, Kind::Time(Stat::Plain, _))
                && !(self.is_total && column.is_total())
        };
        for column in self.columns.iter().filter(plain) {
            notes.at(
                line,
                format!(
                    "the column `{}` does not say which time it is: it is read as the mean",
                    column.name
                ),
            );
        }
        let other = |column: &&Column| match column.kind {
            Kind::Time(Stat::Other, _) => true,
            Kind::Time(Stat::Total, _) => !self.is_total,
            _ => false,
        };
        for column in self.columns.iter().filter(other) {
            notes.at(line, format!("the column `{}` is passed over", column.name));
        }
    }

    fn rate_column(&self) -> Option<&Column> {
        self.columns.iter().find(|column| matches!(column.kind, Kind::Rate(_)))
    }

    fn is_both(&self) -> bool {
        self.proof.is_some_and(|proof| proof.ways == 2)
            || self.columns.iter().any(|column| column.both)
    }

    /// Bits per second in the unit of the rates. An unclear unit of a rate, or a missing unit of a time, must be
    /// proven.
    fn unit(&self) -> Result<Option<f64>, String> {
        let is_open =
            |column: &&Column| matches!(column.kind, Kind::Time(_, None)) && column.is_total();
        if let (Some(column), None) = (self.columns.iter().find(is_open), self.proof) {
            let name = &column.name;
            return Err(format!(
                "the column `{name}` does not say its unit of time, and the other columns prove none"
            ));
        }
        let Some(column) = self.rate_column() else {
            return Ok(None);
        };
        match (column.kind, self.proof) {
            (Kind::Rate(Unit::Bits(unit)), _) => Ok(Some(unit)),
            (_, Some(proof)) => Ok(Some(proof.unit)),
            (Kind::Rate(Unit::Unclear(_)), None) => {
                let name = &column.name;
                Err(format!(
                    "the column `{name}` does not say bits or bytes, and the other columns prove neither"
                ))
            }
            _ => Ok(None),
        }
    }

    /// Finds the units with which each rate is the payload over the seconds. Units that names have are kept.
    fn proven(&self) -> Option<Proof> {
        let units = match self.rate_column()?.kind {
            Kind::Rate(Unit::Bits(unit)) => vec![unit],
            Kind::Rate(Unit::Unclear(prefix)) => vec![prefix, prefix * 8.0],
            _ => return None,
        };
        let is_plain = self.columns.get(self.key.0).is_some_and(|column| !column.says_bytes());
        // It is unclear whether the rate is in bits or bytes, and whether the size is in bytes or words: several
        // readings could fit.
        let is_vague = is_plain && units.len() > 1;
        let sizes: &[u64] = if is_plain && !is_vague { &[1, WORD] } else { &[1] };
        let says_both = self.columns.iter().any(|column| column.both);
        let ways: &[u64] = match (says_both, is_vague) {
            (true, _) => &[2],
            (false, true) => &[1],
            (false, false) => &[1, 2],
        };
        let each = sizes.iter().flat_map(|bytes| ways.iter().map(move |ways| (*bytes, *ways)));
        let mut each = each.flat_map(|(bytes, ways)| {
            units.iter().map(move |unit| Proof { bytes, ways, unit: *unit })
        });
        each.find(|proof| self.fits(*proof))
    }

    fn fits(&self, proof: Proof) -> bool {
        self.lines.iter().all(|line| {
            let (Some(value), Some(seconds), Some(count)) =
                (line.rate, line.seconds, line.row.samples)
            else {
                return false;
            };
            let moved = line.row.size.0 as f64 * 8.0 * count as f64;
            let bits = moved * proof.bytes as f64 * proof.ways as f64;
            (value * proof.unit * seconds / bits - 1.0).abs() < 0.01
        })
    }

    /// Whether the times are of whole or half round trips, by the names of the columns.
    fn trip(&self, line: u64, notes: &mut Notes) -> Trip {
        let named =
            self.columns.iter().map(|column| column.trip).find(|trip| *trip != Trip::Unknown);
        if let Some(trip) = named {
            return trip;
        }
        if self.is_total && self.is_both() {
            return Trip::Whole;
        }
        let has = |start: &str| self.columns.iter().any(|column| column.name.starts_with(start));
        if has("avg_latency") && has("std_dev") || has("avg-latency") && has("std-dev") {
            notes.at(
                line,
                "`avg_latency` beside `std_dev` are sockperf's words for halves of round trips",
            );
            return Trip::Half;
        }
        Trip::Unknown
    }

    fn sizes(&self, line: u64, notes: &mut Notes) -> Outcome {
        let trip = self.trip(line, notes);
        let is_pingpong = trip == Trip::Half || self.is_total && self.is_both();
        let operation = if is_pingpong { "ping-pong" } else { "" };
        let rows = self.lines.iter().map(|line| line.row).collect();
        let table = Sizes {
            // Only sockperf has columns of half round trips, and it uses sockets.
            carrier: (trip == Trip::Half).then_some(Carrier::Sockets),
            both: self.is_both(),
            ..sizes(operation, trip, rows)
        };
        outcome("", line, Measured::Sizes(table))
    }

    /// The results of a table whose rows have numbers of streams: each row is a transfer.
    fn transfers(&self, notes: &mut Notes) -> Result<Vec<Outcome>, String> {
        notes.whole(
            "the table does not name a protocol: its streams are taken for connections of TCP",
        );
        let transfers = self.lines.iter().filter_map(|line| {
            let goodput: Rate = line.row.rate?;
            let mut transfer =
                Transfer::new(Carrier::Tcp, Direction::Forward, goodput, Counted::Unknown);
            transfer.streams = line.streams;
            transfer.both = self.is_both();
            transfer.messages = line.row.messages;
            transfer.size = Some(line.row.size).filter(|size| size.0 > 0);
            let title = format!("{} streams", quoted(&line.key));
            Some(outcome(&title, line.number, Measured::Transfer(Box::new(transfer))))
        });
        let transfers: Vec<Outcome> = transfers.collect();
        if transfers.is_empty() {
            return Err("no row has a number of streams and a rate".into());
        }
        Ok(transfers)
    }

    fn disk(&self, line: u64, notes: &mut Notes) -> Result<Vec<Outcome>, String> {
        let mut rows = Vec::new();
        for line in &self.lines {
            let (Some((access, does)), Some(rate)) = (operation(&line.key), line.row.rate) else {
                notes.strange(line.number, &line.key);
                continue;
            };
            let mut row = DiskRow::new(access, does, rate.0 as f64 / 8.0);
            row.block = Some(line.row.size).filter(|size| size.0 > 0);
            row.operations = line.row.messages;
            row.mean = line.row.mean;
            rows.push(row);
        }
        if rows.is_empty() {
            return Err("no row has an operation (read, write, copy) and a rate".into());
        }
        if rows.iter().any(|row| row.access == Access::Sequential) {
            notes.at(line, "an operation without the word `random` is taken for a sequential one");
        }
        let disk = Disk { rows, ..Disk::default() };
        Ok(vec![outcome("", line, Measured::Disk(disk))])
    }
}

/// The order and the kind of an operation, from its name: `read`, `random write`, `copy`.
fn operation(name: &str) -> Option<(Access, Does)> {
    let name = name.to_lowercase();
    let does = match (name.contains("read"), name.contains("write")) {
        (true, false) => Does::Read,
        (false, true) => Does::Write,
        (true, true) => Does::Mix,
        (false, false) if name.contains("copy") => Does::Mix,
        (false, false) => return None,
    };
    let access = match () {
        () if name.contains("copy") => Access::Copy,
        () if name.contains("rand") || name.contains("rnd") => Access::Random,
        () => Access::Sequential,
    };
    Some((access, does))
}
