//! One socket of a stream, with what its worker needs to use it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::datagram::{HEADER_LEN, Header, Kind};
use linerate_sys::{datagram, socket};
use rustix::io::Errno;

use crate::load::{Datagrams, LoadError};

/// A connected socket; its descriptor is shared with the probes of its worker.
#[derive(Debug, Clone)]
pub(super) struct Line {
    fd: Arc<OwnedFd>,
    own: u64,
    /// Tag of the datagrams that the other end sends.
    pub(super) other: u64,
    pub(super) set: u32,
    pub(super) stream: u32,
}

/// What became of messages that were handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// So many were taken, at least one.
    Taken(usize),
    /// None, because the socket's own buffer is full: the port is slower than the sender.
    Waiting,
    /// None, because a queue of this host is full.
    Refused,
    /// None, and the kernel cannot cut messages on this route.
    Uncut,
}

impl Line {
    pub(super) fn new(datagrams: Datagrams, set: u32, stream: u32) -> Self {
        Self {
            fd: Arc::new(datagrams.fd),
            own: datagrams.own,
            other: datagrams.other,
            set,
            stream,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Bounds the time that a send and a receive may block.
    pub(super) fn set_timeouts(&self, most: Duration) -> Result<(), LoadError> {
        let set = socket::set_timeouts(self.fd(), most);
        set.map_err(|source| self.failed("setsockopt", source))
    }

    /// The front of a datagram of this end.
    pub(super) fn header(&self, kind: Kind, size: u16, step: u32, number: u64) -> Header {
        Header {
            tag: self.own,
            size,
            kind,
            step,
            number,
        }
    }

    /// Sends messages, at most a batch of them.
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
            Some(Errno::NOBUFS) => Ok(Sent::Refused),
            // No checksums by the port, or a transformation on the route: udp_send_skb.
            Some(Errno::IO | Errno::INVAL | Errno::OPNOTSUPP) => Ok(Sent::Uncut),
            Some(Errno::MSGSIZE) => Err(self
                .garbled("the path does not take datagrams of this size in one packet any more")),
            _ => Err(self.failed("sendmmsg", source)),
        }
    }

    /// Sends a datagram without payload, if the kernel takes it.
    pub(super) fn tell(&self, kind: Kind, step: u32, number: u64) -> Result<(), LoadError> {
        let raw = self.header(kind, HEADER_LEN as u16, step, number).encode();
        self.send([&raw[..]].into_iter()).map(|_| ())
    }

    /// Receives a datagram, within the block time if it may `wait`; its length, `None` when none came.
    pub(super) fn receive(&self, into: &mut [u8], wait: bool) -> Result<Option<usize>, LoadError> {
        match socket::receive(self.fd(), into, wait) {
            Ok(got) => Ok(Some(got)),
            Err(e) => self.paused(e).map(|()| None),
        }
    }

    /// Whether a receive that failed may be tried again.
    pub(super) fn paused(&self, e: io::Error) -> Result<(), LoadError> {
        match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
            _ => Err(self.failed("recv", e)),
        }
    }

    /// An error of this stream's protocol.
    pub(super) fn garbled(&self, what: &str) -> LoadError {
        LoadError::Protocol {
            what: format!("stream {} of set {}: {what}", self.stream, self.set),
        }
    }

    /// A failed call on this stream.
    pub(super) fn failed(&self, call: &'static str, source: io::Error) -> LoadError {
        LoadError::Call {
            call,
            stream: self.stream,
            source,
        }
    }
}
