//! Round trips in open loop: messages are due at fixed times, whether those before them were answered or
//! not, and each is timed from when it was due.
//!
//! A stall is so seen by every message that was due in it (what tools of one message at a time hide:
//! coordinated omission). As many messages wait for their answers as the socket takes; one that is sent
//! late, because the socket was full or this thread did not run, is still timed from when it was due.
//!
//! What was due in the time that counts is still sent for a moment after it. What is not answered even so,
//! as where the rate is too high, is timed as if it were answered at the very end, and its number is told.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::run::{Mark, RUN_MAX};
use linerate_core::units::Nanos;
use linerate_sys::{clock, thread};

use super::ping_pong::{RUN_MESSAGES, RUN_NANOS};
use super::probe::SocketProbe;
use crate::load::pages::Pages;
use crate::load::times::Times;
use crate::load::transport::line::{Line, MarkPart};
use crate::load::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// Answers are taken in so many bytes at a time, or a message where that is more.
const ANSWERS: usize = 64 * 1024;
/// So long after the time that counts messages that were due in it are still sent: enough to make up for a
/// stall, not for a rate that is too high.
const GRACE: u64 = 1_000_000_000;
/// Messages without an answer are timed in about so many lots at most.
const MISSES: u64 = 1_000_000;

/// Sends messages when they are due, and times their answers.
pub(super) struct Metronome {
    line: Line,
    size: u32,
    interval: u64,
    /// Whether it spins on its socket instead of sleeping.
    busy: bool,
    buffer: Pages,
    answers: Pages,
    times: Times,
    advice: Arc<Advice>,
    mark: MarkPart,
    /// Messages of the run whose mark is under way.
    announced: u64,
    /// Messages of the run that are not sent.
    left: u64,
    /// Bytes of the message under way that are sent.
    at: usize,
    /// When the first message of the step was due; zero before.
    base: u64,
    /// Messages sent.
    sent: u64,
    /// Payload of answers that is in.
    received: u64,
    /// Messages that were due in the time that counts and not answered at the end of the step.
    unanswered: u64,
    ending: bool,
    ended: bool,
}

impl Metronome {
    pub(super) fn new(line: Line, size: u32, interval: Nanos, busy: bool) -> Self {
        Self {
            line,
            size,
            interval: interval.0.max(1),
            busy,
            buffer: Pages::default(),
            answers: Pages::default(),
            times: Times::default(),
            advice: Arc::new(Advice::new(1, 1)),
            mark: MarkPart::default(),
            announced: 0,
            left: 0,
            at: 0,
            base: 0,
            sent: 0,
            received: 0,
            unanswered: 0,
            ending: false,
            ended: false,
        }
    }

    /// When a message is due.
    fn due(&self, message: u64) -> u64 {
        self.base
            .saturating_add(message.saturating_mul(self.interval))
    }

    fn answered(&self) -> u64 {
        self.received / u64::from(self.size)
    }

    /// Sends what is due and takes the answers that are there; how many messages were answered.
    fn go_on(&mut self, wait: Duration) -> Result<u64, LoadError> {
        let now = clock::now();
        if self.base == 0 {
            self.base = now;
        }
        // Of a run that was announced all is sent, at once where the step is over.
        let due = if self.ending {
            self.left + self.announced > 0 || self.overdue(now)
        } else {
            self.at > 0 || now >= self.due(self.sent)
        };
        let sleep = match self.due(self.sent).saturating_sub(now) {
            _ if due || self.ending => wait,
            _ if self.busy => Duration::ZERO,
            left => wait.min(Duration::from_nanos(left)),
        };
        let [readable, writable] = if self.busy && !due {
            [true, false]
        } else {
            self.line.ready(due, sleep)?
        };
        let answered = if readable { self.take()? } else { 0 };
        if writable {
            self.put()?;
        }
        Ok(answered)
    }

