//! One connection, with everything that its worker needs to use it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_facts::parse::run::{MARK_BYTES, Mark};
use linerate_sys::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::LoadError;

/// Longest time that a call may block.
pub(super) const BLOCK: Duration = Duration::from_millis(100);

/// A connection; its descriptor is shared with the probes of its worker.
#[derive(Debug, Clone)]
pub(super) struct Line {
    fd: Arc<OwnedFd>,
    pub(super) set: u32,
    pub(super) stream: u32,
}

impl Line {
    pub(super) fn new(fd: OwnedFd, set: u32, stream: u32) -> Result<Self, LoadError> {
        let line = Self { fd: Arc::new(fd), set, stream };
        let timeouts = socket::set_timeouts(line.fd(), BLOCK);
        timeouts.map_err(|source| line.failed("setsockopt", source))?;
        Ok(line)
    }

    /// Returns the subject of the tables about the connection, such as `s3/0`.
    pub(super) fn subject(&self) -> String {
        format!("s{}/{}", self.set, self.stream)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Sends as much as the kernel accepts within the block time; zero if it accepts nothing.
    #[inline]
    pub(super) fn send(&self, bytes: &[u8], more: bool) -> Result<usize, LoadError> {
        self.moved("send", socket::send(self.fd(), bytes, more))
    }

    /// Sends as much as the kernel accepts at once; zero if it accepts nothing.
    #[inline]
    pub(super) fn offer(&self, bytes: &[u8], more: bool) -> Result<usize, LoadError> {
        self.moved("send", socket::offer(self.fd(), bytes, more))
    }

    /// Receives the available bytes, within the block time if it may `wait`; returns zero if there are none.
    #[inline]
    pub(super) fn receive(&self, into: &mut [u8], wait: bool) -> Result<usize, LoadError> {
        match socket::receive(self.fd(), into, wait) {
            Ok(0) => Err(self.closed()),
            other => self.moved("recv", other),
        }
    }

    /// Sends all bytes; returns false if that is not done when it no longer `goes_on`.
    pub(super) fn send_all(
        &self,
        bytes: &[u8],
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, LoadError> {
        let mut at = 0;
        while at < bytes.len() {
            at += self.send(&bytes[at..], false)?;
            if at < bytes.len() && !goes_on() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Receives all bytes; returns false if that is not done when it no longer `goes_on`.
    pub(super) fn receive_all(
        &self,
        into: &mut [u8],
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, LoadError> {
        let mut at = 0;
        while at < into.len() {
            at += self.receive(&mut into[at..], true)?;
            if at < into.len() && !goes_on() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits, at most for `most`, until there is something to receive or, if `wanted`, room to send; returns
    /// both states.
    pub(super) fn ready(&self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, wanted);
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), events)];
        let time = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(self.failed("poll", e.into())),
        }
        let seen = fds[0].revents();
        // If the connection is broken, the next call on it reports the error.
        let broken = seen.intersects(PollFlags::ERR | PollFlags::HUP);
        Ok([
            broken || seen.contains(PollFlags::IN),
            wanted && (broken || seen.contains(PollFlags::OUT)),
        ])
    }

    /// Drops the available bytes, within the block time if it may `wait`; returns zero if there are none.
    pub(super) fn discard(&self, scratch: &mut [u8], wait: bool) -> Result<usize, LoadError> {
        match socket::discard(self.fd(), scratch, wait) {
            Ok(0) => Err(self.closed()),
            other => self.moved("recv", other),
        }
    }

    /// Returns the bytes that a call moved; zero if the call only timed out or was interrupted.
    #[inline]
    pub(super) fn moved(
        &self,
        call: &'static str,
        result: io::Result<usize>,
    ) -> Result<usize, LoadError> {
        unless_paused(result).map_err(|e| self.failed(call, e))
    }

    pub(super) fn closed(&self) -> LoadError {
        LoadError::Protocol {
            what: format!(
                "the other end closed stream {} of set {} during a step",
                self.stream, self.set
            ),
        }
    }

    /// Makes an error that says that the other end broke this stream's protocol.
    pub(super) fn garbled(&self, what: &str) -> LoadError {
        LoadError::Protocol { what: format!("stream {} of set {}: {what}", self.stream, self.set) }
    }

    /// Makes an error for a failed call on this stream.
    pub(super) fn failed(&self, call: &'static str, source: io::Error) -> LoadError {
        LoadError::Call { call, stream: self.stream, source }
    }
}

/// Returns the bytes that a call moved; zero if the call only timed out or was interrupted.
pub(super) fn unless_paused(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(e) if is_pause(&e) => Ok(0),
        other => other,
    }
}

/// Returns whether a call ended by its timeout or by a signal, so that it can be repeated.
pub(super) fn is_pause(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A mark that is being sent or received: a call may move only a part of it.
#[derive(Debug, Default)]
pub(super) struct MarkPart {
    raw: [u8; MARK_BYTES],
    at: usize,
}

impl MarkPart {
    /// Sends `mark`; returns true once all of it is sent. Until then it must be called with the same mark.
    pub(super) fn put(&mut self, line: &Line, mark: Mark, more: bool) -> Result<bool, LoadError> {
        let raw = mark.encode();
        self.at += line.send(&raw[self.at..], more)?;
        Ok(self.all())
    }

    /// Sends `mark` like `put`, but only as much as the kernel accepts at once.
    pub(super) fn offer(&mut self, line: &Line, mark: Mark, more: bool) -> Result<bool, LoadError> {
        let raw = mark.encode();
        self.at += line.offer(&raw[self.at..], more)?;
        Ok(self.all())
    }

    /// Returns whether the whole mark is sent, so that the next one can be.
    fn all(&mut self) -> bool {
        let all = self.at == MARK_BYTES;
        if all {
            self.at = 0;
        }
        all
    }

    /// Receives a mark; returns `None` until it is complete.
    pub(super) fn get(&mut self, line: &Line, wait: bool) -> Result<Option<Mark>, LoadError> {
        self.at += line.receive(&mut self.raw[self.at..], wait)?;
        self.whole(line)
    }

    /// Returns how many bytes of a mark are still missing.
    pub(super) fn missing(&self) -> usize {
        MARK_BYTES - self.at
    }

    /// Adds bytes of a mark, at most the missing ones; returns `None` until it is complete.
    pub(super) fn add(&mut self, line: &Line, part: &[u8]) -> Result<Option<Mark>, LoadError> {
        self.raw[self.at..][..part.len()].copy_from_slice(part);
        self.at += part.len();
        self.whole(line)
    }

    fn whole(&mut self, line: &Line) -> Result<Option<Mark>, LoadError> {
        if self.at < MARK_BYTES {
            return Ok(None);
        }
        self.at = 0;
        let mark = Mark::decode(&self.raw);
        mark.map(Some).map_err(|e| line.garbled(&e.to_string()))
    }
}
