//! Stream sockets: functions that send and receive bytes, and the socket options that a plan may set.
//!
//! Calls return the kernel's result; nothing is retried here.

#![expect(unsafe_code, reason = "socket options that rustix does not have")]

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, recv, send as rustix_send};

/// Value of the constant `TCP_WINDOW_CLAMP`, from tcp(7).
const TCP_WINDOW_CLAMP: c_int = 10;
/// Value of the constant `TCP_RTO_MIN_US` (Linux 6.15 or later), from linux/tcp.h.
const TCP_RTO_MIN_US: c_int = 45;
/// Value of the constant `SO_BUSY_POLL` (Linux 3.11 or later), from asm-generic/socket.h.
const SO_BUSY_POLL: c_int = 46;
/// Value of the constant `SO_MAX_PACING_RATE`, from asm-generic/socket.h.
const SO_MAX_PACING_RATE: c_int = 47;
/// Value of the constant `SO_INCOMING_CPU` (Linux 3.19 or later), from asm-generic/socket.h.
const SO_INCOMING_CPU: c_int = 49;
/// Value of the constant `SO_MEMINFO`, from asm-generic/socket.h.
const SO_MEMINFO: c_int = 55;
/// Value of the constant `SO_BUF_LOCK` (Linux 5.14 or later), from asm-generic/socket.h.
const SO_BUF_LOCK: c_int = 72;
/// Value of the constant `SO_NETNS_COOKIE` (Linux 5.14 or later), from asm-generic/socket.h.
const SO_NETNS_COOKIE: c_int = 71;
/// Value of the constant `SOCK_RCVBUF_LOCK`, from linux/socket.h.
const SOCK_RCVBUF_LOCK: c_int = 2;

/// Sends bytes without raising SIGPIPE. If `more` is set, the bytes of the next send may share a segment with these.
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8], more: bool) -> io::Result<usize> {
    Ok(rustix_send(fd, bytes, sending(more))?)
}

/// Sends as [`send`] does, but without waiting: only the bytes for which the send buffer has room now.
pub fn offer(fd: BorrowedFd<'_>, bytes: &[u8], more: bool) -> io::Result<usize> {
    Ok(rustix_send(fd, bytes, sending(more) | SendFlags::DONTWAIT)?)
}

fn sending(more: bool) -> SendFlags {
    let mut flags = SendFlags::NOSIGNAL;
    flags.set(SendFlags::MORE, more);
    flags
}

/// Receives at most as many bytes as fit into `into`; returns zero if the other end has closed the connection. Without
/// `wait`, it receives only bytes that have already arrived.
pub fn receive(fd: BorrowedFd<'_>, into: &mut [u8], wait: bool) -> io::Result<usize> {
    Ok(recv(fd, into, waiting(wait))?.1)
}

/// Discards at most as many bytes as `scratch` has, in the kernel and without a copy (`MSG_TRUNC`, tcp(7)); `scratch`
/// is not changed. Without `wait`, it discards only bytes that have already arrived.
pub fn discard(fd: BorrowedFd<'_>, scratch: &mut [u8], wait: bool) -> io::Result<usize> {
    Ok(recv(fd, scratch, RecvFlags::TRUNC | waiting(wait))?.1)
}

fn waiting(wait: bool) -> RecvFlags {
    if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT }
}

/// Shuts down both directions, so that every thread that is blocked on the socket returns.
pub fn shutdown(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, Shutdown::Both)?)
}

/// Limits the time for which a send or a receive may block.
pub fn set_timeouts(fd: BorrowedFd<'_>, most: Duration) -> io::Result<()> {
    sockopt::set_socket_timeout(fd, Timeout::Send, Some(most))?;
    Ok(sockopt::set_socket_timeout(fd, Timeout::Recv, Some(most))?)
}

/// Sets `TCP_NODELAY`: small segments are sent at once.
pub fn set_nodelay(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(fd, on)?)
}

