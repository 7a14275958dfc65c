//! Parses `RTM_NEWADDR`: the addresses of ports.

use std::net::IpAddr;

use super::netlink::{address, after, attributes, u32_at};
use super::{Malformed, netlink};

const WHAT: &str = "address message";
const NEW_ADDRESS: u16 = 20;
/// Size of `struct ifaddrmsg`, in bytes.
const FIXED: usize = 8;
/// Flags of an address that cannot be used: it is a duplicate in its network, or the check for duplicates is not
/// finished.
//= include/uapi/linux/if_addr.h, IFA_F_DADFAILED and IFA_F_TENTATIVE
const UNUSABLE: u8 = 0x08 | 0x40;

/// An IP address of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Index of the port.
    pub port: u32,
    /// The IP address.
    pub ip: IpAddr,
    /// Prefix length: the number of leading bits that all addresses of its network share.
    pub prefix: u8,
    /// Whether the address is valid beyond this link and this host (`RT_SCOPE_UNIVERSE`).
    pub is_global: bool,
}

/// The usable addresses in a reply.
pub fn parse(reply: &[u8]) -> impl Iterator<Item = Result<Address, Malformed>> {
    netlink::messages(reply).filter_map(|message| match message {
        Ok(message) if message.kind == NEW_ADDRESS => one(message.body).transpose(),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// Overwrites everything that [`parse`] does not read. `address` changes the bytes of each address.
pub fn mask(reply: &mut [u8], mut address: impl FnMut(&mut [u8])) {
    netlink::change_messages(reply, |kind, body| {
        let attributes = body.split_at_mut_checked(FIXED);
        let Some((_, attributes)) = attributes.filter(|_| kind == NEW_ADDRESS) else {
            return;
        };
        netlink::change_attributes(attributes, |kind, value| match kind {
            1 | 2 => address(value),
            _ => value.fill(0),
        });
    });
}

fn one(body: &[u8]) -> Result<Option<Address>, Malformed> {
    let port = u32_at(body, 4, WHAT)?;
    let (prefix, flags, scope) = (body[1], body[2], body[3]);
    let (mut own, mut other) = (None, None);
    for attribute in attributes(after(body, FIXED, WHAT)?) {
        // The attributes are IFA_ADDRESS and IFA_LOCAL. If both are present, the first is the other end's address.
        match attribute? {
            (1, value) => other = Some(address(value, WHAT)?),
            (2, value) => own = Some(address(value, WHAT)?),
            _ => {}
        }
    }
    let ip = own.or(other).ok_or(Malformed::Missing("address"))?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    Ok((flags & UNUSABLE == 0 && prefix <= most).then_some(Address {
        port,
        ip,
        prefix,
        is_global: scope == 0,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Address, parse};
    use crate::parse::netlink::tests::{attr, msg};

    fn message(fixed: [u8; 4], attributes: &[Vec<u8>]) -> Vec<u8> {
        let body = [&fixed[..], &7u32.to_ne_bytes(), &attributes.concat()].concat();
        msg(20, &body)
    }

    fn all(reply: &[u8]) -> Vec<Address> {
        parse(reply).map(Result::unwrap).collect()
    }

    #[test]
    fn own_addresses_are_read_and_unusable_ones_passed_over() {
        let own = attr(2, &[192, 0, 2, 7]);
        let peer = attr(1, &[192, 0, 2, 9]);
        let want = Address { port: 7, ip: [192, 0, 2, 7].into(), prefix: 24, is_global: true };
        assert_eq!(all(&message([2, 24, 0, 0], &[peer, own])), [want]);
        let six = attr(1, &[0xfe; 16]);
        let local = all(&message([10, 64, 0x80, 253], std::slice::from_ref(&six)));
        assert_eq!((local[0].prefix, local[0].is_global), (64, false));
        for flags in [0x08, 0x40] {
            assert_eq!(all(&message([10, 64, flags, 0], std::slice::from_ref(&six))), []);
        }
        let own = attr(2, &[192, 0, 2, 7]);
        assert_eq!(all(&message([2, 33, 0, 0], &[own])), [], "no such prefix");
    }

    #[test]
    fn a_masked_reply_has_other_addresses_and_nothing_else() {
        let mut reply = message([2, 24, 0, 0], &[attr(2, &[192, 0, 2, 7]), attr(3, b"secret")]);
        super::mask(&mut reply, |address| address.fill(9));
        let want = Address { port: 7, ip: [9; 4].into(), prefix: 24, is_global: true };
        assert_eq!(all(&reply), [want]);
        assert!(!reply.windows(6).any(|w| w == b"secret"), "{reply:?}");
    }

    #[test]
    fn a_cut_reply_gives_an_error_or_the_whole_address() {
        let reply = message([2, 24, 0, 0], &[attr(2, &[192, 0, 2, 7])]);
        let whole = parse(&reply).next();
        for end in 1..reply.len() {
            let first = parse(&reply[..end]).next();
            assert!(matches!(first, Some(Err(_))) || first == whole, "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes).count();
            let _ = parse(&msg(20, &bytes)).count();
        }
    }
}
