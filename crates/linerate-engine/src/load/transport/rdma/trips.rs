//! Round trips: messages and answers by send or write, and operations that return by themselves.

use std::time::Duration;

use linerate_core::parse::run::Mark;
use linerate_sys::clock;
use linerate_sys::ibverbs::{Queue, Request, Verb};

use super::abort::Abort;
use super::pair::Pair;
use super::shape::Shape;
use crate::load::pattern::{Answer, Answerer, Asker, Wait};
use crate::load::transport::line::BLOCK;
use crate::load::{LoadError, Probe};

/// Polls of memory between two readings of the clock.
const POLLS: u32 = 64;

/// How messages are moved, and how their arrival is noticed.
pub(super) trait Way: Send {
    /// Prepares the pair for a step.
    fn begin(&mut self, pair: &mut Pair, shape: &Shape) -> Result<(), LoadError>;
    /// Posts a message.
    fn post(&mut self, pair: &mut Pair) -> Result<(), LoadError>;
    /// Returns the number of messages that have arrived since the last call, waiting for the first one for at most
    /// `wait`.
    fn arrived(&mut self, pair: &mut Pair, wait: Duration) -> Result<u32, LoadError>;
}

/// Messages that meet receive requests.
pub(super) struct BySend {
    shape: Shape,
    /// Receive requests that are posted, and requests in flight.
    posted: u32,
    in_flight: u32,
}

impl BySend {
    pub(super) const fn new(shape: Shape) -> Self {
        Self {
            shape,
            posted: 0,
            in_flight: 0,
        }
    }

    fn fill(&mut self, pair: &mut Pair) -> Result<(), LoadError> {
        while self.posted < self.shape.receives() {
            self.posted += pair.post_receives()?;
        }
        Ok(())
    }
}

impl Way for BySend {
    fn begin(&mut self, pair: &mut Pair, shape: &Shape) -> Result<(), LoadError> {
        pair.prepare(Request {
            verb: Verb::Send,
            len: shape.size,
            local: 0,
            remote: 0,
        });
        pair.prepare_receives(shape.half(), shape.size, 1);
        self.fill(pair)
    }

    #[inline]
    fn post(&mut self, pair: &mut Pair) -> Result<(), LoadError> {
        make_room(pair, &mut self.in_flight, self.shape.depth)?;
        pair.post(true, 1)
    }

    #[inline]
    fn arrived(&mut self, pair: &mut Pair, wait: Duration) -> Result<u32, LoadError> {
        let got = pair.wait(Queue::Received, self.shape.depth as usize, wait, |_| {})? as u32;
        self.posted -= got.min(self.posted);
        self.fill(pair)?;
        Ok(got)
    }
}

/// Counts one more request in flight. If the queue would be full, waits for the completion of earlier ones.
#[inline]
fn make_room(pair: &mut Pair, in_flight: &mut u32, depth: u32) -> Result<(), LoadError> {
    while *in_flight >= depth {
        let got = pair.wait(Queue::Sent, depth as usize, BLOCK, |_| {})?;
        *in_flight -= (got as u32).min(*in_flight);
        if got == 0 {
            return Err(pair.line.garbled("a request does not complete"));
        }
    }
    *in_flight += 1;
    Ok(())
}

/// Messages that are written into the other end's memory. Their last byte is a number that changes with each message:
/// a device writes the bytes of a message in their order.
pub(super) struct ByWrite {
    shape: Shape,
    in_flight: u32,
    /// Number in the last byte of the next message to be sent, and of the next one to arrive.
    next: u8,
    awaited: u8,
}

impl ByWrite {
    pub(super) const fn new(shape: Shape) -> Self {
        Self {
            shape,
            in_flight: 0,
            next: 1,
            awaited: 1,
        }
    }
}

impl Way for ByWrite {
    fn begin(&mut self, pair: &mut Pair, shape: &Shape) -> Result<(), LoadError> {
        pair.prepare(Request {
            verb: Verb::Write,
            len: shape.size,
            local: 0,
            remote: shape.half() as u64,
        });
        Ok(())
    }

    #[inline]
    fn post(&mut self, pair: &mut Pair) -> Result<(), LoadError> {
        // A message that is still being sent must not change. With inline payload it was copied already.
        make_room(pair, &mut self.in_flight, 1)?;
        let last = self.shape.size as usize - 1;
        pair.endpoint.region_mut().set_byte(last, self.next);
        self.next = self.next.wrapping_add(1);
        pair.post(true, 1)
    }

    #[inline]
    fn arrived(&mut self, pair: &mut Pair, wait: Duration) -> Result<u32, LoadError> {
        let last = self.shape.half() + self.shape.size as usize - 1;
        let mut until = None;
        loop {
            for _ in 0..POLLS {
                if pair.endpoint.region().byte(last) == self.awaited {
                    self.awaited = self.awaited.wrapping_add(1);
                    return Ok(1);
                }
            }
            let now = clock::now();
            if now >= *until.get_or_insert(now + wait.as_nanos() as u64) {
                // A request that failed is the reason why nothing arrives.
                let got = pair.poll(Queue::Sent, 1, |_| {})?;
                self.in_flight -= (got as u32).min(self.in_flight);
                return Ok(0);
            }
        }
    }
}

