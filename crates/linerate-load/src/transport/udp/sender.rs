//! The sending thread of a stream of datagrams.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::parse::datagram::{DATAGRAM_MAX, HEADER_LEN, Kind, NUMBER_AT};
use linerate_sys::{clock, datagram, thread};

use super::bare::Stamp;
use super::farewell::{Farewell, REPEAT};
use super::line::{Line, Sent};
use super::probe::{DatagramProbe, SENDS};
use crate::pace::Pace;
use crate::pages::Pages;
use crate::pattern::stream::StreamEnd;
use crate::times::{self, Times};
use crate::{Advice, LoadError, Probe, Timed};

/// Most bytes that are passed to the kernel in one call: so few that they stay in the cache of the thread's core.
const CALL_BYTES: usize = 128 * 1024;
/// Bytes that a sender allocates: the datagrams of one call, and the histogram of times between sends.
pub(super) const ROOM: usize = CALL_BYTES + times::ROOM;
/// Number of calls with one datagram each that follow a call that sent only some of its datagrams. The kernel reports
/// an error only from a call that sends none (sendmmsg(2)), and a sender that must stop when the other UDP port is
/// closed needs that error.
const SINGLY: u32 = 4;
/// Longest wait for a burst to become due.
const WAIT: Duration = Duration::from_millis(100);

/// Sends datagrams of random payload, all of one size.
pub(super) struct Sender {
    line: Line,
    size: u16,
    /// Number of datagrams into which the kernel segments one message; 1 without segmentation.
    segments: usize,
    pace: Option<Pace>,
    payload: Pages,
    /// Number of datagrams sent in this step.
    sent: u64,
    /// Number of the current step; `None` before the first step.
    step: Option<u32>,
    farewell: Farewell,
    /// Header for datagrams to iperf3, which number the datagrams. Without it, linerate's own headers are written.
    stamp: Option<Stamp>,
    /// How many of the next calls send only a single datagram.
    singly: u32,
    /// Time of the last send, if the sender has a pace; zero before the first send of a step.
    last: u64,
    gaps: Times,
    advice: Arc<Advice>,
}

/// Returns into how many datagrams of `size` bytes one message is segmented, if the kernel can segment messages.
pub(super) fn segments(size: u16) -> usize {
    (DATAGRAM_MAX / usize::from(size)).clamp(1, datagram::SEGMENTS)
}

/// Returns how many datagrams of `size` bytes one call sends at most. A message contains `segments` of them.
pub(super) fn most(size: u16, segments: usize) -> usize {
    (CALL_BYTES / usize::from(size)).clamp(1, datagram::BATCH * segments)
}

impl Sender {
    pub(super) fn new(line: Line, size: u16, segments: usize, pace: Option<Pace>) -> Self {
        Self {
            line,
            size,
            segments,
            pace,
            payload: Pages::default(),
            sent: 0,
            step: None,
            farewell: Farewell::default(),
            stamp: None,
            singly: 0,
            last: 0,
            gaps: Times::default(),
            advice: Arc::new(Advice::new(1, 1)),
        }
    }

    /// Makes the sender write `stamp` into its datagrams. The end of these datagrams is announced on another
    /// connection.
    pub(super) fn stamping(self, stamp: Stamp) -> Self {
        Self { stamp: Some(stamp), ..self }
    }

    /// Returns how many datagrams one call sends at most.
    fn most(&self) -> usize {
        most(self.size, self.segments)
    }

