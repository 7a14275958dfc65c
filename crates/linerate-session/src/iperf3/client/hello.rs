//! The beginning of a datagram stream: the client sends a hello, and the server sends an answer.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_record::iperf3::{HELLO, HELLO_LEN, is_answer};
use rustix::event::{PollFd, PollFlags, poll};

use super::ClientError;
use crate::iperf3::control::Control;
use crate::net::{HEED, timespec};
use linerate_load::transport::at_port;

/// Time within which the server must answer a hello.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time after which an unanswered hello is repeated. It is longer than any round trip, since iperf3's server treats
/// everything after the first hello as payload.
const AGAIN: Duration = Duration::from_secs(4);
/// Time that remains for an answer once the server has sent a message on the control connection.
const LAST: Duration = Duration::from_millis(500);
/// Largest number of datagrams that are read to find the answer:
/// a sending server's payload may arrive before the answer.
const LOOKED_AT: usize = 10_000;

/// Opens a UDP socket of this end and connects it to the server. `configure` sets its options before it is connected.
pub(super) fn socket(
    own: SocketAddr,
    server: SocketAddr,
    configure: impl FnOnce(&OwnedFd) -> Result<(), ClientError>,
) -> Result<OwnedFd, ClientError> {
    let system = |call| move |source| ClientError::System { call, source };
    let socket = UdpSocket::bind(at_port(own, 0)).map_err(system("binding a UDP socket"))?;
    let fd = OwnedFd::from(socket);
    configure(&fd)?;
    let socket = UdpSocket::from(fd);
    let connected = socket.connect(at_port(server, server.port()));
    connected.map_err(|e| ClientError::unreached(server, e))?;
    Ok(socket.into())
}

/// Sends a hello on a socket, and waits for the answer of the server.
pub(super) fn say(
    control: &Control<'_>,
    server: SocketAddr,
    socket: &UdpSocket,
) -> Result<(), ClientError> {
    let blocking = |on: bool| {
        let set = socket.set_nonblocking(!on);
        set.map_err(|source| ClientError::System { call: "configuring a UDP socket", source })
    };
    blocking(false)?;
    match answered(control, socket) {
        Ok(true) => blocking(true),
        Ok(false) => Err(ClientError::NoDatagrams(server)),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => Err(ClientError::NoDatagrams(server)),
        Err(e) if e.kind() == ErrorKind::Interrupted => Err(ClientError::Interrupted),
        Err(e) => Err(ClientError::unreached(server, e)),
    }
}

/// Sends a hello and waits for the answer; returns false if none arrives.
fn answered(control: &Control<'_>, socket: &UdpSocket) -> io::Result<bool> {
    let began = Instant::now();
    let (mut until, mut said, mut looked) = (began + PATIENCE, 0, 0);
    while Instant::now() < until {
        if control.stopped() {
            return Err(ErrorKind::Interrupted.into());
        }
        if began.elapsed() >= AGAIN * said && said < 2 {
            socket.send(&HELLO)?;
            said += 1;
        }
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        // A wait that is interrupted is only shorter, so errors are ignored.
        let _ = poll(&mut fds, Some(&timespec(HEED)));
        loop {
            // The buffer is one byte longer than an answer: a longer message is not an answer.
            let mut bytes = [0; HELLO_LEN + 1];
            match socket.recv(&mut bytes) {
                Ok(got) if is_answer(&bytes[..got]) => return Ok(true),
                Ok(_) if looked < LOOKED_AT => looked += 1,
                Ok(_) => return Ok(false),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        // A message on the control connection: the server stopped the test,
        // or continued without this stream. The caller reads the reason.
        if control.is_spoken() {
            until = until.min(Instant::now() + LAST);
        }
    }
    Ok(false)
}
