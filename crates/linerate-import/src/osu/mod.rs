//! OSU Micro-Benchmarks: `osu_latency`, `osu_bw`, `osu_mbw_mr` and others. The heading of a table names its columns.
//!
//! `MB/s` is 10^6 bytes per second. The latency of two processes that answer each other is half a round trip.

use linerate_record::reported::{Carrier, Measured, Setup, SizeRow, Sizes, Trip};

use crate::columns::{Field, Stat};
use crate::format::{Format, Found, Section};
use crate::launch::{hosts, without_hosts};
use crate::reading::{Line, Notes, lookup, quoted, sizes};

/// The entry in the table of formats.
pub(crate) static OSU: Format = Format {
    id: "osu",
    label: "OSU Micro-Benchmarks, text",
    versions: "3.1 to 7.4, the tests that print a table by size",
    evidence: "run here: 7.4 over MPICH 4.0.2, a public fork, without the lines that it adds: osu_latency and \
        osu_bw (also with -z), osu_mbw_mr; two processes on one host; published: \
        https://github.com/ofi-cray/libfabric-cray/pull/859 (5.0)",
    unknown: "The transport below MPI, and the number of iterations.",
    starts: |at| title(at.line).is_some(),
    read,
    ..Format::RESULTS
};

/// The name of the test and the version, from `# OSU MPI Latency Test v7.4`.
fn title(line: &str) -> Option<(&str, &str)> {
    let (name, version) = line.trim_start().strip_prefix("# OSU ")?.split_once(" v")?;
    let is_version = version.starts_with(|c: char| c.is_ascii_digit());
    (is_version && name.ends_with("Test")).then_some((name, version.trim()))
}

/// Names of the columns, with what their cells are.
const COLUMNS: &[(&str, Field)] = &[
    ("Size", Field::Size),
    ("Latency (us)", Field::Micros(Stat::Mean)),
    ("Latency(us)", Field::Micros(Stat::Mean)),
    ("Avg Latency(us)", Field::Micros(Stat::Mean)),
    ("Avg Lat(us)", Field::Micros(Stat::Mean)),
    ("Min Latency(us)", Field::Micros(Stat::Least)),
    ("Max Latency(us)", Field::Micros(Stat::Most)),
    ("P50 Tail Lat(us)", Field::Micros(Stat::Typical)),
    ("P99 Tail Lat(us)", Field::Micros(Stat::P99)),
    ("P99.9 Tail Lat(us)", Field::Micros(Stat::P999)),
    ("Bandwidth (MB/s)", Field::Rate(8e6)),
    ("MB/s", Field::Rate(8e6)),
    ("Messages/s", Field::Messages(1.0)),
    ("Iterations", Field::Samples),
];

/// Tests whose latency is half a round trip, by the words between `MPI` and `Latency Test`.
const HALVES: &[&str] = &["", "Multi", "Multi-threaded", "Multi-process", "Persistent"];

fn trip(name: &str) -> Trip {
    let kind = name.strip_prefix("MPI").and_then(|rest| rest.strip_suffix("Latency Test"));
    // The kind of memory may follow without a blank: `MPI-CUDA`.
    let kind = kind.filter(|kind| kind.starts_with([' ', '-']));
    let kind = kind.map(|kind| kind.trim_start_matches(|c: char| !c.is_whitespace()).trim());
    if kind.is_some_and(|kind| HALVES.contains(&kind)) { Trip::Half } else { Trip::Unknown }
}

/// Largest number of columns of a table.
const MOST_COLUMNS: usize = 64;

/// The columns in a heading. Two blanks end a name, and so does a unit in brackets.
fn columns(header: &str, number: u64, notes: &mut Notes) -> Vec<Field> {
    let header = header.trim_start_matches(['#', ' ']).replace(") ", ")  ");
    let names: Vec<&str> = header
        .split("  ")
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .take(MOST_COLUMNS)
        .collect();
    let column = |name: &&str| {
        // `-z99,99.9` prints two columns with the name `P99`, which cannot be told apart.
        let is_single = names.iter().filter(|other| *other == name).count() == 1;
        lookup(COLUMNS, name).filter(|_| is_single)
    };
    for name in names.iter().filter(|name| column(name).is_none()) {
        notes.at(number, format!("the column `{name}` is passed over"));
    }
    let columns = names.iter().map(column);
    columns.map(|column| column.unwrap_or(Field::Passed)).collect()
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let (name, version) = title(section.first()).ok_or("it has no title")?;
    let mut notes = Notes::default();
    let mut header = Vec::new();
    let mut rows = Vec::new();
    for Line { number, text: line, .. } in section.lines().skip(1) {
        let line = line.trim();
        if line.starts_with("# Size") {
            header = columns(line, number, &mut notes);
        } else if let Some(row) = Field::row(&header, line).filter(has_figure) {
            notes.keep(&mut rows, row);
        } else if line.contains("pairs:") && !line.contains("pairs: 1 ") {
            notes.at(number, "the rates are those of all pairs together");
        } else if !line.starts_with("# Datatype") && !line.starts_with("# [") && !line.is_empty() {
            notes.strange(number, line);
        }
    }
    if rows.is_empty() {
        return Err("it has no table of sizes with a rate or a time".into());
    }
    let found = Found::of("OSU Micro-Benchmarks", section.text.len(), notes);
    let mut found = found.with(&quoted(name), section.line, measured(section, name, rows));
    found.tool.version = Some(quoted(version));
    Ok(found)
}

/// Whether a row has a time or a rate.
fn has_figure(row: &SizeRow) -> bool {
    row.time().is_some() || row.rate.is_some() || row.messages.is_some()
}

/// Starts of the names, after `MPI `, of operations in which many processes take part.
const COLLECTIVES: &[&str] = &[
    "All",
    "Barrier",
    "Bcast",
    "Broadcast",
    "Gather",
    "Reduce",
    "Scatter",
    "Iall",
    "Ibarrier",
    "Ibcast",
    "Igather",
    "Ireduce",
    "Iscatter",
    "Non-blocking",
    "Neighbor",
];

fn setup(section: &Section<'_>, name: &str) -> Setup {
    let operation = name.split_once(' ').map_or("", |(_, operation)| operation);
    Setup {
        hosts: section.command.map(hosts).unwrap_or_default(),
        command: section.command.map(without_hosts).unwrap_or_default(),
        collective: COLLECTIVES.iter().any(|known| operation.starts_with(known)),
        ..Setup::default()
    }
}

fn measured(section: &Section<'_>, name: &str, rows: Vec<SizeRow>) -> Measured {
    let trip = trip(name);
    let operation = match trip {
        Trip::Half => "MPI ping-pong",
        Trip::Whole | Trip::Unknown => name.trim_end_matches(" Test"),
    };
    Measured::Sizes(Sizes {
        carrier: Some(Carrier::Messages),
        both: name.contains("Bi-Directional"),
        setup: setup(section, name),
        ..sizes(quoted(operation), trip, rows)
    })
}

#[cfg(test)]
mod tests;
