//! The sending thread of a TCP stream.

use std::sync::Arc;

use linerate_plan::Handover;

use super::bundle::BundledStream;
use super::outflow::Outflow;
use super::outlet::Outlet;
use super::probe::SocketProbe;
use crate::framing::Framing;
use crate::pattern::stream::StreamEnd;
use crate::transport::line::Line;
use crate::{Advice, LoadError, Probe};

/// Sends random payload, in runs or as bare payload.
pub(super) struct Sender {
    flow: Outflow,
    payload: Outlet,
    advice: Arc<Advice>,
}

impl Sender {
    pub(super) fn new(line: Line, handover: Handover, framing: Framing) -> Self {
        Self {
            flow: Outflow::new(line, framing),
            payload: Outlet::new(handover),
            advice: Arc::new(Advice::new(1, 1)),
        }
    }
}

impl StreamEnd for Sender {
    const SENDS: bool = true;

    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        let filled = self.payload.fill(advice.most() as usize);
        filled.map_err(|e| self.flow.line.failed("making payload", e))?;
        self.flow.begin(advice);
        Ok(())
    }

    #[inline]
    fn go_on(&mut self, most: u32) -> Result<u32, LoadError> {
        let rate = self.advice.rate_of_each(1);
        self.flow.push(&mut self.payload, rate, most, true)
    }

    fn unfinished(&self) -> Option<u32> {
        self.flow.in_a_run().then(|| self.advice.op())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.flow.end(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = SocketProbe::new(self.flow.line.clone());
        vec![Box::new(probe.with(self.payload.completions()))]
    }
}
