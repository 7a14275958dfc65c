//! Opens the control connection to a server, and explains failures to the user.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_judge::trial::SMALL_MSS;
use linerate_record::wire::codec::Bounds;
use linerate_record::wire::preamble::{Access, Hello, Kind, REPLY_LEN, Reply, VERSIONS, Versions};
use linerate_sys::socket::set_max_segment;
use rustix::event::PollFlags;

use super::waiting::GIVEN_UP;
use crate::net::{WaitError, connected_unless, socket, tune, wait_unless};
use crate::peer::PeerError;
use crate::peer::address::{Family, Target};
use crate::peer::channel::{Channel, ChannelError, read_exact, write_all};
use crate::peer::handshake::{MESSAGE_LEN, Preamble, conclude, status};
use crate::peer::keys::Key;

/// Time within which one address must accept the connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time after which no further address of a host is tried.
const PATIENCE_ALL: Duration = Duration::from_secs(15);

const HELLO: Hello = Hello { versions: VERSIONS, kind: Kind::Control };

/// Opens a control connection to the first address that accepts it, unless `stopped` returns true before. Returns the
/// connection, the server's reply and the address.
pub(super) fn control(
    target: &Target,
    family: Option<Family>,
    key: Option<&Key>,
    open: bool,
    stopped: &dyn Fn() -> bool,
) -> Result<(Channel, Reply, SocketAddr), PeerError> {
    let until = Instant::now() + PATIENCE_ALL;
    let mut worst: Option<PeerError> = None;
    for address in target.resolve(family)? {
        let dialled = one(address, &target.host, key, open, stopped);
        if stopped() {
            return Err(PeerError::Interrupted);
        }
        match dialled {
            Ok((channel, reply)) => return Ok((channel, reply, address)),
            Err(e) => {
                if worst.as_ref().is_none_or(|w| e.weight() > w.weight()) {
                    worst = Some(e);
                }
            }
        }
        if Instant::now() >= until {
            break;
        }
    }
    Err(worst.unwrap_or_else(|| PeerError::UnknownHost {
        host: target.host.clone(),
        source: ErrorKind::NotFound.into(),
    }))
}

fn one(
    address: SocketAddr,
    host: &str,
    key: Option<&Key>,
    open_will_do: bool,
    stopped: &dyn Fn() -> bool,
) -> Result<(Channel, Reply), PeerError> {
    let stream = small_packets(address, stopped).map_err(|e| unreached(address, e))?;
    // From now on, nothing blocks without a deadline.
    tune(&stream).map_err(|source| PeerError::System {
        call: "configuring the control connection",
        source,
    })?;
    let (preamble, reply) = preamble(&stream, HELLO, address, stopped)?;
    let open = Key::open();
    let host = host.to_owned();
    let key = match (reply.access, key) {
        (Access::Key, Some(key)) => key,
        (Access::Key, None) => return Err(PeerError::NeedsKey { address, host }),
        (Access::Open, None) if open_will_do => &open,
        (Access::Open, None) => return Err(PeerError::NotRequestedOpen { address, host }),
        (Access::Open, Some(_)) => return Err(PeerError::UnexpectedlyOpen { address, host }),
    };
    let channel = shake(stream, &preamble, key, (address, host), stopped)?;
    Ok((channel, reply))
}

/// Opens a TCP connection with small segments in both directions, because
/// control messages must also arrive on paths that drop large packets.
fn small_packets(address: SocketAddr, stopped: &dyn Fn() -> bool) -> io::Result<TcpStream> {
    let socket = socket(address)?;
    set_max_segment(socket.as_fd(), SMALL_MSS)?;
    connected_unless(&socket, address, Instant::now() + PATIENCE, stopped)?;
    Ok(socket.into())
}

fn unreached(address: SocketAddr, source: io::Error) -> PeerError {
    match source.kind() {
        ErrorKind::ConnectionRefused => PeerError::NoServer { address },
        ErrorKind::TimedOut => PeerError::TimedOut { address, seconds: PATIENCE.as_secs() },
        _ => PeerError::NoRoute { address, source },
    }
}

