//! NCCL tests (`all_reduce_perf` and others), and RCCL's tests, which print the same tables.
//!
//! `GB/s` is 10^9 bytes per second. `algbw` is the size over the time. `busbw` is what each processor sends and
//! receives per second: this rate can be compared with that of a link.
//= https://github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md

use linerate_record::reported::{Carrier, Measured, Outcome, Setup, SizeRow, Sizes, Trip};
use linerate_units::Bytes;

use crate::format::{Extent, Format, Found, Section};
use crate::launch::{hosts, without_hosts};
use crate::reading::{Line, MICRO, Notes, count, nanos, number, outcome, quoted, rate, run, sizes};

/// The entry in the table of formats.
pub(crate) static NCCL: Format = Format {
    id: "nccl",
    label: "NCCL tests (all_reduce_perf, ...), text",
    versions: "2.x, with and without the columns `root` and `#wrong`",
    evidence: "published: https://github.com/NVIDIA/nccl-tests/issues/107 (without `root`, column `error`); \
        published: https://github.com/coreweave/nccl-tests/pull/43 (with `root` and `#wrong`)",
    unknown: "The links between the processors; the time of a collective operation is not that of one message.",
    starts: |at| {
        let is_head = is_places(at.line) || is_header(at.line);
        is_settings(at.line) || is_head || log::said(at.line).is_some()
    },
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

/// The end of the names of the test programs.
const PROGRAM: &str = "_perf";
/// The test in which each operation is a message from one processor to the next.
const MESSAGES: &str = "sendrecv";
/// Bits per second in one GB/s.
const GIGABYTE: f64 = 8e9;
/// Number of lines at the end of an output within which the mean of the rates is searched: lines of the log may
/// follow it.
const LAST_LINES: usize = 64;
/// Largest number of lines from the log of a run to the heading of its table.
const NEXT_LINES: usize = 256;
/// Largest number of hosts that are kept.
const MOST_HOSTS: usize = 64;

fn is_settings(line: &str) -> bool {
    line.starts_with("# nThread ") && line.contains(" nGpus ")
}

fn is_places(line: &str) -> bool {
    line.starts_with('#') && line.contains(" out-of-place ") && line.contains(" in-place")
}

fn is_header(line: &str) -> bool {
    line.starts_with('#') && line.contains(" algbw ") && line.contains(" busbw ")
}

/// Whether an output continues at a line: each process may print its settings, and its log before, within and after
/// the table.
fn goes_on(before: &str, rest: &str) -> bool {
    let line = rest.lines().next().unwrap_or("");
    let is_log = log::begins(line);
    if !is_settings(line) && !is_log {
        return true;
    }
    let mut last = before.trim_end().rsplit('\n').take(LAST_LINES).peekable();
    let is_open = last.peek().is_some_and(|line| line.starts_with('#') || log::is_part(line));
    let has_ended = last.any(|line| line.starts_with("# Avg bus"));
    // A log after a table belongs to the next table, if there is one.
    let follows = || {
        let mut next = rest.lines().take(NEXT_LINES);
        let head = next.position(is_header);
        head.is_some_and(|head| !rest.lines().take(head).any(|line| run(line).is_some()))
    };
    is_open && !has_ended || is_log && !follows()
}

/// Columns of one half of a row: out of place, or in place.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    time: usize,
    rate: usize,
    wrong: usize,
}

/// The columns of both halves, by their places in the heading.
fn halves(header: &str) -> Vec<Half> {
    let names = header.trim_start_matches('#').split_whitespace();
    let mut found: Vec<Half> = Vec::new();
    for (at, name) in names.enumerate() {
        match (name, found.last_mut()) {
            ("time", _) => found.push(Half { time: at, ..Half::default() }),
            ("busbw", Some(half)) => half.rate = at,
            ("#wrong" | "error", Some(half)) => half.wrong = at,
            _ => {}
        }
    }
    found.retain(|half| half.rate > 0);
    found.truncate(2);
    found
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut notes = Notes::default();
    let mut reading = Reading::default();
    for Line { number, text: line, .. } in section.lines() {
        reading.line(number, line.trim_end(), &mut notes);
    }
    let name = operation(section);
    let results = reading.results(section, name);
    let found = Found { results, ..Found::of("NCCL tests", section.text.len(), notes) };
    found.complete("it has no table of sizes with a time")
}

