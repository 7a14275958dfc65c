//! The report of CrystalDiskMark, saved to a file or copied.

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured, Tool};
use linerate_units::Bytes;

use super::lines::{
    Asks, MOST_ROWS, Result as Line, Test, is_headless, is_prose, passed, section, value,
};
use crate::format::{Extent, Format, Found, Section};
use crate::reading::{self, figure, outcome, positive};

/// The format of CrystalDiskMark's report.
pub(crate) static CRYSTAL: Format = Format {
    id: "crystaldiskmark",
    label: "CrystalDiskMark, text",
    versions: "3 to 9",
    evidence: "published: 3.0.1 and 8.0.0 (a report in a repository of notes), 5.2.0 and 6.0.2 (quoted in the \
        source of AmorphousDiskMark), 7.0.0 and 8.0.1 (samples of other parsers), 8.0.4 (a review); the form \
        of 9 from its source, 9.0.1",
    unknown: "Each figure is the best of several runs: the rate and the time of a row may be of different runs, and \
              neither spread nor percentiles are known.",
    starts: |at| {
        let is_head = ruled(at.text) || version(at.line).is_some();
        is_head || is_headless(at.text, is_row) || is_old_row(at.line)
    },
    read,
    extent: Extent::Own,
    ..Format::RESULTS
};

const NAME: &str = "CrystalDiskMark ";
/// Payload of sequential rows of versions 3 to 6, which do not print it: 128 KiB if the row has a depth, else 1 MiB.
//= CrystalDiskMark 5.1.2, DiskBench.cpp: "-b128K -d5 -o%d -t%d" for "Sequential Read Multi", "-b1M -d5 -o1 -t1"
//= CrystalDiskMark 3.0, readme: "Sequential Read/Write (Block Size = 1024 KB)"
const WITH_DEPTH: Bytes = Bytes(128 << 10);
const WITHOUT_DEPTH: Bytes = Bytes(1 << 20);
/// Number of bytes in the MB of rates.
//= the report itself: "MB/s = 1,000,000 bytes/s"
const MB: f64 = 1e6;

/// The version in the heading of a report.
fn version(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix(NAME)?;
    let version = rest.split_whitespace().next()?;
    let digit = version.starts_with(|c: char| c.is_ascii_digit());
    (digit && rest.contains("hiyohiyo")).then_some(version)
}

/// Whether a text begins with a line of dashes and then the heading.
fn ruled(text: &str) -> bool {
    let mut lines = text.lines();
    let is_rule = lines.next().is_some_and(|line| line.starts_with("------"));
    is_rule && lines.next().is_some_and(|line| version(line).is_some())
}

/// Whether a line is a row of version 7 or later, with a payload such as `1MiB`.
fn is_row(line: &str) -> bool {
    line.split_whitespace().nth(1).is_some_and(|size| size.ends_with("iB"))
}

/// Whether a line is a row of versions 3 to 6, in which each row says whether it reads or writes.
fn is_old_row(line: &str) -> bool {
    line.contains(" MB/s") && Line::of(line).is_some_and(|row| row.does.is_some())
}

#[derive(Default)]
struct Reader {
    version: Option<String>,
    does: Option<Does>,
    /// The tests of the rows that were read.
    lines: Vec<Asks>,
    disk: Disk,
    /// Length of each run in seconds.
    seconds: Option<f64>,
    zero: usize,
    /// Whether the line with the operating system was read; only a comment may follow it.
    has_system: bool,
    found: Found,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reader = Reader::default();
    let used = section.up_to(|reading::Line { number, text, .. }, used| {
        let is_head = version(text).is_some() || ruled(&section.text[used..]);
        let is_next = reader.version.is_some() && is_head;
        !is_next && reader.takes(number, text.trim_end())
    });
    Ok(Found { used: Some(used), ..reader.finish(section.line)? })
}

impl Reader {
    /// Reads a line; `false` if it follows the report.
    fn takes(&mut self, line: u64, text: &str) -> bool {
        if let Some(version) = version(text) {
            self.version = Some(version.to_owned());
        } else if let Some(does) = section(text) {
            // A second section of the same kind belongs to another run, whose heading is missing.
            if self.disk.rows.iter().any(|row| row.does == does) {
                return false;
            }
            self.does = Some(does);
        } else if let Some(result) = Line::of(text).filter(|_| self.disk.rows.len() < MOST_ROWS) {
            if result.does.is_some() && self.lines.contains(&result.asks()) {
                return false;
            }
            self.lines.push(result.asks());
            self.row(line, &result);
        } else if let Some(test) = Test::of(text) {
            self.disk.file = test.file;
            self.disk.best_of = test.loops;
            self.disk.target = test.drive;
        } else if let Some(time) = value(text, "Time") {
            self.seconds = measured(time);
        } else if passed(text) {
            self.has_system |= value(text, "OS").is_some();
        } else if self.has_system || !self.disk.rows.is_empty() && is_prose(text) {
            // After the rows only known lines about the system follow.
            return false;
        } else {
            self.found.notes.strange(line, text);
        }
        true
    }

    fn row(&mut self, line: u64, result: &Line) {
        let Some(does) = result.does.or(self.does) else {
            let what = "left out: neither the row nor a heading says whether it reads or writes";
            return self.found.notes.at(line, what);
        };
        let Some(rate) = positive(result.rate * MB) else {
            self.zero += 1;
            return;
        };
        let mut row = DiskRow::new(result.access, does, rate);
        row.operations = result.operations;
        row.mean = result.mean;
        // A row without a depth is measured by one thread that waits for each operation.
        row.depth = Some(result.depth.unwrap_or(1));
        row.threads = Some(result.threads.unwrap_or(1));
        row.block = result.block.or_else(|| unnamed(result));
        self.disk.rows.push(row);
    }

    fn finish(mut self, line: u64) -> Result<Found, String> {
        if self.disk.rows.is_empty() {
            return Err("no row of it was measured".to_owned());
        }
        for row in &mut self.disk.rows {
            row.seconds = self.seconds;
        }
        if self.zero > 0 {
            let what = format!("{} rows of 0 MB/s are left out: they were not measured", self.zero);
            self.found.notes.at(line, what);
        }
        if !self.has_system {
            self.found.notes.at(line, "the end of the report is missing");
        }
        // CrystalDiskMark opens its files without the cache of the operating system.
        //= CrystalDiskMark 9.0.1, DiskBench.cpp: "-S"; 3.0: FILE_FLAG_NO_BUFFERING
        self.disk.direct = Some(true);
        self.found.tool = Tool { name: "CrystalDiskMark".to_owned(), version: self.version };
        self.found.results = vec![outcome("", line, Measured::Disk(self.disk))];
        Ok(self.found)
    }
}

/// Payload of a row that does not print it.
fn unnamed(result: &Line) -> Option<Bytes> {
    if result.access != Access::Sequential {
        return None;
    }
    Some(if result.depth.is_some() { WITH_DEPTH } else { WITHOUT_DEPTH })
}

/// Seconds in `Measure 5 sec / Interval 5 sec`.
fn measured(text: &str) -> Option<f64> {
    let (seconds, _) = text.strip_prefix("Measure ")?.split_once(" sec")?;
    positive(figure(seconds)?)
}
