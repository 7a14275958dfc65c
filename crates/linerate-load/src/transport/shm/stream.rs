//! The two ends of a stream: one writes payload into the ring, the other reads it.

use std::sync::Arc;

use super::pipe::{Reader, Writer};
use super::probe::Brake;
use crate::pages::Pages;
use crate::pattern::stream::StreamEnd;
use crate::{Advice, LoadError, Probe};

/// Approximate number of wake-ups of a waiting reader per second, if its ring does not fill sooner.
const WAKES_PER_SEC: u64 = 100;

/// Sending end: writes random payload into the ring.
pub(super) struct Sender {
    writer: Writer,
    payload: Pages,
}

impl Sender {
    pub(super) fn new(writer: Writer) -> Self {
        Self { writer, payload: Pages::default() }
    }
}

impl StreamEnd for Sender {
    const SENDS: bool = true;

    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        let filled = self.payload.fill(advice.most() as usize);
        filled.map_err(|e| self.writer.region.failed("getrandom", e))?;
        self.writer.begin();
        Ok(())
    }

    #[inline]
    fn go_on(&mut self, most: u32) -> Result<u32, LoadError> {
        let payload = self.payload.bytes();
        let bytes = self.writer.put(&payload[..payload.len().min(most as usize)])?;
        Ok(bytes as u32)
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.writer.end();
        Ok(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Brake::of(&self.writer.region))]
    }
}

/// Receiving end: reads payload from the ring up to the end of the step.
pub(super) struct Receiver {
    reader: Reader,
    room: Pages,
    advice: Arc<Advice>,
}

impl Receiver {
    pub(super) fn new(reader: Reader) -> Self {
        Self { reader, room: Pages::default(), advice: Arc::new(Advice::new(1, 1)) }
    }
}

impl StreamEnd for Receiver {
    const SENDS: bool = false;

    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        self.room.ensure(advice.most() as usize);
        self.reader.begin();
        Ok(())
    }

    #[inline]
    fn go_on(&mut self, most: u32) -> Result<u32, LoadError> {
        let room = self.room.bytes_mut();
        let len = room.len().min(most as usize);
        // If the reader were woken for every few bytes, reader and writer would run only alternately.
        let gathers = self.advice.rate() / WAKES_PER_SEC;
        let bytes = self.reader.get(&mut room[..len], gathers.min(len as u64))?;
        Ok(bytes as u32)
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(self.reader.ended())
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Brake::of(&self.reader.region))]
    }
}
