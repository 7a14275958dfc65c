//! Invented sweeps of loads for snapshot tests.

use linerate_facts::Gap;
use linerate_judge::model::{Estimate, Fall, Knee, Setting, Sweep};
use linerate_plan::path::{ByRole, Direction};
use linerate_plan::study::Pace;
use linerate_plan::transport::{RDMA, Swept, TCP};
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_record::{End, Record, Set, SetEnd};
use linerate_units::Nanos;
use linerate_units::stats::Interval;

use super::super::{Found, Study};
use super::Loads;
use crate::sample as records;

fn around(mid: f64, share: f64) -> Interval {
    Interval { low: mid * (1.0 - share), mid, high: mid * (1.0 + share) }
}

fn estimate(mean: f64) -> Estimate {
    Estimate { mean, interval: Some(around(mean, 0.012)), samples: 8 }
}

/// A setting with this goodput in Gb/s and CPU time of the sender in ns a byte. Its ratios are to the figures `to`.
fn setting(knobs: Knobs, gigabits: f64, cpu: f64, to: Option<(f64, f64)>) -> Setting {
    let ratio = |own: f64, other: fn((f64, f64)) -> f64| to.map(|to| around(own / other(to), 0.02));
    Setting {
        knobs,
        goodput: Some(estimate(gigabits * 1e9)),
        cpu: [Some(estimate(cpu)), Some(estimate(0.31))].into(),
        copied: None,
        goodput_ratio: ratio(gigabits, |to| to.0),
        cpu_ratio: ratio(cpu, |to| to.1),
    }
}

/// An invented sweep, and the record that it could come from.
pub(in super::super) struct Sample {
    record: Record,
    address: &'static str,
    swept: Swept,
    direction: Direction,
    found: Sweep,
    gaps: Vec<Gap>,
}

impl Sample {
    pub(in super::super) fn study(&self) -> Study<'_> {
        let settings: Vec<Knobs> = self.found.settings.iter().map(|s| s.knobs.clone()).collect();
        let loads = Loads {
            record: &self.record,
            address: self.address,
            swept: self.swept,
            axis: self.swept.axis(&settings),
            direction: self.direction,
            pace: Pace::of(Nanos::from_secs(60), settings.len()).unwrap(),
            found: self.found.clone(),
            left_out: self.gaps.clone(),
        };
        Study::of_one(&self.record, None, Found::Loads(Box::new(loads)))
    }
}

/// A record of two unknown hosts.
fn record(engine: &str) -> Record {
    let mut record = records::healthy().0;
    record.hosts.clear();
    record.start.plan.engine = engine.to_owned();
    record
}

fn probe(swept: Swept, found: Sweep) -> Sample {
    Sample {
        record: record("tcp"),
        address: "10.0.0.2:5377",
        swept,
        direction: Direction::Forward,
        found,
        gaps: Vec::new(),
    }
}

/// The record with requests of 64 KiB.
fn sized(mut record: Record) -> Record {
    let pattern = Pattern::Stream { direction: Direction::Forward };
    let end = SetEnd { write_size: 64 << 10, ..SetEnd::default() };
    record
        .sets
        .push(Set { plan: SetPlan { id: 0, pattern, knobs: Knobs::default() }, ends: vec![end] });
    record
}

/// A sweep in which zerocopy costs less CPU time than copies, and sendfile does not. In the reverse direction
/// neither costs less, as the kernel copied anyway.
pub(in super::super) fn copy(direction: Direction) -> Sample {
    let settings = Swept::Copy.settings(&TCP, &Knobs::default(), 1);
    let [copy, zero, file, ring] = settings.try_into().unwrap();
    let forward = direction == Direction::Forward;
    let (cheap, dear) = if forward { (0.11, 0.25) } else { (0.2, 0.201) };
    let base = (9.41, 0.2);
    let mut zero = setting(zero, 9.4, cheap, Some(base));
    zero.copied = Some(if forward { 0.0 } else { 1.0 });
    let mut ring = setting(ring, 9.41, cheap, Some(base));
    ring.copied = zero.copied;
    let found = Sweep {
        settings: vec![
            setting(copy, base.0, base.1, None),
            zero,
            setting(file, 9.38, dear, Some(base)),
            ring,
        ],
        reference: Some(0),
        knee: None,
        falls: Vec::new(),
    };
    Sample { direction, ..probe(Swept::Copy, found) }
}

