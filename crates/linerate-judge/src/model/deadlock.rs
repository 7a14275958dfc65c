//! A deadlock: both programs of a connection send, and neither reads.

use super::readings::{Window, gauge, growth};
use linerate_facts::metric as m;
use linerate_record::Table;
use linerate_units::Bytes;

/// A connection on which nothing moves because both queues of each end are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlock {
    /// Payload that this end has not sent, because the far end accepts none.
    pub unsent: Bytes,
    /// Payload that this end's program has not read, which leaves no room for more.
    pub unread: Bytes,
}

/// The deadlock that a connection shows in every sample. If segments are in flight and not acknowledged, the path does
/// not answer, and this is no deadlock.
pub(super) fn deadlock(tcp: &Table, socket: &Table, window: Window) -> Option<Deadlock> {
    let still = |metric| growth(tcp, metric, window).is_some_and(|(grown, _)| grown <= 0.0);
    let least = |table, metric| gauge(table, metric, window).reduce(f64::min);
    let most = |metric| gauge(tcp, metric, window).reduce(f64::max);
    let unsent = least(tcp, m::TCP_NOTSENT)?;
    let unread = least(socket, m::SOCKET_UNREAD)?;
    let arrived = most(m::TCP_UNACKED)? <= 0.0;
    let segment = least(tcp, m::TCP_RCV_MSS)?.max(1.0);
    // Kernels before Linux 6.2 do not report the window that they offer.
    let full = if let Some(offered) = most(m::TCP_RCV_WND) {
        offered < segment
    } else {
        let rows = gauge(socket, m::SOCKET_RMEM_ALLOC, window);
        let mut rows = rows.zip(gauge(socket, m::SOCKET_RCVBUF, window)).peekable();
        rows.peek().is_some() && rows.all(|(used, all)| used * 2.0 >= all)
    };
    let stands = still(m::TCP_BYTES_ACKED) && still(m::TCP_BYTES_RECEIVED) && arrived && full;
    (stands && unsent > 0.0 && unread > 0.0)
        .then_some(Deadlock { unsent: Bytes(unsent as u64), unread: Bytes(unread as u64) })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;
    use linerate_facts::metric::Metric;

    fn of(change: impl Fn(&mut Vec<(Metric, [i64; 2])>)) -> Option<Deadlock> {
        let mut rows = vec![
            (m::TCP_BYTES_ACKED, [500, 500]),
            (m::TCP_BYTES_RECEIVED, [700, 700]),
            (m::TCP_NOTSENT, [40_000, 40_000]),
            (m::TCP_UNACKED, [0, 0]),
            (m::TCP_RCV_MSS, [1448, 1448]),
            (m::TCP_RCV_WND, [0, 0]),
        ];
        change(&mut rows);
        let socket = [
            (m::SOCKET_UNREAD, [60_000, 60_000]),
            (m::SOCKET_RMEM_ALLOC, [50_000, 50_000]),
            (m::SOCKET_RCVBUF, [100_000, 100_000]),
        ];
        deadlock(&table("s0/0", &rows), &table("s0/0", &socket), WHOLE)
    }

    #[test]
    fn both_queues_of_an_end_are_full_and_nothing_moves() {
        let found = of(|_| ()).unwrap();
        assert_eq!((found.unsent, found.unread), (Bytes(40_000), Bytes(60_000)));
        let with = |metric, values| {
            of(move |rows| {
                rows.iter_mut().filter(|(m, _)| m.name == metric).for_each(|row| row.1 = values);
            })
        };
        assert_eq!(with("bytes_received", [700, 701]), None, "something moves");
        assert_eq!(with("notsent_bytes", [40_000, 0]), None, "nothing waits to be sent");
        assert_eq!(with("unacked", [0, 1]), None, "the path does not answer");
        assert!(with("rcv_wnd", [0, 1447]).is_some());
        assert_eq!(with("rcv_wnd", [0, 1448]), None, "there is room");
        let old = of(|rows| rows.retain(|(m, _)| m.name != "rcv_wnd"));
        assert!(old.is_some(), "half of the memory is used");
    }
}
