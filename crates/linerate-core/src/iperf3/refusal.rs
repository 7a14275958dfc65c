//! What a server says when it gives up: two numbers, which the client turns into words.

use std::io;

/// Bytes of a refusal.
pub const REFUSAL_LEN: usize = 8;

/// Why a server gives up, as numbers that every iperf3 client has words for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// iperf3's own number.
    pub code: i32,
    /// The system's number, which some of the clients' words end with; zero for none.
    pub errno: i32,
}

//= iperf_api.h, the enum of i_errno; iperf_error.c, iperf_strerror
const WORDS: &[(Refusal, &str)] = &[
    (Refusal::DURATION, "the test would last too long"),
    (Refusal::STREAMS, "too many streams"),
    (Refusal::WRITE_SIZE, "the block size is too large"),
    (
        Refusal::DATAGRAM_SIZE,
        "the datagrams are too short or too long",
    ),
    (Refusal::UNSUPPORTED, "an option is not implemented there"),
    (Refusal::PARAMETERS, "it could not read the parameters"),
    (Refusal::TOS, "it could not set the type of service"),
    (Refusal::PROTOCOL, "it does not know the protocol"),
    (Refusal::AFFINITY, "it could not set the CPU affinity"),
    (
        Refusal::CONGESTION,
        "it does not know the congestion control, or may not use it",
    ),
    (
        Refusal::BUFFER,
        "its kernel does not allow a socket buffer that large",
    ),
    (Refusal::LOGIN, "it did not authorize the test"),
    (Refusal::STREAM, "it could not make a stream"),
    (Refusal::LISTEN, "it could not listen for datagrams"),
    (
        Refusal::RATE,
        "the test asks for more than its limit of bandwidth",
    ),
];

impl Refusal {
    /// The test would last too long.
    pub const DURATION: Self = Self::new(5);
    /// Too many streams.
    pub const STREAMS: Self = Self::new(6);
    /// The block size is too large.
    pub const WRITE_SIZE: Self = Self::new(7);
    /// A datagram is shorter than its header, or longer than IPv4 carries.
    pub const DATAGRAM_SIZE: Self = Self::new(20);
    /// An option is not implemented.
    pub const UNSUPPORTED: Self = Self::new(13);
    /// More bandwidth is asked for than the server's limit.
    pub const RATE: Self = Self::new(27);
    /// The parameters could not be read.
    pub const PARAMETERS: Self = Self::new(114);
    /// The type of service could not be set.
    pub const TOS: Self = Self::new(125);
    /// The protocol is not there.
    pub const PROTOCOL: Self = Self::new(131);
    /// The CPU affinity could not be set.
    pub const AFFINITY: Self = Self::new(132);
    /// The congestion control could not be set.
    pub const CONGESTION: Self = Self::new(134);
    /// A socket buffer is not as large as asked for.
    pub const BUFFER: Self = Self::new(141);
    /// Who asks did not prove that he may.
    pub const LOGIN: Self = Self::new(142);
    /// A stream could not be made.
    pub const STREAM: Self = Self::new(200);
    /// The port for datagrams could not be had.
    pub const LISTEN: Self = Self::new(202);

    const fn new(code: i32) -> Self {
        Self { code, errno: 0 }
    }

    /// The same for an error of the system.
    #[must_use]
    pub fn because(self, error: &io::Error) -> Self {
        Self {
            errno: error.raw_os_error().unwrap_or(0),
            ..self
        }
    }

    /// The bytes behind [`super::State::ServerError`].
    pub fn encode(self) -> [u8; REFUSAL_LEN] {
        let mut bytes = [0; REFUSAL_LEN];
        bytes[..4].copy_from_slice(&self.code.to_be_bytes());
        bytes[4..].copy_from_slice(&self.errno.to_be_bytes());
        bytes
    }

    /// Reads them.
    pub fn decode(bytes: [u8; REFUSAL_LEN]) -> Self {
        let both = i64::from_be_bytes(bytes);
        Self {
            code: (both >> 32) as i32,
            errno: both as i32,
        }
    }

    /// What it says, in words.
    pub fn words(self) -> String {
        let mut all = WORDS.iter();
        match all.find(|(known, _)| known.code == self.code) {
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
        let refusal = Refusal {
            errno: -7,
            ..Refusal::CONGESTION
        };
        assert_eq!(Refusal::decode(refusal.encode()), refusal);
        assert_eq!(&refusal.encode()[..4], [0, 0, 0, 134]);
        assert!(refusal.words().contains("congestion"));
        let full = io::Error::from_raw_os_error(28);
        assert_eq!(Refusal::STREAM.because(&full).encode()[4..], [0, 0, 0, 28]);
        let strange = Refusal::decode([0xff; 8]);
        assert_eq!(strange.words(), "error -1 of iperf3");
    }
}
