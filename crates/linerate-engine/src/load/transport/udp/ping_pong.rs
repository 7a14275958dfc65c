//! Round trips: the near end sends a datagram, the far end sends one of the same size back.
//!
//! One message is under way at a time. Where its answer takes long the next one is sent without it; an
//! answer that comes then still counts, with the time that it took.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::datagram::{DATAGRAM_MAX, HEADER_LEN, Header, Kind, datagrams};
use linerate_core::stats::Arrivals;
use linerate_core::units::Nanos;
use linerate_sys::{clock, thread};

use super::farewell::{Farewell, QUIET_NANOS, REPEAT};
use super::line::{Got, Line, Sent};
use super::probe::{ANSWERS, ASKS, DatagramProbe};
use crate::load::pages::Pages;
use crate::load::times::{self, Times};
use crate::load::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// Shortest and longest wait for an answer before the next message is sent, in nanoseconds.
const PATIENCE: (u64, u64) = (50_000_000, 1_000_000_000);
/// The wait for an answer, in round trips as they were so far.
const TRIPS: u64 = 8;
/// Messages whose answers are still known when they come late.
const OPEN: usize = 256;
/// Bytes that the near end makes and the far one, beside what they remember of numbers: a message, an answer and
/// two sorts of times; a message.
pub(super) const ROOM: [u64; 2] = [2 * (DATAGRAM_MAX + times::ROOM) as u64, DATAGRAM_MAX as u64];

/// Where a round trip stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// None is under way.
    Idle,
    /// Its time to be sent has not come.
    Due,
    /// Its answer is waited for since then.
    Waiting(u64),
}

/// A message whose answer is not in.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// When it should have been sent; zero where the answer is in.
    intended: u64,
    /// Whether that was in the time that counts.
    counts: bool,
}

/// Sends messages and times their answers.
pub(super) struct Pinger {
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
    state: State,
    /// When the message should have been sent; zero before the first of a step.
    intended: u64,
    /// The messages before, by number.
    open: Box<[Asked]>,
    /// Messages of this step, and answers.
    sent: u64,
    answered: u64,
    /// Those of them that were to be sent in the time that counts and are not answered.
    lost: u64,
    /// The usual round trip, smoothed; zero before the first.
    usual: u64,
    step: Option<u32>,
    farewell: Farewell,
}

impl Pinger {
    pub(super) fn new(line: Line, size: u16, interval: Nanos, busy: bool) -> Self {
        Self {
            line,
            size,
            interval: interval.0,
            busy,
            message: Pages::default(),
            answer: Pages::default(),
            times: Times::default(),
            unread: Times::default(),
            advice: Arc::new(Advice::new(1, 1)),
            state: State::Idle,
            intended: 0,
            open: vec![Asked::default(); OPEN].into_boxed_slice(),
            sent: 0,
            answered: 0,
            lost: 0,
            usual: 0,
            step: None,
            farewell: Farewell::default(),
        }
    }

    /// Goes on with the round trip under way; answers that came.
    fn go_on(&mut self, wait: Duration) -> Result<u32, LoadError> {
        if self.state == State::Due {
            clock::sleep_until(self.intended, wait);
            if clock::now() >= self.intended {
                self.send()?;
            }
        }
        let State::Waiting(since) = self.state else {
            return Ok(0);
        };
        let came = self.receive()?;
        let patience = (self.usual * TRIPS).clamp(PATIENCE.0, PATIENCE.1);
        let patience = if self.usual == 0 {
            PATIENCE.1
        } else {
            patience
        };
        if matches!(self.state, State::Waiting(_)) && clock::now().saturating_sub(since) > patience
        {
            self.next();
        }
        let under_way = u64::from(matches!(self.state, State::Waiting(_)));
        let missing = self.sent - self.answered;
        self.line
            .counts
            .unanswered(missing.saturating_sub(under_way));
        Ok(came)
    }

    fn send(&mut self) -> Result<(), LoadError> {
        let step = self.step.unwrap_or_default();
        let header = self.line.header(Kind::Ping, self.size, step, self.sent);
        self.message.bytes_mut()[..HEADER_LEN].copy_from_slice(&header.encode());
        let now = clock::now();
        if self.interval == 0 {
            self.intended = now;
        }
        if let Sent::Taken(_) = self.line.send([self.message.bytes()].into_iter())? {
            let counts = self.advice.counts(self.intended);
            let intended = self.intended;
            self.open[self.sent as usize % OPEN] = Asked { intended, counts };
            self.lost += u64::from(counts);
            self.sent += 1;
            self.line.counts.sent(self.sent);
            self.state = State::Waiting(now);
        }
        Ok(())
    }

    /// Receives what is there, waiting for the first; answers that came.
    fn receive(&mut self) -> Result<u32, LoadError> {
        let mut answer = std::mem::take(&mut self.answer);
        let received = self.line.timed(answer.bytes_mut(), self.busy);
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
        received.map(|_| came)
    }

    /// Takes an answer; false when it is none that is waited for.
    fn take(&mut self, header: &Header, got: Got) -> bool {
        let age = self.sent.saturating_sub(header.number);
        let ours = header.kind == Kind::Pong && Some(header.step) == self.step;
        if !ours || !(1..=OPEN as u64).contains(&age) {
            self.line.counts.stray();
            return false;
        }
        let asked = std::mem::take(&mut self.open[header.number as usize % OPEN]);
        if asked.intended == 0 {
            return false;
        }
        let time = got.at.saturating_sub(asked.intended);
        // By when it was to be sent: one that is answered after the time that counts was in it.
        if asked.counts {
            self.times.record(time, 1);
            self.lost -= 1;
            if let Some(unread) = got.unread {
                self.unread.record(unread, 1);
            }
        }
        self.usual = if self.usual == 0 {
            time
        } else {
            (7 * self.usual + time) / 8
        };
        self.answered += 1;
        if age == 1 {
            self.next();
        }
        true
    }

