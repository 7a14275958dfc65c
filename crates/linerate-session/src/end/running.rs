//! A step in progress.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use linerate_facts::Gap;
use linerate_plan::StepPlan;
use linerate_record::{EndReadings, Table, Total};
use linerate_sys::clock;
use linerate_units::stats::Histogram;
use linerate_units::{Bytes, Nanos, Rate};

use super::drive;
use super::lane::Lane;
use super::live::Live;
use super::sampler::Sampler;
use super::step::{Doer, Outcome, Step};
use linerate_host::Sources;
use linerate_load::{LoadError, Timed, Worker};
use linerate_plan::application::Role;

/// Error of streams that did not end in order because the step was aborted.
const ABORTED: &str = "the step was aborted";
/// Shortest time over which the displayed rate is computed, in nanoseconds.
const LIVE_MIN: u64 = 50_000_000;

/// A step in progress on one end. If this value is dropped, the step is aborted.
pub struct Running {
    step: Arc<Step>,
    lanes: Vec<Arc<Lane>>,
    /// Payload that each lane had moved before the step.
    before: Vec<u64>,
    threads: Vec<JoinHandle<()>>,
    sampler: Option<JoinHandle<(Vec<Table>, Vec<Gap>)>>,
    live: Mutex<Glance>,
    /// Payload that [`seen`] returned when the step was armed.
    first: u64,
    /// Lost or reordered packets that were counted before the step; `None` if they are not counted.
    setbacks: Option<u64>,
}

/// Counters at the time when the displayed rate was last computed.
#[derive(Debug, Clone, Copy)]
struct Glance {
    at: u64,
    /// Payload that was moved in this step and in all earlier ones, in bytes.
    bytes: u64,
    rate: Rate,
}

