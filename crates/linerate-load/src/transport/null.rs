//! A transport that moves no bytes, to measure the limits of the rest of the program.

use std::sync::Arc;
use std::time::Duration;

use linerate_plan::SetPlan;
use linerate_plan::path::Side;
use linerate_plan::transport::{self, TransportInfo};
use linerate_record::SetEnd;
use linerate_record::wire::limits::THREADS_MAX;

use super::{Connected, Lines, Offer, Prepared, Transport, streams};
use crate::{Advice, BATCH, Done, LoadError, Op, Probe, Worker};

/// Most streams of one set: each has a thread.
const STREAMS_MAX: u32 = THREADS_MAX;

/// Transport that moves no bytes, but reports operations as completed.
pub(super) struct Null;

impl Transport for Null {
    fn info(&self) -> &'static TransportInfo {
        &transport::NULL
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        streams(plan, STREAMS_MAX)
    }

    fn prepare(&self, _: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        Ok(Box::new(Pretended(plan.knobs.streams)))
    }
}

/// Prepared end; the number is that of its streams.
struct Pretended(u32);

impl Prepared for Pretended {
    fn offer(&self) -> Offer {
        Offer::new()
    }

    fn connect(self: Box<Self>, _: &Offer, _: &mut dyn Lines) -> Result<Connected, LoadError> {
        let pretender = |_| Box::new(Pretender { ended: Vec::new() }) as _;
        Ok(Connected { workers: (0..self.0).map(pretender).collect(), end: SetEnd::default() })
    }
}

struct Pretender {
    ended: Vec<Done>,
}

impl Worker for Pretender {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.ended.reserve(BATCH);
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let room = BATCH.saturating_sub(self.ended.len());
        let taken = &ops[..ops.len().min(room)];
        self.ended.extend(taken.iter().map(|op| {
            let bytes = match *op {
                Op::Send(bytes) | Op::Receive(bytes) => bytes,
                Op::Access(_) => 0,
            };
            Done { op: *op, bytes }
        }));
        Ok(taken.len())
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.append(&mut self.ended);
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_taken_as_far_as_there_is_room_and_ends_in_order() {
        let mut worker = Pretender { ended: Vec::new() };
        worker.begin(&Arc::new(Advice::new(1, 1))).unwrap();
        let ops: Vec<Op> = (1..=BATCH as u32).map(Op::Send).collect();
        assert_eq!(worker.submit(&ops[..20]).unwrap(), 20);
        assert_eq!(worker.submit(&ops[20..]).unwrap(), BATCH - 20);
        assert_eq!(worker.submit(&ops).unwrap(), 0);
        let mut done = Vec::new();
        worker.reap(1, Duration::ZERO, &mut done).unwrap();
        let bytes = |done: &[Done]| done.iter().map(|d| d.bytes).collect::<Vec<_>>();
        assert_eq!(bytes(&done), (1..=BATCH as u32).collect::<Vec<_>>());
        worker.reap(1, Duration::ZERO, &mut done).unwrap();
        assert_eq!(done.len(), BATCH);
        assert_eq!(worker.submit(&ops[..1]).unwrap(), 1);
    }
}
