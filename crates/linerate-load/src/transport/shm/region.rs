//! The shared memory of one stream: its numbers and words, and how an end sleeps and is woken.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::Duration;

use linerate_plan::path::Side;
use linerate_sys::memfd::{SharedBytes, SharedMemory, Words};
use rustix::thread::futex;

use crate::LoadError;
use crate::transport::line::timespec;

/// Size of the memory before a stream's rings, in bytes. It contains 64-bit numbers, then 32-bit words. Those that
/// different ends write are in different pairs of cache lines, of `LINES` bytes each.
const HEAD: usize = 4096;
const LINES: usize = 128;
/// Number of 64-bit numbers in a pair of cache lines, and in a stream. A stream has two such pairs for each direction:
/// one for the producer, one for the consumer.
const NUMBERS_OF_LINES: usize = LINES / size_of::<AtomicU64>();
const NUMBERS: usize = 4 * NUMBERS_OF_LINES;
/// Number of 32-bit words in a pair of cache lines, and in a stream.
const WORDS_OF_LINES: usize = LINES / size_of::<AtomicU32>();
const WORDS: usize = (HEAD - 4 * LINES) / size_of::<AtomicU32>();

/// Number of polls of an empty ring after which a polling worker checks whether it must stop.
const SPINS: u32 = 1024;

/// How the memory of a set is divided into streams and rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) streams: u32,
    /// Number of rings of a stream: one for a stream of payload, two for round trips.
    pub(super) rings: usize,
    /// Size of each ring in bytes, a power of two.
    pub size: u64,
}

impl Layout {
    /// Returns the size of one stream's memory in bytes. It is computed before the plan's numbers are checked, so it
    /// saturates: an absurd plan then needs more memory than there is.
    pub(super) fn stream(&self) -> usize {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        self.rings.saturating_mul(size).saturating_add(HEAD)
    }

    /// Takes the memory of the next ring.
    pub(super) fn ring(&self, memory: &mut SharedMemory) -> SharedBytes {
        memory.bytes(self.size as usize)
    }

    /// Returns the size of the memory of all streams, in bytes.
    pub(super) fn all(&self) -> usize {
        self.stream().saturating_mul(self.streams as usize)
    }
}

/// The shared memory of one stream, as one end uses it.
#[derive(Debug, Clone)]
pub(super) struct Region {
    numbers: Words<AtomicU64>,
    words: Words<AtomicU32>,
    /// Index of this end: 0 for near, 1 for far.
    end: usize,
    pub size: u64,
    pub(super) set: u32,
    pub(super) stream: u32,
    /// Whether this end polls instead of sleeping; both ends of a set do the same.
    busy: bool,
}

/// Indices of the numbers of one ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    /// Indices of the numbers that the producer writes: its position, the position at which the last step ended, and
    /// the number of steps that have ended.
    pub(super) head: usize,
    pub(super) end: usize,
    pub(super) steps: usize,
    /// Index of the number that the consumer writes: its position.
    pub(super) tail: usize,
}

impl Region {
    /// Takes the memory of the next stream. The memory of its rings follows.
    pub(super) fn take(
        memory: &mut SharedMemory,
        layout: &Layout,
        side: Side,
        set: u32,
        stream: u32,
        busy: bool,
    ) -> Self {
        Self {
            numbers: memory.numbers(NUMBERS),
            words: memory.words(WORDS),
            end: usize::from(side == Side::Far),
            size: layout.size,
            set,
            stream,
            busy,
        }
    }

    /// Returns the indices of the numbers of a ring: 0 is the first direction, 1 the way back.
    pub(super) fn ring(number: usize) -> Ring {
        let first = 2 * number * NUMBERS_OF_LINES;
        Ring { head: first, end: first + 1, steps: first + 2, tail: first + NUMBERS_OF_LINES }
    }

    /// Returns one of the stream's numbers, such as a position.
    #[inline]
    pub(super) fn number(&self, at: usize) -> &AtomicU64 {
        &self.numbers.all()[at]
    }

    /// Returns the futex word on which an end sleeps: zero while the end is awake, otherwise the number of bytes for
    /// which it waits.
    fn asleep(&self, end: usize) -> &AtomicU32 {
        &self.words.all()[WORDS_OF_LINES * end]
    }

