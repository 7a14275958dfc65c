//! InfiniBand: data rates of links, and the share of these rates that RDMA and IP can use.

use super::ethernet::{Ip, Transport};
use super::{Bounds, Packet};
use linerate_plan::transport::rdma::{Operation, Service};

/// Bytes around the payload of a packet in the middle of a message: local route header 8, base
/// transport header 12, invariant check 4, variant check 2.
//= InfiniBand Architecture Specification 1.4, volume 1, chapters 7 and 9
const PACKET: u32 = 8 + 12 + 4 + 2;
/// Bytes of the global route header.
//= InfiniBand Architecture Specification 1.4, volume 1, chapter 8
pub(super) const GLOBAL_ROUTE: u32 = 40;
/// Bytes of the extended header that a datagram (UD) has in addition.
//= InfiniBand Architecture Specification 1.4, volume 1, chapter 9
const DATAGRAM: u32 = 8;
/// Bytes of the IPoIB header between the InfiniBand headers and the IP packet.
//= RFC 4391, section 6
const IPOIB: u32 = 4;

/// Possible MTUs of a link: the most payload bytes of one packet.
//= InfiniBand Architecture Specification 1.4, volume 1, chapter 9
pub const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

/// Possible numbers of lanes of a link.
//= InfiniBand Architecture Specification 1.4, volume 2, chapter 5
pub const WIDTHS: [u32; 5] = [1, 2, 4, 8, 12];

/// Speed of an InfiniBand lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// 2.5 Gb/s, line code 8b/10b.
    Sdr,
    /// 5 Gb/s, line code 8b/10b.
    Ddr,
    /// 10 Gb/s, line code 8b/10b.
    Qdr,
    /// 10.3125 Gb/s, line code 64b/66b.
    Fdr10,
    /// 14.0625 Gb/s, line code 64b/66b.
    Fdr,
    /// 25.78125 Gb/s, line code 64b/66b.
    Edr,
    /// 53.125 Gb/s per lane, of which 50 Gb/s are data.
    Hdr,
    /// 106.25 Gb/s per lane, of which 100 Gb/s are data.
    Ndr,
    /// 212.5 Gb/s per lane, of which 200 Gb/s are data.
    Xdr,
}

impl Speed {
    /// Every speed of a lane with its name.
    pub const NAMES: [(&'static str, Self); 9] = [
        ("SDR", Self::Sdr),
        ("DDR", Self::Ddr),
        ("QDR", Self::Qdr),
        ("FDR10", Self::Fdr10),
        ("FDR", Self::Fdr),
        ("EDR", Self::Edr),
        ("HDR", Self::Hdr),
        ("NDR", Self::Ndr),
        ("XDR", Self::Xdr),
    ];

    /// Name of the speed.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, s)| *s == self);
        found.map_or("", |(name, _)| name)
    }

    /// Data rate of one lane in bits per second, after line code and error correction.
    //= InfiniBand Architecture Specification 1.4, volume 2, chapter 5; libibmad, mad_dump_linkspeed
    pub fn lane(self) -> f64 {
        match self {
            Self::Sdr => 2.5e9 * 8.0 / 10.0,
            Self::Ddr => 5e9 * 8.0 / 10.0,
            Self::Qdr => 10e9 * 8.0 / 10.0,
            Self::Fdr10 => 10.3125e9 * 64.0 / 66.0,
            Self::Fdr => 14.0625e9 * 64.0 / 66.0,
            Self::Edr => 25.78125e9 * 64.0 / 66.0,
            // Error correction leaves 514 of 544 bits, the line code 256 of 257.
            Self::Hdr => 53.125e9 * 514.0 / 544.0 * 256.0 / 257.0,
            Self::Ndr => 106.25e9 * 514.0 / 544.0 * 256.0 / 257.0,
            Self::Xdr => 212.5e9 * 514.0 / 544.0 * 256.0 / 257.0,
        }
    }
}

/// Bytes per second of data that a link carries.
pub fn capacity(speed: Speed, width: u32) -> Bounds {
    Bounds::exact(f64::from(width) * speed.lane() / 8.0)
}

/// Full packets of large RDMA messages, with any MTU of `mtus`.
pub fn rdma(mtus: &[u32]) -> Option<Packet> {
    let kinds: Vec<_> = mtus.iter().map(|mtu| (*mtu, mtu + PACKET)).collect();
    Packet::any(&kinds)
}

/// An RDMA request.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The operation that carries the payload.
    pub op: Operation,
    /// The transport service of its queue pair.
    pub service: Service,
    /// Payload of the request in bytes.
    pub size: u32,
}

/// Header bytes that an RDMA request has only once, in its first or last packet: the address in the first packet of
/// a write, the immediate value in the last packet, the acknowledgement header in the first and in the last packet
/// of an answer to a read.
//= InfiniBand Architecture Specification 1.4, volume 1, chapter 9
const fn once(op: Operation, packets: u32) -> u32 {
    const ADDRESS: u32 = 16;
    const IMMEDIATE: u32 = 4;
    const ACKNOWLEDGEMENT: u32 = 4;
    match op {
        Operation::Write => ADDRESS,
        Operation::WriteWithImmediate => ADDRESS + IMMEDIATE,
        Operation::Read if packets > 1 => 2 * ACKNOWLEDGEMENT,
        Operation::Read => ACKNOWLEDGEMENT,
        Operation::Send | Operation::Atomic => 0,
    }
}

