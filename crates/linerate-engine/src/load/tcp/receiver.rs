//! The receiving thread of a stream.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::plan::Knobs;

use super::bundle::Flow;
use super::inflow::Inflow;
use super::probe::SocketProbe;
use crate::load::line::Line;
use crate::load::pages::Pages;
use crate::load::{Advice, Done, LoadError, Op, Probe, Worker};

/// Receives runs of payload up to the end mark.
pub(super) struct Receiver {
    flow: Inflow,
    buffer: Pages,
    advice: Arc<Advice>,
    done: Option<Done>,
}

impl Receiver {
    pub(super) fn new(line: Line, knobs: &Knobs) -> Self {
        Self {
            flow: Inflow::new(line, knobs),
            buffer: Pages::default(),
            advice: Arc::new(Advice::new(1, 1)),
            done: None,
        }
    }
}

impl Worker for Receiver {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        self.buffer.ensure(advice.most() as usize);
        self.flow.begin();
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let (Some(Op::Receive(most)), None) = (ops.first(), self.done) else {
            return Ok(0);
        };
        let (room, rate) = (self.buffer.bytes_mut(), self.advice.rate());
        let bytes = self.flow.pull(room, rate, *most, true)?;
        let op = Op::Receive(*most);
        self.done = Some(Done { op, bytes });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.extend(self.done.take());
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(self.flow.ended())
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(SocketProbe::new(self.flow.line.clone()))]
    }
}
