//! The rows of a sweep of round trips.

use super::of::{MEDIAN, P99, P999, SIZES, known};
use super::{Row, SIZE};
use crate::diff::basis::carrier;
use linerate_judge::figure::Value;
use linerate_judge::model::{by_size, idle_round_trips, is_by_size};
use linerate_plan::Pattern;
use linerate_record::Record;
use linerate_record::reported::Carrier;
use linerate_units::Bytes;
use linerate_units::stats::{Histogram, percentile_ci};

/// The sizes of a sweep of round trips; of another run the round trips of the idle path.
pub(in crate::diff) fn of_record(record: &Record) -> Vec<Row> {
    let mut sizes: Vec<Bytes> = record
        .sets
        .iter()
        .filter_map(|set| match set.plan.pattern {
            Pattern::PingPong { size, .. } => Some(size),
            Pattern::Stream { .. } | Pattern::Operations { .. } => None,
        })
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let all: Vec<Row> = if is_by_size(record) {
        let swept = by_size(record, &sizes).into_iter();
        let timed = swept.filter_map(|one| Some((one.size, one.times?)));
        timed.map(|(size, times)| trips(record, size, &times, false)).collect()
    } else {
        let idle = sizes.first().zip(idle_round_trips(record));
        let only = idle.map(|(size, times)| trips(record, *size, &times, true));
        only.into_iter().collect()
    };
    let told = all.into_iter().filter(|row| !row.figures.is_empty());
    told.collect()
}

/// Round trips of one size.
fn trips(record: &Record, size: Bytes, times: &Histogram, is_base: bool) -> Row {
    let plan = &record.start.plan;
    let carrier = carrier(&plan.engine).map(Carrier::words);
    let protocol = carrier.map_or_else(|| plan.engine.clone(), str::to_owned);
    let options = plan.knobs.options.iter();
    let options: Vec<String> = options.map(|(key, setting)| format!("{key}={setting}")).collect();
    let part = |figure, share: f64| Some((figure, Value::within(percentile_ci(times, share)?)));
    let figures = [(MEDIAN, 0.5), (P99, 0.99), (P999, 0.999)];
    Row {
        kind: SIZES,
        title: format!("ping-pong, {protocol}, whole round trips"),
        size: Some(size),
        traits: vec![
            known("protocol", protocol),
            known("operation", "ping-pong"),
            known("round trips", "whole"),
            known("both directions at once", "no"),
            known("options", options.join(" ")),
            known(SIZE, size.to_string()),
        ],
        soft: Vec::new(),
        beside: Vec::new(),
        names: Vec::new(),
        figures: figures.into_iter().filter_map(|(figure, share)| part(figure, share)).collect(),
        is_base,
    }
}
