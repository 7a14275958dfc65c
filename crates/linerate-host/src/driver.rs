//! Queries to the driver of a port, by the `ethtool` ioctl.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use linerate_sys::ethtool;
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// Returns `struct ethtool_drvinfo` of the port with this interface index.
pub(super) fn info(index: u32) -> io::Result<Vec<u8>> {
    let (socket, name) = port(index)?;
    ethtool::driver(socket.as_fd(), &name)
}

/// Reads the driver's counters of the port with this interface index.
pub(super) fn counters(index: u32) -> io::Result<Vec<u8>> {
    let (socket, name) = port(index)?;
    ethtool::counters(socket.as_fd(), &name)
}

/// Returns a socket for the ioctl, and the current name of the port.
fn port(index: u32) -> io::Result<(OwnedFd, String)> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    let name = index_to_name(&socket, index)?;
    Ok((socket, name))
}
