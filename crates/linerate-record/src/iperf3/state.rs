//! The single bytes by which client and server steer a test.

/// The next state of a test, which one end sends to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The server is ready to start the test.
    TestStart,
    /// The test runs: payload may be sent.
    TestRunning,
    /// The client has ended the test.
    TestEnd,
    /// The client must send its parameters.
    ParamExchange,
    /// The client must open its data connections.
    CreateStreams,
    /// The server closes the test.
    ServerTerminate,
    /// The client closes the test.
    ClientTerminate,
    /// Both ends send their counts, the client first.
    ExchangeResults,
    /// All results have been sent.
    DisplayResults,
    /// The client confirms the results.
    IperfDone,
    /// The server refuses the client: it runs another test, or does not know the cookie.
    AccessDenied,
    /// The server stops the test; a [`super::Refusal`] follows.
    ServerError,
}

//= iperf_api.h, TEST_START and below it
const CODES: [(State, i8); 12] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::IperfDone, 16),
    (State::AccessDenied, -1),
    (State::ServerError, -2),
];

impl State {
    /// The byte that is sent for the state.
    pub fn encode(self) -> u8 {
        let found = CODES.iter().find(|(state, _)| *state == self);
        found.map_or(0, |(_, code)| code.cast_unsigned())
    }

    /// The state that a byte denotes; `None` if iperf3 does not define it.
    pub fn decode(byte: u8) -> Option<Self> {
        let mut all = CODES.iter();
        let found = all.find(|(_, code)| code.cast_unsigned() == byte);
        found.map(|(state, _)| *state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_means_one_state_or_none() {
        let known = (0..=255).filter_map(|byte| Some((byte, State::decode(byte)?)));
        let known: Vec<_> = known.collect();
        assert_eq!(known.len(), CODES.len());
        for (byte, state) in known {
            assert_eq!(state.encode(), byte);
        }
        assert_eq!(State::decode(0xff), Some(State::AccessDenied));
        assert_eq!(State::decode(b'H'), None);
    }
}
