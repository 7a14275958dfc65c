//! How the ends of transport `connect` find each other: the far end listens, and sends its TCP port over the stream's
//! data connection.
//!
//! One connection is made before the first step. It shows whether connections can be made, and from which address they
//! arrive: a firewall may permit only the TCP port of `serve`, and a proxy may connect from another address.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_sys::socket;
use rustix::net::sockopt;

use crate::LoadError;
use crate::transport::at_port;
use crate::transport::line::{BLOCK, Line, is_pause};

/// Longest wait until the other end has reported its TCP port, and again for the first connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Error text for a set that was cancelled.
const GIVEN_UP: &str = "it was given up before the first connection was made";
/// Time without a packet after which the data connection is probed: shorter than the timeouts of firewalls and address
/// translators on the path.
const KEPT_ALIVE: Duration = Duration::from_secs(30);
/// Byte that the far end sends on the first connection.
const HERE: [u8; 1] = [1];

/// Callback that returns whether the set was cancelled. It is called each time a call has ended without a result.
pub(super) type GivenUp<'a> = &'a dyn Fn() -> bool;

/// A listening socket for the connections of one stream.
#[derive(Debug)]
pub(super) struct Door {
    listener: TcpListener,
    /// Address from which connections of this stream arrive; connections from other addresses are closed.
    from: IpAddr,
}

impl Door {
    /// Accepts a connection of this stream, if one arrives within the block time.
    pub(super) fn accept(&self) -> io::Result<Option<TcpStream>> {
        match self.listener.accept() {
            Ok((stream, from)) => Ok((from.ip().to_canonical() == self.from).then_some(stream)),
            Err(e) if is_pause(&e) || is_of_the_caller(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Accepts the first connection and answers it, unless the set is cancelled before.
    fn greet(&self, given_up: GivenUp<'_>) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(mut stream) = self.accept()? {
                return stream.write_all(&HERE);
            }
            if given_up() {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        Err(ErrorKind::TimedOut.into())
    }
}

/// Returns whether an error of `accept` concerns one failed connection, not the listening socket.
//= https://man7.org/linux/man-pages/man2/accept.2.html, error handling
fn is_of_the_caller(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionAborted
        || error.kind() == ErrorKind::NetworkDown
        || crate::transport::icmp::is_of_the_path(error)
}

/// Listens at the local address of `line`, sends the TCP port to the other end, and waits for the first connection.
pub(super) fn open(line: &Line, given_up: GivenUp<'_>) -> Result<Door, LoadError> {
    let failed = |call| move |e: io::Error| line.failed(call, e);
    keep_alive(line)?;
    let (own, other) = (line.local()?, line.peer()?);
    let listener = TcpListener::bind(at_port(own, 0)).map_err(failed("listen"))?;
    socket::set_timeouts(listener.as_fd(), BLOCK).map_err(failed("setsockopt"))?;
    let port = listener.local_addr().map_err(failed("getsockname"))?.port();
    let reported = port.to_be_bytes();
    let (mut at, until) = (0, Instant::now() + PATIENCE);
    while at < reported.len() {
        at += line.send(&reported[at..], false)?;
        in_time(line, until, given_up)?;
    }
    let from = other.ip().to_canonical();
    let door = Door { listener, from };
    door.greet(given_up).map_err(|e| match e.kind() {
        ErrorKind::TimedOut => line.garbled(&format!("no connection arrived from {from}")),
        ErrorKind::Interrupted => line.garbled(GIVEN_UP),
        _ => line.failed("accept", e),
    })?;
    Ok(door)
}

/// Returns the address at which the other end of `line` listens, after connecting to it once.
pub(super) fn find(line: &Line, given_up: GivenUp<'_>) -> Result<SocketAddr, LoadError> {
    keep_alive(line)?;
    let mut reported = [0; 2];
    let (mut at, until) = (0, Instant::now() + PATIENCE);
    while at < reported.len() {
        at += line.receive(&mut reported[at..], true)?;
        in_time(line, until, given_up)?;
    }
    let to = at_port(line.peer()?, u16::from_be_bytes(reported));
    match visit(&to) {
        Ok(()) => Ok(to),
        Err(e) if is_lost(&e) => Err(LoadError::Failed {
            what: format!("no TCP connection reaches {to}"),
            hint: "allow TCP to the far host, at the ports of net.ipv4.ip_local_port_range there",
        }),
        Err(e) => Err(line.failed("connect", e)),
    }
}

/// Makes the first connection, and waits for the byte that the far end sends.
fn visit(to: &SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.read_exact(&mut [0; HERE.len()])
}

/// Returns whether an error concerns only this connection, because of the path or the other end; the next connection
/// may succeed.
pub(super) fn is_lost(error: &io::Error) -> bool {
    let of_a_connection = matches!(
        error.kind(),
        ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::TimedOut
            | ErrorKind::WouldBlock
            | ErrorKind::NetworkDown
    );
    of_a_connection || crate::transport::icmp::is_of_the_path(error)
}

/// Enables keep-alive probes, because nothing is sent over the data connection during a step.
fn keep_alive(line: &Line) -> Result<(), LoadError> {
    let kept = sockopt::set_socket_keepalive(line.fd(), true)
        .and_then(|()| sockopt::set_tcp_keepidle(line.fd(), KEPT_ALIVE))
        .and_then(|()| sockopt::set_tcp_keepintvl(line.fd(), KEPT_ALIVE));
    kept.map_err(|e| line.failed("setsockopt", e.into()))
}

fn in_time(line: &Line, until: Instant, given_up: GivenUp<'_>) -> Result<(), LoadError> {
    if given_up() {
        return Err(line.garbled(GIVEN_UP));
    }
    let late = || line.garbled("the other end did not report where it listens");
    (Instant::now() < until).then_some(()).ok_or_else(late)
}
