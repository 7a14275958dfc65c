//! The sending thread of a stream.

use std::sync::Arc;
use std::time::Duration;

use linerate_plan::Handover;

use super::bundle::BundledStream;
use super::outflow::Outflow;
use super::outlet::Outlet;
use super::probe::SocketProbe;
use crate::framing::Framing;
use crate::transport::line::Line;
use crate::{Advice, Done, LoadError, Op, Probe, Worker};

/// Worker that sends runs of random payload.
pub(super) struct Sender {
    flow: Outflow,
    payload: Outlet,
    advice: Arc<Advice>,
    done: Option<Done>,
}

impl Sender {
    pub(super) fn new(line: Line, handover: Handover, framing: Framing) -> Self {
        Self {
            flow: Outflow::new(line, framing),
            payload: Outlet::new(handover),
            advice: Arc::new(Advice::new(1, 1)),
            done: None,
        }
    }
}

impl Worker for Sender {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        let filled = self.payload.fill(advice.most() as usize);
        filled.map_err(|e| self.flow.line.failed("making payload", e))?;
        self.flow.begin(advice);
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let (Some(Op::Send(most)), None) = (ops.first(), self.done) else {
            return Ok(0);
        };
        let rate = self.advice.rate_of_each(1);
        let bytes = self.flow.push(&mut self.payload, rate, *most, true)?;
        let op = Op::Send(*most);
        self.done = Some(Done { op, bytes });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.extend(self.done.take());
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if self.flow.in_a_run() {
            let op = [Op::Send(self.advice.op())];
            self.submit(&op)?;
            return Ok(false);
        }
        self.flow.end(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = SocketProbe::new(self.flow.line.clone());
        vec![Box::new(probe.with(self.payload.completions()))]
    }
}
