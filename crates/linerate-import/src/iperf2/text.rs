//! Reads the text of iperf 2.

use super::transfer;
use crate::format::{Extent, Format, Found, Section, Start};
use crate::iperf_row::{Row, Strange, bracket, bytes, row, word};
use crate::reading::{self, Line, Notes};

/// The format of iperf 2's text.
pub(crate) static FORMAT: Format = Format {
    id: "iperf2-text",
    label: "iperf 2, text",
    versions: "2.0 and 2.1, of clients and of servers, enhanced (-e) or not",
    evidence: "run here: 2.1.8, client and server, on loopback; published: 2.0, of tutorials (UDP of both \
        ends, TCP of a server); 2.0.5 and 2.0.13, of reports of errors",
    unknown: "The receiver's count, where the client wrote the output: a TCP client counts what it has sent. \
              Retransmits and windows are there only with -e.",
    starts,
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

/// The line of dashes around a banner.
const RULE: &str = "------------------------------------------------------------";

/// Starts of lines that have nothing about the result.
const PASSED_OVER: &[&str] = &[
    "-----",
    "UDP buffer size: ",
    "TOS set to ",
    "Binding to local address ",
    "Read buffer size: ",
    "WARN",
    "Multicast ttl ",
    "[ CT]",
];

/// Largest number of tests in the output of a server.
const MOST_TESTS: usize = 1_000;
/// Number of bytes before a line that are searched for rows, to decide whether an output continues there.
const LOOKED_BACK: usize = 400;

fn starts(Start { text, line: first, next }: Start<'_>) -> bool {
    if first == RULE {
        return is_banner(next);
    }
    // The rest of an output whose first lines are missing begins with the server's report.
    if first.ends_with("Server Report:") && bracket(first).is_some() {
        return row(next).is_some();
    }
    let connects = |line: &str| bracket(line).is_some_and(|(_, rest)| is_connection(rest));
    // The lines of the first connections may precede the banner.
    if connects(first) {
        return text.lines().take(20).any(is_banner)
            || text.lines().take(20).any(|line| row(line).is_some_and(|row| is_ours(&row)));
    }
    is_header(first) && row(next).is_some_and(|row| is_ours(&row) && !first.contains("Bitrate"))
}

/// Whether a row is of iperf 2: iperf3 prints two digits after the point, and pads the times.
fn is_ours(row: &Row<'_>) -> bool {
    let marked = row.rest.ends_with("sender") || row.rest.ends_with("receiver");
    let padded = row.wide && row.digits == 2;
    !marked && !padded
}

fn is_banner(line: &str) -> bool {
    let ports = [", TCP port ", ", UDP port ", " TCP port ", " UDP port "];
    ["Client connecting to ", "Server listening on "].iter().any(|start| line.starts_with(start))
        && ports.iter().any(|port| line.contains(port))
}

fn is_header(line: &str) -> bool {
    bracket(line).is_some_and(|(id, rest)| id == "ID" && rest.contains("Interval"))
}

fn is_connection(rest: &str) -> bool {
    rest.trim_start().starts_with("local ") && rest.contains(" connected with ")
}

/// Whether the output before a line continues there: with any line but a banner after rows.
fn goes_on(before: &str, text: &str) -> bool {
    let mut from = before.len().saturating_sub(LOOKED_BACK);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    text.starts_with('[') || !before[from..].lines().any(|line| row(line).is_some())
}

/// The tests of an output, and the settings that all tests share.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    pub(super) udp: bool,
    /// TCP or UDP port that this end connects to, and the one that it listens on.
    pub(super) connects_to: Option<u16>,
    pub(super) listens_on: Option<u16>,
    /// Payload of a write or a datagram, in bytes.
    pub(super) block: Option<u64>,
    /// Size of the socket buffer that the user requested, in bytes.
    pub(super) buffer: Option<f64>,
    /// Whether rows have retransmits and windows.
    pub(super) enhanced: bool,
    pub(super) tests: Vec<Test<'a>>,
    pub(super) notes: Notes,
    /// Whether a heading or other text follows the last row.
    apart: bool,
    used: usize,
}

/// Connections that were measured together.
#[derive(Debug, Default)]
pub(super) struct Test<'a> {
    /// Number of the test's first line in the input.
    pub(super) line: u64,
    pub(super) connections: Vec<Connection<'a>>,
    pub(super) rows: Vec<Row<'a>>,
    /// Rows that the server reported to the client at the end of the test.
    pub(super) server: Vec<Row<'a>>,
}

/// A connection of a test, as its line describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connection<'a> {
    pub(super) id: &'a str,
    /// TCP or UDP port of this end, and of the far end.
    pub(super) ports: [u16; 2],
    pub(super) reverse: bool,
    pub(super) duplex: bool,
    pub(super) segment: Option<u32>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut lines = Lines::default();
    lines.read(section);
    let mut notes = std::mem::take(&mut lines.notes);
    let mut results = Vec::new();
    for test in &lines.tests {
        for transfer in transfer::all(&lines, test, section.command, &mut notes) {
            results.push(reading::transfer(test.line, transfer));
        }
    }
    let found = Found { results, ..Found::of("iperf", lines.used, notes) };
    found.complete("it has no row that is complete")
}

