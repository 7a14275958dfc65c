//! Loads: as many operations in flight as the plan says, each with its time.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;

use super::Shape;
use super::disk::Disk;
use crate::times::Times;
use crate::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// Most threads of a pool whose CPU time is read: each costs two files at each tick.
const WATCHED: usize = 64;

/// Worker that keeps its operations in flight.
pub(super) struct Loads {
    disk: Disk,
    times: Times,
    advice: Arc<Advice>,
    lacks: Option<Gap>,
    op: Op,
}

impl Loads {
    pub(super) fn new(shape: Shape, stream: u32) -> Self {
        Self {
            disk: Disk::new(shape, stream),
            times: Times::default(),
            advice: Arc::new(Advice::new(1, 1)),
            lacks: None,
            op: Op::Send(0),
        }
    }
}

impl Worker for Loads {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        self.times.renew()?;
        self.lacks = self.disk.begin()?;
        Ok(())
    }

    #[inline]
    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        for (taken, op) in ops.iter().enumerate() {
            self.op = *op;
            if !self.disk.start()? {
                return Ok(taken);
            }
        }
        Ok(ops.len())
    }

    #[inline]
    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if !self.disk.is_busy() {
            return Ok(());
        }
        let Self { disk, times, advice, op, .. } = self;
        disk.complete(wait, |one| {
            if advice.counts(one.began) {
                times.record(one.at.saturating_sub(one.began), 1);
            }
            done.push(Done { op: *op, bytes: one.bytes });
        })
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.disk.stop();
        Ok(!self.disk.is_busy())
    }

    fn lacks(&mut self) -> Vec<Gap> {
        self.lacks.take().into_iter().collect()
    }

    fn timed(&mut self) -> Timed {
        Timed { trips: self.times.take(), exact: self.times.exact(), ..Timed::default() }
    }

    fn helpers(&self) -> Vec<i32> {
        Some(self.disk.helpers()).filter(|all| all.len() <= WATCHED).unwrap_or_default()
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        Vec::new()
    }
}