/// Sets `SO_SNDBUF`, which disables autotuning. The kernel doubles the value, and limits it without an error.
pub fn set_send_buffer(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, int(bytes))
}

/// Sets `SO_RCVBUF`, which disables autotuning. The kernel doubles the value, and limits it without an error.
pub fn set_recv_buffer(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, int(bytes))
}

/// Returns the size of the send buffer in force (`SO_SNDBUF`), in bytes of memory.
pub fn send_buffer(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(sockopt::socket_send_buffer_size(fd)? as u64)
}

/// Returns the address family of a socket for connections to an address.
pub fn family(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// Returns the size of the receive buffer in force (`SO_RCVBUF`), in bytes of memory.
pub fn recv_buffer(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(sockopt::socket_recv_buffer_size(fd)? as u64)
}

/// Sets `TCP_WINDOW_CLAMP`, the upper bound of the window that this end offers, in bytes.
pub fn set_window_clamp(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    set(fd, libc::IPPROTO_TCP, TCP_WINDOW_CLAMP, int(bytes))
}

/// Locks the receive buffer at its current size, which disables its autotuning (Linux 5.14 or later).
pub fn lock_recv_buffer(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut raw = [0; 4];
    get(fd, libc::SOL_SOCKET, SO_BUF_LOCK, &mut raw)?;
    let locks = c_int::from_ne_bytes(raw) | SOCK_RCVBUF_LOCK;
    set(fd, libc::SOL_SOCKET, SO_BUF_LOCK, locks)
}

/// Sets `SO_RCVLOWAT`: a blocked receive returns once `bytes` bytes have arrived, not at the first byte.
pub fn set_low_water(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, int(bytes))
}

/// Sets the type of service (TOS) of packets that a socket sends: `IP_TOS`, or `IPV6_TCLASS` for IPv6.
pub fn set_traffic_class(fd: BorrowedFd<'_>, class: u8) -> io::Result<()> {
    let (level, name) = traffic_class_option(fd)?;
    set(fd, level, name, class.into())
}

/// Returns the type of service (TOS) of packets that a socket sends.
pub fn traffic_class(fd: BorrowedFd<'_>) -> io::Result<u8> {
    let (level, name) = traffic_class_option(fd)?;
    let mut raw = [0; 4];
    get(fd, level, name, &mut raw)?;
    Ok(c_int::from_ne_bytes(raw) as u8)
}

/// Returns the level and the name of the TOS option. An IPv6 socket with an IPv4-mapped address uses that of IPv4.
fn traffic_class_option(fd: BorrowedFd<'_>) -> io::Result<(c_int, c_int)> {
    let own = SocketAddr::try_from(rustix::net::getsockname(fd)?)?;
    Ok(if own.ip().to_canonical().is_ipv6() {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    } else {
        (libc::IPPROTO_IP, libc::IP_TOS)
    })
}

/// Sets `TCP_NOTSENT_LOWAT`: a send blocks while more than `bytes` bytes are unsent, even if the send buffer has room.
pub fn set_unsent_most(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    set(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, int(bytes))
}

/// Sets `TCP_MAXSEG`, which works only before the socket is connected.
pub fn set_max_segment(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, int(u64::from(bytes)))
}

/// Returns the payload of a full segment (MSS), in bytes.
pub fn max_segment(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut raw = [0; 4];
    get(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &mut raw)?;
    Ok(u32::from_ne_bytes(raw))
}

/// Sets `SO_MAX_PACING_RATE`, the pace of the socket, in bytes per second.
pub fn set_pacing(fd: BorrowedFd<'_>, bytes_per_sec: u64) -> io::Result<()> {
    let raw = bytes_per_sec.to_ne_bytes();
    set_raw(fd, libc::SOL_SOCKET, SO_MAX_PACING_RATE, &raw)
}

