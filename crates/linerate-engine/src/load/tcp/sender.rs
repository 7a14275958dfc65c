//! The sending thread of a stream.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::run::{Mark, RUN_MAX};
use linerate_core::plan::Handover;

use super::line::{Line, MarkPart};
use super::outlet::Outlet;
use super::probe::SocketProbe;
use crate::load::{Advice, Done, LoadError, Op, Probe, Worker};

/// Runs of payload are about this long: one over it, in seconds.
const RUNS_PER_SEC: u64 = 100;

/// Sends runs of random payload, each announced by its mark.
pub(super) struct Sender {
    line: Line,
    payload: Outlet,
    advice: Arc<Advice>,
    mark: MarkPart,
    /// Length of a run whose mark is not sent in full yet; zero when there is none.
    announced: u64,
    /// Payload left of the run.
    left: u64,
    /// Payload sent in this step.
    total: u64,
    ended: bool,
    done: Option<Done>,
}

impl Sender {
    pub(super) fn new(line: Line, way: Handover) -> Self {
        Self {
            line,
            payload: Outlet::new(way),
            advice: Arc::new(Advice::new(1, 1)),
            mark: MarkPart::default(),
            announced: 0,
            left: 0,
            total: 0,
            ended: false,
            done: None,
        }
    }

    /// Sends at most `most` bytes of payload, the mark of its run first where one begins.
    fn push(&mut self, most: u32) -> Result<u32, LoadError> {
        if self.left == 0 {
            if self.announced == 0 {
                self.announced = run_length(self.advice.rate(), most);
            }
            let mark = Mark::Run(self.announced);
            if !self.mark.put(&self.line, mark, true)? {
                return Ok(0);
            }
            self.left = std::mem::take(&mut self.announced);
        }
        let len = u64::from(most).min(self.left) as usize;
        let moved = self.payload.send(&self.line, len)?;
        self.left -= moved as u64;
        self.total += moved as u64;
        Ok(moved as u32)
    }
}

/// About 10 ms of payload, in whole operations.
fn run_length(rate: u64, op: u32) -> u64 {
    let op = u64::from(op.max(1));
    let wanted = (rate / RUNS_PER_SEC).min(RUN_MAX);
    (wanted / op).max(1) * op
}

impl Worker for Sender {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        let filled = self.payload.fill(advice.most() as usize);
        filled.map_err(|e| self.line.failed("making payload", e))?;
        self.total = 0;
        self.ended = false;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let (Some(Op::Send(most)), None) = (ops.first(), self.done) else {
            return Ok(0);
        };
        let bytes = self.push(*most)?;
        let op = Op::Send(*most);
        self.done = Some(Done { op, bytes });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.extend(self.done.take());
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if self.left > 0 || self.announced > 0 {
            let op = [Op::Send(self.advice.op())];
            self.submit(&op)?;
        } else if !self.ended {
            self.ended = self.mark.put(&self.line, Mark::End(self.total), false)?;
        }
        Ok(self.ended)
    }

    fn probe(&self) -> Option<Box<dyn Probe>> {
        let probe = SocketProbe::new(self.line.clone());
        Some(Box::new(probe.with(self.payload.completions())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_run_is_whole_operations_and_within_bounds(rate: u64, op in 0u32..=16 << 20) {
            let length = run_length(rate, op);
            prop_assert!((1..=RUN_MAX).contains(&length));
            prop_assert_eq!(length % u64::from(op.max(1)), 0);
        }
    }

    #[test]
    fn a_run_is_ten_milliseconds_long_where_operations_are_smaller() {
        assert_eq!(run_length(1_000_000_000, 1000), 10_000_000);
        assert_eq!(run_length(1_000_000, 65_536), 65_536);
    }
}
