//! Tests of patterns with a scripted asker.

use std::sync::Arc;
use std::time::Duration;

use linerate_sys::clock;
use linerate_units::Nanos;

use super::closed_loop::ClosedLoop;
use super::open_loop::OpenLoop;
use super::{Answer, Asker, Wait};
use crate::{Advice, LoadError, Op, Probe, Worker};

const WAIT: Duration = Duration::from_millis(1);

/// Kinds of fake transports: without loss, with loss and a short timeout, with loss and a long timeout.
const NONE: u8 = 0;
const SHORT: u8 = 1;
const LONG: u8 = 2;

/// A fake transport with messages of 8 bytes. For the number of a message, `answers` returns after how many further
/// messages it is answered; `None` for never.
struct Fake<const PATIENCE: u8> {
    answers: fn(u64) -> Option<u64>,
    run: u64,
    left: u64,
    sent: u64,
    open: Vec<u64>,
    finished: bool,
}

fn fake<const PATIENCE: u8>(run: u64, answers: fn(u64) -> Option<u64>) -> Fake<PATIENCE> {
    Fake { answers, run, left: 0, sent: 0, open: Vec::new(), finished: false }
}

impl<const PATIENCE: u8> Asker for Fake<PATIENCE> {
    const PATIENCE: Option<(u64, u64)> = match PATIENCE {
        NONE => None,
        SHORT => Some((50_000_000, 1_000_000_000)),
        _ => Some((60_000_000_000, 60_000_000_000)),
    };

    fn size(&self) -> u32 {
        8
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        (self.sent, self.finished) = (0, false);
        self.open.clear();
        Ok(())
    }

    fn announce(&mut self, most: impl FnOnce() -> u64, _: bool) -> Result<bool, LoadError> {
        assert!(!self.finished);
        if self.left == 0 {
            self.left = most().clamp(1, self.run);
        }
        Ok(true)
    }

    fn announced(&self) -> u64 {
        if PATIENCE == NONE { self.left } else { 0 }
    }

    fn send(&mut self, _: bool) -> Result<bool, LoadError> {
        assert!(self.left > 0, "every message was announced");
        self.left -= 1;
        self.open.push(self.sent);
        self.sent += 1;
        Ok(true)
    }

    fn receive(&mut self, _: Wait, mut take: impl FnMut(Answer) -> bool) -> Result<(), LoadError> {
        let (answers, sent) = (self.answers, self.sent);
        self.open.retain(|number| {
            let due = answers(*number).is_some_and(|others| number + others < sent);
            let answer = Answer { number: *number, at: clock::now(), unread: None };
            !(due && take(answer))
        });
        Ok(())
    }

    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        if !wanted {
            std::thread::sleep(most);
        }
        Ok([true, wanted])
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        assert_eq!(self.announced(), 0, "what was announced is sent");
        self.finished = true;
        Ok(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        Vec::new()
    }
}

/// Runs the worker in the time that counts until `enough` returns true, then ends the step. Returns the times measured,
/// and the number of messages answered.
fn step(worker: &mut dyn Worker, enough: impl Fn(u64) -> bool) -> (crate::Timed, u64) {
    let advice = Arc::new(Advice::new(1, 1));
    worker.begin(&advice).unwrap();
    advice.count_from(clock::now());
    let (mut done, mut bytes) = (Vec::new(), 0);
    let mut work = |worker: &mut dyn Worker| {
        worker.reap(1, WAIT, &mut done).unwrap();
        bytes += done.drain(..).map(|d| u64::from(d.bytes)).sum::<u64>();
        bytes / 8
    };
    loop {
        worker.submit(&[Op::Send(8)]).unwrap();
        if enough(work(worker)) {
            break;
        }
    }
    advice.count_until(clock::now());
    while !worker.finish().unwrap() {
        work(worker);
    }
    let timed = worker.timed();
    (timed, work(worker))
}

fn counted(timed: &crate::Timed) -> u64 {
    timed.trips.iter().map(|(_, n)| n).sum()
}

