//! What the name of a column tells about its cells.

use super::field::Stat;
use crate::reading::{MICRO, MILLI, SECOND, bytes, count, is_one_of, named, number};
use linerate_record::reported::Trip;

/// The kind of column that distinguishes the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Key {
    /// The operation on a disk, such as `read`.
    Operation,
    /// Number of streams at the same time.
    Streams,
    /// Payload of a message, in units of this many bytes.
    Size(f64),
    /// Payload of a message in a unit whose prefix may mean powers of 1000 or of 1024.
    UnclearSize,
}

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Key(Key),
    /// A time in units of this many nanoseconds; `None` if the name has no unit.
    Time(Stat, Option<f64>),
    /// A rate, with its unit.
    Rate(Unit),
    /// Messages per second, in units of this many.
    Messages(f64),
    /// Number of messages or round trips.
    Count,
    Unknown,
}

/// The unit of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Bits(f64),
    /// Letters in lower case only, so that it may be bits or bytes. The factor is that of the prefix.
    Unclear(f64),
    Missing,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether the name says that its times are whole or half round trips.
    pub(super) trip: Trip,
    /// Whether the name says that its rate counts both directions.
    pub(super) both: bool,
}

/// Longest name of a column, in bytes.
const MOST_NAME: usize = 64;

impl Column {
    pub(super) fn named(name: &str) -> Self {
        let words = words(name);
        let has = |names: &str| words.iter().any(|word| is_one_of(names, &word.to_lowercase()));
        let kind = if name.len() > MOST_NAME { Kind::Unknown } else { kind(&words) };
        let trip = match () {
            () if has("rtt roundtrip") || has("round") && has("trip") => Trip::Whole,
            () if has("half oneway") || has("one") && has("way") => Trip::Half,
            () => Trip::Unknown,
        };
        Self { name: name.to_owned(), kind, trip, both: has("both bidirectional bidir") }
    }

    pub(super) const fn is_key(&self) -> bool {
        matches!(self.kind, Kind::Key(_))
    }

    /// Whether the name of a size has a unit: `size` alone has none.
    pub(super) fn says_bytes(&self) -> bool {
        let words = words(&self.name);
        words.iter().any(|word| {
            let word = word.to_lowercase();
            word != "size" && named(KEYS, &word).is_some()
        })
    }

    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self.kind, Kind::Unknown)
    }

    pub(super) const fn is_figure(&self) -> bool {
        matches!(self.kind, Kind::Time(..) | Kind::Rate(_) | Kind::Messages(_))
    }

    /// Whether the column may have the time of all messages of a row, if another column has their number.
    pub(super) fn is_total(&self) -> bool {
        match self.kind {
            Kind::Time(Stat::Total, _) => true,
            // A rate in another column must prove that a time without a unit is in seconds.
            Kind::Time(Stat::Plain, unit) => {
                unit.is_none_or(|unit| unit == SECOND)
                    && self.trip == Trip::Unknown
                    && !self.name.to_lowercase().contains("lat")
            }
            _ => false,
        }
    }

    /// Whether a cell can be a value of this key column.
    pub(super) fn accepts(&self, cell: &str) -> bool {
        match self.kind {
            Kind::Key(Key::Size(_) | Key::UnclearSize) => bytes(cell).is_some(),
            Kind::Key(Key::Streams) => count(cell).is_some(),
            Kind::Key(Key::Operation) => number(cell).is_none() && !cell.is_empty(),
            _ => false,
        }
    }
}

/// The words of a name. A unit is one word: `gbit_per_s` becomes `gbit/s`.
fn words(name: &str) -> Vec<String> {
    let name = name.replace("_per_", "/").replace(" per ", "/");
    let parts = name.split(|c: char| c.is_whitespace() || "_()[]-:,#".contains(c));
    let mut words: Vec<String> = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        // `MB_s` is a rate, and not a time in seconds.
        let whole = words.last().map(|last| format!("{last}/{part}"));
        match whole.filter(|whole| rate_unit(whole).is_some()) {
            Some(whole) => {
                words.pop();
                words.push(whole);
            }
            None => words.push(part.to_owned()),
        }
    }
    words
}

const TIMES: &[(&str, f64)] = &[
    ("ns nsec nanoseconds", 1.0),
    ("us usec usecs \u{b5}s \u{3bc}s microseconds", MICRO),
    ("ms msec milliseconds", MILLI),
    ("s sec secs seconds", SECOND),
];

