//! Shows a load of this host's memory.

use linerate_facts::Gap;
use linerate_judge::model::{Estimate, MemoryLoad};
use linerate_plan::Access;
use linerate_units::Rate;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{exact, integer};
use super::super::words::{self, count};
use super::super::{Document, Tone};
use super::Probe;

/// The properties of a memory load, in addition to its rate.
#[derive(Serialize, JsonSchema)]
pub(super) struct MemoryOut<'a> {
    /// Kind of operation. A copy reads and writes each byte, and counts it once.
    access: Access,
    /// Size of each array. Each thread has one, or two for copies.
    array_bytes: u64,
    /// Size of the last cache before memory. Null if unknown.
    last_cache_bytes: Option<u64>,
    /// Highest rate that the memory modules allow the load: with the fewest and with the most channels that they
    /// may have. Null if unknown, or if caches may hold a part of the arrays.
    ceiling_bps: Option<[u64; 2]>,
    /// The formula of the ceiling, with its numbers. Null if the ceiling is unknown.
    ceiling: Option<&'a str>,
}

pub(super) fn out(load: &MemoryLoad) -> MemoryOut<'_> {
    let ceiling = load.ceiling.as_ref().ok();
    MemoryOut {
        access: load.access,
        array_bytes: exact(load.array.0),
        last_cache_bytes: load.last_cache.map(|cache| exact(cache.0)),
        ceiling_bps: ceiling.map(|found| [integer(found.rate.low()), integer(found.rate.high())]),
        ceiling: ceiling.map(|found| found.words.as_str()),
    }
}

/// The gap for an unknown ceiling; `None` if the ceiling is known.
pub(super) fn lacking(load: &MemoryLoad) -> Option<Gap> {
    load.ceiling.clone().err()
}

/// What was measured, in words: `memory of this host: copy, 2 threads with arrays of 128 MiB each`.
pub(super) fn head(probe: &Probe, load: &MemoryLoad) -> String {
    let threads = count(u64::from(probe.streams), "thread");
    let access = load.access.name();
    format!("memory of this host: {access}, {threads} with arrays of {}", load.array)
}

/// Writes the rate of the load, and its ceiling.
pub(super) fn rate(doc: &mut Document, load: &MemoryLoad, rate: &Estimate, how: &str) {
    let label = match load.access {
        Access::Read => "read",
        Access::Write => "written",
        Access::Copy => "copied",
    };
    let bytes = rate.mean / 8e9;
    let figure = format!("{}, {bytes:.3} GB/s", words::bits(rate));
    doc.entry(label, &[(Tone::Good, &figure), (Tone::Plain, how)], 2);
    if load.access == Access::Copy {
        doc.remark(&[(Tone::Dim, "each byte is counted once, though it is read and written")]);
    }
    if let Ok(ceiling) = &load.ceiling {
        let most = ceiling.rate.words(|rate| Rate(rate as u64).to_string());
        let reached = rate.mean / ceiling.rate.high().max(1.0) * 100.0;
        let text = format!(" ({}), of which {reached:.0} % are used", ceiling.words);
        doc.entry("ceiling", &[(Tone::Plain, &most), (Tone::Dim, &text)], 2);
    }
}
