//! GNU dd: the lines that it prints at its end.

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured};
use linerate_units::Bytes;

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{self, Line, Notes, command_of, figure, is_digits, positive, quoted, size};

/// The format of dd's last lines.
pub(crate) static DD: Format = Format {
    id: "dd",
    label: "dd",
    versions: "coreutils 5 to 9, busybox",
    evidence: "run here: coreutils 9.1",
    unknown: "Whether it read or wrote, with what payload, and whether the cache was bypassed or the disk waited for, is known \
              only from the command line.",
    starts: |at| {
        at.line.contains('+') && is_records(at.line)
            || at.line.contains(" copied, ") && copied(at.line).is_some()
    },
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

/// Paths of devices that are not disks.
const NOT_DISKS: &[&str] = &["/dev/zero", "/dev/null", "/dev/urandom", "/dev/random", "/dev/full"];
/// Words of `conv=` after which dd waits for the disk once, at its end.
const WAITS: &[&str] = &["fdatasync", "fsync"];
/// Words of `oflag=` with which each write waits for the disk.
const WAITS_EACH: &[&str] = &["dsync", "sync"];
/// Most lines of an output: one of progress, two of records, one of truncated records, one with the sum.
const LINES: usize = 5;

fn is_records(line: &str) -> bool {
    records(line, "in") || records(line, "out")
}

/// Whether an output continues at `rest`: each of its lines, taken alone, would begin a new one.
fn goes_on(before: &str, rest: &str) -> bool {
    let next = rest.lines().next().unwrap_or_default();
    let Some(last) = before.lines().next_back() else {
        return false;
    };
    // A line of progress may precede the records.
    let is_progress = || records(next, "in") && !before.lines().rev().take(LINES).any(is_records);
    is_records(last) && !records(next, "in") || copied(last).is_some() && is_progress()
}

/// Whether a line is like `64+0 records in`.
fn records(line: &str, way: &str) -> bool {
    let counted = line.trim().split_once('+').and_then(|(whole, rest)| {
        let (partial, rest) = rest.split_once(" records ")?;
        Some(is_digits(whole) && is_digits(partial) && rest.trim() == way)
    });
    counted == Some(true)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let (mut used, mut total, mut has_records) = (0, None, false);
    for Line { text: line, end, .. } in section.lines().take(LINES) {
        let sum = copied(line);
        if total.is_some() && !is_records(line) && !has_records {
            break;
        }
        used = end;
        has_records |= is_records(line);
        total = sum.or(total);
        if has_records && sum.is_some() {
            break;
        }
    }
    let (bytes, seconds, comma) =
        total.ok_or("the line with bytes and seconds is missing, or not in English")?;
    let rate = positive(bytes / seconds).ok_or("nothing was copied")?;
    let mut notes = Notes::default();
    let mut say = |what: &str| notes.at(section.line, what);
    if comma {
        say("its decimal comma is that of a locale");
    }
    let options = command_of(section, |program| program == "dd").map(Options::of);
    let mut disk = if let Some(options) = &options {
        options.disk(bytes, seconds)?
    } else {
        say("whether it read or wrote is unknown: the command is missing in the line before it");
        reading::disk(DiskRow::new(Access::Unknown, Does::Mix, rate))
    };
    disk.file = Some(Bytes(bytes as u64));
    for row in &mut disk.rows {
        row.seconds = Some(seconds);
        if row.does == Does::Write && disk.direct == Some(false) && row.flushed == Some(0.0) {
            say("it did not wait for the disk: bytes may still have been in memory at its end");
        }
    }
    Ok(Found::of("dd", used, notes).with("", section.line, Measured::Disk(disk)))
}

/// Bytes, seconds, and whether the seconds have a decimal comma. The line is like `67108864 bytes (67 MB, 64 MiB)
/// copied, 0.096316 s, 697 MB/s`.
fn copied(line: &str) -> Option<(f64, f64, bool)> {
    // dd overwrites the line of progress in place, with carriage returns.
    let line = line.trim_end().rsplit('\r').next()?;
    let (bytes, rest) = line.trim().split_once(" byte")?;
    let (_, rest) = rest.split_once(" copied, ")?;
    let (text, _) = rest.split_once(" s")?;
    // A comma within the number can only be a decimal comma: the next figure follows `s, `.
    let seconds = figure(&text.replace(',', "."))?;
    Some((figure(bytes)?, positive(seconds)?, text.contains(',')))
}

struct Options<'a> {
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Options<'a> {
    fn of(command: &'a str) -> Self {
        let words = command.split_whitespace();
        Self { words: words.filter_map(|word| word.split_once('=')).collect() }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        let mut found = self.words.iter().filter(|(name, _)| *name == key);
        found.next_back().map(|(_, value)| *value)
    }

    fn has(&self, keys: &[&str], flags: &[&str]) -> bool {
        let values = keys.iter().filter_map(|key| self.get(key));
        values.flat_map(|value| value.split(',')).any(|flag| flags.contains(&flag))
    }

    /// The result: so many bytes in so many seconds.
    fn disk(&self, bytes: f64, seconds: f64) -> Result<Disk, String> {
        let (does, access, target) = self.way()?;
        let mut row = DiskRow::new(access, does, bytes / seconds);
        row.block = self.block();
        row.depth = Some(1);
        row.threads = Some(1);
        // dd does one operation after the other.
        let count = row.block.and_then(|block| positive(bytes / block.0 as f64));
        row.operations = count.and_then(|count| positive(count / seconds));
        if does == Does::Write {
            row.flushed = self.flushed(count);
        }
        let flags: &[&str] = match does {
            Does::Read => &["iflag"],
            Does::Write => &["oflag"],
            Does::Mix => &["iflag", "oflag"],
        };
        let direct = flags.iter().all(|flag| self.has(&[flag], &["direct"]));
        Ok(Disk { target: target.to_owned(), direct: Some(direct), ..reading::disk(row) })
    }

    /// Flushes per write, if `count` writes were done; `None` if unknown.
    fn flushed(&self, count: Option<f64>) -> Option<f64> {
        if self.has(&["oflag"], WAITS_EACH) {
            return Some(1.0);
        }
        if self.has(&["conv"], WAITS) {
            return count.map(f64::recip);
        }
        Some(0.0)
    }

    /// Whether dd read, wrote or copied, and the file or disk.
    fn way(&self) -> Result<(Does, Access, &'a str), String> {
        let disk = |key: &str| self.get(key).filter(|path| !NOT_DISKS.contains(path));
        match (disk("if"), disk("of")) {
            (Some(_), Some(to)) => Ok((Does::Mix, Access::Copy, to)),
            (Some(from), None) => Ok((Does::Read, Access::Sequential, from)),
            (None, Some(to)) => Ok((Does::Write, Access::Sequential, to)),
            (None, None) => Err(format!("no disk is in its command: `{}`", quoted(&self.shown()))),
        }
    }

    fn shown(&self) -> String {
        let words = self.words.iter().map(|(key, value)| format!("{key}={value}"));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Payload of an operation: 512 bytes, if the user requested no size.
    //= GNU coreutils manual, dd: "the default is 512 bytes"
    fn block(&self) -> Option<Bytes> {
        let Some(text) = self.get("bs") else {
            let given = self.get("ibs").or(self.get("obs")).is_some();
            return (!given).then_some(Bytes(512));
        };
        // dd's `MB` and `kB` are decimal, its `M` and `MiB` binary.
        let decimal = text.ends_with('B') && !text.ends_with("iB");
        size(text).filter(|_| !decimal)
    }
}