/// Sends this side's preamble and reads the server's preamble.
fn preamble(
    stream: &TcpStream,
    hello: Hello,
    address: SocketAddr,
    stopped: &dyn Fn() -> bool,
) -> Result<(Preamble, Reply), PeerError> {
    let deadline = Instant::now() + GIVEN_UP;
    let hello = hello.encode();
    write_all(stream, &hello, None, deadline).map_err(|e| PeerError::broken(address, &e))?;
    let bytes = first_bytes(stream, address, deadline, stopped)?;
    let other = |_| PeerError::NotLinerate { address, seems: "" };
    let reply = Reply::decode(&bytes).map_err(other)?;
    if VERSIONS.common(reply.versions).is_none() {
        return Err(version(address, reply.versions));
    }
    let preamble = Preamble { hello, reply: bytes };
    Ok((preamble, reply))
}

fn version(address: SocketAddr, theirs: Versions) -> PeerError {
    PeerError::Version { address, theirs, ours: VERSIONS }
}

/// Reads the server's preamble. Returns early if the bytes received so far cannot be a preamble.
fn first_bytes(
    mut stream: &TcpStream,
    address: SocketAddr,
    deadline: Instant,
    stopped: &dyn Fn() -> bool,
) -> Result<[u8; REPLY_LEN], PeerError> {
    let mut bytes = [0; REPLY_LEN];
    let mut have = 0;
    let other = |seems| PeerError::NotLinerate { address, seems };
    while have < REPLY_LEN {
        match stream.read(&mut bytes[have..]) {
            Ok(0) => return Err(other(", it closed the connection")),
            Ok(n) => have += n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                match wait_unless(&stream, PollFlags::IN, deadline, stopped) {
                    Ok(()) => {}
                    Err(WaitError::TimedOut) => {
                        return Err(PeerError::Silent { address, seconds: GIVEN_UP.as_secs() });
                    }
                    Err(e) => return Err(PeerError::broken(address, &e.into())),
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(other(", it broke the connection")),
        }
        if !Reply::may_begin(&bytes[..have]) {
            return Err(other(seems(&bytes[..have])));
        }
    }
    Ok(bytes)
}

fn seems(bytes: &[u8]) -> &'static str {
    let known: [(&[u8], &str); 4] = [
        (b"HTTP/", ", but a web server"),
        (b"SSH-", ", but an ssh server"),
        // A TLS server answers with an alert, because the hello of this end is not a ClientHello.
        (&[0x15, 0x03], ", but a TLS server"),
        (&HELLO.encode(), ", but a service that echoes"),
    ];
    known.iter().find(|(start, _)| bytes.starts_with(start)).map_or("", |(_, seems)| seems)
}

fn shake(
    stream: TcpStream,
    preamble: &Preamble,
    key: &Key,
    (address, host): (SocketAddr, String),
    stopped: &dyn Fn() -> bool,
) -> Result<Channel, PeerError> {
    let deadline = Instant::now() + GIVEN_UP;
    let broken = |e: ChannelError| PeerError::broken(address, &e);
    let crypto = |_| PeerError::Impostor { address };
    let (message, state) = preamble.initiate(key).map_err(crypto)?;
    write_all(&stream, &message, None, deadline).map_err(broken)?;
    let mut said = [0];
    wait_unless(&stream, PollFlags::IN, deadline, stopped).map_err(|e| broken(e.into()))?;
    read_exact(&stream, &mut said, deadline).map_err(broken)?;
    match said[0] {
        status::OK => {}
        status::WRONG_KEY => return Err(PeerError::WrongKey { address, host }),
        status::BUSY => return Err(PeerError::Busy { address }),
        _ => return Err(PeerError::NotLinerate { address, seems: "" }),
    }
    let mut answer = [0; MESSAGE_LEN];
    read_exact(&stream, &mut answer, deadline).map_err(broken)?;
    let noise = conclude(state, &answer).map_err(crypto)?;
    Channel::new(stream, noise, Bounds::ANSWER.bytes, None).map_err(|e| broken(e.into()))
}
