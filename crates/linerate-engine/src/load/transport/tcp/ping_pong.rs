//! Round trips: the near end sends a message, the far end sends one of the same size back.
//!
//! Messages come in runs as payload of a stream does, so the far end knows when a step is over.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::run::Mark;
use linerate_core::units::Nanos;
use linerate_sys::{clock, thread};

use super::probe::SocketProbe;
use crate::load::pages::Pages;
use crate::load::times::Times;
use crate::load::transport::line::{Line, MarkPart};
use crate::load::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// A run holds about this much time's worth of messages.
pub(super) const RUN_NANOS: u64 = 10_000_000;
/// Most messages of a run.
pub(super) const RUN_MESSAGES: u64 = 256;

/// Looks at an empty socket before a busy worker looks up from it.
const SPINS: u32 = 1024;

/// Where a round trip stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// None is under way.
    Idle,
    /// Its time to be sent has not come, or its mark is not sent.
    Due,
    /// So many bytes are sent.
    Sending(usize),
    /// So many bytes of the answer are in.
    Waiting(usize),
}

/// Sends messages and times their answers.
pub(super) struct Pinger {
    line: Line,
    size: u32,
    interval: u64,
    /// Whether it spins on its socket instead of sleeping.
    busy: bool,
    buffer: Pages,
    answer: Pages,
    times: Times,
    advice: Arc<Advice>,
    mark: MarkPart,
    announced: u64,
    /// Messages left of the run.
    left: u64,
    /// Payload of this step, each way.
    total: u64,
    state: State,
    /// When the message should have been sent; zero before the first of a step.
    intended: u64,
    /// When the message under way should have been sent, where its round trip counts.
    counted: Option<u64>,
    /// The last round trip, to choose the length of runs by.
    last: u64,
    ending: bool,
    ended: bool,
}

impl Pinger {
    pub(super) fn new(line: Line, size: u32, interval: Nanos, busy: bool) -> Self {
        Self {
            line,
            size,
            interval: interval.0,
            busy,
            buffer: Pages::default(),
            answer: Pages::default(),
            times: Times::default(),
            advice: Arc::new(Advice::new(1, 1)),
            mark: MarkPart::default(),
            announced: 0,
            left: 0,
            total: 0,
            state: State::Idle,
            intended: 0,
            counted: None,
            last: RUN_NANOS,
            ending: false,
            ended: false,
        }
    }

    /// Goes on with the round trip under way; true when it has ended.
    fn go_on(&mut self, wait: Duration) -> Result<bool, LoadError> {
        if self.state == State::Due && self.due(wait)? {
            self.state = State::Sending(0);
            // By when it is sent, not by when it is answered: a stall at the end is seen.
            self.counted = self.advice.counting().then_some(self.intended);
        }
        if let State::Sending(at) = self.state {
            let at = at + self.line.send(&self.buffer.bytes()[at..], false)?;
            let all = at == self.size as usize;
            self.state = if all {
                State::Waiting(0)
            } else {
                State::Sending(at)
            };
        }
        if let State::Waiting(at) = self.state {
            let into = &mut self.answer.bytes_mut()[at..];
            let at = at + receive(&self.line, into, self.busy)?;
            if at == self.size as usize {
                self.answered();
                return Ok(true);
            }
            self.state = State::Waiting(at);
        }
        Ok(false)
    }

    /// Waits for the intended time, then sends the mark of a run where one begins; true when the
    /// message may be sent.
    fn due(&mut self, wait: Duration) -> Result<bool, LoadError> {
        if self.interval > 0 && !self.ending && self.announced == 0 {
            clock::sleep_until(self.intended, wait);
            if clock::now() < self.intended {
                return Ok(false);
            }
        }
        if self.left == 0 {
            if self.announced == 0 {
                self.announced = self.run_length();
            }
            let mark = Mark::Run(self.announced * u64::from(self.size));
            if !self.mark.put(&self.line, mark, true)? {
                return Ok(false);
            }
            self.left = std::mem::take(&mut self.announced);
        }
        if self.interval == 0 || self.ending {
            self.intended = clock::now();
        }
        Ok(true)
    }

    fn run_length(&self) -> u64 {
        let one = self.interval.max(self.last).max(1);
        let fits = linerate_core::parse::run::RUN_MAX / u64::from(self.size.max(1));
        (RUN_NANOS / one).min(RUN_MESSAGES).min(fits).max(1)
    }

    fn answered(&mut self) {
        let now = clock::now();
        self.last = now.saturating_sub(self.intended);
        if let Some(intended) = self.counted {
            self.times.record(now.saturating_sub(intended), 1);
        }
        // One message at a time: where a round trip outlasts the interval the schedule moves along,
        // or each message would inherit the delays of all before it.
        self.intended = (self.intended + self.interval).max(now);
        self.total += u64::from(self.size);
        self.left -= 1;
        self.state = State::Idle;
    }
}

