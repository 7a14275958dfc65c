//! Options of control sockets, and the conversion of times for `poll`.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_sys::socket;
use rustix::event::Timespec;
use rustix::net::sockopt;

/// Approximate time after which a link that failed permanently is noticed, whether idle or loaded.
const SILENCE: Duration = Duration::from_secs(15);
/// Time, beyond one round trip, after which a lost message is retransmitted. On a connection with requests and answers,
/// an acknowledgement is delayed by at most 40 ms.
const AGAIN: Duration = Duration::from_millis(50);

/// Converts a time for `poll`. The time is rounded up to the next millisecond; otherwise `poll` would be called again
/// and again without a wait in the last millisecond.
pub(crate) fn timespec(time: Duration) -> Timespec {
    let millis = time.as_nanos().div_ceil(1_000_000) as i64;
    Timespec { tv_sec: millis / 1_000, tv_nsec: millis % 1_000 * 1_000_000 }
}

/// Sets the options of a control socket: an unreachable other end is noticed, small messages are sent at once, and lost
/// messages are retransmitted soon.
pub(crate) fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    sockopt::set_tcp_nodelay(stream, true)?;
    hasten(stream)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE / 3)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 5)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    sockopt::set_tcp_user_timeout(stream, SILENCE.as_millis() as u32)?;
    Ok(())
}

/// Sets options so that a connection without load retransmits early. On a path that loses a third of all packets, each
/// control message would otherwise take seconds, and the measurement of that loss would not end.
pub(crate) fn hasten(stream: impl AsFd) -> io::Result<()> {
    // With this option, the timeout does not grow while few packets are in flight.
    sockopt::set_tcp_thin_linear_timeouts(&stream, true)?;
    // This option exists since Linux 6.15; older kernels wait for at least 200 ms.
    let _ = socket::set_least_timeout(stream.as_fd(), AGAIN);
    Ok(())
}
