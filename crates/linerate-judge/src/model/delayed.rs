//! Round trips of messages in two writes that wait for a delayed acknowledgement, because Nagle's algorithm is on.
//!
//! The second write of a message is small, so it waits until the first one is acknowledged. The far end answers only
//! when it has both writes, so it delays the acknowledgement.

use super::ends::end;
use super::readings::{Window, gauge};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_record::{Record, Step};
use linerate_units::Nanos;
use linerate_units::stats::{Histogram, middle};

/// Minimum time by which a delayed round trip exceeds the shortest one of the path. Linux delays acknowledgements by 40
/// ms; its timer may expire a tick early.
//= linux/include/net/tcp.h, TCP_DELACK_MIN
const LEAST: u64 = 35_000_000;

/// Whether the connections of a record keep Nagle's algorithm and send each message in two writes.
pub fn may_be_delayed(record: &Record) -> bool {
    let knobs = record.sets.iter().map(|set| &set.plan.knobs);
    knobs.into_iter().any(|knobs| knobs.nagle && knobs.two_writes)
}

/// The time that the typical round trip of a step waited for a delayed acknowledgement; `None` if it did not wait, or
/// if the shortest round trip of the path is unknown.
pub fn delayed(record: &Record, step: &Step, times: &Histogram) -> Option<Nanos> {
    let set = record.sets.iter().find(|set| set.plan.id == times.set)?;
    if !(set.plan.knobs.nagle && set.plan.knobs.two_writes) {
        return None;
    }
    let subject = format!("s{}/0", times.set);
    let mut sockets = end(step, Side::Near)?.about(m::TCP_MIN_RTT.source, |s| s == subject);
    let path = gauge(sockets.next()?, m::TCP_MIN_RTT, Window::of(step)).reduce(f64::min)?;
    // If the shortest of a few samples is delayed, all of them are.
    let typical = middle(times).or(times.exact.map(|exact| exact.least))?;
    beyond(Nanos(typical), Nanos((path * 1e3) as u64))
}

/// The time by which a round trip exceeds the shortest one of the path, if an acknowledgement was delayed.
fn beyond(typical: Nanos, path: Nanos) -> Option<Nanos> {
    let more = typical.0.saturating_sub(path.0);
    (more >= LEAST).then_some(Nanos(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_delayed_from_35_ms_beyond_the_path_on() {
        let of = |typical, path| beyond(Nanos(typical), Nanos(path)).map(|more| more.0);
        assert_eq!(of(35_000_000, 0), Some(35_000_000));
        assert_eq!(of(34_999_999, 0), None);
        assert_eq!(of(140_000_000, 100_000_000), Some(40_000_000));
        assert_eq!(of(1, 5), None);
    }
}
