//! Parsers for single lines of fio's normal output.

use linerate_record::reported::{Access, DiskRow, Does};
use linerate_units::{Bytes, Nanos};

use super::options::Options;
use super::{Pattern, Percentiles, Range, SYNCHRONOUS};
use crate::reading::{figure, lookup, positive, size, time};

/// Units of times, in nanoseconds.
const UNITS: &[(&str, f64)] = &[("nsec", 1.0), ("usec", 1e3), ("msec", 1e6), ("sec", 1e9)];
/// Suffixes of counts, with their factors.
const COUNTS: &[(char, f64)] = &[('k', 1e3), ('K', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];
/// Starts of lines that have nothing to read.
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
/// Starts of the line before percentiles, and whether these are of whole operations.
const PERCENTILES: &[(&str, bool)] = &[("clat percentiles (", false), ("lat percentiles (", true)];
/// The word that begins the results of each kind of operation; `None` for a kind that is not read.
const KINDS: &[(&str, Option<Does>)] = &[
    ("read", Some(Does::Read)),
    ("write", Some(Does::Write)),
    ("mixed", Some(Does::Mix)),
    ("trim", None),
];

/// A line with the settings of a job, printed before the job starts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) group: u64,
    /// Value of the option `rw`.
    pub(super) rw: String,
    /// Payload of reads and of writes; `None` if operations have several sizes.
    pub(super) blocks: [Option<Bytes>; 2],
    pub(super) engine: String,
    pub(super) depth: Option<u32>,
}

/// Largest number of lines of a description, if a terminal or a mail wrapped it.
const WRAPPED: usize = 3;

impl Spec {
    /// Whether a description of a job begins at this line.
    pub(super) fn begins(line: &str) -> bool {
        line.contains(": (g=") && line.contains("): rw=")
    }

    /// The description at the start of a text, the number of its lines, and whether it is complete.
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

    /// Reads `seq: (g=0): rw=read, bs=(R) 4096B-4096B, .., ioengine=libaio, iodepth=4`. If the end of the description
    /// is missing, only the group and the option `rw` are read.
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

    /// A description from the options of a command, if the line is missing.
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

    /// Operations that each job keeps in flight.
    pub(super) fn depth(&self) -> Option<u32> {
        if self.is_synchronous() {
            return Some(1);
        }
        self.depth
    }

    /// Operations in flight that were requested, if the engine keeps fewer; else `None`.
    pub(super) fn ignored(&self) -> Option<u32> {
        self.depth.filter(|depth| self.is_synchronous() && *depth > 1)
    }
}

/// Reads `(R) 4096B-4096B, (W) ..` or `4K-4K/4K-4K/4K-4K`: payload of reads and of writes.
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
    /// Number of jobs; 0 if the line is missing.
    pub(super) jobs: u32,
    pub(super) error: i64,
}

impl Head {
    /// Reads `seq: (groupid=0, jobs=1): err= 0: pid=8954: ..`.
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
    /// The kind of operation; `None` for one that is not read, such as trims.
    pub(super) does: Option<Does>,
    /// Bytes per second.
    rate: f64,
    operations: Option<f64>,
    seconds: Option<f64>,
    slat: Times,
    lat: Times,
    clat: Times,
    percentiles: Percentiles,
    /// Nanoseconds in the unit of the percentiles; 0 until the line before them is read.
    unit: f64,
    /// Whether the percentiles are of whole operations, and not of completion alone.
    whole: bool,
    /// Whether the next lines have percentiles to be read.
    reading: bool,
}

/// The shortest, mean and longest time of an operation, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    least: Option<f64>,
    mean: Option<f64>,
    most: Option<f64>,
}

impl Kind {
    /// Reads `  read: IOPS=857, BW=858MiB/s (900MB/s)(1720MiB/2005msec)`, or of fio 2 `  read : io=1720.0MB,
    /// bw=878490KB/s, iops=857, runt=  2005msec`.
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

