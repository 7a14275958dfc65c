//! How figures of the base load vary within their step. This variation decides which differences between two runs are
//! real.

use super::datagrams::lost;
use super::derive::{first, round_trips, times};
use super::ends::{is_alone, receiving, sending, stream_set};
use super::load::{Over, load};
use super::readings::{Window, growth};
use super::tcp::sent;
use linerate_facts::metric as m;
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Pattern, Purpose};
use linerate_record::{EndReadings, Record, Step};
use linerate_units::stats::{Count, Histogram};

/// Largest number of parts of a step: enough values to show their variation, and each part long enough to count in.
const PARTS: u64 = 30;

/// The counts of one part of a step's steady time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Number of segments that the sender retransmitted, and of all that it sent; `None` if they were not read.
    pub resent: Option<Count>,
    /// Number of datagrams lost, and of all that were sent; `None` if they were not counted.
    pub lost: Option<Count>,
    /// CPU time in seconds of the sending and of the receiving threads; `None` if it was not read.
    pub cpu: [Option<f64>; 2],
    /// Payload in bytes that the sending and the receiving threads moved in the part.
    pub bytes: [f64; 2],
}

/// The base load of a direction, in equal parts of its steady time; empty if it was not measured.
pub fn parts(record: &Record, direction: Direction) -> Vec<Part> {
    let Some(step) = base(record, direction) else {
        return Vec::new();
    };
    let Some(set) = stream_set(record, step, direction) else {
        return Vec::new();
    };
    let (Some(sending), Some(receiving)) =
        (sending(record, step, direction), receiving(record, step, direction))
    else {
        return Vec::new();
    };
    let alone = is_alone(record);
    let of = |window| {
        let near = if direction.sender() == Side::Near { "tx" } else { "rx" };
        let sends = if alone { near } else { "tx" };
        let transmitted = moved(sending, &format!("s{}/{sends}", set.plan.id), window)?;
        let received = if alone {
            (None, transmitted.1)
        } else {
            moved(receiving, &format!("s{}/rx", set.plan.id), window)?
        };
        Some(Part {
            resent: sent(sending, set.plan.id, window),
            lost: lost(receiving, set.plan.id, window),
            cpu: [transmitted.0, received.0],
            bytes: [transmitted.1, received.1],
        })
    };
    let steady = Over::Steady.part(step, receiving, set.plan.id).window;
    split(steady, step.plan.tick.0).filter_map(of).collect()
}

/// All round trips of the idle path; `None` if none was timed.
pub fn idle_round_trips(record: &Record) -> Option<Histogram> {
    round_trips(record, first(record, |p| matches!(p, Purpose::IdleLatency))?)
}

/// All round trips that were timed during the base load of a direction.
pub fn base_round_trips(record: &Record, direction: Direction) -> Option<Histogram> {
    round_trips(record, base(record, direction)?)
}

/// All operations that were timed as a part of the base load of a direction.
pub fn base_operations(record: &Record, direction: Direction) -> Option<Histogram> {
    let is_load = |pattern: &Pattern| matches!(pattern, Pattern::Stream { .. });
    times(record, base(record, direction)?, is_load)
}

/// The step whose load the model uses as the base load.
fn base(record: &Record, direction: Direction) -> Option<&Step> {
    let is = |p: &Purpose| matches!(p, Purpose::Base { direction: d } if *d == direction);
    let mut all = record.steps.iter().filter(|s| is(&s.plan.purpose));
    all.find(|step| load(record, step, direction).is_some())
}

/// Splits a window into equal parts, none shorter than a tick.
fn split(window: Window, tick: u64) -> impl Iterator<Item = Window> {
    let length = window.to.saturating_sub(window.from);
    let parts = (length / tick.max(1)).min(PARTS);
    (0..parts).map(move |i| Window {
        from: window.from + length / parts * i,
        to: window.from + length / parts * (i + 1),
    })
}

/// CPU time in seconds (`None` if not all of it was read) and payload in bytes of the threads whose names begin with
/// `prefix`; `None` if payload was not read.
fn moved(end: &EndReadings, prefix: &str, window: Window) -> Option<(Option<f64>, f64)> {
    let (mut cpu, mut bytes) = (Some(0.0), None);
    for worker in end.about("worker", |s| s.starts_with(prefix)) {
        bytes = Some(bytes.unwrap_or(0.0) + growth(worker, m::WORKER_BYTES, window)?.0);
        let thread = end.about("thread", |s| s == worker.subject).next();
        let ran = thread.and_then(|t| growth(t, m::THREAD_RUN, window));
        cpu = cpu.zip(ran).map(|(sum, (ran, _))| sum + ran / 1e9);
    }
    Some((cpu, bytes?))
}
