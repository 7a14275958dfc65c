//! Traffic of other programs on the ports that a load passes.

use super::ends::end;
use super::readings::{Window, growth, mean};
use super::tcp::payload_sent;
use super::{Foreign, datagrams};
use linerate_facts::metric as m;
use linerate_plan::path::{Direction, Side};
use linerate_record::{EndReadings, Step, Table};

/// Largest number of bytes of a packet besides its payload: Ethernet with a VLAN tag, IPv6, and TCP with timestamps and
/// selective acknowledgements. A port that counts groups of segments counts fewer.
const HEADERS: f64 = 100.0;

/// Bytes per second that linerate's round trips, its control connection and a host's housekeeping may need on top of
/// the load.
const HOUSEKEEPING: f64 = 125_000.0;

/// A port that never leaves the host: it carries both directions, and the traffic of any program.
const LOOPBACK: &str = "lo";

/// Bytes of other programs that the ports carried in the direction of the load: those beyond what the sender's sockets
/// sent, with headers and retransmissions. The port with the larger share is returned. `None` if a counter is missing.
///
/// The whole step is counted, also the time before the load began. The far port never receives more than was sent in
/// the step, so queues between the ends cannot add to the difference.
pub(super) fn foreign(step: &Step, set: u32, direction: Direction) -> Option<Foreign> {
    let sending = end(step, direction.sender())?;
    let payload = payload_sent(sending, set, WHOLE)?;
    let prefix = format!("s{set}/");
    let sockets = sending.about("tcp", |s| s.starts_with(&prefix));
    let segment = mean(sockets.filter_map(|t| mean(segments(t))));
    let datagrams = || Some(payload / datagrams::sum(sending, set, m::UDP_DATAGRAMS, WHOLE)?);
    let ours = payload * (1.0 + HEADERS / segment.or_else(datagrams)?.max(1.0));
    let receiving = end(step, direction.receiver());
    let copied = receiving.and_then(|receiving| copies(sending, receiving, set));
    [
        (direction.sender(), m::PORT_TX_BYTES, ours),
        (direction.receiver(), m::PORT_RX_BYTES, ours * copied.unwrap_or(1.0)),
    ]
    .into_iter()
    .filter_map(|(side, metric, ours)| {
        let share = beyond(step, side, metric, ours)?;
        Some(Foreign { side, share })
    })
    .max_by(|a, b| a.share.total_cmp(&b.share))
}

const WHOLE: Window = Window { from: 0, to: u64::MAX };

/// Packets received for each packet sent, if the network duplicates packets; `None` if too few were counted.
fn copies(sending: &EndReadings, receiving: &EndReadings, set: u32) -> Option<f64> {
    let prefix = format!("s{set}/");
    let count = |end: &EndReadings, metric: m::Metric| -> Option<f64> {
        let sockets = end.about(m::TCP_SEGS_IN.source, |s| s.starts_with(&prefix));
        let grown = sockets.map(|socket| growth(socket, metric, WHOLE));
        grown.map(|grown| grown.map(|(count, _)| count)).sum()
    };
    let segments = || {
        let left = count(sending, m::TCP_SEGS_OUT)?;
        Some((count(receiving, m::TCP_SEGS_IN)?, left))
    };
    let datagrams = || {
        let of = |end, metric| datagrams::sum(end, set, metric, WHOLE);
        let arrived = of(receiving, m::UDP_DATAGRAMS)? + of(receiving, m::UDP_DUPLICATED)?;
        Some((arrived, of(sending, m::UDP_DATAGRAMS)?))
    };
    let read = |end: &EndReadings| end.about("tcp", |s| s.starts_with(&prefix)).count();
    let whole = read(sending) == read(receiving);
    let counted = segments().filter(|(_, left)| *left > 0.0 && whole);
    let (arrived, left) = counted.or_else(datagrams)?;
    (left > 0.0).then(|| (arrived / left).max(1.0))
}