const STATS: &[(&str, Stat)] = &[
    ("avg average mean", Stat::Mean),
    ("std stddev stdev deviation sd mdev", Stat::Deviation),
    ("min minimum", Stat::Least),
    ("max maximum", Stat::Most),
    ("median typical p50 50%", Stat::Typical),
    ("p99 99% 99th", Stat::P99),
    ("p999 p99.9 99.9% 99.9th", Stat::P999),
    ("total elapsed duration runtime", Stat::Total),
    ("jitter", Stat::Other),
];

/// Words that name a time, and words that name a rate.
const TIMED: &str = "latency lat time rtt delay t";
const RATED: &str = "bandwidth bw throughput rate speed goodput";

/// Keys of a table, with the words that name them.
const KEYS: &[(&str, Key)] = &[
    ("operation op direction", Key::Operation),
    ("streams connections flows", Key::Streams),
    ("words", Key::Size(8.0)),
    ("bytes byte size msgsize blocksize", Key::Size(1.0)),
    ("kib", Key::Size(1024.0)),
    ("mib", Key::Size(1_048_576.0)),
];

const COUNTS: &str = "count iterations iters samples repetitions reps repeats loops trips number n";
const MESSAGES: &str = "msg/s msgs/s messages/s msg/sec packets/s pps iops ops/s";

fn kind(words: &[String]) -> Kind {
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let has = |names: &str| lower.iter().any(|word| is_one_of(names, word));
    if let Some(unit) = words.iter().find_map(|word| rate_unit(word)) {
        return Kind::Rate(unit);
    }
    if has(MESSAGES) {
        return Kind::Messages(1.0);
    }
    let unit = lower.iter().rev().find_map(|word| named(TIMES, word));
    let stat = stat(&lower);
    if unit.is_some() || has(TIMED) || stat.is_some_and(|_| !has(RATED)) {
        return Kind::Time(stat.unwrap_or(Stat::Plain), unit);
    }
    if has(RATED) {
        return Kind::Rate(Unit::Missing);
    }
    if has(COUNTS) {
        return Kind::Count;
    }
    // The last word is the most specific: `size_kib`, `message size (words)`.
    let key = lower.iter().rev().find_map(|word| named(KEYS, word));
    match key {
        Some(Key::Size(_)) if has("kb mb gb") => Kind::Key(Key::UnclearSize),
        Some(_) if has("bits") => Kind::Unknown,
        Some(key) => Kind::Key(key),
        None => Kind::Unknown,
    }
}

fn stat(words: &[String]) -> Option<Stat> {
    let known = words.iter().find_map(|word| named(STATS, word));
    let is_percentile = |word: &String| {
        let digits = word.trim_start_matches('p').trim_end_matches('%').trim_end_matches("th");
        digits.len() < word.len() && number(digits).is_some()
    };
    known.or_else(|| words.iter().any(is_percentile).then_some(Stat::Other))
}

/// The unit in `gbit/s`, `MB/s`, `MiB/s`, `Mbps`; `None` if it is no unit of a rate.
fn rate_unit(word: &str) -> Option<Unit> {
    let (base, is_short) =
        match ["/s", "/sec", "/second"].iter().find_map(|end| word.strip_suffix(end)) {
            Some(base) => (base, false),
            None => (word.strip_suffix("ps")?, true),
        };
    let mut letters = base.chars();
    let prefix = letters.next()?;
    let rest = letters.as_str();
    let (is_binary, unit) = match rest.strip_prefix('i') {
        Some(unit) if unit != "t" && unit != "ts" => (true, unit),
        _ => (false, rest),
    };
    let (power, unit) = match prefix {
        'k' | 'K' => (1, unit),
        'm' | 'M' => (2, unit),
        'g' | 'G' => (3, unit),
        't' | 'T' => (4, unit),
        'b' | 'B' => (0, base),
        _ => return None,
    };
    let factor = if is_binary { 1024_f64.powi(power) } else { 1000_f64.powi(power) };
    // `kb/s` may be bits or bytes, `kbps` is always bits.
    let is_small = power > 0 && prefix.is_lowercase() && !is_short;
    match unit {
        "bit" | "bits" | "Bit" | "Bits" => Some(Unit::Bits(factor)),
        "B" | "byte" | "bytes" | "Byte" | "Bytes" => Some(Unit::Bits(factor * 8.0)),
        "b" => Some(if is_small || power == 0 && !is_short {
            Unit::Unclear(factor)
        } else {
            Unit::Bits(factor)
        }),
        _ => None,
    }
}
