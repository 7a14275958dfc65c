//! Parses `sock_diag` replies: the TCP connections of a host, whatever program made them.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use super::netlink::{self, address, after, attributes, string, u16_at, u32_at};
use super::{Malformed, tcp_info};
use crate::metric::{TCP_BYTES_ACKED, TCP_BYTES_RECEIVED};

const WHAT: &str = "sock_diag message";
/// Size of `struct inet_diag_msg`, in bytes.
const FIXED: usize = 72;
/// Type of a message about one connection, `SOCK_DIAG_BY_FAMILY`.
pub const BY_FAMILY: u16 = 20;

/// Numbers of address families in Linux.
const INET: u8 = 2;
const INET6: u8 = 10;

/// One connection, as the kernel reports it.
//= include/uapi/linux/inet_diag.h, struct inet_diag_msg
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection<'a> {
    /// Address and TCP port of this end. An IPv4 address that is mapped into IPv6 is kept as it is.
    pub local: SocketAddr,
    /// Address and TCP port of the other end.
    pub remote: SocketAddr,
    /// Index of the network port that the socket is bound to; 0 if it is bound to none.
    pub bound: u32,
    /// Number of the socket, which no other socket has until the next boot.
    pub cookie: u64,
    /// Received payload that the application has not read yet, in bytes.
    pub unread: u32,
    /// Payload that was written and is not yet acknowledged, in bytes.
    pub queued: u32,
    /// Id of the user that the socket belongs to.
    pub user: u32,
    /// The socket's inode, which identifies the processes that have the socket open; 0 if no process has.
    pub inode: u32,
    /// The bytes of `TCP_INFO`; empty if the kernel sent none.
    pub tcp_info: &'a [u8],
    /// The bytes of `SO_MEMINFO`; empty if the kernel sent none.
    pub mem_info: &'a [u8],
    /// Name of the congestion control; empty if the kernel sent none.
    pub congestion: Cow<'a, str>,
}

impl Connection<'_> {
    /// Payload bytes that the other end acknowledged, and payload bytes that were received, since the connection was
    /// made; `None` on kernels that do not count them.
    pub fn moved(&self) -> Option<(u64, u64)> {
        let (mut acked, mut received) = (None, None);
        for (metric, value) in tcp_info::values(self.tcp_info) {
            let slot = match metric.name {
                name if name == TCP_BYTES_ACKED.name => &mut acked,
                name if name == TCP_BYTES_RECEIVED.name => &mut received,
                _ => continue,
            };
            *slot = value.and_then(|v| u64::try_from(v).ok());
        }
        acked.zip(received)
    }
}

/// The connections in a reply, or in one part of it. A message that cannot be decoded is an error, and parsing
/// continues with the next one. Broken framing ends it.
pub fn parse(reply: &[u8]) -> impl Iterator<Item = Result<Connection<'_>, Malformed>> {
    netlink::messages(reply).filter_map(|message| match message {
        Ok(message) => (message.kind == BY_FAMILY).then(|| connection(message.body)),
        Err(error) => Some(Err(error)),
    })
}

fn connection(body: &[u8]) -> Result<Connection<'_>, Malformed> {
    let rest = after(body, FIXED, WHAT)?;
    let family = body.first().copied().unwrap_or_default();
    let mut connection = Connection {
        local: end(body, family, 4, 8)?,
        remote: end(body, family, 6, 24)?,
        bound: u32_at(body, 40, WHAT)?,
        // The cookie has two halves. The lower half comes first on every machine.
        cookie: u64::from(u32_at(body, 44, WHAT)?) | u64::from(u32_at(body, 48, WHAT)?) << 32,
        unread: u32_at(body, 56, WHAT)?,
        queued: u32_at(body, 60, WHAT)?,
        user: u32_at(body, 64, WHAT)?,
        inode: u32_at(body, 68, WHAT)?,
        tcp_info: &[],
        mem_info: &[],
        congestion: Cow::Borrowed(""),
    };
    for attribute in attributes(rest) {
        // The attributes are INET_DIAG_INFO, INET_DIAG_CONG and INET_DIAG_SKMEMINFO.
        match attribute? {
            (2, value) => connection.tcp_info = value,
            (4, value) => connection.congestion = string(value),
            (7, value) => connection.mem_info = value,
            _ => {}
        }
    }
    Ok(connection)
}

