//! Intel MPI Benchmarks: `PingPong`, `Sendrecv`, `Allreduce` and their like. The header decides the columns.
//!
//! `Mbytes/sec` is 10^6 bytes from version 2018 on and 2^20 before: size and time prove which.
//= https://github.com/intel/mpi-benchmarks, src_cpp and src_c: releases up to 4.1 divide by 2^20

use linerate_record::reported::{Carrier, Measured, Outcome, Setup, SizeRow, Sizes, Tool, Trip};
use linerate_units::Bytes;

use crate::format::{Evidence, Format, Found, Holds, Section};
use crate::launch::hosts;
use crate::scaled::{MEBIBYTE, MICRO, Notes, body, count, lines, nanos, number, rate};
use crate::text::quoted;

/// The row of the table of formats.
pub(crate) static IMB: Format = Format {
    id: "imb",
    label: "Intel MPI Benchmarks, text",
    holds: Holds::Results,
    versions: "3.2 to 2021, the tests that print a table by size",
    evidence: &[
        Evidence::Published("https://github.com/openhpc/ohpc/issues/207 (PingPong, 2^20 bytes)"),
        Evidence::Published("https://github.com/ofiwg/libfabric/pull/9772 (PingPing, 10^6 bytes)"),
        Evidence::Published("https://github.com/intel/mpi-benchmarks/issues/37 (Sendrecv)"),
    ],
    unknown: "The transport below MPI. Sendrecv and Biband count both ways; the time of a collective operation is not that of \
              one message.",
    starts,
    read,
};

/// What stands before the name of a benchmark.
const NAME: &str = "# Benchmarking ";
/// Bits in a second of an Mbyte/sec of newer versions.
const MEGABYTE: f64 = 8e6;
/// Largest difference of two rounded figures that agree.
const ROUNDED: f64 = 0.01;

/// Benchmarks of messages between pairs: the start of the name, messages in one time, whether the rate counts both ways.
const PAIRS: &[(&str, f64, bool)] = &[
    ("PingPong", 1.0, false),
    ("PingPing", 1.0, false),
    ("Sendrecv", 2.0, true),
    ("Uniband", 1.0, false),
    ("Biband", 1.0, true),
];

fn starts(text: &str) -> bool {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("");
    first.starts_with(NAME)
        || is_header(first)
        || is_rule(first) && lines.next().is_some_and(|line| line.starts_with(NAME))
}

fn is_rule(line: &str) -> bool {
    line.len() > 20
        && line.strip_prefix('#').is_some_and(|rest| rest.trim_end().bytes().all(|b| b == b'-'))
}

/// Columns behind those of the size and the repetitions.
const COLUMNS: [&str; 6] =
    ["t[usec]", "t_min[usec]", "t_max[usec]", "t_avg[usec]", "Mbytes/sec", "Msg/sec"];

fn is_header(line: &str) -> bool {
    let mut names = line.split_whitespace();
    let is_own = names.next() == Some("#bytes") && names.next() == Some("#repetitions");
    is_own && names.all(|name| COLUMNS.contains(&name))
}

/// Whether an output goes on at its title or at the head of its table.
pub(crate) fn goes_on(before: &str, rest: &str) -> bool {
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
    columns: Vec<&'a str>,
    /// Rows, each with its rate in the unit of the table.
    rows: Vec<(SizeRow, Option<f64>)>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let body = body(section);
    let mut notes = Notes::default();
    let mut reading = Reading::default();
    let mut used = 0;
    for ((number, line), whole) in lines(section, body).zip(body.split_inclusive('\n')) {
        let line = line.trim();
        // The next benchmark has a title of its own; what stands behind the table is no part of it.
        if !reading.rows.is_empty() && line.starts_with('#') {
            break;
        }
        used += whole.len();
        if let Some(name) = line.strip_prefix(NAME) {
            reading.name = name.trim();
        } else if is_header(line) {
            reading.columns = line.split_whitespace().collect();
        } else if !line.is_empty() && !line.starts_with('#') && !reading.row(line, &mut notes) {
            notes.strange(number, line);
        }
    }
    if reading.rows.is_empty() {
        return Err("it has no table of sizes with a rate or a time".into());
    }
    Ok(Found {
        tool: Tool::named("Intel MPI Benchmarks"),
        results: vec![reading.outcome(section, &mut notes)],
        notes: notes.0,
        used: Some(used),
        ..Found::default()
    })
}