impl Running {
    pub(super) fn arm(
        plan: &StepPlan,
        lanes: Vec<Arc<Lane>>,
        mut sources: Sources,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self, LoadError> {
        let workers = take_all(&lanes)?;
        let probes = || workers.iter().flat_map(|w| w.probes());
        let step = Arc::new(Step::new(lanes.len(), probes().collect()));
        let probes = probes().collect();
        let first = seen(&lanes);
        let mut running = Self {
            before: lanes.iter().map(|l| l.counters.bytes()).collect(),
            live: Mutex::new(Glance { at: 0, bytes: first, rate: Rate(0) }),
            first,
            setbacks: None,
            threads: Vec::new(),
            sampler: None,
            step,
            lanes,
        };
        running.spawn_workers(workers)?;
        for (subject, doer) in running.step.wait_ready(goes_on)? {
            match doer {
                Doer::Thread(id) => sources.watch_thread(&subject, id),
                Doer::Process(id) => sources.watch_process(&subject, id),
            }
        }
        let cpus: BTreeSet<u32> = running.lanes.iter().filter_map(|l| l.cpu).collect();
        sources.watch_clocks(cpus.into_iter().collect());
        let (step, lanes) = (Arc::clone(&running.step), running.lanes.clone());
        let mut sampler = Sampler::new(plan, step, lanes, probes, sources);
        sampler.observe_ends(&|| 0);
        running.setbacks = running.step.setbacks();
        let thread = spawn("sampler".to_owned(), move || sampler.run())?;
        running.sampler = Some(thread);
        Ok(running)
    }

    fn spawn_workers(&mut self, workers: Vec<Box<dyn Worker>>) -> Result<(), LoadError> {
        for (index, worker) in workers.into_iter().enumerate() {
            let (lane, step) = (Arc::clone(&self.lanes[index]), Arc::clone(&self.step));
            let name = lane.subject();
            let thread = spawn(name, move || drive::run(index, &lane, &step, worker))?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Opens the barrier, which starts the step's clock. The receiving end should start first.
    pub fn go(&mut self) {
        self.step.go();
    }

    /// Waits up to `wait`; returns true once all threads have ended.
    pub fn done(&mut self, wait: Duration) -> bool {
        self.step.wait_ended(wait)
    }

    /// Returns the payload that each thread of this end has moved in this step.
    pub(crate) fn moved(&self) -> Vec<u64> {
        let each = self.lanes.iter().zip(&self.before);
        each.map(|(lane, before)| lane.counters.bytes() - before).collect()
    }

    /// Returns the error of a thread that has ended before the step did; `None` if there is none.
    pub(crate) fn failed(&self) -> Option<String> {
        self.step.failure()
    }

    /// Returns the current progress. The rate covers the time since it was last computed. If that was less than 50 ms
    /// ago, the last rate is returned.
    pub fn live(&self) -> Live {
        let elapsed = self.step.began().map_or(0, |began| clock::now() - began);
        let mut last = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let time = elapsed.saturating_sub(last.at);
        if time >= LIVE_MIN {
            let bytes = seen(&self.lanes);
            *last = Glance {
                at: elapsed,
                bytes,
                rate: Rate::of(Bytes(bytes - last.bytes), Nanos(time)),
            };
        }
        Live {
            rate: last.rate,
            moved: Bytes(last.bytes - self.first),
            setbacks: self
                .step
                .setbacks()
                .zip(self.setbacks)
                .map(|(now, before)| now.saturating_sub(before)),
            elapsed: Nanos(elapsed),
        }
    }

    /// Ends the step early and in order: senders now send their end marks.
    pub fn stop(&self) {
        self.step.ask_stop();
    }

    /// Ends the step at once: connections are shut down, and their sets cannot be used again.
    pub fn abort(&self) {
        self.step.abort(ABORTED);
    }

    /// Waits for the threads to end (at most until the drain deadline, 15 s after the step's end) and returns the
    /// readings. A step whose barrier was never opened is aborted.
    pub fn finish(mut self) -> EndReadings {
        if self.step.began().is_none() {
            self.abort();
        }
        let (tables, mut gaps) = self.join();
        let outcomes = self.step.outcomes();
        gaps.extend(self.step.gaps());
        let mut readings = EndReadings { tables, gaps, ..EndReadings::default() };
        for (index, lane) in self.lanes.iter().enumerate() {
            let outcome = outcomes.iter().find(|o| o.lane == index);
            let moved = lane.counters.bytes() - self.before[index];
            let complete =
                self.step.aborted().is_none() && outcome.is_some_and(|o| o.error.is_none());
            let streams = outcome.map_or(&[][..], |o| o.moved.as_slice());
            match streams {
                [] => readings.totals.push(total(lane, lane.stream, moved, complete)),
                several => {
                    let totals = several.iter().map(|(s, n)| total(lane, *s, *n, complete));
                    readings.totals.extend(totals);
                }
            }
            if !complete {
                let why = self.why(outcome);
                readings.gaps.push(unfinished(lane, why));
            }
        }
        for outcome in outcomes {
            take(&mut readings, self.lanes[outcome.lane].set, outcome.timed);
        }
        readings
    }

    /// Returns why a thread did not end in order. If the step was
    /// aborted, the reason of the abort explains all later errors.
    fn why(&self, outcome: Option<&Outcome>) -> String {
        let error = outcome.and_then(|o| o.error.as_ref());
        match (self.step.aborted(), error) {
            (Some(why), _) => why.to_owned(),
            (None, Some(error)) => error.to_string(),
            (None, None) => "its thread failed".to_owned(),
        }
    }

    fn join(&mut self) -> (Vec<Table>, Vec<Gap>) {
        let read = self.sampler.take().map(JoinHandle::join);
        for thread in self.threads.drain(..) {
            // A thread that panicked has no outcome; this is reported as an error of its lane.
            let _ = thread.join();
        }
        if self.step.aborted().is_some() {
            // A thread that ended in order just before the abort returned its worker, but its connection was shut
            // down afterwards.
            self.lanes.iter().for_each(|lane| drop(lane.take()));
        }
        match read {
            None => Default::default(),
            Some(Ok(read)) => read,
            Some(Err(_)) => {
                let gap = Gap {
                    what: "the tables of this end".to_owned(),
                    why: "the thread that reads them failed".to_owned(),
                    hint: String::new(),
                };
                (Vec::new(), vec![gap])
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.sampler.is_some() || !self.threads.is_empty() {
            self.abort();
            self.join();
        }
    }
}

/// Stores the round trips or operations that a worker of a set timed, if there are any.
fn take(readings: &mut EndReadings, set: u32, timed: Timed) {
    if !timed.trips.is_empty() || timed.lost > 0 {
        readings.latencies.push(Histogram {
            set,
            counts: timed.trips,
            unanswered: timed.unanswered,
            lost: timed.lost,
            unread: timed.unread,
            exact: timed.exact,
        });
    }
    if !timed.gaps.is_empty() {
        readings.send_gaps.push(Histogram { set, counts: timed.gaps, ..Histogram::default() });
    }
}

/// Takes the workers out of all lanes; if one is missing, puts the others back and returns an error.
fn take_all(lanes: &[Arc<Lane>]) -> Result<Vec<Box<dyn Worker>>, LoadError> {
    let mut workers = Vec::new();
    for lane in lanes {
        if let Some(worker) = lane.take() {
            workers.push(worker);
        } else {
            for (lane, worker) in lanes.iter().zip(workers) {
                lane.give_back(worker);
            }
            return Err(LoadError::NotConnected { set: lane.set });
        }
    }
    Ok(workers)
}

fn spawn<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, LoadError> {
    let thread = Builder::new().name(name).spawn(body);
    thread.map_err(|source| LoadError::Call { call: "clone", stream: 0, source })
}

/// Returns the payload that this end has received, or has sent if it receives none.
fn seen(lanes: &[Arc<Lane>]) -> u64 {
    let role =
        if lanes.iter().any(|l| l.role == Role::Receiver) { Role::Receiver } else { Role::Sender };
    let same = lanes.iter().filter(|l| l.role == role);
    same.map(|l| l.counters.bytes()).sum()
}

fn total(lane: &Lane, stream: u32, moved: u64, complete: bool) -> Total {
    let (sends, receives) = match lane.role {
        _ if lane.pattern.direction().is_none() => (true, true),
        Role::Sender => (true, false),
        Role::Receiver => (false, true),
    };
    Total {
        set: lane.set,
        stream,
        sent: if sends { moved } else { 0 },
        received: if receives { moved } else { 0 },
        complete,
    }
}

fn unfinished(lane: &Lane, why: String) -> Gap {
    Gap { what: format!("{WORKER}{}", lane.subject()), why, hint: String::new() }
}

/// Beginning of the text of gaps about threads that did not end in order.
const WORKER: &str = "worker ";

/// Returns whether a gap reports that a thread did not end in order.
pub(crate) fn is_unfinished(gap: &Gap) -> bool {
    gap.what.starts_with(WORKER)
}
