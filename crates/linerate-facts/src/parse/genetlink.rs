//! Parses generic netlink: the number of a family, and the attributes of a family's messages.

use super::netlink::{after, attributes, u16_at};
use super::{Malformed, netlink};

const WHAT: &str = "generic netlink message";
/// Size of `struct genlmsghdr`, in bytes.
const FIXED: usize = 4;
/// Lowest message type of a family. Types below it are netlink's own (`NLMSG_MIN_TYPE`).
const FIRST: u16 = 16;

/// The attributes of each message in a reply, undecoded.
pub fn bodies(reply: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
    netlink::messages(reply).filter_map(|message| match message {
        Ok(message) => (message.kind >= FIRST).then(|| after(message.body, FIXED, WHAT)),
        Err(error) => Some(Err(error)),
    })
}

/// Calls `change` with the type and the value of each attribute of each message.
pub(super) fn change_bodies(reply: &mut [u8], mut change: impl FnMut(u16, &mut [u8])) {
    netlink::change_messages(reply, |_, body| {
        if let Some((_, attributes)) = body.split_at_mut_checked(FIXED) {
            netlink::change_attributes(attributes, &mut change);
        }
    });
}

/// The number of a family, from the reply to `CTRL_CMD_GETFAMILY`.
pub fn family(reply: &[u8]) -> Result<u16, Malformed> {
    for body in bodies(reply) {
        for attribute in attributes(body?) {
            // Attribute 1 is CTRL_ATTR_FAMILY_ID of linux/genetlink.h.
            if let (1, value) = attribute? {
                return u16_at(value, 0, WHAT);
            }
        }
    }
    Err(Malformed::Missing("number of the family"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{bodies, family};
    use crate::parse::netlink::tests::{attr, msg};

    #[test]
    fn a_family_has_a_number() {
        let named = [vec![1, 2, 0, 0], attr(2, b"ethtool\0"), attr(1, &[21, 0])].concat();
        assert_eq!(family(&msg(16, &named)), Ok(u16::from_ne_bytes([21, 0])));
        assert!(family(&msg(16, &named[..16])).is_err());
        assert!(family(&msg(16, &named[..3])).is_err());
        assert!(family(&msg(3, &named)).is_err(), "netlink's own");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = (family(&bytes), family(&msg(16, &bytes)));
            prop_assert!(bodies(&bytes).count() <= bytes.len());
        }
    }
}
