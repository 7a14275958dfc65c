//! The engine that pretends: what the rest of the tool can do at most.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::facts::HostFacts;
use linerate_core::plan::{Pattern, SetPlan, Side};
use linerate_core::record::SetEnd;
use linerate_core::wire::limits::THREADS_MAX;

use super::{Advice, Caps, Done, Engine, Lines, LoadError, Notice, Offer, Op, Probe, Worker};

/// Most streams of one set: each has a thread.
const STREAMS_MAX: u32 = THREADS_MAX;

/// Moves nothing, and says that it did.
pub(super) struct Null;

impl Engine for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn caps(&self) -> Caps {
        Caps {
            stream: true,
            ..Caps::default()
        }
    }

    fn check(&self, _: &HostFacts, _: &SetPlan) -> Vec<Notice> {
        Vec::new()
    }

    fn prepare(&self, _: Side, plan: &SetPlan) -> Result<Offer, LoadError> {
        match plan.pattern {
            Pattern::Stream { .. } if plan.knobs.streams <= STREAMS_MAX => Ok(Offer::new()),
            Pattern::Stream { .. } => Err(LoadError::Unsupported {
                what: format!(
                    "{} streams: 1 to {STREAMS_MAX} are possible",
                    plan.knobs.streams
                ),
            }),
            Pattern::PingPong { .. } => Err(LoadError::Unsupported {
                what: "the null engine has no round trips".to_owned(),
            }),
        }
    }

    fn connect(
        &self,
        _: Side,
        plan: &SetPlan,
        _: &Offer,
        _: &mut dyn Lines,
    ) -> Result<(Vec<Box<dyn Worker>>, SetEnd), LoadError> {
        let workers = (0..plan.knobs.streams).map(|_| Box::new(Pretender { done: None }) as _);
        Ok((workers.collect(), SetEnd::default()))
    }
}

struct Pretender {
    done: Option<Done>,
}

impl Worker for Pretender {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let (Some(op), None) = (ops.first(), self.done) else {
            return Ok(0);
        };
        let (Op::Send(bytes) | Op::Receive(bytes)) = *op;
        self.done = Some(Done { op: *op, bytes });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.extend(self.done.take());
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        Vec::new()
    }
}
