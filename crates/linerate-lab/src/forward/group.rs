//! Groups of TCP segments that pass as one frame, and how they are split.
//!
//! A frame begins with the kernel's offload header (`struct virtio_net_hdr`, linux/virtio_net.h), in the byte order of
//! the machine. Lengths inside a frame are checked before they are used.

use std::ops::Range;

use linerate_sys::packet::OFFLOAD_HEADER;

/// Size of an Ethernet header in bytes.
pub(super) const ETHERNET: usize = 14;
const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
/// `VIRTIO_NET_HDR_GSO_ECN`, a flag that is set in addition to `GSO_TCP4` or `GSO_TCP6`.
const GSO_ECN: u8 = 0x80;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;
/// ICMPv6 types of router and neighbour discovery (RFC 4861).
const DISCOVERY: Range<u8> = 133..138;

/// The packets in a frame, and where their headers and payload are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// Number of packets on the wire; one if the frame is not a group.
    pub(super) packets: usize,
    /// Hash of the addresses and ports of a TCP or UDP flow; `None` for other packets.
    pub(super) flow: Option<u64>,
    /// Whether the path cannot work without this frame: ARP or neighbour discovery.
    pub(super) vital: bool,
    /// Size of each packet's headers in bytes, including Ethernet.
    headers: usize,
    /// Total payload of the frame, in bytes.
    payload: usize,
    /// Payload of each packet except the last, in bytes.
    size: usize,
    /// Offset of the TCP header from the start of the frame.
    tcp: usize,
}

impl Group {
    /// Parses an offload header and the frame after it.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let frame = bytes.get(OFFLOAD_HEADER..).unwrap_or_default();
        let mut group = Self {
            packets: 1,
            flow: None,
            vital: true,
            headers: frame.len(),
            payload: 0,
            size: 0,
            tcp: 0,
        };
        let Some((protocol, at, addresses)) = network(frame) else {
            return group;
        };
        let kind = frame.get(at).copied().unwrap_or(0);
        group.vital = protocol == ICMP6 && DISCOVERY.contains(&kind);
        if protocol != TCP && protocol != UDP {
            return group;
        }
        let ports = frame.get(at..at + 4).unwrap_or_default();
        group.flow = Some(hash(addresses, ports));
        group.tcp = at;
        if protocol == TCP {
            group.divide(bytes, frame);
        }
        group
    }

    /// Finds the segments of a TCP frame with an offload header.
    fn divide(&mut self, bytes: &[u8], frame: &[u8]) {
        let size = usize::from(half(bytes, 4));
        let options = frame.get(self.tcp + 12).map(|b| usize::from(b >> 4) * 4);
        let Some(headers) = options.map(|length| self.tcp + length) else {
            return;
        };
        let grouped = matches!(bytes[1] & !GSO_ECN, GSO_TCP4 | GSO_TCP6);
        if !grouped || size == 0 || headers < self.tcp + 20 || headers >= frame.len() {
            return;
        }
        self.headers = headers;
        self.payload = frame.len() - headers;
        self.size = size;
        self.packets = self.payload.div_ceil(size);
    }

    /// Returns the size of packet `number` on the wire, in bytes of Ethernet frame without checksum.
    pub(super) fn bytes(&self, number: usize) -> usize {
        let before = number.saturating_mul(self.size).min(self.payload);
        self.headers + (self.payload - before).min(self.size)
    }

    /// Returns the size of all packets on the wire, in bytes.
    pub(super) const fn all_bytes(&self) -> usize {
        self.headers * self.packets + self.payload
    }

    /// Writes the packets in `part` as a frame of their own into `into`.
    pub(super) fn cut(&self, bytes: &[u8], part: &Range<usize>, into: &mut Vec<u8>) {
        let payload = OFFLOAD_HEADER + self.headers;
        let end = part.end.saturating_mul(self.size).min(self.payload);
        let start = part.start.saturating_mul(self.size).min(end);
        into.clear();
        into.extend_from_slice(&bytes[..payload]);
        into.extend_from_slice(&bytes[payload + start..payload + end]);
        if part.len() == 1 {
            into[1] = 0;
            put(into, 4, 0);
        }
        // With this flag the kernel completes the checksum: the field contains the sum of the pseudo header.
        into[0] = NEEDS_CHECKSUM;
        into[6..8].copy_from_slice(&(self.tcp as u16).to_ne_bytes());
        into[8..10].copy_from_slice(&16_u16.to_ne_bytes());
        let frame = &mut into[OFFLOAD_HEADER..];
        self.readdress(frame, part, start as u32);
    }

    /// Corrects the lengths, sequence numbers, flags and checksums in the frame of a part.
    fn readdress(&self, frame: &mut [u8], part: &Range<usize>, start: u32) {
        let at = self.tcp;
        let length = (frame.len() - at) as u16;
        let sequence = word(frame, at + 4).wrapping_add(start);
        frame[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
        if part.end < self.packets {
            frame[at + 13] &= !(FIN | PSH);
        }
        if part.start > 0 {
            frame[at + 13] &= !CWR;
        }
        let addresses = if frame[ETHERNET] >> 4 == 4 {
            let total = (frame.len() - ETHERNET) as u16;
            frame[16..18].copy_from_slice(&total.to_be_bytes());
            let number = big(frame, 18).wrapping_add(part.start as u16);
            frame[18..20].copy_from_slice(&number.to_be_bytes());
            frame[24..26].fill(0);
            let sum = !sum(&frame[ETHERNET..at], 0);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            26..34
        } else {
            let after = (frame.len() - ETHERNET - 40) as u16;
            frame[18..20].copy_from_slice(&after.to_be_bytes());
            22..54
        };
        let pseudo = sum(&frame[addresses], u32::from(TCP) + u32::from(length));
        frame[at + 16..at + 18].copy_from_slice(&pseudo.to_be_bytes());
    }
}

