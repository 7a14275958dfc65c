//! Datagrams in iperf3's format: each begins with a time stamp and a number, and there is no end mark.
//!
//! Each datagram is passed to the kernel separately, several in one call. The kernel does not cut them from larger
//! messages (UDP_SEGMENT) or join them for reading (UDP_GRO), because the header does not include their size.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;
use linerate_plan::SetPlan;
use linerate_plan::path::{Direction, Side};
use linerate_record::SetEnd;
use linerate_record::iperf3::{DATAGRAM_MAX, DATAGRAM_MIN, Header, Intake, Width};
use linerate_sys::clock;
use linerate_sys::datagram::{self, Inbox};

use super::line::Line;
use super::options::size;
use super::probe::{DatagramProbe, RECEIVES_BARE};
use super::sender;
use crate::framing::Bare;
use crate::pace;
use crate::pattern::stream::{StreamEnd, stream};
use crate::{Advice, LoadError, Probe, Worker};

/// Longest delay in nanoseconds that a sender makes up for by sending faster than its pace. iperf3 makes up for all
/// delays, so its users expect a mean rate, and a thread that shares its CPU is often some milliseconds late. After a
/// longer stall, making up for it would flood the path.
const CREDIT_NANOS: u64 = 100_000_000;
/// Most datagrams of a burst, unless the test sets the burst.
const BURST: usize = 4096;
/// Most datagrams that one call receives; each has a buffer of 64 KiB, whatever size the other side sends.
const MESSAGES: usize = 16;
/// Longest time that a receive waits for payload.
const WAIT: Duration = Duration::from_millis(100);

/// Kind of header that a sender writes at the front of each datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp {
    width: Width,
}

impl Stamp {
    /// Writes the header of a datagram that is sent at `now` (in nanoseconds), after `before` other datagrams.
    #[inline]
    pub(super) fn write(self, now: u64, before: u64, datagram: &mut [u8]) {
        let header = Header { micros: now / 1000, number: before + 1 };
        header.write(self.width, datagram);
    }
}

/// Makes the worker of a stream. The returned gaps are for options that its socket was refused.
pub(super) fn worker(
    side: Side,
    plan: &SetPlan,
    line: Line,
    bare: &Arc<Bare>,
    end: &mut SetEnd,
) -> Result<(Box<dyn Worker>, Vec<Gap>), LoadError> {
    let sends = plan.pattern.direction().map(Direction::sender) == Some(side);
    if !sends {
        end.read_size = DATAGRAM_MAX;
        return Ok((stream(Receiver::new(line, bare)), Vec::new()));
    }
    let mut gaps = Vec::new();
    let fits = datagram::fits(line.fd()).map_err(|e| line.failed("getsockopt", e))?;
    let bytes = size(plan.knobs.write_size.0, fits, DATAGRAM_MIN);
    super::whole(&line, bytes, fits, &mut gaps)?;
    end.write_size = u64::from(bytes);
    let burst = |rate| bare.burst.unwrap_or_else(|| pace::burst(rate, bytes, BURST));
    let pace = super::paced(plan.knobs.pacing, bytes, burst, CREDIT_NANOS, end);
    let stamp = Stamp { width: bare.width };
    let sender = sender::Sender::new(line.heeding_deaf(), bytes, 1, pace).stamping(stamp);
    Ok((stream(sender), gaps))
}

/// Receives datagrams until the control connection ends the test.
struct Receiver {
    line: Line,
    bare: Arc<Bare>,
    inbox: Option<Inbox>,
    intake: Intake,
}

impl Receiver {
    fn new(line: Line, bare: &Arc<Bare>) -> Self {
        Self { line, bare: Arc::clone(bare), inbox: None, intake: Intake::new(bare.width, 0) }
    }

    /// Receives the available datagrams; returns the payload in bytes, counting each datagram once.
    fn pull(&mut self) -> Result<u32, LoadError> {
        let inbox = self.inbox.get_or_insert_with(|| Inbox::new(MESSAGES));
        if let Err(error) = inbox.receive(self.line.fd()) {
            return self.line.paused(error).map(|()| 0);
        }
        let (now, mut bytes, mut messages) = (clock::now(), 0, 0);
        for one in inbox.messages() {
            bytes += self.intake.take(one, now);
            messages += 1;
        }
        let counts = &self.line.counts;
        counts.arrived(self.intake.arrivals());
        counts.strays(self.intake.strays());
        counts.jitter(self.intake.jitter());
        counts.read(messages);
        Ok(bytes as u32)
    }
}

impl StreamEnd for Receiver {
    const SENDS: bool = false;

    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.inbox.get_or_insert_with(|| Inbox::new(MESSAGES));
        self.line.set_timeouts(WAIT)?;
        self.line.counts.clear();
        self.intake = Intake::new(self.bare.width, clock::now());
        Ok(())
    }

    #[inline]
    fn go_on(&mut self, _: u32) -> Result<u32, LoadError> {
        self.pull()
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(self.bare.is_over())
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = DatagramProbe::new(self.line.clone(), RECEIVES_BARE);
        vec![Box::new(probe)]
    }
}
