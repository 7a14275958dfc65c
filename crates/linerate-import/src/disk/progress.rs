//! Lines of progress of scp and rsync, each about one file. Those of rsync are part of its output.

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured, Outcome, Tool};
use linerate_units::Bytes;

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{self, command, figure, lookup, outcome, positive, quoted};

/// The format of scp's lines of progress.
pub(crate) static SCP: Format = Format {
    id: "scp",
    label: "scp, progress",
    versions: "OpenSSH 5 to 10",
    evidence: "published: form and units by the source of OpenSSH 9.8, progressmeter.c",
    unknown: "Which way a file went; of a file that was not finished the rate is that of the last seconds.",
    starts: |at| Line::of(at.line).is_some_and(|line| line.program == "scp"),
    read,
    extent: Extent::Own,
    ..Format::RESULTS
};

/// Factors of the units of rates, which are powers of 1024 in scp and in rsync.
//= OpenSSH 9.8, progressmeter.c: format_rate divides by 1024; rsync 3.5.0, progress.c: rate /= 1024.0
const RATES: &[(&str, f64)] = &[
    ("GB/s", 1_073_741_824.0),
    ("MB/s", 1_048_576.0),
    ("KB/s", 1024.0),
    ("kB/s", 1024.0),
    ("B/s", 1.0),
];
/// Factors of the units of sizes in lines of scp.
const SIZES: &[(&str, f64)] =
    &[("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("KB", 1024.0), ("B", 1.0), ("", 1.0)];
/// Largest number of files in one output.
const MOST: usize = 1_000;
/// Largest number of per cent signs in a line that are tried.
const MOST_SIGNS: usize = 16;
/// Longest line in bytes that can be one of progress.
const LONGEST: usize = 4_096;

/// A line of progress.
#[derive(Debug, Clone, PartialEq)]
struct Line<'a> {
    program: &'static str,
    /// Name of the file; empty if it is in the line before.
    name: &'a str,
    done: bool,
    /// Number of bytes that were copied.
    bytes: Option<f64>,
    /// Bytes per second.
    rate: f64,
    /// Seconds that the copy took, if it is finished.
    seconds: Option<f64>,
}

impl<'a> Line<'a> {
    /// Reads a line of scp, `disk.img   100% 4096MB 112.3MB/s   00:36`, or of rsync, `  4,294,967,296 100%
    /// 110.23MB/s    0:00:37 (xfr#1, to-chk=0/1)`.
    fn of(line: &'a str) -> Option<Self> {
        // The line is overwritten in place, with carriage returns.
        let line = line.trim_end().rsplit('\r').next()?.trim();
        if line.len() > LONGEST || !line.contains("B/s") {
            return None;
        }
        // A per cent sign may also be in the name, or left over from text that was overwritten.
        let signs = line.rmatch_indices('%').take(MOST_SIGNS);
        signs.into_iter().find_map(|(at, _)| Self::parts(&line[..at], &line[at + 1..]))
    }

    fn parts(before: &'a str, behind: &str) -> Option<Self> {
        let (left, share) = before.rsplit_once([' ', '\t'])?;
        let (left, done) = (left.trim(), share.parse::<u8>().ok()? == 100);
        let mut words = behind.split_whitespace();
        let first = words.next()?;
        let (program, name, bytes, rate) = match scaled(first, RATES) {
            // A line of rsync has the bytes before the per cent sign.
            Some(rate) => ("rsync", "", figure(&left.replace(',', "")), rate),
            None => ("scp", left, Some(scaled(first, SIZES)?), scaled(words.next()?, RATES)?),
        };
        let is_count = left.starts_with(|c: char| c.is_ascii_digit()) && !left.contains(' ');
        let time = words.next().and_then(clock)?;
        let done = done && words.next() != Some("ETA");
        (program == "scp" || is_count).then_some(Self {
            program,
            name,
            done,
            bytes,
            rate,
            seconds: positive(time).filter(|_| done),
        })
    }

    fn outcome(&self, line: u64) -> Option<Outcome> {
        let mut row = DiskRow::new(Access::Copy, Does::Mix, positive(self.rate)?);
        row.seconds = self.seconds;
        let file = self.bytes.filter(|_| self.done).map(|bytes| Bytes(bytes as u64));
        let disk = Disk { file, ..reading::disk(row) };
        Some(outcome(self.name, line, Measured::Disk(disk)))
    }
}

/// A number with one of these units, multiplied by the unit's factor.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '/');
    Some(figure(digits)? * lookup(units, &text[digits.len()..])?)
}

/// Seconds in a time such as `00:36` or `0:00:37`.
fn clock(text: &str) -> Option<f64> {
    let mut parts = text.split(':').map(figure);
    let first = parts.next()??;
    let seconds = parts.try_fold(first, |sum, part| Some(sum * 60.0 + part?))?;
    text.contains(':').then_some(seconds)
}