    /// Reads the sum over all jobs: `  READ: bw=858MiB/s (900MB/s), .., io=1720MiB (1804MB), run=2005-2005msec`, or
    /// of fio 2 `   READ: io=1720.0MB, aggrb=878490KB/s, minb=.., maxb=.., mint=2005msec, maxt=2005msec`.
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

    /// Reads a line with times; `false` if the line has none.
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

    /// Reads the line before percentiles. Percentiles of only some of the operations are skipped.
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

    /// Reads a line of percentiles such as ` 99.00th=[ 1434], 99.50th=[ 3589],`.
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

    /// The row with these results; its operations are in the order `access`.
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
    /// Reads `usec): min=28, max=582, avg=52.90, stdev=26.00`, and converts the times to nanoseconds.
    fn of(text: &str) -> Option<Self> {
        let unit = unit_of(text)?;
        let of = |key: &str| Some(count(value(text, key)?)? * unit);
        Some(Self { least: of("min="), mean: of("avg=").and_then(positive), most: of("max=") })
    }
}

/// The mean time of a flush, from a line such as `    sync (msec): min=4, max=61, avg= 8.43, stdev= 3.20`.
pub(super) fn flush(line: &str) -> Option<Nanos> {
    let times = Times::of(line.trim_start().strip_prefix("sync (")?)?;
    times.mean.and_then(|mean| time(mean, 1.0))
}

/// Flushes per write, from a line such as `     issued rwts: total=0,8192,0,8191 short=0,0,0,0`; `None` if there are
/// none.
pub(super) fn flushed(line: &str) -> Option<f64> {
    let rest = line.trim_start().strip_prefix("issued rwt")?;
    let mut counts = rest.split_once("total=")?.1.split([',', ' ']).map(figure);
    let (writes, flushes) = (counts.nth(1)??, counts.nth(1)??);
    positive(flushes / writes)
}

/// Number of jobs in `Starting 4 processes` or `Starting 1 thread and 2 processes`.
pub(super) fn started(line: &str) -> Option<u64> {
    let words = line.trim().strip_prefix("Starting ")?.split(' ');
    let counts = words.filter_map(|word| word.parse::<u32>().ok());
    let sum: u64 = counts.map(u64::from).sum();
    (sum > 0).then_some(sum)
}

/// Whether a line has nothing to read.
pub(super) fn passed(line: &str) -> bool {
    let line = line.trim();
    let starts = PASSED.iter().any(|start| line.starts_with(start));
    starts || line.contains(": Laying out IO file") || line.contains(": Jobs: ")
}

/// The text after a key, up to the next comma, blank, semicolon or bracket.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    let rest = rest.trim_start();
    let end = rest.find([',', ' ', '(', ')', ';']);
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// Nanoseconds in the unit before the first closing bracket.
fn unit_of(text: &str) -> Option<f64> {
    let (unit, _) = text.split_once(')')?;
    lookup(UNITS, unit.trim())
}

/// Reads a count with a decimal suffix: `12.9k`.
fn count(text: &str) -> Option<f64> {
    let text = text.trim();
    let last = text.chars().last()?;
    match lookup(COUNTS, last) {
        Some(factor) => Some(figure(&text[..text.len() - 1])? * factor),
        None => figure(text),
    }
}

/// Bytes per second in a rate: `858MiB/s`, or `900MB/s` (10^6) if the user requested units of 1000.
fn rate_of(text: &str) -> Option<f64> {
    let amount = text.strip_suffix("B/s")?;
    if amount.ends_with('i') {
        return size(&format!("{amount}B")).map(|bytes| bytes.0 as f64);
    }
    count(amount)
}

/// Bytes per second in a rate of fio 2: `878490KB/s`, where KB are KiB.
//= fio 2.2, HOWTO, "kb_base": "1024: Use 1024 ... to denote a kilobyte", the default
fn old_rate(text: &str) -> Option<f64> {
    size(text.strip_suffix("/s")?).map(|bytes| bytes.0 as f64)
}

/// Seconds in a text such as `2005msec)`.
fn milliseconds(text: &str) -> Option<f64> {
    let (number_of, _) = text.split_once("msec")?;
    positive(figure(number_of)?).map(|ms| ms / 1e3)
}