/// Returns the protocol above IP, its offset, and the addresses. `None` for other packets, for fragments, and for
/// truncated headers.
fn network(frame: &[u8]) -> Option<(u8, usize, &[u8])> {
    match frame.get(12..ETHERNET)? {
        [0x08, 0x00] => {
            let header = usize::from(frame.get(ETHERNET)? & 0x0f) * 4;
            let whole = header >= 20 && frame.len() >= ETHERNET + header;
            whole.then(|| (frame[23], ETHERNET + header, &frame[26..34]))
        }
        // A packet with IPv6 extension headers, which no program here sends, counts as one of another protocol.
        [0x86, 0xdd] => (frame.len() >= 54).then(|| (frame[20], 54, &frame[22..54])),
        _ => None,
    }
}

/// Returns the hash of a flow by FNV-1a (Fowler, Noll, Vo), 64 bits.
fn hash(addresses: &[u8], ports: &[u8]) -> u64 {
    let mix = |all: u64, byte: &u8| (all ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let all = addresses.iter().chain(ports);
    all.fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Returns the ones' complement sum of RFC 1071 before the inversion.
fn sum(bytes: &[u8], start: u32) -> u16 {
    let pairs = bytes.chunks(2);
    let add = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum = start + pairs.map(add).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Reads two bytes in the byte order of the machine.
fn half(bytes: &[u8], at: usize) -> u16 {
    let two = bytes.get(at..at + 2).and_then(|b| b.try_into().ok());
    two.map_or(0, u16::from_ne_bytes)
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
}

fn big(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(big(bytes, at)) << 16 | u32::from(big(bytes, at + 2))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A group of TCP over IPv4 with `payload` bytes, whose values count up, in segments of `size` bytes.
    pub(in super::super) fn group(payload: usize, size: u16, port: u16) -> Vec<u8> {
        let mut bytes = vec![0; OFFLOAD_HEADER + ETHERNET + 20 + 20];
        bytes[0] = NEEDS_CHECKSUM;
        bytes[1] = GSO_TCP4;
        put(&mut bytes, 4, size);
        let frame = &mut bytes[OFFLOAD_HEADER..];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
        frame[23] = TCP;
        frame[26..34].copy_from_slice(&[10, 77, 1, 2, 10, 77, 2, 2]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[38..42].copy_from_slice(&0xffff_fff0_u32.to_be_bytes());
        frame[46] = 5 << 4;
        frame[47] = FIN | PSH | CWR;
        bytes.extend((0..payload).map(|n| n as u8));
        bytes
    }

    fn sequence(bytes: &[u8]) -> u32 {
        word(&bytes[OFFLOAD_HEADER..], 38)
    }

    proptest! {
        /// The parts of a group contain all of it, in order, each with its own checksums and lengths.
        #[test]
        fn parts_make_up_the_whole(
            payload in 1_usize..20_000, size in 1_u16..3_000, at in any::<prop::sample::Index>(),
        ) {
            let bytes = group(payload, size, 1);
            let whole = Group::read(&bytes);
            prop_assert_eq!(whole.packets, payload.div_ceil(usize::from(size)));
            let middle = at.index(whole.packets + 1);
            let mut joined = Vec::new();
            let mut wire = 0;
            for part in [0..middle, middle..whole.packets] {
                if part.is_empty() {
                    continue;
                }
                let mut own = Vec::new();
                whole.cut(&bytes, &part, &mut own);
                let frame = &own[OFFLOAD_HEADER..];
                let start = part.start as u32 * u32::from(size);
                prop_assert_eq!(sequence(&own), 0xffff_fff0_u32.wrapping_add(start));
                prop_assert_eq!(usize::from(big(frame, 16)), frame.len() - ETHERNET);
                prop_assert_eq!(sum(&frame[14..34], 0), 0xffff);
                prop_assert_eq!(frame[47] & CWR != 0, part.start == 0);
                prop_assert_eq!(frame[47] & FIN != 0, part.end == whole.packets);
                let read = Group::read(&own);
                prop_assert_eq!(read.packets, part.len());
                prop_assert_eq!(read.flow, whole.flow);
                wire += part.map(|number| whole.bytes(number)).sum::<usize>();
                joined.extend_from_slice(&frame[54..]);
            }
            prop_assert_eq!(wire, whole.all_bytes());
            prop_assert_eq!(&joined[..], &bytes[OFFLOAD_HEADER + 54..]);
        }

        #[test]
        fn any_bytes_are_read_and_cut(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let group = Group::read(&bytes);
            if group.packets > 1 {
                group.cut(&bytes, &(0..1), &mut Vec::new());
            }
            group.bytes(usize::MAX);
        }
    }

    #[test]
    fn what_is_not_ip_is_vital_and_no_flow() {
        let mut bytes = group(100, 10, 1);
        assert!(!Group::read(&bytes).vital);
        bytes[OFFLOAD_HEADER + 13] = 6;
        let arp = Group::read(&bytes);
        assert_eq!((arp.vital, arp.flow, arp.packets), (true, None, 1));
    }

    #[test]
    fn flows_are_told_apart_by_their_ports() {
        let flow = |port| Group::read(&group(100, 10, port)).flow;
        assert_eq!(flow(1), flow(1));
        assert_ne!(flow(1), flow(2));
    }
}
