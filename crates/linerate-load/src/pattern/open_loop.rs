//! Round trips in open loop: messages are due at fixed times, whether earlier messages were answered or not. Each round
//! trip is measured from the time at which its message was due.
//!
//! So every message that was due during a stall shows the stall. Tools that send one message at a time hide it
//! (coordinated omission). If a message is sent late, because the transport was full or this thread did not run, the
//! delay is a part of its round trip.
//!
//! Messages that were due in the time that counts are sent for a short time after it, too. If a message is not sent
//! even then, for example because the rate is too high, its round trip is recorded as if it were answered at the very
//! end, and such messages are counted. On a transport without loss, this also applies to messages that were sent and
//! not answered. If messages may be lost, a message without an answer counts as lost and has no time, because its round
//! trip is unknown.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use linerate_sys::{clock, thread};
use linerate_units::Nanos;

use super::{ANNOUNCED_NANOS, Answer, Asker, Wait};
use crate::times::Times;
use crate::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// Time after the end of the time that counts in which overdue messages are still sent, in nanoseconds: enough to make
/// up for a stall, but not for a rate that is too high.
const GRACE: u64 = 1_000_000_000;
/// Longest wait after the last message was sent for answers that may be lost, in nanoseconds.
pub(crate) const PATIENCE: u64 = 1_000_000_000;
/// Longest sleep after the end of the step.
const ENDING: Duration = Duration::from_millis(20);
/// Approximate most groups into which messages without an answer are divided: all messages of a group get one time.
const MISSES: u64 = 1_000_000;

/// Sends messages when they are due, and measures their round-trip times.
pub(crate) struct OpenLoop<A> {
    asker: A,
    schedule: Schedule,
    ended: bool,
}

/// When messages are due, and the times of their round trips.
struct Schedule {
    interval: u64,
    /// Whether the thread polls instead of sleeping.
    busy: bool,
    times: Times,
    unread: Times,
    advice: Arc<Advice>,
    /// Time at which the first message of the step was due; zero before the first message.
    base: u64,
    /// Number of messages that were sent in the step, and the time at which the last one was sent.
    sent: u64,
    last: u64,
    answered: u64,
    /// Number of answers to messages that were due in the time that counts.
    counted: u64,
    ending: bool,
}

impl Schedule {
    fn begin(&mut self, advice: &Arc<Advice>, unread: bool) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        self.times.renew()?;
        if unread {
            self.unread.renew()?;
        }
        (self.base, self.sent, self.last) = (0, 0, 0);
        (self.answered, self.counted) = (0, 0);
        self.ending = false;
        Ok(())
    }

    /// Returns the time at which the message with this number is due.
    #[inline]
    fn due(&self, message: u64) -> u64 {
        let after = message.saturating_mul(self.interval);
        self.base.saturating_add(after)
    }

    /// Returns the number of the first message that is due at `time` or later.
    fn first_from(&self, time: u64) -> u64 {
        time.saturating_sub(self.base).div_ceil(self.interval)
    }

    /// Returns whether the next message was due in the time that counts, which has ended, and may still be sent.
    fn overdue(&self, now: u64) -> bool {
        self.advice.counted()[1]
            .is_some_and(|end| self.base > 0 && self.due(self.sent) < end && now < end + GRACE)
    }

    /// Returns how many messages will certainly be sent within a short time, and so may be announced.
    fn soon(&self) -> u64 {
        let left = |end| self.first_from(end).saturating_sub(self.sent);
        let wanted = self.advice.counted()[1].map_or(u64::MAX, left);
        wanted.min(ANNOUNCED_NANOS / self.interval)
    }

    /// Records an answer; returns false if its message was not sent.
    #[inline]
    fn take(&mut self, answer: Answer) -> bool {
        if answer.number >= self.sent {
            return false;
        }
        let due = self.due(answer.number);
        self.answered += 1;
        // Whether a message counts depends on when it was due, not on when it was sent or answered.
        if self.advice.counts(due) {
            self.times.record(answer.at.saturating_sub(due), 1);
            self.counted += 1;
            if let Some(unread) = answer.unread {
                self.unread.record(unread, 1);
            }
        }
        true
    }

    /// Records a time for each message that was due in the time that counts and was not sent or, on a transport without
    /// loss, not answered: the time until now, since it took at least as long. Returns the number of these messages,
    /// and the number of lost messages.
    fn missed(&mut self, now: u64, lossy: bool) -> (u64, u64) {
        let ([Some(from), until], true) = (self.advice.counted(), self.base > 0) else {
            return (0, 0);
        };
        let (first, end) = (self.first_from(from), self.first_from(until.unwrap_or(now)));
        let known = if lossy { self.sent } else { self.answered };
        let missed = self.late(first.max(known)..end, now);
        let sent = end.min(self.sent).saturating_sub(first);
        let lost = if lossy { sent.saturating_sub(self.counted) } else { 0 };
        (missed, lost)
    }

    /// Records times for messages as if they were answered now; returns their number.
    fn late(&mut self, messages: Range<u64>, now: u64) -> u64 {
        let all = messages.end.saturating_sub(messages.start);
        let lot = (all / MISSES).max(1);
        for message in messages.clone().step_by(lot as usize) {
            let lot = lot.min(messages.end - message);
            // Of the messages in the group, the last one has the shortest delay.
            let late = now.saturating_sub(self.due(message + lot - 1));
            self.times.record(late, lot);
        }
        all
    }
}

