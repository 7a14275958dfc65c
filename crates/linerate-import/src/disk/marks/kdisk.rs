//! The report of KDiskMark. Its figures are those of fio, converted.
//!
//! Its MB/s are KiB/s of fio divided by 1000 (up to 1.5.0, by 1024). Each rate is checked against the operations per
//! second in its row.

use linerate_record::reported::{Disk, DiskRow, Does, Measured, Tool};
use linerate_units::Bytes;

use super::lines::{self, MOST_ROWS, Test, is_headless, is_prose, passed, section, value};
use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, outcome, positive};

/// The format of KDiskMark's report.
pub(crate) static KDISK: Format = Format {
    id: "kdiskmark",
    label: "KDiskMark, text",
    versions: "1.4 to 3.3",
    evidence: "published: 1.6.0, 3.0.0 and one without a version (README of KDiskMark), 2.2.1 (its issue 58), \
        3.2.0 (a report in a repository of notes); units and means from the source of 1.4.1 to 3.3.0",
    unknown: "How long each row was measured (fio stops after one pass over the file) and whether the cache was \
              bypassed.",
    starts: |at| {
        // A line with only a link to the program is not a report.
        let mut head = at.text.lines().skip(1).take(HEAD_LINES);
        version(at.line).is_some()
            || is_without_version(at.line) && head.any(|line| section(line).is_some())
            || is_headless(at.text, is_row)
    },
    read,
    extent: Extent::Own,
    ..Format::RESULTS
};

const NAME: &str = "KDiskMark (";
/// The heading of a report without a version, as in the README.
const WITHOUT_VERSION: &str = "KDiskMark: https://";
/// Number of bytes in its MB, each with the first version that uses it.
//= KDiskMark 1.4.1 and 1.5.0, benchmark.cpp: value("bw").toInt() / 1024.0; since 1.5.1: / 1000.0
const UNITS: &[(Version, f64)] = &[((1, 5, 1), 1024.0 * 1000.0), ((0, 0, 0), 1024.0 * 1024.0)];
/// Number of bytes in a real MB, for a later version that may divide correctly.
const MB: f64 = 1e6;
/// Share by which rate and operations of a row may differ because of rounding. The units differ by 2.4 %.
const AGREES: f64 = 0.01;
/// The first version whose rates include all threads of a row.
//= KDiskMark 3.2.0, benchmark.cpp: `jobs.takeAt(i)` takes every second job of the list that it shortens; 3.3.0
//= asks fio for the sum, `--group_reporting`
const COUNTS_THREADS: Version = (3, 3, 0);

/// The first version whose times are those of completion, without the time to submit.
//= KDiskMark 3.1.4, benchmark.cpp: "lat_ns"; 3.2.0: "clat_ns"
const COMPLETION_ONLY: Version = (3, 2, 0);
/// Lowest share of the requested depth that must be in flight if times are of whole operations: fio submits the next
/// operation when one is completed.
const IN_FLIGHT: f64 = 0.8;

type Version = (u32, u32, u32);

