//! How the two ends of a datagram stream find each other's UDP port, over an authenticated data connection.
//!
//! At first the far end sends only one short answer. It sends more once the near end has proved, by a keyed hash of a
//! challenge made for this stream, that it receives at the address from which it sent its hello. That address must be
//! the one of the data connection, so a hello that is intercepted and replayed from another address is worthless.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hmac::{Hmac, Mac};
use linerate_record::wire::knock::{
    KNOCK_LEN, Knock, MAC_LEN, PLACE_LEN, Place, Purpose, transcript,
};
use linerate_record::wire::message::Secret;
use rustix::event::{PollFd, PollFlags, poll};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::channel::{read_exact, write_all};
use super::handshake::random;
use crate::net::{Stop, timespec};
use linerate_load::LoadError;
use linerate_load::transport::{Datagrams, at_port};

/// Time within which the two ends of a stream must find each other.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two hellos of the near end.
const AGAIN: Duration = Duration::from_millis(50);
/// Largest number of datagrams that are read before the time is checked again, since any host can send datagrams.
const AT_ONCE: usize = 64;
/// Message that the near end sends on the data connection once the far end has accepted its hello.
const IN: [u8; 1] = [1];

/// Data that both ends of a stream have, and by which they find each other, such as the secret of their session.
#[derive(Clone, Copy)]
pub(super) struct Meeting<'a> {
    pub(super) secret: &'a Secret,
    pub(super) set: u32,
    pub(super) stream: u32,
}

/// Callback that sets the options of a socket before any datagram arrives at it.
pub(super) type Configure<'a> = &'a mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>;