/// A sweep over sizes: goodput stops growing at 16 KiB, or by the intervals at 32 KiB.
pub(in super::super) fn size() -> Sample {
    let all = Swept::Size.settings(&TCP, &Knobs::default(), 1);
    let goodput = |at: usize| 9.4 * (at as f64 / 5.0).clamp(0.1, 1.0);
    let of = |(at, knobs)| {
        let to = (at != 12).then_some((9.4, 0.2));
        setting(knobs, goodput(at), 0.2 + 1.0 / (at as f64 + 1.0), to)
    };
    let found = Sweep {
        settings: all.into_iter().enumerate().map(of).collect(),
        reference: Some(12),
        knee: Some(Knee { at: 5, from: 4, to: 5 }),
        falls: Vec::new(),
    };
    probe(Swept::Size, found)
}

/// A sweep over streams: goodput grows up to the last number that the server allowed; the user ended it early.
pub(in super::super) fn streams() -> Sample {
    let all = Swept::Streams.settings(&TCP, &Knobs::default(), 4);
    let base = Some((30.0, 0.2));
    let mut settings: Vec<Setting> = all
        .into_iter()
        .zip([(10.0, base), (30.0, None), (0.0, None)])
        .map(|(knobs, (goodput, to))| setting(knobs, goodput, 0.2, to))
        .collect();
    settings[2].goodput = None;
    settings[2].cpu = ByRole::default();
    let found = Sweep {
        settings,
        reference: Some(1),
        knee: Some(Knee { at: 1, from: 1, to: 1 }),
        falls: Vec::new(),
    };
    let mut record = record("tcp");
    record.end = Some(End::Interrupted);
    Sample {
        record,
        gaps: vec![Gap {
            what: "4 streams".to_owned(),
            why: "left out: no descriptor left".to_owned(),
            hint: "ulimit -n 4096".to_owned(),
        }],
        ..probe(Swept::Streams, found)
    }
}

/// A sweep over depths: 16 requests in flight, or 8 by the intervals, fill the path, which holds five.
pub(in super::super) fn depth() -> Sample {
    let all = Swept::Depth.settings(&RDMA, &Knobs::default(), 1);
    let goodput = |at: usize| [10.0, 19.0, 34.0, 47.0, 49.0, 50.0][at.min(5)];
    let of = |(at, knobs)| setting(knobs, goodput(at), 0.01, (at != 10).then_some((50.0, 0.01)));
    let found = Sweep {
        settings: all.into_iter().enumerate().map(of).collect(),
        reference: Some(10),
        knee: Some(Knee { at: 4, from: 3, to: 4 }),
        falls: Vec::new(),
    };
    Sample { record: sized(record("rdma")), ..probe(Swept::Depth, found) }
}

/// A sweep over queue pairs: one gives as much goodput as several.
pub(in super::super) fn queue_pairs() -> Sample {
    let all = Swept::Qps.settings(&RDMA, &Knobs::default(), 1);
    let of = |(at, knobs)| setting(knobs, 48.0, 0.01, (at != 2).then_some((48.5, 0.01)));
    let found = Sweep {
        settings: all.into_iter().enumerate().map(of).collect(),
        reference: Some(2),
        knee: Some(Knee { at: 0, from: 0, to: 0 }),
        falls: Vec::new(),
    };
    Sample { record: sized(record("rdma")), ..probe(Swept::Qps, found) }
}

/// A sweep over arrays in memory: at some sizes the first and the last cache are full.
pub(in super::super) fn memory() -> Sample {
    let sizes = Swept::sizes(&Knobs::default(), [4096, 65_536]);
    let rates = [800.0, 790.0, 400.0, 390.0, 80.0];
    let settings = sizes.into_iter().zip(rates);
    let settings = settings.map(|(knobs, rate)| setting(knobs, rate, 8.0 / rate, None));
    let fall = |from, to| Fall { from, to };
    let found = Sweep {
        settings: settings.collect(),
        reference: Some(0),
        knee: None,
        falls: vec![fall(1, 2), fall(3, 4)],
    };
    let mut record = record("memory");
    record.hosts = vec![records::healthy().0.hosts.remove(0)];
    record.start.plan.peer = None;
    Sample { record, address: "", ..probe(Swept::Size, found) }
}
