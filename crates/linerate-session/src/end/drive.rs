//! The loops that drive a transport's workers. Each worker has its own thread.
//!
//! The loops read no clock, take no lock and allocate nothing.

use std::time::Duration;

use linerate_facts::Gap;
use linerate_sys::thread;

use super::lane::Lane;
use super::step::{Doer, Outcome, Step};
use linerate_load::{BATCH, Done, LoadError, Op, Worker};

/// Longest wait for an operation to complete.
const WAIT: Duration = Duration::from_millis(100);

/// Guard that reports the end of a thread to its step when it is dropped, also after a panic.
struct Leave<'a> {
    step: &'a Step,
    outcome: Option<Outcome>,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.step.ended(self.outcome.take());
    }
}

/// Runs one thread's part of a step, from its preparation to its outcome. A worker that ended in order goes back to
/// its lane. Any other worker is dropped, which closes its connection.
pub(super) fn run(index: usize, lane: &Lane, step: &Step, mut worker: Box<dyn Worker>) {
    let mut leave = Leave { step, outcome: None };
    pin(lane, step);
    if let Err(error) = worker.begin(&lane.advice) {
        step.failed(error);
        return;
    }
    for gap in worker.lacks() {
        step.lacks(gap);
    }
    let doer = worker.process().map_or_else(|| Doer::Thread(thread::id()), Doer::Process);
    for (number, helper) in worker.helpers().into_iter().enumerate() {
        step.helps(format!("{}+{number}", lane.subject()), helper);
    }
    if !step.ready(lane.subject(), doer) {
        // No payload was moved yet, but the connection is already shut down.
        return;
    }
    let result = if lane.starts {
        send(lane, step, worker.as_mut())
    } else {
        receive(lane, step, worker.as_mut())
    };
    let (timed, moved) = (worker.timed(), worker.moved());
    if result.is_ok() {
        lane.give_back(worker);
    } else {
        // This shows the other end that no end mark will be sent.
        worker.probes().iter().for_each(|probe| probe.abort());
    }
    leave.outcome = Some(Outcome { lane: index, error: result.err(), timed, moved });
}

/// Keeps the thread on its CPU. If that CPU went offline after the set was made, the scheduler places the thread. The
/// record of the set would then be wrong, so this is reported as a gap.
fn pin(lane: &Lane, step: &Step) {
    if let Some(cpu) = lane.cpu
        && let Err(error) = thread::pin(cpu)
    {
        step.lacks(Gap {
            what: format!("CPU {cpu} for {}", lane.subject()),
            why: format!("the thread could not be kept there in this step: {error}"),
            hint: String::new(),
        });
    }
}

/// Sends, or starts operations, until the step is over. Then it sends the end mark.
fn send(lane: &Lane, step: &Step, worker: &mut dyn Worker) -> Result<(), LoadError> {
    let mut done = Vec::with_capacity(BATCH);
    let mut ops = [lane.op(); BATCH];
    while !step.stopping() {
        let op = lane.op();
        // The operation changes a few times a second at most, so the batch is filled again only then.
        if ops[0] != op {
            ops.fill(op);
        }
        worker.submit(&ops[..lane.batch])?;
        worker.reap(1, WAIT, &mut done)?;
        account(lane, step, &mut done);
        if lane.gives_way {
            // Without the yield, the sender would write for a whole time slice, and its data would leave the cache
            // before the receiver reads it.
            std::thread::yield_now();
        }
    }
    loop {
        let ended = worker.finish()?;
        worker.reap(1, WAIT, &mut done)?;
        account(lane, step, &mut done);
        if ended {
            return Ok(());
        }
        give_up(step)?;
    }
}

/// Receives until the end mark arrives.
fn receive(lane: &Lane, step: &Step, worker: &mut dyn Worker) -> Result<(), LoadError> {
    let mut done = Vec::with_capacity(BATCH);
    let ops = [Op::Receive(lane.advice.most()); BATCH];
    loop {
        worker.submit(&ops[..lane.batch])?;
        worker.reap(1, WAIT, &mut done)?;
        account(lane, step, &mut done);
        if worker.finish()? {
            return Ok(());
        }
        give_up(step)?;
    }
}

/// Returns an error once the step is aborted. Most workers notice this earlier because their connection is shut down.
fn give_up(step: &Step) -> Result<(), LoadError> {
    if step.aborting() {
        let what = "no end mark".to_owned();
        return Err(LoadError::Protocol { what });
    }
    Ok(())
}

/// Counts the bytes and operations that completed, then lets the application process them.
#[inline(always)]
fn account(lane: &Lane, step: &Step, done: &mut Vec<Done>) {
    // Counters are stored once per batch because each store waits for the previous one.
    let moved = done.iter().filter(|done| done.bytes > 0);
    let (bytes, ops) =
        moved.fold((0, 0), |(bytes, ops), done| (bytes + u64::from(done.bytes), ops + 1));
    lane.counters.add(bytes, ops);
    if lane.application.is_busy() {
        for Done { bytes, .. } in done.iter() {
            lane.application.take(*bytes, step.stop_flag());
        }
    }
    done.clear();
}
