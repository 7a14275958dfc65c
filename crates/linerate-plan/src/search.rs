//! The search for the highest rate at which a path loses at most a given share of datagrams. It doubles the rate until
//! too much is lost, halves the interval between the highest rate that passed and the lowest that failed, and confirms
//! the result with a longer step.
//!
//! A rate fails if two steps in a row lose too much, or if one longer step does in which the sender kept to the rate.
//! The sender is at its limit if it sent too little in two steps, and sent no more when twice as much was requested.
//! Other work on a host costs a datagram or a moment now and then, but a busy host costs a share of every rate.
//= https://www.rfc-editor.org/rfc/rfc2544#section-26.1

use linerate_units::Rate;

/// The rate of the first step.
const FIRST_RATE: Rate = Rate(10_000_000);
/// The lowest rate of a step.
const LEAST_RATE: Rate = Rate(100_000);
/// The search is over when the highest rate that passed and the lowest that failed differ by this share of the latter.
const CLOSE_SHARE: f64 = 0.01;
/// Smallest share of the requested rate that a sender must reach. Below this, the sender may be at its own limit.
const ACHIEVED: f64 = 0.95;
/// After a longer step that failed, the next one runs at this share of the received rate, which the path carries.
const BELOW: f64 = 0.995;
/// Largest number of longer steps. If the last one fails, the search ends without a result.
const LONG_MOST: u32 = 5;

/// The result of one step of a search, over all streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// The rate that was requested for the step.
    pub requested: Rate,
    /// The sent rate, in bits per second.
    pub sent: f64,
    /// The received rate, in bits per second.
    pub received: f64,
    /// The lost datagrams, as a share of the datagrams sent.
    pub lost: f64,
    /// Datagrams dropped at the receiver's socket; `None` if its counter was not read.
    pub at_socket: Option<u64>,
    /// Whether this was a longer step.
    pub long: bool,
}

impl Look {
    /// Whether the sender sent less than the share `ACHIEVED` of the requested rate.
    pub fn short_of(&self) -> bool {
        self.sent < self.requested.0 as f64 * ACHIEVED
    }
}

/// The step that a search needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// A short step at the given rate.
    Short(Rate),
    /// A longer step at the given rate.
    Long(Rate),
    /// Nothing: the search is over.
    Over,
}

/// A search for the highest rate, with the results of its steps so far.
#[derive(Debug, Clone)]
pub struct Search {
    allowed: f64,
    most: Rate,
    looks: Vec<Look>,
    /// The next step.
    next: Ask,
    /// The steps with the highest rate that passed, and with the lowest rate that failed.
    passed: Option<Look>,
    failed: Option<Look>,
    /// Whether the last step failed, or its sender sent too little, and the same rate is measured once more.
    is_retry: bool,
    long: u32,
    confirmed: Option<Look>,
}

impl Search {
    /// Starts a search for the highest rate, up to `most`, at which the lost share of datagrams is at most `allowed`.
    pub fn new(allowed: f64, most: Option<Rate>) -> Self {
        let most = most.unwrap_or(Rate(u64::MAX));
        Self {
            allowed,
            most,
            looks: Vec::new(),
            next: Ask::Short(FIRST_RATE.min(most)),
            passed: None,
            failed: None,
            is_retry: false,
            long: 0,
            confirmed: None,
        }
    }

    /// Rebuilds the state of a search from the results of its steps.
    pub fn replay(allowed: f64, most: Option<Rate>, looks: impl IntoIterator<Item = Look>) -> Self {
        let mut search = Self::new(allowed, most);
        for look in looks {
            search.add(look);
        }
        search
    }

    /// The step to measure next.
    pub fn next(&self) -> Ask {
        self.next
    }

    /// Adds the result of the step that [`Search::next`] requested, and decides the next step.
    pub fn add(&mut self, look: Look) {
        self.looks.push(look);
        // If no datagram was received, no share of loss can be judged.
        let passes = look.lost <= self.allowed && look.received > 0.0;
        if look.long {
            self.long(look, passes);
            return;
        }
        if !self.is_retry && (!passes || look.short_of()) {
            self.is_retry = true;
            return;
        }
        self.is_retry = false;
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
        // A sender that was delayed catches up above the requested rate. Such a longer step is repeated.
        if !passes && look.short_of() && !self.is_retry && !last {
            self.is_retry = true;
            return;
        }
        self.is_retry = false;
        if passes {
            self.confirmed = Some(look);
        } else {
            self.failed = Some(look);
        }
        self.next = if passes || last {
            Ask::Over
        } else {
            let arrived = look.received.min(look.requested.0 as f64) * BELOW;
            let lower = (arrived.min(look.requested.0 as f64 * (1.0 - CLOSE_SHARE))) as u64;
            Ask::Long(Rate(lower.max(LEAST_RATE.0)))
        };
    }

