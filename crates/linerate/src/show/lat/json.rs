//! Round trips timed once, for programs.
//!
//! The schema is `schema/lat.schema.json`. Units stand in the keys; integers stay below 2^53; what is
//! unknown is `null`.

use linerate_core::facts::Gap;
use linerate_core::path::Direction;
use linerate_core::record::{Histogram, Record};
use linerate_core::stats::percentile_ci;
use serde::Serialize;

use super::super::json::integer;
use super::{Beside, PERCENTILES, Probe};

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
    engine: &'a str,
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
    lost: Option<u64>,
    asked_per_sec: Option<f64>,
    answered_per_sec: Option<f64>,
    least_ns: Option<u64>,
    most_ns: Option<u64>,
    percentiles: Vec<Percentile>,
    histogram: Vec<[u64; 2]>,
    unread: Option<Unread>,
    beside: Vec<Load<'a>>,
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
struct Unread {
    percentiles: Vec<Percentile>,
    histogram: Vec<[u64; 2]>,
}

#[derive(Serialize)]
struct Load<'a> {
    direction: Direction,
    goodput_bps: Option<u64>,
    lost_share: Option<f64>,
    streams: u32,
    write_size_bytes: Option<u64>,
    pacing_bps: Option<u64>,
    congestion: Option<&'a str>,
    copy: &'static str,
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
    let times = probe.times.as_ref();
    Output {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION"),
        target: &probe.target,
        address: &probe.address,
        engine: &probe.engine,
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
        lost: probe.lost(),
        asked_per_sec: probe.asked(),
        answered_per_sec: probe.rate,
        least_ns: probe.latency.as_ref().map(|latency| whole(latency.least.0)),
        most_ns: probe.longest().map(|most| whole(most.0)),
        percentiles: times.map_or_else(Vec::new, percentiles),
        histogram: times.map_or_else(Vec::new, histogram),
        unread: probe.unread().map(|unread| Unread {
            percentiles: percentiles(&unread),
            histogram: histogram(&unread),
        }),
        beside: probe
            .beside
            .iter()
            .map(|load| self::load(probe, load))
            .collect(),
        unknown: &probe.gaps,
        record,
    }
}

fn load<'a>(probe: &'a Probe, load: &Beside) -> Load<'a> {
    let knobs = &probe.knobs;
    Load {
        direction: load.direction,
        goodput_bps: load.goodput.map(integer),
        lost_share: load.lost,
        streams: knobs.streams,
        write_size_bytes: Some(knobs.write_size.0).filter(|size| *size > 0),
        pacing_bps: knobs.pacing.map(|rate| integer(rate.0 as f64)),
        congestion: knobs.congestion.as_deref(),
        copy: knobs.copy.name(),
    }
}

fn histogram(times: &Histogram) -> Vec<[u64; 2]> {
    let whole = |n: u64| integer(n as f64);
    let counts = times.counts.iter();
    counts.map(|&(value, n)| [whole(value), whole(n)]).collect()
}

fn percentiles(times: &Histogram) -> Vec<Percentile> {
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::show::schema::{fits, needs_all, refuses};

    fn output(probe: &Probe) -> Value {
        serde_json::from_str(&json(probe, None).unwrap()).unwrap()
    }

    #[test]
    fn what_was_lost_is_told_where_it_is_not_sent_again() {
        let told = [
            sample::idle(),
            sample::beside(),
            sample::udp(),
            sample::lossy(),
        ];
        let told = told.map(|p| output(&p));
        for document in &told {
            fits(SCHEMA, document);
        }
        let [idle, beside, udp, lossy] = told;
        assert_eq!(beside["beside"][0]["lost_share"], Value::Null);
        assert!(lossy["beside"][0]["lost_share"].as_f64() > Some(0.01));
        assert_eq!(
            (&idle["engine"], &idle["lost"]),
            (&"tcp".into(), &Value::Null)
        );
        assert_eq!(idle["beside"], Value::Array(Vec::new()));
        assert_eq!(beside["beside"][0]["streams"], 1);
        assert!(beside["beside"][0]["goodput_bps"].as_u64() > Some(0));
        assert_eq!((&udp["engine"], &udp["lost"]), (&"udp".into(), &3.into()));
        assert_eq!(udp["complete"], true, "a path may lose");
        assert_eq!(udp["unread"]["percentiles"][0]["ns"], 2000);
        assert_eq!(idle["unread"], Value::Null);
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let good = output(&sample::udp());
        let wrong = [
            ("/format", Value::from(2)),
            ("/engine", Value::from("pigeon")),
            ("/lost", Value::from(-1)),
            ("/samples", Value::Null),
            ("/size_bytes", Value::from("64")),
            ("/percentiles/0/percent", Value::from(42)),
            ("/percentiles/0/ci_ns", serde_json::json!([1])),
            ("/histogram/0", serde_json::json!([1, 2, 3])),
            ("/unread/percentiles", Value::Null),
            ("/beside", Value::Null),
            ("/unknown", Value::Null),
        ];
        refuses(SCHEMA, &good, wrong, "");
        needs_all(SCHEMA, &good, "");
    }
}
