//! The state that the threads of one step share: the barrier, the stop flag and the outcomes.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use linerate_facts::Gap;
use linerate_sys::clock;

use linerate_load::{LoadError, Probe, Timed};

/// The thread or process that moves the payload of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doer {
    /// A thread of this process, by its kernel id.
    Thread(i32),
    /// The first thread of another process.
    Process(u32),
}

/// The threads of a step must get ready within `READY`, plus `EACH` for each thread, but within `MOST` at the longest.
/// The other end stops waiting for this end a little later.
const READY: Duration = Duration::from_secs(10);
const EACH: Duration = Duration::from_millis(10);
const MOST: Duration = Duration::from_secs(55);

/// Time between checks whether to continue waiting for threads to get ready.
const LOOK: Duration = Duration::from_millis(100);

/// How the thread of a lane ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Index of the lane in the step.
    pub(super) lane: usize,
    /// Why the thread did not end in order; `None` if it ended in order.
    pub(super) error: Option<LoadError>,
    pub(super) timed: Timed,
    /// Payload of each stream, if the thread moves several streams.
    pub(super) moved: Vec<(u32, u64)>,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that wait at the barrier: the subjects of their tables, and their thread or process ids.
    ready: Vec<(String, Doer)>,
    /// Threads that make calls for those.
    helpers: Vec<(String, Doer)>,
    /// Why a thread could not get ready.
    failed: Option<LoadError>,
    /// Time at which the barrier was opened, on the monotonic clock; `None` while it is closed.
    began: Option<u64>,
    /// Whether an early end of the step, in order, was requested.
    stop_requested: bool,
    aborted: Option<&'static str>,
    ended: usize,
    outcomes: Vec<Outcome>,
    gaps: Vec<Gap>,
}

/// The state that the threads of one step share.
pub(super) struct Step {
    threads: usize,
    /// Whether the step is over: senders write their end marks, and no thread moves payload any more.
    stop: AtomicBool,
    abort: AtomicBool,
    /// Lost or reordered packets as last counted by the sampler; all bits are one if the number is unknown.
    setbacks: AtomicU64,
    state: Mutex<State>,
    /// Notifies the one or two threads that control the step of changes.
    change: Condvar,
    /// Notifies the threads of the step of changes. It is separate from
    /// `change` so that a thread that gets ready does not wake all others.
    turn: Condvar,
    /// Probes that can shut down the connections when the step is aborted.
    brakes: Mutex<Vec<Box<dyn Probe>>>,
}