    /// The step after a short step that passed or failed.
    fn between(&self) -> Ask {
        match (self.passed, self.failed) {
            (Some(passed), _) if self.at_limit(&passed) => {
                Ask::Long(Rate((self.most_sent() as u64).max(LEAST_RATE.0)))
            }
            (Some(passed), None) if passed.requested >= self.most => Ask::Long(passed.requested),
            (Some(passed), None) => {
                Ask::Short(Rate(passed.requested.0.saturating_mul(2)).min(self.most))
            }
            (None, Some(failed)) if failed.requested <= LEAST_RATE => Ask::Over,
            (None, Some(failed)) => Ask::Short(Rate(failed.requested.0 / 2).max(LEAST_RATE)),
            (Some(passed), Some(failed)) => {
                let (low, high) = (passed.requested.0, failed.requested.0);
                if (high.saturating_sub(low) as f64) <= high as f64 * CLOSE_SHARE {
                    Ask::Long(passed.requested)
                } else {
                    Ask::Short(Rate(low.midpoint(high)))
                }
            }
            (None, None) => self.next,
        }
    }

    /// Whether the sender was at its limit in this step: it sent too little, it sent no more when more was requested,
    /// and it sent as little when twice or half as much was requested.
    fn at_limit(&self, look: &Look) -> bool {
        let apart = |l: &Look| {
            l.requested.min(look.requested).0.saturating_mul(2) <= l.requested.max(look.requested).0
        };
        let as_little = |l: &Look| l.short_of() && look.sent * ACHIEVED <= l.sent;
        let mut higher = self.looks.iter().filter(|l| l.requested > look.requested);
        look.short_of()
            && higher.all(|l| l.sent * ACHIEVED <= look.sent)
            && self.looks.iter().any(|l| apart(l) && as_little(l))
    }

    /// The highest sent rate of the steps that passed, in bits per second.
    fn most_sent(&self) -> f64 {
        let passed = self.looks.iter().filter(|l| l.lost <= self.allowed);
        passed.map(|l| l.sent).fold(0.0, f64::max)
    }

    /// The share of datagrams that may be lost.
    pub fn allowed(&self) -> f64 {
        self.allowed
    }

    /// All steps of the search, in order.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The longer step that passed; `None` if no rate is confirmed yet.
    pub fn found(&self) -> Option<&Look> {
        self.confirmed.as_ref()
    }

    /// The step with the highest rate that passed, so far.
    pub fn passed(&self) -> Option<&Look> {
        self.passed.as_ref()
    }

    /// The step with the lowest rate that lost too much.
    pub fn failed(&self) -> Option<&Look> {
        self.failed.as_ref()
    }

