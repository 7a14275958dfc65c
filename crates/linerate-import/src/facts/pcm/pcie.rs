//! Reads the output of `pcm-pcie`.

use super::rate;
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, decimal, lookup, scaled};

pub(crate) static PCM_PCIE: Format = Format {
    id: "pcm-pcie",
    label: "pcm-pcie, with and without -B",
    versions: "Intel PCM 201710 to 202604",
    evidence: "published: intel/pcm issue 68 (with -B; the form without is made of it); the units: its source, \
        pcm-pcie.h",
    unknown: "Which device moved the data is not in it; counts are rounded to whole K, M or G, and each event is counted \
              only in a slice of the period and scaled up.",
    starts: |at| at.line.trim_start().starts_with("Skt |"),
    read,
    ..Format::FACTS
};

/// Number of bytes of a cache line: each event is the transfer of one.
//= intel/pcm, src/pcm-pcie.cpp, help of -B: transfers times the cache line size (=64 bytes)
const LINE: u64 = 64;

/// Factors of the letters after counts.
const UNITS: [(&str, u64); 4] =
    [("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = Reading::of(section);
    let lines = std::mem::take(&mut reading.lines);
    let mut names: Vec<&str> = Vec::new();
    // The output repeats the table: the last one counts.
    let mut rows: Vec<(u64, String)> = Vec::new();
    for line in lines {
        let text = line.trimmed();
        if text.starts_with("Skt |") {
            names = text.split('|').skip(1).map(str::trim).collect();
            rows.clear();
        } else if let Some(row) = row(&names, line) {
            rows.push((line.number, row));
        } else if !is_passed_over(text) {
            reading.strange(line);
        }
    }
    if rows.is_empty() {
        return Err("it ends before the first socket".to_owned());
    }
    for (line, row) in rows {
        reading.notes.at(line, row);
    }
    reading.notes.whole(
        "pcm-pcie counts lines of 64 bytes, each event in a slice of its period that is scaled up: its figures are \
         samples, of the period of its display (a second unless it was given another), and too high for small transfers",
    );
    reading.found("pcm-pcie")
}

/// Whether a line is skipped: the sum of all sockets, the length of an interval, or, with `-e`, hits and misses.
fn is_passed_over(text: &str) -> bool {
    let is_other = ["---", "*", "delay_ms"].iter().any(|start| text.starts_with(start));
    is_other || text.ends_with("(Miss)") || text.ends_with("(Hit)")
}

/// The figures in a row of a socket, as a sentence for the user.
fn row(names: &[&str], line: Line<'_>) -> Option<String> {
    let text = line.trimmed();
    let text = text.strip_suffix("(Total)").unwrap_or(text);
    let mut words = text.split_whitespace();
    let socket = decimal(words.next()?)?;
    let mut values = Vec::new();
    let mut words = words.peekable();
    while let Some(number) = words.next() {
        let unit = words.next_if(|word| word.chars().all(|c| c.is_ascii_alphabetic()));
        values.push(scaled(number, unit.map_or(Some(1), |unit| lookup(&UNITS, unit))?)?);
    }
    if values.len() != names.len() || values.is_empty() {
        return None;
    }
    let value = |wanted: &[&str]| {
        let known = names.iter().zip(&values).filter(|(name, _)| wanted.contains(name));
        let all: Vec<u64> = known.map(|(_, value)| *value).collect();
        (!all.is_empty()).then(|| all.iter().fold(0u64, |sum, n| sum.saturating_add(*n)))
    };
    let bytes = |total: &[&str], events: &[&str]| {
        value(total)
            .or_else(|| Some(value(events)?.saturating_mul(LINE)))
            .map_or_else(|| "unknown".to_owned(), rate)
    };
    let read = bytes(&["PCIe Rd (B)"], &["PCIRdCur", "PCIeRdCur"]);
    let written = bytes(&["PCIe Wr (B)"], &["ItoM", "PCIeItoM", "ItoMCacheNear"]);
    Some(format!("socket {socket}: devices read {read} from memory and write {written} to it"))
}