/// The address of one end: its TCP port is at offset `port`, its IP address at offset `at`.
fn end(body: &[u8], family: u8, port: usize, at: usize) -> Result<SocketAddr, Malformed> {
    let length = match family {
        INET => 4,
        INET6 => 16,
        _ => return Err(Malformed::Missing("family of a connection")),
    };
    let octets = body.get(at..at + length).ok_or(Malformed::Short(WHAT))?;
    let ip: IpAddr = address(octets, WHAT)?;
    Ok(SocketAddr::new(ip, u16::from_be(u16_at(body, port, WHAT)?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::netlink::tests::{attr, msg};

    /// A message about the connection from 10.0.0.1:43210 to 10.0.0.2:22.
    fn body(family: u8) -> Vec<u8> {
        let mut body = vec![0; FIXED];
        body[0] = family;
        body[4..6].copy_from_slice(&43210u16.to_be_bytes());
        body[6..8].copy_from_slice(&22u16.to_be_bytes());
        body[8..12].copy_from_slice(&[10, 0, 0, 1]);
        body[24..28].copy_from_slice(&[10, 0, 0, 2]);
        body[44..48].copy_from_slice(&7u32.to_ne_bytes());
        body[48..52].copy_from_slice(&1u32.to_ne_bytes());
        body[56..60].copy_from_slice(&300u32.to_ne_bytes());
        body[60..64].copy_from_slice(&400u32.to_ne_bytes());
        body[64..68].copy_from_slice(&1000u32.to_ne_bytes());
        body[68..72].copy_from_slice(&99u32.to_ne_bytes());
        body
    }

    fn info(acked: u64, received: u64) -> Vec<u8> {
        let mut raw = vec![0; 248];
        raw[120..128].copy_from_slice(&acked.to_ne_bytes());
        raw[128..136].copy_from_slice(&received.to_ne_bytes());
        raw
    }

    #[test]
    fn a_connection_is_read_with_what_was_asked_for() {
        let whole = [
            body(INET),
            attr(2, &info(5_000_000_000, 6)),
            attr(4, b"cubic\0"),
            attr(7, &[1; 36]),
            attr(21, &[0; 8]),
        ]
        .concat();
        let reply = [msg(BY_FAMILY, &whole), msg(3, &[0; 4])].concat();
        let all: Vec<_> = parse(&reply).collect::<Result<_, _>>().unwrap();
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!(one.local.to_string(), "10.0.0.1:43210");
        assert_eq!(one.remote.to_string(), "10.0.0.2:22");
        assert_eq!(one.cookie, 1 << 32 | 7);
        assert_eq!((one.unread, one.queued), (300, 400));
        assert_eq!((one.user, one.inode), (1000, 99));
        assert_eq!(one.congestion, "cubic");
        assert_eq!(one.mem_info.len(), 36);
        assert_eq!(one.moved(), Some((5_000_000_000, 6)));
    }

    #[test]
    fn an_old_kernel_counts_nothing_and_says_so() {
        // In Linux 4.0 the struct ends before the counters of bytes.
        let whole = [body(INET6), attr(2, &[0; 104])].concat();
        let reply = msg(BY_FAMILY, &whole);
        let one = parse(&reply).next().unwrap().unwrap();
        assert!(one.local.is_ipv6());
        assert_eq!(one.moved(), None);
    }

    #[test]
    fn one_that_cannot_be_understood_does_not_hide_the_next() {
        let reply = [
            msg(BY_FAMILY, &body(INET)[..FIXED - 1]),
            msg(BY_FAMILY, &body(1)),
            msg(BY_FAMILY, &body(INET)),
        ]
        .concat();
        let read: Vec<bool> = parse(&reply).map(|c| c.is_ok()).collect();
        assert_eq!(read, [false, false, true]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, tail: Vec<u8>) {
            prop_assert!(parse(&bytes).count() <= bytes.len());
            let whole = [body(INET), tail].concat();
            for one in parse(&msg(BY_FAMILY, &whole)).flatten() {
                let _ = one.moved();
            }
        }
    }
}
