//! The bytes that a tunnel adds to each packet.

use serde::{Deserialize, Serialize};

use super::Nic;
use linerate_ceiling::ethernet::{ETHERNET, GENEVE, GRE, IPIP, Ip, UDP, VLAN, VXLAN, WIREGUARD};

/// How many bytes a tunnel adds to packets, and how it was configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tunnel {
    /// Least number of bytes that the tunnel adds to an IP packet; `None` if unknown.
    pub least: Option<u32>,
    /// Largest number of bytes that the tunnel adds to an IP packet; `None` if no bound is known.
    pub most: Option<u32>,
    /// IP version of the outer header; `None` if there is no outer IP header, or if unknown.
    pub version: Option<u8>,
    /// Whether the tunnel carries Ethernet frames, which may have VLAN tags.
    pub frames: bool,
    /// Whether a program or a switch sets the destination of each packet (collect_md) and limits its size.
    pub external: bool,
    /// MTU of the route to the tunnel's other end, if it is smaller than the MTU of the port.
    pub route_mtu: Option<u32>,
}

/// IP version of the outer header of a kind of tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outer {
    V4,
    V6,
    Either,
    /// The outer headers contain no IP header.
    None,
}

/// A kind of port that wraps packets into other packets.
#[derive(Debug, Clone, Copy)]
pub struct TunnelKind {
    /// Name of the kind, as the kernel uses it.
    pub name: &'static str,
    outer: Outer,
    /// Bytes between the outer IP header and the inner packet or frame; `None` if a program or a policy decides.
    headers: Option<u32>,
    /// Whether the tunnel carries Ethernet frames.
    pub frames: bool,
}

const fn kind(name: &'static str, outer: Outer, headers: Option<u32>, frames: bool) -> TunnelKind {
    TunnelKind { name, outer, headers, frames }
}

/// All kinds of tunnels. The bytes include the UDP header.
//= RFC 4213 (sit); RFC 2473 (ip6tnl); Linux Documentation/networking/bareudp.rst; drivers/net/macsec.c, macsec_extra_len
const KINDS: [TunnelKind; 18] = [
    kind("vxlan", Outer::Either, Some(VXLAN), true),
    kind("geneve", Outer::Either, Some(GENEVE), true),
    kind("gre", Outer::V4, Some(GRE), false),
    kind("gretap", Outer::V4, Some(GRE), true),
    kind("ip6gre", Outer::V6, Some(GRE), false),
    kind("ip6gretap", Outer::V6, Some(GRE), true),
    kind("erspan", Outer::V4, None, true),
    kind("ip6erspan", Outer::V6, None, true),
    kind("ipip", Outer::V4, Some(IPIP), false),
    kind("sit", Outer::V4, Some(IPIP), false),
    kind("ip6tnl", Outer::V6, Some(IPIP), false),
    kind("wireguard", Outer::Either, Some(WIREGUARD), false),
    kind("bareudp", Outer::Either, Some(UDP), false),
    kind("macsec", Outer::None, Some(32), true),
    kind("xfrm", Outer::Either, None, false),
    kind("vti", Outer::V4, None, false),
    kind("vti6", Outer::V6, None, false),
    kind("tun", Outer::Either, None, false),
];

impl TunnelKind {
    /// The tunnel kind with this name, if there is one.
    pub fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// A tunnel of this kind. `besides` is what options add to the usual headers, in bytes; `None` if there is no known
    /// bound.
    pub fn tunnel(&self, version: Option<u8>, frames: bool, besides: Option<u32>) -> Tunnel {
        let known = match self.outer {
            Outer::V4 => Some(4),
            Outer::V6 => Some(6),
            Outer::Either => version,
            Outer::None => None,
        };
        let ip = match (self.outer, known) {
            (Outer::None, _) => [0, 0],
            (_, Some(6)) => [Ip::V6.header(); 2],
            (_, Some(_)) => [Ip::V4.header(); 2],
            (_, None) => Ip::ALL.map(Ip::header),
        };
        // A macsec port carries the same Ethernet frames as the port below, so only the additional bytes count.
        let frame = if frames && self.outer != Outer::None { ETHERNET } else { 0 };
        let added = self.headers.map(|headers| headers + frame);
        Tunnel {
            least: added.map(|added| added + ip[0] + besides.unwrap_or(0)),
            most: added.zip(besides).map(|(added, more)| added + ip[1] + more),
            version: known,
            frames,
            ..Tunnel::default()
        }
    }
}

