//! Mean size of the packets that a host drops: software hands on a group of segments as one packet, and drops it as
//! one.

use super::LocalEvent;
use super::readings::{Window, gauge, per_second};
use linerate_facts::metric::{self as m, Metric};
use linerate_record::{EndReadings, Table};

/// Mean bytes of the packets that the counter `table` of `end` counts, as far as other counters show it. These are the
/// port's (it counts groups if it is virtual, else packets on the wire), the CPUs' (after a card coalesced packets),
/// and the queue's own. None of these shows larger groups than there are, so the largest value is the closest. A filter
/// selects drops by their size, so no mean applies to them.
pub(super) fn packet_bytes(
    end: &EndReadings,
    what: LocalEvent,
    table: &Table,
    window: Window,
) -> Option<f64> {
    let port = port_of(end, table);
    let received = || mean_of(port?, (m::PORT_RX_BYTES, m::PORT_RX_PACKETS), window);
    let sent = || mean_of(port?, (m::PORT_TX_BYTES, m::PORT_TX_PACKETS), window);
    let all = match what {
        LocalEvent::Ring => [received(), None],
        LocalEvent::Backlog | LocalEvent::Arrival => [received(), taken_in(end, port?, window)],
        LocalEvent::Departure => [sent(), None],
        LocalEvent::Connection => [None; 2],
        _ if sees_arrivals(&table.subject) => [None; 2],
        _ => [sent(), queued(table, window)],
    };
    all.into_iter().flatten().reduce(f64::max)
}

/// Whether a queueing discipline filters arriving packets; `clsact` filters departing ones as well.
pub(super) fn sees_arrivals(subject: &str) -> bool {
    matches!(subject.split(' ').nth(1), Some("ingress" | "clsact"))
}

/// The port that a counter belongs to; for a CPU's counter, the port by which the path arrives.
fn port_of<'a>(end: &'a EndReadings, table: &Table) -> Option<&'a Table> {
    let name = table.subject.split(' ').next();
    let mut ports = end.tables.iter().filter(|t| t.source == "port");
    let same = ports.clone().find(|port| Some(port.subject.as_str()) == name);
    same.or_else(|| ports.next())
}

fn mean_of(port: &Table, (bytes, packets): (Metric, Metric), window: Window) -> Option<f64> {
    let packets = per_second(port, packets, window).filter(|n| *n > 0.0)?;
    Some(per_second(port, bytes, window)? / packets)
}

/// Bytes that a port received, over the number of packets that all CPUs of the host processed.
fn taken_in(end: &EndReadings, port: &Table, window: Window) -> Option<f64> {
    let cpus = end.about(m::SOFTNET_PROCESSED.source, |_| true);
    let packets = cpus.map(|cpu| per_second(cpu, m::SOFTNET_PROCESSED, window));
    let packets: f64 = packets.sum::<Option<f64>>().filter(|n| *n > 0.0)?;
    Some(per_second(port, m::PORT_RX_BYTES, window)? / packets)
}

/// Mean size in bytes of the packets that waited in a queue.
fn queued(queue: &Table, window: Window) -> Option<f64> {
    let sum = |metric| gauge(queue, metric, window).sum::<f64>();
    let packets = Some(sum(m::QDISC_WAITING)).filter(|n| *n > 0.0)?;
    Some(sum(m::QDISC_BACKLOG) / packets)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;

    /// The mean for an end whose port received packets of 1500 bytes and sent some of 3000, whose CPUs processed
    /// packets of 6000 bytes, and in whose queue some of 9000 wait.
    fn result_of(what: LocalEvent, subject: &str) -> Option<f64> {
        let grown = |metric, by: i64| (metric, [5, 5 + by]);
        let port = [
            grown(m::PORT_RX_BYTES, 12_000),
            grown(m::PORT_RX_PACKETS, 8),
            grown(m::PORT_TX_BYTES, 12_000),
            grown(m::PORT_TX_PACKETS, 4),
        ];
        let waits = [(m::QDISC_BACKLOG, [0, 18_000]), (m::QDISC_WAITING, [0, 2])];
        let queue = table(subject, &waits);
        let cpu = |n, packets| table(n, &[grown(m::SOFTNET_PROCESSED, packets)]);
        let end = EndReadings {
            tables: vec![table("eth0", &port), cpu("0", 1), cpu("1", 1)],
            ..EndReadings::default()
        };
        packet_bytes(&end, what, &queue, WHOLE)
    }

    #[test]
    fn a_packet_is_as_large_as_the_largest_that_somebody_saw() {
        use LocalEvent::{Arrival, Backlog, Departure, Queue, Ring};
        assert_eq!(result_of(Ring, "eth0"), Some(1_500.0), "as it came");
        assert_eq!(result_of(Departure, "eth0"), Some(3_000.0));
        assert_eq!(result_of(Backlog, "1"), Some(6_000.0));
        assert_eq!(result_of(Arrival, "eth0"), Some(6_000.0));
        assert_eq!(result_of(Queue, "eth0 pfifo 1:"), Some(9_000.0));
        assert_eq!(result_of(Queue, "eth0 clsact ffff:"), None, "the largest");
        let nobody = EndReadings::default();
        let empty = table("eth0 pfifo 1:", &[(m::QDISC_WAITING, [0, 0])]);
        assert_eq!(packet_bytes(&nobody, Queue, &empty, WHOLE), None);
    }
}