impl<'a> Lines<'a> {
    fn read(&mut self, section: &Section<'a>) {
        let mut strange = Strange::default();
        // Whether the next row belongs to the server's report, which follows its own heading and perhaps that of a
        // table.
        let mut server = false;
        for Line { number: place, text, end } in section.lines() {
            let line = text.trim();
            let understood = if let Some(row) = row(line) {
                self.row(row, place, server);
                server = false;
                true
            } else if line.ends_with("Server Report:") {
                server = true;
                true
            } else {
                line.is_empty() || self.line(line, place)
            };
            if understood {
                if !line.is_empty() {
                    self.used = end;
                    self.notes.append(&mut strange.0);
                }
            } else {
                self.apart = true;
                strange.line(place, line);
            }
        }
        if strange.end(&mut self.notes) {
            self.used = section.text.len();
        }
        // If a test has only the server's report, its rows replace those of the client, which are missing.
        for test in self.tests.iter_mut().filter(|test| test.rows.is_empty()) {
            test.rows.clone_from(&test.server);
        }
    }

    fn test(&mut self, line: u64) -> Option<&mut Test<'a>> {
        if self.tests.is_empty() {
            self.tests.push(Test { line, ..Test::default() });
        }
        self.tests.last_mut()
    }

    fn row(&mut self, row: Row<'a>, line: u64, server: bool) {
        self.udp |= row.rest.contains(" ms ") && row.rest.ends_with("%)");
        let apart = std::mem::take(&mut self.apart) && !server && row.from == 0.0;
        let begun = |test: &Test<'_>| {
            let mut rows = test.rows.iter();
            rows.any(|before| before.id == row.id && before.from == 0.0)
        };
        // In tables without lines of connections, a row that begins at zero begins a new test.
        if apart && self.tests.last().is_some_and(begun) && self.tests.len() < MOST_TESTS {
            self.tests.push(Test { line, ..Test::default() });
        }
        if let Some(test) = self.test(line) {
            let rows = if server { &mut test.server } else { &mut test.rows };
            rows.push(row);
        }
    }

    /// Reads a line that is not a row. Returns whether it was understood.
    fn line(&mut self, line: &'a str, place: u64) -> bool {
        if is_header(line) {
            self.enhanced |= line.contains("Rtry") && line.contains("Cwnd/RTT");
            self.udp |= line.contains("Datagrams");
            self.apart = true;
            return true;
        }
        if let Some((id, rest)) = bracket(line) {
            return self.connection(id, rest.trim(), place);
        }
        if is_banner(line) {
            self.banner(line);
            return true;
        }
        if let Some(size) = line.strip_prefix("TCP window size: ") {
            self.buffer = requested(size);
            return true;
        }
        let block = ["Sending ", "Receiving ", "Write buffer size: "];
        if let Some(size) = block.iter().find_map(|start| line.strip_prefix(start)) {
            self.block = block_size(size);
            return true;
        }
        PASSED_OVER.iter().any(|start| line.starts_with(start))
    }

    fn banner(&mut self, line: &str) {
        self.udp |= line.contains("UDP port");
        let port = line.split_once(" port ").and_then(|(_, rest)| word(rest));
        let port = port.and_then(|(port, _)| port.trim_end_matches(',').parse().ok());
        if line.starts_with("Client") {
            self.connects_to = port;
        } else {
            self.listens_on = port;
        }
    }

    fn connection(&mut self, id: &'a str, rest: &str, place: u64) -> bool {
        if is_connection(rest) {
            // A connection after rows belongs to the next test.
            let is_next = self.tests.last().is_some_and(|test| !test.rows.is_empty());
            if is_next && self.tests.len() < MOST_TESTS {
                self.tests.push(Test { line: place, ..Test::default() });
            }
            let known = connection(id, rest);
            if let (Some(test), Some(known)) = (self.test(place), known) {
                test.connections.push(known);
            }
            return true;
        }
        (rest.starts_with("Sent ") && rest.contains(" datagrams"))
            || rest.contains("datagrams received out-of-order")
            || rest.starts_with("MSS size ")
    }
}

/// Reads `local 127.0.0.1 port 37844 connected with 127.0.0.1 port 17001 (reverse) (icwnd/mss/irtt=319/32741/13)`.
fn connection<'a>(id: &'a str, rest: &str) -> Option<Connection<'a>> {
    let (near, far) = rest.split_once(" connected with ")?;
    let port = |text: &str| {
        let (_, after) = text.split_once(" port ")?;
        word(after)?.0.parse().ok()
    };
    let mss = rest.split_once("icwnd/mss/irtt=").and_then(|(_, rest)| {
        let mss = rest.split('/').nth(1)?;
        mss.parse().ok().filter(|n| *n > 0)
    });
    Some(Connection {
        id,
        ports: [port(near)?, port(far)?],
        reverse: rest.contains("(reverse)"),
        duplex: rest.contains("(full-duplex)"),
        segment: mss,
    })
}

/// The buffer that the user requested, from `256 KByte (WARNING: requested  128 KByte)` or `64.0 KByte`; `None` for
/// `85.3 KByte (default)`.
fn requested(size: &str) -> Option<f64> {
    if size.contains("(default)") {
        return None;
    }
    let size = size.split_once("requested").map_or(size, |(_, size)| size);
    let (value, rest) = word(size)?;
    let unit = word(rest)?.0.trim_end_matches(')');
    bytes(value, unit).filter(|size| *size > 0.0)
}

/// Number of bytes in `1470 byte datagrams, ..`, `131072 Byte` or `128 KByte`.
fn block_size(size: &str) -> Option<u64> {
    let (value, rest) = word(size)?;
    let unit = word(rest)?.0;
    let unit = if unit == "byte" { "Byte" } else { unit };
    bytes(value, unit).map(|size| size as u64)
}
