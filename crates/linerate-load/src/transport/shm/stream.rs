//! The two threads of a stream: one writes payload into the ring, the other reads it.

use std::sync::Arc;
use std::time::Duration;

use super::pipe::{Reader, Writer};
use super::probe::Brake;
use crate::pages::Pages;
use crate::{Advice, Done, LoadError, Op, Probe, Worker};

/// Approximate wake-ups of a reader per second, if its ring does not fill sooner.
const WAKES_PER_SEC: u64 = 100;

/// Worker that writes random payload.
pub(super) struct Sender {
    writer: Writer,
    payload: Pages,
    ended: bool,
    done: Option<Done>,
}

impl Sender {
    pub(super) fn new(writer: Writer) -> Self {
        Self { writer, payload: Pages::default(), ended: false, done: None }
    }
}

impl Worker for Sender {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        if self.payload.ensure(advice.most() as usize) {
            let filled = self.payload.randomize();
            filled.map_err(|e| self.writer.region.failed("getrandom", e))?;
        }
        self.ended = false;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let (Some(Op::Send(most)), None) = (ops.first(), self.done) else {
            return Ok(0);
        };
        let payload = self.payload.bytes();
        let bytes = self.writer.put(&payload[..payload.len().min(*most as usize)])?;
        self.done = Some(Done { op: Op::Send(*most), bytes: bytes as u32 });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.extend(self.done.take());
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if !self.ended {
            self.writer.end();
            self.ended = true;
        }
        Ok(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Brake::of(&self.writer.region))]
    }
}

/// Worker that reads payload up to the end of the step.
pub(super) struct Receiver {
    reader: Reader,
    room: Pages,
    advice: Arc<Advice>,
    done: Option<Done>,
}

impl Receiver {
    pub(super) fn new(reader: Reader) -> Self {
        Self { reader, room: Pages::default(), advice: Arc::new(Advice::new(1, 1)), done: None }
    }
}

impl Worker for Receiver {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        self.room.ensure(advice.most() as usize);
        self.reader.begin();
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let (Some(Op::Receive(most)), None) = (ops.first(), self.done) else {
            return Ok(0);
        };
        let room = self.room.bytes_mut();
        let len = room.len().min(*most as usize);
        // If the reader were woken for every few bytes, the two ends would take turns.
        let gathers = self.advice.rate() / WAKES_PER_SEC;
        let bytes = self.reader.get(&mut room[..len], gathers.min(len as u64))?;
        self.done = Some(Done { op: Op::Receive(*most), bytes: bytes as u32 });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.extend(self.done.take());
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(self.reader.ended())
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Brake::of(&self.reader.region))]
    }
}
