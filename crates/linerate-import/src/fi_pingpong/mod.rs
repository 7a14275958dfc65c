//! `fi_pingpong` of libfabric. Sizes are abbreviated by powers of 1024; `MB/sec` is 10^6 bytes per second.
//!
//! A transfer (`usec/xfer`) is half a round trip, and the rate is the size over that time.
//= https://github.com/ofiwg/libfabric, util/pingpong.c, show_perf

use linerate_record::reported::SizeRow;

use crate::format::{Format, Found, Section};
use crate::reading::{Line, MICRO, Notes, bytes, count, nanos, number, ping_pong, rate};

/// The entry in the table of formats.
pub(crate) static FI_PINGPONG: Format = Format {
    id: "fi-pingpong",
    label: "fi_pingpong, text",
    versions: "libfabric 1.17",
    evidence: "run here: 1.17, provider sockets, both ends on one host",
    unknown: "The provider, and sizes and counts that were abbreviated to one decimal.",
    starts: |at| at.line.starts_with(HEADER[0]) && at.line.split_whitespace().eq(HEADER),
    read,
    ..Format::RESULTS
};

const HEADER: [&str; 8] =
    ["bytes", "#sent", "#ack", "total", "time", "MB/sec", "usec/xfer", "Mxfers/sec"];

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut notes = Notes::default();
    let mut rows = Vec::new();
    for Line { number, text: line, .. } in section.lines().skip(1) {
        match row(line, number, &mut notes) {
            Some(row) => notes.keep(&mut rows, row),
            None if line.trim().is_empty() => {}
            None => notes.strange(number, line),
        }
    }
    if rows.is_empty() {
        return Err("its table has no row".into());
    }
    let found = Found::of("fi_pingpong", section.text.len(), notes);
    Ok(found.with("", section.line, ping_pong(rows)))
}

fn row(line: &str, number_of_line: u64, notes: &mut Notes) -> Option<SizeRow> {
    let cells: Vec<&str> = line.split_whitespace().take(9).collect();
    let [size, sent, acknowledged, _, _, megabytes, micros, _] = cells.as_slice() else {
        return None;
    };
    if acknowledged.strip_prefix('=') != Some(sent) {
        notes.at(number_of_line, format!("of {sent} messages, {acknowledged} were acknowledged"));
    }
    Some(SizeRow {
        size: bytes(size)?,
        // A count of `1k` may be 1000 to 1999, and so is unknown.
        samples: count(sent),
        mean: Some(nanos(number(micros)?, MICRO)?),
        rate: number(megabytes).and_then(|value| rate(value, 8e6)),
        ..SizeRow::default()
    })
}

#[cfg(test)]
mod tests;