    /// Sends a message, or what is left of it, behind the mark of its run where one begins.
    fn put(&mut self) -> Result<(), LoadError> {
        if self.left == 0 {
            if self.announced == 0 {
                let fits = RUN_MAX / u64::from(self.size);
                let run = (RUN_NANOS / self.interval).min(RUN_MESSAGES).min(fits);
                self.announced = run.min(self.wanted()).max(1);
            }
            let mark = Mark::Run(self.announced * u64::from(self.size));
            if !self.mark.offer(&self.line, mark, true)? {
                return Ok(());
            }
            self.left = std::mem::take(&mut self.announced);
        }
        self.at += self.line.offer(&self.buffer.bytes()[self.at..], false)?;
        if self.at == self.size as usize {
            self.at = 0;
            self.left -= 1;
            self.sent += 1;
        }
        Ok(())
    }

    /// How many messages are still to be sent: no bound before the time that counts is over.
    fn wanted(&self) -> u64 {
        self.advice.counted()[1].map_or(u64::MAX, |end| {
            self.first_from(end).saturating_sub(self.sent)
        })
    }

    /// Whether the next message was due in the time that counts, which is over, and may still be sent.
    fn overdue(&self, now: u64) -> bool {
        self.advice.counted()[1]
            .is_some_and(|end| self.base > 0 && self.due(self.sent) < end && now < end + GRACE)
    }

    /// The first message that is due at `time` or later.
    fn first_from(&self, time: u64) -> u64 {
        time.saturating_sub(self.base).div_ceil(self.interval)
    }

    /// Times what was due and was not answered: it took at least as long as until now.
    fn miss(&mut self, now: u64) {
        let [Some(from), until] = self.advice.counted() else {
            return;
        };
        if self.base > 0 {
            let first = self.answered().max(self.first_from(from));
            let missed = first..self.first_from(until.unwrap_or(now));
            self.unanswered = missed.end.saturating_sub(missed.start);
            let lot = (self.unanswered / MISSES).max(1);
            for message in missed.clone().step_by(lot as usize) {
                let lot = lot.min(missed.end - message);
                // That of the last one of them, which is the shortest.
                let late = now.saturating_sub(self.due(message + lot - 1));
                self.times.record(late, lot);
            }
        }
    }

    /// Takes answers; how many messages they complete.
    fn take(&mut self) -> Result<u64, LoadError> {
        let got = self.line.receive(self.answers.bytes_mut(), false)?;
        if got == 0 {
            return Ok(0);
        }
        let now = clock::now();
        let before = self.answered();
        self.received += got as u64;
        let answered = self.answered();
        if answered > self.sent {
            return Err(self.line.garbled("answers to messages that were not sent"));
        }
        for message in before..answered {
            let took = now.saturating_sub(self.due(message));
            // By when it was due, whenever it was sent or answered.
            if self.advice.counts(self.due(message)) {
                self.times.record(took, 1);
            }
        }
        Ok(answered - before)
    }
}

impl Worker for Metronome {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        if self.buffer.ensure(self.size as usize) {
            let filled = self.buffer.randomize();
            filled.map_err(|e| self.line.failed("getrandom", e))?;
        }
        self.answers.ensure(ANSWERS.max(self.size as usize));
        self.times.renew()?;
        // A kernel that refuses only makes messages later, which is measured.
        let _ = thread::exact_timers();
        (self.base, self.sent, self.received) = (0, 0, 0);
        self.unanswered = 0;
        self.ending = false;
        self.ended = false;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        Ok(ops.len().min(1))
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.ended {
            return Ok(());
        }
        let answered = self.go_on(wait)?;
        if answered > 0 {
            done.push(Done {
                op: Op::Send(self.size),
                // As many as fit into one receive.
                bytes: (answered * u64::from(self.size)) as u32,
            });
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.ending = true;
        let sent = self.left + self.announced == 0 && !self.overdue(clock::now());
        let all = sent && self.answered() == self.sent;
        if all && !self.ended {
            let total = self.sent * u64::from(self.size);
            self.ended = self.mark.put(&self.line, Mark::End(total), false)?;
        }
        Ok(self.ended)
    }

    fn timed(&mut self) -> Timed {
        self.miss(clock::now());
        Timed {
            trips: self.times.take(),
            unanswered: self.unanswered,
            ..Timed::default()
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(SocketProbe::new(self.line.clone()))]
    }
}