impl Tunnel {
    /// The added bytes in words: `50 bytes of headers (vxlan over IPv4)`.
    pub fn words(&self, kind: &str) -> Option<String> {
        let least = self.least?;
        let over = match self.version {
            Some(version) => format!(" over IPv{version}"),
            None => String::new(),
        };
        let bytes = match self.most {
            Some(most) if most != least => format!("{least} to {most} bytes"),
            Some(_) => format!("{least} bytes"),
            None => format!("at least {least} bytes"),
        };
        Some(format!("{bytes} of headers ({kind}{over})"))
    }
}

/// Kinds of tunnels whose packets the kernel wraps, while the port below computes checksums and segments. Each may be
/// `external`: a program or a switch sets the destination of each packet, and limits its size.
const WRAPPING: [&str; 12] = [
    "vxlan",
    "geneve",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "erspan",
    "ip6erspan",
    "ipip",
    "sit",
    "ip6tnl",
    "bareudp",
];

/// Kinds of tunnels that wrap each packet into a UDP datagram.
const OVER_UDP: [&str; 4] = ["vxlan", "geneve", "bareudp", "wireguard"];

/// Whether a port's name is one that Open vSwitch or Cilium gives its tunnels, all of which are `external`.
//= Open vSwitch, lib/netdev-vport.c: genev_sys_6081, vxlan_sys_4789, gre_sys; Cilium, pkg/defaults: cilium_vxlan
fn is_of_switch(name: &str) -> bool {
    name.contains("_sys_") || name.ends_with("_sys") || name.starts_with("cilium_")
}

impl Nic {
    /// Whether the port is a tunnel that leaves checksums and segmentation of its packets to the port below.
    pub fn is_wrapping(&self) -> bool {
        WRAPPING.contains(&self.kind.as_str())
    }

    /// Whether the port is a tunnel that wraps each packet into a UDP datagram, because of its kind or by FOU or GUE.
    pub fn is_over_udp(&self) -> bool {
        let (kind, reported) = (TunnelKind::named(&self.kind), self.stack.tunnel.as_ref());
        let usual = |(kind, reported): (&TunnelKind, &Tunnel)| {
            kind.tunnel(reported.version, reported.frames, None).least
        };
        let more =
            kind.zip(reported).and_then(usual).zip(reported.and_then(|reported| reported.least));
        let has_header = more.is_some_and(|(usual, least)| least >= usual.saturating_add(UDP));
        OVER_UDP.contains(&self.kind.as_str()) || self.is_wrapping() && has_header
    }

    /// Whether a program or a switch sets the destination of each packet of the tunnel, and limits its size; `None` if
    /// that is unknown, as in a tree of files.
    pub fn is_led(&self) -> Option<bool> {
        let reported = self.stack.tunnel.as_ref().map(|tunnel| tunnel.external);
        match reported {
            _ if is_of_switch(&self.name) => Some(true),
            None if self.is_wrapping() => None,
            reported => Some(reported == Some(true)),
        }
    }

    /// The bytes that the tunnel adds to packets; `None` for other ports. If an older record lacks them, they are those
    /// of this kind of tunnel over IPv4.
    pub fn tunnel(&self) -> Option<Tunnel> {
        let usual = |kind: &TunnelKind| kind.tunnel(Some(4), kind.frames, Some(0));
        let read = self.stack.tunnel.clone();
        read.or_else(|| TunnelKind::named(&self.kind).map(usual))
    }

    /// Whether the port is a tunnel.
    pub fn is_tunnel(&self) -> bool {
        TunnelKind::named(&self.kind).is_some()
    }
}

/// A packet that is too large for the port below a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overflow<'a> {
    /// The tunnel that wraps the packet.
    pub tunnel: &'a Nic,
    /// The port below the tunnel.
    pub carrier: &'a Nic,
    /// Bytes of the packet with all headers, including those of the tunnel.
    pub outer: u32,
    /// Largest packet in bytes that the port below, or the route from it, carries.
    pub room: u32,
    /// The largest packet at the top of the stack that certainly fits; `None` if the headers have no known bound.
    pub fits: Option<u32>,
}

