//! How the two processes get the same memory: the far end makes it, and passes its file descriptor to the near end over
//! a Unix socket.
//!
//! The far end sends the socket's name over the session. The name is random, so that two sets do not have the same one,
//! but it is not secret: every local user can read it in /proc/net/unix, and connect. To protect the memory, each end
//! asks the kernel for the user of the other end (SO_PEERCRED), and passes or accepts the descriptor only if that is
//! its own user. Neither end opens anything else that the other one names.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use linerate_sys::memfd::SharedMemory;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
    socket_with, sockopt::socket_peercred,
};
use rustix::process::{Uid, geteuid};

use crate::LoadError;
use crate::transport::line::seen;
use crate::transport::{Lines, Offer};

/// Longest time until the near end has the memory, including connections of other programs.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Interval between checks whether the set was cancelled.
const LOOK: Duration = Duration::from_millis(100);
/// Content of the message that passes the descriptor: a message must have at least one byte.
const BYTE: u8 = b'm';

/// Random part of the socket's name, which makes the name unique.
type Token = [u8; 16];

/// Time limit of an end's wait for the other end.
pub(super) struct Wait<'a> {
    lines: &'a dyn Lines,
    until: Instant,
}

impl<'a> Wait<'a> {
    /// Makes a wait that ends when the set is cancelled, or after `most` at the latest.
    pub(super) fn new(lines: &'a dyn Lines, most: Duration) -> Self {
        let until = Instant::now() + most;
        Self { lines, until }
    }

    /// Returns the time until the next check of the limit; fails once the set is cancelled or the time is over.
    fn left(&self) -> Result<Duration, LoadError> {
        if self.lines.given_up() {
            return Err(garbled("the other end released its shared memory"));
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(garbled("the other end did not fetch its shared memory"));
        }
        Ok(left.min(LOOK))
    }

    /// Waits until `socket` can be read or has a connection to accept. The time limit is checked before each poll, so
    /// that a socket that is always readable cannot extend the wait.
    fn readable(&self, socket: &impl AsFd) -> Result<(), LoadError> {
        loop {
            let seen = seen(socket.as_fd(), PollFlags::IN, self.left()?);
            if !seen.map_err(|e| failed("poll", e.into()))?.is_empty() {
                return Ok(());
            }
        }
    }
}

/// The far end of a set while it waits for the near end to fetch the memory.
#[derive(Debug)]
pub(super) struct Host {
    listener: UnixListener,
    token: Token,
    /// User to whom the host passes the memory.
    user: Uid,
}

impl Host {
    pub(super) fn new() -> Result<Self, LoadError> {
        Self::of(geteuid())
    }

    /// Makes a host that passes memory to this user.
    pub(super) fn of(user: Uid) -> Result<Self, LoadError> {
        let mut token = Token::default();
        getrandom::fill(&mut token).map_err(|e| failed("getrandom", std::io::Error::other(e)))?;
        let address = SocketAddr::from_abstract_name(name(&token));
        let listener = address.and_then(|address| UnixListener::bind_addr(&address));
        let listener = listener.map_err(|e| failed("bind", e))?;
        let set = listener.set_nonblocking(true);
        set.map_err(|e| failed("ioctl", e))?;
        Ok(Self { listener, token, user })
    }

    /// Returns the token, from which the near end derives the socket's name.
    pub(super) fn offer(&self) -> Offer {
        self.token.to_vec()
    }

    /// Passes the memory to the near end, after waiting for it to connect. Connections of other users are closed.
    pub(super) fn pass(&self, memory: &SharedMemory, wait: &Wait<'_>) -> Result<(), LoadError> {
        loop {
            wait.readable(&self.listener)?;
            let guest = match self.listener.accept() {
                Ok((guest, _)) => guest,
                Err(e) if e.kind() == ErrorKind::WouldBlock => continue,
                Err(e) => return Err(failed("accept", e)),
            };
            if user(&guest)? != self.user {
                continue;
            }
            match send(&guest, memory) {
                Ok(()) => return Ok(()),
                // The other process has already closed the connection: either it is not the near end, or the set will
                // be cancelled.
                Err(Errno::PIPE | Errno::CONNRESET) => {}
                Err(e) => return Err(failed("sendmsg", e.into())),
            }
        }
    }
}

/// Receives the memory of `len` bytes that the far end offers.
pub(super) fn fetch(offer: &Offer, len: usize, wait: &Wait<'_>) -> Result<SharedMemory, LoadError> {
    let token = Token::try_from(offer.as_slice());
    let token = token.map_err(|_| garbled("its offer of shared memory cannot be read"))?;
    let host = connect(&token, wait)?;
    if user(&host)? != geteuid() {
        return Err(garbled("its shared memory belongs to another user"));
    }
    wait.readable(&host)?;
    SharedMemory::open(receive(&host)?, len).map_err(|e| failed("mapping shared memory", e))
}

/// Returns the socket's name. It is in the abstract namespace, which leaves no file behind.
pub(super) fn name(token: &Token) -> String {
    format!("linerate-{:032x}", u128::from_be_bytes(*token))
}

/// Connects to the host with this token. The socket is non-blocking: so the kernel reports a full backlog, while on a
/// blocking socket `connect` would wait for room without a limit.
fn connect(token: &Token, wait: &Wait<'_>) -> Result<UnixStream, LoadError> {
    let failed = |e: Errno| failed("connect", e.into());
    let address = SocketAddrUnix::new_abstract_name(name(token).as_bytes()).map_err(failed)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        let left = wait.left()?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let socket = socket.map_err(failed)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket.into()),
            Err(Errno::AGAIN) => thread::sleep(left),
            Err(Errno::INTR) => {}
            Err(e) => return Err(failed(e)),
        }
    }
}

/// Returns the user of the process at the other end.
fn user(stream: &UnixStream) -> Result<Uid, LoadError> {
    let peer = socket_peercred(stream).map_err(|e| failed("getsockopt", e.into()))?;
    Ok(peer.uid)
}

fn send(guest: &UnixStream, memory: &SharedMemory) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let fds = [memory.fd()];
    with.push(SendAncillaryMessage::ScmRights(&fds));
    let bytes = [IoSlice::new(&[BYTE])];
    sendmsg(guest, &bytes, &mut with, SendFlags::NOSIGNAL).map(drop)
}

fn receive(host: &UnixStream) -> Result<OwnedFd, LoadError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    let got = recvmsg(host, &mut into, &mut with, RecvFlags::CMSG_CLOEXEC);
    got.map_err(|e| failed("recvmsg", e.into()))?;
    let passed = with.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    passed.ok_or_else(|| garbled("the other end passed no shared memory"))
}

fn failed(call: &'static str, source: std::io::Error) -> LoadError {
    LoadError::Call { call, stream: 0, source }
}

fn garbled(what: &str) -> LoadError {
    LoadError::Protocol { what: what.to_owned() }
}
