//! Round trips in open loop: messages are due at fixed times, whether those before them were answered or
//! not, and each is timed from when it was due.
//!
//! One whose answer never came is lost, and stands in no time: how long it would have taken nobody knows.
//! One that was due and not even sent, as where the rate is too high, is timed as if it were answered at
//! the very end.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::datagram::{DATAGRAM_MAX, HEADER_LEN, Header, Kind, datagrams};
use linerate_core::plan::{Pattern, SetPlan};
use linerate_core::stats::Arrivals;
use linerate_core::units::Nanos;
use linerate_sys::{clock, thread};

use super::farewell::{Farewell, REPEAT};
use super::line::{Got, Line, Sent};
use super::probe::{ASKS, DatagramProbe};
use crate::load::pages::Pages;
use crate::load::times::Times;
use crate::load::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// So long after the time that counts messages that were due in it are still sent: enough to make up for a
/// stall, not for a rate that is too high.
const GRACE: u64 = 1_000_000_000;
/// Longest wait for answers once the last message is sent.
const PATIENCE: u64 = 1_000_000_000;
/// Messages that were not sent are timed in about so many lots at most.
const MISSES: u64 = 1_000_000;

/// Numbers that both ends remember of the messages of `plan`: all that are due while an answer may be on its
/// way, so that one that others overtook is none that was lost. A loop that is closed has one on its way.
pub(super) fn remembered(plan: &SetPlan) -> u64 {
    match plan.pattern {
        Pattern::PingPong { interval, .. } if plan.knobs.open_loop => {
            PATIENCE.div_ceil(interval.0.max(1))
        }
        _ => 0,
    }
}

/// Sends messages when they are due, and times their answers.
pub(super) struct Metronome {
    line: Line,
    size: u16,
    interval: u64,
    /// Whether it spins on its socket instead of sleeping.
    busy: bool,
    message: Pages,
    answer: Pages,
    times: Times,
    unread: Times,
    advice: Arc<Advice>,
    /// When the first message of the step was due; zero before.
    base: u64,
    /// Messages sent, and when the last one was.
    sent: u64,
    last: u64,
    /// The answers by their numbers.
    answers: Arrivals,
    /// Answers to messages that were due in the time that counts.
    counted: u64,
    ending: bool,
    step: Option<u32>,
    farewell: Farewell,
}

impl Metronome {
    pub(super) fn new(
        line: Line,
        size: u16,
        interval: Nanos,
        answers: Arrivals,
        busy: bool,
    ) -> Self {
        Self {
            line,
            size,
            interval: interval.0.max(1),
            busy,
            message: Pages::default(),
            answer: Pages::default(),
            times: Times::default(),
            unread: Times::default(),
            advice: Arc::new(Advice::new(1, 1)),
            base: 0,
            sent: 0,
            last: 0,
            answers,
            counted: 0,
            ending: false,
            step: None,
            farewell: Farewell::default(),
        }
    }

    /// When a message is due.
    fn due(&self, message: u64) -> u64 {
        self.base
            .saturating_add(message.saturating_mul(self.interval))
    }

    /// The first message that is due at `time` or later.
    fn first_from(&self, time: u64) -> u64 {
        time.saturating_sub(self.base).div_ceil(self.interval)
    }

    /// Whether the next message was due in the time that counts, which is over, and may still be sent.
    fn overdue(&self, now: u64) -> bool {
        self.advice.counted()[1]
            .is_some_and(|end| self.base > 0 && self.due(self.sent) < end && now < end + GRACE)
    }

    /// Sends what is due and takes the answers that are there; how many came.
    fn go_on(&mut self, wait: Duration) -> Result<u32, LoadError> {
        let now = clock::now();
        if self.base == 0 {
            self.base = now;
        }
        let due = if self.ending {
            self.overdue(now)
        } else {
            now >= self.due(self.sent)
        };
        if due {
            self.send(now)?;
        } else if !self.busy {
            let left = Duration::from_nanos(self.due(self.sent).saturating_sub(now));
            self.line
                .rest(wait.min(if self.ending { REPEAT } else { left }))?;
        }
        self.receive()
    }

    fn send(&mut self, now: u64) -> Result<(), LoadError> {
        let step = self.step.unwrap_or_default();
        let header = self.line.header(Kind::Ping, self.size, step, self.sent);
        self.message.bytes_mut()[..HEADER_LEN].copy_from_slice(&header.encode());
        if let Sent::Taken(_) = self.line.send([self.message.bytes()].into_iter())? {
            self.sent += 1;
            self.last = now;
            self.line.counts.sent(self.sent);
        }
        Ok(())
    }

    /// Takes what is there; answers that came for the first time.
    fn receive(&mut self) -> Result<u32, LoadError> {
        let mut answer = std::mem::take(&mut self.answer);
        let received = self.line.look(answer.bytes_mut(), false);
        let mut came = 0;
        if let Ok(Some(got)) = received {
            for header in datagrams(&answer.bytes()[..got.bytes], self.line.other) {
                match header {
                    Ok(header) => came += u32::from(self.take(&header, got)),
                    Err(_) => self.line.counts.stray(),
                }
            }
        }
        self.answer = answer;
        let missing = self.sent - self.answers.taken();
        self.line.counts.unanswered(missing);
        received.map(|_| came)
    }

