//! How the two processes get the same memory: the far end makes it, and passes its descriptor to the near one over a socket.
//!
//! The socket has a name that cannot be guessed, which the far end says over the session. Neither end opens anything that
//! the other one names but that socket, and both talk only to a process of the same user.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use linerate_sys::memfd::SharedMemory;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg, sockopt::socket_peercred,
};

use crate::load::LoadError;
use crate::load::transport::{Lines, Offer};

/// Time for the other process to come, or to pass its memory.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked for whether nobody wants the set any more.
const LOOK: Duration = Duration::from_millis(100);
/// What passes the descriptor: a message needs a byte.
const BYTE: u8 = b'm';

/// What makes a name that nobody else has.
type Token = [u8; 16];

/// A set whose memory waits for the near end.
#[derive(Debug)]
pub(super) struct Host {
    listener: UnixListener,
    token: Token,
}

impl Host {
    pub(super) fn new() -> Result<Self, LoadError> {
        let mut token = Token::default();
        getrandom::fill(&mut token).map_err(|e| failed("getrandom", std::io::Error::other(e)))?;
        let listener = UnixListener::bind_addr(&address(&token)?);
        let listener = listener.map_err(|e| failed("bind", e))?;
        Ok(Self { listener, token })
    }

    /// What the near end needs to come.
    pub(super) fn offer(&self) -> Offer {
        self.token.to_vec()
    }

    /// Passes the memory to the near end, once it has come.
    pub(super) fn pass(
        &self,
        memory: &SharedMemory,
        lines: &mut dyn Lines,
    ) -> Result<(), LoadError> {
        loop {
            await_one(&self.listener, lines)?;
            let (guest, _) = self.listener.accept().map_err(|e| failed("accept", e))?;
            if is_own(&guest)? {
                return send(&guest, memory);
            }
        }
    }
}

/// Gets the memory of `len` bytes that the far end offers.
pub(super) fn fetch(
    offer: &Offer,
    len: usize,
    lines: &mut dyn Lines,
) -> Result<SharedMemory, LoadError> {
    let token = Token::try_from(offer.as_slice());
    let token = token.map_err(|_| garbled("its offer of shared memory cannot be read"))?;
    let host = UnixStream::connect_addr(&address(&token)?).map_err(|e| failed("connect", e))?;
    if !is_own(&host)? {
        return Err(garbled("its shared memory is another user's"));
    }
    await_one(&host, lines)?;
    SharedMemory::open(receive(&host)?, len).map_err(|e| failed("mapping shared memory", e))
}

/// In the namespace of names that are in no file system: nothing is left behind.
fn address(token: &Token) -> Result<SocketAddr, LoadError> {
    let name = format!("linerate-{:032x}", u128::from_be_bytes(*token));
    SocketAddr::from_abstract_name(name).map_err(|e| failed("bind", e))
}

/// Whether the process at the other end is of this user.
fn is_own(stream: &UnixStream) -> Result<bool, LoadError> {
    let peer = socket_peercred(stream).map_err(|e| failed("getsockopt", e.into()))?;
    Ok(peer.uid == rustix::process::geteuid())
}

/// Waits until something comes.
fn await_one(socket: &impl AsFd, lines: &mut dyn Lines) -> Result<(), LoadError> {
    let until = Instant::now() + PATIENCE;
    let look = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK.subsec_nanos().into(),
    };
    loop {
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut fds, Some(&look)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(failed("poll", e.into())),
        }
        if lines.given_up() {
            return Err(garbled("the other end gave its shared memory up"));
        }
        if Instant::now() >= until {
            return Err(garbled("the other end did not come for its shared memory"));
        }
    }
}

fn send(guest: &UnixStream, memory: &SharedMemory) -> Result<(), LoadError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let fds = [memory.fd()];
    with.push(SendAncillaryMessage::ScmRights(&fds));
    let bytes = [IoSlice::new(&[BYTE])];
    let sent = sendmsg(guest, &bytes, &mut with, SendFlags::NOSIGNAL);
    sent.map(drop).map_err(|e| failed("sendmsg", e.into()))
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
    LoadError::Call {
        call,
        stream: 0,
        source,
    }
}

fn garbled(what: &str) -> LoadError {
    LoadError::Protocol {
        what: what.to_owned(),
    }
}
