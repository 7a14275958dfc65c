//! The search for the highest rate at which a path loses at most a given share: it doubles the rate until too
//! much is lost, halves the interval between, and decides with a longer step at the end.
//!
//! A rate fails if two steps in a row lose too much, or if one longer step does whose sender kept to the rate.
//! A sender is at its limit if it sent too little in two steps, and sent no more when twice as much was
//! requested: other work on a host costs a datagram or a moment now and then, and a busy host costs a share of
//! every rate.
//= https://www.rfc-editor.org/rfc/rfc2544#section-26.1

use linerate_units::Rate;

/// The rate of the first step.
const FIRST: Rate = Rate(10_000_000);
/// The lowest rate that is tried.
const LEAST: Rate = Rate(100_000);
/// Largest difference between the rates that passed and failed at which the search is over, as a share of the
/// higher one.
const CLOSE: f64 = 0.01;
/// Minimum share of the requested rate that a sender must send: below it, the sender may be at its own limit.
const ACHIEVED: f64 = 0.95;
/// Share of the received rate at which the next step runs after a rate that was too high: the path carries
/// that much.
const BELOW: f64 = 0.995;
/// The number of longer steps that may fail.
const LONG_MOST: u32 = 5;

/// The result of a step at one rate, over all streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// The rate that was requested in the step.
    pub asked: Rate,
    /// The sent rate, in bits per second.
    pub sent: f64,
    /// The received rate, in bits per second.
    pub received: f64,
    /// The share of the sent datagrams that were not received.
    pub lost: f64,
    /// Datagrams lost at the receiver's socket; `None` if it was not read.
    pub at_socket: Option<u64>,
    /// Whether it was one of the longer steps.
    pub long: bool,
}

impl Look {
    /// Whether the sender sent too little.
    pub fn short_of(&self) -> bool {
        self.sent < self.asked.0 as f64 * ACHIEVED
    }
}

/// The step of a search that is measured next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// A short step at the given rate.
    Short(Rate),
    /// A longer step at the given rate.
    Long(Rate),
    /// Nothing: the search is over.
    Over,
}

/// The state of a search.
#[derive(Debug, Clone)]
pub struct Search {
    allowed: f64,
    most: Rate,
    looks: Vec<Look>,
    /// The rate to request next.
    next: Ask,
    /// The highest rate that passed, and the lowest that failed.
    passed: Option<Look>,
    failed: Option<Look>,
    /// Whether the last step, or its sender, failed, and the rate is requested once more.
    again: bool,
    long: u32,
    confirmed: Option<Look>,
}

impl Search {
    /// A search for the highest rate up to `most` at which a share of `allowed` is lost at most.
    pub fn new(allowed: f64, most: Option<Rate>) -> Self {
        let most = most.unwrap_or(Rate(u64::MAX));
        Self {
            allowed,
            most,
            looks: Vec::new(),
            next: Ask::Short(FIRST.min(most)),
            passed: None,
            failed: None,
            again: false,
            long: 0,
            confirmed: None,
        }
    }

    /// Rebuilds the state of a search from the results of its steps.
    pub fn replay(allowed: f64, most: Option<Rate>, looks: impl IntoIterator<Item = Look>) -> Self {
        let mut search = Self::new(allowed, most);
        for look in looks {
            search.told(look);
        }
        search
    }

    /// The step of a search that is measured next.
    pub fn next(&self) -> Ask {
        self.next
    }

    /// Processes the result of the step that was requested.
    pub fn told(&mut self, look: Look) {
        self.looks.push(look);
        // Without any arrival there is no loss to judge.
        let passes = look.lost <= self.allowed && look.received > 0.0;
        if look.long {
            self.long(look, passes);
            return;
        }
        if !self.again && (!passes || look.short_of()) {
            self.again = true;
            return;
        }
        self.again = false;
        if passes {
            self.passed = Some(look);
        } else {
            self.failed = Some(look);
        }
        self.next = self.between();
    }