fn segments(socket: &Table) -> impl Iterator<Item = f64> {
    let column = socket.column(m::TCP_SND_MSS).unwrap_or_default();
    column.iter().map(|v| *v as f64)
}

/// Bytes that a port counted beyond those of the load, over the bytes of the load.
fn beyond(step: &Step, side: Side, metric: m::Metric, ours: f64) -> Option<f64> {
    let port = end(step, side)?.about("port", |name| name != LOOPBACK).next()?;
    let (counted, secs) = growth(port, metric, WHOLE)?;
    (ours > 0.0).then(|| ((counted - ours - HOUSEKEEPING * secs) / ours).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::super::testing::table;
    use super::*;
    use linerate_plan::{Purpose, StepPlan};
    use linerate_units::Nanos;

    /// The result for a forward load of 1 GB in segments of 1400 bytes, with the bytes that the two ports counted.
    fn share(name: &str, sent: i64, received: i64) -> Option<Foreign> {
        share_of(name, sent, received, 1_000)
    }

    /// As `share`, if `arrived` segments arrived for each thousand sent.
    fn share_of(name: &str, sent: i64, received: i64, arrived: i64) -> Option<Foreign> {
        let near = vec![
            table(
                "s3/0",
                &[
                    (m::TCP_BYTES_SENT, [7, 1_000_000_007]),
                    (m::TCP_SND_MSS, [1400, 1400]),
                    (m::TCP_SEGS_OUT, [1, 714_001]),
                ],
            ),
            table(name, &[(m::PORT_TX_BYTES, [5, 5 + sent])]),
        ];
        let far = vec![
            table("s3/0", &[(m::TCP_SEGS_IN, [2, 2 + 714 * arrived])]),
            table(name, &[(m::PORT_RX_BYTES, [5, 5 + received])]),
        ];
        let step = Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::IdleLatency,
                sets: vec![3],
                washout: Nanos(0),
                measure: Nanos::from_secs(1),
                tick: Nanos::from_secs(1),
            },
            ends: [near, far]
                .into_iter()
                .map(|tables| EndReadings { tables, ..EndReadings::default() })
                .collect(),
            began: Nanos(0),
            clock: None,
            took: Nanos(0),
            trouble: None,
        };
        foreign(&step, 3, Direction::Forward)
    }

    #[test]
    fn headers_retransmissions_and_probes_are_ours() {
        // 66 bytes of headers for each segment, and 200 round trips of 130 bytes.
        let ours = 1_000_000_000 / 1400 * 1466 + 26_000;
        let found = share("eth0", ours, ours - 5_000_000).unwrap();
        assert!(found.share.abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn what_is_beyond_ours_is_foreign_on_the_port_that_has_more_of_it() {
        let found = share("eth0", 1_200_000_000, 1_500_000_000).unwrap();
        assert_eq!(found.side, Side::Far);
        // 1.5 GB, less 1.0714 GB of the load and 125 kB.
        assert!((found.share - 0.3999).abs() < 1e-3, "{found:?}");
        let found = share("eth0", 1_500_000_000, 900_000_000).unwrap();
        assert_eq!(found.side, Side::Near);
    }

    #[test]
    fn packets_that_the_network_copies_are_ours() {
        let twice = 2 * (1_000_000_000 / 1400 * 1466);
        let found = share_of("eth0", twice / 2, twice, 2_000).unwrap();
        assert!(found.share.abs() < 1e-9, "{found:?}");
        let found = share_of("eth0", twice / 2, twice, 900).unwrap();
        assert!(found.share > 0.9, "{found:?}");
        let found = share_of("eth0", twice, twice, 2_000).unwrap();
        assert_eq!(found.side, Side::Near, "{found:?}");
    }

    #[test]
    fn the_loopback_port_and_a_missing_counter_say_nothing() {
        assert_eq!(share("lo", 3_000_000_000, 3_000_000_000), None);
    }
}
