//! Decodes a tunnel in `IFLA_LINKINFO`: the addresses of its ends, and the bytes that it adds to each packet.

use std::net::IpAddr;

use super::Malformed;
use super::link::Link;
use super::netlink::{address, attributes, u16_at, u32_at};
use crate::nic::{Tunnel, TunnelKind};

const WHAT: &str = "tunnel";

/// A tunnel with the addresses of its ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends {
    /// The bytes that the tunnel adds to packets, and its configuration.
    pub tunnel: Tunnel,
    /// The outer address of the tunnel's other end, if there is one.
    pub remote: Option<IpAddr>,
    /// The outer address of the tunnel's own end, if it is configured.
    pub local: Option<IpAddr>,
    /// Index of the port that the tunnel is bound to; `None` if the route decides.
    pub link: Option<u32>,
}

/// For a kind of tunnel, the numbers of the attributes that are read; 0 if the kind lacks an attribute.
struct Numbers {
    link: u16,
    /// Attributes with the address of the other end (`remote`) and of this end (`local`), each for IPv4 and IPv6.
    remote: [u16; 2],
    local: [u16; 2],
    /// Attribute for a destination that is set for each packet (collect_md), where the sender limits the size.
    external: u16,
    /// Attribute with the GRE flags of sent packets.
    gre: u16,
    /// Attribute with the flags of a tunnel over IPv6.
    flags: u16,
    /// Attribute for a further UDP header around packets (FOU, GUE).
    encap: u16,
    /// Attribute for a tunnel that carries packets instead of frames.
    bare: u16,
    /// Attribute with the length of the macsec check value, in bytes.
    icv: u16,
    /// Attribute that shows whether macsec frames contain the id of their sender.
    sci: u16,
}

const NONE: Numbers = Numbers {
    link: 0,
    remote: [0, 0],
    local: [0, 0],
    external: 0,
    gre: 0,
    flags: 0,
    encap: 0,
    bare: 0,
    icv: 0,
    sci: 0,
};

//= include/uapi/linux/if_link.h, IFLA_VXLAN_LINK, GROUP, GROUP6, LOCAL, LOCAL6, COLLECT_METADATA, GPE
const VXLAN: Numbers =
    Numbers { link: 3, remote: [2, 16], local: [4, 17], external: 25, bare: 27, ..NONE };

//= include/uapi/linux/if_link.h, IFLA_GENEVE_REMOTE, REMOTE6, COLLECT_METADATA, INNER_PROTO_INHERIT
const GENEVE: Numbers = Numbers { remote: [2, 7], external: 6, bare: 14, ..NONE };

//= include/uapi/linux/if_tunnel.h, IFLA_GRE_LINK, OFLAGS, LOCAL, REMOTE, FLAGS, ENCAP_TYPE, COLLECT_METADATA
const GRE: Numbers = Numbers {
    link: 1,
    remote: [7, 7],
    local: [6, 6],
    external: 18,
    gre: 3,
    flags: 13,
    encap: 14,
    ..NONE
};

//= include/uapi/linux/if_tunnel.h, IFLA_IPTUN_LINK, LOCAL, REMOTE, FLAGS, ENCAP_TYPE, COLLECT_METADATA
const IPTUN: Numbers =
    Numbers { link: 1, remote: [3, 3], local: [2, 2], external: 19, flags: 8, encap: 15, ..NONE };

//= include/uapi/linux/if_tunnel.h, IFLA_VTI_LINK, LOCAL, REMOTE
const VTI: Numbers = Numbers { link: 1, remote: [5, 5], local: [4, 4], ..NONE };

//= include/uapi/linux/if_link.h, IFLA_XFRM_LINK
const XFRM: Numbers = Numbers { link: 1, ..NONE };

//= include/uapi/linux/if_link.h, IFLA_MACSEC_ICV_LEN, INC_SCI
const MACSEC: Numbers = Numbers { icv: 3, sci: 9, ..NONE };

