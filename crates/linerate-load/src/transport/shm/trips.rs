//! Messages and answers: one ring for each direction. Both ends know the size of a message, so that the rings contain
//! only payload.

use std::time::Duration;

use linerate_sys::memfd::SharedBytes;

use super::pipe::{Reader, Writer};
use super::probe::Brake;
use super::region::{Region, Waits, wait};
use crate::pages::Pages;
use crate::pattern::answers::Answers;
use crate::pattern::{Answer, Answerer, Asker, Wait};
use crate::{LoadError, Probe};

/// Index of the ring for messages, and of the ring for answers.
const WAYS: [usize; 2] = [0, 1];

/// Near end: sends messages and receives their answers.
pub(super) struct ShmAsker {
    writer: Writer,
    reader: Reader,
    size: usize,
    message: Pages,
    answers: Answers,
    /// Bytes of the current message that were sent so far.
    at: usize,
    /// Whether the wait for answers also ends when the ring for messages has room.
    wants_room: bool,
}

impl ShmAsker {
    /// Makes the near end for messages of `size` bytes. With `several`, more than one message may be in flight at a
    /// time.
    pub(super) fn new(
        region: &Region,
        [out, back]: [SharedBytes; 2],
        size: u32,
        several: bool,
    ) -> Self {
        Self {
            writer: Writer::new(region.clone(), WAYS[0], out),
            reader: Reader::new(region.clone(), WAYS[1], back),
            size: size as usize,
            message: Pages::default(),
            answers: Answers::new(size, several),
            at: 0,
            wants_room: false,
        }
    }

    /// Receives bytes of answers into the buffer; returns their number.
    fn bytes(&mut self, wait: Wait) -> Result<usize, LoadError> {
        let missing = self.answers.missing() as u64;
        let into = self.answers.room();
        if wait == Wait::No {
            return self.reader.take(into);
        }
        self.reader.get(into, missing)
    }
}

impl Waits for ShmAsker {
    fn region(&self) -> &Region {
        &self.reader.region
    }

    fn ready(&mut self, wanted: u64) -> Result<bool, LoadError> {
        Ok(self.reader.ready(wanted)? || self.wants_room && self.writer.ready(wanted)?)
    }
}

impl Asker for ShmAsker {
    const PATIENCE: Option<(u64, u64)> = None;

    fn size(&self) -> u32 {
        self.size as u32
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        let filled = self.message.fill(self.size);
        filled.map_err(|e| self.reader.region.failed("getrandom", e))?;
        self.answers.begin();
        self.writer.begin();
        Ok(())
    }

    fn announce(&mut self, _: impl FnOnce() -> u64, _: bool) -> Result<bool, LoadError> {
        // The ring's own state marks the end of a step, so that no mark is sent among the messages.
        Ok(true)
    }

    fn announced(&self) -> u64 {
        u64::from(self.at > 0)
    }

    fn send(&mut self, wait: bool) -> Result<bool, LoadError> {
        let rest = &self.message.bytes()[self.at..];
        self.at += if wait { self.writer.put(rest)? } else { self.writer.offer(rest)? };
        let all = self.at == self.size;
        if all {
            self.at = 0;
            self.answers.note_sent();
        }
        Ok(all)
    }

    fn receive(&mut self, wait: Wait, take: impl FnMut(Answer) -> bool) -> Result<(), LoadError> {
        let bytes = self.bytes(wait)?;
        if !self.answers.add(bytes, take) {
            let what = "answers to messages that were not sent";
            return Err(self.reader.region.garbled(what));
        }
        Ok(())
    }

    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        self.wants_room = wanted;
        wait(self, 1, most)?;
        Ok([self.reader.ready(1)?, wanted && self.writer.ready(1)?])
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.writer.end();
        Ok(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Brake::of(&self.reader.region))]
    }
}

/// Far end: answers each message with the message's own bytes.
pub(super) struct ShmAnswerer {
    reader: Reader,
    writer: Writer,
    message: Pages,
    size: usize,
    /// Bytes of the current message that were received so far, and bytes of its answer that were sent so far.
    received: usize,
    sent: usize,
}

impl ShmAnswerer {
    /// Makes a worker that answers messages of `size` bytes.
    pub(super) fn new(region: &Region, [out, back]: [SharedBytes; 2], size: u32) -> Self {
        Self {
            reader: Reader::new(region.clone(), WAYS[0], out),
            writer: Writer::new(region.clone(), WAYS[1], back),
            message: Pages::default(),
            size: size as usize,
            received: 0,
            sent: 0,
        }
    }
}

impl Answerer for ShmAnswerer {
    fn size(&self) -> u32 {
        self.size as u32
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        self.message.ensure(self.size);
        self.reader.begin();
        Ok(())
    }

    fn answer(&mut self) -> Result<u32, LoadError> {
        if self.received < self.size {
            let into = &mut self.message.bytes_mut()[self.received..];
            let wanted = into.len() as u64;
            self.received += self.reader.get(into, wanted)?;
        }
        if self.received == self.size {
            self.sent += self.writer.put(&self.message.bytes()[self.sent..])?;
        }
        if self.sent < self.size {
            return Ok(0);
        }
        (self.received, self.sent) = (0, 0);
        Ok(self.size as u32)
    }

    fn ended(&self) -> bool {
        self.reader.ended()
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Brake::of(&self.reader.region))]
    }
}
