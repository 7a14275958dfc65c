//! Intel MPI Benchmarks: `PingPong`, `Sendrecv`, `Allreduce` and others. The heading of a table names its columns.
//!
//! `Mbytes/sec` is 10^6 bytes per second since version 2018, and 2^20 before: size and time prove which.
//= https://github.com/intel/mpi-benchmarks, src_cpp and src_c: releases up to 4.1 divide by 2^20

use linerate_record::reported::{Carrier, Measured, Outcome, Setup, SizeRow, Sizes, Trip};
use linerate_units::Rate;

use crate::columns::{Field, Stat};
use crate::format::{Extent, Format, Found, Section};
use crate::launch::hosts;
use crate::reading::{Line, MEBIBYTE, Notes, lookup, outcome, quoted, rate, sizes};

/// The entry in the table of formats.
pub(crate) static IMB: Format = Format {
    id: "imb",
    label: "Intel MPI Benchmarks, text",
    versions: "3.2 to 2021, the tests that print a table by size",
    evidence: "published: https://github.com/openhpc/ohpc/issues/207 (PingPong, 2^20 bytes); published: \
        https://github.com/ofiwg/libfabric/pull/9772 (PingPing, 10^6 bytes); published: \
        https://github.com/intel/mpi-benchmarks/issues/37 (Sendrecv)",
    unknown: "The transport below MPI. Sendrecv and Biband count both ways; the time of a collective operation is not that of \
              one message.",
    starts: |at| {
        let is_title = is_rule(at.line) && at.next.starts_with(NAME);
        at.line.starts_with(NAME) || is_header(at.line) || is_title
    },
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

/// Start of the line that names a benchmark.
const NAME: &str = "# Benchmarking ";
/// Bits per second in one Mbyte/sec of newer versions.
const MEGABYTE: f64 = 8e6;
/// Largest relative difference of two figures that agree but for rounding.
const ROUNDED: f64 = 0.01;

/// Benchmarks of messages between pairs of processes: start of the name, messages per time, whether the rate counts
/// both ways.
const PAIRS: &[(&str, f64, bool)] = &[
    ("PingPong", 1.0, false),
    ("PingPing", 1.0, false),
    ("Sendrecv", 2.0, true),
    ("Uniband", 1.0, false),
    ("Biband", 1.0, true),
];

fn is_rule(line: &str) -> bool {
    line.len() > 20
        && line.strip_prefix('#').is_some_and(|rest| rest.trim_end().bytes().all(|b| b == b'-'))
}

/// Names of the columns, with what their cells are.
const COLUMNS: [(&str, Field); 8] = [
    ("#bytes", Field::Size),
    ("#repetitions", Field::Samples),
    ("t[usec]", Field::Micros(Stat::Mean)),
    ("t_min[usec]", Field::Micros(Stat::Least)),
    ("t_max[usec]", Field::Micros(Stat::Most)),
    ("t_avg[usec]", Field::Micros(Stat::Mean)),
    ("Mbytes/sec", Field::Rate(MEGABYTE)),
    ("Msg/sec", Field::Messages(1.0)),
];

fn is_header(line: &str) -> bool {
    let mut names = line.split_whitespace();
    let is_own = names.next() == Some("#bytes") && names.next() == Some("#repetitions");
    is_own && names.all(|name| lookup(&COLUMNS[2..], name).is_some())
}

/// Whether an output continues at its title, or at the heading of its table.
fn goes_on(before: &str, rest: &str) -> bool {
    let next = rest.lines().next().unwrap_or("");
    let mut lines = before.lines();
    let is_first = lines.next().is_some_and(is_rule) && lines.next().is_none();
    let has_title = || before.lines().take(2).any(|line| line.starts_with(NAME));
    is_first || is_header(next) && has_title()
}

/// A table while its lines are read.
#[derive(Default)]
struct Reading<'a> {
    name: &'a str,
    columns: Vec<Field>,
    /// Rows of the table. Rates are in the unit of newer versions.
    rows: Vec<SizeRow>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut notes = Notes::default();
    let mut reading = Reading::default();
    let mut used = 0;
    for Line { number, text, end } in section.lines() {
        let line = text.trim();
        // The next benchmark has its own title; lines after the table are not part of it.
        if !reading.rows.is_empty() && line.starts_with('#') {
            break;
        }
        used = end;
        if let Some(name) = line.strip_prefix(NAME) {
            reading.name = name.trim();
        } else if is_header(line) {
            let names = line.split_whitespace();
            reading.columns = names.filter_map(|name| lookup(&COLUMNS, name)).collect();
        } else if !line.is_empty() && !line.starts_with('#') && !reading.row(line, &mut notes) {
            notes.strange(number, line);
        }
    }
    if reading.rows.is_empty() {
        return Err("it has no table of sizes with a rate or a time".into());
    }
    let result = reading.outcome(section, &mut notes);
    Ok(Found { results: vec![result], ..Found::of("Intel MPI Benchmarks", used, notes) })
}

