//! fio, the flexible I/O tester: its JSON and its normal output.
//!
//! Mean and longest times are those of whole operations (fio's `lat`). Percentiles are those of completion (`clat`),
//! the only ones that fio prints by default.

mod document;
mod job;
mod json;
mod lines;
mod options;
mod text;

pub(crate) use json::JSON;
pub(crate) use text::TEXT;

#[cfg(test)]
mod tests;

use linerate_record::reported::{Access, DiskRow, Does, Tool};
use linerate_units::Nanos;

use crate::reading::{FOR_P99, FOR_P999, time};

/// Share by which operations in flight may exceed the requested depth. Beyond that the options are doubted. Some
/// excess is normal: mean time and rate are of slightly different spans.
const IN_FLIGHT_SLACK: f64 = 1.1;

/// The program, from its version such as `fio-3.33`.
fn tool(version: &str) -> Tool {
    let number = version.strip_prefix("fio-").unwrap_or(version);
    Tool { name: "fio".to_owned(), version: (!number.is_empty()).then(|| number.to_owned()) }
}

/// Percentiles of completion, in units of `unit` nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Percentiles {
    typical: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
}

/// The shortest and the longest of the times, in the unit of the percentiles.
#[derive(Debug, Clone, Copy, Default)]
struct Range {
    least: Option<f64>,
    most: Option<f64>,
}

impl Percentiles {
    /// The percentiles of `samples` times. One that needs more samples is `None`. Others are limited to the range,
    /// which the buckets of fio's histogram can exceed.
    fn of(self, range: Range, samples: f64, unit: f64) -> [Option<Nanos>; 3] {
        let within = |value: Option<f64>, needs: f64| {
            let value = value.filter(|_| samples >= needs)?;
            let value = range.most.map_or(value, |most| value.min(most));
            let value = range.least.map_or(value, |least| value.max(least));
            time(value, unit)
        };
        [within(self.typical, 1.0), within(self.p99, FOR_P99), within(self.p999, FOR_P999)]
    }
}

/// What a value of the option `rw` means: whether places are random, and whether it reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pattern {
    random: bool,
    reads: bool,
    writes: bool,
}

impl Pattern {
    /// Reads a value such as `randread`, `rw` or `read:8`; `None` for trims and unknown words.
    fn of(word: &str) -> Option<Self> {
        let word = word.split(':').next()?.trim();
        let (random, kind) = match word.strip_prefix("rand") {
            Some(kind) => (true, kind),
            None => (false, word),
        };
        let (reads, writes) = match kind {
            "read" => (true, false),
            "write" => (false, true),
            "rw" | "readwrite" => (true, true),
            _ => return None,
        };
        Some(Self { random, reads, writes })
    }

    fn access(self) -> Access {
        if self.random { Access::Random } else { Access::Sequential }
    }
}

/// Engines that keep one operation in flight, whatever depth was requested.
//= fio, HOWTO, "iodepth": "Note that increasing iodepth beyond 1 will not affect synchronous ioengines"
const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];

/// Mean number of operations of a job in flight: rate times mean time (Little's law).
fn in_flight(rows: &[DiskRow]) -> f64 {
    let of = |row: &DiskRow| Some(row.operations? * row.mean?.secs());
    let sum = |mixed: bool| -> f64 {
        let rows = rows.iter().filter(|row| (row.does == Does::Mix) == mixed);
        rows.filter_map(of).sum()
    };
    sum(false).max(sum(true))
}
