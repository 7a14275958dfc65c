//! The counts of a set's TCP connections at their sending end.

use super::TcpShares;
use super::held::Held;
use super::interruptions::TIMEOUT;
use super::readings::{Window, gauge, growth, mean, per_second};
use super::room::Writer;
use linerate_facts::metric as m;
use linerate_record::{EndReadings, Table};
use linerate_units::stats::{Count, SHORTEST};
use linerate_units::{Bytes, Nanos, Rate};

/// Bits of `tcpi_options`: windows are scaled; acknowledgements are selective.
//= Linux, include/uapi/linux/tcp.h: TCPI_OPT_WSCALE, TCPI_OPT_SACK
const SCALING: u8 = 4;
const SACK: u8 = 2;

/// Mean share of a congestion window that is in flight, if that window limits the sender.
const FULL_CWND: f64 = 0.9;
/// Share of the samples in which the congestion window must have been constant: it starts small.
const MOSTLY: f64 = 0.8;

/// Bytes of payload that a set sent in a window, retransmissions included; `None` if a counter is missing.
pub(super) fn payload_sent(sending: &EndReadings, set: u32, window: Window) -> Option<f64> {
    let grown = |t: &Table, metric| growth(t, metric, window).map(|(grown, _)| grown);
    let prefix = format!("s{set}/");
    let mut sockets = sending.about("tcp", |s| s.starts_with(&prefix)).peekable();
    if sockets.peek().is_some() {
        let read: Option<f64> = sockets.map(|t| grown(t, m::TCP_BYTES_SENT)).sum();
        return read.map(|bytes| bytes * stands_for(sending, set));
    }
    // A transport without TCP sockets: datagrams are never retransmitted.
    let prefix = format!("s{set}/tx");
    let workers = sending.about("worker", |s| s.starts_with(&prefix));
    workers.map(|t| grown(t, m::WORKER_BYTES)).sum()
}

/// Number of segments that all streams of a set sent in a window, and of those retransmitted; `None` if a counter is
/// missing.
pub(super) fn sent(sending: &EndReadings, set: u32, window: Window) -> Option<Count> {
    let prefix = format!("s{set}/");
    let count = |table: &Table| {
        let grown = |metric| growth(table, metric, window).map(|(grown, _)| grown);
        let mss = mean(gauge(table, m::TCP_SND_MSS, window))?.max(1.0);
        Some(Count { events: grown(m::TCP_RETRANS)?, of: grown(m::TCP_BYTES_SENT)? / mss })
    };
    let streams = sending.about("tcp", |s| s.starts_with(&prefix)).map(count);
    let streams: Vec<Count> = streams.collect::<Option<_>>()?;
    let each = stands_for(sending, set);
    (!streams.is_empty()).then(|| Count {
        events: streams.iter().map(|c| c.events).sum::<f64>() * each,
        of: streams.iter().map(|c| c.of).sum::<f64>() * each,
    })
}

/// Segments that all streams of a set retransmitted in a window; `None` if a sender does not report them.
pub(super) fn retransmits(sending: &EndReadings, set: u32, window: Window) -> Option<f64> {
    let prefix = format!("s{set}/");
    let each = about_tcp(sending, &prefix).into_iter();
    let each: Option<Vec<f64>> =
        each.map(|table| growth(table, m::TCP_RETRANS, window).map(|(grown, _)| grown)).collect();
    let all = each.filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() * stands_for(sending, set))
}

/// Segments per second that the connections of a set received at one end, with payload or without; `None` if not all
/// were counted.
pub(super) fn segments_received(end: &EndReadings, set: u32, window: Window) -> Option<f64> {
    let prefix = format!("s{set}/");
    let each = about_tcp(end, &prefix).into_iter();
    let each: Option<Vec<f64>> =
        each.map(|table| per_second(table, m::TCP_SEGS_IN, window)).collect();
    let all = each.filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() * stands_for(end, set))
}

