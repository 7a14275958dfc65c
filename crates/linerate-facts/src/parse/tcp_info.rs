//! Parses `TCP_INFO`: the kernel's counters of one connection.
//!
//! The struct grows with the kernel, so each field is read only if the reply is long enough.

use crate::metric::{self, Metric};

/// Bytes that a reader should provide for `TCP_INFO`: more than any present kernel needs.
pub const ROOM: usize = 512;

/// How a field is stored in the struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    /// A field of one byte.
    U8,
    /// The lowest bit of a byte. Bit fields start at the least significant bit on little-endian machines, and at the
    /// most significant on big-endian ones.
    FirstBit,
    /// A field of two bytes.
    U16,
    /// A field of four bytes.
    U32,
    /// A field of four bytes, where all bits set mean that the value is unknown.
    U32Known,
    /// A field of eight bytes.
    U64,
    /// A rate in bytes per second, in eight bytes. It is returned in bits per second. All bits set mean unlimited.
    Rate,
}

impl Store {
    const fn width(self) -> usize {
        match self {
            Self::U8 | Self::FirstBit => 1,
            Self::U16 => 2,
            Self::U32 | Self::U32Known => 4,
            Self::U64 | Self::Rate => 8,
        }
    }

    /// The value of the field; `None` if the kernel reports that there is no value.
    fn value(self, field: &[u8]) -> Option<i64> {
        let raw = match *field {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => u64::from_ne_bytes(*field.first_chunk()?),
        };
        match self {
            Self::FirstBit if cfg!(target_endian = "big") => Some(i64::from(raw >> 7 != 0)),
            Self::FirstBit => Some((raw & 1) as i64),
            Self::U32Known if raw == u64::from(u32::MAX) => None,
            Self::Rate if raw == u64::MAX => None,
            Self::Rate => Some(i64::try_from(raw.saturating_mul(8)).unwrap_or(i64::MAX)),
            _ => Some(i64::try_from(raw).unwrap_or(i64::MAX)),
        }
    }
}

/// The offset of each metric in the struct, and how it is stored.
//= include/uapi/linux/tcp.h, struct tcp_info (6.18)
const FIELDS: &[(Metric, usize, Store)] = &[
    (metric::TCP_STATE, 0, Store::U8),
    (metric::TCP_CA_STATE, 1, Store::U8),
    (metric::TCP_OPTIONS, 5, Store::U8),
    (metric::TCP_APP_LIMITED, 7, Store::FirstBit),
    (metric::TCP_SND_MSS, 16, Store::U32),
    (metric::TCP_RCV_MSS, 20, Store::U32),
    (metric::TCP_UNACKED, 24, Store::U32),
    (metric::TCP_LOST, 32, Store::U32),
    (metric::TCP_PMTU, 60, Store::U32),
    (metric::TCP_RCV_SSTHRESH, 64, Store::U32),
    (metric::TCP_RTT, 68, Store::U32),
    (metric::TCP_RTTVAR, 72, Store::U32),
    (metric::TCP_SSTHRESH, 76, Store::U32),
    (metric::TCP_CWND, 80, Store::U32),
    (metric::TCP_ADVMSS, 84, Store::U32),
    (metric::TCP_RCV_RTT, 92, Store::U32),
    (metric::TCP_RCV_SPACE, 96, Store::U32),
    (metric::TCP_RETRANS, 100, Store::U32),
    (metric::TCP_PACING_RATE, 104, Store::Rate),
    (metric::TCP_MAX_PACING_RATE, 112, Store::Rate),
    (metric::TCP_BYTES_ACKED, 120, Store::U64),
    (metric::TCP_BYTES_RECEIVED, 128, Store::U64),
    (metric::TCP_SEGS_OUT, 136, Store::U32),
    (metric::TCP_SEGS_IN, 140, Store::U32),
    (metric::TCP_NOTSENT, 144, Store::U32),
    (metric::TCP_MIN_RTT, 148, Store::U32Known),
    (metric::TCP_DELIVERY_RATE, 160, Store::Rate),
    (metric::TCP_BUSY, 168, Store::U64),
    (metric::TCP_RWND_LIMITED, 176, Store::U64),
    (metric::TCP_SNDBUF_LIMITED, 184, Store::U64),
    (metric::TCP_DELIVERED, 192, Store::U32),
    (metric::TCP_DELIVERED_CE, 196, Store::U32),
    (metric::TCP_BYTES_SENT, 200, Store::U64),
    (metric::TCP_BYTES_RETRANS, 208, Store::U64),
    (metric::TCP_DSACK_DUPS, 216, Store::U32),
    (metric::TCP_REORD_SEEN, 220, Store::U32),
    (metric::TCP_SND_WND, 228, Store::U32),
    (metric::TCP_RCV_WND, 232, Store::U32),
    (metric::TCP_TOTAL_RTO, 240, Store::U16),
];

