//! The header at the front of every datagram of a session.
//!
//! The header has a tag, a step, a number and a size. Only the two ends of a stream know the tag, so it separates the
//! stream's datagrams from any others that reach the socket. The step separates them from late datagrams of the step
//! before. The number shows losses, duplicates and reordering. The size separates datagrams that the kernel joined
//! (UDP_GRO), without a further call to the kernel.

/// Length of a [`Header`] in bytes, and of the shortest datagram.
pub const HEADER_LEN: usize = 24;
/// Longest payload of a datagram over IPv4: 65535 bytes less the IPv4 and UDP headers.
pub const DATAGRAM_MAX: usize = 65_507;
/// Upper bound of the number in a header. No sender reaches it, and no computation with it overflows.
pub const NUMBER_MAX: u64 = 1 << 56;

/// The purpose of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The datagram carries payload.
    Payload,
    /// The step has ended. The header's number is the count of datagrams sent in the step.
    End,
    /// The receiver has read the mark that ends a step.
    Ended,
    /// The datagram requests an answer.
    Ping,
    /// The datagram is an answer.
    Pong,
}

/// The header at the front of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// A secret that only the ends of the stream know. Each direction has its own.
    pub tag: u64,
    /// Size of the whole datagram in bytes: UDP payload, including this header.
    pub size: u16,
    /// The purpose of the datagram.
    pub kind: Kind,
    /// Number of earlier steps of this connection.
    pub step: u32,
    /// Number of earlier datagrams of this step.
    pub number: u64,
}

/// Why received bytes are not a datagram of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stray {
    /// The bytes end before the end of the datagram.
    #[error("cut short")]
    Short,
    /// The datagram has another tag: it is from another session, or forged.
    #[error("of another session")]
    Foreign,
    /// The datagram has the right tag, but fields with values that no sender writes.
    #[error("malformed")]
    Malformed,
}

/// The offset of the number in a header. The number is the only field that changes from one datagram to the next.
pub const NUMBER_AT: usize = 16;

impl Header {
    /// Encodes the header in network byte order.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut raw = [0; HEADER_LEN];
        raw[..8].copy_from_slice(&self.tag.to_be_bytes());
        raw[8..10].copy_from_slice(&self.size.to_be_bytes());
        raw[10] = match self.kind {
            Kind::Payload => 1,
            Kind::End => 2,
            Kind::Ended => 3,
            Kind::Ping => 4,
            Kind::Pong => 5,
        };
        raw[12..16].copy_from_slice(&self.step.to_be_bytes());
        raw[NUMBER_AT..].copy_from_slice(&self.number.to_be_bytes());
        raw
    }

    /// Reads the header of the datagram at the front of `bytes`, if it has this `tag`.
    #[inline]
    pub fn decode(bytes: &[u8], tag: u64) -> Result<Self, Stray> {
        let raw: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(Stray::Short)?;
        if u64::from_be_bytes(field(raw, 0)) != tag {
            return Err(Stray::Foreign);
        }
        let header = Self {
            tag,
            size: u16::from_be_bytes(field(raw, 8)),
            kind: match field(raw, 10) {
                [1, 0] => Kind::Payload,
                [2, 0] => Kind::End,
                [3, 0] => Kind::Ended,
                [4, 0] => Kind::Ping,
                [5, 0] => Kind::Pong,
                _ => return Err(Stray::Malformed),
            },
            step: u32::from_be_bytes(field(raw, 12)),
            number: u64::from_be_bytes(field(raw, NUMBER_AT)),
        };
        let size = usize::from(header.size);
        if !(HEADER_LEN..=DATAGRAM_MAX).contains(&size) || header.number > NUMBER_MAX {
            return Err(Stray::Malformed);
        }
        if size > bytes.len() {
            return Err(Stray::Short);
        }
        Ok(header)
    }
}

/// The bytes of a header field at the offset `at`, which is always inside the header.
#[inline]
fn field<const N: usize>(raw: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    raw[at..].first_chunk().copied().unwrap_or([0; N])
}

/// Iterates over the datagrams of one receive call: one, or several that the kernel joined. A datagram that cannot be
/// decoded is reported as an error once, and ends the iteration.
#[inline]
pub fn datagrams(bytes: &[u8], tag: u64) -> Datagrams<'_> {
    Datagrams { rest: Some(bytes), tag }
}

/// The iterator that [`datagrams`] returns.
#[derive(Debug, Clone)]
pub struct Datagrams<'a> {
    rest: Option<&'a [u8]>,
    tag: u64,
}