/// Whether a line is one of progress of rsync.
pub(super) fn is_rsync(text: &str) -> bool {
    Line::of(text).is_some_and(|line| line.program == "rsync")
}

/// Reads the lines of progress at the start of a section, up to any other line. The name of a file may be in the line
/// before.
pub(super) fn read(section: &Section<'_>) -> Result<Found, String> {
    let (mut found, mut open) = (Found::default(), None);
    let (mut short, mut program) = (0, "");
    let mut lines = section.lines().peekable();
    while let Some(reading::Line { number: at, text, end }) = lines.next() {
        let Some(line) = Line::of(text) else {
            let names = |next: &reading::Line<'_>| is_rsync(next.text);
            let is_first = program.is_empty() || text.trim().is_empty();
            if command(text).is_some() || !(is_first || lines.peek().is_some_and(names)) {
                break;
            }
            found.used = Some(end);
            continue;
        };
        found.used = Some(end);
        program = line.program;
        if !line.done {
            open = line.outcome(at);
            continue;
        }
        open = None;
        if line.seconds.is_none() {
            short += 1;
        } else if found.results.len() < MOST {
            found.results.extend(line.outcome(at));
        }
    }
    let mut say = |line: u64, what: String| found.notes.at(line, what);
    if short > 0 {
        let what = "files left out that took less than a second, so that their rates are too rough";
        say(section.line, format!("{what}: {short}"));
    }
    if let Some(open) = open {
        if found.results.is_empty() {
            let what = "the file was not finished: the rate is that of the last seconds";
            say(open.line, what.to_owned());
            found.results.push(open);
        } else {
            let name = quoted(&open.title);
            let what = format!("a file was not finished, and is left out: `{name}`");
            say(open.line, what);
        }
    }
    if found.results.is_empty() && found.notes.0.is_empty() {
        return Err("it has no line of progress".to_owned());
    }
    found.tool = Tool::named(program);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::helper::{disks, notes, rate};
    use crate::read;

    fn rates(text: &str) -> Vec<(u64, Option<f64>)> {
        let parsed = read(text.as_bytes()).unwrap();
        let disks = disks(&parsed).into_iter();
        disks.map(|disk| (rate(&disk.rows[0]), disk.rows[0].seconds)).collect()
    }

    #[test]
    fn rates_of_scp_and_rsync_are_in_units_of_1024() {
        let scp = "backup.tar          100% 4096MB 100.0MB/s   00:41    \n";
        assert_eq!(rates(scp), [(104_857_600, Some(41.0))]);
        let rsync = "vm.img\n  4,294,967,296 100%  100.00MB/s    0:01:01 (xfr#1, to-chk=0/1)\n";
        assert_eq!(rates(rsync), [(104_857_600, Some(61.0))]);
        let two = format!("$ scp a b host:\n{scp}c d.tar  100% 512KB 1.5MB/s   00:02\n");
        assert_eq!(rates(&two).len(), 2);
        assert_eq!(rates("x\t100%\t4096MB\t100.0MB/s\t00:41\n"), rates(scp));
    }

    #[test]
    fn a_file_that_is_not_finished_has_the_rate_of_its_last_line() {
        let text =
            "a.iso  12% 512MB  90.0MB/s   00:40 ETA\ra.iso  45% 1843MB 110.0MB/s   00:20 ETA\n";
        assert_eq!(rates(text), [(115_343_360, None)]);
        assert!(notes(&read(text.as_bytes()).unwrap()).contains("not finished"));
    }

    #[test]
    fn files_of_less_than_a_second_have_no_rate() {
        let text = "a.txt  100% 1234   1.2MB/s   00:00\n";
        assert!(read(text.as_bytes()).unwrap_err().to_string().contains("too rough"));
        let with = format!("{text}b.iso  100% 1024MB 102.4MB/s   00:10\n");
        assert_eq!(rates(&with), [(107_374_182, Some(10.0))]);
    }

    #[test]
    fn rsync_that_was_cut_has_its_lines_of_progress() {
        let text =
            "sending incremental file list\nvm.img\n  1,073,741,824  25%  100.00MB/s    0:00:31\n";
        assert_eq!(rates(text), [(104_857_600, None)]);
        let whole =
            format!("{text}\nsent 30,007,434 bytes  received 38 bytes  3,001,494.00 bytes/sec\n");
        assert_eq!(rates(&whole).len(), 1);
    }

    #[test]
    fn other_lines_are_no_progress() {
        for text in
            ["battery 100% full at 3 B/s\n", "50% 3 4\n", "a 100% 4096MB 112.3MiB/s 00:36\n"]
        {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
