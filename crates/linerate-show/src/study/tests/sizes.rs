//! Invented sweeps of round trips for snapshot tests.

use linerate_facts::Gap;
use linerate_judge::model::SizeTrips;
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_record::{End, Record, Set};
use linerate_units::stats::{Exact, Histogram};
use linerate_units::{Bytes, Nanos};

use super::super::{Found, Study};
use super::Sizes;
use crate::sample as records;

/// Time of all slices of a size, in nanoseconds.
const LASTED: u64 = 640_000_000;

/// Round trips of a size with a median of `typical` nanoseconds; some take a little less or more.
fn row(size: u64, typical: u64) -> SizeTrips {
    let n = LASTED / typical.max(1);
    let [less, more] = [typical - typical / 50, typical + typical / 10];
    let parts = [(less, n / 4), (typical, n - n / 4 - n / 10), (more, n / 10)];
    let sum: u64 = parts.iter().map(|(value, n)| value * n).sum();
    let mean = sum as f64 / n as f64;
    let squares = parts.iter().map(|(value, n)| (*value as f64 - mean).powi(2) * *n as f64);
    let deviation = (squares.sum::<f64>() / n as f64).sqrt();
    SizeTrips {
        size: Bytes(size),
        times: (n > 0).then(|| Histogram {
            counts: parts.into_iter().filter(|(_, n)| *n > 0).collect(),
            exact: Some(Exact {
                least: less,
                most: typical * 3 / 2,
                sum,
                deviation_ps: (deviation * 1e3) as u64,
            }),
            ..Histogram::default()
        }),
        first: Some(Nanos(typical)),
        lasted: Nanos(LASTED),
        washout: Nanos(LASTED / 4),
        delayed: None,
    }
}

/// Round trips with sizes from 2 B to 8 MiB over a path with a floor of 52 us; `rate` is that of each direction in
/// bits per nanosecond.
fn rows(rate: f64) -> Vec<SizeTrips> {
    let sizes = (1..24).map(|k| 1_u64 << k);
    sizes.map(|size| row(size, 52_000 + (size as f64 * 16.0 / rate) as u64)).collect()
}

/// Invented round trips, and the record that they could come from.
pub(in super::super) struct Sample {
    pub(in super::super) record: Record,
    rows: Vec<SizeTrips>,
    gaps: Vec<Gap>,
}

impl Sample {
    pub(in super::super) fn found(&self) -> Found<'_> {
        Found::Sizes(Box::new(Sizes {
            record: &self.record,
            rows: self.rows.clone(),
            left_out: self.gaps.clone(),
        }))
    }

    pub(in super::super) fn study(&self) -> Study<'_> {
        Study::of_one(&self.record, None, self.found())
    }
}

fn probe(rows: Vec<SizeTrips>) -> Sample {
    let mut record = records::healthy().0;
    record.hosts.clear();
    record.start.plan.time = Nanos::from_secs(20);
    Sample { record, rows, gaps: Vec::new() }
}

/// A sweep of two sizes: 2 B, and a largest one that in words is rounded to the same as another.
pub(in super::super) fn up_to(most: u64) -> Sample {
    probe(vec![row(2, 52_000), row(most, 104_000)])
}

/// A complete sweep over a path of 12.4 Gb/s.
pub(in super::super) fn whole() -> Sample {
    probe(rows(12.4))
}

/// A sweep over a slow path, on which the largest messages did not fit in the time.
pub(in super::super) fn slow() -> Sample {
    let mut rows = rows(0.01);
    for row in &mut rows[20..] {
        row.times = None;
    }
    for row in &mut rows[21..] {
        row.first = None;
    }
    probe(rows)
}

/// A sweep that was interrupted in its first round; some sizes were refused.
pub(in super::super) fn broken() -> Sample {
    let mut rows = rows(12.4);
    for row in &mut rows[3..] {
        (row.times, row.first) = (None, None);
    }
    let mut sample = probe(rows);
    sample.record.end = Some(End::Interrupted);
    Sample {
        gaps: vec![Gap {
            what: "round trips of 16 B".to_owned(),
            why: "left out: no descriptor left".to_owned(),
            hint: "ulimit -n 4096".to_owned(),
        }],
        ..sample
    }
}

/// A sweep with datagrams, some of them lost.
pub(in super::super) fn lossy() -> Sample {
    let mut rows: Vec<SizeTrips> = (5..8).map(|k| row(1 << k, 60_000)).collect();
    for (row, lost) in rows.iter_mut().zip([0, 2, 120]) {
        row.times.as_mut().unwrap().lost = lost;
    }
    let mut sample = probe(rows);
    sample.record.start.plan.engine = "udp".to_owned();
    sample
}

/// A sweep with two writes for each message, and with Nagle's algorithm on.
pub(in super::super) fn delayed() -> Sample {
    let mut rows: Vec<SizeTrips> = (1..12).map(|k| row(1 << k, 44_000_000)).collect();
    for row in &mut rows {
        row.delayed = Some(Nanos(43_900_000));
    }
    let mut sample = probe(rows);
    let pattern = Pattern::PingPong { size: Bytes(2), interval: Nanos(0) };
    let knobs = Knobs { nagle: true, two_writes: true, ..Knobs::default() };
    sample.record.sets.push(Set { plan: SetPlan { id: 0, pattern, knobs }, ends: Vec::new() });
    sample
}
