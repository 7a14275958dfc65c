//! The receiving thread of a TCP stream.

use std::sync::Arc;

use linerate_plan::{Handover, Knobs, Receive};
use linerate_sys::uring;

use super::bundle::BundledStream;
use super::inflow::Inflow;
use super::intake::Intake;
use super::probe::SocketProbe;
use super::uring::pieces;
use crate::framing::Framing;
use crate::pages::Pages;
use crate::pattern::stream::StreamEnd;
use crate::transport::line::Line;
use crate::{Advice, LoadError, Probe};

/// Receives runs of payload up to the end mark, or bare payload up to its announced end.
pub(super) struct Receiver {
    flow: Inflow,
    buffer: Pages,
    /// Requested size of a read in bytes, if io_uring reads; otherwise `None`.
    ring: Option<u64>,
    advice: Arc<Advice>,
}

impl Receiver {
    /// Makes a receiver. `handover` determines how the kernel passes payload to it.
    pub(super) fn new(line: Line, knobs: &Knobs, handover: Handover, framing: Framing) -> Self {
        let ring = handover == Handover::IoUring && knobs.receive == Receive::Copy;
        Self {
            ring: ring.then_some(knobs.read_size.0),
            flow: Inflow::new(line, knobs, framing),
            buffer: Pages::default(),
            advice: Arc::new(Advice::new(1, 1)),
        }
    }
}

impl StreamEnd for Receiver {
    const SENDS: bool = false;

    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        if let Some(requested) = self.ring {
            let (size, count) = pieces(requested, advice.most());
            let ring = uring::Receiver::new(size, count);
            let ring = ring.map_err(|e| self.flow.line.failed("io_uring_setup", e))?;
            self.flow.intake = Intake::Ring(Box::new(ring));
        } else {
            self.buffer.ensure(advice.most() as usize);
        }
        self.flow.begin(advice);
        Ok(())
    }

    #[inline]
    fn go_on(&mut self, most: u32) -> Result<u32, LoadError> {
        let (room, rate) = (self.buffer.bytes_mut(), self.advice.rate());
        self.flow.pull(room, rate, most, true)
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if self.flow.ended() {
            self.flow.close()?;
        }
        Ok(self.flow.ended())
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(SocketProbe::new(self.flow.line.clone()))]
    }
}