    /// Returns the word that is not zero if an end has closed the stream.
    fn closed(&self, end: usize) -> &AtomicU32 {
        &self.words.all()[WORDS_OF_LINES * end + 1]
    }

    /// Closes the stream, and wakes both ends.
    pub(super) fn close(&self) {
        self.closed(self.end).store(1, SeqCst);
        for end in [0, 1] {
            self.wake(end);
        }
    }

    /// Fails once either end has closed the stream.
    pub(super) fn open(&self) -> Result<(), LoadError> {
        let closed = |end| self.closed(end).load(Relaxed) != 0;
        let by = match [closed(1 - self.end), closed(self.end)] {
            [true, _] => "the other end",
            [false, true] => "this end",
            [false, false] => return Ok(()),
        };
        let what = format!("{by} closed stream {} of set {} during a step", self.stream, self.set);
        Err(LoadError::Protocol { what })
    }

    /// Wakes the other end if it waits for at most `bytes` bytes, of payload or of room.
    #[inline]
    pub(super) fn tell(&self, bytes: u64) {
        if self.busy {
            return;
        }
        // With the fence, either the other end goes to sleep later and sees the published bytes, or this end sees that
        // the other end sleeps.
        fence(SeqCst);
        let wanted = u64::from(self.asleep(1 - self.end).load(Relaxed));
        if wanted != 0 && bytes >= wanted {
            self.wake(1 - self.end);
        }
    }

    /// Wakes the other end, however many bytes it waits for.
    pub(super) fn tell_all(&self) {
        fence(SeqCst);
        self.wake(1 - self.end);
    }

    /// Makes both ends appear to sleep until `wanted` bytes are available.
    #[cfg(test)]
    pub(super) fn pretend_asleep(&self, wanted: u32) {
        for end in [0, 1] {
            self.asleep(end).store(wanted, Relaxed);
        }
    }

    #[cold]
    fn wake(&self, end: usize) {
        let word = self.asleep(end);
        if word.swap(0, SeqCst) != 0 {
            // If waking fails, the other end wakes after its timeout anyway.
            let _ = futex::wake(word, futex::Flags::empty(), 1);
        }
    }

    /// Sleeps until this end is woken or `most` has passed; returns at once if this end was woken already. The caller
    /// then checks the state again.
    fn sleep(&self, wanted: u32, most: Duration) {
        let time = timespec(most);
        let _ = futex::wait(self.asleep(self.end), futex::Flags::empty(), wanted, Some(&time));
    }

    /// Makes the error for a system call that failed on this stream.
    pub(super) fn failed(&self, call: &'static str, source: std::io::Error) -> LoadError {
        LoadError::Call { call, stream: self.stream, source }
    }

    /// Makes the error that the other end wrote an impossible value.
    pub(super) fn garbled(&self, what: &str) -> LoadError {
        LoadError::Protocol { what: format!("stream {} of set {}: {what}", self.stream, self.set) }
    }
}

/// An end that waits for bytes in a ring, or for room.
pub(super) trait Waits {
    fn region(&self) -> &Region;
    /// Returns whether `wanted` bytes of payload, or of room, are available.
    fn ready(&mut self, wanted: u64) -> Result<bool, LoadError>;
}

/// Waits up to `most` until `wanted` bytes of payload, or of room, are available; returns whether they are.
pub(super) fn wait(what: &mut impl Waits, wanted: u64, most: Duration) -> Result<bool, LoadError> {
    what.region().open()?;
    if what.region().busy {
        for _ in 0..SPINS {
            if what.ready(wanted)? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        return Ok(false);
    }
    let wanted = wanted.clamp(1, what.region().size);
    let region = what.region();
    region.asleep(region.end).store(wanted as u32, Relaxed);
    fence(SeqCst);
    let ready = what.ready(wanted)?;
    // `close` wakes only an end that sleeps. So this end first announces that it sleeps, and then checks whether the
    // stream was closed.
    let region = what.region();
    if !ready && !most.is_zero() && region.open().is_ok() {
        region.sleep(wanted as u32, most);
    }
    region.asleep(region.end).store(0, Relaxed);
    what.ready(wanted)
}
