//! Ways to move messages of round trips, and to detect that they have arrived.

use std::time::Duration;

use linerate_sys::clock;
use linerate_sys::ibverbs::{Queue, Request, Verb};

use crate::LoadError;
use crate::transport::line::BLOCK;
use crate::transport::rdma::pair::Pair;
use crate::transport::rdma::shape::Shape;

/// Number of polls of memory between two readings of the clock.
const POLLS: u32 = 64;

/// A way to move messages, and to detect that they have arrived.
pub(crate) trait Way: Send {
    /// Shortest and longest timeout for an answer, in nanoseconds; `None` if no message can be lost.
    const PATIENCE: Option<(u64, u64)> = None;

    /// Prepares the queue pair for a step.
    fn begin(&mut self, pair: &mut Pair, shape: &Shape) -> Result<(), LoadError>;
    /// Posts a message. The receiver gets its number only if messages may be lost.
    fn post(&mut self, pair: &mut Pair, number: u32) -> Result<(), LoadError>;
    /// Passes the numbers of the messages that have arrived since the last call to `take`. Waits up to `wait` for the
    /// first one.
    fn arrived(
        &mut self,
        pair: &mut Pair,
        wait: Duration,
        take: impl FnMut(u32),
    ) -> Result<(), LoadError>;
}

/// Messages that use up a receive request each. If they may be lost (`LOSSY`), they carry numbers.
pub(in super::super) struct ByReceive<const LOSSY: bool> {
    verb: Verb,
    shape: Shape,
    /// Number of receive requests that are posted, and of requests in flight.
    posted: u32,
    in_flight: u32,
}

impl<const LOSSY: bool> ByReceive<LOSSY> {
    pub(crate) const fn new(verb: Verb, shape: Shape) -> Self {
        Self { verb, shape, posted: 0, in_flight: 0 }
    }

    /// Posts receive requests until their number is complete.
    #[inline]
    fn fill(&mut self, pair: &mut Pair) -> Result<(), LoadError> {
        while self.posted < self.shape.receives() {
            self.posted += pair.post_receives(0)?;
        }
        Ok(())
    }
}

impl<const LOSSY: bool> Way for ByReceive<LOSSY> {
    // The timeouts are those of datagrams of UDP.
    const PATIENCE: Option<(u64, u64)> =
        if LOSSY { Some((50_000_000, 1_000_000_000)) } else { None };

    fn begin(&mut self, pair: &mut Pair, shape: &Shape) -> Result<(), LoadError> {
        let request =
            Request { verb: self.verb, len: shape.size, local: 0, remote: shape.half() as u64 };
        pair.prepare(request, 1);
        pair.prepare_receives(shape.half(), shape.received(), 1);
        pair.clear(shape, shape.size);
        self.fill(pair)
    }

    #[inline]
    fn post(&mut self, pair: &mut Pair, number: u32) -> Result<(), LoadError> {
        make_room(pair, &mut self.in_flight, self.shape.depth)?;
        pair.post_numbered(number)?;
        // The message is on its way, so what follows does not lengthen the round trip.
        self.fill(pair)?;
        completed(pair, &mut self.in_flight, Duration::ZERO)
    }

    #[inline]
    fn arrived(
        &mut self,
        pair: &mut Pair,
        wait: Duration,
        mut take: impl FnMut(u32),
    ) -> Result<(), LoadError> {
        let most = self.shape.depth as usize;
        let got = pair.wait(Queue::Received, most, wait, |completion| {
            take(completion.immediate());
        })? as u32;
        if got > 0 {
            pair.take(&self.shape, self.shape.size)?;
        }
        self.posted -= got.min(self.posted);
        // In open loop, answers may arrive while nothing is sent, so receive requests are posted here too.
        if self.posted <= self.shape.receives() / 2 {
            self.fill(pair)?;
        }
        Ok(())
    }
}

/// Longest wait for the completion of a request. If retransmissions get no answer, the device reports that earlier.
//= InfiniBand Architecture Specification 1.4, section 9.7.6.1.3: up to four times the timeout, for each retry
const COMPLETION: Duration = Duration::from_secs(5);

/// Counts one more request in flight. If the queue is full, waits before for earlier requests to complete.
#[inline]
fn make_room(pair: &mut Pair, in_flight: &mut u32, depth: u32) -> Result<(), LoadError> {
    if *in_flight >= depth {
        wait_for_room(pair, in_flight, depth)?;
    }
    *in_flight += 1;
    Ok(())
}

