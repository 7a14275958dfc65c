//! Text of iperf3, as people see it.

mod lines;
#[cfg(test)]
mod tests;
mod transfer;

use linerate_core::reported::{Measured, Outcome, Tool};

use crate::format::{Evidence, Format, Found, Holds, Section};
use crate::iperf_row::{bracket, row};
use lines::Lines;

/// iperf3, text.
pub(crate) static FORMAT: Format = Format {
    id: "iperf3-text",
    label: "iperf3, text",
    holds: Holds::Results,
    versions: "3.1 to 3.21 and its development (July 2026), of clients and of servers",
    evidence: &[
        Evidence::RunHere(
            "3.1.3, 3.7, 3.12, 3.18, 3.20 and the development after 3.21, client and server, on loopback",
        ),
        Evidence::Published(
            "tables without their first lines, of a Windows client, over 1 GbE and IPoIB",
        ),
    ],
    unknown: "Round-trip times, windows of receivers; rates have three digits. CPU and congestion control are there \
              only with -V. Of a table without its first lines: which end wrote it.",
    starts,
    read,
};

/// Rule of a server's banner.
const RULE: &str = "-----------------------------------------------------------";
/// Bytes before a line that are looked at to find whether an output goes on there.
const LOOKED_BACK: usize = 1500;

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn starts(text: &str) -> bool {
    let line = first_line(text);
    let begins = ["Connecting to host ", "Accepted connection from "];
    (begins.iter().any(|begin| line.starts_with(begin)) && line.contains(", port "))
        || line.starts_with("iperf3: error - ")
        || line.starts_with("iperf3: interrupt - ")
        || is_version(line)
        || (line == RULE && is_banner(text))
        || (is_header(line) && has_rows(text))
}

/// `iperf 3.18`, with the name of the host's system in the next line.
fn is_version(line: &str) -> bool {
    line.strip_prefix("iperf 3.")
        .is_some_and(|rest| rest.len() < 40 && rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A server's banner, behind which a test begins. Behind the last test nothing does.
fn is_banner(text: &str) -> bool {
    let mut lines = text.lines().skip(1);
    let listening = lines
        .next()
        .is_some_and(|line| line.starts_with("Server listening on ") && !line.contains(" port "));
    listening
        && lines.next() == Some(RULE)
        && lines
            .take(6)
            .any(|line| line.starts_with("Accepted connection from "))
}

fn is_header(line: &str) -> bool {
    bracket(line).is_some_and(|(id, rest)| id == "ID" && rest.contains("Interval"))
}

/// Whether rows of iperf3 follow. iperf2 has rows of the same form, and pads the times less.
fn has_rows(text: &str) -> bool {
    let header = first_line(text);
    let mut rows = text.lines().skip(1).take(2).filter_map(row);
    rows.any(|row| row.digits == 2 && (row.wide || header.contains("Bitrate")))
}

/// Whether the output before a line goes on there, where one could begin as well.
pub(crate) fn goes_on(before: &str, text: &str) -> bool {
    let mut from = before.len().saturating_sub(LOOKED_BACK);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    let before = before[from..].lines().rev().take(8);
    let line = first_line(text);
    // With --get-server-output the client writes what the server wrote.
    let repeated = before.clone().any(|line| line == "Server output:");
    if line.starts_with("iperf3: ") || repeated {
        return true;
    }
    let mut before = before;
    if is_header(line) {
        // Behind the summary of a test another one begins.
        return !before.any(|line| line.trim_end().ends_with("receiver"));
    }
    // The first lines of a test follow each other. Rows end them.
    !before.any(|line| row(line).is_some() || line == "iperf Done." || line.starts_with("[ ID]"))
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let lines = Lines::read(section);
    let mut notes = lines.notes.clone();
    let transfers = transfer::all(&lines, section, &mut notes);
    if transfers.is_empty() {
        return Err(match &lines.error {
            Some(error) => format!("iperf3 ended without a result: {error}"),
            None => "it has no row that is complete".to_owned(),
        });
    }
    let results = transfers.into_iter().map(|transfer| Outcome {
        title: String::new(),
        line: section.line,
        measured: Measured::Transfer(Box::new(transfer)),
    });
    let tool = Tool {
        version: lines.version.map(str::to_owned),
        ..Tool::named("iperf3")
    };
    Ok(Found {
        tool,
        results: results.collect(),
        notes,
        used: Some(lines.used),
        ..Found::default()
    })
}
