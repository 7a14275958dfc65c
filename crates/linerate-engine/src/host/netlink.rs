//! Questions to the kernel over a synchronous netlink socket.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use linerate_core::parse::netlink::{DONE, DUMP_INTERRUPTED, ERROR, error_number, messages};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::{LIMIT, Query, invalid};

/// The kernel answers at once; this only keeps a fault from becoming a hang.
const DEADLINE: Duration = Duration::from_secs(1);
/// A dump during which something changed is asked for again, this often at most.
const ATTEMPTS: u32 = 3;
/// The kernel fills at most 32 KiB of a dump at a time (net/netlink/af_netlink.c, netlink_dump).
const BUFFER: usize = 64 << 10;

const REQUEST: u16 = 1;
const MULTI: u16 = 2;
const DUMP: u16 = 0x300;

/// A routing socket that talks to the kernel alone.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    pub(super) fn open() -> io::Result<Self> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        // No protocol is protocol 0, which for this family is NETLINK_ROUTE.
        let fd = rustix::net::socket_with(family, SocketType::RAW, flags, None)?;
        // Connected to the kernel (port 0): what another process sends does not arrive.
        rustix::net::connect(&fd, &SocketAddrNetlink::new(0, 0))?;
        set_socket_timeout(&fd, Timeout::Recv, Some(DEADLINE))?;
        Ok(Self {
            fd,
            sequence: 0,
            buffer: vec![0; BUFFER],
        })
    }

    /// Sends a query and gives the whole reply.
    pub(super) fn ask(&mut self, query: &Query) -> io::Result<Vec<u8>> {
        for _ in 0..ATTEMPTS {
            self.sequence = self.sequence.wrapping_add(1);
            let request = request(query, self.sequence)?;
            rustix::net::send(&self.fd, &request, SendFlags::empty())?;
            if let Some(reply) = self.reply()? {
                return Ok(reply);
            }
        }
        let why = "the kernel's tables kept changing while they were read";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// The reply to the last request; `None` where a dump changed while it was read.
    fn reply(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut reply = Vec::new();
        let mut whole = true;
        loop {
            let part = self.receive()?;
            let mut ended = false;
            for message in messages(&self.buffer[..part]) {
                let message = message.map_err(invalid)?;
                if message.sequence != self.sequence {
                    continue;
                }
                whole &= message.flags & DUMP_INTERRUPTED == 0;
                ended |= match message.kind {
                    ERROR => return Err(refusal(message.body)),
                    DONE if failed(message.body) => return Err(refusal(message.body)),
                    // A single answer has no end mark of its own; a dump's messages say "multi".
                    kind => kind == DONE || message.flags & MULTI == 0,
                };
            }
            reply.extend_from_slice(&self.buffer[..part]);
            if ended {
                return Ok(whole.then_some(reply));
            }
            if reply.len() > LIMIT {
                let why = format!("a reply of more than {LIMIT} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        let buffer = &mut self.buffer;
        let receive = || rustix::net::recv(&self.fd, &mut buffer[..], RecvFlags::TRUNC);
        let (_, length) = rustix::io::retry_on_intr(receive)?;
        if length > BUFFER {
            let why = "a netlink message larger than the buffer";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(length)
    }
}

/// Whether a dump's end mark carries an error.
fn failed(body: &[u8]) -> bool {
    error_number(body).is_ok_and(|number| number > 0)
}

fn refusal(body: &[u8]) -> io::Error {
    error_number(body).map_or_else(invalid, io::Error::from_raw_os_error)
}

/// The request as bytes.
fn request(query: &Query, sequence: u32) -> io::Result<Vec<u8>> {
    let (kind, flags, body) = match *query {
        Query::Link(index) => (18u16, REQUEST, link_request(index)),
        Query::Qdiscs => (38, REQUEST | DUMP, vec![0; 20]),
        Query::Route(address) => (26, REQUEST, route_request(address.to_canonical())),
        Query::TicksPerSec => return Err(io::ErrorKind::Unsupported.into()),
    };
    let length = 16 + body.len() as u32;
    Ok([
        &length.to_ne_bytes()[..],
        &kind.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &sequence.to_ne_bytes(),
        &[0; 4],
        &body,
    ]
    .concat())
}

/// `struct ifinfomsg` with the index.
fn link_request(index: u32) -> Vec<u8> {
    [&[0; 4][..], &index.to_ne_bytes(), &[0; 8]].concat()
}

/// `struct rtmsg` and the destination, RTA_DST.
fn route_request(address: IpAddr) -> Vec<u8> {
    let (family, bytes) = match address {
        IpAddr::V4(v4) => (AddressFamily::INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (AddressFamily::INET6, v6.octets().to_vec()),
    };
    let prefix = bytes.len() as u8 * 8;
    let mut body = vec![family.as_raw() as u8, prefix];
    body.resize(12, 0);
    body.extend((bytes.len() as u16 + 4).to_ne_bytes());
    body.extend(1u16.to_ne_bytes());
    body.extend(bytes);
    body
}

#[cfg(test)]
mod tests {
    use linerate_core::parse::{link, qdisc, route};

    use super::{Query, Socket};

    #[test]
    fn loopback_is_found_by_its_addresses_and_reads() {
        let mut socket = Socket::open().unwrap();
        let reply = socket
            .ask(&Query::Route("127.0.0.1".parse().unwrap()))
            .unwrap();
        let port = route::port(&reply).unwrap();
        let mapped = socket
            .ask(&Query::Route("::ffff:127.0.0.1".parse().unwrap()))
            .unwrap();
        assert_eq!(route::port(&mapped), Ok(port));

        let reply = socket.ask(&Query::Link(port)).unwrap();
        let links: Vec<_> = link::parse(&reply).map(Result::unwrap).collect();
        assert_eq!(links.len(), 1);
        assert_eq!((links[0].index, links[0].hardware), (port, link::LOOPBACK));
        assert!(links[0].stats.is_some());

        let reply = socket.ask(&Query::Qdiscs).unwrap();
        assert!(qdisc::parse(&reply).all(|q| q.is_ok()));
    }

    #[test]
    fn a_refusal_keeps_its_error_and_the_socket_goes_on() {
        let mut socket = Socket::open().unwrap();
        let error = socket.ask(&Query::Link(0x7fff_fff0)).unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(rustix::io::Errno::NODEV.raw_os_error())
        );
        assert!(socket.ask(&Query::Link(1)).is_ok());
    }
}
