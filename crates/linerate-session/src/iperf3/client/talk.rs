//! The server's messages on the control connection, and their meaning at each stage of a test.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_record::iperf3::{Cookie, Malformed, Params, REFUSAL_LEN, Refusal, Results, State};

use super::ClientError;
use crate::iperf3::control::{Broken, Control};

/// Time for an answer on the control connection before the test, when no payload is queued on the path.
pub(super) const WORD: Duration = Duration::from_secs(10);
/// Time for an answer on the control connection after a test, when the answer waits behind all payload that is queued.
pub(super) const ANSWER: Duration = Duration::from_secs(30);

/// Text for the stage after the test, for error messages.
pub(super) const RESULTS: &str = "while both ends reported their counts";

/// The control connection to a server, and the time within which the server must answer.
pub(super) struct Talk<'a> {
    pub(super) control: Control<'a>,
    pub(super) server: SocketAddr,
    /// Time within which the server must answer.
    pub(super) patience: Duration,
}

impl Talk<'_> {
    /// Returns the control connection in a state that ignores a stop, so that a running test ends in order.
    pub(super) fn heedless(self) -> Talk<'static> {
        Talk { control: self.control.heedless(), server: self.server, patience: self.patience }
    }

    /// Sends the cookie and the parameters of the test.
    pub(super) fn agree(&self, cookie: &Cookie, params: &Params) -> Result<(), ClientError> {
        const STAGE: &str = "before the test was agreed on";
        let lost = |broken| ClientError::broken(self.server, STAGE, broken);
        self.control.write(cookie, self.patience).map_err(lost)?;
        let mut first = [0];
        let heard = self.control.read(&mut first, self.patience);
        heard.map_err(|broken| match broken {
            Broken::Stopped => ClientError::Interrupted,
            other => self.other(other.to_string()),
        })?;
        match State::decode(first[0]) {
            Some(State::ParamExchange) => {}
            Some(state) => return Err(self.unexpected(state, STAGE)),
            None => return Err(self.other(format!("it began with byte {}", first[0]))),
        }
        let params = params.encode();
        self.control.tell(&params, self.patience).map_err(lost)?;
        self.expect(State::CreateStreams, STAGE)
    }

    fn other(&self, what: String) -> ClientError {
        ClientError::NotIperf3 { address: self.server, what }
    }

    /// Waits for the state `wanted` from the server; any other state is an error that ends the test.
    pub(super) fn expect(&self, wanted: State, stage: &'static str) -> Result<(), ClientError> {
        let mut byte = [0];
        let heard = self.control.read(&mut byte, self.patience);
        heard.map_err(|broken| ClientError::broken(self.server, stage, broken))?;
        if State::decode(byte[0]) == Some(wanted) {
            return Ok(());
        }
        Err(self.surprise(byte[0], stage))
    }

    /// Converts an unexpected byte from the server to an error.
    pub(super) fn surprise(&self, byte: u8, stage: &'static str) -> ClientError {
        match State::decode(byte) {
            Some(known) => self.unexpected(known, stage),
            None => ClientError::Lost {
                address: self.server,
                stage,
                what: format!("it sent the undefined state {byte}"),
            },
        }
    }

    fn unexpected(&self, heard: State, stage: &'static str) -> ClientError {
        let address = self.server;
        match heard {
            State::AccessDenied => ClientError::Busy(address),
            State::ServerTerminate => ClientError::Terminated { address, stage },
            State::ServerError => {
                let mut bytes = [0; REFUSAL_LEN];
                match self.control.read(&mut bytes, self.patience) {
                    Ok(()) => ClientError::refused(address, Refusal::decode(bytes)),
                    Err(broken) => ClientError::broken(address, stage, broken),
                }
            }
            other => ClientError::Lost {
                address,
                stage,
                what: format!("it sent {other:?} at the wrong time"),
            },
        }
    }

    /// Sends this end's results to the server, and receives the server's results.
    pub(super) fn exchange(&self, ours: &Results) -> Result<Results, ClientError> {
        let lost = |broken| ClientError::broken(self.server, RESULTS, broken);
        self.control.tell(&ours.encode(), self.patience).map_err(lost)?;
        let theirs = self.control.hear(self.patience).map_err(lost)?;
        let theirs = Results::decode(&theirs);
        let theirs = theirs.map_err(|e: Malformed| lost(Broken::Malformed(e)))?;
        // Both ends have sent their results, so a later failure loses nothing.
        if self.expect(State::DisplayResults, RESULTS).is_ok() {
            let _ = self.control.say(State::IperfDone, self.patience);
        }
        Ok(theirs)
    }
}
