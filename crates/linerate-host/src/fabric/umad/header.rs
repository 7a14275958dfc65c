//! The header that precedes each datagram of a user MAD device.
//!
//! Fields for the kernel are in the byte order of the host, fields for the network in network byte order.
//= Linux, include/uapi/rdma/ib_user_mad.h: struct ib_user_mad_hdr

use std::time::Duration;

use linerate_fabric::mad::{Get, LEN};

/// Bytes of the header, in the variant with a partition key.
pub(super) const HEADER: usize = 64;

/// Byte offsets of the fields that are used. All other fields stay zero: service level 0, the first partition key, no
/// global route, and no retries by the kernel.
const AGENT: usize = 0;
const STATUS: usize = 4;
const TIMEOUT: usize = 8;
const QUEUE_PAIR: usize = 20;
const QUEUE_KEY: usize = 24;
const LID: usize = 28;

/// Queue key of queue pair 1, the same at every node.
//= InfiniBand Architecture Specification 1.4, volume 1, section 10.2.5
const GENERAL_KEY: u32 = 0x8001_0000;

/// Encodes a request with its header. The kernel reports a time-out if no reply arrives within `patience`.
pub(super) fn encode(
    agent: u32,
    transaction: u32,
    get: &Get,
    patience: Duration,
) -> [u8; HEADER + LEN] {
    let mut packet = [0; HEADER + LEN];
    let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
    let queue_pair = u32::from(get.attribute.service().queue_pair());
    let key = if queue_pair == 0 { 0 } else { GENERAL_KEY };
    // With a time of zero, the kernel would not wait for a reply.
    let patience = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX).max(1);
    put(AGENT, &agent.to_ne_bytes());
    put(TIMEOUT, &patience.to_ne_bytes());
    put(QUEUE_PAIR, &queue_pair.to_be_bytes());
    put(QUEUE_KEY, &key.to_be_bytes());
    put(LID, &get.lid().to_be_bytes());
    put(HEADER, &get.encode(transaction));
    packet
}

/// Returns the status in the header and the bytes behind the header. `None` if the header is cut short. A status of
/// zero means a received datagram; otherwise it is an error number, and the bytes are the request that failed.
pub(super) fn decode(packet: &[u8]) -> Option<(u32, &[u8])> {
    let (header, mad) = packet.split_at_checked(HEADER)?;
    let status = header[STATUS..STATUS + 4].try_into().ok()?;
    Some((u32::from_ne_bytes(status), mad))
}

#[cfg(test)]
mod tests {
    use linerate_fabric::mad::{Attribute, Route, To};

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(250);

    fn header(get: &Get, patience: Duration) -> Vec<u8> {
        let packet = encode(7, 0x0102_0304, get, patience);
        assert_eq!(packet[HEADER..], get.encode(0x0102_0304));
        packet[..HEADER].to_vec()
    }

    /// Makes a header with `parts`, each a byte offset and its bytes; all other bytes are zero.
    fn bytes(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut header = vec![0; HEADER];
        for (at, part) in parts {
            header[*at..at + part.len()].copy_from_slice(part);
        }
        header
    }

    #[test]
    fn a_directed_route_goes_to_queue_pair_0_of_the_permissive_lid() {
        let get = Get { to: To::Route(Route::default()), attribute: Attribute::NodeInfo };
        let (agent, time) = (7_u32.to_ne_bytes(), 250_u32.to_ne_bytes());
        let want = bytes(&[(0, &agent), (8, &time), (28, &[0xff, 0xff])]);
        assert_eq!(header(&get, PATIENCE), want);
    }

    #[test]
    fn a_general_service_is_asked_by_lid_at_queue_pair_1_with_its_key() {
        let get = Get { to: To::Lid(0x0102), attribute: Attribute::Counters(1) };
        let (agent, time) = (7_u32.to_ne_bytes(), 250_u32.to_ne_bytes());
        let want = bytes(&[
            (0, &agent),
            (8, &time),
            (20, &[0, 0, 0, 1]),
            (24, &[0x80, 1, 0, 0]),
            (28, &[1, 2]),
        ]);
        assert_eq!(header(&get, PATIENCE), want);
        // Subnet management addressed by LID uses queue pair 0 too, and no queue key.
        let get = Get { to: To::Lid(0x0102), attribute: Attribute::NodeInfo };
        let want = bytes(&[(0, &agent), (8, &time), (28, &[1, 2])]);
        assert_eq!(header(&get, PATIENCE), want);
    }

    #[test]
    fn a_request_always_has_a_time_to_wait() {
        let get = Get { to: To::Lid(1), attribute: Attribute::NodeInfo };
        for (patience, want) in
            [(Duration::ZERO, 1), (Duration::from_millis(2), 2), (Duration::MAX, u32::MAX)]
        {
            assert_eq!(header(&get, patience)[8..12], want.to_ne_bytes());
        }
    }

    #[test]
    fn a_header_that_is_cut_short_has_no_status() {
        let mut packet = [0; HEADER + 24];
        packet[4..8].copy_from_slice(&110_u32.to_ne_bytes());
        packet[HEADER + 3] = 9;
        assert_eq!(decode(&packet[..HEADER - 1]), None);
        assert_eq!(decode(&packet[..HEADER]), Some((110, &[][..])));
        let (status, mad) = decode(&packet).unwrap();
        assert_eq!((status, mad.len(), mad[3]), (110, 24, 9));
    }
}
