//! RDMA over Ethernet (RoCE).

use super::Packet;
use super::ethernet::{self, Ip};
use super::infiniband::{GLOBAL_ROUTE, MTUS, Request, whole};

/// Bytes of the base transport header (12) and of the invariant check (4).
//= InfiniBand Architecture Specification 1.4, volume 1, annexes A16 and A17
const TRANSPORT: u32 = 12 + 4;
/// Bytes that drivers reserve in addition to the payload when they choose the RoCE MTU: global route header 40, UDP
/// 8, base transport header 12, extended header 4, atomic header 28, check 4.
//= Linux, include/rdma/ib_addr.h, iboe_get_mtu
pub const RESERVED: u32 = 40 + 8 + 12 + 4 + 28 + 4;

/// Version of RoCE: what its packets are wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// RoCE directly in Ethernet frames.
    V1,
    /// RoCE over UDP and this version of IP.
    V2(Ip),
}

/// Bytes on the wire in addition to the payload, for a packet in the middle of a message.
pub const fn overhead(version: Version, vlans: u32) -> u32 {
    let network = match version {
        // RoCE v1 has a global route header instead of an IP header.
        Version::V1 => GLOBAL_ROUTE,
        Version::V2(ip) => ip.header() + ethernet::UDP,
    };
    ethernet::wire(TRANSPORT + network, vlans)
}

/// Payload bytes of a packet over Ethernet with this MTU; `None` if not even the smallest InfiniBand MTU fits.
pub fn payload(mtu: u32) -> Option<u32> {
    let room = mtu.checked_sub(RESERVED)?;
    MTUS.into_iter().rev().find(|size| *size <= room)
}

/// Full packets of large messages, with any of the given Ethernet MTUs and RoCE versions.
pub fn packet(mtus: &[u32], versions: &[Version], vlans: u32) -> Option<Packet> {
    let mut kinds = Vec::new();
    for mtu in mtus {
        let payload = payload(*mtu)?;
        kinds.extend(versions.iter().map(|v| (payload, payload + overhead(*v, vlans))));
    }
    Packet::any(&kinds)
}

/// All packets of an RDMA request, added up as one packet. `None` if the request has no payload, or if `mtu` is zero.
pub fn message(request: Request, mtu: u32, version: Version, vlans: u32) -> Option<Packet> {
    whole(request, mtu, overhead(version, vlans))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_what_is_published() {
        for (mtu, gbps, published) in
            [(1500, 100.0, 92.59), (2200, 100.0, 96.15), (4200, 100.0, 98.04), (4200, 400.0, 392.2)]
        {
            let packet = packet(&[mtu], &[Version::V2(Ip::V4)], 0).unwrap();
            let got = gbps / packet.wire_per_byte.low();
            assert!((got / published - 1.0).abs() < 2e-4, "{mtu}: {got}");
        }
    }

    #[test]
    fn headers_add_up() {
        assert_eq!(overhead(Version::V2(Ip::V4), 0), 82);
        assert_eq!(overhead(Version::V2(Ip::V6), 0), 102);
        assert_eq!(overhead(Version::V2(Ip::V4), 1), 86);
        assert_eq!(overhead(Version::V1, 0), 94);
    }

    #[test]
    fn the_size_of_packets_follows_the_mtu_of_ethernet() {
        for (mtu, size) in [(1500, 1024), (4191, 2048), (4192, 4096), (9000, 4096), (352, 256)] {
            assert_eq!(payload(mtu), Some(size), "{mtu}");
        }
        assert_eq!(payload(351), None);
        assert_eq!(payload(0), None);
    }
}
