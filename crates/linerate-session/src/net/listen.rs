//! TCP listeners of servers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use linerate_sys::socket;
use rustix::net::{
    SocketFlags, SocketType, bind, ipproto, listen as listen_on, socket_with, sockopt,
};

/// Error of an address and TCP port on which this host cannot listen.
#[derive(Debug)]
pub(crate) struct ListenError {
    pub(crate) address: SocketAddr,
    pub(crate) source: io::Error,
}

/// Listens on TCP port `port` of the addresses `named`; if none is
/// named, of all addresses of this host. The listeners do not block.
pub(crate) fn listen(named: &[IpAddr], port: u16) -> Result<Vec<TcpListener>, ListenError> {
    let at = |ip: IpAddr| {
        let address = SocketAddr::new(ip, port);
        listener(address).map_err(|source| ListenError { address, source })
    };
    if named.is_empty() {
        // A host without IPv6 cannot listen on IPv6's wildcard address.
        let both = at(Ipv6Addr::UNSPECIFIED.into());
        return Ok(vec![both.or_else(|_| at(Ipv4Addr::UNSPECIFIED.into()))?]);
    }
    named.iter().map(|ip| at(*ip)).collect()
}

/// Returns the addresses that the listeners are bound to.
pub(crate) fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    let each = listeners.iter();
    each.filter_map(|l| l.local_addr().ok()).collect()
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd: OwnedFd =
        socket_with(socket::family(&address), SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // Without this option, a server that is restarted would have to wait until the kernel forgets old connections.
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if address.is_ipv6() {
        // The IPv6 wildcard address accepts IPv4 connections too, whatever the system's default is.
        sockopt::set_ipv6_v6only(&fd, !address.ip().is_unspecified())?;
    }
    bind(&fd, &address)?;
    // New connections wait in this queue while the gate handles earlier ones.
    listen_on(&fd, 1024)?;
    Ok(TcpListener::from(fd))
}
