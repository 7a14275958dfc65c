//! The rows of records that vary a factor, and of studies that have several records.

use super::of::{MEDIAN, P99, P999, SIZES, known};
use super::{Row, RowFigure, SIZE, Trait};
use crate::diff::Judged;
use crate::diff::basis::carrier;
use linerate_judge::figure::{Entry, Unit, Value};
use linerate_judge::model::{by_size, idle_round_trips, is_by_size, sweep};
use linerate_judge::study::{Point, varied};
use linerate_plan::Pattern;
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::Carrier;
use linerate_record::{Record, RecordKind};
use linerate_units::Bytes;
use linerate_units::stats::{Histogram, median, percentile_ci, rounds_ci};

const LOADS: &str = "loads";
const RUNS: &str = "runs of one plan";
/// The trait in which the loads of a study differ: the value of its factor.
const VALUE: &str = "value";
const NEAR_CPU: RowFigure =
    RowFigure { key: "near_cpu_ns_per_byte", label: "CPU time here", unit: Unit::NanosPerByte };
const FAR_CPU: RowFigure =
    RowFigure { key: "far_cpu_ns_per_byte", label: "CPU time there", unit: Unit::NanosPerByte };

/// The rows of a record: its sizes if it sweeps round trips; else the round trips of the idle path.
pub(in crate::diff) fn of_record(record: &Record) -> Vec<Row> {
    if let Some(rows) = of_loads(record) {
        return rows;
    }
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
    let report = all.into_iter().filter(|row| !row.figures.is_empty());
    report.collect()
}

/// One row for the load at each value of the factor; `None` if the record varies no factor of a load.
fn of_loads(record: &Record) -> Option<Vec<Row>> {
    let (swept, axis) = varied(record)?;
    let direction = *record.start.plan.directions.first()?;
    let found = sweep(record, swept, axis, direction);
    let rows = axis.values.iter().zip(&found.settings).flat_map(|(value, setting)| {
        let point = Point::of_setting(Vec::new(), setting, direction);
        let value = known(VALUE, value.label.clone());
        by_direction(record, LOADS, Some(&value), &point.summary.entries)
    });
    Some(rows.collect())
}

/// The rows of a study of several records: the rows of each record, or the figures over all runs of one plan.
pub(in crate::diff) fn of_study(parts: &[Judged<'_>]) -> Vec<Row> {
    let is_run = |part: &Judged<'_>| part.record.start.kind() == RecordKind::Run;
    if let Some(first) = parts.first().filter(|_| parts.iter().all(is_run)) {
        return by_direction(first.record, RUNS, None, &over_runs(parts));
    }
    let each = parts.iter().flat_map(|part| {
        let entries = part.summary.entries.iter().filter(|entry| entry.of.direction.is_some());
        let loads: Vec<Entry> =
            entries.filter(|_| varied(part.record).is_none()).cloned().collect();
        let own = part.basis.rows.iter().map(|row| Row { is_base: false, ..row.clone() });
        own.chain(by_direction(part.record, LOADS, None, &loads)).collect::<Vec<_>>()
    });
    each.collect()
}

/// Every figure over the runs that have it: the mean with its interval, or the median if there are too few runs for an
/// interval.
fn over_runs(runs: &[Judged<'_>]) -> Vec<Entry> {
    let all = runs.iter().flat_map(|run| &run.summary.entries);
    let mut entries: Vec<Entry> = Vec::new();
    for Entry { figure, of, .. } in all {
        if entries.iter().any(|known| known.figure == *figure && known.of == *of) {
            continue;
        }
        let values = runs.iter().filter_map(|run| run.summary.value(figure, *of));
        let mut values: Vec<f64> = values.map(|value| value.mid).collect();
        values.sort_by(f64::total_cmp);
        let bare = median(&values).map(Value::bare);
        let value = rounds_ci(&values).map(Value::within).or(bare);
        let value = value.ok_or_else(|| "no run has it".to_owned());
        entries.push(Entry { figure, of: *of, value });
    }
    entries
}

/// The rows of one measurement: one for the idle path, and one for each direction.
fn by_direction(
    record: &Record,
    kind: &'static str,
    value: Option<&Trait>,
    entries: &[Entry],
) -> Vec<Row> {
    let plan = &record.start.plan;
    let options = plan.knobs.options.iter();
    let options: Vec<String> = options.map(|(key, setting)| format!("{key}={setting}")).collect();
    let ways = [None].into_iter().chain(Direction::ALL.map(Some));
    let row = |way: Option<Direction>| {
        let here = entries.iter().filter(|entry| entry.of.direction == way);
        let figures = here.filter_map(|entry| Some((figure(entry)?, entry.value.clone().ok()?)));
        let way = way.map_or("idle path", Direction::name);
        let label = value.and_then(|(_, label)| label.clone());
        let named = label.iter().map(String::as_str).chain([plan.engine.as_str(), way]);
        Row {
            kind,
            title: named.collect::<Vec<_>>().join(", "),
            size: None,
            traits: [
                known("engine", plan.engine.clone()),
                known("options", options.join(" ")),
                known("direction", way),
            ]
            .into_iter()
            .chain(value.cloned())
            .collect(),
            soft: Vec::new(),
            beside: Vec::new(),
            names: Vec::new(),
            figures: figures.collect(),
            is_base: false,
        }
    };
    ways.map(row).filter(|row| !row.figures.is_empty()).collect()
}

/// The row figure that belongs to an entry; `None` if rows have no such figure.
fn figure(entry: &Entry) -> Option<RowFigure> {
    let Entry { figure, of, .. } = entry;
    match (of.percentile, of.side) {
        (percentile @ Some(_), _) => {
            let all = [(50.0, MEDIAN), (99.0, P99), (99.9, P999)];
            all.into_iter().find(|(own, _)| Some(*own) == percentile).map(|(_, figure)| figure)
        }
        (None, Some(Side::Near)) => Some(NEAR_CPU),
        (None, Some(Side::Far)) => Some(FAR_CPU),
        (None, None) => Some(RowFigure { key: figure.key, label: figure.label, unit: figure.unit }),
    }
}

/// The row of round trips of one message size.
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
