//! The thread that reads counters while other threads move payload, and that ends the step.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;
use linerate_facts::metric::{WORKER_BYTES, WORKER_OPS};
use linerate_plan::StepPlan;
use linerate_record::Table;
use linerate_sys::{clock, thread};

use super::lane::Lane;
use super::schedule::{Point, points};
use super::step::Step;
use linerate_host::Sources;
use linerate_host::sheet::Sheet;
use linerate_load::Probe;

/// After the end of a step, the longest time without payload before the step's threads are aborted.
const DRAIN: Duration = Duration::from_secs(3);
/// Largest number of drain periods (see [`DRAIN`]) in which a slow path may still deliver payload.
const DRAINS: usize = 5;
/// Reason of the abort if payload still arrived, or the end mark was missing, after the drain periods.
const NOT_DRAINED: &str = "its end mark did not come: no payload for 3 s after the end of the step, or still some \
     after 15 s";

/// Maximum share of a tick that one row may spend on connections. Reading a connection waits while a descheduled
/// thread holds it. With hundreds of streams on few CPUs, reading all of them would take seconds, so each tick
/// continues after the connection that was read last.
const PROBING_SHARE: f64 = 0.5;

/// Counters of a lane when its rate was last computed.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    at: u64,
    bytes: u64,
}

/// Reads the counters of all lanes of a step.
pub(super) struct Sampler {
    step: Arc<Step>,
    lanes: Vec<Arc<Lane>>,
    sheets: Vec<Sheet>,
    last: Vec<Last>,
    probes: Vec<Box<dyn Probe>>,
    /// Index of the probe that is read next.
    next: usize,
    /// Longest time that one row spends on probes, unless a single probe takes longer.
    probing: u64,
    sources: Sources,
    points: Vec<(u64, Point)>,
    washout: u64,
}

impl Sampler {
    pub(super) fn new(
        plan: &StepPlan,
        step: Arc<Step>,
        lanes: Vec<Arc<Lane>>,
        probes: Vec<Box<dyn Probe>>,
        sources: Sources,
    ) -> Self {
        for lane in &lanes {
            lane.advice.renew();
            if plan.washout.0 == 0 {
                // Without a washout, operations that are timed before the first tick count too.
                lane.advice.count_from(clock::now());
            }
        }
        let sheet = |lane: &Arc<Lane>| Sheet::new(WORKER_BYTES.source, lane.subject());
        let last = |lane: &Arc<Lane>| Last { at: 0, bytes: lane.counters.bytes() };
        Self {
            sheets: lanes.iter().map(sheet).collect(),
            last: lanes.iter().map(last).collect(),
            step,
            lanes,
            probes,
            next: 0,
            probing: (plan.tick.0 as f64 * PROBING_SHARE) as u64,
            sources,
            points: points(plan),
            washout: plan.washout.0,
        }
    }

    /// Adds a row to every table; `at` returns the nanoseconds since the step began.
    fn observe(&mut self, at: &dyn Fn() -> u64) {
        self.observe_ends(at);
        self.sources.observe(at());
    }

    /// Adds a row to the tables of workers and connections. Unlike the
    /// host's counters, these do not change before the step begins.
    pub(super) fn observe_ends(&mut self, at: &dyn Fn() -> u64) {
        for (lane, sheet) in self.lanes.iter().zip(&mut self.sheets) {
            let counters = &lane.counters;
            let row = [
                (WORKER_BYTES, Some(counters.bytes() as i64)),
                (WORKER_OPS, Some(counters.ops() as i64)),
            ];
            // Both values are always present, so there is no gap to report.
            sheet.push(at(), row);
        }
        self.probe(at);
    }

    /// Adds a row for one connection after the other until the time for probes is used up.
    fn probe(&mut self, at: &dyn Fn() -> u64) {
        let until = at() + self.probing;
        for _ in 0..self.probes.len() {
            self.probes[self.next].observe(self.sources.machine(), at);
            self.next = (self.next + 1) % self.probes.len();
            if at() > until {
                break;
            }
        }
        let setbacks = self.probes.iter().map(|probe| probe.setbacks()).sum();
        self.step.count_setbacks(setbacks);
    }

    /// Takes samples until the step ends, ends it, and waits for its threads; returns the tables and gaps.
    pub(super) fn run(mut self) -> (Vec<Table>, Vec<Gap>) {
        // If the kernel refuses exact timers, rows are taken later; each row carries its own time.
        let _ = thread::exact_timers();
        if let Some(began) = self.step.wait_go() {
            self.sample(began);
        }
        let now = clock::now();
        self.lanes.iter().for_each(|l| l.advice.count_until(now));
        self.step.stop();
        self.drain();
        let (mut tables, mut gaps) = self.sources.take();
        tables.extend(self.sheets.iter_mut().filter_map(Sheet::take));
        for probe in &mut self.probes {
            tables.extend(probe.take(&mut gaps));
        }
        (tables, gaps)
    }

    /// Waits for the threads to end, as long as they still move payload.
    fn drain(&self) {
        let moved = || self.lanes.iter().map(|l| l.counters.bytes()).sum::<u64>();
        let mut before = moved();
        for _ in 0..DRAINS {
            if self.step.wait_ended(DRAIN) {
                return;
            }
            let now = moved();
            if now == before {
                break;
            }
            before = now;
        }
        self.step.abort(NOT_DRAINED);
    }

    fn sample(&mut self, began: u64) {
        let at = move || clock::now().saturating_sub(began);
        // The host is not read earlier, because its activity before the step does not belong to the step.
        self.sources.observe(at());
        let mut points = std::mem::take(&mut self.points).into_iter().peekable();
        while let Some((time, point)) = points.next() {
            // If a row took longer than a tick, the rows that are overdue are skipped: the step ends on time.
            if points.peek().is_some_and(|(next, _)| at() >= *next) {
                continue;
            }
            if !self.step.wait_until(began + time) {
                self.last_row(&at);
                return;
            }
            if point == Point::Row {
                // Operations that complete while the row is read count too.
                let now = clock::now();
                self.observe(&at);
                self.lanes.iter().for_each(|l| l.advice.count_from(now));
            }
            self.advise(at());
        }
    }

    /// Adds a last row if a step ends early, after its washout.
    fn last_row(&mut self, at: &dyn Fn() -> u64) {
        if at() > self.washout && self.step.aborted().is_none() {
            self.observe(at);
        }
    }

    /// Reports to each worker the rate that it achieved since the previous call.
    fn advise(&mut self, at: u64) {
        for (lane, last) in self.lanes.iter().zip(&mut self.last) {
            let (bytes, time) = (lane.counters.bytes(), at - last.at);
            if time > 0 {
                let rate = u128::from(bytes - last.bytes) * 1_000_000_000 / u128::from(time);
                lane.advice.follow(rate as u64);
                *last = Last { at, bytes };
            }
        }
    }
}
