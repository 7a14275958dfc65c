//! The connected queue pairs of a stream, with the TCP connection over which its ends report when a step is over.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::parse::run::Mark;
use linerate_facts::rdma::RdmaEnd;
use linerate_sys::clock;
use linerate_sys::ibverbs::{Completion, Endpoint, Queue, Request, Status};

use super::content::Content;
use super::reason::{ended, failed};
use super::shape::Shape;
use crate::LoadError;
use crate::transport::line::{Line, MarkPart};

/// Number of polls of an empty completion queue between two readings of the clock.
const POLLS: u32 = 64;
/// Shortest time between two reads of the TCP connection, in nanoseconds.
const QUIET: u64 = 1_000_000;

/// Connected queue pairs, and their TCP connection.
pub(super) struct Pair {
    pub(super) endpoint: Endpoint,
    pub(super) line: Line,
    /// The RDMA port of the queue pairs.
    port: Arc<RdmaEnd>,
    /// The payload that both ends send, if received payload is verified.
    content: Option<Content>,
    /// Whether the thread sleeps until there is a completion, instead of polling.
    events: bool,
    part: MarkPart,
    put: MarkPart,
    /// Time at which the TCP connection was last read.
    looked: u64,
}

impl Pair {
    pub(super) fn new(
        mut endpoint: Endpoint,
        line: Line,
        shape: &Shape,
        port: Arc<RdmaEnd>,
    ) -> Self {
        let content = shape.verify.then(|| Content::new(line.set, line.stream, shape.size));
        if let Some(content) = &content {
            endpoint.write(0, content.bytes());
        }
        Self {
            endpoint,
            line,
            port,
            content,
            events: shape.events,
            part: MarkPart::default(),
            put: MarkPart::default(),
            looked: 0,
        }
    }

    /// Sets the request to be posted from now on; one call posts `chained` of them.
    pub(super) fn prepare(&mut self, request: Request, chained: u32) {
        self.endpoint.prepare(request, chained as usize);
    }

    /// Posts the prepared requests to a queue pair. `signalled` makes the last one complete, with `id`.
    #[inline]
    pub(super) fn post(&mut self, at: usize, signalled: bool, id: u64) -> Result<(), LoadError> {
        let posted = self.endpoint.post(at, signalled, id);
        posted.map_err(|refused| failed(&self.line, refused))
    }

    /// Posts the prepared request to the first queue pair, with a number as immediate data. The receiver's completion
    /// contains it, if the request can carry immediate data.
    #[inline]
    pub(super) fn post_numbered(&mut self, number: u32) -> Result<(), LoadError> {
        let posted = self.endpoint.post_with(number, true, 1);
        posted.map_err(|refused| failed(&self.line, refused))
    }

    /// Overwrites the first `len` bytes of the memory for received payload, so that a later comparison finds only what
    /// was received since. The other end must not send meanwhile: no end sends before both have begun the step.
    pub(super) fn clear(&mut self, shape: &Shape, len: u32) {
        if self.content.is_some() {
            self.endpoint.write(shape.landing(), &vec![0; len as usize]);
        }
    }

    /// Verifies received payload like [`Pair::compare`], for messages of round trips. If only one message is in flight
    /// at a time, its bytes are overwritten afterwards, so that they are not mistaken for the next message.
    #[inline]
    pub(super) fn take(&mut self, shape: &Shape, len: u32) -> Result<(), LoadError> {
        if self.content.is_some() {
            self.compare(shape, len)?;
            if shape.is_alone() {
                self.clear(shape, len);
            }
        }
        Ok(())
    }

    /// Compares the first `len` bytes of received payload with what was sent, if the plan requests verification.
    #[inline]
    pub(super) fn compare(&self, shape: &Shape, len: u32) -> Result<(), LoadError> {
        match &self.content {
            Some(content) => self.differ(content, shape.landing(), len as usize),
            None => Ok(()),
        }
    }

    #[cold]
    fn differ(&self, content: &Content, at: usize, len: usize) -> Result<(), LoadError> {
        let expected = &content.bytes()[..len];
        if self.endpoint.region().holds(at, expected) {
            return Ok(());
        }
        Err(self.line.garbled("the received payload is not what was sent"))
    }

