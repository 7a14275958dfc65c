//! Queries to the kernel about TCP connections of other programs (`NETLINK_SOCK_DIAG`).

use std::io;
use std::net::{IpAddr, SocketAddr};

use linerate_facts::parse::sock_diag::BY_FAMILY;
use rustix::net::AddressFamily;
use serde::{Deserialize, Serialize};

use super::Query;
use super::netlink::{DUMP, REQUEST, Request};

const TCP: u8 = 6;

/// Bit mask of the attributes to request besides the fixed part: INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO.
const WANTED: u8 = 1 << (2 - 1) | 1 << (4 - 1) | 1 << (7 - 1);

/// TCP states in which payload may flow or wait: ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK and CLOSING.
//= include/net/tcp_states.h
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// Identifier of a connection. A later connection with the same addresses has a different one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConnectionId {
    /// Address of this end.
    pub local: SocketAddr,
    /// Address of the other end.
    pub remote: SocketAddr,
    /// Interface index of the port that the socket is bound to, or 0.
    pub bound: u32,
    /// Number by which the kernel identifies the socket.
    pub cookie: u64,
}

/// Makes the netlink request for a query about connections.
pub(super) fn request(query: &Query) -> io::Result<Request> {
    let (flags, body) = match query {
        Query::ConnectionsV4 => (REQUEST | DUMP, body(AddressFamily::INET, &[0; 48])),
        Query::ConnectionsV6 => (REQUEST | DUMP, body(AddressFamily::INET6, &[0; 48])),
        Query::Connection(id) => {
            let family = match id.local {
                SocketAddr::V4(_) => AddressFamily::INET,
                SocketAddr::V6(_) => AddressFamily::INET6,
            };
            (REQUEST, body(family, &socket_id(id)))
        }
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(Request { kind: BY_FAMILY, flags, body })
}

/// Encodes `struct inet_diag_req_v2`.
//= include/uapi/linux/inet_diag.h
fn body(family: AddressFamily, id: &[u8]) -> Vec<u8> {
    let head = [family.as_raw() as u8, TCP, WANTED, 0];
    [&head[..], &STATES.to_ne_bytes(), id].concat()
}

/// Encodes `struct inet_diag_sockid`.
fn socket_id(id: &ConnectionId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(48);
    bytes.extend(id.local.port().to_be_bytes());
    bytes.extend(id.remote.port().to_be_bytes());
    for end in [id.local, id.remote] {
        let mut address = match end.ip() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        address.resize(16, 0);
        bytes.extend(address);
    }
    bytes.extend(id.bound.to_ne_bytes());
    bytes.extend((id.cookie as u32).to_ne_bytes());
    bytes.extend(((id.cookie >> 32) as u32).to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use linerate_facts::parse::sock_diag::{Connection, parse};
    use rustix::io::Errno;

    use super::*;
    use crate::{Live, Machine};

    fn id_of(one: &Connection<'_>) -> ConnectionId {
        ConnectionId { local: one.local, remote: one.remote, bound: one.bound, cookie: one.cookie }
    }

    /// The connection's id, its bytes sent and received, and its unread bytes.
    type Reading = (ConnectionId, Option<(u64, u64)>, u32);

    fn reading(reply: &[u8], local: SocketAddr) -> Option<Reading> {
        let mut all = parse(reply).map(Result::unwrap);
        let own = all.find(|one| one.local == local)?;
        Some((id_of(&own), own.moved(), own.unread))
    }

    fn a_connection_of(listen: &str, query: Query) {
        let listener = TcpListener::bind(listen).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 1000]).unwrap();
        server.read_exact(&mut [0; 1]).unwrap();
        let machine = Live::new();
        let ask = |query, local| {
            let mut found = None;
            let mut each = |part: &[u8]| found = found.or(reading(part, local));
            machine.parts(&query, &mut each).unwrap();
            found
        };
        let (sender, moved, _) = ask(query, client.local_addr().unwrap()).unwrap();
        // For the end that connects, the kernel counts the SYN as a byte.
        assert!((1000..=1001).contains(&moved.unwrap().0), "{moved:?}");
        let (receiver, moved, unread) = ask(query, server.local_addr().unwrap()).unwrap();
        assert_eq!((moved.unwrap().1, unread), (1000, 999));
        // A query for one connection finds the same connection. It fails if the connection is gone, or if the cookie
        // belongs to another one.
        let (same, ..) = ask(Query::Connection(receiver), receiver.local).unwrap();
        assert_eq!(same, receiver);
        let other = ConnectionId { cookie: sender.cookie ^ 1, ..sender };
        let error = machine.query(&Query::Connection(other)).unwrap_err();
        let errno = Errno::from_io_error(&error);
        assert!(matches!(errno, Some(Errno::NOENT | Errno::STALE)), "{error}");
        assert!(machine.query(&Query::Connection(sender)).is_ok(), "it goes on");
    }

    #[test]
    fn a_connection_is_found_among_all_and_alone() {
        a_connection_of("127.0.0.1:0", Query::ConnectionsV4);
        // Some machines are built without IPv6.
        if TcpListener::bind("[::1]:0").is_ok() {
            a_connection_of("[::1]:0", Query::ConnectionsV6);
        }
    }
}
