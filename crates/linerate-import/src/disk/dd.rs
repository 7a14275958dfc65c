//! GNU dd: what it says at its end.

use linerate_core::reported::{Access, Disk, DiskRow, Does, Tool};
use linerate_core::units::Bytes;

use super::figures::{number, outcome, say, size, some};
use crate::format::{Evidence, Format, Found, Holds, Section};
use crate::read::quoted;

/// The end of dd.
pub(crate) static DD: Format = Format {
    id: "dd",
    label: "dd",
    holds: Holds::Results,
    versions: "coreutils 5 to 9, busybox",
    evidence: &[Evidence::RunHere("coreutils 9.1")],
    unknown: "Which way it went, and whether the cache was bypassed, is known only from the command line.",
    starts,
    read,
};

/// Paths that are no disk.
const NOT_DISKS: &[&str] = &[
    "/dev/zero",
    "/dev/null",
    "/dev/urandom",
    "/dev/random",
    "/dev/full",
];
/// Words of `conv=` and `oflag=` after which dd waits for the disk.
const WAITS: &[&str] = &["fdatasync", "fsync", "dsync", "sync"];

fn starts(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    records(line, "in")
}

/// Whether it is `64+0 records in`.
fn records(line: &str, way: &str) -> bool {
    let counted = line.trim().split_once('+').and_then(|(whole, rest)| {
        let (partial, rest) = rest.split_once(" records ")?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        Some(digits(whole) && digits(partial) && rest.trim() == way)
    });
    counted == Some(true)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut used = 0;
    let mut total = None;
    for line in section.text.split_inclusive('\n').take(4) {
        used += line.len();
        total = copied(line);
        if total.is_some() {
            break;
        }
    }
    let (bytes, seconds, comma) =
        total.ok_or("the line with bytes and seconds is missing, or not in English")?;
    let rate = some(bytes / seconds).ok_or("nothing was copied")?;
    let command = section.command.ok_or(
        "nothing says whether it read or wrote: the command is missing in the line before it",
    )?;
    let options = Options::of(command);
    let (does, access, target) = options.way()?;
    let mut row = DiskRow::new(access, does, rate);
    row.seconds = Some(seconds);
    row.block = options.block();
    row.depth = Some(1);
    row.threads = Some(1);
    let mut found = Found {
        tool: Tool::named("dd"),
        used: Some(used),
        ..Found::default()
    };
    if comma {
        let what = "its decimal comma is that of a locale";
        say(&mut found.notes, section.line, what);
    }
    let direct = options.has(&["iflag", "oflag"], &["direct"]);
    if does == Does::Write && !direct && !options.has(&["conv", "oflag"], WAITS) {
        let what = "it did not wait for the disk: bytes may still have been in memory at its end";
        say(&mut found.notes, section.line, what);
    }
    let disk = Disk {
        target: target.to_owned(),
        file: Some(Bytes(bytes as u64)),
        best_of: None,
        direct: Some(direct),
        rows: vec![row],
    };
    found.results.push(outcome("", section.line, disk));
    Ok(found)
}

/// Bytes, seconds, and whether these have a decimal comma, of `67108864 bytes (67 MB, 64 MiB) copied, 0.096316 s, 697 MB/s`.
fn copied(line: &str) -> Option<(f64, f64, bool)> {
    // The line of progress is overwritten in place.
    let line = line.trim_end().rsplit('\r').next()?;
    let (bytes, rest) = line.trim().split_once(" byte")?;
    let (_, rest) = rest.split_once(" copied, ")?;
    let (text, _) = rest.split_once(" s")?;
    // A comma inside can only be that of a locale: the next figure stands behind `s, `.
    let seconds = number(&text.replace(',', "."))?;
    Some((number(bytes)?, some(seconds)?, text.contains(',')))
}

struct Options<'a> {
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Options<'a> {
    fn of(command: &'a str) -> Self {
        let words = command.split_whitespace();
        Self {
            words: words.filter_map(|word| word.split_once('=')).collect(),
        }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        let mut found = self.words.iter().filter(|(name, _)| *name == key);
        found.next_back().map(|(_, value)| *value)
    }

    fn has(&self, keys: &[&str], flags: &[&str]) -> bool {
        let values = keys.iter().filter_map(|key| self.get(key));
        values
            .flat_map(|value| value.split(','))
            .any(|flag| flags.contains(&flag))
    }

    /// The way that bytes went, and the file or disk.
    fn way(&self) -> Result<(Does, Access, &'a str), String> {
        let disk = |key: &str| self.get(key).filter(|path| !NOT_DISKS.contains(path));
        match (disk("if"), disk("of")) {
            (Some(_), Some(to)) => Ok((Does::Mix, Access::Copy, to)),
            (Some(from), None) => Ok((Does::Read, Access::Sequential, from)),
            (None, Some(to)) => Ok((Does::Write, Access::Sequential, to)),
            (None, None) => Err(format!(
                "no disk is in its command: `{}`",
                quoted(&self.shown())
            )),
        }
    }

    fn shown(&self) -> String {
        let words = self
            .words
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Payload of an operation: 512 bytes, if the user asked for nothing.
    //= GNU coreutils manual, dd: "the default is 512 bytes"
    fn block(&self) -> Option<Bytes> {
        let Some(text) = self.get("bs") else {
            let given = self.get("ibs").or(self.get("obs")).is_some();
            return (!given).then_some(Bytes(512));
        };
        // `MB` and `kB` of dd are decimal, and its `M` and `MiB` binary.
        let decimal = text.ends_with('B') && !text.ends_with("iB");
        size(text).filter(|_| !decimal)
    }
}
