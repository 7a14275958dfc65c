//! One data connection, with everything that its worker needs to use it.

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

/// Longest time that a call on the socket blocks.
pub(super) const BLOCK: Duration = Duration::from_millis(100);

/// A data connection; its descriptor is shared with the probes of its worker.
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

    /// Receives available bytes, at once or, with `wait`, within the block time. Returns zero if there are none.
    #[inline]
    pub(super) fn receive(&self, into: &mut [u8], wait: bool) -> Result<usize, LoadError> {
        match socket::receive(self.fd(), into, wait) {
            Ok(0) => Err(self.closed()),
            other => self.moved("recv", other),
        }
    }

    /// Sends all bytes. Fails with the text `late` if that is not completed at `until`.
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

    /// Receives all bytes. Fails with the text `late` if they are not complete at `until`, or if the set is given up
    /// before.
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

    /// Waits, at most for `most`, until bytes can be received or, if `wanted`, sent. Returns whether bytes can be
    /// received, and whether they can be sent.
    pub(super) fn ready(&self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, wanted);
        let seen = seen(self.fd(), events, most).map_err(|e| self.failed("poll", e.into()))?;
        // A broken connection counts as ready, so that the next call on it reports the error.
        let broken = seen.intersects(PollFlags::ERR | PollFlags::HUP);
        Ok([
            broken || seen.contains(PollFlags::IN),
            wanted && (broken || seen.contains(PollFlags::OUT)),
        ])
    }

    /// Receives and drops available bytes, at once or, with `wait`, within the block time. Returns zero if there are
    /// none.
    pub(super) fn discard(&self, scratch: &mut [u8], wait: bool) -> Result<usize, LoadError> {
        match socket::discard(self.fd(), scratch, wait) {
            Ok(0) => Err(self.closed()),
            other => self.moved("recv", other),
        }
    }

    /// Returns how many bytes a call moved; zero if the call timed out or was interrupted.
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

    /// Makes the error that the other end broke the protocol of this stream.
    pub(super) fn garbled(&self, what: &str) -> LoadError {
        LoadError::Protocol { what: format!("stream {} of set {}: {what}", self.stream, self.set) }
    }

    /// Makes the error for a system call that failed on this stream.
    pub(super) fn failed(&self, call: &'static str, source: io::Error) -> LoadError {
        LoadError::Call { call, stream: self.stream, source }
    }
}

/// Waits until one of the `events` occurs on a descriptor, at most for `most`. Returns the events that occurred.
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

/// Converts a duration for system calls.
pub(super) const fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos() as i64 }
}

/// Makes the data connections of a set whose sockets need no options.
pub(super) fn connections(plan: &SetPlan, lines: &mut dyn Lines) -> Result<Vec<Line>, LoadError> {
    let fds = lines.lines(plan.id, plan.knobs.streams, &mut |_, _| Ok(()))?;
    (0..).zip(fds).map(|(stream, fd)| Line::new(fd, plan.id, stream)).collect()
}

/// Returns how many bytes a call moved; zero if the call timed out or was interrupted.
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

/// A mark that is being sent or received. A call may move only a part of the mark.
#[derive(Debug, Default)]
pub(super) struct MarkPart {
    raw: [u8; MARK_BYTES],
    at: usize,
}

impl MarkPart {
    /// Sends `mark`; returns true once all its bytes are sent. Until then it must be called again with the same mark.
    pub(super) fn put(&mut self, line: &Line, mark: Mark, more: bool) -> Result<bool, LoadError> {
        let raw = mark.encode();
        self.at += line.send(&raw[self.at..], more)?;
        Ok(self.all())
    }

    /// Sends `mark` like `put`, but only the bytes that the kernel accepts at once.
    pub(super) fn offer(&mut self, line: &Line, mark: Mark, more: bool) -> Result<bool, LoadError> {
        let raw = mark.encode();
        self.at += line.offer(&raw[self.at..], more)?;
        Ok(self.all())
    }

    /// Returns whether all bytes of the mark are sent; then it is ready for the next mark.
    fn all(&mut self) -> bool {
        let all = self.at == MARK_BYTES;
        if all {
            self.at = 0;
        }
        all
    }

    /// Receives bytes of a mark; returns `None` until the mark is complete.
    pub(super) fn get(&mut self, line: &Line, wait: bool) -> Result<Option<Mark>, LoadError> {
        self.at += line.receive(&mut self.raw[self.at..], wait)?;
        self.whole(line)
    }

    /// Returns how many bytes of the mark were not received yet.
    pub(super) fn missing(&self) -> usize {
        MARK_BYTES - self.at
    }

    /// Adds received bytes to a mark, at most the missing ones; returns `None` until the mark is complete.
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