/// The operation, from the name of the program in the command or in the output.
fn operation<'a>(section: &Section<'a>) -> &'a str {
    let of = |text: &'a str| {
        let mut words = text.split_whitespace().filter_map(|word| word.rsplit('/').next());
        words.find_map(|word| word.strip_suffix(PROGRAM))
    };
    let said = || section.text.lines().find(|line| line.starts_with("# Collective test"));
    section.command.and_then(of).or_else(|| of(said()?)).unwrap_or("")
}

#[derive(Default)]
struct Reading {
    /// Number of columns in the heading.
    columns: usize,
    halves: Vec<Half>,
    rows: [Vec<SizeRow>; 2],
    hosts: Vec<String>,
    processes: u32,
    log: log::Log,
}

impl Reading {
    fn line(&mut self, number: u64, line: &str, notes: &mut Notes) {
        if is_header(line) {
            self.halves = halves(line);
            self.columns = line.trim_start_matches('#').split_whitespace().count();
        } else if let Some(said) = log::said(line) {
            self.log.line(said);
        } else if let Some(rest) = line.strip_prefix('#') {
            self.host(rest);
        } else if !line.trim().is_empty() && !log::is_part(line) && !self.row(number, line, notes) {
            notes.strange(number, line);
        }
    }

    /// Reads the host of a process: `#  Rank  0 Group  0 Pid  14840 on node1 device  3 [0x01] NVIDIA H100`.
    fn host(&mut self, line: &str) {
        let rest = line.trim_start().strip_prefix("Rank ");
        let host = rest.and_then(|rest| rest.split_once(" on ")?.1.split_whitespace().next());
        let Some(host) = host.map(quoted) else { return };
        self.processes = self.processes.saturating_add(1);
        if self.hosts.len() < MOST_HOSTS && !self.hosts.contains(&host) {
            self.hosts.push(host);
        }
    }

    /// Reads a row; `false` if the line is not a row.
    fn row(&mut self, number_of_line: u64, line: &str, notes: &mut Notes) -> bool {
        let cells: Vec<&str> = line.split_whitespace().take(self.columns + 1).collect();
        let size = cells.first().and_then(|size| count(size));
        let (Some(size), true) = (size, cells.len() == self.columns) else {
            return false;
        };
        for (half, rows) in self.halves.iter().zip(&mut self.rows) {
            let value = |at: usize| cells.get(at).and_then(|cell| number(cell));
            let row = SizeRow {
                size: Bytes(size),
                mean: value(half.time).and_then(|time| nanos(time, MICRO)),
                rate: value(half.rate).and_then(|value| rate(value, GIGABYTE)),
                ..SizeRow::default()
            };
            if half.wrong > 0 && value(half.wrong).is_some_and(|wrong| wrong > 0.0) {
                notes.at(number_of_line, "the test found wrong values");
            }
            if row.time().is_some() {
                notes.keep(rows, row);
            }
        }
        true
    }

    fn setup(&mut self, command: Option<&str>, name: &str) -> Setup {
        let mut setup = Setup {
            hosts: std::mem::take(&mut self.hosts),
            command: command.map(without_hosts).unwrap_or_default(),
            processes: Some(self.processes).filter(|processes| *processes > 0),
            collective: name != MESSAGES,
            ..Setup::default()
        };
        if setup.hosts.is_empty() {
            setup.hosts = command.map(hosts).unwrap_or_default();
        }
        setup.ports = self.log.ports();
        if setup.ports.is_empty() {
            setup.ports = command.map(log::requested).unwrap_or_default();
        }
        setup.layer = self.log.layer();
        setup.no_rdma = std::mem::take(&mut self.log.no_rdma);
        setup
    }

    fn results(mut self, section: &Section<'_>, name: &str) -> Vec<Outcome> {
        let line = section.line;
        let setup = self.setup(section.command, name);
        // The log names a network even if all processes are at one host.
        let carrier = if self.log.is_sockets(setup.hosts.len()) {
            Carrier::Sockets
        } else {
            Carrier::Messages
        };
        let places = ["out of place", "in place"].into_iter().zip(self.rows);
        let start = if name.is_empty() { String::new() } else { format!("{}, ", quoted(name)) };
        let of = |(place, rows): (&str, Vec<SizeRow>)| {
            let operation = format!("NCCL {} {place}", quoted(name)).replace("  ", " ");
            let table = Sizes {
                carrier: Some(carrier),
                setup: setup.clone(),
                ..sizes(operation, Trip::Unknown, rows)
            };
            outcome(&format!("{start}{place}"), line, Measured::Sizes(table))
        };
        places.filter(|(_, rows)| !rows.is_empty()).map(of).collect()
    }
}

mod log;
#[cfg(test)]
mod tests;
