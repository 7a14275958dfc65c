//! What a test has counted, and until when.

use std::time::{Duration, Instant};

use linerate_core::iperf3::{Datagrams, Results, StreamResult, stream_id};
use linerate_core::units::{Bytes, Nanos, Rate};

use super::terms::Terms;
use crate::iperf3::streams::{Moved, Streams};
use crate::load::application::Role;

/// A receiver waits for no more of a given number of bytes once none came for this long.
const SETTLED: Duration = Duration::from_secs(1);
/// And for so long in all.
const SETTLED_AT_MOST: Duration = Duration::from_secs(5);
/// The same for datagrams: what is lost never comes, and those that do are close behind each other.
const QUIET: Duration = Duration::from_millis(100);
const QUIET_AT_MOST: Duration = Duration::from_secs(1);

/// What was counted from the omitted part on.
pub(super) struct Counted {
    since: Instant,
    base: Vec<Moved>,
    again: Vec<Option<u64>>,
}

impl Counted {
    /// All of so many streams counts, from before they began.
    pub(super) fn all(since: Instant, streams: usize) -> Self {
        Self {
            since,
            base: vec![Moved::default(); streams],
            again: vec![Some(0); streams],
        }
    }

    /// What was moved, and sent again, up to now does not count.
    pub(super) fn now(streams: &Streams) -> Self {
        Self {
            since: Instant::now(),
            base: streams.each(),
            again: streams.retransmits(),
        }
    }

    /// Segments that each stream has sent again since; `None` where either time the kernel did not tell.
    fn sent_again(&self, now: Vec<Option<u64>>) -> impl Iterator<Item = Option<u64>> {
        let each = now.into_iter().zip(&self.again);
        each.map(|(now, base)| Some(now?.saturating_sub((*base)?)))
    }
}

/// Waits for the rest of the payload where it may still be on its way: of a given number of bytes over
/// connections, and of datagrams in any case; until when payload came.
pub(super) fn settle(terms: &Terms, streams: &Streams, counted: &Counted) -> Instant {
    let began = Instant::now();
    let mut until = began;
    let (wanted, quiet, most) = match (terms.receives_datagrams(), terms.wanted()) {
        (true, _) => (u64::MAX, QUIET, QUIET_AT_MOST),
        (false, Some(wanted)) => (wanted, SETTLED, SETTLED_AT_MOST),
        (false, None) => return until,
    };
    let base: u64 = counted.base.iter().map(|moved| moved.bytes).sum();
    let mut total = streams.total();
    // A client may let its last bytes trickle.
    let in_time = |until: Instant| until.elapsed() < quiet && began.elapsed() < most;
    while total.saturating_sub(base) < wanted && in_time(until) {
        std::thread::sleep(Duration::from_millis(1));
        if streams.total() != total {
            (total, until) = (streams.total(), Instant::now());
        }
    }
    until
}

/// What this end counted, for the client.
pub(super) fn results(streams: &Streams, counted: &Counted, until: Instant, role: Role) -> Results {
    let seconds = until.duration_since(counted.since).as_secs_f64();
    let again = counted.sent_again(streams.retransmits());
    let each = streams.each().into_iter().zip(&counted.base).zip(again);
    let stream = |(at, ((now, base), again)): (usize, ((Moved, &Moved), Option<u64>))| {
        let datagrams = now.datagrams.since(&base.datagrams);
        StreamResult {
            id: stream_id(at),
            bytes: now.bytes.saturating_sub(base.bytes),
            retransmits: again.filter(|_| role == Role::Sender),
            seconds: Some(seconds),
            datagrams: Datagrams {
                packets: Some(now.datagrams.packets),
                omitted: base.datagrams.packets,
                errors: Some(datagrams.lost),
                jitter: Some(datagrams.jitter as f64 / 1e9),
            },
        }
    };
    Results {
        streams: each.enumerate().map(stream).collect(),
        ..Results::default()
    }
}

/// `ended, 9.41 Gb/s received in 10 s`, of datagrams with what was lost.
pub(super) fn said(terms: &Terms, ours: &Results, theirs: &Results, role: Role) -> String {
    // Goodput is the receiver's.
    let (receiver, how) = match role {
        Role::Sender => (theirs, "sent"),
        Role::Receiver => (ours, "received"),
    };
    let Some(seconds) = receiver.seconds() else {
        return "ended".to_owned();
    };
    let time = Nanos((seconds * 1e9) as u64);
    let rate = Rate::of(Bytes(receiver.bytes()), time);
    let lost = terms.is_of_datagrams().then(|| lost(receiver)).flatten();
    format!("ended, {rate} {how} in {time}{}", lost.unwrap_or_default())
}

fn lost(receiver: &Results) -> Option<String> {
    let (lost, all) = (receiver.errors()?, receiver.packets()?);
    Some(format!(", {lost} of {all} datagrams lost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_again_while_it_was_omitted_does_not_count() {
        let of = |again: Vec<Option<u64>>, now: Vec<Option<u64>>| {
            let counted = Counted {
                again,
                ..Counted::all(Instant::now(), 3)
            };
            counted.sent_again(now).collect::<Vec<_>>()
        };
        let now = vec![Some(7), Some(4), None];
        let omitted = of(vec![Some(5), None, Some(0)], now.clone());
        assert_eq!(omitted, [Some(2), None, None]);
        assert_eq!(of(vec![Some(0); 3], now.clone()), now);
    }
}
