//! Reads the text that iperf3 prints by default.

mod lines;
#[cfg(test)]
mod tests;
mod transfer;

use linerate_record::reported::Tool;

use crate::format::{Extent, Format, Found, Section, Start};
use crate::iperf_row::{Row, bracket, row};
use crate::reading;
use lines::{Lines, is_known, is_marked, is_sent};

/// The format of iperf3's text.
pub(crate) static FORMAT: Format = Format {
    id: "iperf3-text",
    label: "iperf3, text",
    versions: "3.1 to 3.21 and its development (July 2026), of clients and of servers",
    evidence: "run here: 3.1.3, 3.7, 3.12, 3.18, 3.20 and the development after 3.21, client and server, on \
        loopback; published: tables without their first lines, of a Windows client, over 1 GbE and IPoIB",
    unknown: "Round-trip times, windows of receivers; rates have three digits. CPU and congestion control are there \
              only with -V. Of a table without its first lines: which end wrote it.",
    starts,
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

/// The line of dashes around a server's banner.
const RULE: &str = "-----------------------------------------------------------";
/// Number of lines within which the first row must follow: iperf3 has up to 128 connections in each direction.
const MOST_FIRST_LINES: usize = 300;
/// Number of bytes before a line that are searched, to decide whether an output continues there.
const LOOKED_BACK: usize = 1500;

fn starts(Start { text, line, .. }: Start<'_>) -> bool {
    let begins =
        ["Connecting to host ", "Accepted connection from ", "Test Complete. Summary Results:"];
    let begin = begins.iter().find(|begin| line.starts_with(**begin));
    let known = begin.is_some_and(|begin| begin.ends_with(':') || line.contains(", port "));
    ((known || is_version(line)) && has_row_soon(text))
        || line.starts_with("iperf3: error - ")
        || line.starts_with("iperf3: interrupt - ")
        || (line == RULE && is_banner(text))
        || (is_header(line) && has_rows(text))
        || row(line).is_some_and(|row| is_marked(&row))
}

/// Whether a row, or an error instead of it, follows within 20 lines, not counting one line for each connection.
fn has_row_soon(text: &str) -> bool {
    let is_connection = |line: &&str| bracket(line).is_some() && line.contains(" connected to ");
    let lines = text.lines().take(MOST_FIRST_LINES);
    let mut others = lines.filter(|line| !is_connection(line)).take(20);
    others.any(|line| row(line).is_some() || line.starts_with("iperf3: "))
}

/// Whether a line is like `iperf 3.18`; the next line then names the host's operating system.
fn is_version(line: &str) -> bool {
    line.strip_prefix("iperf 3.")
        .is_some_and(|rest| rest.len() < 40 && rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a server's banner is followed by a test. The last banner is not.
fn is_banner(text: &str) -> bool {
    let mut lines = text.lines().skip(1);
    let listening = lines
        .next()
        .is_some_and(|line| line.starts_with("Server listening on ") && !line.contains(" port "));
    listening
        && lines.next() == Some(RULE)
        && lines.take(6).any(|line| line.starts_with("Accepted connection from "))
}

fn is_header(line: &str) -> bool {
    bracket(line).is_some_and(|(id, rest)| id == "ID" && rest.contains("Interval"))
}

/// Whether rows of iperf3 follow. Rows of iperf 2 look alike, but their times have less padding.
fn has_rows(text: &str) -> bool {
    let header = Start::of(text).line;
    let mut rows = text.lines().skip(1).take(2).filter_map(row);
    rows.any(|row| row.digits == 2 && (row.wide || header.contains("Bitrate")))
}

/// Whether the output before a line continues there, although the line could also begin a new output.
fn goes_on(before: &str, text: &str) -> bool {
    let mut from = before.len().saturating_sub(LOOKED_BACK);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    let before = before[from..].lines();
    let line = Start::of(text).line;
    // With --get-server-output the client also prints the server's output.
    let repeated = before.clone().rev().take(8);
    if line.starts_with("iperf3: ") || repeated.into_iter().any(|line| line == "Server output:") {
        return true;
    }
    if let Some(row) = row(line) {
        return !begins_anew(&row, before);
    }
    let last = before.rev().filter(|line| !line.trim().is_empty());
    if is_header(line) || line.starts_with("Test Complete.") {
        has_no_summary(last, text)
    } else {
        is_beginning(last)
    }
}

/// Whether a row is the first one of another test: a summary has each end of a stream only once, and an interval that
/// starts at zero precedes all later ones.
fn begins_anew<'a>(next: &Row<'_>, before: impl DoubleEndedIterator<Item = &'a str>) -> bool {
    let mut last = before.rev().map_while(row);
    if next.from > 0.0 {
        return false;
    }
    if is_marked(next) {
        let end = |row: &Row<'_>| row.rest.ends_with("sender");
        return last.any(|row| {
            is_marked(&row) && row.id == next.id && row.role == next.role && end(&row) == end(next)
        });
    }
    last.next().is_some_and(|row| {
        row.from > 0.0 && next.to < row.to * 0.95 || is_marked(&row) && next.to < row.to * 0.5
    })
}

/// Whether the last lines, in reverse order, are those of a test that has no rows yet. A line that is not of iperf3
/// ends the search.
fn is_beginning<'a>(last: impl Iterator<Item = &'a str>) -> bool {
    let mut last = last.peekable();
    let mut has_error = false;
    while let Some(line) = last.next() {
        // The line after the version names the operating system.
        let is_system = last.peek().is_some_and(|line| is_version(line));
        let ends = line.trim() == "iperf Done."
            || row(line).is_some()
            || is_header(line)
            || (has_error && line.starts_with("Connecting to host "))
            || !(is_known(line.trim()) || is_system);
        if ends {
            return false;
        }
        // iperf3 may print an error before the first line of its test.
        has_error |= line.starts_with("iperf3: ");
    }
    true
}

/// Whether a heading, or the words before it, continue the test whose last lines, in reverse order, are given: as its
/// summary, or as its intervals.
fn has_no_summary<'a>(last: impl Iterator<Item = &'a str>, text: &str) -> bool {
    let mut strange = false;
    for line in last {
        let line = line.trim();
        if let Some(row) = row(line) {
            let ruled = row.rest.starts_with("- - -");
            return !strange && !is_marked(&row) && (ruled || is_whole(&row, text));
        }
        if line.starts_with("- - -") {
            return !strange;
        }
        let ended = line == "iperf Done."
            || line.starts_with("CPU Utilization")
            || bracket(line).is_some_and(|(_, rest)| is_sent(rest.trim()));
        if ended {
            return false;
        }
        strange |= !is_known(line);
    }
    true
}

/// Whether the row after a heading covers the whole time, in a text without a line of dashes before it.
fn is_whole(last: &Row<'_>, text: &str) -> bool {
    let next = text.lines().skip(1).find_map(row);
    let has_other_end = Start::of(text).line.contains("Lost") && !last.rest.contains('/');
    next.is_some_and(|next| {
        next.from == 0.0 && next.to >= 0.95 * last.to && (last.from > 0.0 || has_other_end)
    })
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut lines = Lines::read(section);
    let mut notes = std::mem::take(&mut lines.notes);
    let transfers = transfer::all(&lines, section, &mut notes);
    if transfers.is_empty() {
        return Err(match &lines.error {
            Some(error) => format!("iperf3 ended without a result: {error}"),
            None => "it has no row that is complete".to_owned(),
        });
    }
    let results = transfers.into_iter().map(|one| reading::transfer(section.line, one)).collect();
    let tool = Tool { version: lines.version.map(str::to_owned), ..Tool::named("iperf3") };
    Ok(Found { tool, results, ..Found::of("iperf3", lines.used, notes) })
}
