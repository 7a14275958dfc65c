//! A worker whose operations are executed one after the other, for any memory or device that can be accessed.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;
use linerate_plan::Access;

use crate::{Advice, BATCH, Done, LoadError, Op, Probe, Worker};

/// Number of bytes after which a worker returns, so that a stop is noticed, even if it was offered more operations.
const TURN: u64 = 8 << 20;

/// The memory or device that operations access.
pub(crate) trait Target: Send {
    /// Prepares the memory or device on the thread that uses it. Returns the resources that it lacks.
    fn begin(&mut self) -> Result<Vec<Gap>, LoadError>;
    /// Accesses an amount of bytes that takes much longer than a call and much less than 100 ms. Returns that amount.
    fn access(&mut self, access: Access) -> Result<u32, LoadError>;
    /// Returns probes that end `begin` when the step is aborted.
    fn probes(&self) -> Vec<Box<dyn Probe>> {
        Vec::new()
    }
}

/// Worker that executes one operation after another.
pub(crate) struct Operations<T> {
    target: T,
    ended: Vec<Done>,
    lacks: Vec<Gap>,
}

impl<T> Operations<T> {
    pub(crate) fn new(target: T) -> Self {
        Self { target, ended: Vec::new(), lacks: Vec::new() }
    }
}

impl<T: Target> Worker for Operations<T> {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.ended.reserve(BATCH);
        self.lacks = self.target.begin()?;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let mut moved = 0;
        for (taken, op) in ops.iter().enumerate() {
            if moved >= TURN || self.ended.len() == BATCH {
                return Ok(taken);
            }
            let Op::Access(access) = *op else {
                let what = "a worker of operations was asked to send or to receive".to_owned();
                return Err(LoadError::Unsupported { what });
            };
            let bytes = self.target.access(access)?;
            moved += u64::from(bytes);
            self.ended.push(Done { op: *op, bytes });
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

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        self.target.probes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that accesses this many bytes at a time.
    struct Fixed(u32);

    impl Target for Fixed {
        fn begin(&mut self) -> Result<Vec<Gap>, LoadError> {
            Ok(vec![Gap { what: "half of it".to_owned(), why: String::new(), hint: String::new() }])
        }

        fn access(&mut self, _: Access) -> Result<u32, LoadError> {
            Ok(self.0)
        }
    }

    fn submitted(bytes: u32) -> (usize, u64) {
        let mut worker = Operations::new(Fixed(bytes));
        worker.begin(&Arc::new(Advice::new(1, 1))).unwrap();
        assert_eq!(worker.lacks().len(), 1);
        assert_eq!(worker.lacks().len(), 0);
        let taken = worker.submit(&[Op::Access(Access::Read); BATCH]).unwrap();
        let mut done = Vec::new();
        worker.reap(1, Duration::ZERO, &mut done).unwrap();
        assert_eq!(done.len(), taken);
        (taken, done.iter().map(|done| u64::from(done.bytes)).sum())
    }

    #[test]
    fn a_turn_is_over_after_so_many_bytes_or_a_batch() {
        assert_eq!(submitted(1), (BATCH, BATCH as u64));
        let half = (TURN / 2) as u32;
        assert_eq!(submitted(half), (2, TURN));
        assert_eq!(submitted(half - 1), (3, 3 * (TURN / 2 - 1)));
        assert_eq!(submitted(u32::MAX), (1, u64::from(u32::MAX)));
    }

    #[test]
    fn what_is_no_access_is_refused() {
        let mut worker = Operations::new(Fixed(1));
        assert!(worker.submit(&[Op::Send(1)]).is_err());
    }
}
