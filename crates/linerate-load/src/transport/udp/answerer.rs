//! The far end of round trips by datagrams: answers each message once, with the message's own bytes.

use std::time::Duration;

use linerate_facts::parse::datagram::{DATAGRAM_MAX, HEADER_LEN, Header, Kind};
use linerate_sys::clock;
use linerate_units::stats::Arrivals;

use super::farewell::{QUIET_NANOS, REPEAT};
use super::line::Line;
use super::probe::{ANSWERS, DatagramProbe};
use crate::pages::Pages;
use crate::pattern::{Answerer, Wait};
use crate::{LoadError, Probe};

/// Longest time that a receive blocks during a step.
const BLOCK: Duration = Duration::from_millis(100);

/// Worker that answers messages.
pub(super) struct UdpAnswerer {
    line: Line,
    size: u16,
    wait: Wait,
    message: Pages,
    arrivals: Arrivals,
    step: Option<u32>,
    /// Time at which the last datagram of the step was received, once the step's end is known.
    last: Option<u64>,
    ended: bool,
}

impl UdpAnswerer {
    /// Makes a worker that answers each message once, as far back as `arrivals` remembers message numbers. A `busy`
    /// worker polls its socket without sleeping.
    pub(super) fn new(line: Line, size: u16, arrivals: Arrivals, busy: bool) -> Self {
        Self {
            line,
            size,
            wait: Wait::of(busy),
            message: Pages::default(),
            arrivals,
            step: None,
            last: None,
            ended: false,
        }
    }

    /// Handles a received datagram of `bytes` bytes; returns its size if it was answered, otherwise zero.
    fn take(&mut self, bytes: usize) -> Result<u32, LoadError> {
        let step = self.step.unwrap_or_default();
        let message = &mut self.message.bytes_mut()[..bytes];
        match Header::decode(message, self.line.other) {
            Ok(h) if h.step == step && h.kind == Kind::Ping && usize::from(h.size) == bytes => {
                let new = self.arrivals.take(h.number).counts();
                self.line.counts.sent(self.arrivals.taken());
                if !new {
                    return Ok(0);
                }
                let answer = self.line.header(Kind::Pong, h.size, step, h.number);
                message[..HEADER_LEN].copy_from_slice(&answer.encode());
                // If the kernel refuses the answer, the answer is lost, like one that is lost on the path.
                self.line.send([&*message].into_iter())?;
                Ok(u32::from(h.size))
            }
            Ok(h) if h.step == step && h.kind == Kind::End => {
                if self.last.is_none() {
                    self.line.set_timeouts(REPEAT)?;
                }
                self.last = Some(clock::now());
                self.line.tell(Kind::Ended, step, h.number)?;
                Ok(0)
            }
            // An end mark of an earlier step, which the sender repeated.
            Ok(h) if h.kind == Kind::End => Ok(0),
            _ => {
                self.line.counts.stray();
                Ok(0)
            }
        }
    }
}

impl Answerer for UdpAnswerer {
    fn size(&self) -> u32 {
        self.size.into()
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        self.message.ensure(DATAGRAM_MAX);
        self.line.set_timeouts(BLOCK)?;
        self.step = Some(self.step.map_or(0, |step| step.wrapping_add(1)));
        self.arrivals.clear();
        self.last = None;
        self.ended = false;
        self.line.counts.clear();
        Ok(())
    }

    fn answer(&mut self) -> Result<u32, LoadError> {
        let answered = match self.line.timed(self.message.bytes_mut(), self.wait)? {
            Some(got) => self.take(got.bytes),
            None => Ok(0),
        };
        if let Some(last) = self.last {
            self.ended = clock::now().saturating_sub(last) > QUIET_NANOS;
        }
        answered
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = DatagramProbe::new(self.line.clone(), ANSWERS);
        vec![Box::new(probe)]
    }
}
