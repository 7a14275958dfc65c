//! Makes the streams of a test: TCP connections, or UDP sockets whose hello the server has answered.
//!
//! The server begins the test once the last stream exists. So the last
//! stream sends its cookie or hello only when this end's threads are ready.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use linerate_record::iperf3::Cookie;
use linerate_sys::socket;

use super::talk::Talk;
use super::test::DIAL;
use super::{ClientError, hello};
use crate::net::{connected_unless, socket};
use linerate_load::LoadError;
use linerate_load::transport::{ConfigureEach, Datagrams, Lines};

/// Makes the streams of one test.
pub(super) struct Dialler<'a> {
    talk: &'a Talk<'static>,
    own: SocketAddr,
    cookie: &'a Cookie,
    streams: u32,
    /// Last stream of the test, which has not sent its cookie or hello yet.
    pub(super) held: Option<Held>,
    /// Addresses of both ends of each stream, this end first.
    pub(super) ends: Vec<[SocketAddr; 2]>,
    /// Reason why a UDP socket could not be opened; `None` if all were opened.
    pub(super) failed: Option<ClientError>,
}

/// A stream that the server does not know yet.
pub(super) enum Held {
    /// A connection that has not sent its cookie.
    Connection(OwnedFd),
    /// A UDP socket that has not sent its hello.
    Datagrams(UdpSocket),
}

impl<'a> Dialler<'a> {
    pub(super) fn new(
        talk: &'a Talk<'static>,
        own: SocketAddr,
        cookie: &'a Cookie,
        streams: u32,
    ) -> Self {
        Self { talk, own, cookie, streams, held: None, ends: Vec::new(), failed: None }
    }

    fn is_last(&self, stream: u32) -> bool {
        stream + 1 == self.streams
    }

    /// Makes a connection and sends its cookie. The last connection of the test sends its cookie later.
    fn connection(
        &mut self,
        stream: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<OwnedFd, LoadError> {
        let failed = |call| move |source| LoadError::Call { call, stream, source };
        let server = self.talk.server;
        let fd = socket(server).map_err(failed("socket"))?;
        configure(stream, &fd)?;
        let stopped = &|| self.talk.control.stopped();
        connected_unless(&fd, server, Instant::now() + DIAL, stopped).map_err(failed("connect"))?;
        rustix::io::ioctl_fionbio(&fd, false).map_err(|e| failed("ioctl")(e.into()))?;
        if self.is_last(stream) {
            self.held = Some(Held::Connection(fd.try_clone().map_err(failed("dup"))?));
        } else {
            announce(&fd, self.cookie).map_err(failed("send"))?;
        }
        self.ends.push([own(&fd).unwrap_or(self.own), server]);
        Ok(fd)
    }

    /// Opens a UDP socket and sends its hello. The last socket of the test sends its hello later.
    fn socket(
        &mut self,
        stream: u32,
        configure: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<OwnedFd, ClientError> {
        let server = self.talk.server;
        let fd = hello::socket(self.own, server, |fd| Ok(configure(fd)?))?;
        let copy = fd.try_clone().map(UdpSocket::from);
        let copy = copy.map_err(|e| super::test::system("dup", e))?;
        if self.is_last(stream) {
            self.held = Some(Held::Datagrams(copy));
        } else {
            hello::say(&self.talk.control, server, &copy)?;
        }
        self.ends.push([own(&fd).unwrap_or(self.own), server]);
        Ok(fd)
    }
}

impl Lines for Dialler<'_> {
    fn lines(
        &mut self,
        _: u32,
        streams: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        (0..streams).map(|stream| self.connection(stream, configure)).collect()
    }

    fn datagrams(
        &mut self,
        _: u32,
        stream: u32,
        configure: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<Datagrams, LoadError> {
        let fd = self.socket(stream, configure).map_err(|error| {
            let what = error.to_string();
            self.failed = Some(error);
            LoadError::Protocol { what }
        })?;
        // In iperf3's protocol, no tag marks the datagrams of a stream, so both tags are 0.
        Ok(Datagrams { fd, own: 0, other: 0 })
    }
}

impl Held {
    /// Sends the cookie or the hello of the last stream to the server.
    pub(super) fn announce(self, talk: &Talk<'_>, cookie: &Cookie) -> Result<(), ClientError> {
        match self {
            Self::Connection(fd) => {
                let sent = announce(&fd, cookie);
                sent.map_err(|e| super::test::system("sending the cookie of a stream", e))
            }
            Self::Datagrams(socket) => hello::say(&talk.control, talk.server, &socket),
        }
    }
}

/// Sends the cookie of a data connection. The send buffer of a new connection has room for these few bytes.
fn announce(fd: &OwnedFd, cookie: &Cookie) -> io::Result<()> {
    if socket::send(fd.as_fd(), cookie, false)? == cookie.len() {
        return Ok(());
    }
    Err(io::ErrorKind::WriteZero.into())
}

/// Returns the address of this end of a stream; `None` if it cannot be read.
fn own(fd: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(rustix::net::getsockname(fd).ok()?).ok()
}