    fn long(&mut self, look: Look, passes: bool) {
        self.long += 1;
        let last = self.long == LONG_MOST;
        // A sender that was delayed catches up at a higher rate than requested.
        if !passes && look.short_of() && !self.again && !last {
            self.again = true;
            return;
        }
        self.again = false;
        if passes {
            self.confirmed = Some(look);
        } else {
            self.failed = Some(look);
        }
        self.next = if passes || last {
            Ask::Over
        } else {
            let arrived = look.received.min(look.asked.0 as f64) * BELOW;
            let lower = (arrived.min(look.asked.0 as f64 * (1.0 - CLOSE))) as u64;
            Ask::Long(Rate(lower.max(LEAST.0)))
        };
    }

    /// The next rate, after a short step that passed or failed.
    fn between(&self) -> Ask {
        match (self.passed, self.failed) {
            (Some(passed), _) if self.at_limit(&passed) => {
                Ask::Long(Rate((self.most_sent() as u64).max(LEAST.0)))
            }
            (Some(passed), None) if passed.asked >= self.most => Ask::Long(passed.asked),
            (Some(passed), None) => {
                Ask::Short(Rate(passed.asked.0.saturating_mul(2)).min(self.most))
            }
            (None, Some(failed)) if failed.asked <= LEAST => Ask::Over,
            (None, Some(failed)) => Ask::Short(Rate(failed.asked.0 / 2).max(LEAST)),
            (Some(passed), Some(failed)) => {
                let (low, high) = (passed.asked.0, failed.asked.0);
                if (high.saturating_sub(low) as f64) <= high as f64 * CLOSE {
                    Ask::Long(passed.asked)
                } else {
                    Ask::Short(Rate(low.midpoint(high)))
                }
            }
            (None, None) => self.next,
        }
    }

    /// Whether the sender could send no more than in this step: it sent too little, no more when more was
    /// requested, and just as little when twice or half as much was requested.
    fn at_limit(&self, look: &Look) -> bool {
        let apart =
            |l: &Look| l.asked.min(look.asked).0.saturating_mul(2) <= l.asked.max(look.asked).0;
        let as_little = |l: &Look| l.short_of() && look.sent * ACHIEVED <= l.sent;
        let mut higher = self.looks.iter().filter(|l| l.asked > look.asked);
        look.short_of()
            && higher.all(|l| l.sent * ACHIEVED <= look.sent)
            && self.looks.iter().any(|l| apart(l) && as_little(l))
    }

    /// The most that was sent in a step that lost no more than may be lost.
    fn most_sent(&self) -> f64 {
        let passed = self.looks.iter().filter(|l| l.lost <= self.allowed);
        passed.map(|l| l.sent).fold(0.0, f64::max)
    }

    /// The share that may be lost.
    pub fn allowed(&self) -> f64 {
        self.allowed
    }

    /// All steps of the search, in order.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The longer step at the highest rate, if it passed.
    pub fn found(&self) -> Option<&Look> {
        self.confirmed.as_ref()
    }

    /// The highest rate so far that passed a short step.
    pub fn passed(&self) -> Option<&Look> {
        self.passed.as_ref()
    }

    /// The lowest rate that lost too much.
    pub fn failed(&self) -> Option<&Look> {
        self.failed.as_ref()
    }