/// Each metric of the table `FIELDS`, with its value if the kernel reported one.
pub fn values(raw: &[u8]) -> impl Iterator<Item = (Metric, Option<i64>)> + '_ {
    FIELDS.iter().map(|(metric, at, store)| {
        let field = raw.get(*at..at + store.width());
        (*metric, field.and_then(|f| store.value(f)))
    })
}

/// Offsets of `tcpi_total_retrans` and `tcpi_rcv_ooopack`.
const SETBACKS: [usize; 2] = [100, 224];

/// Offset of `tcpi_options`, and its flag `TCPI_OPT_ECN`.
const OPTIONS: usize = 5;
const ECN: u8 = 8;

/// Segments that this end retransmitted, plus segments that it received out of order, since the connection began. 0
/// means that nothing was lost or reordered, in either direction of payload. `None` before Linux 5.4, and if the
/// connection negotiated ECN: a sender then slows down for marked segments, which a receiver does not count.
pub fn setbacks(raw: &[u8]) -> Option<u64> {
    if raw.get(OPTIONS)? & ECN != 0 {
        return None;
    }
    let fields = SETBACKS.map(|at| raw.get(at..at + 4).and_then(|f| Store::U32.value(f)));
    let [retransmitted, overtaken] = fields;
    retransmitted?.checked_add(overtaken?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn read(raw: &[u8]) -> HashMap<&'static str, Option<i64>> {
        values(raw).map(|(m, v)| (m.name, v)).collect()
    }

    #[test]
    fn a_field_is_there_once_the_reply_holds_it() {
        let raw = [1; 280];
        for len in 0..=raw.len() {
            let row = read(&raw[..len]);
            for (metric, at, store) in FIELDS {
                let there = row[metric.name].is_some();
                assert_eq!(there, len >= at + store.width(), "{} {len}", metric.name);
            }
        }
    }

    #[test]
    fn fields_are_found_at_their_offsets() {
        let mut raw = [0; 248];
        raw[0] = 1;
        raw[68..72].copy_from_slice(&41u32.to_ne_bytes());
        raw[120..128].copy_from_slice(&5_000_000_000u64.to_ne_bytes());
        raw[168..176].copy_from_slice(&77u64.to_ne_bytes());
        raw[228..232].copy_from_slice(&65_536u32.to_ne_bytes());
        raw[240..242].copy_from_slice(&3u16.to_ne_bytes());
        raw[242] = 9;
        let row = read(&raw);
        for (name, value) in [
            ("state", 1),
            ("rtt_us", 41),
            ("bytes_acked", 5_000_000_000),
            ("busy_us", 77),
            ("snd_wnd", 65_536),
            ("total_rto", 3),
            ("rttvar_us", 0),
        ] {
            assert_eq!(row[name], Some(value), "{name}");
        }
    }

    #[test]
    fn rates_are_in_bits_and_unlimited_ones_are_unknown() {
        let mut raw = [0; 248];
        raw[104..112].copy_from_slice(&125u64.to_ne_bytes());
        raw[112..120].copy_from_slice(&u64::MAX.to_ne_bytes());
        raw[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        let row = read(&raw);
        assert_eq!(row["pacing_rate"], Some(1000));
        assert_eq!(row["max_pacing_rate"], None);
        assert_eq!(row["min_rtt_us"], None);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn the_app_limited_bit_is_told_from_its_neighbours() {
        let mut raw = [0; 8];
        raw[7] = 0b110;
        assert_eq!(read(&raw)["delivery_rate_app_limited"], Some(0));
        raw[7] = 0b111;
        assert_eq!(read(&raw)["delivery_rate_app_limited"], Some(1));
    }

    #[test]
    fn no_field_overlaps_another() {
        let mut fields: Vec<_> = FIELDS.iter().map(|(_, at, s)| (*at, s.width())).collect();
        fields.sort_unstable();
        assert!(fields.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0));
    }

    #[test]
    fn setbacks_are_those_of_both_roles_where_the_kernel_counts_both() {
        let mut raw = vec![0; 240];
        assert_eq!(setbacks(&raw), Some(0));
        raw[100] = 3;
        raw[224] = 4;
        assert_eq!(setbacks(&raw), Some(7));
        assert_eq!(setbacks(&raw[..228]), Some(7));
        assert_eq!(setbacks(&raw[..227]), None, "before Linux 5.4");
        // The connection has the options timestamps, SACK and window scaling, but not ECN.
        raw[5] = 7;
        assert_eq!(setbacks(&raw), Some(7));
        raw[5] |= 8;
        assert_eq!(setbacks(&raw), None, "ECN");
        assert_eq!(setbacks(&[]), None);
    }
}