/// Waits until fewer than `depth` requests are in flight. A sleep may end early, by an event of the receive queue.
#[cold]
fn wait_for_room(pair: &mut Pair, in_flight: &mut u32, depth: u32) -> Result<(), LoadError> {
    let until = clock::now() + COMPLETION.as_nanos() as u64;
    while *in_flight >= depth {
        completed(pair, in_flight, BLOCK)?;
        if *in_flight >= depth && clock::now() >= until {
            return Err(pair.line.garbled("a request does not complete"));
        }
    }
    Ok(())
}

/// Handles completions of requests, after waiting up to `wait` for the first one.
#[inline]
fn completed(pair: &mut Pair, in_flight: &mut u32, wait: Duration) -> Result<(), LoadError> {
    let got = pair.wait(Queue::Sent, usize::MAX, wait, |_| {})?;
    *in_flight -= (got as u32).min(*in_flight);
    Ok(())
}

/// Messages that are written into the other end's memory. Their last byte is a number that changes with each message.
/// When it has changed, the message is complete, since a device writes the bytes in order.
pub(in super::super) struct ByWrite {
    shape: Shape,
    in_flight: u32,
    /// Number in the last byte of the next message that is sent, and of the next one that is received.
    next: u8,
    awaited: u8,
}

impl ByWrite {
    pub(crate) const fn new(shape: Shape) -> Self {
        Self { shape, in_flight: 0, next: 1, awaited: 1 }
    }

    /// Polls the memory until a message arrives, at most for `wait`; returns whether one arrived.
    #[inline]
    fn wait(&mut self, pair: &mut Pair, wait: Duration) -> Result<bool, LoadError> {
        let last = self.shape.half() + self.shape.size as usize - 1;
        let mut until = None;
        loop {
            for _ in 0..POLLS {
                if pair.endpoint.region().byte(last) == self.awaited {
                    self.awaited = self.awaited.wrapping_add(1);
                    return Ok(true);
                }
                // Completions are handled while no message is there.
                if self.in_flight > 0 {
                    completed(pair, &mut self.in_flight, Duration::ZERO)?;
                }
            }
            let now = clock::now();
            if now >= *until.get_or_insert(now + wait.as_nanos() as u64) {
                return Ok(false);
            }
        }
    }
}

impl Way for ByWrite {
    fn begin(&mut self, pair: &mut Pair, shape: &Shape) -> Result<(), LoadError> {
        let request =
            Request { verb: Verb::Write, len: shape.size, local: 0, remote: shape.half() as u64 };
        pair.prepare(request, 1);
        Ok(())
    }

    #[inline]
    fn post(&mut self, pair: &mut Pair, _: u32) -> Result<(), LoadError> {
        // The bytes of a message that is still being sent must not change. Inline payload was copied already, so its
        // request is complete at once.
        make_room(pair, &mut self.in_flight, 1)?;
        let last = self.shape.size as usize - 1;
        pair.endpoint.set_byte(last, self.next);
        self.next = self.next.wrapping_add(1);
        pair.post(0, true, 1)
    }

    #[inline]
    fn arrived(
        &mut self,
        pair: &mut Pair,
        wait: Duration,
        mut take: impl FnMut(u32),
    ) -> Result<(), LoadError> {
        if self.wait(pair, wait)? {
            // Received bytes are not overwritten here: Soft-RoCE may copy a message backwards, so that its last byte is
            // stored first.
            //= torvalds/linux, arch/x86/lib/memcpy_64.S: copy_backward
            pair.compare(&self.shape, self.shape.size - 1)?;
            take(0);
        }
        Ok(())
    }
}

/// Operations that are round trips themselves: RDMA reads and atomic operations.
pub(in super::super) struct ByReturn {
    verb: Verb,
    shape: Shape,
}

impl ByReturn {
    pub(crate) const fn new(verb: Verb, shape: Shape) -> Self {
        Self { verb, shape }
    }
}

impl Way for ByReturn {
    fn begin(&mut self, pair: &mut Pair, shape: &Shape) -> Result<(), LoadError> {
        let request = Request { verb: self.verb, len: shape.size, local: shape.half(), remote: 0 };
        pair.prepare(request, 1);
        if self.verb == Verb::Read {
            pair.clear(shape, shape.size);
        }
        Ok(())
    }

    #[inline]
    fn post(&mut self, pair: &mut Pair, _: u32) -> Result<(), LoadError> {
        pair.post(0, true, 1)
    }

    #[inline]
    fn arrived(
        &mut self,
        pair: &mut Pair,
        wait: Duration,
        mut take: impl FnMut(u32),
    ) -> Result<(), LoadError> {
        let most = self.shape.depth as usize;
        let got = pair.wait(Queue::Sent, most, wait, |_| take(0))?;
        if got > 0 && self.verb == Verb::Read {
            pair.take(&self.shape, self.shape.size)?;
        }
        Ok(())
    }
}
