//! A server's message when it stops a test: two numbers, for which the client has a text.

use std::io;

/// Number of bytes of a refusal.
pub const REFUSAL_LEN: usize = 8;

/// Why a server stops a test, as a number for which every iperf3 client has a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Number of the reason (`i_errno` of iperf3).
    pub code: i32,
    /// Number of the system error (`errno`), which clients add to some of the texts; zero for none.
    pub errno: i32,
}

/// linerate's text for each number of a server. Numbers that only concern a command line are left out.
//= iperf_api.h of 3.21, the enum of i_errno; iperf_error.c, iperf_strerror
const WORDS: &[(i32, &str)] = &[
    (Refusal::DURATION.code, "the test would last too long"),
    (Refusal::STREAMS.code, "too many streams"),
    (Refusal::WRITE_SIZE.code, "the block size is too large"),
    (8, "the socket buffer is too large"),
    (10, "the segments are too large"),
    (12, "it does not know what to omit"),
    (Refusal::UNSUPPORTED.code, "an option is not implemented there"),
    (15, "the bursts are too large"),
    (17, "it has no SCTP"),
    (Refusal::DATAGRAM_SIZE.code, "the datagrams are too short or too long"),
    (21, "it does not know the type of service"),
    (Refusal::RATE.code, "the test asks for more than its limit of bandwidth"),
    (
        Refusal::LIMIT_OF_TIME.code,
        "the test would last longer than its own limit (--server-max-duration)",
    ),
    (38, "it does not know a unit or its suffix"),
    (Refusal::DISCARD.code, "its system cannot drop payload unread (--skip-rx-copy)"),
    (40, "it does not know the DSCP value"),
    (Refusal::PARAMETERS.code, "it could not read the parameters"),
    (122, "it could not set TCP_NODELAY"),
    (123, "it could not set the segment size"),
    (124, "it could not set the size of a socket buffer"),
    (Refusal::TOS.code, "it could not set the type of service"),
    (126, "it could not set the traffic class of IPv6"),
    (127, "it could not set the flow label of IPv6"),
    (Refusal::PROTOCOL.code, "it does not know the protocol"),
    (Refusal::AFFINITY.code, "it could not set the CPU affinity"),
    (Refusal::CONGESTION.code, "it does not know the congestion control, or may not use it"),
    (140, "it could not set the pace of a socket"),
    (Refusal::BUFFER.code, "its kernel does not allow a socket buffer that large"),
    (Refusal::LOGIN.code, "it did not authorize the test"),
    (143, "it could not bind to its network device"),
    (Refusal::SILENCE.code, "it received nothing for as long as it waits (--rcv-timeout)"),
    (145, "it could not set do-not-fragment"),
    (148, "it could not set the user timeout of TCP"),
    (150, "it could not start a thread"),
    (151, "it could not end a thread"),
    (152, "it could not wait for a thread to end"),
    (153, "it could not prepare a thread"),
    (154, "it could not release what it had prepared for a thread"),
    (155, "it could not turn on keepalive"),
    (156, "it could not set the idle time of keepalive"),
    (157, "it could not set the interval of keepalive"),
    (158, "it could not set the probes of keepalive"),
    (159, "it could not set the signals of a thread"),
    (160, "the test lasted longer than it should"),
    (Refusal::STREAM.code, "it could not make a stream"),
    (201, "it could not set up a stream"),
    (Refusal::LISTEN.code, "it could not listen for datagrams"),
    (203, "it could not connect a stream"),
    (204, "it could not accept a stream"),
    (205, "it could not write to a stream"),
    (206, "it could not read from a stream"),
    (207, "a stream was closed"),
];

