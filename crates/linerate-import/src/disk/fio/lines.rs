//! The lines of fio's normal output.

use linerate_record::reported::{Access, DiskRow, Does};
use linerate_units::{Bytes, Nanos};

use super::options::Options;
use super::{Pattern, Percentiles, Range, SYNCHRONOUS};
use crate::reading::{figure, lookup, positive, size, time};

/// Nanoseconds of the units of times.
const UNITS: &[(&str, f64)] = &[("nsec", 1.0), ("usec", 1e3), ("msec", 1e6), ("sec", 1e9)];
/// Factors of the suffixes of counts.
const COUNTS: &[(char, f64)] = &[('k', 1e3), ('K', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];
/// Starts of lines that have nothing that is read here.
const PASSED: &[&str] = &[
    "bw (",
    "bw(",
    "iops ",
    "lat (",
    "cpu ",
    "IO depths",
    "submit ",
    "complete ",
    "issued",
    "latency ",
    "errors ",
    "Jobs: ",
    "...",
    "Description ",
    "note: ",
    "READ: ",
    "WRITE: ",
    "TRIM: ",
    "MIXED: ",
    "fsync/fdatasync",
];
/// Heads of percentiles, and whether they are of whole operations.
const PERCENTILES: &[(&str, bool)] = &[("clat percentiles (", false), ("lat percentiles (", true)];
/// The kinds of operations by the word that begins their results.
const KINDS: &[(&str, Option<Does>)] = &[
    ("read", Some(Does::Read)),
    ("write", Some(Does::Write)),
    ("mixed", Some(Does::Mix)),
    ("trim", None),
];

/// A line that describes a job before it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) group: u64,
    /// The word of the option `rw`.
    pub(super) rw: String,
    /// Payload of reads and of writes, where each has one.
    pub(super) blocks: [Option<Bytes>; 2],
    pub(super) engine: String,
    pub(super) depth: Option<u32>,
}

/// Lines that a description takes at the most, where it was wrapped on its way.
const WRAPPED: usize = 3;

impl Spec {
    /// Whether a description begins at this line.
    pub(super) fn begins(line: &str) -> bool {
        line.contains(": (g=") && line.contains("): rw=")
    }

    /// The description at the start of a text, with the number of its lines, and whether it is whole.
    pub(super) fn at(text: &str) -> Option<(Self, usize, bool)> {
        let first = text.lines().next().filter(|line| Self::begins(line))?;
        let mut joined = String::new();
        for (count, line) in text.lines().take(WRAPPED).enumerate() {
            joined.push_str(line.trim_end());
            joined.push(' ');
            if let Some(spec) = Self::of(&joined, true) {
                return Some((spec, count + 1, true));
            }
        }
        Self::of(first, false).map(|spec| (spec, 1, false))
    }

    /// Of `seq: (g=0): rw=read, bs=(R) 4096B-4096B, .., ioengine=libaio, iodepth=4`; of a description whose end is missing,
    /// the group and the option `rw`.
    pub(super) fn of(line: &str, is_whole: bool) -> Option<Self> {
        let (name, rest) = line.split_once(": (g=")?;
        let (group, rest) = rest.split_once("): rw=")?;
        let (rw, rest) = rest.split_once(if is_whole { ", bs=" } else { "," })?;
        let (blocks, engine, depth) = if is_whole {
            let (blocks, rest) = rest.split_once(", ioengine=")?;
            let (engine, depth) = rest.split_once(", iodepth=")?;
            (blocks_of(blocks), engine, depth)
        } else {
            ([None, None], "", "")
        };
        Some(Self {
            name: name.to_owned(),
            group: group.parse().ok()?,
            rw: rw.to_owned(),
            blocks,
            engine: engine.to_owned(),
            depth: depth.trim().parse().ok(),
        })
    }

    /// Of the options of a command, where the line is missing.
    pub(super) fn given(options: &Options<'_>) -> Option<Self> {
        let block = options.block().filter(|_| !options.of_several_sizes());
        Some(Self {
            name: String::new(),
            group: 0,
            rw: options.rw()?.to_owned(),
            blocks: [block, block],
            engine: options.engine().to_owned(),
            depth: options.depth(),
        })
    }

    pub(super) fn pattern(&self) -> Option<Pattern> {
        Pattern::of(&self.rw)
    }

    fn is_synchronous(&self) -> bool {
        SYNCHRONOUS.contains(&self.engine.as_str())
    }

    /// Operations in flight.
    pub(super) fn depth(&self) -> Option<u32> {
        if self.is_synchronous() {
            return Some(1);
        }
        self.depth
    }

    /// Operations in flight that were asked, if the engine keeps fewer.
    pub(super) fn ignored(&self) -> Option<u32> {
        self.depth.filter(|depth| self.is_synchronous() && *depth > 1)
    }
}

