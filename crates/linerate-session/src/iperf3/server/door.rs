//! The UDP port of the server. Each datagram stream of the running test sends its hello to this port.
//!
//! UDP has no connections, so any host can send to the port. Only datagrams from the host of the test's control
//! connection are read, and nothing is sent to any other host. The socket of a stream is connected to the port that
//! sent the hello, so that the kernel drops datagrams from any other port. A new socket then waits for the hello of the
//! next stream; once all streams exist, no new one is opened.
//!
//! iperf3 does not authenticate senders on that host. An attacker who can forge the address of the host may take a
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

/// Largest number of datagrams that are read from a socket without a pause, since any host can send datagrams.
const AT_ONCE: usize = 64;
/// Upper bound of the number of datagrams that can wait at a
/// socket. A receive buffer holds a few thousand of the smallest.
const WAITING: usize = 1 << 16;

/// Callback that sets the options of a socket before any datagram arrives at it.
pub(super) type Dress<'a> = &'a dyn Fn(&OwnedFd) -> Result<(), Refusal>;

/// The UDP port of one test.
pub(super) struct Door<'a> {
    /// Address of this host that the client uses; it expects answers from this address.
    own: SocketAddr,
    /// Address of the client's host.
    host: IpAddr,
    dress: Dress<'a>,
    /// Socket that waits for the next stream's hello; `None` once all streams exist.
    open: Option<UdpSocket>,
    lines: Vec<UdpSocket>,
    wanted: usize,
}

impl<'a> Door<'a> {
    /// Opens the UDP port for `wanted` streams from `host`.
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

    /// Waits up to `wait` for a hello; returns whether a new stream was accepted.
    pub(super) fn look(&mut self, wait: Duration) -> Result<bool, Refusal> {
        let all = self.open.iter().chain(&self.lines);
        let mut fds: Vec<_> = all.map(|s| PollFd::new(s, PollFlags::IN)).collect();
        // A wait that is interrupted is only shorter, so errors are ignored.
        let _ = poll(&mut fds, Some(&timespec(wait)));
        for line in &self.lines {
            repeated(line);
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

    /// Returns the connected sockets of the streams, in the order in which their hellos arrived.
    pub(super) fn lines(self) -> Vec<OwnedFd> {
        self.lines.into_iter().map(OwnedFd::from).collect()
    }

    /// Accepts the stream whose hello was sent from `from`, and sends the answer.
    fn enter(&mut self, from: SocketAddr, answer: &[u8]) -> Result<(), Refusal> {
        let failed = |e: io::Error| Refusal::STREAM.because(&e);
        let Some(line) = self.open.take() else {
            return Ok(());
        };
        line.connect(from).map_err(failed)?;
        // Datagrams that arrived before the socket was connected may be from another sender, so they are dropped.
        let waiting = (0..WAITING).take_while(|_| line.recv(&mut [0]).is_ok());
        waiting.for_each(drop);
        if self.lines.len() + 1 < self.wanted {
            self.open = Some(self.socket()?);
        }
        // The answer is sent last, because the client may send the next hello once it has received the answer.
        let sent = line.send(answer);
        if let Err(e) = sent
            && !is_passing(&e)
        {
            return Err(failed(e));
        }
        self.lines.push(line);
        Ok(())
    }

    /// Opens a socket at the UDP port, which it shares with the sockets that are already connected.
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

/// Answers repeated hellos of a stream: the first answer was lost.
fn repeated(line: &UdpSocket) {
    let mut bytes = [0; HELLO_LEN + 1];
    for _ in 0..AT_ONCE {
        let Ok(got) = line.recv(&mut bytes) else {
            return;
        };
        if let Some(answer) = answer(&bytes[..got]) {
            // If the answer cannot be sent, the client repeats its hello.
            let _ = line.send(&answer);
        }
    }
}

/// Returns whether an error only means that there is nothing to read, or that an earlier datagram caused an ICMP error.
fn is_passing(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}