impl Meeting<'_> {
    fn mac(&self, purpose: Purpose, challenge: &[u8; 16]) -> [u8; MAC_LEN] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.secret.0).expect("an HMAC takes keys of any size");
        mac.update(&transcript(purpose, self.set, self.stream, challenge));
        mac.finalize().into_bytes().into()
    }

    fn tag(&self, purpose: Purpose, challenge: &[u8; 16]) -> u64 {
        let mac = self.mac(purpose, challenge);
        u64::from_be_bytes(mac.first_chunk().copied().unwrap_or_default())
    }

    fn proves(&self, bytes: &[u8], purpose: Purpose, challenge: &[u8; 16]) -> bool {
        let expected = self.mac(purpose, challenge);
        Knock::decode(bytes).is_some_and(|knock| knock.mac.ct_eq(&expected).into())
    }

    fn knock(&self, purpose: Purpose, challenge: &[u8; 16]) -> [u8; KNOCK_LEN] {
        let mac = self.mac(purpose, challenge);
        Knock { mac }.encode()
    }

    /// Returns the near end's hello to the far end.
    #[cfg(test)]
    pub(super) fn sent(&self, challenge: &[u8; 16]) -> [u8; KNOCK_LEN] {
        self.knock(Purpose::Knock, challenge)
    }

    /// Runs the near end: it sends hellos to the far end's address until the far end accepts one.
    pub(super) fn dial(
        &self,
        line: &TcpStream,
        configure: Configure<'_>,
    ) -> Result<Datagrams, LoadError> {
        let deadline = Instant::now() + PATIENCE;
        let failed = |call| move |e| self.failed(call, e);
        line.set_nonblocking(true).map_err(failed("fcntl"))?;
        let mut place = [0; PLACE_LEN];
        read_exact(line, &mut place, deadline).map_err(|e| self.lost(&e))?;
        let place = Place::decode(&place).map_err(|e| self.lost(&e))?;
        let own = line.local_addr().map_err(failed("getsockname"))?;
        let far = line.peer_addr().map_err(failed("getpeername"))?;
        let far = at_port(far, place.port);
        let socket = self.bind(own, configure)?;
        socket.connect(far).map_err(failed("connect"))?;
        self.enter(&socket, &place.challenge, deadline)
            .map_err(failed("send"))?
            .ok_or_else(|| unreached(far))?;
        write_all(line, &IN, None, deadline).map_err(|e| self.lost(&e))?;
        self.found(socket, &place.challenge, [Purpose::NearTag, Purpose::FarTag])
    }

    /// Sends hellos until the far end proves that it received
    /// one; returns `None` if that does not happen by `deadline`.
    fn enter(
        &self,
        socket: &UdpSocket,
        challenge: &[u8; 16],
        deadline: Instant,
    ) -> io::Result<Option<()>> {
        let knock = self.knock(Purpose::Knock, challenge);
        let mut bytes = [0; KNOCK_LEN + 1];
        let mut next = Instant::now();
        while Instant::now() < deadline {
            // Other datagrams that arrive do not make the hellos more frequent.
            if Instant::now() >= next {
                harmless(socket.send(&knock))?;
                next = Instant::now() + AGAIN;
            }
            let left = next.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(socket, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&timespec(left)));
            for _ in 0..AT_ONCE {
                let Some(got) = harmless(socket.recv(&mut bytes))? else {
                    break;
                };
                if self.proves(&bytes[..got], Purpose::Answer, challenge) {
                    return Ok(Some(()));
                }
            }
        }
        Ok(None)
    }

    /// Runs the far end: it opens a UDP port, and waits there for the near end's hello.
    pub(super) fn accept(
        &self,
        line: &TcpStream,
        stop: &Stop,
        configure: Configure<'_>,
    ) -> Result<Datagrams, LoadError> {
        let deadline = Instant::now() + PATIENCE;
        let failed = |call| move |e| self.failed(call, e);
        line.set_nonblocking(true).map_err(failed("fcntl"))?;
        let own = line.local_addr().map_err(failed("getsockname"))?;
        let near = line.peer_addr().map_err(failed("getpeername"))?;
        let socket = self.bind(own, configure)?;
        let place = Place {
            port: socket.local_addr().map_err(failed("getsockname"))?.port(),
            challenge: random(),
        };
        write_all(line, &place.encode(), Some(stop), deadline).map_err(|e| self.lost(&e))?;
        let mut visitor = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [
                PollFd::new(&socket, PollFlags::IN),
                PollFd::new(line, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            let _ = poll(&mut fds, Some(&timespec(left)));
            let [_, said, stopped] = fds.map(|fd| !fd.revents().is_empty());
            self.answer(&socket, &place.challenge, near, &mut visitor).map_err(failed("send"))?;
            if said {
                let mut word = [0];
                read_exact(line, &mut word, deadline).map_err(|e| self.lost(&e))?;
                break;
            }
            if stopped || left.is_zero() {
                return Err(self.lost(&"no hello arrived"));
            }
        }
        if visitor.is_none() {
            return Err(self.lost(&"the near end sent payload before its hello"));
        }
        self.found(socket, &place.challenge, [Purpose::FarTag, Purpose::NearTag])
    }

    /// Answers each hello that has a valid proof and was sent from the host of the data connection. The socket is
    /// connected to the first such sender.
    fn answer(
        &self,
        socket: &UdpSocket,
        challenge: &[u8; 16],
        near: SocketAddr,
        visitor: &mut Option<SocketAddr>,
    ) -> io::Result<()> {
        let mut bytes = [0; KNOCK_LEN + 1];
        for _ in 0..AT_ONCE {
            let (got, from) = match socket.recv_from(&mut bytes) {
                Ok(got) => got,
                Err(e) => return harmless::<()>(Err(e)).map(|_| ()),
            };
            let host = from.ip().to_canonical() == near.ip().to_canonical();
            if !host || !self.proves(&bytes[..got], Purpose::Knock, challenge) {
                continue;
            }
            if visitor.is_none() {
                socket.connect(from)?;
                *visitor = Some(from);
            }
            if *visitor == Some(from) {
                harmless(socket.send(&self.knock(Purpose::Answer, challenge)))?;
            }
        }
        Ok(())
    }

    fn lost(&self, why: &impl ToString) -> LoadError {
        LoadError::Protocol {
            what: format!(
                "the datagrams of stream {} of set {} did not get through: {}",
                self.stream,
                self.set,
                why.to_string()
            ),
        }
    }

    fn failed(&self, call: &'static str, source: io::Error) -> LoadError {
        LoadError::Call { call, stream: self.stream, source }
    }

    /// Opens a non-blocking UDP socket at the address `own`, at a port that the system chooses.
    fn bind(&self, own: SocketAddr, configure: Configure<'_>) -> Result<UdpSocket, LoadError> {
        let bound = UdpSocket::bind(at_port(own, 0));
        let fd = OwnedFd::from(bound.map_err(|e| self.failed("bind", e))?);
        configure(&fd)?;
        let socket = UdpSocket::from(fd);
        let set = socket.set_nonblocking(true);
        set.map_err(|e| self.failed("fcntl", e))?;
        Ok(socket)
    }

    /// Returns the socket for a worker, with the tags that mark the datagrams of this end and of the other end.
    fn found(
        &self,
        socket: UdpSocket,
        challenge: &[u8; 16],
        tags: [Purpose; 2],
    ) -> Result<Datagrams, LoadError> {
        let set = socket.set_nonblocking(false);
        set.map_err(|e| self.failed("fcntl", e))?;
        let [own, other] = tags.map(|tag| self.tag(tag, challenge));
        Ok(Datagrams { fd: socket.into(), own, other })
    }
}

/// Makes the error for a path that loses all datagrams although its TCP connections work.
fn unreached(far: SocketAddr) -> LoadError {
    LoadError::Failed {
        what: format!("no UDP datagram reaches {far}"),
        hint: "allow UDP to the far host, at the ports of net.ipv4.ip_local_port_range there, or \
               measure with --engine tcp",
    }
}

/// Returns the result of a call; `None` if nothing is available yet, or if the call reports an error of an earlier
/// datagram.
fn harmless<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) => match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused => {
                Ok(None)
            }
            _ => Err(e),
        },
    }
}