impl<A: Asker> OpenLoop<A> {
    /// Makes a loop that sends messages through `asker`, `interval` apart. A `busy` thread polls instead of sleeping.
    pub(crate) fn new(asker: A, interval: Nanos, busy: bool) -> Self {
        Self {
            asker,
            schedule: Schedule {
                interval: interval.0.max(1),
                busy,
                times: Times::default(),
                unread: Times::default(),
                advice: Arc::new(Advice::new(1, 1)),
                base: 0,
                sent: 0,
                last: 0,
                answered: 0,
                counted: 0,
                ending: false,
            },
            ended: false,
        }
    }

    /// Sends a message if one is due, and receives the available answers; returns their number.
    fn go_on(&mut self, wait: Duration) -> Result<u64, LoadError> {
        let now = clock::now();
        let schedule = &mut self.schedule;
        if schedule.base == 0 {
            schedule.base = now;
        }
        let next = schedule.due(schedule.sent);
        // After the end of the step, all messages that were announced are sent at once.
        let due = if schedule.ending {
            self.asker.announced() > 0 || schedule.overdue(now)
        } else {
            now >= next
        };
        let [readable, writable] = if schedule.busy && !due {
            [true, false]
        } else {
            let most = if schedule.ending {
                wait.min(ENDING)
            } else {
                wait.min(Duration::from_nanos(next.saturating_sub(now)))
            };
            self.asker.ready(due, if due { wait } else { most })?
        };
        let before = self.schedule.answered;
        // Without loss, a readable socket has an answer. It is received first, so that its time does not include a
        // send. With loss, trying to receive an answer first would delay the message that is due.
        if readable && !A::LOSSY {
            self.take()?;
        }
        if writable {
            self.send(now)?;
        }
        if readable && A::LOSSY {
            self.take()?;
        }
        let unanswered = self.schedule.sent - self.schedule.answered;
        self.asker.unanswered(unanswered);
        Ok(self.schedule.answered - before)
    }

    /// Receives the available answers.
    fn take(&mut self) -> Result<(), LoadError> {
        let schedule = &mut self.schedule;
        self.asker.receive(Wait::No, |answer| schedule.take(answer))
    }

    /// Announces and sends the next message, or a part of it.
    fn send(&mut self, now: u64) -> Result<(), LoadError> {
        let soon = || self.schedule.soon();
        if self.asker.announce(soon, false)? && self.asker.send(false)? {
            self.schedule.sent += 1;
            self.schedule.last = now;
        }
        Ok(())
    }

    /// Returns whether no more messages will be sent, and no answer is waited for any longer.
    fn over(&self, now: u64) -> bool {
        let schedule = &self.schedule;
        let answered = schedule.answered == schedule.sent;
        let given_up = A::LOSSY && now.saturating_sub(schedule.last) > PATIENCE;
        self.asker.announced() == 0 && !schedule.overdue(now) && (answered || given_up)
    }
}

impl<A: Asker> Worker for OpenLoop<A> {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.asker.begin()?;
        // If the kernel refuses exact timers, messages are sent a little late, and their times include that.
        let _ = thread::exact_timers();
        self.ended = false;
        self.schedule.begin(advice, A::SAYS_UNREAD)
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
            let size = self.asker.size();
            done.push(Done {
                op: Op::Send(size),
                // The product fits, since it is at most the number of bytes that one receive accepts.
                bytes: (answered * u64::from(size)) as u32,
            });
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.schedule.ending = true;
        if !self.ended && self.over(clock::now()) {
            self.ended = self.asker.finish()?;
        }
        Ok(self.ended)
    }

    fn timed(&mut self) -> Timed {
        let (unanswered, lost) = self.schedule.missed(clock::now(), A::LOSSY);
        Timed {
            trips: self.schedule.times.take(),
            exact: self.schedule.times.exact(),
            unanswered,
            lost,
            unread: self.schedule.unread.take(),
            ..Timed::default()
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        self.asker.probes()
    }
}
