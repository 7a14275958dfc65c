//! The near end of round trips by datagrams: sends messages and receives answers. Some may be lost.

use std::time::Duration;

use linerate_facts::parse::datagram::{DATAGRAM_MAX, HEADER_LEN, Kind, datagrams};
use linerate_plan::{Pattern, SetPlan};
use linerate_units::stats::Arrivals;

use super::farewell::{Farewell, REPEAT};
use super::line::{Line, Sent};
use super::probe::{ASKS, DatagramProbe};
use crate::pages::Pages;
use crate::pattern::{Answer, Asker, Wait, open_loop};
use crate::{LoadError, Probe, times};

/// Memory of the near end and of the far end in bytes, without the message numbers that they remember. Near end: a
/// message, an answer and two histograms of times. Far end: a message.
pub(super) const ROOM: [u64; 2] = [2 * (DATAGRAM_MAX + times::ROOM) as u64, DATAGRAM_MAX as u64];

/// Returns how many message numbers each end remembers. In open loop, these are the messages that are sent during the
/// longest wait for an answer, so that a reordered message does not count as lost. In closed loop, only one message is
/// in flight.
pub(super) fn remembered(plan: &SetPlan) -> u64 {
    match plan.pattern {
        Pattern::PingPong { interval, .. } if plan.knobs.open_loop => {
            open_loop::PATIENCE.div_ceil(interval.0.max(1))
        }
        _ => 0,
    }
}

/// Near end: sends messages and receives their answers.
pub(super) struct UdpAsker {
    line: Line,
    size: u16,
    message: Pages,
    answer: Pages,
    /// Numbers of the answers that were received.
    arrivals: Arrivals,
    sent: u64,
    step: Option<u32>,
    farewell: Farewell,
}

impl UdpAsker {
    /// Makes the near end for messages of `size` bytes. Each answer counts once, as far back as `arrivals` remembers
    /// its number.
    pub(super) fn new(line: Line, size: u16, arrivals: Arrivals) -> Self {
        Self {
            line,
            size,
            message: Pages::default(),
            answer: Pages::default(),
            arrivals,
            sent: 0,
            step: None,
            farewell: Farewell::default(),
        }
    }

    /// Returns the number of the current step, from 0.
    fn step(&self) -> u32 {
        self.step.unwrap_or_default()
    }
}

impl Asker for UdpAsker {
    const PATIENCE: Option<(u64, u64)> = Some((50_000_000, 1_000_000_000));
    const SAYS_UNREAD: bool = true;

    fn size(&self) -> u32 {
        self.size.into()
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        let filled = self.message.fill(usize::from(self.size));
        filled.map_err(|e| self.line.failed("getrandom", e))?;
        self.answer.ensure(DATAGRAM_MAX);
        self.line.set_timeouts(REPEAT)?;
        self.step = Some(self.step.map_or(0, |step| step.wrapping_add(1)));
        self.sent = 0;
        self.arrivals.clear();
        self.farewell = Farewell::default();
        self.line.counts.clear();
        Ok(())
    }

    #[inline]
    fn announce(&mut self, _: impl FnOnce() -> u64, _: bool) -> Result<bool, LoadError> {
        Ok(true)
    }

    fn announced(&self) -> u64 {
        0
    }

    #[inline]
    fn send(&mut self, _: bool) -> Result<bool, LoadError> {
        let (size, number) = (self.size, self.sent);
        let header = self.line.header(Kind::Ping, size, self.step(), number);
        self.message.bytes_mut()[..HEADER_LEN].copy_from_slice(&header.encode());
        let sent = self.line.send([self.message.bytes()].into_iter())?;
        let taken = matches!(sent, Sent::Taken(_));
        if taken {
            self.sent += 1;
            self.line.counts.sent(self.sent);
        }
        Ok(taken)
    }

    #[inline]
    fn receive(
        &mut self,
        wait: Wait,
        mut take: impl FnMut(Answer) -> bool,
    ) -> Result<(), LoadError> {
        let step = self.step();
        let Some(got) = self.line.timed(self.answer.bytes_mut(), wait)? else {
            return Ok(());
        };
        for header in datagrams(&self.answer.bytes()[..got.bytes], self.line.other) {
            let Ok(header) = header else {
                self.line.counts.stray();
                continue;
            };
            let ours = header.kind == Kind::Pong && header.step == step;
            if !ours || header.number >= self.sent {
                self.line.counts.stray();
                continue;
            }
            if !self.arrivals.take(header.number).counts() {
                continue;
            }
            let answer = Answer { number: header.number, at: got.at, unread: got.unread };
            if !take(answer) {
                self.line.counts.stray();
            }
        }
        Ok(())
    }

    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        // A datagram that is due is sent without waiting until the socket has room.
        if !wanted {
            self.line.rest(most)?;
        }
        Ok([true, wanted])
    }

    fn unanswered(&self, messages: u64) {
        self.line.counts.unanswered(messages);
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        let step = self.step();
        self.farewell.say(&self.line, step, self.sent)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        let probe = DatagramProbe::new(self.line.clone(), ASKS);
        vec![Box::new(probe)]
    }
}

#[cfg(test)]
mod tests {
    use linerate_plan::Knobs;
    use linerate_units::{Bytes, Nanos};

    use super::*;

    fn every(interval: u64, open_loop: bool) -> SetPlan {
        SetPlan {
            id: 0,
            pattern: Pattern::PingPong { size: Bytes(64), interval: Nanos(interval) },
            knobs: Knobs { open_loop, ..Knobs::default() },
        }
    }

    /// Whether answer 0 still counts if it is received after answer number `others`.
    fn counts(plan: &SetPlan, others: u64) -> bool {
        let mut answers = Arrivals::over(remembered(plan));
        assert!(answers.take(others).counts());
        answers.take(0).counts()
    }

    #[test]
    fn an_answer_that_a_second_s_worth_of_others_overtook_is_not_lost() {
        let million = every(1000, true);
        assert_eq!(remembered(&million), 1_000_000);
        assert!(counts(&million, 131_072) && counts(&million, 999_999));
        assert!(!counts(&million, 1 << 20));
        let thousand = every(1_000_000, true);
        assert!(counts(&thousand, 131_071) && !counts(&thousand, 131_072));
        // The interval comes from a plan of the other end and may be zero.
        assert!(!counts(&every(0, true), 1 << 20));
        assert_eq!(remembered(&every(1000, false)), 0);
    }
}