/// Sets `TCP_RTO_MIN_US`: lost data is retransmitted no sooner than this time plus one round trip. The default is 200
/// ms unless the route has another value. Kernels before 6.15 do not support this option.
pub fn set_least_timeout(fd: BorrowedFd<'_>, least: Duration) -> io::Result<()> {
    let micros = u64::try_from(least.as_micros()).unwrap_or(u64::MAX);
    set(fd, libc::IPPROTO_TCP, TCP_RTO_MIN_US, int(micros))
}

/// Sets `TCP_CONGESTION`. Fails if the algorithm is not loaded, or not permitted for this user.
pub fn set_congestion(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    set_raw(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
}

/// Sets `SO_BUSY_POLL`: a receive without data polls the device's queue itself for `micros` microseconds. A value above
/// net.core.busy_read needs CAP_NET_ADMIN.
pub fn set_busy_poll(fd: BorrowedFd<'_>, micros: u32) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, SO_BUSY_POLL, int(micros.into()))
}

/// Sets the DSCP of packets that a socket sends. An IPv6 socket may also send IPv4 packets, so both options are set.
pub fn set_dscp(fd: BorrowedFd<'_>, dscp: u8) -> io::Result<()> {
    // The two lowest bits are those of ECN, which the kernel keeps (ip(7), IP_TOS).
    let class = int(u64::from(dscp) << 2);
    let of_six = set(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class);
    set(fd, libc::IPPROTO_IP, libc::IP_TOS, class).or(of_six)
}

/// Restricts a socket to a device (`SO_BINDTODEVICE`).
pub fn set_device(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    set_raw(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name.as_bytes())
}

/// Returns the congestion control algorithm in force.
pub fn congestion(fd: BorrowedFd<'_>) -> io::Result<String> {
    // The longest name has 16 bytes (`TCP_CA_NAME_MAX`).
    let mut raw = [0; 16];
    let got = get(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut raw)?;
    let name = raw[..got].split(|b| *b == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Reads the raw bytes of `TCP_INFO` into `into`; returns the number of bytes that the kernel supports.
pub fn tcp_info(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    get(fd, libc::IPPROTO_TCP, libc::TCP_INFO, into)
}

/// Reads the raw bytes of `SO_MEMINFO` into `into`; returns the number of bytes that the kernel supports.
pub fn mem_info(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    get(fd, libc::SOL_SOCKET, SO_MEMINFO, into)
}

/// Reads the number of the CPU that received the last packet of a connection, as a raw int; -1 before the first packet.
pub fn incoming_cpu(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    get(fd, libc::SOL_SOCKET, SO_INCOMING_CPU, into)
}

/// Returns the cookie of a socket's network namespace. No other namespace has this number until the next boot.
pub fn network_cookie(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut raw = [0; 8];
    match get(fd, libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut raw)? {
        8 => Ok(u64::from_ne_bytes(raw)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Returns the payload that was received but not read yet (`SIOCINQ`), in bytes.
pub fn unread(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(fd)?)
}

/// Converts a value to an int, as options need it. A larger value is converted to the maximum.
fn int(value: u64) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

pub(crate) fn set(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set_raw(fd, level, name, &value.to_ne_bytes())
}

fn set_raw(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed. The kernel reads as many bytes as the slice has,
    // and keeps no reference to it (setsockopt(2)).
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn get(fd: BorrowedFd<'_>, level: c_int, name: c_int, into: &mut [u8]) -> io::Result<usize> {
    let mut len = into.len() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as it is borrowed; the kernel writes at most `len` bytes into
    // a slice of that length, and stores the number of bytes in `len` (getsockopt(2)).
    let rc = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, into.as_mut_ptr().cast(), &raw mut len)
    };
    if rc == 0 { Ok((len as usize).min(into.len())) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn sockets_of_one_network_have_one_cookie() {
        let (a, b) = pair();
        match (network_cookie(a.as_fd()), network_cookie(b.as_fd())) {
            (Ok(a), Ok(b)) => assert!(a == b && a != 0),
            (Err(e), _) | (_, Err(e)) => {
                assert_eq!(e.raw_os_error(), Some(libc::ENOPROTOOPT), "before Linux 5.14");
            }
        }
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn bytes_arrive_and_discarded_ones_leave_the_buffer_alone() {
        let (near, far) = pair();
        assert_eq!(send(near.as_fd(), b"abcdef", false).unwrap(), 6);
        let mut into = [0; 3];
        assert_eq!(receive(far.as_fd(), &mut into, true).unwrap(), 3);
        assert_eq!(&into, b"abc");
        assert_eq!(unread(far.as_fd()).unwrap(), 3);
        assert_eq!(discard(far.as_fd(), &mut into, true).unwrap(), 3);
        assert_eq!(&into, b"abc");
    }

    #[test]
    fn what_is_offered_does_not_wait_for_room() {
        let (near, _far) = pair();
        let bytes = vec![0; 64 * 1024];
        let full = loop {
            if let Err(full) = offer(near.as_fd(), &bytes, false) {
                break full;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_blocked_receive_ends_by_its_timeout_and_by_shutdown() {
        let (near, far) = pair();
        let none = receive(far.as_fd(), &mut [0; 8], false).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        set_timeouts(far.as_fd(), Duration::from_millis(10)).unwrap();
        let late = receive(far.as_fd(), &mut [0; 8], true).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::WouldBlock);
        shutdown(near.as_fd()).unwrap();
        assert_eq!(receive(far.as_fd(), &mut [0; 8], true).unwrap(), 0);
    }

    #[test]
    fn options_are_read_back() {
        let (near, _far) = pair();
        let fd = near.as_fd();
        set_send_buffer(fd, 50_000).unwrap();
        set_recv_buffer(fd, 60_000).unwrap();
        assert_eq!(send_buffer(fd).unwrap(), 100_000);
        assert_eq!(recv_buffer(fd).unwrap(), 120_000);
        set_congestion(fd, "reno").unwrap();
        assert_eq!(congestion(fd).unwrap(), "reno");
        assert!(set_congestion(fd, "no-such-thing").is_err());
        assert!(max_segment(fd).unwrap() > 500);
        set_window_clamp(fd, 100_000).unwrap();
        set_pacing(fd, 1_000_000).unwrap();
    }

    #[test]
    fn the_traffic_class_is_that_of_the_protocol_that_is_spoken() {
        let check = |socket: std::net::UdpSocket| {
            set_traffic_class(socket.as_fd(), 0xb8).unwrap();
            assert_eq!(traffic_class(socket.as_fd()).unwrap(), 0xb8);
        };
        check(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        // On a machine without IPv6, these sockets cannot be made.
        for address in ["[::1]:0", "[::ffff:127.0.0.1]:0"] {
            if let Ok(socket) = std::net::UdpSocket::bind(address) {
                check(socket);
            }
        }
    }

    #[test]
    fn the_least_timeout_is_known_from_6_15_on_and_bounded() {
        let (near, _far) = pair();
        let unknown = |e: io::Error| e.raw_os_error() == Some(libc::ENOPROTOOPT);
        let set = set_least_timeout(near.as_fd(), Duration::from_millis(50));
        assert!(set.is_ok() || set.is_err_and(unknown));
        // The value must not exceed the kernel's own maximum.
        assert!(set_least_timeout(near.as_fd(), Duration::from_secs(1)).is_err());
    }

    #[test]
    fn raw_replies_have_the_length_that_the_kernel_knows() {
        let (near, _far) = pair();
        let mut raw = [0; 512];
        let long = tcp_info(near.as_fd(), &mut raw).unwrap();
        assert!((104..512).contains(&long), "{long}");
        assert_eq!(tcp_info(near.as_fd(), &mut raw[..10]).unwrap(), 10);
        assert!(mem_info(near.as_fd(), &mut raw).unwrap() >= 32);
        assert_eq!(incoming_cpu(near.as_fd(), &mut raw).unwrap(), 4);
        let cpu = i32::from_ne_bytes(raw[..4].try_into().unwrap());
        assert!(cpu >= 0, "a handshake came in: {cpu}");
    }
}
