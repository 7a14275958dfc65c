//! The far end of round trips: it answers each message as soon as it is received.

use std::sync::Arc;
use std::time::Duration;

use super::Answerer;
use crate::{Advice, Done, LoadError, Op, Probe, Worker};

/// Worker that answers messages through `answerer`.
pub(crate) struct Echo<A> {
    answerer: A,
    done: Option<Done>,
}

impl<A: Answerer> Echo<A> {
    pub(crate) fn new(answerer: A) -> Self {
        Self { answerer, done: None }
    }
}

impl<A: Answerer> Worker for Echo<A> {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.answerer.begin()
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if ops.is_empty() || self.done.is_some() {
            return Ok(0);
        }
        let bytes = self.answerer.answer()?;
        let op = Op::Receive(self.answerer.size());
        self.done = Some(Done { op, bytes });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if let Some(one) = self.done.take() {
            done.push(one);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(self.answerer.ended())
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        self.answerer.probes()
    }
}