/// Kinds of tunnels, each with the numbers of its attributes.
const KINDS: [(&str, &Numbers); 15] = [
    ("vxlan", &VXLAN),
    ("geneve", &GENEVE),
    ("gre", &GRE),
    ("gretap", &GRE),
    ("erspan", &GRE),
    ("ip6gre", &GRE),
    ("ip6gretap", &GRE),
    ("ip6erspan", &GRE),
    ("ipip", &IPTUN),
    ("sit", &IPTUN),
    ("ip6tnl", &IPTUN),
    ("vti", &VTI),
    ("vti6", &VTI),
    ("xfrm", &XFRM),
    ("macsec", &MACSEC),
];

fn numbers(kind: &str) -> &'static Numbers {
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    known.map_or(&NONE, |(_, numbers)| numbers)
}

/// The numbers in `all` of attributes that a kind has, without zeros.
fn present(all: &[u16]) -> Vec<u16> {
    all.iter().copied().filter(|number| *number > 0).collect()
}

/// The attributes of a kind that [`Link::tunnel`] reads, except addresses. [`super::link::mask`] keeps them.
pub(super) fn read(kind: &str) -> Vec<u16> {
    let numbers = numbers(kind);
    present(&[
        numbers.link,
        numbers.external,
        numbers.gre,
        numbers.flags,
        numbers.encap,
        numbers.bare,
        numbers.icv,
        numbers.sci,
    ])
}

/// The attributes of a kind that contain addresses of the tunnel's ends.
pub(super) fn addresses(kind: &str) -> Vec<u16> {
    let numbers = numbers(kind);
    present(&[numbers.remote, numbers.local].concat())
}

/// GRE flags that add 4 bytes each: a checksum, a key, a sequence number.
//= include/uapi/linux/if_tunnel.h, GRE_CSUM, GRE_KEY, GRE_SEQ; RFC 2890, section 2
const GRE_FLAGS: [u16; 3] = [0x8000, 0x2000, 0x1000];

/// The flag of tunnels over IPv6 that omits the limit of nested tunnels, an option of 8 bytes.
//= include/uapi/linux/ip6_tunnel.h, IP6_TNL_F_IGN_ENCAP_LIMIT; RFC 2473, section 4.1.1
const NO_LIMIT: u32 = 1;
const LIMIT: u32 = 8;

/// The attributes of a tunnel, as they were read.
#[derive(Default)]
struct Attributes {
    ends: Ends,
    external: bool,
    bare: bool,
    gre: u16,
    flags: u32,
    encap: u16,
    /// Length in bytes of the macsec check value (`icv`), and whether frames contain the id of their sender (`sci`).
    icv: Option<u8>,
    sci: Option<u8>,
}

impl Link<'_> {
    /// The bytes that the tunnel adds to packets, and its ends; `None` for ports that are not tunnels.
    pub fn tunnel(&self) -> Result<Option<Ends>, Malformed> {
        let Some(kind) = TunnelKind::named(&self.kind) else {
            return Ok(None);
        };
        let mut read = attributes_of(&self.kind, self.details)?;
        let known = |ip: IpAddr| (!ip.is_unspecified()).then_some(ip);
        read.ends.remote = read.ends.remote.and_then(known);
        read.ends.local = read.ends.local.and_then(known);
        let end = read.ends.remote.or(read.ends.local);
        let version = end.map(|ip| if ip.is_ipv4() { 4 } else { 6 });
        let frames = kind.frames && !read.bare;
        let mut tunnel = kind.tunnel(version, frames, besides(kind.name, &read));
        if kind.name == "macsec" {
            secured(&mut tunnel, &read);
        }
        tunnel.external = read.external;
        read.ends.tunnel = tunnel;
        Ok(Some(read.ends))
    }
}

