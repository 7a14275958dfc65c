//! Options of control sockets, and times for `poll`.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_sys::socket;
use rustix::event::Timespec;
use rustix::net::sockopt;

/// Approximate time after which a link that failed permanently is noticed, whether idle or loaded.
const SILENCE: Duration = Duration::from_secs(15);
/// Time in addition to a round trip after which a lost message is retransmitted. On a connection of requests and
/// answers, an acknowledgement is delayed by at most 40 ms.
const AGAIN: Duration = Duration::from_millis(50);

/// Converts a time for `poll`. It is rounded up to the next millisecond; otherwise the last one would be spent
/// spinning.
pub(crate) fn timespec(time: Duration) -> Timespec {
    let millis = time.as_nanos().div_ceil(1_000_000) as i64;
    Timespec { tv_sec: millis / 1_000, tv_nsec: millis % 1_000 * 1_000_000 }
}

/// Sets options of a control socket: a silent end is noticed, small messages are sent at once, and lost ones are
/// retransmitted soon.
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

/// Makes a connection without load retransmit early. On a path that loses a third of all packets, control
/// messages would otherwise take seconds each, and the measurement of that very loss would not end.
pub(crate) fn hasten(stream: impl AsFd) -> io::Result<()> {
    // With this option, the timeout does not grow while few packets are in flight.
    sockopt::set_tcp_thin_linear_timeouts(&stream, true)?;
    // Kernels before 6.15 wait for 200 ms.
    let _ = socket::set_least_timeout(stream.as_fd(), AGAIN);
    Ok(())
}
