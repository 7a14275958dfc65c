//! Round trips in closed loop: the next message is sent when the previous one is answered or, with an interval, at
//! fixed times if the answers are received before.
//!
//! If messages may be lost, the next message is sent after a timeout. If the answer is received after that, it still
//! counts, with its round-trip time.

use std::sync::Arc;
use std::time::Duration;

use linerate_sys::{clock, thread};
use linerate_units::Nanos;

use super::{ANNOUNCED_NANOS, Answer, Asker, Wait};
use crate::times::Times;
use crate::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// Timeout for an answer that may be lost, as a multiple of the usual round trip.
const TRIPS: u64 = 8;
/// Longest wait for an answer after the end of the step, in nanoseconds. An answer after that is ignored.
pub(crate) const ENDING: u64 = 2_000_000_000;
/// Number of most recent messages whose late answers still count, if answers may be lost. It is a power of two.
const LATE: usize = 256;

/// The state of the current round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No message is in progress.
    Idle,
    /// The next message is to be sent, but is not due or not announced yet.
    Due,
    /// The message is being sent; a part of it may have been sent already.
    Sending,
    /// The message was sent, and its answer is waited for.
    Waiting,
}

/// A message that was sent and may be lost.
#[derive(Debug, Clone, Copy, Default)]
struct Request {
    /// Time at which the message should have been sent; zero once it is answered.
    intended: u64,
    /// Whether the message was due in the time that counts.
    counts: bool,
}

/// Sends messages one at a time, and measures their round-trip times.
pub(crate) struct ClosedLoop<A> {
    asker: A,
    schedule: Schedule,
}

/// When messages are sent, and the times of their round trips.
struct Schedule {
    interval: u64,
    /// How the thread waits for answers.
    wait: Wait,
    times: Times,
    unread: Times,
    advice: Arc<Advice>,
    state: State,
    /// Time at which the current or the next message should be sent; zero before the first message of a step.
    intended: u64,
    answered: u64,
    /// Usual round trip in nanoseconds: the last one or, if answers may be lost, a moving average; zero before the
    /// first.
    usual: u64,
    /// The most recent messages, by number modulo `LATE`, if messages may be lost.
    requests: Box<[Request; LATE]>,
    /// Time from which the timeout of the current message counts: when it was sent.
    since: u64,
    /// Number of messages sent in the step, and of messages due in the time that counts that have no answer yet.
    sent: u64,
    lost: u64,
    /// Time at which the step ended.
    ending: Option<u64>,
}

impl Schedule {
    fn begin(&mut self, advice: &Arc<Advice>, unread: bool) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        self.times.renew()?;
        if unread {
            self.unread.renew()?;
        }
        self.requests.fill(Request::default());
        (self.sent, self.answered, self.lost, self.intended) = (0, 0, 0, 0);
        self.state = State::Idle;
        self.ending = None;
        Ok(())
    }

    /// Returns whether the next message is due at once, and not at a fixed time.
    #[inline]
    fn is_unpaced(&self) -> bool {
        self.interval == 0 || self.ending.is_some()
    }

    /// Waits until the next message is due, but at most for `wait`; returns whether it is due now.
    fn is_due(&self, wait: Duration) -> bool {
        if self.is_unpaced() {
            return true;
        }
        clock::sleep_until(self.intended, wait);
        clock::now() >= self.intended
    }

    /// Returns how many messages will certainly be sent within a short time, and so may be announced.
    fn soon(&self) -> u64 {
        match self.usual {
            0 => 1,
            usual => ANNOUNCED_NANOS / self.interval.max(usual),
        }
    }

    /// Records that the current message was sent, on a transport that may lose it.
    fn note_sent(&mut self) {
        self.since = if self.is_unpaced() { self.intended } else { clock::now() };
        let (intended, counts) = (self.intended, self.advice.counts(self.intended));
        self.requests[self.sent as usize % LATE] = Request { intended, counts };
        self.lost += u64::from(counts);
        self.sent += 1;
    }

    /// Takes the message with this number out of the list of unanswered messages; `None` if it is answered already or
    /// too old.
    fn awaited(&mut self, number: u64) -> Option<Request> {
        let age = self.sent.wrapping_sub(number);
        if age == 0 || age > LATE as u64 {
            return None;
        }
        let request = std::mem::take(&mut self.requests[number as usize % LATE]);
        Some(request).filter(|request| request.intended > 0)
    }

    /// Records the answer to the current message, on a transport without loss.
    #[inline]
    fn take(&mut self, answer: Answer) -> bool {
        let time = answer.at.saturating_sub(self.intended);
        // Whether a message counts depends on when it was due, not on when it was answered, so that a stall at the end
        // of the step is visible.
        if self.advice.counts(self.intended) {
            self.times.record(time, 1);
        }
        self.usual = time;
        self.answered += 1;
        self.next(answer.at);
        true
    }

    /// Records an answer on a transport that may lose messages; returns false if its message is not waited for.
    fn take_late(&mut self, answer: Answer) -> bool {
        let Some(request) = self.awaited(answer.number) else {
            return false;
        };
        let time = answer.at.saturating_sub(request.intended);
        if request.counts {
            self.times.record(time, 1);
            self.lost -= 1;
            if let Some(unread) = answer.unread {
                self.unread.record(unread, 1);
            }
        }
        self.usual = match self.usual {
            0 => time,
            usual => (7 * usual + time) / 8,
        };
        self.answered += 1;
        if answer.number + 1 == self.sent {
            self.next(answer.at);
        }
        true
    }

    /// Ends the round trip. The next message is due one interval after the current one should have been sent. If that
    /// time has passed, the schedule is shifted to now: otherwise each message would inherit the delays of all previous
    /// ones.
    #[inline]
    fn next(&mut self, now: u64) {
        self.intended = (self.intended + self.interval).max(now);
        self.state = State::Idle;
    }

    /// Continues with the next message if the current one is known to be lost, or if its answer takes longer than the
    /// timeout.
    fn give_up(&mut self, (least, most): (u64, u64), is_lost: bool) {
        if self.state != State::Waiting {
            return;
        }
        let patience = match self.usual {
            0 => most,
            usual => (usual * TRIPS).clamp(least, most),
        };
        let now = clock::now();
        let over = self.ending.is_some_and(|ending| now.saturating_sub(ending) > ENDING);
        if is_lost || now.saturating_sub(self.since) > patience {
            self.next(now);
        } else if over {
            let request = self.awaited(self.sent - 1);
            self.lost -= u64::from(request.is_some_and(|request| request.counts));
            self.next(now);
        }
    }

    /// Returns the number of messages without an answer, not counting the current message.
    fn missing(&self) -> u64 {
        let under_way = u64::from(self.state == State::Waiting);
        (self.sent - self.answered).saturating_sub(under_way)
    }
}