impl Reading<'_> {
    /// Reads a row; whether it is one.
    fn row(&mut self, line: &str, notes: &mut Notes) -> bool {
        let cells: Vec<&str> = line.split_whitespace().take(self.columns.len() + 1).collect();
        if self.columns.is_empty() || cells.len() != self.columns.len() {
            return false;
        }
        let (mut row, mut in_unit) = (SizeRow::default(), None);
        for (column, cell) in self.columns.iter().zip(cells) {
            let value = number(cell);
            let time = value.and_then(|value| nanos(value, MICRO)).filter(|time| time.0 > 0);
            match *column {
                "#bytes" => match count(cell) {
                    Some(size) => row.size = Bytes(size),
                    None => return false,
                },
                "#repetitions" => row.samples = count(cell),
                "t[usec]" | "t_avg[usec]" => row.mean = time,
                "t_min[usec]" => row.least = time,
                "t_max[usec]" => row.most = time,
                "Mbytes/sec" => in_unit = value.filter(|value| *value > 0.0),
                "Msg/sec" => row.messages = value.filter(|value| *value > 0.0),
                _ => {}
            }
        }
        let has_any = row.time().is_some() || in_unit.is_some();
        if has_any {
            notes.keep(&mut self.rows, (row, in_unit));
        }
        has_any
    }

    /// Bits in a second of the unit that the largest message proves; `None` if it proves none.
    fn unit(&self, messages: f64) -> Option<f64> {
        let (row, in_unit) = self.rows.iter().max_by_key(|(row, _)| row.size)?;
        // The rate is that of the slowest process.
        let time = row.most.or(row.mean)?;
        let bits = row.size.0 as f64 * 8.0 * messages / time.secs();
        let fits =
            |unit: &f64| in_unit.is_some_and(|value| (value * unit / bits - 1.0).abs() < ROUNDED);
        [MEGABYTE, MEBIBYTE].into_iter().find(fits)
    }

    fn outcome(self, section: &Section<'_>, notes: &mut Notes) -> Outcome {
        let pair = PAIRS.iter().find(|(name, ..)| self.name.starts_with(name));
        let unit = pair.and_then(|(_, messages, _)| self.unit(*messages));
        if unit.is_none() && self.rows.iter().any(|(_, value)| value.is_some()) {
            notes.whole("Mbytes/sec are read as 10^6 bytes in a second: older versions write 2^20");
        }
        let with_rate = |(row, value): &(SizeRow, Option<f64>)| SizeRow {
            rate: value.and_then(|value| rate(value, unit.unwrap_or(MEGABYTE))),
            ..*row
        };
        let is_echo = self.name.starts_with("PingPong");
        Outcome {
            title: quoted(self.name),
            line: section.line,
            measured: Measured::Sizes(Sizes {
                carrier: Some(Carrier::Messages),
                operation: if is_echo {
                    "MPI ping-pong".to_owned()
                } else {
                    format!("MPI {}", quoted(self.name))
                },
                trip: if is_echo { Trip::Half } else { Trip::Unknown },
                both: pair.is_some_and(|(_, _, both)| *both),
                rows: self.rows.iter().map(with_rate).collect(),
                setup: Setup {
                    hosts: section.command.map(hosts).unwrap_or_default(),
                    collective: pair.is_none(),
                    ..Setup::default()
                },
            }),
        }
    }
}

#[cfg(test)]
mod tests;