    /// The round trip is over; the next one is due an interval after it should have been sent. The
    /// schedule moves along where that is past, or each message would inherit the delays of all before.
    fn next(&mut self) {
        self.intended = (self.intended + self.interval).max(clock::now());
        self.state = State::Idle;
    }
}

impl Worker for Pinger {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        if self.message.ensure(usize::from(self.size)) {
            let filled = self.message.randomize();
            filled.map_err(|e| self.line.failed("getrandom", e))?;
        }
        self.answer.ensure(DATAGRAM_MAX);
        self.times.renew()?;
        self.unread.renew()?;
        // A kernel that refuses only makes paced messages later, which is measured.
        let _ = thread::exact_timers();
        self.line.set_timeouts(REPEAT)?;
        self.step = Some(self.step.map_or(0, |step| step.wrapping_add(1)));
        self.open.fill(Asked::default());
        (self.sent, self.answered, self.lost, self.intended) = (0, 0, 0, 0);
        self.state = State::Idle;
        self.farewell = Farewell::default();
        self.line.counts.clear();
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
        for _ in 0..self.go_on(wait)? {
            done.push(Done {
                op: Op::Send(u32::from(self.size)),
                bytes: u32::from(self.size),
            });
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if self.state == State::Due {
            // Nobody was told of this message yet.
            self.state = State::Idle;
        }
        if self.state != State::Idle {
            return Ok(false);
        }
        let step = self.step.unwrap_or_default();
        self.farewell.say(&self.line, step, self.sent)
    }

    fn timed(&mut self) -> Timed {
        Timed {
            trips: self.times.take(),
            lost: self.lost,
            unread: self.unread.take(),
            ..Timed::default()
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = DatagramProbe::new(self.line.clone(), ASKS);
        vec![Box::new(probe)]
    }
}

/// Answers each message with its own bytes.
pub(super) struct Echo {
    line: Line,
    size: u16,
    /// Whether it spins on its socket instead of sleeping.
    busy: bool,
    room: Pages,
    arrivals: Arrivals,
    step: Option<u32>,
    /// When the last datagram of the step came, once its end is known.
    last: Option<u64>,
    ended: bool,
    done: Option<Done>,
}

impl Echo {
    /// Answers each message once, as far as `arrivals` remembers them.
    pub(super) fn new(line: Line, size: u16, arrivals: Arrivals, busy: bool) -> Self {
        Self {
            line,
            size,
            busy,
            room: Pages::default(),
            arrivals,
            step: None,
            last: None,
            ended: false,
            done: None,
        }
    }

    /// Answers the next message; its size once it is answered, else zero.
    fn go_on(&mut self) -> Result<u32, LoadError> {
        let mut room = std::mem::take(&mut self.room);
        let answered = match self.line.timed(room.bytes_mut(), self.busy) {
            Ok(Some(got)) => self.take(&mut room.bytes_mut()[..got.bytes]),
            Ok(None) => Ok(0),
            Err(e) => Err(e),
        };
        self.room = room;
        if let Some(last) = self.last {
            self.ended = clock::now().saturating_sub(last) > QUIET_NANOS;
        }
        answered
    }

    fn take(&mut self, bytes: &mut [u8]) -> Result<u32, LoadError> {
        let step = self.step.unwrap_or_default();
        match Header::decode(bytes, self.line.other) {
            Ok(h)
                if h.step == step && h.kind == Kind::Ping && usize::from(h.size) == bytes.len() =>
            {
                let new = self.arrivals.take(h.number).counts();
                self.line.counts.sent(self.arrivals.taken());
                if !new {
                    return Ok(0);
                }
                let answer = self.line.header(Kind::Pong, h.size, step, h.number);
                bytes[..HEADER_LEN].copy_from_slice(&answer.encode());
                // An answer that is not taken is lost, as one on the way is.
                self.line.send([&*bytes].into_iter())?;
                Ok(u32::from(h.size))
            }
            Ok(h) if h.step == step && h.kind == Kind::End => {
                if self.last.is_none() {
                    self.line.set_timeouts(REPEAT)?;
                }
                self.last = Some(clock::now());
                self.line.tell(Kind::Ended, step, h.number)?;
                Ok(0)
            }
            // A mark that was repeated once too often.
            Ok(h) if h.kind == Kind::End => Ok(0),
            _ => {
                self.line.counts.stray();
                Ok(0)
            }
        }
    }
}

impl Worker for Echo {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.room.ensure(DATAGRAM_MAX);
        self.line.set_timeouts(Duration::from_millis(100))?;
        self.step = Some(self.step.map_or(0, |step| step.wrapping_add(1)));
        self.arrivals.clear();
        self.last = None;
        self.ended = false;
        self.line.counts.clear();
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if ops.is_empty() || self.done.is_some() {
            return Ok(0);
        }
        let bytes = self.go_on()?;
        let op = Op::Receive(u32::from(self.size));
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
        let probe = DatagramProbe::new(self.line.clone(), ANSWERS);
        vec![Box::new(probe)]
    }
}