/// Least time by which the readings of two ends may differ, whatever their clocks show; and largest share of the
/// retransmitted segments that the segments sent in this time, and those in flight, may be.
const APART: Nanos = Nanos::from_millis(20);
const FEW: f64 = 0.1;

/// The share of a set's retransmissions in a step that were needless: all but the segments that the receiver did not
/// get. The receiver's segment count includes duplicates. Its reports (DSACK) show fewer, since an acknowledgement
/// names only one range, and one acknowledgement covers several segments that arrive out of order. Nothing is in flight
/// when a step begins; a few missing segments at its end may be. `None` if there are too few retransmissions, if not
/// all connections were read at both ends, or if the number is impossible.
//= RFC 2883, section 4; Linux, __tcp_ack_snd_check(): SACK compression
pub(super) fn duplicated(sending: &EndReadings, receiving: &EndReadings, set: u32) -> Option<f64> {
    let prefix = format!("s{set}/");
    let sockets = |end| about_tcp(end, &prefix);
    let (senders, receivers) = (sockets(sending), sockets(receiving));
    let step = Window { from: 0, to: u64::MAX };
    let count = |from: &[&Table], metric| -> Option<f64> {
        let grown = from.iter().map(|socket| growth(socket, metric, step));
        grown.map(|grown| grown.map(|(count, _)| count)).sum()
    };
    let repeated = count(&senders, m::TCP_RETRANS)?;
    let all = count(&senders, m::TCP_SEGS_OUT)?;
    let missing = all - count(&receivers, m::TCP_SEGS_IN)?;
    let unacked = |socket: &&Table| Some(*socket.column(m::TCP_UNACKED)?.last()? as f64);
    let in_flight: f64 = senders.iter().map(unacked).sum::<Option<f64>>()?;
    let end = senders.iter().map(|socket| socket.at.last().copied());
    let secs = Nanos(end.max()??).secs();
    let pairs = senders.iter().zip(&receivers);
    let read = pairs.map(|(one, other)| Some(one.at.last()?.abs_diff(*other.at.last()?)));
    let by = Nanos(read.flatten().max()?).max(APART).secs();
    let apart = all * by / secs.max(by);
    let tells = repeated > 0.0 && apart <= repeated * FEW;
    let whole = senders.len() == receivers.len() && stands_for(sending, set) <= 1.0;
    // A port that coalesces segments may not report their number, and a network may duplicate segments.
    let possible = (-apart..=repeated + in_flight + apart).contains(&missing);
    let lost = Some(missing).filter(|missing| *missing > in_flight.min(repeated * FEW));
    (whole && tells && possible).then(|| (repeated - lost.unwrap_or(0.0)).max(0.0) / repeated)
}

/// The sockets of one end whose subjects begin with `prefix`.
fn about_tcp<'a>(end: &'a EndReadings, prefix: &'a str) -> Vec<&'a Table> {
    end.about("tcp", move |s| s.starts_with(prefix)).collect()
}

/// Number of streams for each connection that was read: if there are very many streams, only some of them are read.
fn stands_for(end: &EndReadings, set: u32) -> f64 {
    let prefix = format!("s{set}/");
    let read = end.about("tcp", |s| s.starts_with(&prefix)).count();
    let all = end.totals.iter().filter(|total| total.set == set).count();
    (all as f64 / read.max(1) as f64).max(1.0)
}