fn attributes_of(kind: &str, details: &[u8]) -> Result<Attributes, Malformed> {
    let numbers = numbers(kind);
    let mut read = Attributes::default();
    for attribute in attributes(details) {
        let (number, value) = attribute?;
        let is = |wanted: u16| wanted > 0 && number == wanted;
        let is_end = |wanted: [u16; 2]| wanted.into_iter().any(is);
        if is(numbers.link) {
            read.ends.link = Some(u32_at(value, 0, WHAT)?).filter(|&index| index > 0);
        } else if is_end(numbers.remote) {
            read.ends.remote = Some(address(value, WHAT)?);
        } else if is_end(numbers.local) {
            read.ends.local = Some(address(value, WHAT)?);
        } else if is(numbers.external) {
            // A flag is an attribute without a value, or with one byte.
            read.external = value.first().is_none_or(|&set| set > 0);
        } else if is(numbers.bare) {
            read.bare = true;
        } else if is(numbers.gre) {
            // GRE flags are in network byte order.
            read.gre = u16::from_be(u16_at(value, 0, WHAT)?);
        } else if is(numbers.flags) && value.len() >= 4 {
            read.flags = u32_at(value, 0, WHAT)?;
        } else if is(numbers.encap) {
            read.encap = u16_at(value, 0, WHAT)?;
        } else if is(numbers.icv) {
            read.icv = value.first().copied();
        } else if is(numbers.sci) {
            read.sci = value.first().copied();
        }
    }
    Ok(read)
}

/// Bytes that options add to the usual headers of a kind; `None` if they have no known bound.
fn besides(kind: &str, read: &Attributes) -> Option<u32> {
    let gre = GRE_FLAGS.iter().filter(|flag| read.gre & **flag != 0);
    let gre = gre.count() as u32 * 4;
    let over_ipv6 = kind.starts_with("ip6");
    let limit = if over_ipv6 && read.flags & NO_LIMIT == 0 { LIMIT } else { 0 };
    // TUNNEL_ENCAP_FOU adds only the UDP header; TUNNEL_ENCAP_GUE adds 4 bytes more, or options of any length.
    //= include/uapi/linux/if_tunnel.h, enum tunnel_encap_types
    match read.encap {
        0 => Some(gre + limit),
        1 => Some(gre + limit + 8),
        _ => None,
    }
}