impl Refusal {
    /// The test would last too long.
    pub const DURATION: Self = Self::new(5);
    /// Too many streams.
    pub const STREAMS: Self = Self::new(6);
    /// The block size is too large.
    pub const WRITE_SIZE: Self = Self::new(7);
    /// A datagram is shorter than its header, or longer than IPv4 can carry.
    pub const DATAGRAM_SIZE: Self = Self::new(20);
    /// The server does not implement an option.
    pub const UNSUPPORTED: Self = Self::new(13);
    /// The requested bandwidth exceeds the server's limit.
    pub const RATE: Self = Self::new(27);
    /// The test would last longer than the server's own limit.
    pub const LIMIT_OF_TIME: Self = Self::new(37);
    /// The server cannot drop payload in the kernel.
    pub const DISCARD: Self = Self::new(39);
    /// The server received nothing for as long as it waits.
    pub const SILENCE: Self = Self::new(144);
    /// The parameters could not be read.
    pub const PARAMETERS: Self = Self::new(114);
    /// The type of service could not be set.
    pub const TOS: Self = Self::new(125);
    /// The server does not support the requested protocol.
    pub const PROTOCOL: Self = Self::new(131);
    /// The CPU affinity could not be set.
    pub const AFFINITY: Self = Self::new(132);
    /// The congestion control could not be set.
    pub const CONGESTION: Self = Self::new(134);
    /// A socket buffer is smaller than requested.
    pub const BUFFER: Self = Self::new(141);
    /// The client did not prove that it may run a test.
    pub const LOGIN: Self = Self::new(142);
    /// A stream could not be created.
    pub const STREAM: Self = Self::new(200);
    /// The server could not bind its port for datagrams.
    pub const LISTEN: Self = Self::new(202);

    const fn new(code: i32) -> Self {
        Self { code, errno: 0 }
    }

    /// Adds the number of a system error to the refusal.
    #[must_use]
    pub fn because(self, error: &io::Error) -> Self {
        Self { errno: error.raw_os_error().unwrap_or(0), ..self }
    }

    /// Encodes the refusal: the bytes that follow [`super::State::ServerError`].
    pub fn encode(self) -> [u8; REFUSAL_LEN] {
        let mut bytes = [0; REFUSAL_LEN];
        bytes[..4].copy_from_slice(&self.code.to_be_bytes());
        bytes[4..].copy_from_slice(&self.errno.to_be_bytes());
        bytes
    }

    /// Decodes the refusal.
    pub fn decode(bytes: [u8; REFUSAL_LEN]) -> Self {
        let both = i64::from_be_bytes(bytes);
        Self { code: (both >> 32) as i32, errno: both as i32 }
    }

    /// The refusal's text for users.
    pub fn words(self) -> String {
        let mut all = WORDS.iter();
        match all.find(|(known, _)| *known == self.code) {
            Some((_, words)) => (*words).to_owned(),
            None => format!("error {} of iperf3", self.code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_has_words() {
        let refusal = Refusal { errno: -7, ..Refusal::CONGESTION };
        assert_eq!(Refusal::decode(refusal.encode()), refusal);
        assert_eq!(&refusal.encode()[..4], [0, 0, 0, 134]);
        assert!(refusal.words().contains("congestion"));
        let full = io::Error::from_raw_os_error(28);
        assert_eq!(Refusal::STREAM.because(&full).encode()[4..], [0, 0, 0, 28]);
        let strange = Refusal::decode([0xff; 8]);
        assert_eq!(strange.words(), "error -1 of iperf3");
    }

    #[test]
    fn every_number_that_a_server_says_has_words_of_its_own() {
        let words = |code| Refusal { code, errno: 0 }.words();
        let known = (37..=40).chain([144, 145]).chain(150..=159);
        for code in known {
            assert!(!words(code).contains("of iperf3"), "{code}");
        }
        assert!(words(37).contains("its own limit"));
        assert!(words(144).contains("--rcv-timeout"));
        // Numbers that no version uses.
        for code in [0, 41, 149, 161, 209] {
            assert_eq!(words(code), format!("error {code} of iperf3"));
        }
        let all: std::collections::BTreeSet<&str> = WORDS.iter().map(|(_, words)| *words).collect();
        assert_eq!(all.len(), WORDS.len());
    }
}
