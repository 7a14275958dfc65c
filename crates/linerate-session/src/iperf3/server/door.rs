//! The port of the server for datagrams, where the streams of the running test send their hellos.
//!
//! UDP has no connections: anyone may send to the port, from any address. Only datagrams from the host of this
//! test's control connection are read, and nothing is sent to any other host. A stream's socket is connected to
//! the port that sent the hello, so that the kernel drops datagrams from any other. A new socket then listens
//! for the next stream, and is closed once all streams are there.
//!
//! iperf3 does not authenticate senders within that host. An attacker who can forge its address may take a
//! stream's place, but the data sent in the stream still goes to that host.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use linerate_record::iperf3::{HELLO_LEN, Refusal, answer};
use linerate_sys::socket;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SocketFlags, SocketType, bind, ipproto, socket_with, sockopt};

use crate::net::timespec;
use linerate_load::transport::at_port;

/// Most datagrams of a socket that are read in one go: anybody may send them.
const AT_ONCE: usize = 64;
/// Upper bound of the datagrams that can wait at a socket: a receive buffer holds some thousands of the smallest.
const WAITING: usize = 1 << 16;

/// Sets the options of a socket before anything arrives at it.
pub(super) type Dress<'a> = &'a dyn Fn(&OwnedFd) -> Result<(), Refusal>;

/// The door of one test.
pub(super) struct Door<'a> {
    /// Address of this host that the client uses; it expects answers from this address.
    own: SocketAddr,
    /// Address of the client's host.
    host: IpAddr,
    dress: Dress<'a>,
    /// Socket for the next stream; `None` once all streams are there.
    open: Option<UdpSocket>,
    lines: Vec<UdpSocket>,
    wanted: usize,
}

impl<'a> Door<'a> {
    /// Opens the port for `wanted` streams of `host`.
    pub(super) fn open(
        own: SocketAddr,
        host: IpAddr,
        wanted: usize,
        dress: Dress<'a>,
    ) -> Result<Self, Refusal> {
        let mut door = Self {
            own: at_port(own, own.port()),
            host: host.to_canonical(),
            dress,
            open: None,
            lines: Vec::new(),
            wanted,
        };
        door.open = Some(door.socket()?);
        Ok(door)
    }

    /// Waits for a hello; returns whether another stream is there.
    pub(super) fn look(&mut self, wait: Duration) -> Result<bool, Refusal> {
        let all = self.open.iter().chain(&self.lines);
        let mut fds: Vec<_> = all.map(|s| PollFd::new(s, PollFlags::IN)).collect();
        // A wait that is interrupted is only shorter, so errors are ignored.
        let _ = poll(&mut fds, Some(&timespec(wait)));
        for line in &self.lines {
            again(line);
        }
        for _ in 0..AT_ONCE {
            let Some(door) = &self.open else {
                return Ok(false);
            };
            // The buffer is one byte longer than a hello: a longer message is not a hello.
            let mut bytes = [0; HELLO_LEN + 1];
            match door.recv_from(&mut bytes) {
                Ok((got, from)) => {
                    let known = from.ip().to_canonical() == self.host;
                    if let Some(answer) = answer(&bytes[..got]).filter(|_| known) {
                        self.enter(from, &answer)?;
                        return Ok(true);
                    }
                }
                Err(e) if is_passing(&e) => return Ok(false),
                Err(e) => return Err(Refusal::STREAM.because(&e)),
            }
        }
        Ok(false)
    }

    /// Returns the sockets of the streams, in the order of their arrival.
    pub(super) fn lines(self) -> Vec<OwnedFd> {
        self.lines.into_iter().map(OwnedFd::from).collect()
    }

    /// Accepts a stream whose hello has arrived.
    fn enter(&mut self, from: SocketAddr, answer: &[u8]) -> Result<(), Refusal> {
        let failed = |e: io::Error| Refusal::STREAM.because(&e);
        let Some(line) = self.open.take() else {
            return Ok(());
        };
        line.connect(from).map_err(failed)?;
        // Datagrams that others sent before the socket was connected are not part of the stream.
        let waiting = (0..WAITING).take_while(|_| line.recv(&mut [0]).is_ok());
        waiting.for_each(drop);
        if self.lines.len() + 1 < self.wanted {
            self.open = Some(self.socket()?);
        }
        // The client may send the next hello once it has the answer.
        let sent = line.send(answer);
        if let Err(e) = sent
            && !is_passing(&e)
        {
            return Err(failed(e));
        }
        self.lines.push(line);
        Ok(())
    }

    /// Opens a socket at the port, which it shares with the sockets that are already connected.
    fn socket(&self) -> Result<UdpSocket, Refusal> {
        let listen = |e: rustix::io::Errno| Refusal::LISTEN.because(&e.into());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd =
            socket_with(socket::family(&self.own), SocketType::DGRAM, flags, Some(ipproto::UDP));
        let fd = fd.map_err(listen)?;
        sockopt::set_socket_reuseaddr(&fd, true).map_err(listen)?;
        (self.dress)(&fd)?;
        bind(&fd, &self.own).map_err(listen)?;
        Ok(fd.into())
    }
}

/// Answers a repeated hello: the first answer was lost.
fn again(line: &UdpSocket) {
    let mut bytes = [0; HELLO_LEN + 1];
    for _ in 0..AT_ONCE {
        let Ok(got) = line.recv(&mut bytes) else {
            return;
        };
        if let Some(answer) = answer(&bytes[..got]) {
            // An answer that cannot be sent is dropped silently.
            let _ = line.send(&answer);
        }
    }
}

/// Returns whether a socket has nothing to read, or reports an ICMP error for an earlier datagram.
fn is_passing(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}
