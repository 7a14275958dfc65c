//! One direction of a stream: one end writes bytes into the ring, the other end reads them.
//!
//! The writer ends a step by storing the position at which the step ends, and the number of steps that have ended. A
//! ring contains only payload.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use linerate_sys::clock;
use linerate_sys::memfd::SharedBytes;

use super::region::{Region, Ring, Waits, wait};
use super::ring::{held, read, write};
use crate::LoadError;
use crate::transport::line::BLOCK;

/// Longest time of one call, in nanoseconds, even while the other end makes progress in small parts.
const LONGEST: u64 = BLOCK.as_nanos() as u64;

/// Limits the duration of a call. The clock is read only after the first wait.
#[derive(Default)]
struct Patience(Option<u64>);

impl Patience {
    /// Returns whether the call may last longer.
    fn lasts(&mut self) -> bool {
        let now = clock::now();
        now < *self.0.get_or_insert(now + LONGEST)
    }
}

/// The writing end of a ring.
pub(super) struct Writer {
    pub(super) region: Region,
    ring: Ring,
    bytes: SharedBytes,
    head: u64,
    /// Position of the reader when it was last loaded.
    tail: u64,
    steps: u64,
    ended: bool,
}

impl Writer {
    pub(super) fn new(region: Region, direction: usize, bytes: SharedBytes) -> Self {
        Self {
            ring: Region::ring(direction),
            region,
            bytes,
            head: 0,
            tail: 0,
            steps: 0,
            ended: false,
        }
    }

    /// Begins a new step.
    pub(super) fn begin(&mut self) {
        self.ended = false;
    }

    fn size(&self) -> u64 {
        self.region.size
    }

    /// Returns the room in the ring in bytes. The reader's position is loaded only if less than `wanted` is known to be
    /// free.
    #[inline]
    fn room(&mut self, wanted: u64) -> Result<u64, LoadError> {
        let room = |held: u64| self.region.size - held;
        if let Some(known) = held(self.head, self.tail, self.size()).map(room)
            && known >= wanted
        {
            return Ok(known);
        }
        let tail = self.region.number(self.ring.tail).load(Acquire);
        let bytes = held(self.head, tail, self.size()).filter(|_| tail >= self.tail);
        let bytes =
            bytes.ok_or_else(|| self.region.garbled("its reader is at an impossible position"))?;
        self.tail = tail;
        Ok(self.size() - bytes)
    }

    /// Writes as many bytes as the ring has room for; returns their number.
    #[inline]
    pub(super) fn offer(&mut self, bytes: &[u8]) -> Result<usize, LoadError> {
        let room = self.room(bytes.len() as u64)?;
        let len = bytes.len().min(room as usize);
        if len > 0 {
            write(&mut self.bytes, self.head, &bytes[..len]);
            self.head += len as u64;
            self.region.number(self.ring.head).store(self.head, Release);
            self.region.tell(self.head - self.tail);
        }
        Ok(len)
    }

    /// Writes all bytes, or as many as the ring has room for within the block time; returns their number.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<usize, LoadError> {
        let mut at = self.offer(bytes)?;
        let mut patience = Patience::default();
        while at < bytes.len() && patience.lasts() {
            // If the writer were woken whenever a few bytes are free, writer and reader would run only alternately.
            let wanted = (self.size() / 2).min((bytes.len() - at) as u64);
            wait(self, wanted, BLOCK)?;
            at += self.offer(&bytes[at..])?;
        }
        Ok(at)
    }

    /// Ends the step at the current position, if it has not ended yet.
    pub(super) fn end(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.steps += 1;
        self.region.number(self.ring.end).store(self.head, Relaxed);
        self.region.number(self.ring.steps).store(self.steps, Release);
        self.region.tell_all();
    }
}

impl Waits for Writer {
    fn region(&self) -> &Region {
        &self.region
    }

    fn ready(&mut self, wanted: u64) -> Result<bool, LoadError> {
        Ok(self.room(wanted)? >= wanted)
    }
}

/// The reading end of a ring.
pub(super) struct Reader {
    pub(super) region: Region,
    ring: Ring,
    bytes: SharedBytes,
    tail: u64,
    /// Position of the writer when it was last loaded.
    head: u64,
    steps: u64,
    ended: bool,
}

impl Reader {
    pub(super) fn new(region: Region, direction: usize, bytes: SharedBytes) -> Self {
        Self {
            ring: Region::ring(direction),
            region,
            bytes,
            tail: 0,
            head: 0,
            steps: 0,
            ended: false,
        }
    }

    /// Begins a new step.
    pub(super) fn begin(&mut self) {
        self.ended = false;
    }

    /// Returns whether the writer has ended the step and all its payload was read.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Returns the number of bytes in the ring. The writer's position is loaded only if fewer than `wanted` are known
    /// to be there.
    #[inline]
    fn there(&mut self, wanted: u64) -> Result<u64, LoadError> {
        if let Some(known) = held(self.head, self.tail, self.region.size)
            && known >= wanted
        {
            return Ok(known);
        }
        let head = self.region.number(self.ring.head).load(Acquire);
        let bytes = held(head, self.tail, self.region.size).filter(|_| head >= self.head);
        let bytes =
            bytes.ok_or_else(|| self.region.garbled("its writer is at an impossible position"))?;
        self.head = head;
        Ok(bytes)
    }

    /// Reads the available bytes; returns their number.
    #[inline]
    pub(super) fn take(&mut self, into: &mut [u8]) -> Result<usize, LoadError> {
        let there = self.there(into.len() as u64)?;
        let len = into.len().min(there as usize);
        if len > 0 {
            read(&self.bytes, self.tail, &mut into[..len]);
            self.tail += len as u64;
            self.region.number(self.ring.tail).store(self.tail, Release);
            self.region.tell(self.region.size - (self.head - self.tail));
        }
        Ok(len)
    }

    /// Reads the available bytes, after waiting up to the block time for `wanted` bytes; returns their number.
    pub(super) fn get(&mut self, into: &mut [u8], wanted: u64) -> Result<usize, LoadError> {
        // If the reader waited for more than half a ring, reader and writer could wait for each other.
        let wanted = wanted.clamp(1, self.region.size / 2);
        if self.there(wanted)? < wanted && !self.ends()? {
            wait(self, wanted, BLOCK)?;
        }
        let got = self.take(into)?;
        if got == 0 {
            self.ends()?;
        }
        Ok(got)
    }

    /// Returns whether the writer has ended a step that this end has not ended yet.
    fn over(&self) -> bool {
        self.region.number(self.ring.steps).load(Acquire) != self.steps
    }

    /// Returns whether the writer has ended the step. Once all payload is read, this ends the step at this end too.
    pub(super) fn ends(&mut self) -> Result<bool, LoadError> {
        if self.ended || !self.over() {
            return Ok(self.ended);
        }
        let steps = self.region.number(self.ring.steps).load(Acquire);
        let end = self.region.number(self.ring.end).load(Relaxed);
        let left = self.there(u64::MAX)?;
        if steps != self.steps + 1 || end != self.head {
            return Err(self.region.garbled("its writer ended a step at an impossible position"));
        }
        if left == 0 {
            self.steps = steps;
            self.ended = true;
        }
        Ok(true)
    }
}

impl Waits for Reader {
    fn region(&self) -> &Region {
        &self.region
    }

    fn ready(&mut self, wanted: u64) -> Result<bool, LoadError> {
        Ok(self.there(wanted)? >= wanted || self.over())
    }
}
