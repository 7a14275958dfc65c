//! NetPIPE: the file `np.out` and the text on the console.
//!
//! Versions up to 3 write three columns: bytes, rate in 2^20 bits per second, seconds. Version 5 writes five: bytes,
//! rate in 10^9 bits per second (mean, least, most), microseconds. The file has no heading, so the figures in its
//! first lines must prove which version wrote it. A time is half a round trip, and the rate is the size over that
//! time.

use linerate_record::reported::SizeRow;
use linerate_units::Bytes;

use crate::format::{Format, Found, Section};
use crate::reading::{
    BITS, Line, MEBIBIT, MICRO, Notes, SECOND, count, lookup, named, nanos, number, ping_pong, rate,
};

/// The entry in the table of formats.
pub(crate) static NETPIPE: Format = Format {
    id: "netpipe",
    label: "NetPIPE, np.out and text",
    versions: "3.7.2 and 5: np.out that begins with 1 byte, and the console",
    evidence: "run here: 3.7.2: NPtcp, and NPmpi over MPICH 4.0.2; 5.x: NPmpi over MPICH 4.0.2; both ends on \
        one host; published: https://github.com/openucx/ucx/issues/2329 (3.x, seconds on the console)",
    unknown: "The transport; in np.out, the number of round trips, and whether it was a stream (-s) or in both directions (-2).",
    starts: |at| HEADS.iter().any(|head| at.line.starts_with(head)) || is_file(at.text),
    read,
    //= NetPIPE: netpipe.c
    first_words: &["Now starting the main loop"],
    ..Format::RESULTS
};

/// Number of lines of np.out that must prove the units.
const PROOF_LINES: usize = 3;
/// The line right before the first row on the console: of version 3, and of version 5.
const HEADS: [&str; 2] = ["Now starting the main loop", "Start testing with "];

fn is_file(text: &str) -> bool {
    let mut words = text.lines().map(str::split_whitespace);
    let begins = words.next().and_then(|mut words| words.next()) == Some("1");
    begins && text.lines().take(PROOF_LINES).map_while(file_row).count() == PROOF_LINES
}

/// Reads a row of np.out. Its rate must be its size over its time.
fn file_row(line: &str) -> Option<SizeRow> {
    let cells: Vec<&str> = line.split_whitespace().take(6).collect();
    let (time, time_unit, rate_unit, rounding) = match cells.as_slice() {
        [_, _, seconds] => (seconds, SECOND, MEBIBIT, 1e-6),
        [_, _, _, _, micros] => (micros, MICRO, SECOND, 1e-3),
        _ => return None,
    };
    let size = count(cells[0])?;
    let (value, time) = (number(cells[1])?, number(time)? * time_unit);
    let expected = size as f64 * 8.0 / (time / SECOND) / rate_unit;
    let is_proven = (value - expected).abs() <= rounding + expected * 0.02;
    is_proven.then_some(SizeRow {
        size: Bytes(size),
        mean: nanos(time, 1.0),
        rate: rate(value, rate_unit),
        ..SizeRow::default()
    })
}

/// Units on the console: of sizes, and below, of times.
const SIZES: &[(&str, f64)] = &[("bytes", 1.0), ("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)];
const TIMES: &[(&str, f64)] =
    &[("nsecs", 1.0), ("usec usecs", MICRO), ("msecs", 1e6), ("sec secs", SECOND)];

/// Reads a row of the console: `0: 1 bytes 2426 times --> 2.34 Mbps in 3.26 usec`.
fn console_row(line: &str, is_old: bool) -> Option<SizeRow> {
    let words: Vec<&str> = line.split_whitespace().take(12).collect();
    let [index, size, size_unit, times, "times", "-->", value, rate_unit, "in", time, time_unit] =
        words.as_slice()
    else {
        return None;
    };
    count(index.strip_suffix(':')?)?;
    let unit_of_rate = match is_old {
        true if *rate_unit == "Mbps" => MEBIBIT,
        true => return None,
        false => lookup(BITS, rate_unit)?,
    };
    let size = number(size)? * lookup(SIZES, size_unit)?;
    Some(SizeRow {
        size: Bytes(size as u64),
        samples: count(times),
        mean: nanos(number(time)?, named(TIMES, time_unit)?),
        rate: rate(number(value)?, unit_of_rate),
        ..SizeRow::default()
    })
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut notes = Notes::default();
    let mut rows = Vec::new();
    let first = section.first();
    let is_file = is_file(section.text);
    let is_old =
        if is_file { first.split_whitespace().count() == 3 } else { first.starts_with(HEADS[0]) };
    for Line { number, text: line, .. } in section.lines().skip(usize::from(!is_file)) {
        let row = if is_file { file_row(line) } else { console_row(line, is_old) };
        match row {
            Some(row) => notes.keep(&mut rows, row),
            None if line.trim().is_empty() || line.starts_with("Completed with") => {}
            None => notes.strange(number, line),
        }
    }
    if !is_old && !is_file {
        notes.whole("sizes above 1000 bytes are rounded on the console: np.out has them exactly");
    }
    if rows.is_empty() {
        return Err("it has no row: the end may be missing".into());
    }
    if is_old {
        notes.whole(
            "the rates are converted: NetPIPE's Mbps up to version 3 are 2^20 bits in a second",
        );
    }
    let found = Found::of("NetPIPE", section.text.len(), notes);
    Ok(found.with("", section.line, ping_pong(rows)))
}

#[cfg(test)]
mod tests;
