//! Connects sockets, but gives up at a deadline or when a stop is requested.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use linerate_sys::socket::family;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

use super::wait::{WaitError, wait_unless};

/// Makes a non-blocking socket for connections to `address`.
pub(crate) fn socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(family(&address), SocketType::STREAM, flags, Some(ipproto::TCP))?)
}

/// Connects `socket`. Fails once the deadline has passed. If `stopped`
/// returns true, fails as interrupted within [`super::HEED`].
pub(crate) fn connected_unless(
    socket: &OwnedFd,
    address: SocketAddr,
    deadline: Instant,
    stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    begin(socket, address)?;
    match wait_unless(socket, PollFlags::OUT, deadline, stopped) {
        Ok(()) => Ok(sockopt::socket_error(socket)??),
        Err(WaitError::Io(e)) => Err(e),
        Err(WaitError::Stopped) => Err(ErrorKind::Interrupted.into()),
        Err(_) => Err(ErrorKind::TimedOut.into()),
    }
}

/// Starts to connect `socket`, without waiting.
pub(crate) fn begin(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    match connect(socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
