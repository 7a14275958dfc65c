//! `RTM_NEWROUTE`: which port the route to an address leaves by.

use super::netlink::{after, attributes, u32_at};
use super::{Malformed, netlink};

const WHAT: &str = "route message";
const NEW_ROUTE: u16 = 24;
/// Size of `struct rtmsg`.
const FIXED: usize = 12;

/// Index of the port that the route of a reply leaves by.
pub fn port(reply: &[u8]) -> Result<u32, Malformed> {
    for message in netlink::messages(reply) {
        let message = message?;
        if message.kind != NEW_ROUTE {
            continue;
        }
        for attribute in attributes(after(message.body, FIXED, WHAT)?) {
            // RTA_OIF of linux/rtnetlink.h.
            if let (4, value) = attribute? {
                return u32_at(value, 0, WHAT);
            }
        }
    }
    Err(Malformed::Missing("port of the route"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::port;
    use crate::parse::netlink::tests::{attr, msg};

    fn sample() -> Vec<u8> {
        let body = [
            vec![2; 12],
            attr(1, &[192, 0, 2, 1]),
            attr(4, &4u32.to_ne_bytes()),
        ];
        msg(24, &body.concat())
    }

    #[test]
    fn the_port_is_found_or_missing() {
        assert_eq!(port(&sample()), Ok(4));
        assert!(
            port(&msg(24, &[2; 12])).is_err(),
            "a route that leaves by no port"
        );
        assert!(port(&[]).is_err());
        let reply = sample();
        for end in 0..reply.len() {
            assert!(port(&reply[..end]).is_err(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = port(&bytes);
            let _ = port(&msg(24, &bytes));
        }
    }
}
