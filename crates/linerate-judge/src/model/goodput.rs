//! Goodput and operations, by the counters of the receiving threads.

use super::Estimate;
use super::derive::undisturbed;
use super::ends::{receiving, stream_set};
use super::readings::{Window, per_second};
use linerate_facts::metric as m;
use linerate_plan::Knobs;
use linerate_plan::path::{Direction, Measure};
use linerate_plan::transport::{self, Feature};
use linerate_record::{EndReadings, Record, Set, Table};
use linerate_units::stats::mean_ci;

/// A sample of the payload that arrived in a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Index of the step that the sample belongs to.
    pub(super) step: usize,
    pub(super) secs: f64,
    /// Goodput in bits per second.
    pub(super) rate: f64,
    /// Whether the sample belongs to the load that the verdict explains, and to the measured time.
    pub(super) own: bool,
}

/// The estimate with this mean, and the interval of its steady samples.
pub(super) fn estimate(mean: f64, steady: &[f64]) -> Estimate {
    Estimate { mean, interval: mean_ci(steady), samples: steady.len() }
}

/// The tables of a set's receiving threads. If there are none, as with a disk, those of the threads that start
/// operations.
fn receivers_of(end: &EndReadings, set: u32) -> Vec<&Table> {
    let of = |role: &str| {
        let prefix = format!("s{set}/{role}");
        let tables = end.about("worker", move |subject| subject.starts_with(&prefix));
        tables.collect::<Vec<_>>()
    };
    let receive = of("rx");
    if receive.is_empty() { of("tx") } else { receive }
}

/// Goodput of a set over a window at the receiving end, in bits per second, all streams together.
pub(super) fn slice_goodput(receiving: &EndReadings, set: u32, window: Window) -> Option<f64> {
    slice_rate(receiving, set, m::WORKER_BYTES, window).map(|bytes| bytes * 8.0)
}

/// Growth per second of a counter of a set's threads, over a window at the receiving end, all streams together.
fn slice_rate(receiving: &EndReadings, set: u32, metric: m::Metric, window: Window) -> Option<f64> {
    let rates: Vec<f64> = receivers_of(receiving, set)
        .into_iter()
        .filter_map(|t| per_second(t, metric, window))
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>())
}

/// The judged rate of a set over a window at the receiving end, all streams together: operations or bits per second.
pub(super) fn judged_rate(
    record: &Record,
    receiving: &EndReadings,
    set: &Set,
    window: Window,
) -> Option<f64> {
    let is_judged = set.plan.knobs.measure() == Measure::Operations;
    let counted = operations_rate(record, receiving, set.plan.id, window).filter(|_| is_judged);
    counted.or_else(|| slice_goodput(receiving, set.plan.id, window))
}

/// Mean operations, or messages, per second of a set; `None` for sockets, where one read returns whatever has arrived.
pub(super) fn operations_rate(
    record: &Record,
    receiving: &EndReadings,
    set: u32,
    window: Window,
) -> Option<f64> {
    let counted = transport::of(&record.start.plan.engine).has(Feature::Operations);
    slice_rate(receiving, set, m::WORKER_OPS, window).filter(|_| counted)
}

/// The payload that arrived in a direction during a step, washout included, in samples. `own` says whether the step has
/// the load that the verdict explains.
pub(super) fn samples_of(
    record: &Record,
    at: usize,
    direction: Direction,
    own: impl Fn(&Knobs) -> bool,
) -> Vec<Sample> {
    let step = record.steps.get(at);
    let loaded = step.and_then(|step| {
        let set = stream_set(record, step, direction)?;
        Some((step, set, receiving(record, step, direction)?))
    });
    let Some((step, set, receiving)) = loaded else {
        return Vec::new();
    };
    let from = Window::of(step).from;
    let own = own(&set.plan.knobs) && undisturbed(step);
    goodput_ticks(receiving, set.plan.id, Window::WHOLE)
        .into_iter()
        .map(|(began, rate)| Sample {
            step: at,
            secs: step.plan.tick.secs(),
            rate,
            own: own && began >= from,
        })
        .collect()
}

/// Start time and goodput (bits per second) of each tick at the receiver, all streams together.
pub(super) fn goodput_ticks(receiving: &EndReadings, set: u32, window: Window) -> Vec<(u64, f64)> {
    let mut ticks = ticks(receiving, set, m::WORKER_BYTES, window);
    for (_, rate) in &mut ticks {
        *rate *= 8.0;
    }
    ticks
}

/// Start time of each tick at the receiver, and the growth of a counter per second in it, all streams together.
pub(super) fn ticks(
    receiving: &EndReadings,
    set: u32,
    metric: m::Metric,
    window: Window,
) -> Vec<(u64, f64)> {
    let mut sum: Vec<(u64, f64)> = Vec::new();
    for table in receivers_of(receiving, set) {
        for (i, tick) in table_ticks(table, metric, window).into_iter().enumerate() {
            match sum.get_mut(i) {
                Some(slot) => slot.1 += tick.1,
                None => sum.push(tick),
            }
        }
    }
    sum
}

fn table_ticks(table: &Table, metric: m::Metric, window: Window) -> Vec<(u64, f64)> {
    let Some(counted) = table.column(metric) else {
        return Vec::new();
    };
    // Rows carry the time at which they were really read, so half a tick of tolerance is needed.
    let slack = 20_000_000;
    let rows: Vec<(u64, i64)> = table
        .at
        .iter()
        .copied()
        .zip(counted.iter().copied())
        .filter(|(at, _)| {
            (window.from.saturating_sub(slack)..=window.to.saturating_add(slack)).contains(at)
        })
        .collect();
    rows.windows(2)
        .filter(|w| w[1].0 > w[0].0)
        .map(|w| (w[0].0, w[1].1.saturating_sub(w[0].1) as f64 * 1e9 / (w[1].0 - w[0].0) as f64))
        .collect()
}
