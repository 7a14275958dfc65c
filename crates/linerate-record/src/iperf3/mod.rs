//! The protocol between an iperf3 client and server (3.1 and newer), as far as TCP and UDP need it.
//!
//! A client opens a control connection with its [`Cookie`]. The server then leads by single bytes, the [`State`]s.
//! The client sends its parameters ([`Params`]) and opens the data connections, each with the same cookie; for UDP it
//! instead sends [`HELLO`] from one port for each stream. The client also announces the end of the test. Both ends
//! then send their counts ([`Results`]; datagrams are counted by their [`Header`]s and an [`Intake`]). Parameters and
//! results are JSON, sent after its length.
//!
//! All input is hostile until decoded: lengths and counts are bounded before memory is allocated, and no
//! decoder here can panic. This module does no I/O.
//= https://github.com/esnet/iperf src/iperf_api.h, iperf_api.c, iperf_client_api.c, iperf_server_api.c

mod datagram;
mod intake;
mod json;
mod params;
mod refusal;
mod results;
mod state;

pub use datagram::{
    BURST_MAX, DATAGRAM_DEFAULT, DATAGRAM_MAX, DATAGRAM_MIN, HELLO, HELLO_LEN, Header, Width,
    answer, is_answer,
};
pub use intake::Intake;
pub use json::{JSON_MAX, frame, length};
pub use params::{Params, Protocol, WRITE_DEFAULT, WRITE_MAX};
pub use refusal::{REFUSAL_LEN, Refusal};
pub use results::{Cpu, Datagrams, Results, StreamResult, stream_id};
pub use state::State;

/// TCP port of an iperf3 server, if the user names none.
pub const PORT: u16 = 5201;

/// Largest number of data connections of a test, in each direction.
//= iperf.h, MAX_STREAMS
pub const STREAMS_MAX: u32 = 128;

/// Longest test, in seconds.
//= iperf.h, MAX_TIME
pub const SECONDS_MAX: u64 = 86_400;

/// Number of bytes of a cookie: 36 characters and a zero.
//= iperf_api.h, COOKIE_SIZE
pub const COOKIE_LEN: usize = 37;

/// The bytes that each connection of a test begins with, so that the server knows that they belong together.
pub type Cookie = [u8; COOKIE_LEN];

/// A cookie of the characters that iperf3 uses, made from random bytes.
pub fn cookie(random: [u8; COOKIE_LEN - 1]) -> Cookie {
    const CHARACTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE_LEN];
    for (to, from) in cookie.iter_mut().zip(random) {
        *to = CHARACTERS[usize::from(from % 32)];
    }
    cookie
}

/// Why received data is not valid data of iperf3.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A length above [`JSON_MAX`].
    #[error("JSON of {0} bytes, more than {JSON_MAX}")]
    Long(u32),
    /// The text is no JSON, or not an object.
    #[error("no JSON: {0}")]
    NotJson(String),
    /// A field with an impossible value.
    #[error("`{0}` is missing or makes no sense")]
    Field(&'static str),
    /// More streams than a test may have.
    #[error("more than {STREAMS_MAX} streams")]
    Streams,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_text_with_a_zero_at_its_end() {
        let cookie = cookie([0xff; 36]);
        assert_eq!(cookie[36], 0);
        assert!(cookie[..36].iter().all(|c| *c == b'7'));
    }
}