/// The sender's TCP counters, averaged over streams. A count of zero duplicates is valid only if the receiver is known
/// to report duplicates (`duplicates_reported`).
pub(super) fn tcp(
    sending: &EndReadings,
    set: u32,
    window: Window,
    duplicates_reported: bool,
    writer: Writer,
) -> TcpShares {
    let prefix = format!("s{set}/");
    let tables: Vec<&Table> = sending.about("tcp", |s| s.starts_with(&prefix)).collect();
    let sockets: Vec<&Table> = sending.about("socket", |s| s.starts_with(&prefix)).collect();
    let held = Held::of(&tables, &sockets, window, writer);
    let each = stands_for(sending, set);
    let all = |from, metric| all(from, metric, window);
    let bytes = |metric| mean(all(&tables, metric)).map(|v| Bytes(v.max(0.0) as u64));
    let mss = bytes(m::TCP_SND_MSS);
    let segments = |metric| Some(Bytes((mean(all(&tables, metric))? * mss?.0 as f64) as u64));
    let micros = |v: f64| Nanos((v.max(0.0) * 1e3) as u64);
    let total = |metric| {
        let grown: Vec<f64> =
            tables.iter().filter_map(|t| growth(t, metric, window)).map(|(g, _)| g).collect();
        (!grown.is_empty()).then(|| grown.iter().sum::<f64>() * each)
    };
    let counted = sent(sending, set, window);
    let secs = Nanos(window.to.saturating_sub(window.from)).secs();
    let per_sec = |count: f64| (secs > 0.0).then(|| count / secs);
    let repeated =
        total(m::TCP_BYTES_RETRANS).zip(total(m::TCP_BYTES_SENT).filter(|all| *all > 0.0));
    TcpShares {
        rwnd_limited: held.rwnd_limited,
        sndbuf_limited: held.sndbuf_limited,
        starved: held.starved,
        corked: held.corked,
        nagle: held.nagle,
        network: held.network,
        in_flight: segments(m::TCP_UNACKED),
        window: bytes(m::TCP_SND_WND),
        window_scaling: scaled(all(&tables, m::TCP_OPTIONS)),
        cwnd: segments(m::TCP_CWND),
        cwnd_stood: stood(&tables, window, mss),
        not_sent: bytes(m::TCP_NOTSENT),
        rtt: mean(all(&tables, m::TCP_RTT)).map(micros),
        min_rtt: all(&tables, m::TCP_MIN_RTT).reduce(f64::min).map(micros),
        marked: total(m::TCP_DELIVERED_CE)
            .zip(total(m::TCP_DELIVERED).filter(|all| *all > 0.0))
            .map(|(marked, all)| marked / all),
        retransmitted: repeated.map(|(repeated, all)| repeated / all),
        segments: counted.and_then(|count| per_sec(count.of)),
        repeated: counted.and_then(|count| per_sec(count.events)),
        repeated_ever: most(all(&tables, m::TCP_RETRANS)),
        timeouts: total(m::TCP_TOTAL_RTO),
        timer_limited: timers(total(m::TCP_TOTAL_RTO), secs, tables.len() as f64 * each),
        reordered: total(m::TCP_REORD_SEEN).and_then(per_sec),
        needless: total(m::TCP_DSACK_DUPS)
            .filter(|_| tells_duplicates(&tables, duplicates_reported))
            .and_then(per_sec),
        max_pacing: mean(all(&tables, m::TCP_MAX_PACING_RATE)).map(|v| Rate(v.max(0.0) as u64)),
        send_memory: mean(all(&sockets, m::SOCKET_SNDBUF)).map(|v| Bytes(v.max(0.0) as u64)),
    }
}

/// All values of a gauge of these tables in a window.
fn all(from: &[&Table], metric: m::Metric, window: Window) -> impl Iterator<Item = f64> {
    from.iter().flat_map(move |t| gauge(t, metric, window))
}

/// Whether the windows of all streams are scaled, by the TCP options of each stream.
fn scaled(options: impl Iterator<Item = f64>) -> Option<bool> {
    let scaled = options.map(|options| options as u8 & SCALING != 0);
    scaled.reduce(|all, scaled| all && scaled)
}

/// The largest one of these counts.
fn most(counts: impl Iterator<Item = f64>) -> Option<u64> {
    let most = counts.reduce(f64::max);
    most.map(|most| most as u64)
}

