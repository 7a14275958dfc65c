//! Figures from a record and its model: one function for each row of the table.

use super::{
    CPU, Entry, Evidence, Figure, GOODPUT, LATENCY, LOSS, MESSAGES, OPERATIONS, RETRANSMITS,
    Subject, Value,
};
use crate::model::{
    Estimate, Latency, Load, Model, PERCENTILES, Part, base_round_trips, idle_round_trips, parts,
};
use linerate_plan::path::{Direction, Measure, Side};
use linerate_plan::transport::Feature;
use linerate_record::Record;
use linerate_units::stats::{Count, Histogram, percentile_ci, ratio_ci};

/// The data that figures are derived from.
pub(super) struct Source<'a> {
    record: &'a Record,
    model: &'a Model,
    /// Per direction, the equal parts of the base load's steady time.
    parts: [Vec<Part>; 2],
}

impl<'a> Source<'a> {
    pub(super) fn new(record: &'a Record, model: &'a Model) -> Self {
        Self { record, model, parts: Direction::ALL.map(|direction| parts(record, direction)) }
    }

    /// Each measured direction, with its base load and the parts of the load's steady time.
    fn loads(&self) -> impl Iterator<Item = (Direction, &Load, &[Part])> {
        let each = Direction::ALL.into_iter().zip(&self.parts);
        each.filter_map(|(direction, parts)| {
            let load = &self.model.direction(direction)?.base;
            Some((direction, load, parts.as_slice()))
        })
    }

    /// One entry for each load for which `value` gives a value.
    fn each(
        &self,
        figure: &'static Figure,
        value: impl Fn(&Load, &[Part]) -> Option<Value>,
    ) -> Vec<Entry> {
        let entry = |(direction, load, parts): (Direction, &Load, &[Part])| {
            Some(Entry { figure, of: Subject::load(direction), value: Ok(value(load, parts)?) })
        };
        self.loads().filter_map(entry).collect()
    }
}

/// The value of a rate of a load. If the load's goodput may be off by some share, so may this rate.
fn rate(load: &Load, estimate: &Estimate) -> Value {
    let interval = estimate.interval;
    let evidence = match load.doubt() {
        Some(off) => Evidence::Relative(off, interval),
        None => interval.map_or(Evidence::None, Evidence::Interval),
    };
    Value { mid: estimate.mean, evidence }
}

pub(super) fn goodput(source: &Source<'_>) -> Vec<Entry> {
    source.each(&GOODPUT, |load, _| Some(rate(load, &load.goodput)))
}

pub(super) fn operations(source: &Source<'_>) -> Vec<Entry> {
    source.each(&OPERATIONS, |load, _| {
        let done = load.operations.as_ref()?;
        counts_operations(load).then(|| rate(load, done))
    })
}

/// Whether a load is of operations, as loads of files are of any size.
fn counts_operations(load: &Load) -> bool {
    load.has(Feature::Disk) || load.measure() == Measure::Operations
}

pub(super) fn messages(source: &Source<'_>) -> Vec<Entry> {
    source.each(&MESSAGES, |load, _| {
        if let Some(datagrams) = &load.datagrams {
            return Some(rate(
                load,
                &Estimate {
                    mean: datagrams.per_sec,
                    interval: None,
                    samples: load.goodput.samples,
                },
            ));
        }
        let taken = load.operations.as_ref()?;
        (!counts_operations(load)).then(|| rate(load, taken))
    })
}

pub(super) fn retransmits(source: &Source<'_>) -> Vec<Entry> {
    source.each(&RETRANSMITS, |_, parts| counted(parts, |part| part.resent))
}

pub(super) fn loss(source: &Source<'_>) -> Vec<Entry> {
    source.each(&LOSS, |load, parts| {
        let lost = load.datagrams.as_ref()?.lost;
        let counts = counted(parts, |part| part.lost);
        // The parts do not contain losses after the last datagram that the receiver read.
        let evidence = counts.map_or(Evidence::None, |value| value.evidence);
        Some(Value { mid: lost, evidence })
    })
}

/// The counted events of all parts over all that could have been one; `None` if a part did not count them.
fn counted(parts: &[Part], count: impl Fn(&Part) -> Option<Count>) -> Option<Value> {
    Value::share(parts.iter().map(count).collect::<Option<_>>()?)
}

pub(super) fn cpu(source: &Source<'_>) -> Vec<Entry> {
    let alone = source.model.alone;
    let of_end = |(direction, parts): (Direction, &[Part]), end: usize| {
        let sides = [direction.sender(), direction.receiver()];
        // Without a far end, the near end starts all operations, in either direction.
        let side = if alone { Side::Near } else { sides[end] };
        Some(Entry {
            figure: &CPU,
            of: Subject { side: Some(side), ..Subject::load(direction) },
            value: Ok(cost(parts, end)?),
        })
    };
    let loads = source.loads();
    loads
        .flat_map(|(direction, _, parts)| [0, 1].map(|end| of_end((direction, parts), end)))
        .flatten()
        .collect()
}

/// CPU time in nanoseconds for each byte, at one end; `None` if the time or the bytes are unknown.
fn cost(parts: &[Part], end: usize) -> Option<Value> {
    let nanos: Option<Vec<f64>> = parts.iter().map(|p| Some(p.cpu[end]? * 1e9)).collect();
    let nanos = nanos.filter(|all| !all.is_empty())?;
    let bytes: Vec<f64> = parts.iter().map(|p| p.bytes[end]).collect();
    let (time, moved): (f64, f64) = (nanos.iter().sum(), bytes.iter().sum());
    let bare = (moved > 0.0).then(|| Value::bare(time / moved));
    ratio_ci(&nanos, &bytes).map(Value::within).or(bare)
}

pub(super) fn round_trips(source: &Source<'_>) -> Vec<Entry> {
    let idle = source.model.idle.as_ref();
    let times = idle_round_trips(source.record);
    let idle = idle.map(|latency| percentiles(None, latency, times.as_ref()));
    let loaded = source.loads().filter_map(|(direction, load, _)| {
        let times = base_round_trips(source.record, direction);
        let latency = load.latency.as_ref()?;
        Some(percentiles(Some(direction), latency, times.as_ref()))
    });
    idle.into_iter().chain(loaded).flatten().collect()
}

/// The function of figures that runs do not have.
pub(super) const fn none(_: &Source<'_>) -> Vec<Entry> {
    Vec::new()
}

/// An entry for each percentile of round trips, with its interval if all round trips are known. It has no value if
/// there are too few samples.
pub fn percentiles(
    direction: Option<Direction>,
    latency: &Latency,
    times: Option<&Histogram>,
) -> Vec<Entry> {
    let of = |p: f64| {
        let interval = times.and_then(|times| percentile_ci(times, p / 100.0));
        let value = latency.percentile(p).map(|time| Value {
            mid: time.0 as f64,
            evidence: interval.map_or(Evidence::None, Evidence::Interval),
        });
        let few = || format!("{} round trips are too few for p{p}", latency.samples);
        Entry {
            figure: &LATENCY,
            of: Subject { direction, side: None, percentile: Some(p) },
            value: value.ok_or_else(few),
        }
    };
    PERCENTILES.map(of).to_vec()
}
