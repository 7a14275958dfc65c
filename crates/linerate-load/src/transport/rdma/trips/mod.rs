//! Round trips by RDMA: messages and answers by send or write, and operations that are round trips themselves.

mod way;

use std::collections::VecDeque;
use std::time::Duration;

use linerate_facts::parse::run::Mark;
use linerate_sys::clock;

use super::abort::Abort;
use super::pair::Pair;
use super::shape::Shape;
use crate::pattern::{Answer, Answerer, Asker, Wait};
use crate::transport::line::BLOCK;
use crate::{LoadError, Probe};

pub(super) use way::{ByReceive, ByReturn, ByWrite, Way};

/// Number of messages for which memory is reserved: as many as one poll returns.
const TAKEN: usize = 16;

/// Near end: posts messages, and detects their answers.
pub(super) struct RdmaAsker<W> {
    pair: Pair,
    shape: Shape,
    way: W,
    /// Number that the first message of this step carries.
    first: u32,
    sent: u64,
    answered: u64,
    /// Numbers of answers that were received and not passed on yet, and the time at which they were detected.
    arrived: VecDeque<u32>,
    at: u64,
}

impl<W: Way> RdmaAsker<W> {
    pub(super) fn new(pair: Pair, shape: Shape, way: W) -> Self {
        Self {
            pair,
            shape,
            way,
            first: 0,
            sent: 0,
            answered: 0,
            arrived: VecDeque::with_capacity(TAKEN),
            at: 0,
        }
    }

    /// Waits up to `wait` for answers, if none is available yet.
    #[inline]
    fn wait(&mut self, wait: Duration) -> Result<(), LoadError> {
        let Self { pair, way, arrived, at, .. } = self;
        if arrived.is_empty() {
            way.arrived(pair, wait, |number| {
                *at = clock::now();
                arrived.push_back(number);
            })?;
        }
        Ok(())
    }

    /// Returns whether one more message may be sent. If messages may be lost, that is always so, since it is unknown
    /// how many are in flight.
    fn has_room(&self) -> bool {
        W::PATIENCE.is_some() || self.sent - self.answered < u64::from(self.shape.depth)
    }

    /// Returns which message of the step is answered: the oldest one without an answer, or the one with this number if
    /// messages may be lost.
    fn message(&self, number: u32) -> u64 {
        match W::PATIENCE {
            None => self.answered,
            Some(_) => number.wrapping_sub(self.first).into(),
        }
    }
}

impl<W: Way> Asker for RdmaAsker<W> {
    const PATIENCE: Option<(u64, u64)> = W::PATIENCE;

    fn size(&self) -> u32 {
        self.shape.size
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        // Numbers continue over steps, so that an answer to an earlier step is not mistaken for one of this step.
        self.first = self.first.wrapping_add(self.sent as u32);
        (self.sent, self.answered) = (0, 0);
        self.arrived.clear();
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
        if !self.has_room() {
            return Ok(false);
        }
        let number = self.first.wrapping_add(self.sent as u32);
        self.way.post(&mut self.pair, number)?;
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
        self.wait(most)?;
        let at = self.at;
        // A far end that is gone sends no answer, but its TCP connection is closed, which is an error here.
        if self.arrived.is_empty() && most > Duration::ZERO && self.pair.poll_mark(false)?.is_some()
        {
            return Err(self.pair.line.garbled("a mark instead of an answer"));
        }
        while let Some(number) = self.arrived.pop_front() {
            let number = self.message(number);
            if number < self.sent {
                let unread = None;
                let answer = Answer { number, at, unread };
                self.answered += u64::from(take(answer));
            } else if W::PATIENCE.is_none() {
                let what = "answers to messages that were not sent";
                return Err(self.pair.line.garbled(what));
            }
        }
        Ok(())
    }

    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        let has_room = wanted && self.has_room();
        self.wait(if has_room { Duration::ZERO } else { most.min(BLOCK) })?;
        Ok([!self.arrived.is_empty(), has_room])
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.pair.tell(Mark::End(0))
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}

/// Far end: answers each message in the same way as the message was sent.
pub(super) struct RdmaAnswerer<W> {
    pair: Pair,
    shape: Shape,
    way: W,
    /// Numbers of messages that were received and not answered yet.
    arrived: VecDeque<u32>,
    ended: bool,
}

impl<W: Way> RdmaAnswerer<W> {
    pub(super) fn new(pair: Pair, shape: Shape, way: W) -> Self {
        Self { pair, shape, way, arrived: VecDeque::with_capacity(TAKEN), ended: false }
    }
}

/// Longest wait for a message before the TCP connection is read.
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
        let Self { pair, way, arrived, .. } = self;
        way.arrived(pair, QUIET, |number| arrived.push_back(number))?;
        let mut answered = 0;
        while let Some(number) = arrived.pop_front() {
            way.post(pair, number)?;
            answered += self.shape.size;
        }
        if answered == 0 && matches!(pair.poll_mark(false)?, Some(Mark::End(_))) {
            self.ended = true;
        }
        Ok(answered)
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.pair.line.clone()))]
    }
}
