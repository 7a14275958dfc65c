//! The shared memory of one stream, as one end uses it: its words, and how an end sleeps and is woken.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::Duration;

use linerate_plan::path::Side;
use linerate_sys::memfd::{SharedBytes, SharedMemory, Words};
use rustix::thread::futex;

use crate::LoadError;
use crate::transport::line::timespec;

/// Bytes before the rings: 64-bit numbers, then words. Numbers and words that different ends write are in different
/// pairs of cache lines.
const HEAD: usize = 4096;
const LINES: usize = 128;
/// Numbers in a pair of cache lines, and numbers of a stream. A stream has two pairs of lines for each direction: one
/// for its producer, one for its consumer.
const NUMBERS_OF_LINES: usize = LINES / size_of::<AtomicU64>();
const NUMBERS: usize = 4 * NUMBERS_OF_LINES;
/// Words in a pair of cache lines, and words of a stream.
const WORDS_OF_LINES: usize = LINES / size_of::<AtomicU32>();
const WORDS: usize = (HEAD - 4 * LINES) / size_of::<AtomicU32>();

/// Polls of an empty ring before a polling worker checks for other work.
const SPINS: u32 = 1024;

/// How the memory of a set is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) streams: u32,
    /// Number of directions that carry payload: one for a stream, two for round trips.
    pub(super) rings: usize,
    /// Size of each ring in bytes, a power of two.
    pub size: u64,
}

impl Layout {
    /// Returns the bytes of one stream. The value is computed before a plan's numbers are checked, so it saturates:
    /// an absurd plan then needs too many bytes.
    pub(super) fn stream(&self) -> usize {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        self.rings.saturating_mul(size).saturating_add(HEAD)
    }

    /// Takes the next ring out of the memory.
    pub(super) fn ring(&self, memory: &mut SharedMemory) -> SharedBytes {
        memory.bytes(self.size as usize)
    }

    /// Returns the bytes of all streams.
    pub(super) fn all(&self) -> usize {
        self.stream().saturating_mul(self.streams as usize)
    }
}

/// The shared memory of one stream, as one end uses it.
#[derive(Debug, Clone)]
pub(super) struct Region {
    numbers: Words<AtomicU64>,
    words: Words<AtomicU32>,
    /// Index of this end: 0 or 1.
    end: usize,
    pub size: u64,
    pub(super) set: u32,
    pub(super) stream: u32,
    /// Whether this end spins instead of sleeping; the other end then does so too.
    busy: bool,
}

/// Indices of the numbers that belong to a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    /// Indices of numbers that the producer writes: its position, the position of the step's end, and the step's
    /// number.
    pub(super) head: usize,
    pub(super) end: usize,
    pub(super) steps: usize,
    /// Index of the number that the consumer writes: its position.
    pub(super) tail: usize,
}

impl Region {
    /// Takes the region of the next stream out of the memory. Its rings follow the region.
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

    /// Returns a direction by its number: 0 for the first, 1 for the way back.
    pub(super) fn ring(number: usize) -> Ring {
        let first = 2 * number * NUMBERS_OF_LINES;
        Ring { head: first, end: first + 1, steps: first + 2, tail: first + NUMBERS_OF_LINES }
    }

    /// Returns a number of the stream, such as a position.
    #[inline]
    pub(super) fn number(&self, at: usize) -> &AtomicU64 {
        &self.numbers.all()[at]
    }

    /// Returns the futex word that an end sleeps on: zero while it is awake, otherwise the number of bytes that it
    /// waits for.
    fn asleep(&self, end: usize) -> &AtomicU32 {
        &self.words.all()[WORDS_OF_LINES * end]
    }

    /// Returns the word that says whether an end has closed the stream.
    fn closed(&self, end: usize) -> &AtomicU32 {
        &self.words.all()[WORDS_OF_LINES * end + 1]
    }

    /// Closes the stream, for both ends.
    pub(super) fn close(&self) {
        self.closed(self.end).store(1, SeqCst);
        for end in [0, 1] {
            self.wake(end);
        }
    }

    /// Returns an error once either end has closed the stream.
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

    /// Informs the other end that `bytes` bytes, or as much room, have become available.
    #[inline]
    pub(super) fn tell(&self, bytes: u64) {
        if self.busy {
            return;
        }
        // Either an end that goes to sleep afterwards sees the published bytes, or this end sees that it
        // sleeps.
        fence(SeqCst);
        let wanted = u64::from(self.asleep(1 - self.end).load(Relaxed));
        if wanted != 0 && bytes >= wanted {
            self.wake(1 - self.end);
        }
    }

    /// Wakes the other end unconditionally.
    pub(super) fn tell_all(&self) {
        fence(SeqCst);
        self.wake(1 - self.end);
    }

    /// Pretends that this end sleeps.
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
            // If this fails, the other end wakes after a timeout anyway.
            let _ = futex::wake(word, futex::Flags::empty(), 1);
        }
    }

    /// Sleeps until this end is woken or `most` has passed, unless it was woken already. The caller checks the state
    /// again afterwards.
    fn sleep(&self, wanted: u32, most: Duration) {
        let time = timespec(most);
        let _ = futex::wait(self.asleep(self.end), futex::Flags::empty(), wanted, Some(&time));
    }

    /// Makes an error for a failed call on this stream.
    pub(super) fn failed(&self, call: &'static str, source: std::io::Error) -> LoadError {
        LoadError::Call { call, stream: self.stream, source }
    }

    /// Makes an error that says that the other end wrote an impossible value.
    pub(super) fn garbled(&self, what: &str) -> LoadError {
        LoadError::Protocol { what: format!("stream {} of set {}: {what}", self.stream, self.set) }
    }
}

/// An end that waits for bytes or for room.
pub(super) trait Waits {
    fn region(&self) -> &Region;
    /// Returns whether `wanted` bytes, or as much room, are available.
    fn ready(&mut self, wanted: u64) -> Result<bool, LoadError>;
}

/// Waits until `wanted` bytes, or as much room, are available, at most for `most`; returns whether they are.
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
    // `close` wakes only an end that sleeps, so this end checks for it after it has announced that it sleeps.
    let region = what.region();
    if !ready && !most.is_zero() && region.open().is_ok() {
        region.sleep(wanted as u32, most);
    }
    region.asleep(region.end).store(0, Relaxed);
    what.ready(wanted)
}