impl Reading<'_> {
    /// Reads a row; `false` if the line is not a row.
    fn row(&mut self, line: &str, notes: &mut Notes) -> bool {
        let Some(mut row) = Field::row(&self.columns, line) else {
            return false;
        };
        for time in [&mut row.mean, &mut row.least, &mut row.most] {
            *time = time.filter(|time| time.0 > 0);
        }
        let has_any = row.time().is_some() || row.rate.is_some();
        if has_any {
            notes.keep(&mut self.rows, row);
        }
        has_any
    }

    /// Bits per second in the unit of the rates, proved by the largest message; `None` if it proves no unit.
    fn unit(&self, messages: f64) -> Option<f64> {
        let row = self.rows.iter().max_by_key(|row| row.size)?;
        // The rate is that of the slowest process, so the longest time belongs to it.
        let time = row.most.or(row.mean)?;
        let bits = row.size.0 as f64 * 8.0 * messages / time.secs();
        let fits = |unit: &f64| {
            row.rate.is_some_and(|rate| (in_unit(rate) * unit / bits - 1.0).abs() < ROUNDED)
        };
        [MEGABYTE, MEBIBYTE].into_iter().find(fits)
    }

    fn outcome(mut self, section: &Section<'_>, notes: &mut Notes) -> Outcome {
        let pair = PAIRS.iter().find(|(name, ..)| self.name.starts_with(name));
        let unit = pair.and_then(|(_, messages, _)| self.unit(*messages));
        if unit.is_none() && self.rows.iter().any(|row| row.rate.is_some()) {
            notes.whole("Mbytes/sec are read as 10^6 bytes in a second: older versions write 2^20");
        }
        for row in &mut self.rows {
            row.rate = row.rate.and_then(|value| rate(in_unit(value), unit.unwrap_or(MEGABYTE)));
        }
        let is_echo = self.name.starts_with("PingPong");
        let operation =
            if is_echo { "MPI ping-pong".to_owned() } else { format!("MPI {}", quoted(self.name)) };
        let setup = Setup {
            hosts: section.command.map(hosts).unwrap_or_default(),
            collective: pair.is_none(),
            ..Setup::default()
        };
        let trip = if is_echo { Trip::Half } else { Trip::Unknown };
        let table = Sizes {
            carrier: Some(Carrier::Messages),
            both: pair.is_some_and(|(_, _, both)| *both),
            setup,
            ..sizes(operation, trip, self.rows)
        };
        outcome(&quoted(self.name), section.line, Measured::Sizes(table))
    }
}

/// The number of Mbytes/sec in a rate that was read in the unit of newer versions.
fn in_unit(rate: Rate) -> f64 {
    rate.0 as f64 / MEGABYTE
}

#[cfg(test)]
mod tests;