impl<A: Asker> ClosedLoop<A> {
    /// Makes a loop that sends messages through `asker`, at least `interval` apart. A `busy` thread polls instead of
    /// sleeping.
    pub(crate) fn new(asker: A, interval: Nanos, busy: bool) -> Self {
        Self {
            asker,
            schedule: Schedule {
                interval: interval.0,
                wait: Wait::of(busy),
                times: Times::default(),
                unread: Times::default(),
                advice: Arc::new(Advice::new(1, 1)),
                state: State::Idle,
                intended: 0,
                answered: 0,
                usual: 0,
                requests: Box::new([Request::default(); LATE]),
                since: 0,
                sent: 0,
                lost: 0,
                ending: None,
            },
        }
    }

    /// Continues the current round trip; returns the number of answers received in this call.
    fn go_on(&mut self, wait: Duration) -> Result<u64, LoadError> {
        if self.schedule.state == State::Due {
            let soon = || self.schedule.soon();
            if !self.schedule.is_due(wait) || !self.asker.announce(soon, true)? {
                return Ok(0);
            }
            if self.schedule.is_unpaced() {
                self.schedule.intended = clock::now();
            }
            self.schedule.state = State::Sending;
        }
        if self.schedule.state == State::Sending && !self.send()? {
            return Ok(0);
        }
        let before = self.schedule.answered;
        let schedule = &mut self.schedule;
        self.asker.receive(schedule.wait, |answer| {
            if A::LOSSY { schedule.take_late(answer) } else { schedule.take(answer) }
        })?;
        if let Some(patience) = A::PATIENCE {
            self.schedule.give_up(patience, self.asker.is_lost());
            self.asker.unanswered(self.schedule.missing());
        }
        Ok(self.schedule.answered - before)
    }

    /// Sends the current message, or a part of it; returns true once all of it is sent.
    #[inline]
    fn send(&mut self) -> Result<bool, LoadError> {
        let sent = self.asker.send(true)?;
        if sent {
            if A::LOSSY {
                self.schedule.note_sent();
            }
            self.schedule.state = State::Waiting;
        } else if A::LOSSY {
            // The transport refused the message as a whole, so it is due again.
            self.schedule.state = State::Due;
        }
        Ok(sent)
    }
}

impl<A: Asker> Worker for ClosedLoop<A> {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.asker.begin()?;
        // If the kernel refuses exact timers, paced messages are sent a little late, and their times include that.
        let _ = thread::exact_timers();
        self.schedule.begin(advice, A::SAYS_UNREAD)
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if ops.is_empty() || self.schedule.state != State::Idle {
            return Ok(0);
        }
        if self.schedule.intended == 0 {
            self.schedule.intended = clock::now();
        }
        self.schedule.state = State::Due;
        Ok(1)
    }

    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.schedule.state != State::Idle {
            let bytes = self.asker.size();
            for _ in 0..self.go_on(wait)? {
                let op = Op::Send(bytes);
                done.push(Done { op, bytes });
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.schedule.ending.get_or_insert_with(clock::now);
        let announced = self.asker.announced() > 0;
        match self.schedule.state {
            // This message was not announced to the other end, so it need not be sent after the end of the step.
            State::Due if !announced => self.schedule.state = State::Idle,
            State::Idle if announced => self.schedule.state = State::Due,
            _ => {}
        }
        if self.schedule.state != State::Idle {
            return Ok(false);
        }
        self.asker.finish()
    }

    fn timed(&mut self) -> Timed {
        Timed {
            trips: self.schedule.times.take(),
            exact: self.schedule.times.exact(),
            lost: self.schedule.lost,
            unread: self.schedule.unread.take(),
            ..Timed::default()
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        self.asker.probes()
    }
}
