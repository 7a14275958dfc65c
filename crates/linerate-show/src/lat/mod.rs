//! The result of `linerate lat`, as text and as JSON: one measurement of round trips.

mod json;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod text;

use linerate_explain::Headline;
use linerate_facts::Gap;
use linerate_facts::rdma::RdmaEnd;
use linerate_judge::figure::{Entry, GOODPUT, LOSS, Subject, Summary, percentiles};
use linerate_judge::model::{
    Latency, delayed, latency_of, once, round_trip_rate, round_trips, same_machine,
};
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::{self, Feature, Options};
use linerate_plan::{Knobs, Pattern};
use linerate_record::Record;
use linerate_units::stats::{Histogram, samples};
use linerate_units::{Bytes, Nanos};

pub use json::json;
pub(super) use json::{Output, output};
pub use text::page;

use super::bw::own::{broken, lasted};
use super::like::Timed;
use super::refused;
use super::{verbs, words};

/// Percentiles that are shown, as far as there are enough samples.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The result of a measurement of round trips.
#[derive(Debug)]
pub struct Probe {
    target: String,
    /// Address and port of the far end.
    address: String,
    /// Name of the transport.
    engine: String,
    /// The options of the transport that are set.
    options: Options,
    /// The ports of RDMA devices that carry the messages, near first; none for other transports.
    rdma: Vec<(Side, RdmaEnd)>,
    /// The array that dependent memory loads read; `None` if a far end answered instead.
    array: Option<Bytes>,
    size: Bytes,
    /// Time between the times at which two messages are due; `None` in closed loop.
    interval: Option<Nanos>,
    /// Settings of the connections whose round trips are timed.
    own: Knobs,
    /// The time that the typical round trip waited for a delayed acknowledgement; `None` if there was no such wait.
    delayed: Option<Nanos>,
    /// The requested time to measure.
    time: Nanos,
    /// Measured time: shorter than planned if the measurement ended early.
    lasted: Nanos,
    washout: Nanos,
    same_machine: bool,
    /// Why the measurement ended early; empty if it did not.
    broken: String,
    /// The verdict on these readings in one line; `None` if there is nothing to judge.
    headline: Option<Headline>,
    /// Answered round trips per second; `None` if unknown.
    rate: Option<f64>,
    times: Option<Histogram>,
    latency: Option<Latency>,
    /// The loads that ran while the round trips were timed.
    beside: Vec<Beside>,
    /// The settings of the load in `beside`.
    knobs: Knobs,
    gaps: Vec<Gap>,
}

/// One direction of a load that ran during the round trips.
#[derive(Debug, Clone, Copy)]
pub struct Beside {
    /// The direction of the load.
    pub direction: Direction,
    /// Goodput in bits per second; `None` if it is unknown.
    pub goodput: Option<f64>,
    /// Share of the load's datagrams that were lost; `None` if the load sends none.
    pub lost: Option<f64>,
}

impl Beside {
    fn of(record: &Record, direction: Direction) -> Self {
        let step = record.steps.first();
        let found = step.and_then(|step| once(record, step, direction));
        Self {
            direction,
            goodput: found.as_ref().map(|found| found.load.goodput.mean),
            lost: found.and_then(|found| found.datagrams?.share_lost()),
        }
    }
}

impl Beside {
    fn figures(&self) -> impl Iterator<Item = Entry> {
        let of = Subject::load(self.direction);
        let goodput = self.goodput.map(|rate| Entry::bare(&GOODPUT, of, rate));
        let lost = self.lost.map(|share| Entry::bare(&LOSS, of, share));
        goodput.into_iter().chain(lost)
    }
}

