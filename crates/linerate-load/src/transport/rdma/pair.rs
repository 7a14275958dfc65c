//! The connected queue pairs of a stream, with the connection on which its ends say when a step is over.

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

/// Polls of an empty queue between two readings of the clock.
const POLLS: u32 = 64;
/// Time without a completion after which the connection is read as well, in nanoseconds.
const QUIET: u64 = 1_000_000;

/// Queue pairs and their connection.
pub(super) struct Pair {
    pub(super) endpoint: Endpoint,
    pub(super) line: Line,
    /// The port of the queue pairs.
    port: Arc<RdmaEnd>,
    /// The payload that is sent and awaited, if it is compared.
    content: Option<Content>,
    /// Whether the thread sleeps until a completion.
    events: bool,
    part: MarkPart,
    put: MarkPart,
    /// Time at which the connection was last read.
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

    /// Sets the request that is posted from now on, `chained` of them by one call.
    pub(super) fn prepare(&mut self, request: Request, chained: u32) {
        self.endpoint.prepare(request, chained as usize);
    }

    /// Posts the prepared requests to a queue pair.
    #[inline]
    pub(super) fn post(&mut self, at: usize, signalled: bool, id: u64) -> Result<(), LoadError> {
        let posted = self.endpoint.post(at, signalled, id);
        posted.map_err(|refused| failed(&self.line, refused))
    }

    /// Posts the prepared request to the first queue pair, with a number that the receiver's completion has if the
    /// request can have one.
    #[inline]
    pub(super) fn post_numbered(&mut self, number: u32) -> Result<(), LoadError> {
        let posted = self.endpoint.post_with(number, true, 1);
        posted.map_err(|refused| failed(&self.line, refused))
    }

    /// Removes the first `len` bytes of received payload, so that what is compared later is what was moved since. The other
    /// end must send nothing meanwhile: no end does before both have begun.
    pub(super) fn clear(&mut self, shape: &Shape, len: u32) {
        if self.content.is_some() {
            self.endpoint.write(shape.landing(), &vec![0; len as usize]);
        }
    }

    /// As [`Pair::compare`], for messages of round trips. Where one is under way at a time it is removed afterwards, so
    /// that the next one is not taken for it.
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

    /// Compares the first `len` bytes of received payload with what was sent, if that is asked for.
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

    /// Sets the receive requests that are posted from now on, `chained` at a time.
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

    /// Passes the completions of a queue to `take`, at most `most` of them; returns their number.
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

    /// Passes completions to `take` as [`Pair::poll`] does, and waits for the first one for at most `most`.
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
        // Without a pause for the processor: it may last as long as a tenth of a round trip.
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

    /// Sleeps until a completion, for at most `most`.
    fn sleep(
        &mut self,
        queue: Queue,
        batch: usize,
        most: Duration,
        mut take: impl FnMut(&Completion),
    ) -> Result<usize, LoadError> {
        let armed = self.endpoint.arm(queue);
        armed.map_err(|refused| failed(&self.line, refused))?;
        // A completion before the queue was armed ends no sleep.
        let got = self.poll(queue, batch, &mut take)?;
        if got > 0 {
            return Ok(got);
        }
        let slept = self.endpoint.sleep(most);
        slept.map_err(|refused| failed(&self.line, refused))?;
        self.poll(queue, batch, take)
    }

    /// Tells the other end; returns true once all of it is sent. Until then it must be called with the same mark.
    pub(super) fn tell(&mut self, mark: Mark) -> Result<bool, LoadError> {
        self.put.put(&self.line, mark, false)
    }

    /// Returns what the other end tells, within the block time if it may `wait`.
    pub(super) fn told(&mut self, wait: bool) -> Result<Option<Mark>, LoadError> {
        self.part.get(&self.line, wait)
    }

    /// Returns what the other end tells, if that was not asked in the last millisecond.
    #[inline]
    pub(super) fn told_sometimes(&mut self) -> Result<Option<Mark>, LoadError> {
        let now = clock::now();
        if now - self.looked < QUIET {
            return Ok(None);
        }
        self.looked = now;
        self.told(false)
    }
}

/// Returns the completion of the request that failed, if there is one: it ends all others, which are flushed.
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
