//! The state of one stream at its receiver.

use std::sync::Arc;

use linerate_facts::parse::run::Mark;
use linerate_plan::Knobs;
use linerate_sys::socket;
use rustix::event::epoll;

use super::bundle::{BundledStream, Turn};
use super::intake::Intake;

use crate::framing::{Bare, Framing};
use crate::pages::Pages;
use crate::transport::line::{Line, MarkPart};
use crate::{Advice, LoadError};

/// Smallest low-water mark in bytes: with less data per wake-up, fewer wake-ups would not save enough.
const LOW_WATER_MIN: u64 = 64 * 1024;
/// Reciprocal of the longest delay in seconds by which gathering may delay a receiver. The delay is well below a timer
/// tick, and below the duration of a window on paths that are fast enough for gathering to matter.
const LOW_WATERS_PER_SEC: u64 = 5000;
/// Reciprocal of the share of the receive buffer that data may occupy before it is read, so that the window stays open.
const LOW_WATER_SHARE: u64 = 8;
/// Receive buffer for a clamped window, as a multiple of the window: small segments occupy several times their payload.
const CLAMP_BUFFER: u64 = 4;

/// An upper bound of the receive window. It is set again and again, because the kernel lifts it.
struct Clamp {
    bytes: u64,
    locked: bool,
}

impl Clamp {
    /// Sets the clamp of the window again. The kernel lifts it whenever it enlarges the buffer (tcp_rcvbuf_grow). So
    /// the buffer size is locked once the buffer is large enough that the clamp alone limits the window.
    fn hold(&mut self, line: &Line) -> Result<(), LoadError> {
        let failed = |e| line.failed("setsockopt", e);
        if !self.locked {
            let buffer = socket::recv_buffer(line.fd()).map_err(failed)?;
            if buffer >= self.bytes.saturating_mul(CLAMP_BUFFER) {
                // Kernels before 5.14 cannot lock the buffer size; there the clamp is lifted for short times.
                let _ = socket::lock_recv_buffer(line.fd());
                self.locked = true;
            }
        }
        socket::set_window_clamp(line.fd(), self.bytes).map_err(failed)
    }
}

/// Receives runs of payload up to the end mark, or bare payload until the control connection announces its end.
pub(super) struct Inflow {
    pub(super) line: Line,
    framing: Framing,
    pub(super) intake: Intake,
    /// Whether receives may wait for more data than the first byte.
    may_gather: bool,
    clamp: Option<Clamp>,
    mark: MarkPart,
    /// Bytes of the current run that were not received yet.
    left: u64,
    /// Payload received in this step, in bytes.
    total: u64,
    /// Value of `SO_RCVLOWAT` in force.
    low_water: u64,
    /// Largest low-water mark that may be set, in bytes.
    gather: u64,
    ended: bool,
}

impl Inflow {
    pub(super) fn new(line: Line, knobs: &Knobs, framing: Framing) -> Self {
        Self {
            line,
            framing,
            intake: Intake::of(knobs.receive),
            // If the plan limits the window, gathering data before a read would change the measurement.
            may_gather: knobs.recv_buffer.is_none() && knobs.window_clamp.is_none(),
            clamp: knobs.window_clamp.map(|b| Clamp { bytes: b.0, locked: false }),
            mark: MarkPart::default(),
            left: 0,
            total: 0,
            low_water: 1,
            gather: 0,
            ended: false,
        }
    }

    /// Returns whether the end mark was read or, for bare payload, whether its end was announced.
    pub(super) fn ended(&self) -> bool {
        self.ended || self.ends_unmarked()
    }

    /// Stops receiving in this step.
    pub(super) fn close(&mut self) -> Result<(), LoadError> {
        self.intake.end(&self.line)
    }

    /// Receives at most `most` bytes of payload into `room`, as one receive of an application would. Returns at once
    /// or, with `wait`, within the block time. `rate` is the stream's rate in bytes per second. One call may cross the
    /// ends of several runs: a slow sender makes short runs, and a receiver that pays for each operation must not be
    /// slowed down by them.
    #[inline(always)]
    pub(super) fn pull(
        &mut self,
        room: &mut [u8],
        rate: u64,
        most: u32,
        wait: bool,
    ) -> Result<u32, LoadError> {
        if let Framing::Bare(bare) = &self.framing {
            let bare = Arc::clone(bare);
            return self.pull_bare(&bare, room, most, wait);
        }
        let mut all = self.pull_run(room, rate, most, wait)?;
        while all < most && self.left == 0 && !self.ended {
            let more = self.pull_run(room, rate, most - all, false)?;
            if more == 0 {
                break;
            }
            all += more;
        }
        Ok(all)
    }

