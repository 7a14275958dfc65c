//! Datagrams of a UDP test: the hellos that begin a stream, and the header of each datagram.
//!
//! UDP has no connections. For each stream a client sends a hello from a port of its own, and the server answers from
//! its one port; hello and answer are four bytes without further meaning. Each later datagram has its send time and
//! its number, from 1. Nothing in a datagram proves who sent it.
//= https://github.com/esnet/iperf src/iperf_udp.c; iperf.h, UDP_CONNECT_MSG and below it

/// Number of bytes of a hello, and of its answer.
pub const HELLO_LEN: usize = 4;

/// The hello that linerate sends to begin a stream: servers accept any four bytes.
pub const HELLO: [u8; HELLO_LEN] = *b"9876";

/// Shortest datagram in bytes: the length of the longer header, even where the shorter one is used.
//= iperf.h, MIN_UDP_BLOCKSIZE
pub const DATAGRAM_MIN: u64 = 16;

/// Longest datagram in bytes: 65535 less the headers of IPv4 and UDP.
//= iperf.h, MAX_UDP_BLOCKSIZE
pub const DATAGRAM_MAX: u64 = 65_507;

/// Payload of each datagram in bytes, where a client does not say.
//= iperf.h, DEFAULT_UDP_BLKSIZE
pub const DATAGRAM_DEFAULT: u64 = 1460;

/// Largest number of datagrams that a client may request to be sent at once.
//= iperf.h, MAX_BURST
pub const BURST_MAX: u64 = 1000;

/// Hello and answer up to 3.11: integers in the host's byte order, which is little-endian on most hosts.
const OLD_HELLO: u32 = 123_456_789;
const OLD_ANSWER: u32 = 987_654_321;

/// The hellos of clients, each with the answer that the client waits for: since 3.12, of 3.12 and 3.13 on big-endian
/// hosts, and up to 3.11 on little-endian and on big-endian hosts.
const WORDS: [([u8; HELLO_LEN], [u8; HELLO_LEN]); 4] = [
    (HELLO, *b"6789"),
    (*b"6789", *b"9876"),
    (OLD_HELLO.to_le_bytes(), OLD_ANSWER.to_le_bytes()),
    (OLD_HELLO.to_be_bytes(), OLD_ANSWER.to_be_bytes()),
];

/// The answer to a hello; `None` if the bytes are no hello.
pub fn answer(hello: &[u8]) -> Option<[u8; HELLO_LEN]> {
    let found = WORDS.iter().find(|(said, _)| said == hello);
    found.map(|(_, answer)| *answer)
}

/// Whether the bytes are a server's answer, of any version, to [`HELLO`]. A service that returns the hello itself is
/// an echo.
pub fn is_answer(bytes: &[u8]) -> bool {
    let mut all = WORDS.iter();
    bytes != HELLO && all.any(|(_, answer)| answer == bytes)
}

/// Width of the numbers in datagrams, in bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Width {
    /// 32 bits: the number after 4294967295 is 0.
    #[default]
    Narrow,
    /// 64 bits, if the client requests them.
    Wide,
}

impl Width {
    /// Length of a [`Header`] in bytes.
    pub const fn header_len(self) -> usize {
        match self {
            Self::Narrow => 12,
            Self::Wide => 16,
        }
    }
}

/// The header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Send time of the datagram, in microseconds of the sender's clock.
    pub micros: u64,
    /// Number of the datagram, from 1. If it is wider than [`Width`], only its low bits are sent.
    pub number: u64,
}

impl Header {
    /// Writes the header at the start of a datagram; a datagram that is too short stays unchanged.
    #[inline]
    pub fn write(self, width: Width, datagram: &mut [u8]) {
        let Some(room) = datagram.get_mut(..width.header_len()) else {
            return;
        };
        let seconds = (self.micros / 1_000_000) as u32;
        let micros = (self.micros % 1_000_000) as u32;
        room[..4].copy_from_slice(&seconds.to_be_bytes());
        room[4..8].copy_from_slice(&micros.to_be_bytes());
        match width {
            Width::Narrow => room[8..].copy_from_slice(&(self.number as u32).to_be_bytes()),
            Width::Wide => room[8..].copy_from_slice(&self.number.to_be_bytes()),
        }
    }

