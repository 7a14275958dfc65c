//! One UDP socket of a stream, with everything that its worker needs to use it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_facts::parse::control::{STAMP_ROOM, stamp};
use linerate_facts::parse::datagram::{HEADER_LEN, Header, Kind};
use linerate_sys::{clock, datagram, socket};
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::probe::Counts;
use crate::LoadError;
use crate::pattern::Wait;
use crate::transport::Datagrams;
use crate::transport::icmp::is_of_the_path;
use crate::transport::line::seen;

/// Pause of a sender if a queue of its host is full or the path refuses its datagrams. It is shorter than the time in
/// which such a queue drains.
const REST: Duration = Duration::from_micros(50);
/// Number of reads of an empty socket after which a busy worker checks whether it must stop.
const SPINS: u32 = 1024;
/// A connected socket; its descriptor is shared with the probes of its worker.
#[derive(Debug, Clone)]
pub(super) struct Line {
    fd: Arc<OwnedFd>,
    own: u64,
    /// Tag of the datagrams that the other end sends.
    pub(super) other: u64,
    pub(super) set: u32,
    pub(super) stream: u32,
    pub(super) counts: Arc<Counts>,
    /// Whether the stream ends when the other host reports by ICMP that its UDP port is closed.
    heeds_deaf: bool,
}

/// A datagram that was received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Got {
    pub(super) bytes: usize,
    /// Time at which the datagram was read, on this host's monotonic clock.
    pub(super) at: u64,
    /// Nanoseconds that the datagram waited in the kernel, if the kernel stamps arrivals.
    pub(super) unread: Option<u64>,
}

/// Result of passing messages to the kernel. A message consists of one or several datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// The kernel accepted so many messages, at least one.
    Taken(usize),
    /// The kernel accepted no message yet: the socket's own buffer is full, or an ICMP error was reported first.
    Waiting,
    /// The kernel accepted no message: a queue of this host is full, its port is down, or a local firewall rule forbids
    /// it.
    Refused,
    /// The kernel accepted no message, because it cannot segment messages on this route.
    Uncut,
    /// The kernel accepted no message, because the path MTU has become smaller. From now on datagrams are sent in
    /// fragments, and the kernel cannot segment messages into such datagrams.
    TooLong,
}

impl Line {
    pub(super) fn new(datagrams: Datagrams, set: u32, stream: u32) -> Self {
        Self {
            fd: Arc::new(datagrams.fd),
            own: datagrams.own,
            other: datagrams.other,
            set,
            stream,
            counts: Arc::default(),
            heeds_deaf: false,
        }
    }

