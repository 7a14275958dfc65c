//! Timed actions of planted events.

use std::time::{Duration, Instant};

use linerate_plan::path::Side;
use linerate_units::Nanos;

use crate::fault::Rhythm;
use crate::spec::Host;

/// Actions that planted events cause at certain times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Act {
    /// Switch the carrier of a host's link off (`false`) or on.
    Link(Host, bool),
    /// Stop the programs of a host.
    Stop(Host),
    /// Continue the stopped programs of a host.
    Go(Host),
}

struct Event {
    at: Instant,
    act: Act,
    /// Time between two beginnings of the event; `None` if it happens once.
    period: Option<Duration>,
}

/// The next action of each planted event, and its time.
#[derive(Default)]
pub(super) struct Events {
    events: Vec<Event>,
}

impl Events {
    pub(super) fn link_down(&mut self, now: Instant, host: Host, after: Nanos, lasting: Nanos) {
        let down = now + after.duration();
        self.add(down, Act::Link(host, false), None);
        self.add(down + lasting.duration(), Act::Link(host, true), None);
    }

    pub(super) fn stall(&mut self, now: Instant, side: Side, lasting: Nanos, rhythm: Rhythm) {
        let host = Host::from(side);
        let (first, period) = match rhythm {
            Rhythm::Once(after) => (now + after.duration(), None),
            Rhythm::Every(period) => (now + period.duration(), Some(period.duration())),
        };
        self.add(first, Act::Stop(host), period);
        self.add(first + lasting.duration(), Act::Go(host), period);
    }

    /// Removes the stalls of a host, and makes its stopped programs continue at once.
    pub(super) fn end_stalls(&mut self, now: Instant, host: Host) {
        self.events.retain(|event| event.act != Act::Stop(host) && event.act != Act::Go(host));
        self.add(now, Act::Go(host), None);
    }

    /// Removes the planned switches of the link of a host.
    pub(super) fn end_switches(&mut self, host: Host) {
        self.events.retain(|event| !matches!(event.act, Act::Link(own, _) if own == host));
    }

    fn add(&mut self, at: Instant, act: Act, period: Option<Duration>) {
        self.events.push(Event { at, act, period });
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.events.iter().map(|event| event.at).min()
    }

    /// Removes the actions that are due, and returns them in order. Periodic ones are planned again.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Act> {
        self.events.sort_by_key(|event| event.at);
        let due = self.events.partition_point(|event| event.at <= now);
        let due: Vec<Event> = self.events.drain(..due).collect();
        for event in &due {
            if let Some(period) = event.period {
                // Beginnings that were missed are not made up for.
                let mut at = event.at + period;
                while at <= now {
                    at += period;
                }
                self.add(at, event.act, Some(period));
            }
        }
        due.into_iter().map(|event| event.act).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const STOP: Act = Act::Stop(Host::Far);
    const GO: Act = Act::Go(Host::Far);

    /// Events that stop the programs of the far host for 20 ms in every 100 ms.
    fn stalling(start: Instant) -> Events {
        let mut events = Events::default();
        let rhythm = Rhythm::Every(Nanos::from_millis(100));
        events.stall(start, Side::Far, Nanos::from_millis(20), rhythm);
        events
    }

    #[test]
    fn a_stall_comes_again_until_it_is_removed() {
        let start = Instant::now();
        let mut events = stalling(start);
        let mut seen = Vec::new();
        for ms in 0..250 {
            let acts = events.due(start + ms * MS);
            seen.extend(acts.into_iter().map(|act| (ms, act)));
        }
        assert_eq!(seen, [(100, STOP), (120, GO), (200, STOP), (220, GO)]);
        events.end_stalls(start + 250 * MS, Host::Far);
        assert_eq!(events.due(start + 900 * MS), [GO]);
        assert_eq!(events.next(), None);
    }

    #[test]
    fn what_is_missed_is_made_up_for_once() {
        let start = Instant::now();
        let mut events = stalling(start);
        assert_eq!(events.due(start + 1000 * MS), [STOP, GO]);
        assert_eq!(events.next(), Some(start + 1020 * MS));
    }

    #[test]
    fn a_link_goes_down_once() {
        let start = Instant::now();
        let mut events = Events::default();
        events.link_down(start, Host::Near, Nanos::from_millis(5), Nanos::from_millis(5));
        assert_eq!(events.due(start + 4 * MS), []);
        assert_eq!(events.due(start + 5 * MS), [Act::Link(Host::Near, false)]);
        events.end_switches(Host::Near);
        assert_eq!(events.next(), None);
    }
}
