//! The end that posts the requests of a load, and that learns from completions that they were executed.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::parse::run::{Mark, RUN_MAX};
use linerate_plan::transport::rdma::Operation;
use linerate_sys::clock;
use linerate_sys::ibverbs::{Queue, Request};

use super::abort::Abort;
use super::pair::Pair;
use super::shape::Shape;
use crate::{Advice, Done, LoadError, Op, Probe, Worker};

/// Most completions that are handled at a time.
const BATCH: usize = 16;
/// Time between two reports to the other end, in nanoseconds.
const REPORT: u64 = 10_000_000;

/// Worker that posts requests as long as the queue pairs have fewer in flight than the depth permits.
pub(super) struct Requester {
    pair: Pair,
    shape: Shape,
    /// Operation as which payload is counted: sent or received.
    op: Op,
    request: Request,
    /// State of each queue pair's requests.
    queues: Box<[Queued]>,
    /// Index of the queue pair that gets the next requests.
    turn: usize,
    /// Payload of this step whose requests have completed, and the part of it that was reported to the other end, in
    /// bytes.
    moved: u64,
    reported: u64,
    /// Bytes of the report that is being sent; it may have been sent in part.
    reporting: Option<u64>,
    next_report: u64,
    stage: Stage,
    /// Whether the other end has reported that the step is over.
    over: bool,
}

/// Requests of one queue pair.
#[derive(Debug, Clone, Copy, Default)]
struct Queued {
    /// Number of requests in flight, and number of requests posted since the last one that was signalled.
    in_flight: u32,
    unsignalled: u32,
}

/// Stages of ending a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Requests are being posted.
    Posting,
    /// The last request of each queue pair is signalled, so that all requests in flight will complete.
    Flushed,
    /// The end mark is being sent; it may have been sent in part.
    Ending,
}

impl Requester {
    pub(super) fn new(pair: Pair, shape: Shape, request: Request) -> Self {
        let op = match shape.op {
            Operation::Read => Op::Receive(shape.size),
            _ => Op::Send(shape.size),
        };
        Self {
            pair,
            shape,
            op,
            request,
            queues: vec![Queued::default(); shape.pairs as usize].into(),
            turn: 0,
            moved: 0,
            reported: 0,
            reporting: None,
            next_report: 0,
            stage: Stage::Posting,
            over: false,
        }
    }

    /// Posts the requests of one call. The last one is signalled if it ends a group of `signal_every`, or if `flush`.
    #[inline]
    fn post(&mut self, at: usize, flush: bool) -> Result<(), LoadError> {
        let list = self.shape.list;
        let covers = self.queues[at].unsignalled + list;
        let signalled = flush || covers >= self.shape.signal_every;
        let id = (at as u64) << 32 | u64::from(covers);
        self.pair.post(at, signalled, id)?;
        let queued = &mut self.queues[at];
        queued.unsignalled = if signalled { 0 } else { covers };
        queued.in_flight += list;
        Ok(())
    }

    /// Returns whether a queue pair has room for the requests of one call.
    #[inline]
    fn has_room(&self, at: usize) -> bool {
        self.queues[at].in_flight + self.shape.list <= self.shape.depth
    }

    /// Returns the number of requests in flight.
    fn in_flight(&self) -> u32 {
        self.queues.iter().map(|queued| queued.in_flight).sum()
    }

    /// Posts requests to the queue pairs in turn, until `most` are posted or all queues are full.
    #[inline]
    fn fill(&mut self, most: usize) -> Result<usize, LoadError> {
        let (mut posted, mut full) = (0, 0);
        while posted < most && full < self.queues.len() {
            let at = self.turn;
            self.turn = if at + 1 == self.queues.len() { 0 } else { at + 1 };
            if self.has_room(at) {
                self.post(at, false)?;
                posted += self.shape.list as usize;
                full = 0;
            } else {
                full += 1;
            }
        }
        Ok(posted.min(most))
    }

    /// Handles completions, after waiting up to `wait` for the first one.
    #[inline]
    fn complete(&mut self, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.drain(wait, done)? == 0 && !wait.is_zero() {
            // If nothing completed, the other end may be gone.
            self.heed()?;
        }
        Ok(())
    }