/// What is there, slept for within the block time, or looked for many times.
fn receive(line: &Line, into: &mut [u8], busy: bool) -> Result<usize, LoadError> {
    if !busy {
        return line.receive(into, true);
    }
    for _ in 0..SPINS {
        let got = line.receive(into, false)?;
        if got > 0 {
            return Ok(got);
        }
        std::hint::spin_loop();
    }
    Ok(0)
}

impl Worker for Pinger {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        if self.buffer.ensure(self.size as usize) {
            let filled = self.buffer.randomize();
            filled.map_err(|e| self.line.failed("getrandom", e))?;
        }
        self.answer.ensure(self.size as usize);
        self.times.renew()?;
        // A kernel that refuses only makes paced messages later, which is measured.
        let _ = thread::exact_timers();
        self.total = 0;
        self.intended = 0;
        self.ending = false;
        self.ended = false;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if ops.is_empty() || self.state != State::Idle {
            return Ok(0);
        }
        if self.intended == 0 {
            self.intended = clock::now();
        }
        self.state = State::Due;
        Ok(1)
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.state != State::Idle && self.go_on(wait)? {
            done.push(Done {
                op: Op::Send(self.size),
                bytes: self.size,
            });
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.ending = true;
        if self.state == State::Due && self.left == 0 && self.announced == 0 {
            // Nobody was told of this message yet.
            self.state = State::Idle;
        }
        if self.state == State::Idle && self.left > 0 {
            self.state = State::Due;
        }
        if self.state == State::Idle && !self.ended {
            self.ended = self.mark.put(&self.line, Mark::End(self.total), false)?;
        }
        Ok(self.ended)
    }

    fn timed(&mut self) -> Timed {
        Timed {
            trips: self.times.take(),
            ..Timed::default()
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(SocketProbe::new(self.line.clone()))]
    }
}

/// Answers each message with its own bytes.
pub(super) struct Echo {
    line: Line,
    size: u32,
    /// Whether it spins on its socket instead of sleeping.
    busy: bool,
    buffer: Pages,
    mark: MarkPart,
    /// Payload left of the run.
    left: u64,
    total: u64,
    /// Bytes of the message that are in, then of the answer that are out.
    received: usize,
    sent: usize,
    ended: bool,
    done: Option<Done>,
}

impl Echo {
    pub(super) fn new(line: Line, size: u32, busy: bool) -> Self {
        Self {
            line,
            size,
            busy,
            buffer: Pages::default(),
            mark: MarkPart::default(),
            left: 0,
            total: 0,
            received: 0,
            sent: 0,
            ended: false,
            done: None,
        }
    }

    /// Goes on with a message; its size once it is answered, else zero.
    fn go_on(&mut self) -> Result<u32, LoadError> {
        let size = self.size as usize;
        if self.left == 0 && !self.next_run()? {
            return Ok(0);
        }
        if self.received < size {
            let into = &mut self.buffer.bytes_mut()[self.received..];
            self.received += receive(&self.line, into, self.busy)?;
        }
        if self.received == size {
            self.sent += self.line.send(&self.buffer.bytes()[self.sent..], false)?;
        }
        if self.sent < size {
            return Ok(0);
        }
        (self.received, self.sent) = (0, 0);
        self.left -= size as u64;
        self.total += size as u64;
        Ok(self.size)
    }

    /// Reads the next mark; true when a run begins.
    fn next_run(&mut self) -> Result<bool, LoadError> {
        if self.ended {
            return Ok(false);
        }
        let size = u64::from(self.size);
        match self.mark.get(&self.line, !self.busy)? {
            None => Ok(false),
            Some(Mark::Run(length)) if length % size == 0 => {
                self.left = length;
                Ok(true)
            }
            Some(Mark::End(total)) if total == self.total => {
                self.ended = true;
                Ok(false)
            }
            Some(mark) => {
                let what = format!("{mark:?} does not fit messages of {size} bytes");
                Err(self.line.garbled(&what))
            }
        }
    }
}

impl Worker for Echo {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.buffer.ensure(self.size as usize);
        self.total = 0;
        self.ended = false;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if ops.is_empty() || self.done.is_some() {
            return Ok(0);
        }
        let bytes = self.go_on()?;
        let op = Op::Receive(self.size);
        self.done = Some(Done { op, bytes });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.extend(self.done.take());
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(self.ended)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(SocketProbe::new(self.line.clone()))]
    }
}
