//! Ethernet: the share of the line rate that remains for payload of TCP and UDP.

use super::{Bounds, Packet};

/// Bytes of a frame beyond its MTU: preamble 8, header 14, check sequence 4, gap 12.
//= IEEE 802.3-2022, sections 3.1.1 and 4.4.2
const FRAME: u32 = 8 + ETHERNET + 4 + 12;
/// Bytes of the header of a frame.
//= IEEE 802.3-2022, section 3.1.1
pub const ETHERNET: u32 = 14;
/// Bytes of a VLAN tag.
//= IEEE 802.1Q-2022, sections 9.3 and 9.6
pub const VLAN: u32 = 4;
/// Bytes of a TCP header without options.
//= RFC 9293, section 3.1
const TCP: u32 = 20;
/// Bytes that TCP timestamps use in each segment, padding included.
//= RFC 7323, appendix A
const TIMESTAMPS: u32 = 12;
/// Bytes of a UDP header.
//= RFC 768
pub const UDP: u32 = 8;

/// Bytes that VXLAN puts between the outer IP header and the inner frame.
//= RFC 7348, section 5
pub const VXLAN: u32 = UDP + 8;
/// Bytes that Geneve without options puts between the outer IP header and the inner frame.
//= RFC 8926, sections 3 and 3.4
pub const GENEVE: u32 = UDP + 8;
/// Bytes that GRE without options puts between the outer IP header and the inner packet.
//= RFC 2784, section 2.1
pub const GRE: u32 = 4;
/// Bytes that IP in IP puts between the outer IP header and the inner packet.
//= RFC 2003, section 3
pub const IPIP: u32 = 0;
/// Bytes that WireGuard puts between the outer IP header and the inner packet: a header and the check value
/// of Poly1305.
//= WireGuard white paper, section 5.4.6
pub const WIREGUARD: u32 = UDP + 16 + 16;

/// Version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ip {
    /// IPv4, with a header of 20 bytes.
    V4,
    /// IPv6, with a header of 40 bytes.
    V6,
}

impl Ip {
    /// Both versions of IP.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Bytes of the IP header without options.
    //= RFC 791, section 3.1; RFC 8200, section 3
    pub const fn header(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// The transport protocol that carries the payload inside IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP with or without timestamps.
    Tcp {
        /// Whether each segment carries timestamps.
        timestamps: bool,
    },
    /// UDP datagrams that fill the packet.
    Udp,
}

impl Transport {
    /// Bytes of the header of TCP or UDP.
    pub const fn header(self) -> u32 {
        match self {
            Self::Tcp { timestamps: true } => TCP + TIMESTAMPS,
            Self::Tcp { timestamps: false } => TCP,
            Self::Udp => UDP,
        }
    }
}

/// A kind of tunnel. Its header bytes are those over IPv4; over IPv6 a tunnel needs 20 bytes more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tunnel {
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve (RFC 8926), without options.
    Geneve,
    /// GRE (RFC 2784), without key and checksum.
    Gre,
    /// IP in IP (RFC 2003).
    IpIp,
    /// WireGuard, for its transport data messages.
    WireGuard,
}

impl Tunnel {
    /// Names of the kinds of tunnel as users type them.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("vxlan", Self::Vxlan),
        ("geneve", Self::Geneve),
        ("gre", Self::Gre),
        ("ipip", Self::IpIp),
        ("wireguard", Self::WireGuard),
    ];

    /// Bytes that a tunnel takes from the outer MTU, its outer IPv4 header included: the rest is the inner packet.
    pub const fn header(self) -> u32 {
        let inside = match self {
            Self::Vxlan => VXLAN + ETHERNET,
            Self::Geneve => GENEVE + ETHERNET,
            Self::Gre => GRE,
            Self::IpIp => IPIP,
            Self::WireGuard => WIREGUARD,
        };
        Ip::V4.header() + inside
    }
}

/// Bytes that a full frame takes on the wire, with preamble and gap.
pub const fn wire(mtu: u32, vlans: u32) -> u32 {
    mtu.saturating_add(FRAME + VLAN * vlans)
}