impl Iterator for Datagrams<'_> {
    type Item = Result<Header, Stray>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.rest.take()?;
        let header = Header::decode(bytes, self.tag);
        if let Ok(header) = &header {
            let rest = &bytes[usize::from(header.size)..];
            self.rest = (!rest.is_empty()).then_some(rest);
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TAG: u64 = 0x0102_0304_0506_0708;

    fn header(size: usize, number: u64) -> Header {
        Header { tag: TAG, size: size as u16, kind: Kind::Payload, step: 7, number }
    }

    fn datagram(size: usize, number: u64) -> Vec<u8> {
        let mut bytes = header(size, number).encode().to_vec();
        bytes.resize(size, 0xAA);
        bytes
    }

    #[test]
    fn sizes_and_numbers_are_bounded_on_both_sides() {
        let read = |size: usize, number| {
            let mut bytes = header(size, number).encode().to_vec();
            bytes.resize(DATAGRAM_MAX + 28, 0);
            Header::decode(&bytes, TAG).map(|_| ())
        };
        assert_eq!(read(HEADER_LEN, 0), Ok(()));
        assert_eq!(read(HEADER_LEN - 1, 0), Err(Stray::Malformed));
        assert_eq!(read(DATAGRAM_MAX, 0), Ok(()));
        assert_eq!(read(DATAGRAM_MAX + 1, 0), Err(Stray::Malformed));
        assert_eq!(read(100, NUMBER_MAX), Ok(()));
        assert_eq!(read(100, NUMBER_MAX + 1), Err(Stray::Malformed));
    }

    #[test]
    fn what_is_cut_short_empty_or_of_another_session_is_told_once() {
        let bytes = datagram(100, 3);
        let all = |bytes: &[u8], tag| datagrams(bytes, tag).collect::<Vec<_>>();
        assert_eq!(all(&bytes, TAG), [Ok(header(100, 3))]);
        assert_eq!(all(&bytes, TAG + 1), [Err(Stray::Foreign)]);
        assert_eq!(all(&bytes[..99], TAG), [Err(Stray::Short)]);
        assert_eq!(all(&bytes[..HEADER_LEN - 1], TAG), [Err(Stray::Short)]);
        assert_eq!(all(&[], TAG), [Err(Stray::Short)]);
    }

    proptest! {
        #[test]
        fn headers_round_trip(
            tag: u64, size in HEADER_LEN..=DATAGRAM_MAX, kind in 0usize..5, step: u32,
            number in 0..=NUMBER_MAX,
        ) {
            let kinds = [Kind::Payload, Kind::End, Kind::Ended, Kind::Ping, Kind::Pong];
            let header = Header { tag, size: size as u16, kind: kinds[kind], step, number };
            let mut bytes = header.encode().to_vec();
            bytes.resize(size, 1);
            prop_assert_eq!(Header::decode(&bytes, tag), Ok(header));
            prop_assert_eq!(&bytes[NUMBER_AT..HEADER_LEN], &number.to_be_bytes()[..]);
        }

        #[test]
        fn joined_datagrams_come_apart_as_they_were(
            sizes in prop::collection::vec(HEADER_LEN..300, 1..20), cut in 0usize..200,
        ) {
            let mut joined = Vec::new();
            for (number, size) in sizes.iter().enumerate() {
                joined.extend(datagram(*size, number as u64));
            }
            let whole: Vec<_> = datagrams(&joined, TAG).collect();
            prop_assert_eq!(whole.len(), sizes.len());
            for (number, (got, size)) in whole.iter().zip(&sizes).enumerate() {
                prop_assert_eq!(*got, Ok(header(*size, number as u64)));
            }
            // A truncated datagram is never accepted as a shorter one.
            let left = joined.len().saturating_sub(cut);
            let sum: usize = datagrams(&joined[..left], TAG)
                .flatten()
                .map(|h| usize::from(h.size))
                .sum();
            prop_assert!(sum <= left);
        }

        #[test]
        fn any_bytes_are_datagrams_or_a_stray(
            mut bytes in prop::collection::vec(any::<u8>(), 0..300), tagged: bool,
        ) {
            if tagged && bytes.len() >= 8 {
                bytes[..8].copy_from_slice(&TAG.to_be_bytes());
            }
            let all: Vec<_> = datagrams(&bytes, TAG).collect();
            let strays = all.iter().filter(|d| d.is_err()).count();
            prop_assert!(strays <= 1);
            let reported: usize = all.iter().flatten().map(|h| usize::from(h.size)).sum();
            prop_assert!(reported <= bytes.len() && (strays == 1 || reported == bytes.len()));
        }
    }
}