    /// Reads whether the other end has ended the step. The other end may do that only if it determines how long the
    /// step lasts.
    fn heed(&mut self) -> Result<(), LoadError> {
        match self.pair.poll_mark_sometimes()? {
            Some(Mark::End(_)) if !self.decides() => self.over = true,
            Some(_) => {
                return Err(self.pair.line.garbled("a mark from the end that only counts"));
            }
            None => {}
        }
        Ok(())
    }

    /// Handles completions, after waiting up to `wait` for the first one; returns how many requests completed.
    #[inline]
    fn drain(&mut self, wait: Duration, done: &mut Vec<Done>) -> Result<u32, LoadError> {
        let Self { pair, shape, op, queues, moved, .. } = self;
        let (mut covered, mut odd) = (0, false);
        pair.wait(Queue::Sent, BATCH, wait, |completion| {
            let id = completion.id();
            let covers = id as u32;
            match queues.get_mut((id >> 32) as usize) {
                Some(queued) if covers <= queued.in_flight => {
                    queued.in_flight -= covers;
                    covered += covers;
                }
                _ => odd = true,
            }
        })?;
        if odd {
            return Err(pair.line.garbled("a completion belongs to no request in flight"));
        }
        if covered > 0 && matches!(op, Op::Receive(_)) {
            pair.compare(shape, shape.size)?;
        }
        *moved += u64::from(covered) * u64::from(shape.size);
        let one = Done { op: *op, bytes: shape.size };
        done.extend(std::iter::repeat_n(one, covered as usize));
        Ok(covered)
    }

    /// Reports moved payload to the other end, if that end has no completions; returns true once all of it is reported.
    fn report(&mut self) -> Result<bool, LoadError> {
        if !self.shape.op.is_one_sided() {
            return Ok(true);
        }
        while self.reported < self.moved {
            let news = *self.reporting.get_or_insert((self.moved - self.reported).min(RUN_MAX));
            if !self.pair.tell(Mark::Run(news))? {
                return Ok(false);
            }
            self.reporting = None;
            self.reported += news;
        }
        Ok(true)
    }

    fn report_sometimes(&mut self) -> Result<(), LoadError> {
        if self.shape.op.is_one_sided() {
            let now = clock::now();
            if now >= self.next_report {
                self.next_report = now + REPORT;
                self.report()?;
            }
        }
        Ok(())
    }

    /// Returns whether this end, and not the other one, determines how long a step lasts.
    const fn decides(&self) -> bool {
        matches!(self.op, Op::Send(_))
    }

    /// Waits until all requests have completed, and sends the end mark with the total; returns true once it is sent.
    fn end(&mut self) -> Result<bool, LoadError> {
        if self.stage == Stage::Posting {
            for at in 0..self.queues.len() {
                if self.queues[at].unsignalled > 0 {
                    self.post(at, true)?;
                }
            }
            self.stage = Stage::Flushed;
        }
        if self.in_flight() > 0 {
            return Ok(false);
        }
        if self.stage == Stage::Flushed {
            if !self.report()? {
                return Ok(false);
            }
            self.stage = Stage::Ending;
        }
        self.pair.tell(Mark::End(self.moved))
    }
}

impl Worker for Requester {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.pair.prepare(self.request, self.shape.list);
        if matches!(self.op, Op::Receive(_)) {
            self.pair.clear(&self.shape, self.shape.size);
        }
        (self.moved, self.reported, self.next_report) = (0, 0, 0);
        self.stage = Stage::Posting;
        self.over = false;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if self.stage != Stage::Posting || self.over {
            return Ok(0);
        }
        self.fill(ops.len())
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.in_flight() > 0 {
            // Waiting makes sense only if no more requests can be posted: until then, the requests of a group that is
            // not full have no completion.
            let is_full = (0..self.queues.len()).all(|at| !self.has_room(at));
            let is_full = is_full || self.stage != Stage::Posting;
            self.complete(if is_full { wait } else { Duration::ZERO }, done)?;
        }
        // Payload is reported until the end mark: the other end assumes that the step is stuck if it gets no report for
        // seconds.
        if self.stage != Stage::Ending && self.reported < self.moved {
            self.report_sometimes()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if !self.decides() && !self.over {
            self.heed()?;
            return Ok(false);
        }
        self.end()
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}
