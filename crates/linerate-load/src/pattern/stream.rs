//! A worker for one end of a stream of payload: one operation after the other, each in a call that blocks briefly.

use std::sync::Arc;
use std::time::Duration;

use crate::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// One end of a stream of payload, as a transport implements it.
pub(crate) trait StreamEnd: Send {
    /// Whether this end sends payload; otherwise it receives.
    const SENDS: bool;
    /// Prepares a step, as [`Worker::begin`] does.
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError>;
    /// Moves payload, at most `most` bytes unless the size is fixed. Returns the bytes moved. Blocks no longer than
    /// [`Worker::submit`]. Implementations are marked `#[inline]`: for TCP, a call took 20 of 270 instructions.
    fn go_on(&mut self, most: u32) -> Result<u32, LoadError>;
    /// Returns the size of an operation that must be executed before the end mark, if there is one.
    fn unfinished(&self) -> Option<u32> {
        None
    }
    /// Continues to the end of the step, as [`Worker::finish`] does.
    fn finish(&mut self) -> Result<bool, LoadError>;
    /// Takes the times of the step, as [`Worker::timed`] does.
    fn timed(&mut self) -> Timed {
        Timed::default()
    }
    /// Returns the probes, as [`Worker::probes`] does.
    fn probes(&self) -> Vec<Box<dyn Probe>>;
}

/// Worker of one end of a stream.
struct Stream<E> {
    end: E,
    done: Option<Done>,
}

/// Makes the worker of one end of a stream.
pub(crate) fn stream<E: StreamEnd + 'static>(end: E) -> Box<dyn Worker> {
    Box::new(Stream { end, done: None })
}

impl<E: StreamEnd> Worker for Stream<E> {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.end.begin(advice)
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let most = match (ops.first(), self.done) {
            (Some(Op::Send(most)), None) if E::SENDS => *most,
            (Some(Op::Receive(most)), None) if !E::SENDS => *most,
            _ => return Ok(0),
        };
        let bytes = self.end.go_on(most)?;
        let op = if E::SENDS { Op::Send(most) } else { Op::Receive(most) };
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
        if let Some(most) = self.end.unfinished() {
            self.submit(&[Op::Send(most)])?;
            return Ok(false);
        }
        self.end.finish()
    }

    fn timed(&mut self) -> Timed {
        self.end.timed()
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        self.end.probes()
    }
}