    /// Sends a batch of datagrams; returns how many bytes the kernel accepted.
    fn push(&mut self) -> Result<u32, LoadError> {
        let (mut count, mut now) = (self.most(), 0);
        if self.stamp.is_some() {
            // Each datagram contains this time.
            now = clock::now();
        }
        if let Some(pace) = &mut self.pace {
            if let Err(due) = pace.may(clock::now()) {
                clock::sleep_until(due, WAIT);
            }
            now = clock::now();
            let Ok(burst) = pace.may(now) else {
                return Ok(0);
            };
            // The burst may be longer than one call, if the kernel no longer segments messages.
            count = count.min(burst);
        }
        if self.singly > 0 {
            (count, self.singly) = (1, self.singly - 1);
        }
        let size = usize::from(self.size);
        let bytes = &mut self.payload.bytes_mut()[..count * size];
        for (number, one) in (self.sent..).zip(bytes.chunks_exact_mut(size)) {
            match self.stamp {
                None => one[NUMBER_AT..HEADER_LEN].copy_from_slice(&number.to_be_bytes()),
                Some(stamp) => stamp.write(now, number, one),
            }
        }
        let messages = bytes.chunks(self.segments * size);
        let taken = match self.line.send(messages)? {
            Sent::Taken(messages) => count.min(messages * self.segments),
            Sent::Waiting => 0,
            Sent::Refused => {
                self.line.counts.refused(self.segments.min(count) as u64);
                0
            }
            Sent::TooLong if self.segments == 1 => 0,
            Sent::Uncut | Sent::TooLong => {
                self.stop_cutting()?;
                0
            }
        };
        if taken > 0 && self.pace.is_some() {
            self.gap(now);
        }
        if self.stamp.is_some() && (1..count).contains(&taken) {
            self.singly = SINGLY;
        }
        self.sent += taken as u64;
        self.line.counts.sent(self.sent);
        if let Some(pace) = &mut self.pace {
            pace.sent(taken);
        }
        Ok((taken * size) as u32)
    }

    /// Records the time since the previous send, if the step counts now.
    fn gap(&mut self, now: u64) {
        if self.last > 0 && self.advice.counting() {
            self.gaps.record(now - self.last, 1);
        }
        self.last = now;
    }

    /// Makes the sender pass each datagram as a separate message from now on.
    fn stop_cutting(&mut self) -> Result<(), LoadError> {
        if self.segments == 1 {
            return Err(self.line.garbled("the kernel accepts none of its datagrams"));
        }
        let set = datagram::set_segment(self.line.fd(), 0);
        set.map_err(|e| self.line.failed("setsockopt", e))?;
        self.segments = 1;
        self.line.counts.uncut();
        Ok(())
    }

    /// Writes the header of every datagram of a call. Later calls change only the numbers in it.
    fn address(&mut self, step: u32) {
        let header = self.line.header(Kind::Payload, self.size, step, 0).encode();
        let bytes = self.payload.bytes_mut();
        for one in bytes.chunks_exact_mut(usize::from(self.size)) {
            one[..HEADER_LEN].copy_from_slice(&header);
        }
    }
}

impl StreamEnd for Sender {
    const SENDS: bool = true;

    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        let filled = self.payload.fill(self.most() * usize::from(self.size));
        filled.map_err(|e| self.line.failed("getrandom", e))?;
        let step = self.step.map_or(0, |step| step.wrapping_add(1));
        self.step = Some(step);
        if self.stamp.is_none() {
            self.address(step);
        }
        self.line.set_timeouts(REPEAT)?;
        if self.pace.is_some() {
            // If the kernel refuses exact timers, bursts are sent late, and later bursts make up for the delay.
            let _ = thread::exact_timers();
            self.gaps.renew()?;
        }
        (self.sent, self.last) = (0, 0);
        self.farewell = Farewell::default();
        self.line.counts.clear();
        Ok(())
    }

    #[inline]
    fn go_on(&mut self, _: u32) -> Result<u32, LoadError> {
        if self.sent == 0
            && let Some(pace) = &mut self.pace
        {
            pace.begin(clock::now());
        }
        self.push()
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if self.stamp.is_some() {
            return Ok(true);
        }
        let step = self.step.unwrap_or_default();
        self.farewell.say(&self.line, step, self.sent)
    }

    fn timed(&mut self) -> Timed {
        Timed { gaps: self.gaps.take(), ..Timed::default() }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = DatagramProbe::new(self.line.clone(), SENDS);
        vec![Box::new(probe)]
    }
}