/// Of `(R) 4096B-4096B, (W) ..` and of `4K-4K/4K-4K/4K-4K`.
fn blocks_of(text: &str) -> [Option<Bytes>; 2] {
    let mut ranges = text.split([',', '/']).map(|range| {
        let range = range.trim().trim_start_matches(|c| "(RWT) ".contains(c));
        let (least, most) = range.split_once('-')?;
        let (least, most) = (size(least)?, size(most)?);
        (least == most && least.0 > 0).then_some(least)
    });
    let mut next = || ranges.next().flatten();
    [next(), next()]
}

/// The line that begins the results of a job, or of a group of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) group: u64,
    /// Jobs; 0 if the line is missing.
    pub(super) jobs: u32,
    pub(super) error: i64,
}

impl Head {
    /// Of `seq: (groupid=0, jobs=1): err= 0: pid=8954: ..`.
    pub(super) fn of(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once(": (groupid=")?;
        let (group, rest) = rest.split_once(", jobs=")?;
        let (jobs, rest) = rest.split_once("): err=")?;
        let error = rest.split([':', '(']).next()?.trim();
        Some(Self {
            name: name.to_owned(),
            group: group.parse().ok()?,
            jobs: jobs.parse().ok()?,
            error: error.parse().ok()?,
        })
    }
}

/// The results of one kind of operation.
#[derive(Debug, Clone, Default)]
pub(super) struct Kind {
    /// The kind; `None` if it is not read here.
    pub(super) does: Option<Does>,
    /// Bytes in a second.
    rate: f64,
    operations: Option<f64>,
    seconds: Option<f64>,
    slat: Times,
    lat: Times,
    clat: Times,
    percentiles: Percentiles,
    /// Nanoseconds of the unit of the percentiles; 0 before their head.
    unit: f64,
    /// Whether the percentiles are of whole operations.
    whole: bool,
    /// Whether the lines that follow have percentiles to read.
    reading: bool,
}

/// The shortest, mean and longest time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    least: Option<f64>,
    mean: Option<f64>,
    most: Option<f64>,
}

impl Kind {
    /// Of `  read: IOPS=857, BW=858MiB/s (900MB/s)(1720MiB/2005msec)`, and of fio 2's
    /// `  read : io=1720.0MB, bw=878490KB/s, iops=857, runt=  2005msec`.
    pub(super) fn of(line: &str) -> Option<Self> {
        let (word, rest) = line.trim_start().split_once(':')?;
        let does = lookup(KINDS, word.trim_end())?;
        let rate = match value(rest, "BW=") {
            Some(rate) => rate_of(rate)?,
            None => old_rate(value(rest, "bw=")?)?,
        };
        let operations = ["IOPS=", "iops="].iter().find_map(|key| value(rest, key));
        let runtime = value(rest, "runt=").or_else(|| rest.rsplit_once('/').map(|(_, end)| end))?;
        Some(Self {
            operations: operations.and_then(count).and_then(positive),
            seconds: milliseconds(runtime),
            does,
            rate,
            ..Self::default()
        })
    }

    /// Of the sum over all jobs, `  READ: bw=858MiB/s (900MB/s), .., io=1720MiB (1804MB), run=2005-2005msec`, and of
    /// fio 2's `   READ: io=1720.0MB, aggrb=878490KB/s, minb=.., maxb=.., mint=2005msec, maxt=2005msec`.
    pub(super) fn summed(line: &str) -> Option<Self> {
        let (word, rest) = line.trim_start().split_once(": ")?;
        let is_sum = |name: &str| word.chars().eq(name.chars().map(|c| c.to_ascii_uppercase()));
        let (_, does) = KINDS.iter().find(|(name, _)| is_sum(name))?;
        let rate = match value(rest, "aggrb=") {
            Some(rate) => old_rate(rate)?,
            None => rate_of(value(rest, "bw=")?)?,
        };
        let longest = value(rest, "run=").and_then(|range| Some(range.split_once('-')?.1));
        let longest = longest.or(value(rest, "maxt="));
        let seconds = longest.and_then(milliseconds);
        Some(Self { does: *does, rate, seconds, ..Self::default() })
    }

    /// Takes a line with times; `false` if it is none.
    pub(super) fn takes(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        if line.contains("percentiles (") {
            return self.heads_percentiles(line);
        }
        if let Some(rest) = line.strip_prefix('|') {
            return self.takes_percentiles(rest);
        }
        let Some((word, rest)) = line.split_once('(').filter(|_| line.contains("min=")) else {
            return false;
        };
        let times = Times::of(rest);
        match (word.trim(), times) {
            ("lat", Some(times)) => self.lat = times,
            ("clat", Some(times)) => self.clat = times,
            ("slat", Some(times)) => self.slat = times,
            _ => return false,
        }
        true
    }

    /// Takes the head of percentiles. Those of some operations alone are passed over.
    fn heads_percentiles(&mut self, line: &str) -> bool {
        let found =
            PERCENTILES.iter().find_map(|(word, whole)| Some((line.strip_prefix(word)?, *whole)));
        self.reading = found.is_some();
        if let Some((unit, whole)) = found {
            self.unit = unit_of(unit).unwrap_or_default();
            self.whole = whole;
            self.percentiles = Percentiles::default();
        }
        !self.reading || self.unit > 0.0
    }

