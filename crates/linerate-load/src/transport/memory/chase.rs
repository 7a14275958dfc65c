//! The latency of dependent loads: each load from memory returns the address of the next one.
//!
//! A single load takes less time than reading the clock, so batches of loads are timed. Each batch gives one sample:
//! the mean of its loads. So the distribution does not show a single slow load, but the mean of all loads is exact.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;
use linerate_sys::chain::Chain;
use linerate_sys::clock;
use linerate_units::Bytes;

use super::Place;
use crate::times::Times;
use crate::{Advice, BATCH as OPS, Done, LoadError, Op, Probe, Timed, Worker};
use linerate_facts::memory::BATCH;

/// Worker that follows a chain of addresses in memory.
pub(super) struct Chase {
    place: Place,
    size: Bytes,
    /// Chain of addresses; `None` before the first step.
    chain: Option<Chain>,
    advice: Arc<Advice>,
    times: Times,
    ended: Vec<Done>,
    lacks: Vec<Gap>,
}

impl Chase {
    pub(super) fn new(place: Place, size: Bytes) -> Self {
        Self {
            place,
            size,
            chain: None,
            advice: Arc::new(Advice::new(0, 1)),
            times: Times::default(),
            ended: Vec::new(),
            lacks: Vec::new(),
        }
    }
}

impl Worker for Chase {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        if self.chain.is_none() {
            let array = self.place.array(self.size)?;
            let halt = &self.place.halt;
            self.chain = Chain::new(array, clock::now(), &|| halt.goes_on());
            halt.check()?;
        }
        let array = self.chain.iter().map(Chain::array);
        self.lacks.extend(self.place.astray(array));
        self.advice = Arc::clone(advice);
        self.ended.reserve(OPS);
        self.times.renew()
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let Some(chain) = &mut self.chain else {
            return Ok(0);
        };
        let mut from = clock::now();
        for op in ops {
            chain.follow(BATCH);
            let to = clock::now();
            // A batch counts if it began in the time that counts, so that none is included that began during the
            // washout.
            if self.advice.counts(from) {
                let each = (to - from + BATCH as u64 / 2) / BATCH as u64;
                self.times.record(each.max(1), 1);
            }
            from = to;
            self.ended.push(Done { op: *op, bytes: (BATCH * size_of::<usize>()) as u32 });
        }
        Ok(ops.len())
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.append(&mut self.ended);
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(true)
    }

    fn lacks(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.lacks)
    }

    fn timed(&mut self) -> Timed {
        Timed { trips: self.times.take(), ..Timed::default() }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        self.place.halt.probes()
    }
}
