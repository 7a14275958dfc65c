//! The worker of an ordinary program: it turns the program's reports into completed operations and times.

use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;

use super::body::{GO, STOP};
use super::handle::Handle;
use super::orders::Work;
use super::report::Report;
use crate::times::Times;
use crate::transport::abort::Abort;
use crate::transport::line::Line;
use crate::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// Worker that runs a program and evaluates its reports.
pub(super) struct Reporter {
    program: Handle,
    work: Work,
    size: u32,
    line: Line,
    advice: Arc<Advice>,
    times: Times,
    gap: Option<Gap>,
    /// Whether the order to begin the step, and the order to end it, were sent to the program.
    begun: bool,
    stopped: bool,
    ended: bool,
    moved: u64,
}

impl Reporter {
    pub(super) fn new(program: Handle, work: Work, size: u32, line: Line) -> Self {
        Self {
            program,
            work,
            size,
            line,
            advice: Arc::new(Advice::new(1, 1)),
            times: Times::default(),
            gap: None,
            begun: false,
            stopped: false,
            ended: false,
            moved: 0,
        }
    }

    /// Returns whether this end, and not the other one, determines how long a step lasts.
    fn decides(&self) -> bool {
        matches!(self.work, Work::Ask | Work::Send)
    }

    /// Sends the order to begin the step, unless it was sent already.
    fn go(&mut self) -> Result<(), LoadError> {
        if !self.begun {
            self.program.order(&[GO])?;
            self.begun = true;
        }
        Ok(())
    }

    fn take(&mut self, report: Report, done: &mut Vec<Done>) -> Result<(), LoadError> {
        match report {
            Report::Trip { at, nanos } => {
                if self.advice.counts(at) {
                    self.times.record(nanos, 1);
                }
                self.done(self.size.into(), 1, done);
            }
            Report::Moved { bytes, calls } => self.done(bytes, calls, done),
            Report::Ended(total) if total == self.moved => self.ended = true,
            report => {
                let what = format!("the program reports {report:?} after {} bytes", self.moved);
                return Err(self.line.garbled(&what));
            }
        }
        Ok(())
    }

    /// Adds completed operations for payload that the program moved in some calls.
    fn done(&mut self, bytes: u64, calls: u64, done: &mut Vec<Done>) {
        self.moved = self.moved.saturating_add(bytes);
        let mut left = bytes;
        while left > 0 {
            let part = left.min(bytes.div_ceil(calls.max(1)).min(u32::MAX.into())) as u32;
            let op = if self.decides() { Op::Send(part) } else { Op::Receive(part) };
            done.push(Done { op, bytes: part });
            left -= u64::from(part);
        }
    }
}

impl Worker for Reporter {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        self.times.renew()?;
        self.gap = self.program.follow();
        (self.begun, self.stopped, self.ended, self.moved) = (false, false, false, 0);
        if self.decides() { Ok(()) } else { self.go() }
    }

    fn submit(&mut self, _: &[Op]) -> Result<usize, LoadError> {
        self.go().map(|()| 0)
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        let mut wait = wait;
        while !self.ended
            && let Some(report) = self.program.next(wait)?
        {
            self.take(report, done)?;
            if !self.program.has_more() {
                break;
            }
            wait = Duration::ZERO;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if self.decides() && !self.stopped {
            self.go()?;
            self.program.order(&[STOP])?;
            self.stopped = true;
        }
        Ok(self.ended)
    }

    fn lacks(&mut self) -> Vec<Gap> {
        self.gap.take().into_iter().collect()
    }

    fn timed(&mut self) -> Timed {
        Timed { trips: self.times.take(), exact: self.times.exact(), ..Timed::default() }
    }

    fn process(&self) -> Option<u32> {
        Some(self.program.id())
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.line.clone()))]
    }
}