    /// Reads the header of a datagram; `None` if the datagram is too short.
    #[inline]
    pub fn read(datagram: &[u8], width: Width) -> Option<Self> {
        let (seconds, rest) = datagram.split_first_chunk()?;
        let (micros, rest) = rest.split_first_chunk()?;
        let number = match width {
            Width::Narrow => u32::from_be_bytes(*rest.first_chunk()?).into(),
            Width::Wide => u64::from_be_bytes(*rest.first_chunk()?),
        };
        let whole = u64::from(u32::from_be_bytes(*seconds)) * 1_000_000;
        Some(Self { micros: whole + u64::from(u32::from_be_bytes(*micros)), number })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_version_s_hello_has_its_own_answer_and_nothing_else_has_one() {
        // Hello and answer as 3.12 sends them, then as 3.11 does.
        assert_eq!(answer(b"9876"), Some(*b"6789"));
        let old = answer(&[0x15, 0xcd, 0x5b, 0x07]);
        assert_eq!(old, Some([0xb1, 0x68, 0xde, 0x3a]));
        for (hello, wanted) in WORDS {
            assert_eq!(answer(&hello), Some(wanted));
            assert_ne!(hello, wanted, "an echo is no answer");
        }
        for other in [&b""[..], b"987", b"98766", b"9877", &[0; 4]] {
            assert_eq!(answer(other), None, "{other:?}");
        }
    }

    #[test]
    fn answers_of_all_versions_are_taken_and_an_echo_is_not() {
        for good in [OLD_ANSWER.to_le_bytes(), OLD_ANSWER.to_be_bytes(), *b"6789"] {
            assert!(is_answer(&good), "{good:?}");
        }
        for bad in [&HELLO[..], b"", b"678", b"67890", &OLD_HELLO.to_le_bytes()] {
            assert!(!is_answer(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_header_is_read_as_iperf3_writes_it() {
        // The first datagram that iperf3 3.12 sent, and one with a wide number made from it.
        let narrow = b"\0\0\x0bs\0\x02\x14\0\0\0\0\x01\x95F";
        let header = Header { micros: 2931 * 1_000_000 + 136_192, number: 1 };
        assert_eq!(Header::read(narrow, Width::Narrow), Some(header));
        let wide = b"\0\0\x0bs\0\x02\x14\0\0\0\0\x01\0\0\0\x02";
        let number = Header::read(wide, Width::Wide).map(|header| header.number);
        assert_eq!(number, Some((1 << 32) + 2));
        for width in [Width::Narrow, Width::Wide] {
            let least = width.header_len();
            assert!(Header::read(&[7; 16][..least], width).is_some());
            assert_eq!(Header::read(&[7; 16][..least - 1], width), None);
            let mut short = [7; 15];
            header.write(width, &mut short[..least - 1]);
            assert_eq!(short, [7; 15]);
        }
    }

    proptest! {
        #[test]
        fn headers_round_trip(seconds: u32, micros in 0..1_000_000u64, number: u64, wide: bool) {
            let width = if wide { Width::Wide } else { Width::Narrow };
            let number = if wide { number } else { number & u64::from(u32::MAX) };
            let header = Header { micros: u64::from(seconds) * 1_000_000 + micros, number };
            let mut bytes = [1; 20];
            header.write(width, &mut bytes);
            prop_assert_eq!(Header::read(&bytes, width), Some(header));
            prop_assert_eq!(&bytes[width.header_len()..], &[1; 8][..20 - width.header_len()]);
        }
    }
}