    /// Receives at most `most` bytes of bare payload. After the end was announced, an error means the end of the
    /// stream.
    fn pull_bare(
        &mut self,
        bare: &Bare,
        room: &mut [u8],
        most: u32,
        wait: bool,
    ) -> Result<u32, LoadError> {
        if self.ended {
            return Ok(0);
        }
        match self.intake.payload(&self.line, room, most.into(), wait) {
            Ok(moved) => {
                self.total += moved as u64;
                Ok(moved as u32)
            }
            Err(_) if bare.is_ending() => {
                self.ended = true;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Receives at most `most` bytes of one run. At the start of the run, its mark is read first.
    fn pull_run(
        &mut self,
        room: &mut [u8],
        rate: u64,
        most: u32,
        wait: bool,
    ) -> Result<u32, LoadError> {
        if self.left == 0 && !self.next_run(rate, wait)? {
            return Ok(0);
        }
        let most = u64::from(most).min(self.left);
        let moved = self.intake.payload(&self.line, room, most, wait)?;
        self.left -= moved as u64;
        self.total += moved as u64;
        // The rest of the run and the next mark must be read without waiting for data that may never arrive. A receive
        // waits until the low-water mark is reached, even if it requests less.
        if self.left < self.low_water {
            self.set_low_water(1)?;
        }
        Ok(moved as u32)
    }

    /// Reads the next mark; returns true when a run begins.
    fn next_run(&mut self, rate: u64, wait: bool) -> Result<bool, LoadError> {
        if self.ended {
            return Ok(false);
        }
        match self.intake.mark(&self.line, &mut self.mark, wait)? {
            None => Ok(false),
            Some(Mark::Run(length)) => {
                self.left = length;
                self.begin_run(rate)?;
                Ok(true)
            }
            Some(Mark::End(total)) if total == self.total => {
                self.ended = true;
                Ok(false)
            }
            Some(Mark::End(total)) => {
                let what = format!("{total} bytes were sent but {} received", self.total);
                Err(self.line.garbled(&what))
            }
        }
    }

    fn begin_run(&mut self, rate: u64) -> Result<(), LoadError> {
        if let Some(clamp) = &mut self.clamp {
            clamp.hold(&self.line)?;
        }
        let gather = self.gather.min(rate / LOW_WATERS_PER_SEC);
        if !self.may_gather || gather < LOW_WATER_MIN {
            return Ok(());
        }
        let buffer = socket::recv_buffer(self.line.fd());
        let buffer = buffer.map_err(|e| self.line.failed("getsockopt", e))?;
        let wanted = low_water(gather, buffer);
        if wanted <= self.left {
            self.set_low_water(wanted)?;
        }
        Ok(())
    }

    fn set_low_water(&mut self, bytes: u64) -> Result<(), LoadError> {
        if bytes != self.low_water {
            let set = socket::set_low_water(self.line.fd(), bytes);
            set.map_err(|e| self.line.failed("setsockopt", e))?;
            self.low_water = bytes;
        }
        Ok(())
    }
}

impl BundledStream for Inflow {
    const WANTED: epoll::EventFlags = epoll::EventFlags::IN;
    type Shared = Pages;

    fn share(room: &mut Pages, most: usize) -> std::io::Result<()> {
        room.ensure(most);
        Ok(())
    }

    fn line(&self) -> &Line {
        &self.line
    }

    fn begin(&mut self, advice: &Advice) {
        self.gather = advice.gather().into();
        self.total = 0;
        self.ended = false;
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn ends_unmarked(&self) -> bool {
        matches!(&self.framing, Framing::Bare(bare) if bare.is_over())
    }

    fn go_on(&mut self, room: &mut Pages, turn: &Turn) -> Result<(u32, bool), LoadError> {
        let moved = self.pull(room.bytes_mut(), turn.rate, turn.most, false)?;
        Ok((moved, self.ended()))
    }
}

/// Returns the low-water mark if `gather` bytes may gather in a receive buffer of `buffer` bytes. A mark of 1 wakes the
/// receiver at the first byte.
fn low_water(gather: u64, buffer: u64) -> u64 {
    let bytes = gather.min(buffer / LOW_WATER_SHARE);
    if bytes < LOW_WATER_MIN { 1 } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_short_small_and_only_where_it_pays() {
        let (least, big) = (LOW_WATER_MIN, 32 << 20);
        assert_eq!(low_water(0, big), 1);
        assert_eq!(low_water(least - 1, big), 1);
        assert_eq!(low_water(least, big), least);
        assert_eq!(low_water(3 * least, big), 3 * least);
        assert_eq!(low_water(u64::MAX, least * 8 - 1), 1);
        assert_eq!(low_water(u64::MAX, least * 8), least);
    }
}