    /// The highest rate that the sender reached when more was requested, in bits per second.
    pub fn sender_limit(&self) -> Option<f64> {
        // A single rate may have been disturbed: it counts only if another one confirms it.
        let mut told = [self.confirmed, self.passed].into_iter().flatten();
        told.find(|look| self.at_limit(look)).map(|look| look.sent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A path with a rate, which is all that the receiver gets, and a queue that holds this many bits of the
    /// excess. The sender can send at most `sender`.
    struct Path {
        rate: f64,
        queue: f64,
        sender: f64,
        noise: f64,
    }

    impl Path {
        fn look(&self, asked: Rate, long: bool) -> Look {
            let secs = if long { 10.0 } else { 0.5 };
            let sent = (asked.0 as f64).min(self.sender);
            let over = ((sent - self.rate) * secs - self.queue).max(0.0);
            let lost = over / (sent * secs);
            Look {
                asked,
                sent,
                received: sent.min(self.rate),
                lost: lost.max(self.noise),
                at_socket: Some(0),
                long,
            }
        }

        fn search(&self, allowed: f64, most: Option<Rate>) -> Search {
            let mut search = Search::new(allowed, most);
            for _ in 0..200 {
                let look = match search.next() {
                    Ask::Short(rate) => self.look(rate, false),
                    Ask::Long(rate) => self.look(rate, true),
                    Ask::Over => return search,
                };
                search.told(look);
            }
            panic!("it does not end: {search:?}");
        }
    }

    fn path(rate: f64) -> Path {
        Path { rate, queue: 0.0, sender: 1e11, noise: 0.0 }
    }

    #[test]
    fn the_rate_of_a_path_is_found_from_below_and_the_next_one_loses() {
        for rate in [150e3, 3e6, 10e6, 95.7e6, 957e6, 25e9] {
            let search = path(rate).search(0.0, None);
            let found = search.found().unwrap();
            assert!(found.sent <= rate && found.sent >= rate * 0.98, "{rate}: {found:?}");
            let next = search.failed().unwrap();
            assert!(next.asked > found.asked && next.lost > 0.0);
            assert_eq!(search.sender_limit(), None);
            assert!(search.looks().len() < 40);
        }
    }

    #[test]
    fn a_queue_that_hides_a_rate_from_short_steps_does_not_from_the_long_one() {
        let deep = Path { queue: 10e6, ..path(100e6) };
        let search = deep.search(0.0, None);
        let (short, found) = (search.passed().unwrap(), search.found().unwrap());
        assert!(short.asked.0 > 105_000_000, "{short:?}");
        assert!(found.sent <= 101e6 && found.sent > 98e6, "{found:?}");
    }

    #[test]
    fn a_sender_that_can_send_no_more_is_named_and_a_bound_is_kept() {
        let slow = Path { sender: 700e6, ..path(1e12) };
        let search = slow.search(0.0, None);
        assert_eq!(search.sender_limit(), Some(700e6));
        assert!(search.found().is_some_and(|l| l.sent > 690e6));
        assert_eq!(search.failed(), None);
        assert!(search.looks().len() < 20);
        let bound = path(1e12).search(0.0, Some(Rate(50_000_000)));
        assert_eq!(bound.found().map(|l| l.asked), Some(Rate(50_000_000)));
        assert_eq!(bound.sender_limit(), None);
    }

    #[test]
    fn what_is_lost_at_every_rate_is_allowed_or_nothing_is_found() {
        let lossy = Path { noise: 0.001, ..path(100e6) };
        assert_eq!(lossy.search(0.0009, None).found(), None);
        let found = *lossy.search(0.001, None).found().unwrap();
        assert!(found.sent > 98e6 && found.sent < 101e6, "{found:?}");
    }

    #[test]
    fn one_step_that_loses_is_asked_for_again_and_two_fail() {
        let mut search = Search::new(0.0, None);
        let good = path(1e9).look(FIRST, false);
        let bad = Look { lost: 0.5, ..good };
        search.told(bad);
        assert_eq!(search.next(), Ask::Short(FIRST));
        search.told(good);
        assert_eq!(search.next(), Ask::Short(Rate(20_000_000)));
        let bad = Look { lost: 0.5, ..path(1e9).look(Rate(20_000_000), false) };
        search.told(bad);
        search.told(bad);
        assert_eq!(search.next(), Ask::Short(Rate(15_000_000)));
        let late = Look { sent: 1e6, ..path(1e9).look(Rate(15_000_000), false) };
        search.told(late);
        assert_eq!(search.next(), Ask::Short(Rate(15_000_000)));
        search.told(late);
        // It sent more when it was asked for more: it was not at its limit, but disturbed.
        assert_eq!(search.next(), Ask::Short(Rate(17_500_000)));
    }

    #[test]
    fn a_longer_step_that_its_sender_did_not_keep_to_is_asked_for_again_and_two_fail() {
        let bound = Rate(50_000_000);
        let at_last = || {
            let mut search = Search::new(0.0, Some(bound));
            while let Ask::Short(rate) = search.next() {
                search.told(path(1e9).look(rate, false));
            }
            assert_eq!(search.next(), Ask::Long(bound));
            search
        };
        let good = path(1e9).look(bound, true);
        let bad = Look { lost: 0.5, ..good };
        let stalled = Look { sent: 30e6, ..bad };

        let mut search = at_last();
        search.told(stalled);
        assert_eq!((search.next(), search.failed()), (Ask::Long(bound), None));
        search.told(good);
        assert_eq!((search.next(), search.found()), (Ask::Over, Some(&good)));

        let mut search = at_last();
        search.told(bad);
        assert!(matches!(search.next(), Ask::Long(rate) if rate < bound));
        let mut search = at_last();
        search.told(stalled);
        search.told(stalled);
        assert!(matches!(search.next(), Ask::Long(rate) if rate < bound));
        assert_eq!(search.failed(), Some(&stalled));
    }

    /// A search on a path of a rate, by a sender that reaches `sent` of the rate that is asked for.
    fn by(sent: impl Fn(f64) -> f64, rate: f64, most: Option<Rate>) -> Search {
        let mut search = Search::new(0.0, most);
        for _ in 0..200 {
            let (asked, long) = match search.next() {
                Ask::Short(asked) => (asked, false),
                Ask::Long(asked) => (asked, true),
                Ask::Over => return search,
            };
            let sent = sent(asked.0 as f64);
            search.told(Look {
                asked,
                sent,
                received: sent.min(rate),
                lost: (1.0 - rate / sent).max(0.0),
                at_socket: Some(0),
                long,
            });
        }
        panic!("it does not end: {search:?}");
    }

    #[test]
    fn a_sender_that_is_disturbed_at_every_rate_is_not_at_its_limit() {
        for rate in [18.5e6, 20e6, 37e6, 39.9e6, 77e6, 950e6] {
            let search = by(|asked| asked * 0.93, rate, None);
            let found = search.found().unwrap().sent;
            // The last step is disturbed, too.
            assert!((0.95..=1.0).contains(&(found / rate)), "{rate}: {found}");
            assert_eq!(search.sender_limit(), None, "{rate}");
        }
        let bound = by(|asked| asked * 0.93, 1e9, Some(Rate(50_000_000)));
        let found = bound.found().unwrap();
        assert_eq!((found.asked, bound.sender_limit()), (Rate(50_000_000), None));
    }

    #[test]
    fn a_sender_that_sends_less_when_it_is_pushed_is_at_its_limit() {
        let sent = |asked: f64| {
            if asked > 6e9 { 4.5e9 } else { asked.min(4.99e9) }
        };
        let search = by(sent, 1e12, None);
        assert!(search.looks().len() < 25, "{}", search.looks().len());
        assert_eq!(search.found().map(|l| l.sent), Some(4.99e9));
        assert!(search.sender_limit().is_some());
    }

    proptest! {
        #[test]
        fn it_ends_whatever_the_steps_show(
            looks in prop::collection::vec((0.0..2e10f64, 0.0..2e10f64, 0.0..1.0f64), 300),
            most in prop::option::of(1u64..u64::MAX),
        ) {
            let mut search = Search::new(0.01, most.map(Rate));
            let mut steps = 0;
            for (sent, received, lost) in looks {
                let (asked, long) = match search.next() {
                    Ask::Over => break,
                    Ask::Short(rate) => (rate, false),
                    Ask::Long(rate) => (rate, true),
                };
                prop_assert!(asked.0 > 0);
                let lost = if lost < 0.5 { 0.0 } else { lost };
                search.told(Look { asked, sent, received, lost, at_socket: None, long });
                steps += 1;
            }
            prop_assert!(steps < 300);
        }
    }
}
