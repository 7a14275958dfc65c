//! Queries to the kernel over a synchronous netlink socket.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use linerate_facts::parse::netlink::part;
use linerate_facts::parse::netlink::write::message;
pub(crate) use linerate_facts::parse::netlink::write::{ACK, DUMP, REQUEST, attribute};
use linerate_sys::netlink::Socket as Kernel;
use rustix::net::{AddressFamily, Protocol};

use super::{LIMIT, Query, Toward};

/// Longest wait for a reply. The kernel replies at once; the limit only prevents a fault from blocking the program.
const DEADLINE: Duration = Duration::from_secs(1);
/// Most requests for a dump if the kernel's tables change while it is read.
const ATTEMPTS: u32 = 3;

/// A netlink request: a message without its sequence number.
pub(crate) struct Request {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) body: Vec<u8>,
}

/// A netlink socket, and the sequence number of the last request.
#[derive(Debug)]
pub(crate) struct Socket {
    kernel: Kernel,
    sequence: u32,
}

impl Socket {
    pub(crate) fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        Ok(Self { kernel: Kernel::open(protocol, Some(DEADLINE))?, sequence: 0 })
    }

    /// Sends a query of the routing family and returns the raw reply.
    pub(crate) fn ask(&mut self, query: &Query) -> io::Result<Vec<u8>> {
        self.exchange(&request(query)?)
    }

    /// Sends a request and returns the raw reply. A dump that was interrupted by a change is requested again.
    pub(crate) fn exchange(&mut self, request: &Request) -> io::Result<Vec<u8>> {
        for _ in 0..ATTEMPTS {
            self.send(request)?;
            if let Some(reply) = self.reply()? {
                return Ok(reply);
            }
        }
        let why = "the kernel's tables kept changing while they were read";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// Sends the request for a dump, and passes each part of the reply to `each`. Entries that change during the dump
    /// may be missing, or may appear twice.
    pub(super) fn stream(
        &mut self,
        request: &Request,
        each: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        self.send(request)?;
        self.each_part(|part| {
            each(part);
            Ok(())
        })?;
        Ok(())
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let Request { kind, flags, body } = request;
        self.kernel.send(&message(*kind, *flags, self.sequence, body))
    }

    /// Receives the reply to the last request; `None` if the kernel's table changed while it was dumped.
    fn reply(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut reply = Vec::new();
        let whole = self.each_part(|part| {
            reply.extend_from_slice(part);
            if reply.len() > LIMIT {
                let why = format!("a reply of more than {LIMIT} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            Ok(())
        })?;
        Ok(whole.then_some(reply))
    }

    /// Receives the whole reply to the last request, and passes each part to `each`. Returns false if the kernel's
    /// table changed during the dump.
    fn each_part(&mut self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<bool> {
        let mut whole = true;
        loop {
            let bytes = self.kernel.receive()?;
            let part = part(bytes, self.sequence)?;
            each(bytes)?;
            whole &= !part.interrupted;
            if part.last {
                return Ok(whole);
            }
        }
    }
}

/// Makes the netlink request for a query of the routing family.
fn request(query: &Query) -> io::Result<Request> {
    let (kind, flags, body) = match *query {
        Query::Link(index) => (18, REQUEST, link_request(index)),
        Query::Links => (18, REQUEST | DUMP, link_request(0)),
        Query::Qdiscs => (38, REQUEST | DUMP, vec![0; 20]),
        Query::Classes(index) => (42, REQUEST | DUMP, class_request(index)),
        Query::Addresses => (22, REQUEST | DUMP, vec![0; 8]),
        Query::Route(toward) => (26, REQUEST, route_request(&toward)),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(Request { kind, flags, body })
}

/// Encodes `struct ifinfomsg` for the port with this index.
fn link_request(index: u32) -> Vec<u8> {
    [&[0; 4][..], &index.to_ne_bytes(), &[0; 8]].concat()
}

/// Encodes `struct tcmsg` for the port with this index.
fn class_request(index: u32) -> Vec<u8> {
    [&[0; 4][..], &index.to_ne_bytes(), &[0; 12]].concat()
}

/// Encodes `struct rtmsg`, followed by the destination (RTA_DST) and, if it is known, by the source (RTA_SRC).
fn route_request(toward: &Toward) -> Vec<u8> {
    let peer = octets(toward.peer);
    let own = toward.own.map(octets);
    let family = match peer.len() {
        4 => AddressFamily::INET,
        _ => AddressFamily::INET6,
    };
    let bits = |bytes: &[u8]| bytes.len() as u8 * 8;
    let mut body = vec![family.as_raw() as u8, bits(&peer)];
    body.push(own.as_deref().map_or(0, bits));
    body.resize(12, 0);
    body.extend(attribute(1, &peer));
    if let Some(own) = own {
        body.extend(attribute(2, &own));
    }
    body
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use linerate_facts::parse::{address, link, qdisc, route};

    use super::{Query, Socket, Toward};

    #[test]
    fn loopback_is_found_by_its_addresses_and_reads() {
        let mut socket = Socket::open(None).unwrap();
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let mut port_toward = |toward: Toward| {
            let reply = socket.ask(&Query::Route(toward)).unwrap();
            route::parse(&reply).unwrap().port
        };
        let port = port_toward(local.into());
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        assert_eq!(port_toward(mapped.into()), port);
        assert_eq!(port_toward(Toward::of(local, Some(local))), port);

        let reply = socket.ask(&Query::Addresses).unwrap();
        let addresses: Vec<_> = address::parse(&reply).map(Result::unwrap).collect();
        assert!(addresses.iter().any(|a| (a.port, a.ip) == (port, local)));

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
        let mut socket = Socket::open(None).unwrap();
        let error = socket.ask(&Query::Link(0x7fff_fff0)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NODEV.raw_os_error()));
        assert!(socket.ask(&Query::Link(1)).is_ok());
    }
}
