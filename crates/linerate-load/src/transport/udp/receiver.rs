//! The receiving thread of a stream of datagrams.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::parse::datagram::{Header, Kind, Stray, datagrams};
use linerate_sys::clock;
use linerate_sys::datagram::Inbox;
use linerate_units::stats::Arrivals;

use super::farewell::{QUIET_NANOS, REPEAT};
use super::line::Line;
use super::probe::{DatagramProbe, RECEIVES};
use crate::pattern::stream::StreamEnd;
use crate::{Advice, LoadError, Probe};

/// Most messages that one call receives: joined messages have up to 64 KiB each.
const MESSAGES: usize = 32;

/// Returns the bytes that a receiver allocates.
pub(super) fn room() -> u64 {
    Inbox::room(MESSAGES) as u64 + Arrivals::room(0)
}

/// Receives datagrams until the end mark, and then as long as more of them arrive.
pub(super) struct Receiver {
    line: Line,
    inbox: Option<Inbox>,
    arrivals: Arrivals,
    /// Number of the current step; `None` before the first step.
    step: Option<u32>,
    /// Time at which the last datagram of the step was received; set once an end mark was received.
    last: Option<u64>,
    ended: bool,
}

impl Receiver {
    pub(super) fn new(line: Line) -> Self {
        Self {
            line,
            inbox: None,
            arrivals: Arrivals::default(),
            step: None,
            last: None,
            ended: false,
        }
    }

    /// Receives the available datagrams; returns the payload in bytes, counting each datagram once.
    fn pull(&mut self) -> Result<u32, LoadError> {
        let Some(mut inbox) = self.inbox.take() else {
            return Ok(0);
        };
        let taken = self.take_in(&mut inbox);
        self.inbox = Some(inbox);
        self.line.counts.arrived(&self.arrivals);
        if let Some(last) = self.last {
            self.ended = clock::now().saturating_sub(last) > QUIET_NANOS;
        }
        taken
    }

    fn take_in(&mut self, inbox: &mut Inbox) -> Result<u32, LoadError> {
        if let Err(e) = inbox.receive(self.line.fd()) {
            return self.line.paused(e).map(|()| 0);
        }
        let (mut bytes, mut messages) = (0, 0);
        for message in inbox.messages() {
            messages += 1;
            for header in datagrams(message, self.line.other) {
                bytes += self.take(header)?;
            }
        }
        self.line.counts.read(messages);
        Ok(bytes)
    }

    /// Handles one datagram; returns its payload in bytes if it counts, otherwise zero.
    #[inline]
    fn take(&mut self, header: Result<Header, Stray>) -> Result<u32, LoadError> {
        let step = self.step.unwrap_or_default();
        match header {
            Ok(header) if header.step == step && header.kind == Kind::Payload => {
                if self.last.is_some() {
                    self.last = Some(clock::now());
                }
                let counts = self.arrivals.take(header.number).counts();
                Ok(if counts { u32::from(header.size) } else { 0 })
            }
            Ok(header) if header.step == step && header.kind == Kind::End => {
                self.arrivals.expect(header.number);
                if self.last.is_none() {
                    self.line.set_timeouts(REPEAT)?;
                }
                self.last = Some(clock::now());
                self.line.tell(Kind::Ended, step, header.number)?;
                Ok(0)
            }
            // An end mark of an earlier step, which the sender repeated.
            Ok(header) if header.kind == Kind::End => Ok(0),
            _ => {
                self.line.counts.stray();
                Ok(0)
            }
        }
    }
}

/// Longest time that a receive waits for payload.
const WAIT: Duration = Duration::from_millis(100);

impl StreamEnd for Receiver {
    const SENDS: bool = false;

    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.inbox.get_or_insert_with(|| Inbox::new(MESSAGES));
        self.step = Some(self.step.map_or(0, |step| step.wrapping_add(1)));
        self.line.set_timeouts(WAIT)?;
        self.arrivals.clear();
        self.last = None;
        self.ended = false;
        self.line.counts.clear();
        Ok(())
    }

    #[inline]
    fn go_on(&mut self, _: u32) -> Result<u32, LoadError> {
        self.pull()
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(self.ended)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = DatagramProbe::new(self.line.clone(), RECEIVES);
        vec![Box::new(probe)]
    }
}
