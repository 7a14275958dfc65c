//! The packets that are sent on the path of a case, as far as the case specifies them.

use super::{Case, CaseError, Protocol};
use linerate_ceiling::ethernet::{self, Ip, Transport};
use linerate_ceiling::infiniband::{self, MTUS};
use linerate_ceiling::roce::{self, Version};
use linerate_ceiling::{Link, Packet};

/// MTUs of Ethernet that are considered if none is given: that of the standard, and the largest in common use.
const ETHERNET_MTUS: [u32; 2] = [1500, 9000];
/// MTUs of IP over InfiniBand that are considered if none is given: the smallest of datagram mode, and that of
/// connected mode.
//= RFC 4391, section 7; RFC 4755
const IPOIB_MTUS: [u32; 2] = [2044, 65_520];

/// The sizes of the packets on the path, with their headers.
pub(super) fn packet(case: &Case) -> Result<Packet, CaseError> {
    let ports = [&case.near.port, &case.far.port];
    let ips = case.ip.map_or(Ip::ALL.to_vec(), |ip| vec![ip]);
    let mtu = ports.iter().filter_map(|p| p.mtu).min();
    let links = ports.iter().filter_map(|p| p.link);
    let on_infiniband = links.into_iter().any(Link::is_infiniband);
    let vlans = case.net.vlans.unwrap_or(0);
    let known = |mtu: Option<u32>, all: &[u32]| mtu.map_or(all.to_vec(), |m| vec![m]);
    let copies = case.protocol.copies();
    let found = if on_infiniband && copies {
        let ip_mtu = ports.iter().filter_map(|p| p.ip_mtu).min();
        let ip_mtus = known(ip_mtu, &IPOIB_MTUS);
        infiniband::ipoib(&known(mtu, &MTUS), &ip_mtus, &ips, &transports(case))
    } else if on_infiniband {
        infiniband::rdma(&known(mtu, &MTUS))
    } else if copies {
        let mtus = known(mtu, &ETHERNET_MTUS);
        ethernet::packet(&mtus, &ips, &transports(case), vlans, case.net.tunnel)
    } else {
        let versions = versions(case.protocol, &ips);
        roce::packet(&known(mtu, &ETHERNET_MTUS), &versions, vlans)
    };
    found.ok_or_else(|| CaseError("the MTU leaves no room for payload".to_owned()))
}

fn transports(case: &Case) -> Vec<Transport> {
    if case.protocol == Protocol::Udp {
        return vec![Transport::Udp];
    }
    let with = |timestamps| Transport::Tcp { timestamps };
    case.timestamps.map_or(vec![with(false), with(true)], |t| vec![with(t)])
}

fn versions(protocol: Protocol, ips: &[Ip]) -> Vec<Version> {
    let second = ips.iter().map(|ip| Version::V2(*ip));
    match protocol {
        Protocol::RoceV1 => vec![Version::V1],
        Protocol::RoceV2 => second.collect(),
        _ => second.chain([Version::V1]).collect(),
    }
}