impl Probe {
    /// Makes the result of a record with one step that timed round trips. `target` is the far end as typed,
    /// `address` its address and port.
    pub fn of(target: &str, address: &str, record: &Record) -> Self {
        let plan = &record.start.plan;
        let step = record.steps.first();
        let requested = record.sets.iter().find_map(|set| match set.plan.pattern {
            Pattern::PingPong { size, interval } => Some((size, interval, &set.plan.knobs)),
            Pattern::Stream { .. } | Pattern::Operations { .. } => None,
        });
        let times = step.and_then(|step| round_trips(record, step));
        let mut gaps = refused::of_all(record);
        if times.as_ref().is_none_or(|times| times.counts.is_empty()) {
            gaps.push(Gap {
                what: words::plural(unit(&plan.engine)),
                why: "none was answered in the time that counts".to_owned(),
                hint: String::new(),
            });
        }
        let rate = step.and_then(|step| round_trip_rate(record, step));
        let interval =
            requested.and_then(|(_, interval, knobs)| knobs.open_loop.then_some(interval));
        gaps.extend(times.as_ref().and_then(|times| unanswered(times, interval, rate)));
        Self {
            target: target.to_owned(),
            address: address.to_owned(),
            engine: plan.engine.clone(),
            options: plan.knobs.options.clone(),
            rdma: verbs::ends(record),
            array: array(record),
            size: requested.map_or(Bytes(0), |(size, ..)| size),
            interval,
            own: requested.map_or_else(Knobs::default, |(.., knobs)| knobs.clone()),
            delayed: step
                .zip(times.as_ref())
                .and_then(|(step, times)| delayed(record, step, times)),
            time: step.map_or(plan.time, |step| step.plan.measure),
            lasted: lasted(step),
            washout: step.map_or(Nanos(0), |step| step.plan.washout),
            same_machine: same_machine(record),
            broken: broken(record),
            headline: Headline::of_record(record),
            rate,
            times,
            latency: step.and_then(|step| latency_of(record, step)),
            beside: plan
                .directions
                .iter()
                .map(|direction| Beside::of(record, *direction))
                .collect(),
            knobs: plan.knobs.clone(),
            gaps,
        }
    }

    /// The round trips, for output in the form of another tool; `None` if none was answered.
    pub fn timed(&self) -> Option<Timed<'_>> {
        Some(Timed {
            size: self.size,
            times: self.times.as_ref().filter(|times| !times.counts.is_empty())?,
            lasted: self.lasted,
            washout: self.washout,
            whole: words::returns(&self.engine, &self.options),
        })
    }

    /// Whether everything that was requested was measured.
    pub fn complete(&self) -> bool {
        let loads = self.beside.iter().all(|load| load.goodput.is_some());
        self.broken.is_empty() && loads && self.latency.is_some() && self.unanswered() == 0
    }

    /// Number of round trips that were timed.
    pub fn samples(&self) -> u64 {
        self.latency.as_ref().map_or(0, |latency| latency.samples)
    }

    /// Values that are unknown, or settings that were refused.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Number of round trips that were due and not answered; each counts with the time that it had taken at the end.
    fn unanswered(&self) -> u64 {
        self.times.as_ref().map_or(0, |times| times.unanswered)
    }

    /// Whether each round trip makes a new connection.
    fn makes_connections(&self) -> bool {
        transport::of(&self.engine).has(Feature::Redial)
    }

    /// Noun for one sample: round trip, connection.
    fn unit(&self) -> &'static str {
        unit(&self.engine)
    }

    /// Messages that were sent and never answered; they are not among the round trips. `None` for an engine that
    /// loses nothing.
    pub(super) fn lost(&self) -> Option<u64> {
        let times = self.times.as_ref().filter(|_| words::may_lose(&self.engine, &self.options));
        times.map(|times| times.lost)
    }

    /// Times for which answers waited in the kernel until the program read them; `None` if the kernel does not
    /// report when it received them.
    fn unread(&self) -> Option<Histogram> {
        let times = self.times.as_ref().filter(|times| !times.unread.is_empty())?;
        Some(Histogram { set: times.set, counts: times.unread.clone(), ..Histogram::default() })
    }

    /// Mean time of a memory load in nanoseconds; `None` if a far end answered.
    fn mean_load(&self) -> Option<f64> {
        let rate = self.rate.filter(|rate| *rate > 0.0)?;
        self.array.map(|_| 1e9 / rate)
    }

    /// Requested round trips per second; `None` in closed loop.
    fn requested(&self) -> Option<f64> {
        self.interval.map(per_second)
    }

    /// Whether the path was loaded while the round trips were timed.
    pub(super) const fn is_loaded(&self) -> bool {
        !self.beside.is_empty()
    }

    /// The verdict on these readings in one line; `None` if there is nothing to judge.
    pub fn headline(&self) -> Option<Headline> {
        Some(self.headline.clone()?.of_part(self.complete()))
    }

    /// The figures of the measurement: round trips on the idle or loaded path, loss, and goodput of the load.
    pub fn summary(&self) -> Summary {
        let beside: Vec<Option<Direction>> = match self.beside.as_slice() {
            [] => vec![None],
            loads => loads.iter().map(|load| Some(load.direction)).collect(),
        };
        let latency = self.latency.as_ref();
        let timed = latency.into_iter().flat_map(|latency| {
            let times = self.times.as_ref();
            let each = beside.iter();
            each.flat_map(move |direction| percentiles(*direction, latency, times))
        });
        let share = self.share_lost();
        let lost = share.map(|share| Entry::bare(&LOSS, Subject::default(), share));
        let loads = self.beside.iter().flat_map(Beside::figures);
        Summary::sorted(timed.chain(lost).chain(loads))
    }

    /// Share of the sent messages that were never answered, for an engine that may lose messages; `None` for
    /// other engines, and if no message was sent.
    fn share_lost(&self) -> Option<f64> {
        let lost = self.lost()?;
        let all = self.latency.as_ref().map_or(0, |latency| latency.samples) + lost;
        (all > 0).then(|| lost as f64 / all as f64)
    }

    /// Whether this percentile is among the unanswered round trips, which took longer than the time that was recorded.
    fn is_least(&self, percent: f64) -> bool {
        let all = self.times.as_ref().map_or(0, samples);
        percent / 100.0 * all as f64 > all.saturating_sub(self.unanswered()) as f64
    }

    fn longest(&self) -> Option<Nanos> {
        let times = self.times.as_ref()?;
        if let Some(exact) = times.exact {
            return Some(Nanos(exact.most));
        }
        times.counts.iter().map(|&(value, _)| Nanos(value)).max()
    }
}