/// Payload bytes of a full packet; zero if the MTU holds no payload.
pub fn payload(mtu: u32, ip: Ip, transport: Transport, tunnel: Option<Tunnel>) -> u32 {
    let around = tunnel.map_or(0, Tunnel::header);
    mtu.saturating_sub(around + ip.header() + transport.header())
}

/// Full packets of every possible combination of MTU, version of IP and transport. `None` if one of them has no
/// payload.
pub fn packet(
    mtus: &[u32],
    ips: &[Ip],
    transports: &[Transport],
    vlans: u32,
    tunnel: Option<Tunnel>,
) -> Option<Packet> {
    let mut kinds = Vec::new();
    for mtu in mtus {
        for ip in ips {
            for transport in transports {
                kinds.push((payload(*mtu, *ip, *transport, tunnel), wire(*mtu, vlans)));
            }
        }
    }
    Packet::any(&kinds)
}

/// Full packets of a known size, with `payload` bytes of payload each.
pub fn sized(payload: u32, mtu: u32, vlans: u32) -> Packet {
    Packet::sized(payload, wire(mtu, vlans))
}

/// Bytes of a frame that a card moves to memory or from it: check sequence, preamble and gap never leave the card.
pub fn frame(mtu: u32, vlans: u32) -> f64 {
    f64::from(mtu) + f64::from(ETHERNET + VLAN * vlans)
}

/// Capacity of a port in bytes per second.
pub fn capacity(bits_per_second: f64) -> Bounds {
    Bounds::exact(bits_per_second / 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMPED: Transport = Transport::Tcp { timestamps: true };
    const PLAIN: Transport = Transport::Tcp { timestamps: false };

    /// Goodput in Mb/s of a port with a line rate of `mbps`.
    fn goodput(mbps: f64, mtu: u32, ip: Ip, transport: Transport) -> f64 {
        let packet = packet(&[mtu], &[ip], &[transport], 0, None).unwrap();
        mbps / packet.wire_per_byte.low()
    }

    #[test]
    fn goodput_is_what_is_published() {
        for (mbps, mtu, transport, published) in [
            (1e3, 1500, PLAIN, 949.3),
            (1e3, 1500, STAMPED, 941.5),
            (1e4, 1500, STAMPED, 9415.0),
            (1e4, 9000, STAMPED, 9900.0),
            (1e3, 1500, Transport::Udp, 957.1),
        ] {
            let got = goodput(mbps, mtu, Ip::V4, transport);
            assert!((got / published - 1.0).abs() < 1e-4, "{got} {published}");
        }
        let v6 = goodput(1e3, 1500, Ip::V6, STAMPED);
        assert!((v6 - 928.5).abs() < 0.1, "{v6}");
    }

    #[test]
    fn tags_and_tunnels_take_their_bytes() {
        assert_eq!(wire(1500, 0), 1538);
        assert_eq!(wire(1500, 2), 1546);
        let inside = |tunnel| payload(1500, Ip::V4, PLAIN, Some(tunnel));
        assert_eq!(inside(Tunnel::Vxlan), 1410);
        assert_eq!(inside(Tunnel::Gre), 1436);
        assert_eq!(inside(Tunnel::WireGuard), 1400);
    }

    #[test]
    fn what_is_not_known_makes_an_interval_with_the_known_cases_at_its_ends() {
        let open = packet(&[1500], &[Ip::V4], &[PLAIN, STAMPED], 0, None).unwrap();
        assert_eq!(open.words, "1448/1538 to 1460/1538");
        assert_eq!(open.payload, Bounds::new(1448.0, 1460.0));
        let known = packet(&[1500], &[Ip::V4], &[PLAIN], 0, None).unwrap();
        assert_eq!(known.words, "1460/1538");
        assert!(known.wire_per_byte.is_exact());
    }

    #[test]
    fn a_packet_without_room_for_payload_is_none() {
        assert_eq!(packet(&[40], &[Ip::V4], &[PLAIN], 0, None), None);
        assert!(packet(&[41], &[Ip::V4], &[PLAIN], 0, None).is_some());
        assert_eq!(packet(&[], &[Ip::V4], &[PLAIN], 0, None), None);
    }
}