/// Operations that are whole round trips by themselves.
pub(super) struct ByReturn {
    verb: Verb,
    shape: Shape,
}

impl ByReturn {
    pub(super) const fn new(verb: Verb, shape: Shape) -> Self {
        Self { verb, shape }
    }
}

impl Way for ByReturn {
    fn begin(&mut self, pair: &mut Pair, shape: &Shape) -> Result<(), LoadError> {
        pair.prepare(Request {
            verb: self.verb,
            len: shape.size,
            local: shape.half(),
            remote: 0,
        });
        Ok(())
    }

    #[inline]
    fn post(&mut self, pair: &mut Pair) -> Result<(), LoadError> {
        pair.post(true, 1)
    }

    #[inline]
    fn arrived(&mut self, pair: &mut Pair, wait: Duration) -> Result<u32, LoadError> {
        let most = self.shape.depth as usize;
        Ok(pair.wait(Queue::Sent, most, wait, |_| {})? as u32)
    }
}

/// Near end: posts messages, and notices answers.
pub(super) struct RdmaAsker<W> {
    pair: Pair,
    shape: Shape,
    way: W,
    sent: u64,
    answered: u64,
    /// Answers that were noticed while the thread waited for something else.
    early: u32,
}

impl<W: Way> RdmaAsker<W> {
    pub(super) const fn new(pair: Pair, shape: Shape, way: W) -> Self {
        Self {
            pair,
            shape,
            way,
            sent: 0,
            answered: 0,
            early: 0,
        }
    }
}

impl<W: Way> Asker for RdmaAsker<W> {
    const PATIENCE: Option<(u64, u64)> = None;

    fn size(&self) -> u32 {
        self.shape.size
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        (self.sent, self.answered, self.early) = (0, 0, 0);
        self.way.begin(&mut self.pair, &self.shape)
    }

    fn announce(&mut self, _: impl FnOnce() -> u64, _: bool) -> Result<bool, LoadError> {
        Ok(true)
    }

    fn announced(&self) -> u64 {
        0
    }

    #[inline]
    fn send(&mut self, _: bool) -> Result<bool, LoadError> {
        if self.sent - self.answered >= u64::from(self.shape.depth) {
            return Ok(false);
        }
        self.way.post(&mut self.pair)?;
        self.sent += 1;
        Ok(true)
    }

    #[inline]
    fn receive(
        &mut self,
        wait: Wait,
        mut take: impl FnMut(Answer) -> bool,
    ) -> Result<(), LoadError> {
        let most = match wait {
            Wait::No => Duration::ZERO,
            Wait::Asleep | Wait::Busy => BLOCK,
        };
        let mut arrived = std::mem::take(&mut self.early);
        if arrived == 0 {
            arrived = self.way.arrived(&mut self.pair, most)?;
        }
        let at = clock::now();
        for _ in 0..arrived {
            if self.answered == self.sent {
                let what = "answers to messages that were not sent";
                return Err(self.pair.line.garbled(what));
            }
            take(Answer {
                number: self.answered,
                at,
                unread: None,
            });
            self.answered += 1;
        }
        // A far end that is gone answers nothing, and its connection says so.
        if arrived == 0 && most > Duration::ZERO && self.pair.told(false)?.is_some() {
            return Err(self.pair.line.garbled("a mark instead of an answer"));
        }
        Ok(())
    }

    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        let has_room = self.sent - self.answered < u64::from(self.shape.depth);
        if self.early == 0 {
            let wait = if wanted && has_room {
                Duration::ZERO
            } else {
                most.min(BLOCK)
            };
            self.early = self.way.arrived(&mut self.pair, wait)?;
        }
        Ok([self.early > 0, wanted && has_room])
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.pair.tell(Mark::End(0))
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}

/// Far end: answers each message in the way in which it arrived.
pub(super) struct RdmaAnswerer<W> {
    pair: Pair,
    shape: Shape,
    way: W,
    ended: bool,
}

impl<W: Way> RdmaAnswerer<W> {
    pub(super) const fn new(pair: Pair, shape: Shape, way: W) -> Self {
        Self {
            pair,
            shape,
            way,
            ended: false,
        }
    }
}

/// Longest wait for a message before the connection is read as well.
const QUIET: Duration = Duration::from_millis(1);

impl<W: Way> Answerer for RdmaAnswerer<W> {
    fn size(&self) -> u32 {
        self.shape.size
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        self.ended = false;
        self.way.begin(&mut self.pair, &self.shape)
    }

    fn answer(&mut self) -> Result<u32, LoadError> {
        let arrived = self.way.arrived(&mut self.pair, QUIET)?;
        for _ in 0..arrived {
            self.way.post(&mut self.pair)?;
        }
        if arrived == 0 && matches!(self.pair.told(false)?, Some(Mark::End(_))) {
            self.ended = true;
        }
        Ok(arrived * self.shape.size)
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}
