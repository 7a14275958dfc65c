//! The end that receives messages: it posts receive requests, and counts their completions.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::run::Mark;
use linerate_sys::ibverbs::Queue;

use super::abort::Abort;
use super::pair::Pair;
use super::shape::Shape;
use crate::load::{Advice, Done, LoadError, Op, Probe, Worker};

/// Completions that are taken at a time, and receive requests that are posted at a time.
const BATCH: usize = 16;
/// Longest wait for a message before the connection is read as well.
const QUIET: Duration = Duration::from_millis(1);

/// Receives the messages of a load.
pub(super) struct Receiver {
    pair: Pair,
    shape: Shape,
    /// Receive requests that are posted.
    posted: u32,
    moved: u64,
    /// Payload that was sent in this step, once the sender has told.
    total: Option<u64>,
}

impl Receiver {
    pub(super) fn new(pair: Pair, shape: Shape) -> Self {
        Self {
            pair,
            shape,
            posted: 0,
            moved: 0,
            total: None,
        }
    }

    /// Receive requests that are posted at a time.
    fn chained(&self) -> u32 {
        self.shape.receives().min(BATCH as u32)
    }

    #[inline]
    fn fill(&mut self) -> Result<(), LoadError> {
        while self.shape.receives() - self.posted >= self.chained() {
            self.posted += self.pair.post_receives()?;
        }
        Ok(())
    }
}

impl Worker for Receiver {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        (self.moved, self.total) = (0, None);
        let chained = self.chained();
        self.pair.prepare_receives(0, self.shape.size, chained);
        self.fill()
    }

    fn submit(&mut self, _: &[Op]) -> Result<usize, LoadError> {
        self.fill()?;
        Ok(0)
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        let Self { posted, moved, .. } = self;
        let got = self
            .pair
            .wait(Queue::Received, BATCH, wait.min(QUIET), |completion| {
                let bytes = completion.bytes();
                *moved += u64::from(bytes);
                *posted = posted.saturating_sub(1);
                done.push(Done {
                    op: Op::Receive(bytes),
                    bytes,
                });
            })?;
        if got == 0
            && self.total.is_none()
            && let Some(Mark::End(total)) = self.pair.told(false)?
        {
            self.total = Some(total);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        match self.total {
            Some(total) if self.moved > total => Err(self
                .pair
                .line
                .garbled("more payload was received than was sent")),
            total => Ok(total == Some(self.moved)),
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}
