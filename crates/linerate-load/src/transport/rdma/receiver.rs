//! The end that receives messages: it posts receive requests and counts their completions.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::parse::run::Mark;
use linerate_plan::transport::rdma::Service;
use linerate_sys::clock;
use linerate_sys::ibverbs::Queue;

use super::abort::Abort;
use super::pair::Pair;
use super::shape::Shape;
use crate::{Advice, Done, LoadError, Op, Probe, Worker};

/// Most completions that are handled at a time, and most receive requests that are posted by one call.
const BATCH: usize = 16;
/// Longest wait for a message before the TCP connection is read.
const QUIET: Duration = Duration::from_millis(1);
/// If messages may be lost: time in nanoseconds after the last message of a step that is over, after which the missing
/// messages count as lost.
const LOST: u64 = 200_000_000;

/// Worker that receives the messages of a stream, over all its queue pairs.
pub(super) struct Receiver {
    pair: Pair,
    shape: Shape,
    /// Number of receive requests that are posted, by queue pair.
    posted: Box<[u32]>,
    /// Numbers of the queue pairs whose datagrams count, by own queue pair; empty for connected services.
    senders: Box<[u32]>,
    moved: u64,
    /// Payload that was sent in this step, in bytes, once the sender has reported it.
    total: Option<u64>,
    /// Time of the last message; it is used once the sender has reported the end of the step.
    last: u64,
}

impl Receiver {
    pub(super) fn new(pair: Pair, shape: Shape) -> Self {
        let pairs = 0..shape.pairs as usize;
        let senders = match shape.service {
            Service::Ud => pairs.filter_map(|at| pair.endpoint.peer(at)).collect(),
            Service::Rc | Service::Uc => Box::default(),
        };
        Self {
            pair,
            senders,
            posted: vec![0; shape.pairs as usize].into(),
            shape,
            moved: 0,
            total: None,
            last: 0,
        }
    }

    /// Returns how many receive requests are posted by one call: few, so that most requests stay posted meanwhile.
    fn chained(&self) -> u32 {
        (self.shape.receives() / 4).clamp(1, BATCH as u32)
    }

    #[inline]
    fn fill(&mut self) -> Result<(), LoadError> {
        let chained = self.chained();
        for (at, posted) in self.posted.iter_mut().enumerate() {
            while self.shape.receives() - *posted >= chained {
                *posted += self.pair.post_receives(at)?;
            }
        }
        Ok(())
    }

    /// Returns whether the missing messages count as lost, because none was received for some time.
    fn is_quiet(&self) -> bool {
        self.shape.service.is_lossy() && clock::now().saturating_sub(self.last) > LOST
    }
}

impl Worker for Receiver {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        (self.moved, self.total) = (0, None);
        self.pair.clear(&self.shape, self.shape.size);
        let chained = self.chained();
        self.pair.prepare_receives(self.shape.half(), self.shape.received(), chained);
        self.fill()
    }

    fn submit(&mut self, _: &[Op]) -> Result<usize, LoadError> {
        self.fill()?;
        Ok(0)
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        let Self { posted, moved, senders, .. } = self;
        let ahead = (self.shape.landing() - self.shape.half()) as u32;
        let got = self.pair.wait(Queue::Received, BATCH, wait.min(QUIET), |completion| {
            let at = completion.id() as usize;
            if let Some(posted) = posted.get_mut(at) {
                *posted = posted.saturating_sub(1);
            }
            if senders.get(at).is_some_and(|sender| *sender != completion.source()) {
                return;
            }
            let bytes = completion.bytes().saturating_sub(ahead);
            *moved += u64::from(bytes);
            done.push(Done { op: Op::Receive(bytes), bytes });
        })?;
        if got > 0 {
            self.pair.compare(&self.shape, self.shape.size)?;
        }
        if self.total.is_some() {
            if got > 0 {
                self.last = clock::now();
            }
        } else if got == 0
            && let Some(Mark::End(total)) = self.pair.poll_mark(false)?
        {
            self.total = Some(total);
            self.last = clock::now();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        match self.total {
            // For lossy services more is no error: the network may deliver a datagram twice.
            Some(total) if self.moved > total && !self.shape.service.is_lossy() => {
                Err(self.pair.line.garbled("more payload was received than was sent"))
            }
            Some(total) => Ok(self.moved >= total || self.is_quiet()),
            None => Ok(false),
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}