    /// The highest rate that the sender reached when more was requested, in bits per second.
    pub fn sender_limit(&self) -> Option<f64> {
        // A single step may have been disturbed: its sender's limit counts only if another step confirms it.
        let mut either = [self.confirmed, self.passed].into_iter().flatten();
        either.find(|look| self.at_limit(look)).map(|look| look.sent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A simulated path. The receiver gets at most `rate` bits per second, and a queue holds `queue` bits of what
    /// is sent above that. The sender sends at most `sender` bits per second.
    struct Path {
        rate: f64,
        queue: f64,
        sender: f64,
        noise: f64,
    }

    impl Path {
        fn look(&self, requested: Rate, long: bool) -> Look {
            let secs = if long { 10.0 } else { 0.5 };
            let sent = (requested.0 as f64).min(self.sender);
            let over = ((sent - self.rate) * secs - self.queue).max(0.0);
            let lost = over / (sent * secs);
            Look {
                requested,
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
                search.add(look);
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
            assert!(next.requested > found.requested && next.lost > 0.0);
            assert_eq!(search.sender_limit(), None);
            assert!(search.looks().len() < 40);
        }
    }

    #[test]
    fn a_queue_that_hides_a_rate_from_short_steps_does_not_from_the_long_one() {
        let deep = Path { queue: 10e6, ..path(100e6) };
        let search = deep.search(0.0, None);
        let (short, found) = (search.passed().unwrap(), search.found().unwrap());
        assert!(short.requested.0 > 105_000_000, "{short:?}");
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
        assert_eq!(bound.found().map(|l| l.requested), Some(Rate(50_000_000)));
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
        let good = path(1e9).look(FIRST_RATE, false);
        let bad = Look { lost: 0.5, ..good };
        search.add(bad);
        assert_eq!(search.next(), Ask::Short(FIRST_RATE));
        search.add(good);
        assert_eq!(search.next(), Ask::Short(Rate(20_000_000)));
        let bad = Look { lost: 0.5, ..path(1e9).look(Rate(20_000_000), false) };
        search.add(bad);
        search.add(bad);
        assert_eq!(search.next(), Ask::Short(Rate(15_000_000)));
        let late = Look { sent: 1e6, ..path(1e9).look(Rate(15_000_000), false) };
        search.add(late);
        assert_eq!(search.next(), Ask::Short(Rate(15_000_000)));
        search.add(late);
        // The sender sent more when more was requested: it was disturbed, not at its limit.
        assert_eq!(search.next(), Ask::Short(Rate(17_500_000)));
    }

    #[test]
    fn a_longer_step_that_its_sender_did_not_keep_to_is_asked_for_again_and_two_fail() {
        let bound = Rate(50_000_000);
        let at_last = || {
            let mut search = Search::new(0.0, Some(bound));
            while let Ask::Short(rate) = search.next() {
                search.add(path(1e9).look(rate, false));
            }
            assert_eq!(search.next(), Ask::Long(bound));
            search
        };
        let good = path(1e9).look(bound, true);
        let bad = Look { lost: 0.5, ..good };
        let stalled = Look { sent: 30e6, ..bad };

        let mut search = at_last();
        search.add(stalled);
        assert_eq!((search.next(), search.failed()), (Ask::Long(bound), None));
        search.add(good);
        assert_eq!((search.next(), search.found()), (Ask::Over, Some(&good)));

        let mut search = at_last();
        search.add(bad);
        assert!(matches!(search.next(), Ask::Long(rate) if rate < bound));
        let mut search = at_last();
        search.add(stalled);
        search.add(stalled);
        assert!(matches!(search.next(), Ask::Long(rate) if rate < bound));
        assert_eq!(search.failed(), Some(&stalled));
    }

    /// Runs a search on a path with the rate `rate`. `sent` gives the sent rate for a requested rate.
    fn by(sent: impl Fn(f64) -> f64, rate: f64, most: Option<Rate>) -> Search {
        let mut search = Search::new(0.0, most);
        for _ in 0..200 {
            let (requested, long) = match search.next() {
                Ask::Short(requested) => (requested, false),
                Ask::Long(requested) => (requested, true),
                Ask::Over => return search,
            };
            let sent = sent(requested.0 as f64);
            search.add(Look {
                requested,
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
            let search = by(|requested| requested * 0.93, rate, None);
            let found = search.found().unwrap().sent;
            // The last step is disturbed as well, so the found rate may be below the rate of the path.
            assert!((0.95..=1.0).contains(&(found / rate)), "{rate}: {found}");
            assert_eq!(search.sender_limit(), None, "{rate}");
        }
        let bound = by(|requested| requested * 0.93, 1e9, Some(Rate(50_000_000)));
        let found = bound.found().unwrap();
        assert_eq!((found.requested, bound.sender_limit()), (Rate(50_000_000), None));
    }

    #[test]
    fn a_sender_that_sends_less_when_it_is_pushed_is_at_its_limit() {
        let sent = |requested: f64| {
            if requested > 6e9 { 4.5e9 } else { requested.min(4.99e9) }
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
                let (requested, long) = match search.next() {
                    Ask::Over => break,
                    Ask::Short(rate) => (rate, false),
                    Ask::Long(rate) => (rate, true),
                };
                prop_assert!(requested.0 > 0);
                let lost = if lost < 0.5 { 0.0 } else { lost };
                search.add(Look { requested, sent, received, lost, at_socket: None, long });
                steps += 1;
            }
            prop_assert!(steps < 300);
        }
    }
}
