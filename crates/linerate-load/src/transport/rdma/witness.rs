//! The end whose memory is written or read: its device does that, and the other end reports what was moved.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::parse::run::Mark;
use linerate_plan::transport::rdma::Operation;

use super::abort::Abort;
use super::pair::Pair;
use super::shape::Shape;
use crate::{Advice, Done, LoadError, Op, Probe, Worker};

/// Worker that counts what the requester reports.
pub(super) struct Witness {
    pair: Pair,
    shape: Shape,
    /// Whether this end, and not the other one, determines how long a step lasts.
    decides: bool,
    /// Whether this end has sent the mark that the step is over.
    end_sent: bool,
    ended: bool,
    moved: u64,
}

impl Witness {
    pub(super) fn new(pair: Pair, shape: Shape, decides: bool) -> Self {
        Self { pair, shape, decides, end_sent: false, ended: false, moved: 0 }
    }

    /// Returns whether the other end writes into this end's memory.
    fn stores(&self) -> bool {
        self.shape.op == Operation::Write && !self.decides
    }

    /// Compares what the other end has written in the step with what it should have sent.
    fn compare(&self) -> Result<(), LoadError> {
        if self.stores() && self.moved > 0 {
            self.pair.compare(&self.shape, self.shape.size)?;
        }
        Ok(())
    }

    fn take(&mut self, mark: Mark, done: &mut Vec<Done>) -> Result<(), LoadError> {
        match mark {
            Mark::Run(bytes) => {
                self.moved += bytes;
                let bytes = bytes as u32;
                let op = if self.decides { Op::Send(bytes) } else { Op::Receive(bytes) };
                done.push(Done { op, bytes });
            }
            Mark::End(total) if total == self.moved => {
                self.compare()?;
                self.ended = true;
            }
            Mark::End(_) => {
                let what = "the total of the step is not what was reported";
                return Err(self.pair.line.garbled(what));
            }
        }
        Ok(())
    }
}

impl Worker for Witness {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        (self.end_sent, self.ended, self.moved) = (false, false, 0);
        if self.stores() {
            self.pair.clear(&self.shape, self.shape.size);
        }
        Ok(())
    }

    fn submit(&mut self, _: &[Op]) -> Result<usize, LoadError> {
        Ok(0)
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.ended {
            return Ok(());
        }
        // The call blocks for the block time of all connections, which is what `wait` is too.
        if let Some(mark) = self.pair.poll_mark(!wait.is_zero())? {
            self.take(mark, done)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if self.decides && !self.end_sent {
            self.end_sent = self.pair.tell(Mark::End(0))?;
        }
        Ok(self.ended)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}
