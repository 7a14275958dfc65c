//! Parses `RTM_NEWROUTE`: the port and the neighbour through which the route to an address leads.

use std::net::IpAddr;

use super::netlink::{address, after, attributes, u32_at};
use super::{Malformed, netlink};

const WHAT: &str = "route message";
const NEW_ROUTE: u16 = 24;
/// Size of `struct rtmsg`, in bytes.
const FIXED: usize = 12;

/// A route to an address, as the kernel found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Index of the port through which packets leave.
    pub port: u32,
    /// The neighbour (router) that packets are sent to; `None` if the other end itself is a neighbour.
    pub gateway: Option<IpAddr>,
    /// The source address that the kernel prefers for the route.
    pub source: Option<IpAddr>,
    /// MTU of the route, if it was configured, or learnt by path MTU discovery.
    pub mtu: Option<u32>,
}

/// The first route in a reply that has a port.
pub fn parse(reply: &[u8]) -> Result<Route, Malformed> {
    for message in netlink::messages(reply) {
        let message = message?;
        if message.kind != NEW_ROUTE {
            continue;
        }
        let (mut port, mut gateway, mut source, mut mtu) = (None, None, None, None);
        for attribute in attributes(after(message.body, FIXED, WHAT)?) {
            // The attributes are RTA_OIF, RTA_GATEWAY, RTA_PREFSRC, RTA_METRICS and RTA_VIA of linux/rtnetlink.h.
            match attribute? {
                (4, value) => port = Some(u32_at(value, 0, WHAT)?),
                (5, value) => gateway = Some(address(value, WHAT)?),
                (7, value) => source = Some(address(value, WHAT)?),
                (METRICS, value) => mtu = metric(value, MTU)?,
                // The neighbour of an IPv4 route may have an IPv6 address: RTA_VIA has its family, followed by the
                // address.
                (18, value) => gateway = Some(address(after(value, 2, WHAT)?, WHAT)?),
                _ => {}
            }
        }
        if let Some(port) = port {
            return Ok(Route { port, gateway, source, mtu });
        }
    }
    Err(Malformed::Missing("port of the route"))
}

/// Attribute `RTA_METRICS`, and attribute `RTAX_MTU` within it.
const METRICS: u16 = 8;
const MTU: u16 = 2;
/// Attribute `RTA_OIF`: index of the port.
const PORT: u16 = 4;

fn metric(metrics: &[u8], wanted: u16) -> Result<Option<u32>, Malformed> {
    for attribute in attributes(metrics) {
        let (kind, value) = attribute?;
        if kind == wanted {
            return Ok(Some(u32_at(value, 0, WHAT)?).filter(|&metric| metric > 0));
        }
    }
    Ok(None)
}

/// Overwrites everything but the port and the metrics, so that no address remains.
pub fn mask(reply: &mut [u8]) {
    netlink::change_messages(reply, |kind, body| {
        let attributes = body.split_at_mut_checked(FIXED);
        let Some((_, attributes)) = attributes.filter(|_| kind == NEW_ROUTE) else {
            return;
        };
        netlink::change_attributes(attributes, |kind, value| {
            if ![PORT, METRICS].contains(&kind) {
                value.fill(0);
            }
        });
    });
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
            mtu: None,
        };
        assert_eq!(parse(&sample()), Ok(want));
        let direct = [vec![10; 12], attr(4, &4u32.to_ne_bytes())].concat();
        assert_eq!(parse(&msg(24, &direct)).map(|r| r.gateway), Ok(None));
        assert!(parse(&msg(24, &[2; 12])).is_err(), "a route that leaves by no port");
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

    #[test]
    fn what_a_route_carries_is_read_and_survives_a_mask() {
        let metrics = [attr(1, &7u32.to_ne_bytes()), attr(2, &1400u32.to_ne_bytes())];
        let mut reply = sample();
        let body = [reply[16..].to_vec(), attr(8, &metrics.concat())];
        reply = msg(24, &body.concat());
        assert_eq!(parse(&reply).map(|r| (r.port, r.mtu)), Ok((4, Some(1400))));
        super::mask(&mut reply);
        assert_eq!(parse(&reply).map(|r| (r.port, r.mtu)), Ok((4, Some(1400))));
        assert!(!reply.windows(4).any(|w| w == [198, 51, 100, 1]));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let mut masked = bytes.clone();
            super::mask(&mut masked);
            let _ = parse(&bytes);
            let _ = parse(&msg(24, &bytes));
        }
    }
}
