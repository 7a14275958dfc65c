//! Tests of the simulated path: which limit determines goodput, and which readings its steps have.

mod ceilings;
mod limits;
mod steps;

use linerate_facts::metric::{self as m, Metric};
use linerate_plan::path::Direction;
use linerate_plan::{ExtraWork, Knobs, Pattern, Purpose, Receive, SetPlan, StepPlan};
use linerate_record::{Step, Table};
use linerate_session::link::{Link, LinkError, StepControl};
use linerate_sim::noise::Class;
use linerate_sim::{Congestion, Sim, SimPath, Span};
use linerate_units::{Bytes, Nanos, Rate};
use proptest::prelude::*;

fn set(id: u32, direction: Direction, knobs: Knobs) -> SetPlan {
    SetPlan { id, pattern: Pattern::Stream { direction }, knobs }
}

fn ping(id: u32) -> SetPlan {
    SetPlan {
        id,
        pattern: Pattern::PingPong { size: Bytes(64), interval: Nanos(0) },
        knobs: Knobs::default(),
    }
}

fn plan(sets: &[u32], measure: Nanos) -> StepPlan {
    StepPlan {
        index: 0,
        purpose: Purpose::Both,
        sets: sets.to_vec(),
        washout: Nanos::from_millis(300),
        measure,
        tick: Nanos::from_millis(100),
    }
}

/// Makes these sets, and runs a step of two seconds with them.
fn run(path: &SimPath, sets: &[SetPlan]) -> Step {
    let mut sim = Sim::new(path.clone(), 1);
    for set in sets {
        sim.prepare(set).expect("the set is made");
    }
    let ids: Vec<u32> = sets.iter().map(|s| s.id).collect();
    sim.step(&plan(&ids, Nanos::from_secs(2)), &mut |_| StepControl::Continue)
        .expect("the step runs")
}

fn tables<'a>(step: &'a Step, end: usize, source: &'a str) -> impl Iterator<Item = &'a Table> {
    step.ends[end].tables.iter().filter(move |t| t.source == source)
}

/// Returns how much a counter grows per second in the time that counts.
fn speed(table: &Table, metric: Metric) -> f64 {
    let values = table.column(metric).expect("the column is there");
    let first = table.at.iter().position(|&at| at >= 300_000_000).expect("a row");
    let last = values.len() - 1;
    (values[last] - values[first]) as f64 * 1e9 / (table.at[last] - table.at[first]) as f64
}

/// Returns the last value of a column, from the first table of the metric's source.
fn last(step: &Step, end: usize, metric: Metric) -> f64 {
    let table = tables(step, end, metric.source).next().expect("a table");
    *table.column(metric).and_then(<[i64]>::last).expect("a row") as f64
}

/// Returns the goodput of one direction in Gb/s, from the receiver's counters.
fn goodput_of(step: &Step, direction: Direction) -> f64 {
    let end = usize::from(direction == Direction::Forward);
    tables(step, end, "worker")
        .filter(|t| t.subject.contains("/rx"))
        .map(|t| speed(t, m::WORKER_BYTES) * 8e-9)
        .sum()
}

fn goodput(path: &SimPath, knobs: Knobs) -> f64 {
    let step = run(path, &[set(0, Direction::Forward, knobs)]);
    goodput_of(&step, Direction::Forward)
}

fn streams(streams: u32) -> Knobs {
    Knobs { streams, ..Knobs::default() }
}

/// Makes a path of 10 Gb/s on which only the wire is a limit.
fn wire() -> SimPath {
    SimPath::default()
}

/// Makes a longer path of 20 Gb/s on which a window of 1 MiB limits goodput to 8.4 Gb/s at a round trip of 1 ms.
fn windowed() -> SimPath {
    let mut path = SimPath { rtt: Nanos::from_millis(1), ..SimPath::default() };
    path.forward.rate = Rate(20_000_000_000);
    path.forward.receive_window = Bytes(1 << 20);
    path.forward.send_buffer = Bytes(2 << 20);
    path
}

/// Makes a fast path on which one CPU of the receiver can receive 5.7 Gb/s.
fn receiver_bound() -> SimPath {
    let mut path = wire();
    path.forward.rate = Rate(40_000_000_000);
    path.far.receive.kernel_ps = 700;
    path.far.receive.copy_ps = 700;
    path
}

fn near(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 0.03, "got {got}, want {want}");
}
