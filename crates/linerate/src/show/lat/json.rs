//! Round trips timed once, for programs.
//!
//! The schema is `schema/lat.schema.json`. Units stand in the keys; integers stay below 2^53; what is
//! unknown is `null`.

use linerate_core::facts::Gap;
use linerate_core::plan::Direction;
use linerate_core::record::Record;
use linerate_core::stats::percentile_ci;
use serde::Serialize;

use super::super::json::integer;
use super::{PERCENTILES, Probe};

/// Version of the document; raised when a key changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../../schema/lat.schema.json");

#[derive(Serialize)]
pub(in crate::show) struct Output<'a> {
    format: u32,
    linerate: &'static str,
    target: &'a str,
    address: &'a str,
    same_machine: bool,
    size_bytes: u64,
    interval_ns: Option<u64>,
    busy_poll: bool,
    washout_ns: u64,
    time_ns: u64,
    measured_ns: u64,
    complete: bool,
    ended_early: Option<&'a str>,
    samples: u64,
    unanswered: u64,
    asked_per_sec: Option<f64>,
    answered_per_sec: Option<f64>,
    least_ns: Option<u64>,
    most_ns: Option<u64>,
    percentiles: Vec<Percentile>,
    histogram: Vec<[u64; 2]>,
    beside: Vec<Load>,
    unknown: &'a [Gap],
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
}

#[derive(Serialize)]
struct Percentile {
    percent: f64,
    ns: u64,
    ci_ns: [u64; 2],
}

#[derive(Serialize)]
struct Load {
    direction: Direction,
    goodput_bps: Option<u64>,
}

/// The measurement as one JSON document, with a line feed at its end; with the raw readings where
/// `record` has them.
pub fn json(probe: &Probe, record: Option<&Record>) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&output(probe, record))?;
    text.push('\n');
    Ok(text)
}

/// The document.
pub(in crate::show) fn output<'a>(probe: &'a Probe, record: Option<&'a Record>) -> Output<'a> {
    let whole = |n: u64| integer(n as f64);
    let counts = probe.times.iter().flat_map(|times| &times.counts);
    let load = |(direction, goodput): &(Direction, Option<f64>)| Load {
        direction: *direction,
        goodput_bps: goodput.map(integer),
    };
    Output {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION"),
        target: &probe.target,
        address: &probe.address,
        same_machine: probe.same_machine,
        size_bytes: probe.size.0,
        interval_ns: probe.interval.map(|interval| interval.0),
        busy_poll: probe.busy_poll,
        washout_ns: probe.washout.0,
        time_ns: probe.time.0,
        measured_ns: probe.lasted.0,
        complete: probe.complete(),
        ended_early: Some(probe.broken.as_str()).filter(|why| !why.is_empty()),
        samples: probe.latency.as_ref().map_or(0, |latency| latency.samples),
        unanswered: probe.unanswered(),
        asked_per_sec: probe.asked(),
        answered_per_sec: probe.rate,
        least_ns: probe.latency.as_ref().map(|latency| whole(latency.least.0)),
        most_ns: probe.longest().map(|most| whole(most.0)),
        percentiles: percentiles(probe),
        histogram: counts.map(|&(value, n)| [whole(value), whole(n)]).collect(),
        beside: probe.beside.iter().map(load).collect(),
        unknown: &probe.gaps,
        record,
    }
}

fn percentiles(probe: &Probe) -> Vec<Percentile> {
    let Some(times) = &probe.times else {
        return Vec::new();
    };
    let told = |percent: &f64| {
        let found = percentile_ci(times, percent / 100.0)?;
        Some(Percentile {
            percent: *percent,
            ns: integer(found.mid),
            ci_ns: [integer(found.low), integer(found.high)],
        })
    };
    PERCENTILES.iter().filter_map(told).collect()
}
