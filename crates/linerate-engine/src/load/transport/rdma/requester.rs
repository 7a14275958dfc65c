//! The end that posts the requests of a load, and learns from completions that they were carried out.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::run::{Mark, RUN_MAX};
use linerate_core::transport::rdma::Operation;
use linerate_sys::clock;
use linerate_sys::ibverbs::{Queue, Request};

use super::abort::Abort;
use super::pair::Pair;
use super::shape::Shape;
use crate::load::{Advice, Done, LoadError, Op, Probe, Worker};

/// Completions that are taken at a time.
const BATCH: usize = 16;
/// Time from one report to the other end to the next, in nanoseconds.
const REPORT: u64 = 10_000_000;

/// Posts requests as long as fewer than the depth are in flight.
pub(super) struct Requester {
    pair: Pair,
    shape: Shape,
    /// Operation whose payload is counted: sent or received.
    op: Op,
    request: Request,
    /// Requests in flight, and how many of them were posted since the last one that completes.
    in_flight: u32,
    unsignalled: u32,
    /// Payload of this step that is known to have arrived, and the part that the other end was told of.
    moved: u64,
    reported: u64,
    /// The report that may have been sent in part.
    reporting: Option<u64>,
    next_report: u64,
    stage: Stage,
    /// Whether the other end said that the step is over.
    over: bool,
}

/// How far the end of a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Requests are posted.
    Posting,
    /// No request in flight is left to complete once the last one does.
    Flushed,
    /// The end mark may have been sent in part.
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
            in_flight: 0,
            unsignalled: 0,
            moved: 0,
            reported: 0,
            reporting: None,
            next_report: 0,
            stage: Stage::Posting,
            over: false,
        }
    }

    /// Posts one request, which completes if it is the last of its group or `flush`.
    #[inline]
    fn post(&mut self, flush: bool) -> Result<(), LoadError> {
        let covers = self.unsignalled + 1;
        let signalled = flush || covers >= self.shape.signal_every;
        self.pair.post(signalled, covers.into())?;
        self.unsignalled = if signalled { 0 } else { covers };
        self.in_flight += 1;
        Ok(())
    }

    /// Takes completions; waits for the first one for at most `wait`.
    #[inline]
    fn complete(&mut self, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        let Self {
            pair,
            shape,
            op,
            in_flight,
            moved,
            ..
        } = self;
        let mut covered = 0;
        pair.wait(Queue::Sent, BATCH, wait, |completion| {
            covered += completion.id() as u32;
        })?;
        if covered > *in_flight {
            return Err(pair
                .line
                .garbled("more requests completed than were posted"));
        }
        *in_flight -= covered;
        *moved += u64::from(covered) * u64::from(shape.size);
        let one = Done {
            op: *op,
            bytes: shape.size,
        };
        done.extend(std::iter::repeat_n(one, covered as usize));
        Ok(())
    }

    /// Tells the other end what arrived, if it cannot know by itself; returns true once all of that is told.
    fn report(&mut self) -> Result<bool, LoadError> {
        if !self.shape.op.is_one_sided() {
            return Ok(true);
        }
        while self.reported < self.moved {
            let news = *self
                .reporting
                .get_or_insert((self.moved - self.reported).min(RUN_MAX));
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

    /// Whether the program at this end decides how long a step lasts.
    const fn decides(&self) -> bool {
        matches!(self.op, Op::Send(_))
    }

    /// Drains the queue and tells the other end the total; returns true once that is done.
    fn end(&mut self) -> Result<bool, LoadError> {
        if self.stage == Stage::Posting {
            if self.unsignalled > 0 {
                self.post(true)?;
            }
            self.stage = Stage::Flushed;
        }
        if self.in_flight > 0 {
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
        self.pair.prepare(self.request);
        (self.moved, self.reported, self.next_report) = (0, 0, 0);
        self.stage = Stage::Posting;
        self.over = false;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if self.stage != Stage::Posting || self.over {
            return Ok(0);
        }
        let room = (self.shape.depth - self.in_flight) as usize;
        let taken = ops.len().min(room);
        for _ in 0..taken {
            self.post(false)?;
        }
        Ok(taken)
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.in_flight > 0 {
            // Only where nothing can be posted is there something to wait for: requests of a group that is not complete
            // yet do not complete.
            let is_full = self.in_flight == self.shape.depth || self.stage != Stage::Posting;
            self.complete(if is_full { wait } else { Duration::ZERO }, done)?;
        }
        if self.stage == Stage::Posting {
            self.report_sometimes()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if !self.decides() && !self.over {
            self.over = matches!(self.pair.told_sometimes()?, Some(Mark::End(_)));
            return Ok(false);
        }
        self.end()
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}
