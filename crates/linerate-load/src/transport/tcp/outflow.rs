//! The state of one stream at its sender.

use std::time::Duration;

use linerate_facts::parse::run::{Mark, RUN_MAX};

use super::bundle::{BundledStream, Turn};
use super::outlet::Outlet;
use crate::framing::{Bare, Framing};
use crate::transport::line::{Line, MarkPart};
use rustix::event::epoll;

use crate::{Advice, LoadError};

/// Reciprocal of the approximate time in seconds that the payload of a run lasts.
const RUNS_PER_SEC: u64 = 100;
/// Longest run in bytes while the rate is unknown.
const RUN_UNKNOWN: u64 = 64 * 1024;
/// Lower bound of the longest run in bytes, at low rates: shorter runs would consist mostly of marks.
const RUN_LEAST: u64 = 512;

/// Pause of a sender that has sent all bytes that the test permits, until the step ends.
const DONE: Duration = Duration::from_millis(5);

/// Sends runs of payload, each announced by a mark, or bare payload in whole operations.
pub(super) struct Outflow {
    pub(super) line: Line,
    framing: Framing,
    mark: MarkPart,
    /// Length of a run whose mark is not fully sent yet, in bytes; zero if there is none.
    announced: u64,
    /// Bytes of the current run that were not sent yet.
    left: u64,
    /// Payload sent in this step, in bytes.
    total: u64,
    ended: bool,
}

impl Outflow {
    pub(super) fn new(line: Line, framing: Framing) -> Self {
        Self {
            line,
            framing,
            mark: MarkPart::default(),
            announced: 0,
            left: 0,
            total: 0,
            ended: false,
        }
    }

    /// Sends at most `most` bytes of `payload`. If a new run begins, its mark is sent first. Sends as much as the
    /// kernel accepts at once or, with `wait`, within the block time. `rate` is the stream's rate in bytes per second.
    pub(super) fn push(
        &mut self,
        payload: &mut Outlet,
        rate: u64,
        most: u32,
        wait: bool,
    ) -> Result<u32, LoadError> {
        if self.left == 0 && !self.next_run(rate, most, wait)? {
            return Ok(0);
        }
        let len = u64::from(most).min(self.left) as usize;
        let moved = payload.send(&self.line, len, rate, wait)?;
        self.left -= moved as u64;
        self.total += moved as u64;
        Ok(moved as u32)
    }

    /// Begins a run; returns false if its mark could not be sent yet, or if no more payload may be sent.
    fn next_run(&mut self, rate: u64, most: u32, wait: bool) -> Result<bool, LoadError> {
        if let Framing::Bare(bare) = &self.framing {
            self.left = next_operation(bare, most, wait);
            return Ok(self.left > 0);
        }
        if self.announced == 0 {
            self.announced = run_length(rate, most);
        }
        if !self.put(Mark::Run(self.announced), true, wait)? {
            return Ok(false);
        }
        self.left = std::mem::take(&mut self.announced);
        Ok(true)
    }

    /// Returns whether the rest of a run must be sent before the end mark.
    pub(super) fn in_a_run(&self) -> bool {
        !self.ends_unmarked() && (self.left > 0 || self.announced > 0)
    }

    /// Sends the end mark; returns true once all its bytes are sent. Bare payload has no end mark.
    pub(super) fn end(&mut self, wait: bool) -> Result<bool, LoadError> {
        if self.ends_unmarked() {
            return Ok(true);
        }
        if !self.ended {
            self.ended = self.put(Mark::End(self.total), false, wait)?;
        }
        Ok(self.ended)
    }

    fn put(&mut self, mark: Mark, more: bool, wait: bool) -> Result<bool, LoadError> {
        if wait {
            self.mark.put(&self.line, mark, more)
        } else {
            self.mark.offer(&self.line, mark, more)
        }
    }
}

impl BundledStream for Outflow {
    const WANTED: epoll::EventFlags = epoll::EventFlags::OUT;
    type Shared = Outlet;

    fn share(payload: &mut Outlet, most: usize) -> std::io::Result<()> {
        payload.fill(most)
    }

    fn line(&self) -> &Line {
        &self.line
    }

    fn begin(&mut self, _: &Advice) {
        self.total = 0;
        self.ended = false;
        if self.ends_unmarked() {
            self.left = 0;
        }
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn ends_unmarked(&self) -> bool {
        matches!(self.framing, Framing::Bare(_))
    }

    fn go_on(&mut self, payload: &mut Outlet, turn: &Turn) -> Result<(u32, bool), LoadError> {
        if turn.ending && !self.in_a_run() {
            return Ok((0, self.end(false)?));
        }
        let moved = self.push(payload, turn.rate, turn.most, false)?;
        Ok((moved, false))
    }
}

/// Returns the bytes of the next operation of bare payload. It is sent as a whole, since a receiver may wait for all of
/// it.
fn next_operation(bare: &Bare, most: u32, wait: bool) -> u64 {
    let bytes = bare.take(most.into());
    if bytes == 0 && wait {
        std::thread::sleep(DONE);
    }
    bytes
}

/// Returns the longest run in bytes at `rate` bytes per second: a second of payload.
fn second(rate: u64) -> u64 {
    if rate == 0 { RUN_UNKNOWN } else { rate.max(RUN_LEAST) }
}

/// Returns the length of a run in bytes: whole operations that last about 10 ms. If a whole operation lasts longer than
/// a second, the run is a part of it, since a run that has begun is always sent to its end.
fn run_length(rate: u64, op: u32) -> u64 {
    let op = u64::from(op.max(1));
    let wanted = (rate / RUNS_PER_SEC).min(RUN_MAX);
    let whole = (wanted / op).max(1) * op;
    whole.min(second(rate))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_run_is_whole_operations_or_a_second_of_one_and_within_bounds(
            rate: u64, op in 0u32..=16 << 20,
        ) {
            let (length, op) = (run_length(rate, op), u64::from(op.max(1)));
            prop_assert!((1..=RUN_MAX).contains(&length));
            let second = second(rate);
            prop_assert!(length % op == 0 || length == second && length < op);
            prop_assert!(length <= second);
        }
    }

    #[test]
    fn a_run_is_ten_milliseconds_long_where_operations_are_smaller() {
        assert_eq!(run_length(1_000_000_000, 1000), 10_000_000);
        assert_eq!(run_length(1_000_000, 65_536), 65_536);
    }

    #[test]
    fn an_operation_that_takes_longer_than_a_second_is_cut() {
        assert_eq!(run_length(4 << 20, 4 << 20), 4 << 20);
        assert_eq!(run_length(125_000, 4 << 20), 125_000);
        assert_eq!(run_length(0, 4 << 20), RUN_UNKNOWN);
        assert_eq!(run_length(1000, 4 << 20), 1000);
        assert_eq!(run_length(1, 4 << 20), RUN_LEAST);
    }
}