impl Step {
    pub(super) fn new(threads: usize, brakes: Vec<Box<dyn Probe>>) -> Self {
        Self {
            threads,
            stop: AtomicBool::new(false),
            abort: AtomicBool::new(false),
            setbacks: AtomicU64::new(u64::MAX),
            state: Mutex::default(),
            change: Condvar::new(),
            turn: Condvar::new(),
            brakes: Mutex::new(brakes),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        let waited = self.change.wait_timeout(state, most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Called by a step's thread: waits for a change, at most a second.
    fn rest<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.turn.wait_timeout(state, Duration::from_secs(1));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wakes all waiting threads.
    fn tell_all(&self) {
        self.change.notify_all();
        self.turn.notify_all();
    }

    /// Called by the sampler: stores the number of packets that were lost or reordered since the connections began.
    pub(super) fn count_setbacks(&self, count: Option<u64>) {
        self.setbacks.store(count.unwrap_or(u64::MAX), Relaxed);
    }

    /// Returns the number of lost or reordered packets, as last counted by the sampler; `None` if it is unknown.
    pub(super) fn setbacks(&self) -> Option<u64> {
        let count = self.setbacks.load(Relaxed);
        (count != u64::MAX).then_some(count)
    }

    /// Returns the flag that ends sending and the processing of payload.
    pub(super) fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// Returns whether the step is over. A thread that sees this also sees the sampler's earlier writes.
    pub(super) fn stopping(&self) -> bool {
        self.stop.load(Acquire)
    }

    pub(super) fn aborting(&self) -> bool {
        self.abort.load(Relaxed)
    }

    /// Returns the reason why the step was aborted; `None` if it was not aborted.
    pub(super) fn aborted(&self) -> Option<&'static str> {
        self.state().aborted
    }

    /// Called by a step's thread: names another thread that makes calls for it.
    pub(super) fn helps(&self, subject: String, thread: i32) {
        self.state().helpers.push((subject, Doer::Thread(thread)));
    }

    /// Called by a step's thread: waits at the barrier until it opens; returns false if the step is aborted instead.
    pub(super) fn ready(&self, subject: String, doer: Doer) -> bool {
        let mut state = self.state();
        state.ready.push((subject, doer));
        self.change.notify_all();
        while state.began.is_none() && state.aborted.is_none() {
            state = self.rest(state);
        }
        state.aborted.is_none()
    }

    /// Called by a step's thread: reports something that the thread
    /// could not get, although the step continues without it.
    pub(super) fn lacks(&self, gap: Gap) {
        self.state().gaps.push(gap);
    }

    /// Takes the gaps that threads have reported.
    pub(super) fn gaps(&self) -> Vec<Gap> {
        std::mem::take(&mut self.state().gaps)
    }

    /// Called by a step's thread: reports that the thread could not get ready.
    pub(super) fn failed(&self, error: LoadError) {
        self.state().failed = Some(error);
        self.change.notify_all();
    }

    /// Called by a thread at its end. The thread stays until the last row is taken, because the kernel drops a
    /// thread's counters when it exits.
    pub(super) fn ended(&self, outcome: Option<Outcome>) {
        let mut state = self.state();
        state.ended += 1;
        state.outcomes.extend(outcome);
        self.change.notify_all();
        while !self.stopping() {
            state = self.rest(state);
        }
    }

    /// Waits until all threads are at the barrier, or until `goes_on` returns false. Returns the subjects of the
    /// threads' tables and their ids, then those of their helpers.
    pub(super) fn wait_ready(
        &self,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<(String, Doer)>, LoadError> {
        let ready = (READY + EACH * u32::try_from(self.threads).unwrap_or(u32::MAX)).min(MOST);
        let until = Instant::now() + ready;
        let mut look = Instant::now() + LOOK;
        let mut state = self.state();
        loop {
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if state.ended > 0 {
                let what = "a thread failed before the step began".to_owned();
                return Err(LoadError::Protocol { what });
            }
            if state.ready.len() == self.threads {
                return Ok([state.ready.as_slice(), &state.helpers].concat());
            }
            if Instant::now() >= until {
                let what = format!(
                    "{} of {} threads were ready after {} s",
                    state.ready.len(),
                    self.threads,
                    ready.as_secs()
                );
                return Err(LoadError::Protocol { what });
            }
            state = self.wait(state, LOOK);
            if Instant::now() >= look {
                look = Instant::now() + LOOK;
                drop(state);
                if !goes_on() {
                    return Err(LoadError::Interrupted);
                }
                state = self.state();
            }
        }
    }

    /// Opens the barrier.
    pub(super) fn go(&self) {
        let mut state = self.state();
        state.began.get_or_insert_with(clock::now);
        drop(state);
        self.tell_all();
    }

    /// Returns the time at which the barrier was opened; `None` while it is closed.
    pub(super) fn began(&self) -> Option<u64> {
        self.state().began
    }

    /// Called by the sampler: waits until the barrier opens and
    /// returns that time; `None` if the step is aborted instead.
    pub(super) fn wait_go(&self) -> Option<u64> {
        let mut state = self.state();
        while state.began.is_none() && state.aborted.is_none() {
            state = self.wait(state, Duration::from_secs(1));
        }
        state.began.filter(|_| state.aborted.is_none())
    }

    /// Called by the sampler: waits until the monotonic clock shows `at`.
    /// Returns false if the step must end, or has ended, before that time.
    pub(super) fn wait_until(&self, at: u64) -> bool {
        let mut state = self.state();
        loop {
            if state.stop_requested || state.aborted.is_some() || state.ended == self.threads {
                return false;
            }
            let left = at.saturating_sub(clock::now());
            if left == 0 {
                return true;
            }
            state = self.wait(state, Duration::from_nanos(left));
        }
    }

    /// Waits up to `most` for all threads to end; returns whether all have ended.
    pub(super) fn wait_ended(&self, most: Duration) -> bool {
        let until = clock::now().saturating_add(most.as_nanos() as u64);
        let mut state = self.state();
        loop {
            let left = until.saturating_sub(clock::now());
            if state.ended == self.threads || left == 0 {
                return state.ended == self.threads;
            }
            state = self.wait(state, Duration::from_nanos(left));
        }
    }

    /// Requests that the step end early and in order.
    pub(super) fn ask_stop(&self) {
        self.state().stop_requested = true;
        self.change.notify_all();
    }

    /// Called by the sampler: marks the step as over, so that senders stop.
    pub(super) fn stop(&self) {
        // The lock is held so that no thread misses the change between its check and its wait.
        let state = self.state();
        self.stop.store(true, Release);
        drop(state);
        self.tell_all();
    }

    /// Ends the step at once. `why` is reported as the error of streams that did not end in order.
    pub(super) fn abort(&self, why: &'static str) {
        let mut state = self.state();
        state.aborted.get_or_insert(why);
        self.abort.store(true, Relaxed);
        self.stop.store(true, Release);
        drop(state);
        self.tell_all();
        let brakes = self.brakes.lock().unwrap_or_else(PoisonError::into_inner);
        brakes.iter().for_each(|b| b.abort());
    }

    /// Returns the error of the first thread that failed.
    pub(super) fn failure(&self) -> Option<String> {
        let state = self.state();
        let mut errors = state.outcomes.iter().filter_map(|o| o.error.as_ref());
        errors.next().map(ToString::to_string)
    }

    /// Returns how the threads ended, once they have ended.
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        std::mem::take(&mut self.state().outcomes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_threads_can_stop_waiting() {
        let step = Step::new(1, Vec::new());
        let mut requested = 0;
        let waited = step.wait_ready(&mut || {
            requested += 1;
            requested < 2
        });
        assert!(matches!(waited, Err(LoadError::Interrupted)), "{waited:?}");
        assert_eq!(requested, 2);
    }

    #[test]
    fn threads_that_are_ready_are_taken_without_a_question() {
        let step = Step::new(1, Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| step.ready("s0/tx0".to_owned(), Doer::Thread(7)));
            let found = step.wait_ready(&mut || true).unwrap();
            assert_eq!(found, [("s0/tx0".to_owned(), Doer::Thread(7))]);
            step.abort("the test is over");
        });
        assert_eq!(step.wait_ready(&mut || panic!("asked")).unwrap().len(), 1);
    }
}
