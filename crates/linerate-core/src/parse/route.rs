//! `RTM_NEWROUTE`: which port the route to an address leaves by, and to which neighbour.

use std::net::IpAddr;

use super::netlink::{address, after, attributes, u32_at};
use super::{Malformed, netlink};

const WHAT: &str = "route message";
const NEW_ROUTE: u16 = 24;
/// Size of `struct rtmsg`.
const FIXED: usize = 12;

/// A route as the kernel found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Index of the port that it leaves by.
    pub port: u32,
    /// The neighbour that packets are handed to; `None` where the other end is one itself.
    pub gateway: Option<IpAddr>,
    /// The source that the kernel prefers for it.
    pub source: Option<IpAddr>,
}

/// The first route of a reply that leaves by a port.
pub fn parse(reply: &[u8]) -> Result<Route, Malformed> {
    for message in netlink::messages(reply) {
        let message = message?;
        if message.kind != NEW_ROUTE {
            continue;
        }
        let (mut port, mut gateway, mut source) = (None, None, None);
        for attribute in attributes(after(message.body, FIXED, WHAT)?) {
            // RTA_OIF, RTA_GATEWAY, RTA_PREFSRC and RTA_VIA of linux/rtnetlink.h.
            match attribute? {
                (4, value) => port = Some(u32_at(value, 0, WHAT)?),
                (5, value) => gateway = Some(address(value, WHAT)?),
                (7, value) => source = Some(address(value, WHAT)?),
                // The neighbour of an IPv4 route may have an IPv6 address: its family, then it.
                (18, value) => gateway = Some(address(after(value, 2, WHAT)?, WHAT)?),
                _ => {}
            }
        }
        if let Some(port) = port {
            return Ok(Route {
                port,
                gateway,
                source,
            });
        }
    }
    Err(Malformed::Missing("port of the route"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Route, parse};
    use crate::parse::netlink::tests::{attr, msg};

    fn sample() -> Vec<u8> {
        let body = [
            vec![2; 12],
            attr(1, &[192, 0, 2, 1]),
            attr(4, &4u32.to_ne_bytes()),
            attr(5, &[198, 51, 100, 1]),
            attr(7, &[198, 51, 100, 7]),
        ];
        msg(24, &body.concat())
    }

    #[test]
    fn the_port_is_found_or_missing() {
        let want = Route {
            port: 4,
            gateway: Some([198, 51, 100, 1].into()),
            source: Some([198, 51, 100, 7].into()),
        };
        assert_eq!(parse(&sample()), Ok(want));
        let direct = [vec![10; 12], attr(4, &4u32.to_ne_bytes())].concat();
        assert_eq!(parse(&msg(24, &direct)).map(|r| r.gateway), Ok(None));
        assert!(
            parse(&msg(24, &[2; 12])).is_err(),
            "a route that leaves by no port"
        );
        let via = [10, 0].into_iter().chain([0xfe; 16]).collect::<Vec<u8>>();
        let other = [vec![2; 12], attr(4, &4u32.to_ne_bytes()), attr(18, &via)].concat();
        let gateway = parse(&msg(24, &other)).map(|r| r.gateway);
        assert_eq!(gateway, Ok(Some([0xfe; 16].into())), "of the other version");
        let odd = [vec![2; 12], attr(4, &4u32.to_ne_bytes()), attr(5, &[1; 5])];
        assert!(parse(&msg(24, &odd.concat())).is_err(), "no address");
        assert!(parse(&[]).is_err());
        let reply = sample();
        for end in 0..reply.len() {
            assert!(parse(&reply[..end]).is_err(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
            let _ = parse(&msg(24, &bytes));
        }
    }
}