    /// Of ` 99.00th=[ 1434], 99.50th=[ 3589],`.
    fn takes_percentiles(&mut self, text: &str) -> bool {
        if !self.reading {
            return true;
        }
        for part in text.split(']') {
            let Some((name, value)) = part.split_once("th=[") else {
                continue;
            };
            let name = name.trim_start_matches([',', ' ']);
            let value = count(value);
            match name {
                "50.00" => self.percentiles.typical = value,
                "99.00" => self.percentiles.p99 = value,
                "99.90" => self.percentiles.p999 = value,
                _ => {}
            }
        }
        self.unit > 0.0
    }

    /// The row, of operations in this order.
    pub(super) fn row(&self, access: Access, does: Does) -> Option<DiskRow> {
        let mut row = DiskRow::new(access, does, positive(self.rate)?);
        row.operations = self.operations;
        row.seconds = self.seconds;
        let whole = if self.lat.mean.is_some() { self.lat } else { self.clat };
        row.mean = whole.mean.and_then(|t| time(t, 1.0));
        row.most = whole.most.and_then(|t| time(t, 1.0));
        row.submit = self.slat.mean.and_then(|t| time(t, 1.0));
        let of = if self.whole { self.lat } else { self.clat };
        let range =
            Range { least: of.least.map(|t| t / self.unit), most: of.most.map(|t| t / self.unit) };
        let samples = self.operations.zip(self.seconds).map(|(rate, time)| rate * time);
        let samples = samples.unwrap_or_default();
        [row.typical, row.p99, row.p999] = self.percentiles.of(range, samples, self.unit);
        Some(row)
    }
}

impl Times {
    /// Of `usec): min=28, max=582, avg=52.90, stdev=26.00`, in nanoseconds.
    fn of(text: &str) -> Option<Self> {
        let unit = unit_of(text)?;
        let of = |key: &str| Some(count(value(text, key)?)? * unit);
        Some(Self { least: of("min="), mean: of("avg=").and_then(positive), most: of("max=") })
    }
}

/// The mean time of `    sync (msec): min=4, max=61, avg= 8.43, stdev= 3.20`, a line about flushes.
pub(super) fn flush(line: &str) -> Option<Nanos> {
    let times = Times::of(line.trim_start().strip_prefix("sync (")?)?;
    times.mean.and_then(|mean| time(mean, 1.0))
}

/// Flushes for each write of `     issued rwts: total=0,8192,0,8191 short=0,0,0,0`; `None` if there are none.
pub(super) fn flushed(line: &str) -> Option<f64> {
    let rest = line.trim_start().strip_prefix("issued rwt")?;
    let mut counts = rest.split_once("total=")?.1.split([',', ' ']).map(figure);
    let (writes, flushes) = (counts.nth(1)??, counts.nth(1)??);
    positive(flushes / writes)
}

/// Jobs of `Starting 4 processes`, `Starting 1 thread and 2 processes`.
pub(super) fn started(line: &str) -> Option<u64> {
    let words = line.trim().strip_prefix("Starting ")?.split(' ');
    let counts = words.filter_map(|word| word.parse::<u32>().ok());
    let sum: u64 = counts.map(u64::from).sum();
    (sum > 0).then_some(sum)
}

/// Whether a line is one of those that have nothing to read.
pub(super) fn passed(line: &str) -> bool {
    let line = line.trim();
    let starts = PASSED.iter().any(|start| line.starts_with(start));
    starts || line.contains(": Laying out IO file") || line.contains(": Jobs: ")
}

/// The text behind a key, up to the next comma, blank or bracket.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    let rest = rest.trim_start();
    let end = rest.find([',', ' ', '(', ')', ';']);
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The unit before the first bracket closes, in nanoseconds.
fn unit_of(text: &str) -> Option<f64> {
    let (unit, _) = text.split_once(')')?;
    lookup(UNITS, unit.trim())
}

/// A count with a decimal suffix: `12.9k`.
fn count(text: &str) -> Option<f64> {
    let text = text.trim();
    let last = text.chars().last()?;
    match lookup(COUNTS, last) {
        Some(factor) => Some(figure(&text[..text.len() - 1])? * factor),
        None => figure(text),
    }
}

/// A rate in bytes: `858MiB/s`, or `900MB/s` (10^6) where the user asked for units of 1000.
fn rate_of(text: &str) -> Option<f64> {
    let amount = text.strip_suffix("B/s")?;
    if amount.ends_with('i') {
        return size(&format!("{amount}B")).map(|bytes| bytes.0 as f64);
    }
    count(amount)
}

/// A rate of fio 2: `878490KB/s`, which are KiB.
//= fio 2.2, HOWTO, "kb_base": "1024: Use 1024 ... to denote a kilobyte", the default
fn old_rate(text: &str) -> Option<f64> {
    size(text.strip_suffix("/s")?).map(|bytes| bytes.0 as f64)
}

/// Seconds of `2005msec)`.
fn milliseconds(text: &str) -> Option<f64> {
    let (number_of, _) = text.split_once("msec")?;
    positive(figure(number_of)?).map(|ms| ms / 1e3)
}