    /// Takes an answer; false when it is none that is waited for.
    fn take(&mut self, header: &Header, got: Got) -> bool {
        let ours = header.kind == Kind::Pong && Some(header.step) == self.step;
        if !ours || header.number >= self.sent {
            self.line.counts.stray();
            return false;
        }
        if !self.answers.take(header.number).counts() {
            return false;
        }
        let due = self.due(header.number);
        // By when it was due, whenever it was sent or answered.
        if self.advice.counts(due) {
            self.times.record(got.at.saturating_sub(due), 1);
            self.counted += 1;
            if let Some(unread) = got.unread {
                self.unread.record(unread, 1);
            }
        }
        true
    }

    /// Whether nothing more is to be sent, and no answer is waited for any longer.
    fn over(&self, now: u64) -> bool {
        let answered = self.answers.taken() == self.sent;
        !self.overdue(now) && (answered || now.saturating_sub(self.last) > PATIENCE)
    }

    /// Times what was due and was not sent, which took at least as long as until now; how many these are,
    /// and how many were sent and not answered.
    fn missed(&mut self, now: u64) -> (u64, u64) {
        let ([Some(from), until], true) = (self.advice.counted(), self.base > 0) else {
            return (0, 0);
        };
        let (first, end) = (self.first_from(from), self.first_from(until.unwrap_or(now)));
        let unsent = first.max(self.sent)..end.max(self.sent);
        let missed = unsent.end.saturating_sub(unsent.start);
        let lot = (missed / MISSES).max(1);
        for message in unsent.clone().step_by(lot as usize) {
            let lot = lot.min(unsent.end - message);
            // That of the last one of them, which is the shortest.
            let late = now.saturating_sub(self.due(message + lot - 1));
            self.times.record(late, lot);
        }
        let sent = end.min(self.sent).saturating_sub(first);
        (missed, sent.saturating_sub(self.counted))
    }
}

impl Worker for Metronome {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        if self.message.ensure(usize::from(self.size)) {
            let filled = self.message.randomize();
            filled.map_err(|e| self.line.failed("getrandom", e))?;
        }
        self.answer.ensure(DATAGRAM_MAX);
        self.times.renew()?;
        self.unread.renew()?;
        // A kernel that refuses only makes messages later, which is measured.
        let _ = thread::exact_timers();
        self.line.set_timeouts(REPEAT)?;
        self.step = Some(self.step.map_or(0, |step| step.wrapping_add(1)));
        (self.base, self.sent, self.last, self.counted) = (0, 0, 0, 0);
        self.answers.clear();
        self.ending = false;
        self.farewell = Farewell::default();
        self.line.counts.clear();
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        Ok(ops.len().min(1))
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        for _ in 0..self.go_on(wait)? {
            done.push(Done {
                op: Op::Send(u32::from(self.size)),
                bytes: u32::from(self.size),
            });
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.ending = true;
        if !self.over(clock::now()) {
            return Ok(false);
        }
        let step = self.step.unwrap_or_default();
        self.farewell.say(&self.line, step, self.sent)
    }

    fn timed(&mut self) -> Timed {
        let (unanswered, lost) = self.missed(clock::now());
        Timed {
            trips: self.times.take(),
            unanswered,
            lost,
            unread: self.unread.take(),
            ..Timed::default()
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = DatagramProbe::new(self.line.clone(), ASKS);
        vec![Box::new(probe)]
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use linerate_core::plan::Knobs;
    use linerate_core::units::Bytes;

    use super::*;
    use crate::load::transport::Datagrams;

    fn every(interval: u64, open_loop: bool) -> SetPlan {
        SetPlan {
            id: 0,
            pattern: Pattern::PingPong {
                size: Bytes(64),
                interval: Nanos(interval),
            },
            knobs: Knobs {
                open_loop,
                ..Knobs::default()
            },
        }
    }

    /// Whether an answer still counts that so many others have overtaken.
    fn counts(plan: &SetPlan, others: u64) -> bool {
        let fd = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let datagrams = Datagrams {
            fd,
            own: 1,
            other: 2,
        };
        let (line, answers) = (Line::new(datagrams, 0, 0), Arrivals::over(remembered(plan)));
        let mut loops = Metronome::new(line, 64, Nanos(1), answers, false);
        (loops.step, loops.sent) = (Some(0), others + 1);
        let got = Got {
            bytes: 64,
            at: 1,
            unread: None,
        };
        let answer = |number| Header {
            tag: 2,
            size: 64,
            kind: Kind::Pong,
            step: 0,
            number,
        };
        assert!(loops.take(&answer(others), got));
        loops.take(&answer(0), got)
    }

    #[test]
    fn an_answer_that_a_second_s_worth_of_others_overtook_is_not_lost() {
        let million = every(1000, true);
        assert_eq!(remembered(&million), 1_000_000);
        assert!(counts(&million, 131_072) && counts(&million, 999_999));
        assert!(!counts(&million, 1 << 20));
        let thousand = every(1_000_000, true);
        assert!(counts(&thousand, 131_071) && !counts(&thousand, 131_072));
        // Plans come from the other end.
        assert!(!counts(&every(0, true), 1 << 20));
        assert_eq!(remembered(&every(1000, false)), 0);
    }
}
