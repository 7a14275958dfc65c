//! Stream sockets of an ordinary program. They use calls of the
//! C library, so that a preloaded library can replace them.
//!
//! All other modules may call the kernel directly, which a preloaded library does not notice. Here sockets are made
//! without flags, and connections are accepted by `accept`. The reason is librspreload: it leaves a `socket` with
//! `SOCK_CLOEXEC` to the kernel, and does not replace `accept4`.
//= rdma-core, librdmacm/preload.c; seen with librdmacm1 44.0-2

#![expect(
    unsafe_code,
    reason = "calls by the symbols of the C library, which rustix does not make"
)]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A stream socket.
#[derive(Debug)]
pub struct Socket(OwnedFd);

/// Error of a call that failed.
#[derive(Debug)]
pub struct Failed {
    /// Name of the call that failed.
    pub call: &'static str,
    /// Error that the call reported.
    pub source: io::Error,
}

impl Socket {
    /// Makes a socket that listens at `address`, with a queue for one connection.
    pub fn listen(address: &SocketAddr) -> Result<Self, Failed> {
        let socket = Self::new(address)?;
        let (raw, len) = encode(address);
        // SAFETY: `raw` has `len` initialised bytes.
        let rc = unsafe { libc::bind(socket.0.as_raw_fd(), (&raw const raw).cast(), len) };
        done("bind", rc)?;
        // SAFETY: the call takes no pointer.
        done("listen", unsafe { libc::listen(socket.0.as_raw_fd(), 1) })?;
        Ok(socket)
    }

    /// Connects to `address`. The call blocks as long as the system tries to connect.
    pub fn connect(address: &SocketAddr) -> Result<Self, Failed> {
        let socket = Self::new(address)?;
        let (raw, len) = encode(address);
        // SAFETY: `raw` has `len` initialised bytes.
        let rc = unsafe { libc::connect(socket.0.as_raw_fd(), (&raw const raw).cast(), len) };
        done("connect", rc)?;
        Ok(socket)
    }

    fn new(address: &SocketAddr) -> Result<Self, Failed> {
        let family = match address {
            SocketAddr::V4(_) => libc::AF_INET,
            SocketAddr::V6(_) => libc::AF_INET6,
        };
        // SAFETY: the call takes no pointer.
        let fd = done("socket", unsafe { libc::socket(family, libc::SOCK_STREAM, 0) })?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Accepts a connection. The call blocks until there is one.
    pub fn accept(&self) -> Result<Self, Failed> {
        // SAFETY: both pointers may be null; then the kernel writes no address.
        let fd = done("accept", unsafe {
            libc::accept(self.0.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut())
        })?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Returns the TCP port of this end.
    pub fn port(&self) -> Result<u16, Failed> {
        // SAFETY: all zero bytes are a valid socket address.
        let mut raw: libc::sockaddr_in6 = unsafe { mem::zeroed() };
        let mut len = size_of_val(&raw) as libc::socklen_t;
        // SAFETY: at most `len` bytes are written to `raw`, and any bytes are valid in it.
        let rc =
            unsafe { libc::getsockname(self.0.as_raw_fd(), (&raw mut raw).cast(), &raw mut len) };
        done("getsockname", rc)?;
        // The port is at the same offset in addresses of both families.
        Ok(u16::from_be(raw.sin6_port))
    }

    /// Sets `TCP_NODELAY`, so that small messages are sent at once.
    pub fn set_nodelay(&self) -> Result<(), Failed> {
        let on: c_int = 1;
        // SAFETY: the kernel reads one `c_int`.
        let rc = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_NODELAY,
                (&raw const on).cast(),
                size_of_val(&on) as libc::socklen_t,
            )
        };
        done("setsockopt", rc).map(drop)
    }

    /// Returns whether the kernel's TCP carries the connection. A
    /// preloaded library that replaces TCP does not support `TCP_INFO`.
    pub fn is_tcp(&self) -> bool {
        let mut raw = [0_u8; 8];
        let mut len = raw.len() as libc::socklen_t;
        // SAFETY: at most `len` bytes are written to `raw`.
        let rc = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                raw.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        rc == 0
    }