/// All packets of an RDMA request, added up as one packet. `is_global`: each has a global route header. `None` if
/// the request has no payload, or if `mtu` is zero.
pub fn message(request: Request, mtu: u32, is_global: bool) -> Option<Packet> {
    let each = if is_global { PACKET + GLOBAL_ROUTE } else { PACKET };
    whole(request, mtu, each)
}

/// All packets of an RDMA request, added up as one packet, with `each` bytes of headers in each of them.
pub fn whole(request: Request, mtu: u32, each: u32) -> Option<Packet> {
    let Request { op, service, size } = request;
    if size == 0 || mtu == 0 {
        return None;
    }
    let each = each
        + match service {
            Service::Ud => DATAGRAM,
            Service::Rc | Service::Uc => 0,
        };
    let packets = size.div_ceil(mtu);
    let headers = packets.checked_mul(each)?.checked_add(once(op, packets))?;
    Some(Packet::sized(size, size.checked_add(headers)?))
}

/// Full IP packets, with any size of `ip_mtus`, over InfiniBand packets with any size of `mtus`. An IP packet is
/// one datagram if it fits into one InfiniBand packet, else a message of several packets.
pub fn ipoib(
    mtus: &[u32],
    ip_mtus: &[u32],
    ips: &[Ip],
    transports: &[Transport],
) -> Option<Packet> {
    let mut kinds = Vec::new();
    for (mtu, ip_mtu) in mtus.iter().flat_map(|m| ip_mtus.iter().map(move |i| (*m, *i))) {
        let wire = ipoib_wire(ip_mtu, mtu);
        for ip in ips {
            let payload = |t: &Transport| ip_mtu.saturating_sub(ip.header() + t.header());
            kinds.extend(transports.iter().map(|t| (payload(t), wire)));
        }
    }
    Packet::any(&kinds)
}

/// Bytes that an IP packet takes on the InfiniBand link.
fn ipoib_wire(ip_mtu: u32, mtu: u32) -> u32 {
    let message = ip_mtu + IPOIB;
    if message <= mtu {
        message + PACKET + DATAGRAM
    } else {
        message + PACKET * message.div_ceil(mtu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data rate of a link in Gb/s.
    fn data(speed: Speed, width: u32) -> f64 {
        capacity(speed, width).low() * 8.0 / 1e9
    }

    fn goodput(speed: Speed, width: u32, mtu: u32) -> f64 {
        data(speed, width) / rdma(&[mtu]).unwrap().wire_per_byte.low()
    }

    #[test]
    fn data_rates_are_those_of_the_standard() {
        let published = [8.0, 16.0, 32.0, 40.0, 54.5, 100.0, 200.0, 400.0, 800.0];
        for ((name, speed), published) in Speed::NAMES.iter().zip(published) {
            let got = data(*speed, 4);
            assert!((got - published).abs() < 0.05, "{name}: {got}");
        }
        assert!((data(Speed::Fdr, 1) - 13.6).abs() < 0.05);
        assert!((data(Speed::Qdr, 12) - 96.0).abs() < 1e-9);
    }

    #[test]
    fn goodput_is_what_is_published() {
        for (speed, width, mtu, published) in [
            (Speed::Fdr, 4, 4096, 54.2),
            (Speed::Edr, 4, 4096, 99.37),
            (Speed::Hdr, 4, 4096, 198.74),
            (Speed::Ndr, 4, 4096, 397.48),
            (Speed::Xdr, 4, 4096, 794.95),
            (Speed::Fdr, 1, 4096, 13.55),
            (Speed::Edr, 4, 2048, 98.75),
        ] {
            let got = goodput(speed, width, mtu);
            assert!((got / published - 1.0).abs() < 2e-4, "{speed:?}: {got}");
        }
    }

    #[test]
    fn headers_depend_on_the_operation_and_the_service() {
        let wire = |op, service, size| {
            let request = Request { op, service, size };
            let packet = message(request, 1024, false).unwrap();
            (packet.wire_per_byte.low() * f64::from(size)).round() as u32 - size
        };
        for (op, one, two) in [
            (Operation::Send, 26, 52),
            (Operation::Write, 42, 68),
            (Operation::WriteWithImmediate, 46, 72),
            (Operation::Read, 30, 60),
        ] {
            assert_eq!(wire(op, Service::Rc, 1024), one, "{op:?}");
            assert_eq!(wire(op, Service::Rc, 2048), two, "{op:?}");
        }
        assert_eq!(wire(Operation::Send, Service::Ud, 1024), 34);
    }

    #[test]
    fn ip_goes_in_one_datagram_or_in_a_message_of_several() {
        assert_eq!(ipoib_wire(2044, 2048), 2048 + 34);
        assert_eq!(ipoib_wire(2045, 2048), 2049 + 2 * 26);
        assert_eq!(ipoib_wire(65_520, 4096), 65_524 + 16 * 26);
        let plain = [Transport::Tcp { timestamps: false }];
        let packet = ipoib(&[4096], &[2044, 65_520], &[Ip::V4], &plain).unwrap();
        assert_eq!(packet.words, "2004/2082 to 65480/65940");
        assert_eq!(ipoib(&[4096], &[40], &[Ip::V4], &plain), None);
    }
}
