//! One connection, with everything that its worker needs to use it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_facts::parse::run::{MARK_BYTES, Mark};
use linerate_plan::SetPlan;
use linerate_sys::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, getpeername, getsockname};

use super::{Lines, LoadError};

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

    /// Sends all bytes. The error says `late` if that takes longer than `until`.
    pub(super) fn send_all(
        &self,
        bytes: &[u8],
        until: Instant,
        late: &str,
    ) -> Result<(), LoadError> {
        let mut at = 0;
        while at < bytes.len() {
            at += self.send(&bytes[at..], false)?;
            if at < bytes.len() && Instant::now() >= until {
                return Err(self.garbled(late));
            }
        }
        Ok(())
    }

    /// Receives all bytes. The error says `late` if that takes longer than `until`, or if the set is given up before.
    pub(super) fn receive_all<const N: usize>(
        &self,
        until: Instant,
        given_up: impl Fn() -> bool,
        late: &str,
    ) -> Result<[u8; N], LoadError> {
        let (mut into, mut at) = ([0; N], 0);
        while at < N {
            at += self.receive(&mut into[at..], true)?;
            if at < N && (Instant::now() >= until || given_up()) {
                return Err(self.garbled(late));
            }
        }
        Ok(into)
    }

    /// Returns the address of this end.
    pub(super) fn local(&self) -> Result<SocketAddr, LoadError> {
        self.address("getsockname", getsockname(self.fd()))
    }

    /// Returns the address of the other end.
    pub(super) fn peer(&self) -> Result<SocketAddr, LoadError> {
        let name = getpeername(self.fd());
        self.address("getpeername", name.and_then(|name| name.ok_or(Errno::NOTCONN)))
    }

    fn address(
        &self,
        call: &'static str,
        name: rustix::io::Result<SocketAddrAny>,
    ) -> Result<SocketAddr, LoadError> {
        let address = name.and_then(SocketAddr::try_from);
        address.map_err(|e| self.failed(call, e.into()))
    }

    /// Waits, at most for `most`, until there is something to receive or, if `wanted`, room to send; returns
    /// both states.
    pub(super) fn ready(&self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, wanted);
        let seen = seen(self.fd(), events, most).map_err(|e| self.failed("poll", e.into()))?;
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

/// Returns the events of a descriptor, after waiting at most for `most` until there is one.
pub(super) fn seen(
    fd: BorrowedFd<'_>,
    events: PollFlags,
    most: Duration,
) -> rustix::io::Result<PollFlags> {
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    match poll(&mut fds, Some(&timespec(most))) {
        Ok(_) | Err(Errno::INTR) => Ok(fds[0].revents()),
        Err(e) => Err(e),
    }
}

/// Returns a time as calls take it.
pub(super) const fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos() as i64 }
}

/// Makes the connections of the streams of a set, whose sockets need no options.
pub(super) fn connections(plan: &SetPlan, lines: &mut dyn Lines) -> Result<Vec<Line>, LoadError> {
    let fds = lines.lines(plan.id, plan.knobs.streams, &mut |_, _| Ok(()))?;
    (0..).zip(fds).map(|(stream, fd)| Line::new(fd, plan.id, stream)).collect()
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