    /// Sets the receive requests to be posted from now on; one call posts `chained` of them.
    pub(super) fn prepare_receives(&mut self, offset: usize, len: u32, chained: u32) {
        let (len, chained) = (len as usize, chained as usize);
        self.endpoint.prepare_receives(offset, len, chained);
    }

    /// Posts the prepared receive requests to a queue pair; returns their number.
    #[inline]
    pub(super) fn post_receives(&mut self, at: usize) -> Result<u32, LoadError> {
        let posted = self.endpoint.post_receives(at);
        posted.map_err(|refused| failed(&self.line, refused))
    }

    /// Passes the completions of a queue to `take`, at most `most` of them; returns their number. A failed request is
    /// an error.
    #[inline]
    pub(super) fn poll(
        &mut self,
        queue: Queue,
        most: usize,
        mut take: impl FnMut(&Completion),
    ) -> Result<usize, LoadError> {
        let Self { endpoint, line, port, .. } = self;
        let polled = endpoint.poll(queue, most);
        let completions = polled.map_err(|refused| failed(line, refused))?;
        for completion in completions {
            if completion.status() != Status::SUCCESS {
                let first = (queue, *completion);
                return Err(ended(line, port, reason(endpoint).unwrap_or(first)));
            }
            take(completion);
        }
        Ok(completions.len())
    }

    /// Passes completions to `take` as [`Pair::poll`] does. Waits up to `most` for the first one.
    #[inline]
    pub(super) fn wait(
        &mut self,
        queue: Queue,
        batch: usize,
        most: Duration,
        mut take: impl FnMut(&Completion),
    ) -> Result<usize, LoadError> {
        let got = self.poll(queue, batch, &mut take)?;
        if got > 0 || most.is_zero() {
            return Ok(got);
        }
        if self.events {
            return self.sleep(queue, batch, most, take);
        }
        let until = clock::now() + most.as_nanos() as u64;
        // No pause instruction is used here: on some processors it takes a tenth of a round trip.
        loop {
            for _ in 0..POLLS {
                let got = self.poll(queue, batch, &mut take)?;
                if got > 0 {
                    return Ok(got);
                }
            }
            if clock::now() >= until {
                return Ok(0);
            }
        }
    }

    /// Sleeps up to `most` until there is a completion, and passes the completions to `take`.
    fn sleep(
        &mut self,
        queue: Queue,
        batch: usize,
        most: Duration,
        mut take: impl FnMut(&Completion),
    ) -> Result<usize, LoadError> {
        let armed = self.endpoint.arm(queue);
        armed.map_err(|refused| failed(&self.line, refused))?;
        // A completion that arrived before the queue was armed does not end a sleep, so the queue is polled again.
        let got = self.poll(queue, batch, &mut take)?;
        if got > 0 {
            return Ok(got);
        }
        let slept = self.endpoint.sleep(most);
        slept.map_err(|refused| failed(&self.line, refused))?;
        self.poll(queue, batch, take)
    }

    /// Sends a mark to the other end; returns true once all its bytes are sent. Until then it must be called with the
    /// same mark.
    pub(super) fn tell(&mut self, mark: Mark) -> Result<bool, LoadError> {
        self.put.put(&self.line, mark, false)
    }

    /// Receives a mark of the other end, if one is available or, with `wait`, arrives within the block time.
    pub(super) fn poll_mark(&mut self, wait: bool) -> Result<Option<Mark>, LoadError> {
        self.part.get(&self.line, wait)
    }

    /// Receives a mark of the other end, unless the connection was read within the last millisecond.
    #[inline]
    pub(super) fn poll_mark_sometimes(&mut self) -> Result<Option<Mark>, LoadError> {
        let now = clock::now();
        if now - self.looked < QUIET {
            return Ok(None);
        }
        self.looked = now;
        self.poll_mark(false)
    }
}

/// Returns the completion of the request that really failed, if there is one. After it, the device flushes all other
/// requests.
#[cold]
fn reason(endpoint: &mut Endpoint) -> Option<(Queue, Completion)> {
    for queue in [Queue::Sent, Queue::Received] {
        while let Ok(completions) = endpoint.poll(queue, usize::MAX) {
            if completions.is_empty() {
                break;
            }
            let is_reason = |completion: &&Completion| {
                ![Status::SUCCESS, Status::FLUSHED].contains(&completion.status())
            };
            if let Some(failed) = completions.iter().find(is_reason) {
                return Some((queue, *failed));
            }
        }
    }
    None
}