/// The version in the heading of a report.
fn version(line: &str) -> Option<&str> {
    let (version, _) = line.trim().strip_prefix(NAME)?.split_once(')')?;
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

fn is_without_version(line: &str) -> bool {
    line.trim_start().starts_with(WITHOUT_VERSION)
}

/// Number of lines after a heading without a version within which the report must begin.
const HEAD_LINES: usize = 8;

/// Whether a line is a row of KDiskMark, which writes `1 MiB` where CrystalDiskMark writes `1MiB`.
fn is_row(line: &str) -> bool {
    line.split_whitespace().nth(2).is_some_and(|unit| unit.ends_with("iB"))
}

fn parts(version: &str) -> Version {
    let mut numbers = version.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
}

#[derive(Default)]
struct Reader {
    version: String,
    does: Option<Does>,
    /// The kinds of operations whose sections have begun.
    done: Vec<Does>,
    /// Whether the line with the operating system was read; only a comment may follow it.
    has_system: bool,
    rows: Vec<(u64, DiskRow)>,
    test: Test,
    target: String,
    /// Whether each figure is the mean of the runs, and not of the best run.
    means: bool,
    zero: usize,
    mixed: usize,
    threaded: usize,
    found: Found,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reader = Reader::default();
    let used = section.up_to(|Line { number, text, .. }, used| {
        let is_next = used > 0 && (version(text).is_some() || is_without_version(text));
        !is_next && reader.takes(number, text.trim_end())
    });
    Ok(Found { used: Some(used), ..reader.finish(section.line)? })
}

impl Reader {
    /// Reads a line; `false` if it follows the report.
    fn takes(&mut self, line: u64, text: &str) -> bool {
        if let Some(version) = version(text) {
            version.clone_into(&mut self.version);
        } else if is_without_version(text) {
            self.found.notes.at(line, "the report has no version");
        } else if let Some(does) = section(text) {
            // A second section of the same kind belongs to another run, whose heading is missing.
            if self.done.contains(&does) {
                return false;
            }
            self.done.push(does);
            self.does = Some(does);
        } else if let Some(result) = lines::Result::of(text).filter(|_| self.rows.len() < MOST_ROWS)
        {
            self.row(line, &result);
        } else if let Some(test) = Test::of(text) {
            self.test = test;
        } else if let Some(profile) = value(text, "Profile") {
            self.means = profile.starts_with("Default");
        } else if let Some(target) = value(text, "Target") {
            // A line such as `/ 4% (31.72/748.08 GiB) [model]`.
            let path = target.split_whitespace().take_while(|word| !word.ends_with('%'));
            self.target = path.collect::<Vec<_>>().join(" ");
        } else if passed(text) {
            self.has_system |= value(text, "OS").is_some();
        } else if self.has_system || !self.rows.is_empty() && is_prose(text) {
            // After the rows only known lines about the system follow.
            return false;
        } else {
            self.found.notes.strange(line, text);
        }
        true
    }

    fn row(&mut self, line: u64, result: &lines::Result) {
        let Some(does) = result.does.or(self.does) else {
            let what = "left out: no heading says whether it reads or writes";
            return self.found.notes.at(line, what);
        };
        if result.rate <= 0.0 {
            self.zero += 1;
        } else if does == Does::Mix {
            self.mixed += 1;
        } else if result.threads.is_none_or(|n| n > 1) && parts(&self.version) < COUNTS_THREADS {
            self.threaded += 1;
        } else {
            let mut row = DiskRow::new(result.access, does, result.rate);
            row.block = result.block;
            row.depth = result.depth;
            row.threads = result.threads;
            row.operations = result.operations;
            row.mean = result.mean;
            self.rows.push((line, row));
        }
    }

    fn finish(mut self, line: u64) -> Result<Found, String> {
        self.say_left_out(line);
        if self.rows.is_empty() {
            let why = self.found.notes.last();
            return Err(why.unwrap_or_else(|| "it has no rows".to_owned()));
        }
        let unit = self.convert(line)?;
        self.drop_partial_times(line);
        if unit != MB {
            let what = format!(
                "its MB/s are {unit} bytes in a second, not 1000000 as it says: converted",
            );
            self.found.notes.at(line, what);
        }
        if self.means && self.test.loops.is_some_and(|loops| loops > 1) {
            self.found.notes.at(line, "each figure is the mean of the runs, not the best of them");
        }
        let disk = Disk {
            target: self.target,
            file: self.test.file,
            best_of: self.test.loops.filter(|_| !self.means),
            rows: self.rows.into_iter().map(|(_, row)| row).collect(),
            ..Disk::default()
        };
        self.found.tool = Tool {
            name: "KDiskMark".to_owned(),
            version: Some(self.version).filter(|version| !version.is_empty()),
        };
        self.found.results = vec![outcome("", line, Measured::Disk(disk))];
        Ok(self.found)
    }

    /// Adds notes about the rows that are left out, and why.
    fn say_left_out(&mut self, line: u64) {
        let reasons = [
            (self.zero, "were not measured"),
            (
                self.mixed,
                "are of reads and writes: KDiskMark weights both rates by their shares, instead of adding them",
            ),
            (
                self.threaded,
                "have several threads, of which KDiskMark before 3.3.0 counts only a part",
            ),
        ];
        for (count, why) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            self.found.notes.at(line, format!("rows left out: {count}, which {why}"));
        }
    }

    /// Removes times that cannot be those of whole operations.
    fn drop_partial_times(&mut self, line: u64) {
        if !self.version.is_empty() && parts(&self.version) < COMPLETION_ONLY {
            return;
        }
        let mut dropped = 0;
        for (_, row) in &mut self.rows {
            if is_whole(row) == Some(false) {
                row.mean = None;
                dropped += 1;
            }
        }
        if dropped > 0 {
            let what = format!(
                "times left out: {dropped}, which are of completion alone: the time to submit was most of an operation",
            );
            self.found.notes.at(line, what);
        }
    }

    /// Number of bytes in the report's MB: by its version, or else by the operations per second.
    fn unit(&self) -> Result<f64, String> {
        let agree = |unit: f64| {
            let mut rows = self.rows.iter();
            rows.all(|(_, row)| agrees(row, unit) != Some(false))
        };
        if self.version.is_empty() {
            let is_checked = self.rows.iter().any(|(_, row)| agrees(row, MB).is_some());
            let units = UNITS.iter().map(|(_, unit)| *unit);
            let mut units = units.chain([MB]).filter(|unit| is_checked && agree(*unit));
            return units.next().ok_or_else(|| {
                "it has no version, and no operations that prove the unit of its rates".to_owned()
            });
        }
        let version = parts(&self.version);
        let of_version = UNITS.iter().find(|(since, _)| version >= *since);
        let expected = of_version.map_or(MB, |(_, unit)| *unit);
        let is_right = !agree(expected) && agree(MB);
        Ok(if is_right { MB } else { expected })
    }

    /// Converts the rates; returns the number of bytes in the report's MB.
    fn convert(&mut self, line: u64) -> Result<f64, String> {
        let unit = self.unit()?;
        for (at, row) in &mut self.rows {
            if agrees(row, unit) == Some(false) {
                let what = "the rate does not agree with operations and payload of the row";
                self.found.notes.at(*at, what);
            }
            row.bytes_per_sec = positive(row.bytes_per_sec * unit).unwrap_or(row.bytes_per_sec);
        }
        let checked = self.rows.iter().any(|(_, row)| row.operations.is_some());
        if !checked {
            let what =
                "the unit of its rates is that of its version: no row has operations to check it";
            self.found.notes.at(line, what);
        }
        Ok(unit)
    }
}

/// Whether the rate of a row, in units of `unit` bytes, is its operations times their payload; `None` if a figure is
/// missing, or has too few digits.
fn agrees(row: &DiskRow, unit: f64) -> Option<bool> {
    let Bytes(block) = row.block?;
    let by_operations = row.operations? * block as f64;
    // Rates are rounded to three decimals, operations to one.
    let rounding = 0.0005 / row.bytes_per_sec + 0.05 / row.operations?;
    if rounding > AGREES {
        return None;
    }
    let share = row.bytes_per_sec * unit / by_operations;
    Some((share - 1.0).abs() <= AGREES)
}

/// Whether at least as many operations were in flight, by rate and time, as whole operations need; `None` if unknown.
fn is_whole(row: &DiskRow) -> Option<bool> {
    let requested = f64::from(row.depth?) * f64::from(row.threads?);
    let in_flight = row.operations? * row.mean?.secs();
    Some(in_flight >= requested * IN_FLIGHT)
}