#[test]
fn a_closed_loop_sends_one_message_at_a_time_and_all_that_was_announced() {
    let mut worker = ClosedLoop::new(fake::<NONE>(7, |_| Some(0)), Nanos(0), false);
    // The messages of a step are announced in runs of seven. When the step ends, only some messages of a run are
    // answered.
    for least in [1, 9, 10] {
        let (timed, answered) = step(&mut worker, |answered| answered >= least);
        assert!(answered >= least);
        assert!((least..=answered).contains(&counted(&timed)));
        assert_eq!((timed.lost, timed.unanswered), (0, 0));
    }
}

#[test]
fn a_closed_loop_goes_on_without_an_answer_and_counts_it_when_it_is_late() {
    // The third message is never answered, the fifth one after the sixth.
    let answers = |number| match number {
        2 => None,
        4 => Some(1),
        _ => Some(0),
    };
    let mut worker = ClosedLoop::new(fake::<SHORT>(1, answers), Nanos(0), false);
    let (timed, _) = step(&mut worker, |answered| answered >= 8);
    assert_eq!(timed.lost, 1);
    let slowest = timed.trips.last().unwrap().0;
    assert!(slowest >= 49_000_000, "the late one has its whole time: {slowest}");
    assert!(counted(&timed) >= 8);
}

#[test]
fn an_open_loop_sends_what_is_due_and_times_what_is_not_answered() {
    let mut worker =
        OpenLoop::new(fake::<NONE>(3, |n| (n < 5).then_some(0)), Nanos(1_000_000), true);
    // A transport without loss waits for every answer, so the test ends the step itself.
    let advice = Arc::new(Advice::new(1, 1));
    worker.begin(&advice).unwrap();
    advice.count_from(clock::now());
    let until = clock::now() + 20_000_000;
    let mut done = Vec::new();
    while clock::now() < until {
        worker.submit(&[Op::Send(8)]).unwrap();
        worker.reap(1, WAIT, &mut done).unwrap();
    }
    advice.count_until(clock::now());
    for _ in 0..4 {
        assert!(!worker.finish().unwrap());
        worker.reap(1, WAIT, &mut done).unwrap();
    }
    let timed = worker.timed();
    assert!(timed.unanswered >= 10, "{timed:?}");
    assert_eq!(timed.lost, 0);
    assert!(counted(&timed) >= 20, "each that was due is timed: {timed:?}");
}

#[test]
fn an_open_loop_loses_what_is_not_answered_where_messages_may_be_lost() {
    let answers = |number: u64| (number % 4 != 3).then_some(0);
    let mut worker = OpenLoop::new(fake::<SHORT>(1, answers), Nanos(1_000_000), true);
    let (timed, answered) = step(&mut worker, |answered| answered >= 9);
    assert!(timed.lost >= 2, "{timed:?}");
    assert_eq!(timed.unanswered, 0);
    assert!(answered >= 9 && counted(&timed) >= 9);
    let all = counted(&timed) + timed.lost;
    assert!(timed.lost.abs_diff(all / 4) <= 1, "{timed:?}");
}

#[test]
fn what_is_given_up_at_the_end_of_a_step_says_nothing() {
    // The fourth message is never answered. Its timeout is a minute, so the end of the step gives it up.
    let mut worker = ClosedLoop::new(fake::<LONG>(1, |n| (n < 3).then_some(0)), Nanos(0), false);
    let advice = Arc::new(Advice::new(1, 1));
    worker.begin(&advice).unwrap();
    advice.count_from(clock::now());
    let mut done = Vec::new();
    for _ in 0..8 {
        worker.submit(&[Op::Send(8)]).unwrap();
        worker.reap(1, WAIT, &mut done).unwrap();
    }
    advice.count_until(clock::now());
    while !worker.finish().unwrap() {
        std::thread::sleep(WAIT);
        worker.reap(1, WAIT, &mut done).unwrap();
    }
    let timed = worker.timed();
    assert_eq!((counted(&timed), timed.lost), (3, 0), "{timed:?}");
}