/// Sets the bytes that macsec adds to a frame: its tag, with or without the id of the sender, and a check value.
//= IEEE 802.1AE-2018, section 9.3: 8 bytes, 8 of the SCI; Linux drivers/net/macsec.c, macsec_extra_len
fn secured(tunnel: &mut Tunnel, read: &Attributes) {
    const TAG: u32 = 8;
    const NAME: u32 = 8;
    let icv = u32::from(read.icv.unwrap_or(16));
    let named = if read.sci == Some(0) { 0 } else { NAME };
    tunnel.least = Some(TAG + named + icv);
    // A tunnel with several senders always has the ids of the senders in its frames.
    tunnel.most = Some(TAG + NAME + icv);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::link::parse;
    use super::super::netlink::tests::{attr, msg};
    use super::*;

    fn reply(kind: &str, details: &[Vec<u8>]) -> Vec<u8> {
        let info = [attr(1, format!("{kind}\0").as_bytes()), attr(2, &details.concat())];
        msg(16, &[vec![0; 16], attr(18, &info.concat())].concat())
    }

    fn ends(kind: &str, details: &[Vec<u8>]) -> Option<Ends> {
        let reply = reply(kind, details);
        parse(&reply).next().unwrap().unwrap().tunnel().unwrap()
    }

    fn adds(kind: &str, details: &[Vec<u8>]) -> (Option<u32>, Option<u32>) {
        let tunnel = ends(kind, details).unwrap().tunnel;
        (tunnel.least, tunnel.most)
    }

    const V4: &[u8] = &[192, 0, 2, 1];
    const V6: &[u8] = &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

    #[test]
    fn the_outer_version_is_that_of_its_addresses() {
        let v4 = ends("vxlan", &[attr(2, V4), attr(3, &7u32.to_ne_bytes())]).unwrap();
        assert_eq!((v4.remote, v4.link), (Some([192, 0, 2, 1].into()), Some(7)));
        assert_eq!((v4.tunnel.least, v4.tunnel.version), (Some(50), Some(4)));
        let exactly = |bytes| (Some(bytes), Some(bytes));
        assert_eq!(adds("vxlan", &[attr(16, V6)]), exactly(70));
        assert_eq!(adds("vxlan", &[attr(17, V6)]), exactly(70), "its own");
        assert_eq!(adds("vxlan", &[]), (Some(50), Some(70)));
        assert_eq!(adds("vxlan", &[attr(2, &[0; 4])]), (Some(50), Some(70)), "no end");
        assert_eq!(adds("vxlan", &[attr(2, V4), attr(27, &[])]), exactly(36), "no frames");
        assert_eq!(adds("geneve", &[attr(7, V6)]), exactly(70));
        assert_eq!(adds("geneve", &[attr(2, V4), attr(14, &[])]), exactly(36));
        assert_eq!(ends("vlan", &[]), None);
    }

    #[test]
    fn options_are_counted() {
        let exactly = |bytes| (Some(bytes), Some(bytes));
        let flags = |flags: u16| vec![attr(3, &flags.to_be_bytes())];
        assert_eq!(adds("gre", &flags(0)), exactly(24));
        assert_eq!(adds("gre", &flags(0x2000)), exactly(28), "a key");
        assert_eq!(adds("gretap", &flags(0xb000)), exactly(50), "all three");
        let envelope = |kind: u16| [attr(15, &kind.to_ne_bytes())];
        assert_eq!(adds("ipip", &envelope(0)), exactly(20));
        assert_eq!(adds("ipip", &envelope(1)), exactly(28), "FOU");
        assert_eq!(adds("ipip", &envelope(2)), (Some(20), None), "GUE");
        let no_limit = NO_LIMIT.to_ne_bytes();
        assert_eq!(adds("ip6tnl", &[attr(8, &no_limit)]), exactly(40));
        assert_eq!(adds("ip6tnl", &[]), exactly(48));
        assert_eq!(adds("ip6gre", &[attr(13, &no_limit)]), exactly(44));
        assert_eq!(adds("wireguard", &[]), (Some(60), Some(80)));
        assert_eq!(adds("xfrm", &[]), (None, None));
        assert_eq!(adds("macsec", &[attr(3, &[16]), attr(9, &[1])]), exactly(32));
        assert_eq!(adds("macsec", &[attr(3, &[16]), attr(9, &[0])]), (Some(24), Some(32)));
    }

    #[test]
    fn whose_packets_others_send_on_is_known() {
        let external = |kind, number, value: &[u8]| {
            ends(kind, &[attr(number, value)]).unwrap().tunnel.external
        };
        assert!(external("vxlan", 25, &[1]) && !external("vxlan", 25, &[0]));
        assert!(external("geneve", 6, &[]) && external("gre", 18, &[]));
    }

    #[test]
    fn every_kind_with_attributes_is_a_kind_of_tunnel() {
        for (kind, _) in KINDS {
            assert!(TunnelKind::named(kind).is_some(), "{kind}");
            let (read, ends) = (read(kind), addresses(kind));
            assert!(!read.is_empty() && !read.contains(&0), "{kind}");
            assert!(!ends.contains(&0), "{kind}");
        }
        assert_eq!((read("macsec"), addresses("macsec")), (vec![3, 9], vec![]));
        assert_eq!((read("vlan"), addresses("vlan")), (vec![], vec![]));
    }

    proptest! {
        #[test]
        fn arbitrary_details_never_panic(kind in 0..KINDS.len(), bytes: Vec<u8>) {
            let reply = reply(KINDS[kind].0, &[bytes]);
            for link in parse(&reply).flatten() {
                let _ = link.tunnel();
            }
        }
    }
}
