//! Where the connections of a stream go: a listener of the far end, told over the stream's data connection.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_sys::socket;
use rustix::net::{getpeername, getsockname};

use super::super::tcp::line::{BLOCK, Line};
use crate::load::LoadError;

/// Time for the other end to tell its port, and again for the first connection to it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A listener for the other end of one data connection.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) listener: TcpListener,
    /// Connections from elsewhere are none of this stream's.
    pub(super) from: IpAddr,
}

/// Listens at the address of `line`, and tells the other end the port.
pub(super) fn open(line: &Line) -> Result<Door, LoadError> {
    let failed = |call| move |e: io::Error| line.failed(call, e);
    let own = getsockname(line.fd()).map_err(io::Error::from);
    let mut own = own.and_then(address).map_err(failed("getsockname"))?;
    let other = getpeername(line.fd()).map_err(io::Error::from);
    let other = other
        .map(|found| found.ok_or(io::ErrorKind::NotConnected.into()))
        .and_then(|found: io::Result<_>| found)
        .and_then(address)
        .map_err(failed("getpeername"))?;
    own.set_port(0);
    let listener = TcpListener::bind(own).map_err(failed("listen"))?;
    socket::set_timeouts(listener.as_fd(), BLOCK).map_err(failed("setsockopt"))?;
    let port = listener.local_addr().map_err(failed("getsockname"))?.port();
    let told = port.to_be_bytes();
    let (mut at, until) = (0, Instant::now() + PATIENCE);
    while at < told.len() {
        at += line.send(&told[at..], false)?;
        in_time(line, until)?;
    }
    let from = other.ip();
    Ok(Door { listener, from })
}

/// Where the other end of `line` listens; a connection gets there.
pub(super) fn find(line: &Line) -> Result<SocketAddr, LoadError> {
    let mut told = [0; 2];
    let (mut at, until) = (0, Instant::now() + PATIENCE);
    while at < told.len() {
        at += line.receive(&mut told[at..], true)?;
        in_time(line, until)?;
    }
    let failed = |e| line.failed("getpeername", e);
    let other = getpeername(line.fd()).map_err(|e| failed(e.into()))?;
    let other = other.ok_or_else(|| failed(io::ErrorKind::NotConnected.into()))?;
    let mut to = address(other).map_err(failed)?;
    to.set_port(u16::from_be_bytes(told));
    // Closed at once: whoever accepts it reads its end.
    match TcpStream::connect_timeout(&to, PATIENCE) {
        Ok(_) => Ok(to),
        Err(_) => Err(LoadError::NoConnections { address: to }),
    }
}

fn in_time(line: &Line, until: Instant) -> Result<(), LoadError> {
    let late = || line.garbled("the other end did not tell where it listens");
    (Instant::now() < until).then_some(()).ok_or_else(late)
}

fn address(any: rustix::net::SocketAddrAny) -> io::Result<SocketAddr> {
    SocketAddr::try_from(any).map_err(io::Error::from)
}
