//! What is known of the size of packets that are sent, and of those that are cut up.

use super::ends::end;
use super::readings::{Window, per_second};
use crate::metric as m;
use crate::path::{Direction, Side};
use crate::record::{EndReadings, Step, Table};
use crate::units::Bytes;

/// Fragments in a second: those that the sender's host made, and those that came to the receiver's; `None` where they
/// were not counted.
pub(super) fn fragments(step: &Step, direction: Direction, window: Window) -> [Option<f64>; 2] {
    let of = |side: Side, metric| {
        let table = end(step, side)?.about("fragments", |_| true).next()?;
        per_second(table, metric, window)
    };
    [
        of(direction.sender(), m::FRAGMENTS_CREATED),
        of(direction.receiver(), m::FRAGMENTS_RECEIVED),
    ]
}

/// Bytes of the largest packets that the connections of a set sent last: path MTU discovery may lower it during the step.
pub(super) fn in_use(sending: &EndReadings, set: u32, is_ipv6: bool) -> Option<Bytes> {
    let prefix = format!("s{set}/");
    let sockets = sending.about("tcp", |subject| subject.starts_with(&prefix));
    sockets
        .filter_map(|socket| last_packet(socket, is_ipv6))
        .max()
}

fn last_packet(socket: &Table, is_ipv6: bool) -> Option<Bytes> {
    let last = |metric| {
        let value = *socket.column(metric)?.last()?;
        u64::try_from(value).ok().filter(|value| *value > 0)
    };
    let options = socket.column(m::TCP_OPTIONS).and_then(|all| all.last());
    let headers = super::tcp::headers(options.copied(), is_ipv6);
    let segment = last(m::TCP_SND_MSS)?.saturating_add(headers);
    Some(Bytes(
        last(m::TCP_PMTU).map_or(segment, |path| path.min(segment)),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::table;
    use super::*;

    #[test]
    fn what_was_sent_last_counts() {
        let at = |mss: [i64; 2], path: [i64; 2], is_ipv6| {
            let rows = [
                (m::TCP_SND_MSS, mss),
                (m::TCP_PMTU, path),
                (m::TCP_OPTIONS, [7; 2]),
            ];
            let end = EndReadings {
                tables: vec![table("s0/0", &rows)],
                ..EndReadings::default()
            };
            in_use(&end, 0, is_ipv6).map(|bytes| bytes.0)
        };
        assert_eq!(
            at([1398, 1348], [1450, 1400], false),
            Some(1400),
            "path MTU discovery lowered it"
        );
        assert_eq!(
            at([1348, 1348], [1450, 1450], false),
            Some(1400),
            "the receiver takes no more"
        );
        assert_eq!(at([1328, 1328], [9000, 9000], true), Some(1400));
        assert_eq!(in_use(&EndReadings::default(), 0, false), None);
    }
}
