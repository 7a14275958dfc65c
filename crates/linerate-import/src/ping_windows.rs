//! The statistics of `ping` of Windows, in English: whole round trips of one size, in whole milliseconds.

use linerate_core::reported::{Setup, SizeRow, Sizes, Tool, Trip};
use linerate_core::units::{Bytes, Nanos};

use crate::format::{Evidence, Format, Found, Holds, Section};
use crate::scaled::{MILLI, Notes, body, count, lines, nanos, quoted};

/// The row of the table of formats.
pub(crate) static PING_WINDOWS: Format = Format {
    id: "ping-windows",
    label: "ping of Windows, text",
    holds: Holds::Results,
    versions: "the text in English",
    evidence: &[Evidence::Published(
        "http://som.csudh.edu/fac/471/hout/netech/pingsession.htm, with its lines parted again",
    )],
    unknown: "All times below a millisecond, the median, percentiles and the deviation.",
    starts: |text| {
        let line = text.lines().next().unwrap_or("").trim();
        line.starts_with("Pinging ") && line.ends_with(" bytes of data:")
    },
    read,
};

fn read(section: &Section<'_>) -> Result<Found, String> {
    let body = body(section);
    let words: Vec<&str> = body
        .lines()
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let at = words.iter().rposition(|word| *word == "bytes").unwrap_or(0);
    let size = at.checked_sub(1).and_then(|at| count(words[at]));
    let mut row = SizeRow {
        size: Bytes(size.ok_or("its first line has no size")?),
        ..SizeRow::default()
    };
    let mut notes = Notes::default();
    for (number, line) in lines(section, body).skip(1) {
        let line = line.trim();
        if line.starts_with("Packets:") {
            row.samples = value(line, "Received = ").and_then(count);
            let lost = value(line, "Lost = ").and_then(count).unwrap_or(0);
            if lost > 0 {
                notes.at(number, format!("{lost} packets were not answered"));
            }
        } else if line.starts_with("Minimum = ") {
            row.least = time(line, "Minimum = ");
            row.most = time(line, "Maximum = ");
            row.mean = time(line, "Average = ");
        } else if !is_known(line) {
            notes.strange(number, line);
        }
    }
    if row.samples.is_none() {
        return Err("it has no statistics: the end is missing".into());
    }
    if row.time().is_none() {
        return Err(
            "no packet was answered, or all within a millisecond, which it cannot tell".into(),
        );
    }
    Ok(Found {
        notes: notes.0,
        ..Found::table(
            Tool::named("ping"),
            (&quoted(words.get(1).unwrap_or(&"")), section.line),
            Sizes {
                carrier: None,
                operation: "ICMP echo".into(),
                trip: Trip::Whole,
                both: false,
                rows: vec![row],
                setup: Setup::default(),
            },
            body.len(),
        )
    })
}

/// Lines of single packets, and headings.
fn is_known(line: &str) -> bool {
    line.is_empty()
        || line.contains("bytes=")
        || line.contains(": time")
        || line.starts_with("Ping statistics for")
        || line.starts_with("Approximate round trip times")
}

fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(name)?;
    rest.split([' ', ',']).next()
}

/// A time in whole milliseconds. None of them means less than one, which is not known.
fn time(line: &str, name: &str) -> Option<Nanos> {
    let millis = count(value(line, name)?.strip_suffix("ms")?)?;
    nanos(millis as f64, MILLI).filter(|time| time.0 > 0)
}

#[cfg(test)]
mod tests;
