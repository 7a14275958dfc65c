//! Lines that the reports of CrystalDiskMark and KDiskMark have in common.

use crate::reading::{figure, positive, size, time};
use linerate_record::reported::{Access, Does};
use linerate_units::{Bytes, Nanos};

/// Starts of lines that have nothing to read.
const PASSED: &[&str] = &[
    "* ",
    "---",
    "Date",
    "OS",
    "Mode",
    "Time",
    "Crystal Dew World",
    "Comment",
    "Flexible I/O Tester",
    "Profile",
];

/// Largest number of rows that are read of a report; real reports have at most 12.
pub(super) const MOST_ROWS: usize = 64;

/// A line with a result, in the units of the report.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Result {
    pub(super) access: Access,
    /// Whether it reads or writes, if the line itself says so.
    pub(super) does: Option<Does>,
    /// Payload of an operation, if the line has it.
    pub(super) block: Option<Bytes>,
    /// Operations that each thread keeps in flight, if the line has them.
    pub(super) depth: Option<u32>,
    pub(super) threads: Option<u32>,
    /// The number before `MB/s`.
    pub(super) rate: f64,
    /// Operations per second.
    pub(super) operations: Option<f64>,
    /// Mean time of an operation.
    pub(super) mean: Option<Nanos>,
}

/// The test of a line: order, kind, payload, depth and threads. No two lines of a report have the same test.
pub(super) type Asks = (Access, Option<Does>, Option<Bytes>, Option<u32>, Option<u32>);

impl Result {
    /// The test that the line is about.
    pub(super) fn asks(&self) -> Asks {
        (self.access, self.does, self.block, self.depth, self.threads)
    }

    /// Reads `  SEQ    1MiB (Q=  8, T= 1):   804.157 MB/s [    766.9 IOPS] < 10402.77 us>`, or a line of an older
    /// version: `   Random Read 4KB (QD=32) :   271.859 MB/s [ 66371.9 IOPS]`.
    pub(super) fn of(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" MB/s")?;
        let (label, rate) = left.rsplit_once(':')?;
        let (label, queues) = match label.split_once('(') {
            Some((label, queues)) => (label, queues.split_once(')')?.0),
            None => (label, ""),
        };
        let mut words = label.split_whitespace();
        let access = match words.next()? {
            "SEQ" | "Sequential" => Access::Sequential,
            "RND" | "Random" => Access::Random,
            _ => return None,
        };
        let mut rest: Vec<&str> = words.collect();
        let does = match rest.first() {
            Some(&"Read") => Some(Does::Read),
            Some(&"Write") => Some(Does::Write),
            _ => None,
        };
        if does.is_some() {
            rest.remove(0);
        }
        let block = rest.concat();
        Some(Self {
            access,
            does,
            // KB are 1024 bytes here: MB/s over IOPS of the same line proves it.
            block: if block.is_empty() { None } else { Some(size(&block)?) },
            depth: among(queues, &["Q=", "QD="]),
            threads: among(queues, &["T="]),
            rate: figure(rate)?,
            operations: between(right, '[', "IOPS]").and_then(positive),
            mean: between(right, '<', "us>").and_then(|us| time(us, 1e3)),
        })
    }
}

/// The number after one of the keys in a text such as `Q=  8, T= 1`.
fn among(text: &str, keys: &[&str]) -> Option<u32> {
    text.split(',').find_map(|part| {
        let part = part.trim();
        let value = keys.iter().find_map(|key| part.strip_prefix(key))?;
        value.trim().parse().ok().filter(|n| *n > 0)
    })
}

fn between(text: &str, start: char, end: &str) -> Option<f64> {
    let (_, rest) = text.split_once(start)?;
    figure(rest.split_once(end)?.0)
}

/// The kind of operation in the heading of a section: `[Read]`, `[Mix] Read 70%/Write 30%`.
pub(super) fn section(line: &str) -> Option<Does> {
    let line = line.trim();
    [("[Read]", Does::Read), ("[Write]", Does::Write), ("[Mix]", Does::Mix)]
        .into_iter()
        .find_map(|(start, does)| line.starts_with(start).then_some(does))
}

/// Whether a report whose heading is missing begins here: with a section, and then a row of the program.
pub(super) fn is_headless(text: &str, is_row: fn(&str) -> bool) -> bool {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    section(first).is_some()
        && lines
            .find(|line| !line.trim().is_empty())
            .is_some_and(|line| is_row(line) && Result::of(line).is_some())
}

/// Whether a line that is not understood is prose, and not a damaged row.
pub(super) fn is_prose(line: &str) -> bool {
    !line.starts_with(' ') && !line.contains("B/s")
}

/// What a line such as `Test: 1 GiB (x5) [C: 4% (79/1862GiB)]` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Test {
    /// Size of the test file.
    pub(super) file: Option<Bytes>,
    /// Number of runs of each row.
    pub(super) loops: Option<u32>,
    /// The drive that was tested; empty if the line has none.
    pub(super) drive: String,
}

impl Test {
    pub(super) fn of(line: &str) -> Option<Self> {
        let rest = value(line, "Test")?;
        let end = rest.find(['(', '[']).unwrap_or(rest.len());
        let loops = rest.split("(x").nth(1).and_then(|rest| rest.split_once(')'));
        let drive = rest.split('[').skip(1).find_map(|part| {
            let (letter, rest) = part.split_once(':')?;
            let is_letter = letter.len() == 1 && letter.chars().all(|c| c.is_ascii_alphabetic());
            (is_letter && rest.contains('%')).then(|| format!("{letter}:"))
        });
        Some(Self {
            file: size(&rest[..end]),
            loops: loops.and_then(|(count, _)| count.parse().ok()).filter(|n| *n > 0),
            drive: drive.unwrap_or_default(),
        })
    }
}

/// The text after a key and a colon.
pub(super) fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix(key)?;
    Some(rest.trim_start().strip_prefix(':')?.trim())
}

/// Whether a line has nothing to read.
pub(super) fn passed(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || PASSED.iter().any(|start| line.starts_with(start))
}