/// Noun for one sample of an engine: round trip, connection.
fn unit(engine: &str) -> &'static str {
    transport::of(engine).sample
}

/// Size of the array that dependent memory loads read; `None` if a far end answered instead.
fn array(record: &Record) -> Option<Bytes> {
    let end = record.sets.first()?.ends.first()?;
    let is_memory = transport::of(&record.start.plan.engine).has(Feature::Memory);
    is_memory.then_some(Bytes(end.write_size))
}

/// Messages per second, if one is due in each `interval`.
fn per_second(interval: Nanos) -> f64 {
    1e9 / interval.0.max(1) as f64
}

/// A gap for round trips that were due and not answered; `None` if all were answered.
fn unanswered(times: &Histogram, interval: Option<Nanos>, rate: Option<f64>) -> Option<Gap> {
    let interval = interval.filter(|_| times.unanswered > 0)?;
    let due = samples(times);
    let answered = due.saturating_sub(times.unanswered);
    let achieved = rate.map_or("an unknown rate".to_owned(), |rate| format!("{rate:.0} a second"));
    Some(Gap {
        what: "how long some round trips took".to_owned(),
        why: format!(
            "{due} were due and {answered} of them answered: {:.0} a second were requested, \
             {achieved} achieved; the others count with their delay at the end, and took longer",
            per_second(interval)
        ),
        hint: "a lower --rate shows the path without a queue".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_is_told_with_both_rates() {
        let times = |unanswered| Histogram {
            set: 0,
            counts: vec![(1000, 100), (2_000_000_000, 900)],
            unanswered,
            ..Histogram::default()
        };
        let result_of =
            |unanswered| self::unanswered(&times(unanswered), Some(Nanos(1000)), Some(100.4));
        assert_eq!(result_of(0), None);
        let why = result_of(900).unwrap().why;
        assert!(why.starts_with("1000 were due and 100 of them answered"), "{why}");
        assert!(why.contains("1000000 a second were requested, 100 a second achieved"), "{why}");
    }
}
