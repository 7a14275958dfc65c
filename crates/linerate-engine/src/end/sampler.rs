//! The thread that reads counters while the others work, and that ends the step.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::facts::Gap;
use linerate_core::metric::{WORKER_BYTES, WORKER_OPS};
use linerate_core::plan::StepPlan;
use linerate_core::record::Table;
use linerate_sys::{clock, thread};

use super::lane::Lane;
use super::schedule::{Point, points};
use super::step::Step;
use crate::host::Sources;
use crate::load::Probe;
use crate::sheet::Sheet;

/// Longest time without a byte from the end of a step to the end of its threads.
const DRAIN: Duration = Duration::from_secs(3);
/// Such times in which a slow path may still deliver what was sent.
const DRAINS: usize = 5;
/// Why a step that did not drain was aborted.
const NOT_DRAINED: &str = "its end mark did not come: no payload for 3 s after the end of the step, or still some \
     after 15 s";

/// Share of a tick that one row may spend on connections. A question waits while a thread that has
/// no CPU holds the connection; with hundreds of streams on few CPUs the rows of all of them would
/// take seconds, so each tick goes on where the last one ended.
const PROBING: f64 = 0.5;

/// Counters of one lane as they were when its rate was last worked out.
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
    /// Place of the probe whose turn is next.
    next: usize,
    /// Longest time of one row's probes, unless a single one takes longer.
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
                // What is timed before the first tick counts too.
                lane.advice.count_from(clock::now());
            }
        }
        let sheet = |lane: &Arc<Lane>| Sheet::new(WORKER_BYTES.source, lane.subject());
        let last = |lane: &Arc<Lane>| Last {
            at: 0,
            bytes: lane.counters.bytes(),
        };
        Self {
            sheets: lanes.iter().map(sheet).collect(),
            last: lanes.iter().map(last).collect(),
            step,
            lanes,
            probes,
            next: 0,
            probing: (plan.tick.0 as f64 * PROBING) as u64,
            sources,
            points: points(plan),
            washout: plan.washout.0,
        }
    }

    /// Takes a row of every table; `at` returns the time since the step began.
    fn observe(&mut self, at: &dyn Fn() -> u64) {
        self.observe_ends(at);
        self.sources.observe(at());
    }

    /// Takes a row of workers and connections, which stand still until the step begins; the host does not.
    pub(super) fn observe_ends(&mut self, at: &dyn Fn() -> u64) {
        for (lane, sheet) in self.lanes.iter().zip(&mut self.sheets) {
            let counters = &lane.counters;
            let row = [
                (WORKER_BYTES, Some(counters.bytes() as i64)),
                (WORKER_OPS, Some(counters.ops() as i64)),
            ];
            // Both values are always present: there is no gap to report.
            sheet.push(at(), row);
        }
        self.probe(at);
    }

    /// Takes a row of each connection in turn, as long as the time for it lasts.
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

    /// Samples until the step ends, ends it, and waits for its threads; returns what was read.
    pub(super) fn run(mut self) -> (Vec<Table>, Vec<Gap>) {
        // A kernel that refuses only makes rows later; they carry their own time.
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

    /// Waits for the threads to end, as long as payload still moves.
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
        // No sooner: what the host did before is no part of the step.
        self.sources.observe(at());
        let mut points = std::mem::take(&mut self.points).into_iter().peekable();
        while let Some((time, point)) = points.next() {
            // A row that took longer than a tick makes no debt: the step ends when it should.
            if points.peek().is_some_and(|(next, _)| at() >= *next) {
                continue;
            }
            if !self.step.wait_until(began + time) {
                self.last_row(&at);
                return;
            }
            if point == Point::Row {
                // Reading the row is part of what counts.
                let now = clock::now();
                self.observe(&at);
                self.lanes.iter().for_each(|l| l.advice.count_from(now));
            }
            self.advise(at());
        }
    }

    /// A step that ends early is read once more, as long as something counts.
    fn last_row(&mut self, at: &dyn Fn() -> u64) {
        if at() > self.washout && self.step.aborted().is_none() {
            self.observe(at);
        }
    }

    /// Gives each worker its rate.
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