    /// Makes the stream end when the other UDP port is closed: the destination may be a host that never agreed to
    /// receive.
    pub(super) fn heeding_deaf(self) -> Self {
        Self { heeds_deaf: true, ..self }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Limits the time that a send and a receive may block.
    pub(super) fn set_timeouts(&self, most: Duration) -> Result<(), LoadError> {
        let set = socket::set_timeouts(self.fd(), most);
        set.map_err(|source| self.failed("setsockopt", source))
    }

    /// Makes the header of a datagram that this end sends.
    pub(super) fn header(&self, kind: Kind, size: u16, step: u32, number: u64) -> Header {
        Header { tag: self.own, size, kind, step, number }
    }

    /// Sends messages in one call, at most as many as a batch holds.
    pub(super) fn send<'a>(
        &self,
        messages: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Sent, LoadError> {
        let source = match datagram::send_batch(self.fd(), messages) {
            Ok(count) => return Ok(Sent::Taken(count)),
            Err(source) => source,
        };
        match Errno::from_io_error(&source) {
            Some(Errno::AGAIN | Errno::INTR) => Ok(Sent::Waiting),
            // A local firewall rule causes EPERM (nf_hook_slow), a port that is down causes ENETDOWN.
            Some(Errno::NOBUFS | Errno::PERM | Errno::NETDOWN) => {
                std::thread::sleep(REST);
                Ok(Sent::Refused)
            }
            // Segmentation fails if the port computes no checksums, or if the route transforms packets (udp_send_skb).
            // ICMP errors have other error numbers, such as EOPNOTSUPP for a failed source route.
            Some(Errno::IO | Errno::INVAL) => Ok(Sent::Uncut),
            Some(Errno::MSGSIZE) => self.in_fragments(),
            Some(Errno::CONNREFUSED) if self.heeds_deaf => {
                Err(self.garbled("nothing receives datagrams there"))
            }
            _ if self.passing(&source) => Ok(Sent::Waiting),
            _ => Err(self.failed("sendmmsg", source)),
        }
    }

    /// Handles a path whose MTU became too small for these datagrams: from now on they are sent in fragments.
    fn in_fragments(&self) -> Result<Sent, LoadError> {
        let length = datagram::drain_errors(self.fd());
        if self.counts.fragments() && length == 0 {
            return Err(
                self.garbled("the kernel accepts no datagrams of this size, not even as fragments")
            );
        }
        let set = datagram::set_fragments(self.fd(), true);
        set.map_err(|e| self.failed("setsockopt", e))?;
        Ok(Sent::TooLong)
    }

    /// Handles an error that the path or the other host reported by ICMP: such an error is counted and otherwise
    /// ignored. Returns whether `e` is such an error.
    fn passing(&self, e: &io::Error) -> bool {
        let passing = is_of_the_path(e);
        if passing {
            self.counts.count_error();
            datagram::drain_errors(self.fd());
            std::thread::sleep(REST);
        }
        passing
    }

    /// Sends a datagram that consists of a header only, if the kernel accepts it.
    pub(super) fn tell(&self, kind: Kind, step: u32, number: u64) -> Result<(), LoadError> {
        let raw = self.header(kind, HEADER_LEN as u16, step, number).encode();
        self.send([&raw[..]].into_iter()).map(|_| ())
    }

    /// Receives a datagram: at once or, with `wait`, within the block time. Returns its length; `None` if none arrived.
    pub(super) fn receive(&self, into: &mut [u8], wait: bool) -> Result<Option<usize>, LoadError> {
        match socket::receive(self.fd(), into, wait) {
            Ok(got) => Ok(Some(got)),
            Err(e) => self.paused(e).map(|()| None),
        }
    }

    /// Receives a datagram; returns its length, when it was read, and how long it waited in the kernel.
    pub(super) fn timed(&self, into: &mut [u8], wait: Wait) -> Result<Option<Got>, LoadError> {
        if wait != Wait::Busy {
            return self.look(into, wait == Wait::Asleep);
        }
        for _ in 0..SPINS {
            if let Some(got) = self.look(into, false)? {
                return Ok(Some(got));
            }
            std::hint::spin_loop();
        }
        Ok(None)
    }

    /// Receives a datagram, at once or, with `wait`, within the block time.
    fn look(&self, into: &mut [u8], wait: bool) -> Result<Option<Got>, LoadError> {
        let mut control = [0; STAMP_ROOM];
        match datagram::receive_reported(self.fd(), into, &mut control, wait) {
            Ok((bytes, length)) => {
                let at = clock::now();
                let since = |stamp| clock::wall().checked_sub(stamp);
                Ok(Some(Got { bytes, at, unread: stamp(&control[..length]).and_then(since) }))
            }
            Err(e) => self.paused(e).map(|()| None),
        }
    }

    /// Waits until a datagram arrives, no longer than `most`.
    pub(super) fn rest(&self, most: Duration) -> Result<(), LoadError> {
        let seen = seen(self.fd(), PollFlags::IN, most);
        seen.map(drop).map_err(|e| self.failed("poll", e.into()))
    }

    /// Handles an error of a receive: returns it unless the receive may be repeated.
    pub(super) fn paused(&self, e: io::Error) -> Result<(), LoadError> {
        match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
            // The path reports that datagrams were too large; the next send handles this.
            _ if Errno::from_io_error(&e) == Some(Errno::MSGSIZE) => {
                self.counts.count_error();
                datagram::drain_errors(self.fd());
                Ok(())
            }
            _ if self.passing(&e) => Ok(()),
            _ => Err(self.failed("recv", e)),
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
