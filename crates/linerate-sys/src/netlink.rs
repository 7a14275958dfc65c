//! Sockets for the kernel's netlink families. They send and
//! receive whole messages; other modules encode and decode these.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Size of the receive buffer, in bytes. The kernel returns at most 32 KiB of a dump at a time.
//= net/netlink/af_netlink.c, netlink_dump
const BUFFER: usize = 64 << 10;

/// A netlink socket that exchanges messages only with the kernel.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace. `None` means protocol 0, which for this address family
    /// is `NETLINK_ROUTE`. A receive fails if nothing arrives within `deadline`.
    pub fn open(protocol: Option<Protocol>, deadline: Option<Duration>) -> io::Result<Self> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let fd = rustix::net::socket_with(family, SocketType::RAW, flags, protocol)?;
        // The socket is connected to the kernel (port 0), so messages of other processes are not received.
        rustix::net::connect(&fd, &SocketAddrNetlink::new(0, 0))?;
        set_socket_timeout(&fd, Timeout::Recv, deadline)?;
        let buffer = vec![0; BUFFER];
        Ok(Self { fd, buffer })
    }

    /// Sends one message.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.fd, message, SendFlags::empty())?;
        Ok(())
    }

    /// Receives the next part of a reply: one or more messages.
    pub fn receive(&mut self) -> io::Result<&[u8]> {
        let buffer = &mut self.buffer;
        let receive = || rustix::net::recv(&self.fd, &mut buffer[..], RecvFlags::TRUNC);
        let (_, length) = rustix::io::retry_on_intr(receive)?;
        self.buffer.get(..length).ok_or_else(|| {
            let why = "a netlink message larger than the buffer";
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
    }
}