/// The least share of `secs` for which each of `streams` streams waited for its expired timers.
fn timers(ran_out: Option<f64>, secs: f64, streams: f64) -> Option<f64> {
    let waited = ran_out.filter(|_| secs > 0.0)? * TIMEOUT.secs() / secs;
    Some((waited / streams.max(1.0)).min(1.0))
}

/// The mean congestion window, if that of every stream settled at one value, was full, and no longer changed. `None` if
/// one did not, or if there are too few samples.
fn stood(tables: &[&Table], window: Window, mss: Option<Bytes>) -> Option<Bytes> {
    let stood = |table: &&Table| {
        let cwnd: Vec<f64> = gauge(table, m::TCP_CWND, window).collect();
        let in_flight = gauge(table, m::TCP_UNACKED, window);
        let last = *cwnd.last().filter(|_| cwnd.len() >= SHORTEST)?;
        let same = cwnd.iter().rev();
        let same = same.take_while(|now| (**now - last).abs() < 0.5).count();
        let full = mean(in_flight.rev().take(same))? >= last * FULL_CWND;
        (full && same as f64 >= cwnd.len() as f64 * MOSTLY).then_some(last)
    };
    let segments = mean(tables.iter().map(stood).collect::<Option<Vec<f64>>>()?)?;
    Some(Bytes((segments * mss?.0 as f64) as u64))
}

