//! Parses `SO_MEMINFO`: the memory that a socket's queues use.

use crate::metric::{self, Metric};

/// Bytes that a reader should provide for `SO_MEMINFO`.
pub const ROOM: usize = 64;

/// The index of each metric in the kernel's array of u32, in the order of include/uapi/linux/sock_diag.h.
const FIELDS: &[(Metric, usize)] = &[
    (metric::SOCKET_RMEM_ALLOC, 0),
    (metric::SOCKET_RCVBUF, 4),
    (metric::SOCKET_SNDBUF, 12),
    (metric::SOCKET_WMEM_QUEUED, 20),
    (metric::SOCKET_DROPS, 32),
];

/// Each metric of the table `FIELDS`, with its value if the reply is long enough to contain it.
pub fn values(raw: &[u8]) -> impl Iterator<Item = (Metric, Option<i64>)> + '_ {
    FIELDS.iter().map(|(metric, at)| {
        let field = raw.get(*at..at + 4).and_then(|f| f.first_chunk());
        (*metric, field.map(|f| i64::from(u32::from_ne_bytes(*f))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_there_once_the_reply_holds_it() {
        let raw: Vec<u8> = (0u32..10).flat_map(u32::to_ne_bytes).collect();
        for len in 0..=raw.len() {
            for (metric, value) in values(&raw[..len]) {
                let (_, at) = FIELDS.iter().find(|(m, _)| m.name == metric.name).unwrap();
                let expected = (len >= at + 4).then_some((at / 4) as i64);
                assert_eq!(value, expected, "{} at length {len}", metric.name);
            }
        }
    }
}