/// The first tunnel in a stack of ports, from the top, whose wrapped packet no longer fits the port below, if a packet
/// has `size` bytes at the top. VLAN tags above a tunnel that carries frames are inside the tunnel.
pub fn overflow<'a>(chain: &[&'a Nic], size: u32) -> Option<Overflow<'a>> {
    let (mut least, mut most, mut tags) = (0u32, Some(0u32), 0u32);
    for (at, nic) in chain.iter().enumerate() {
        if nic.kind == "vlan" {
            tags = tags.saturating_add(VLAN);
        }
        let Some(tunnel) = nic.tunnel() else {
            continue;
        };
        let inside = if tunnel.frames { tags } else { 0 };
        tags = 0;
        let added = tunnel.least.filter(|_| !tunnel.external)?;
        least = least.saturating_add(added).saturating_add(inside);
        most = most
            .zip(tunnel.most)
            .map(|(sum, most)| sum.saturating_add(most).saturating_add(inside));
        let carrier = *chain.get(at + 1)?;
        let route = tunnel.route_mtu.unwrap_or(u32::MAX);
        let room = carrier.mtu?.min(route);
        let outer = size.saturating_add(least);
        if outer > room {
            return Some(Overflow {
                tunnel: nic,
                carrier,
                outer,
                room,
                fits: most.and_then(|most| room.checked_sub(most)),
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adds(name: &str, version: Option<u8>) -> (Option<u32>, Option<u32>) {
        let kind = TunnelKind::named(name).unwrap();
        let tunnel = kind.tunnel(version, kind.frames, Some(0));
        (tunnel.least, tunnel.most)
    }

    #[test]
    fn headers_by_kind_and_outer_version() {
        let exactly = |bytes| (Some(bytes), Some(bytes));
        for (kind, version, want) in [
            ("vxlan", Some(4), exactly(50)),
            ("vxlan", Some(6), exactly(70)),
            ("vxlan", None, (Some(50), Some(70))),
            ("geneve", Some(6), exactly(70)),
            ("gre", None, exactly(24)),
            ("gretap", None, exactly(38)),
            ("ip6gre", None, exactly(44)),
            ("ip6gretap", None, exactly(58)),
            ("ipip", None, exactly(20)),
            ("sit", None, exactly(20)),
            ("ip6tnl", None, exactly(40)),
            ("wireguard", None, (Some(60), Some(80))),
            ("bareudp", None, (Some(28), Some(48))),
            ("macsec", None, exactly(32)),
            ("xfrm", None, (None, None)),
            ("tun", None, (None, None)),
        ] {
            assert_eq!(adds(kind, version), want, "{kind} {version:?}");
        }
        assert!(TunnelKind::named("vlan").is_none());
        let geneve = TunnelKind::named("geneve").unwrap();
        let open = geneve.tunnel(Some(4), true, None);
        assert_eq!((open.least, open.most), (Some(50), None));
    }

    fn nic(kind: &str, mtu: u32) -> Nic {
        Nic { name: format!("{kind}0"), kind: kind.to_owned(), mtu: Some(mtu), ..Nic::default() }
    }

    /// If a packet of `size` bytes at the top does not fit: its bytes with all headers, the largest that fits below,
    /// and the largest at the top that would fit.
    fn over(chain: &[Nic], size: u32) -> Option<(u32, u32, Option<u32>)> {
        let chain: Vec<&Nic> = chain.iter().collect();
        overflow(&chain, size).map(|over| (over.outer, over.room, over.fits))
    }

    #[test]
    fn tunnels_over_udp_are_told_by_kind_and_by_their_headers() {
        let over = |kind: &str, besides: Option<u32>| {
            let mut nic = nic(kind, 1400);
            let tunnel = |kind: &TunnelKind| kind.tunnel(Some(4), kind.frames, besides);
            nic.stack.tunnel = TunnelKind::named(kind).map(tunnel);
            nic.is_over_udp()
        };
        assert!(over("vxlan", Some(0)) && over("wireguard", Some(0)));
        assert!(over("ipip", Some(8)), "FOU");
        assert!(!over("ipip", Some(7)) && !over("gre", Some(4)), "a key");
        assert!(!over("xfrm", None) && !over("vlan", None));
        assert!(!nic("ipip", 1400).is_over_udp() && nic("geneve", 1400).is_over_udp());
    }

    #[test]
    fn who_leads_a_tunnel_is_told_by_the_kernel_or_by_its_name() {
        let led = |kind: &str, name: &str, external: Option<bool>| {
            let mut nic = nic(kind, 1500);
            name.clone_into(&mut nic.name);
            nic.stack.tunnel = external.map(|external| Tunnel { external, ..Tunnel::default() });
            nic.is_led()
        };
        assert_eq!(led("vxlan", "vx0", None), None);
        assert_eq!(led("vxlan", "vx0", Some(true)), Some(true));
        assert_eq!(led("vxlan", "vx0", Some(false)), Some(false));
        for name in ["genev_sys_6081", "vxlan_sys_4789", "gre_sys", "cilium_vxlan"] {
            assert_eq!(led("geneve", name, None), Some(true), "{name}");
        }
        assert_eq!(led("wireguard", "wg0", None), Some(false));
        assert_eq!(led("", "eth0", None), Some(false));
    }

    #[test]
    fn one_byte_decides() {
        for (kind, adds) in [("vxlan", 50), ("gre", 24), ("ip6tnl", 40), ("macsec", 32)] {
            let chain = [nic(kind, 9000), nic("", 1500)];
            let fits = 1500 - adds;
            assert_eq!(over(&chain, fits), None, "{kind}");
            assert_eq!(over(&chain, fits + 1), Some((1501, 1500, Some(fits))), "{kind}");
        }
        assert_eq!(over(&[nic("tun", 1500), nic("", 1500)], 1500), None, "who knows");
        assert_eq!(over(&[nic("vxlan", 1500)], 1500), None, "on what?");
        assert_eq!(over(&[nic("vlan", 1500), nic("", 1500)], 1500), None);
    }

    #[test]
    fn a_tunnel_in_a_tunnel_adds_both_and_a_tag_inside_counts() {
        let nested = [nic("vxlan", 1400), nic("gre", 1476), nic("", 1500)];
        assert_eq!(over(&nested, 1426), None);
        assert_eq!(over(&nested, 1427), Some((1477, 1476, Some(1426))), "the inner one");
        let lower = [nic("vxlan", 1400), nic("gre", 1500), nic("", 1500)];
        assert_eq!(over(&lower, 1427), Some((1501, 1500, Some(1426))), "the outer one");
        let tagged = [nic("vlan", 1450), nic("vxlan", 1450), nic("", 1500)];
        assert_eq!(over(&tagged, 1446), None);
        assert_eq!(over(&tagged, 1447), Some((1501, 1500, Some(1446))));
        let packets = [nic("vlan", 1450), nic("gre", 1476), nic("", 1500)];
        assert_eq!(over(&packets, 1476), None, "it carries no frames");
        let below = [nic("vxlan", 1450), nic("vlan", 1500), nic("", 1500)];
        assert_eq!(over(&below, 1450), None, "a tag outside has room of its own");
    }

    #[test]
    fn sizes_of_a_record_that_nothing_has_do_not_overflow() {
        let mut vxlan = nic("vxlan", u32::MAX);
        vxlan.stack.tunnel = Some(Tunnel {
            least: Some(u32::MAX),
            most: Some(u32::MAX),
            frames: true,
            ..Tunnel::default()
        });
        let chain = [nic("vlan", u32::MAX), vxlan.clone(), vxlan, nic("", u32::MAX)];
        assert_eq!(over(&chain, u32::MAX), None, "as large as the room");
        let small = [chain[0].clone(), chain[1].clone(), nic("", 1500)];
        assert_eq!(over(&small, 1500), Some((u32::MAX, 1500, None)));
    }

    #[test]
    fn what_the_route_carries_and_who_else_decides() {
        let mut vxlan = nic("vxlan", 1450);
        let read = |tunnel: Tunnel| Tunnel { least: Some(50), most: Some(50), ..tunnel };
        vxlan.stack.tunnel = Some(read(Tunnel { route_mtu: Some(1400), ..Tunnel::default() }));
        let chain = [vxlan.clone(), nic("", 1500)];
        assert_eq!(over(&chain, 1351), Some((1401, 1400, Some(1350))));
        vxlan.stack.tunnel = Some(read(Tunnel { external: true, ..Tunnel::default() }));
        assert_eq!(over(&[vxlan, nic("", 1500)], 65_000), None);
    }
}