/// Whether the receiver reports duplicate segments: if both ends agreed on selective acknowledgements, or if it is
/// known to have done so before.
//= Linux, tcp_dsack_set()
fn tells_duplicates(tables: &[&Table], known: bool) -> bool {
    let of = |table: &&Table| {
        let values = |metric| table.column(metric).unwrap_or_default();
        let has = |options: &i64| *options as u8 & SACK != 0;
        let agreed = values(m::TCP_OPTIONS).last().is_some_and(has);
        (known && agreed) || values(m::TCP_DSACK_DUPS).iter().any(|twice| *twice > 0)
    };
    tables.iter().all(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{WHOLE, table};
    use linerate_record::{Column, Total};

    #[test]
    fn connections_that_were_read_stand_for_those_that_were_not() {
        let socket = |stream: u32| {
            let of = |metric, grown: i64| (metric, [7, 7 + grown]);
            table(
                &format!("s1/{stream}"),
                &[
                    of(m::TCP_BYTES_SENT, 10_000),
                    of(m::TCP_RETRANS, 2),
                    of(m::TCP_BYTES_RETRANS, 1000),
                    (m::TCP_SND_MSS, [1000, 1000]),
                ],
            )
        };
        let total = |stream| Total { set: 1, stream, sent: 0, received: 0, complete: true };
        for (streams, times) in [(0, 1.0), (2, 1.0), (6, 3.0)] {
            let end = EndReadings {
                tables: vec![socket(0), socket(3)],
                totals: (0..streams).map(total).collect(),
                ..EndReadings::default()
            };
            assert_eq!(payload_sent(&end, 1, WHOLE), Some(20_000.0 * times));
            let shares = tcp(&end, 1, WHOLE, true, Writer::Own);
            assert_eq!(shares.segments, Some(20.0 * times));
            assert_eq!(shares.repeated, Some(4.0 * times));
            assert_eq!(shares.repeated_ever, Some(9), "of one stream, ever");
            assert_eq!(shares.retransmitted, Some(0.1), "a share is as it was");
        }
    }

    #[test]
    fn what_both_ends_counted_tells_how_much_was_sent_again_for_nothing() {
        // 1000 segments were sent in a second; 20 of them may be read at one end only.
        let at = |repeated: i64, arrived: i64, flown: i64, others: usize| {
            let end = |rows: &[(m::Metric, [i64; 2])], sockets: usize| EndReadings {
                tables: (0..sockets).map(|n| table(&format!("s1/{n}"), rows)).collect(),
                ..EndReadings::default()
            };
            let rows = [
                (m::TCP_RETRANS, [5, 5 + repeated]),
                (m::TCP_SEGS_OUT, [7, 1007]),
                (m::TCP_UNACKED, [99, flown]),
            ];
            let receiver = end(&[(m::TCP_SEGS_IN, [3, 3 + arrived])], others);
            duplicated(&end(&rows, 1), &receiver, 1)
        };
        assert_eq!((at(400, 1000, 0, 1), at(400, 900, 0, 1)), (Some(1.0), Some(0.75)));
        assert_eq!((at(400, 980, 20, 1), at(400, 900, 20, 1)), (Some(1.0), Some(0.75)));
        assert_eq!(
            (at(400, 600, 0, 1), at(400, 580, 0, 1)),
            (Some(0.0), Some(0.0)),
            "all were lost"
        );
        assert_eq!(
            (at(400, 579, 0, 1), at(400, 570, 10, 1)),
            (None, Some(0.0)),
            "joined by a port"
        );
        assert_eq!(
            (at(400, 1020, 0, 1), at(400, 1021, 0, 1)),
            (Some(1.0), None),
            "copied by a network"
        );
        assert_eq!((at(200, 1000, 0, 1), at(199, 1000, 0, 1)), (Some(1.0), None));
        // More than a tenth of the retransmitted segments is not taken for segments in flight.
        assert_eq!((at(400, 960, 90, 1), at(400, 950, 90, 1)), (Some(1.0), Some(0.875)));
        assert_eq!((at(400, 1000, 0, 0), at(400, 1000, 0, 2)), (None, None));
    }

    #[test]
    fn a_congestion_window_stands_where_no_sample_differs_and_it_is_full() {
        let of = |cwnd: fn(i64) -> i64, in_flight: i64, rows: i64| {
            let column = |metric: m::Metric, values: Vec<i64>| Column {
                name: metric.name.into(),
                unit: metric.unit,
                kind: metric.kind,
                values,
            };
            let table = Table {
                source: m::TCP_CWND.source.to_owned(),
                subject: "s1/0".to_owned(),
                at: (0..rows as u64).collect(),
                columns: vec![
                    column(m::TCP_CWND, (0..rows).map(cwnd).collect()),
                    column(m::TCP_UNACKED, vec![in_flight; rows as usize]),
                ],
            };
            stood(&[&table], WHOLE, Some(Bytes(1000)))
        };
        let enough = SHORTEST as i64;
        assert_eq!(of(|_| 20, 18, enough), Some(Bytes(20_000)));
        assert_eq!(of(|_| 20, 17, enough), None, "not full");
        let late = |row: i64| if row < 2 { 10 } else { 20 };
        assert_eq!(of(late, 20, enough), Some(Bytes(20_000)), "it started small");
        let later = |row: i64| if row < 3 { 10 } else { 20 };
        assert_eq!(of(later, 20, enough), None);
        let grows = |row: i64| 20 + row / 9;
        assert_eq!(of(grows, 20, enough), None, "it grew");
        assert_eq!(of(|_| 20, 20, enough - 1), None, "too few");
        assert_eq!(stood(&[], WHOLE, None), None);
    }

    #[test]
    fn no_segment_that_came_twice_tells_something_only_of_a_receiver_that_tells() {
        let at = |options: u8, twice: [i64; 2], known| {
            let options = [options.into(); 2];
            let table = table("s1/0", &[(m::TCP_OPTIONS, options), (m::TCP_DSACK_DUPS, twice)]);
            tells_duplicates(&[&table], known)
        };
        assert!(at(7, [0, 0], true));
        assert!(!at(5, [0, 0], true), "no selective acknowledgements");
        assert!(!at(7, [0, 0], false), "nobody read whether it does");
        assert!(at(7, [3, 3], false), "it did before");
    }
}