    /// Waits up to `most` until bytes can be received; returns whether there are any.
    #[inline]
    pub fn readable(&self, most: Duration) -> Result<bool, Failed> {
        let mut one = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let millis = c_int::try_from(most.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: `one` is one valid entry that outlives the call.
        match done("poll", unsafe { libc::poll(&raw mut one, 1, millis) }) {
            Err(failed) if failed.source.kind() == io::ErrorKind::Interrupted => Ok(false),
            ready => ready.map(|ready| ready > 0),
        }
    }

    /// Sends some of the bytes; returns their number. The call blocks while the send buffer is full.
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Failed> {
        // SAFETY: the call reads `bytes.len()` bytes.
        let sent = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                bytes.as_ptr().cast::<c_void>(),
                bytes.len(),
                libc::MSG_NOSIGNAL,
            )
        };
        moved("send", sent)
    }

    /// Receives bytes; returns their number, or zero if the other
    /// end closed the connection. The call blocks until some arrive.
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> Result<usize, Failed> {
        // SAFETY: the call writes at most `into.len()` bytes.
        let received = unsafe {
            libc::recv(self.0.as_raw_fd(), into.as_mut_ptr().cast::<c_void>(), into.len(), 0)
        };
        moved("recv", received)
    }
}

/// Returns the result of a call; a negative result means that the call failed.
fn done(call: &'static str, rc: c_int) -> Result<c_int, Failed> {
    if rc < 0 {
        let source = io::Error::last_os_error();
        return Err(Failed { call, source });
    }
    Ok(rc)
}

/// Returns the number of bytes that a call sent or received; a negative result means that the call failed.
#[inline]
fn moved(call: &'static str, rc: isize) -> Result<usize, Failed> {
    usize::try_from(rc).map_err(|_| Failed { call, source: io::Error::last_os_error() })
}

/// Returns an address as the kernel's structure, and its length.
/// The structures of both families begin with the same fields.
fn encode(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zero bytes are a valid socket address.
    let mut raw: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let len = match address {
        SocketAddr::V4(v4) => put(&mut raw, v4_of(*v4)),
        SocketAddr::V6(v6) => put(&mut raw, v6_of(v6)),
    };
    (raw, len)
}

/// Writes the structure of one address family to `raw`; returns its length.
fn put<T: Copy>(raw: &mut libc::sockaddr_storage, address: T) -> libc::socklen_t {
    const {
        assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>());
        assert!(align_of::<T>() <= align_of::<libc::sockaddr_storage>());
    }
    // SAFETY: the storage is large enough and aligned for an address of any family, as was just asserted.
    unsafe { std::ptr::from_mut(raw).cast::<T>().write(address) };
    size_of::<T>() as libc::socklen_t
}

fn v4_of(address: SocketAddrV4) -> libc::sockaddr_in {
    let ip: &Ipv4Addr = address.ip();
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
        sin_zero: [0; 8],
    }
}

fn v6_of(address: &SocketAddrV6) -> libc::sockaddr_in6 {
    let ip: &Ipv6Addr = address.ip();
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: address.port().to_be(),
        sin6_flowinfo: address.flowinfo(),
        sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
        sin6_scope_id: address.scope_id(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_between_two_ends_of_both_families() {
        for ip in ["127.0.0.1:0", "[::1]:0"] {
            let mut address: SocketAddr = ip.parse().unwrap();
            let listener = Socket::listen(&address).unwrap();
            address.set_port(listener.port().unwrap());
            let near = Socket::connect(&address).unwrap();
            let far = listener.accept().unwrap();
            assert!(near.is_tcp() && far.is_tcp());
            near.set_nodelay().unwrap();
            assert!(!far.readable(Duration::ZERO).unwrap());
            assert_eq!(near.send(b"bytes").unwrap(), 5);
            assert!(far.readable(Duration::from_secs(5)).unwrap());
            let mut into = [0; 9];
            assert_eq!(far.receive(&mut into).unwrap(), 5);
            assert_eq!(&into[..5], b"bytes");
            drop(near);
            assert_eq!(far.receive(&mut into).unwrap(), 0);
        }
    }

    #[test]
    fn a_failed_call_is_named() {
        let taken = Socket::listen(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let mut free: SocketAddr = "127.0.0.1:0".parse().unwrap();
        free.set_port(taken.port().unwrap());
        assert_eq!(Socket::listen(&free).unwrap_err().call, "bind");
        drop(taken);
        assert_eq!(Socket::connect(&free).unwrap_err().call, "connect");
    }
}
