//! Counts of a load's datagrams: sent, received, lost.

use super::readings::{Window, growth, mean};
use linerate_facts::metric as m;
use linerate_record::{EndReadings, Table, Total};
use linerate_units::Nanos;
use linerate_units::stats::Count;

/// Least share of the drops at a socket that counts as other than wrong checksums: the two counters are read at
/// different times.
const APART: f64 = 0.05;

/// Counts of a load's datagrams, over all streams and the measured time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Datagrams {
    /// Datagrams sent per second.
    pub sent: f64,
    /// Datagrams per second that were received for the first time.
    pub per_sec: f64,
    /// Share of the datagrams sent that were not received.
    pub lost: f64,
    /// Share of the datagrams sent that were dropped at the receiver's socket because its buffer was full. It is a
    /// lower bound: coalesced datagrams (UDP_GRO) are dropped as one. `None` if it was not read. Datagrams with a wrong
    /// checksum are included if they were not counted separately.
    pub at_socket: Option<f64>,
    /// Share of the datagrams sent that the receiver's host discarded because of a wrong checksum; `None` if it was not
    /// counted.
    pub damaged: Option<f64>,
    /// Mean number of datagrams that the kernel coalesced into one message. `None` if it was not counted, or nothing
    /// was received.
    pub joined: Option<f64>,
    /// Share of received datagrams that arrived after one that was sent later.
    pub reordered: f64,
    /// Ratio of datagrams received again to datagrams received.
    pub duplicated: f64,
}

impl Datagrams {
    /// Estimated share of the datagrams sent that were dropped at the socket. It assumes that the kernel coalesced
    /// dropped datagrams in the same way as those that were read. `None` if a counter is missing.
    pub fn dropped(&self) -> Option<f64> {
        let least = self.at_socket?;
        let joined = self.joined.filter(|_| least > 0.0);
        let likely = joined.map(|joined| (least * joined).min(self.lost));
        likely.or((least <= 0.0).then_some(0.0))
    }

    /// Subtracts datagrams with a wrong checksum from the drops at the socket, where the kernel counts them too.
    /// `damaged` is their number per second. Other sockets may have discarded some of them, so that at most as many as
    /// this socket dropped are subtracted.
    pub(super) fn without(self, damaged: Option<f64>) -> Self {
        let share = |per_sec: f64| {
            let share = if self.sent > 0.0 { per_sec / self.sent } else { 0.0 };
            share.min(self.lost).min(self.at_socket.unwrap_or(1.0))
        };
        let damaged = damaged.map(share);
        let rest = |drops: f64| {
            let rest = drops - damaged.unwrap_or(0.0);
            if rest <= drops * APART { 0.0 } else { rest }
        };
        Self { damaged, at_socket: self.at_socket.map(rest), ..self }
    }
}

/// Numbers of datagrams in a load, with the counts of both ends, each over its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Datagrams that the sender's kernel accepted; `None` if it was not read.
    pub sent: Option<u64>,
    /// Datagrams that a full queue of the sending host refused at first (ENOBUFS); they were sent later.
    pub refused: Option<u64>,
    /// Datagrams received for the first time.
    pub received: u64,
    /// Datagrams sent that were not received.
    pub lost: u64,
    /// Lost datagrams that were dropped at the receiver's socket, as a lower bound; `None` if this was not read.
    pub at_socket: Option<u64>,
    /// Datagrams received after one that was sent later; `None` if the receiver does not count them.
    pub reordered: Option<u64>,
    /// Datagrams received again; `None` if the receiver does not count them.
    pub duplicated: Option<u64>,
}

impl Counted {
    /// The share of the datagrams sent that did not arrive; `None` if none were sent.
    pub fn share_lost(&self) -> Option<f64> {
        let all = self.received.saturating_add(self.lost);
        (all > 0).then(|| self.lost as f64 / all as f64)
    }
}

/// The counts of both ends for a set of datagrams of `size` bytes; `None` if the receiver counted none.
pub(super) fn counted(
    sending: &EndReadings,
    receiving: &EndReadings,
    set: u32,
    size: u64,
    window: Window,
) -> Option<Counted> {
    let count = |end: &EndReadings, metric| -> Option<u64> {
        Some(sum(end, set, metric, window)?.max(0.0) as u64)
    };
    // A receiver that reports sums has counted until the end of the step, like the total of its sender.
    let summed = || total(sending, set, |t| t.sent).map(|bytes| bytes / size.max(1));
    let handed = Some(receiving)
        .filter(|end| !end.is_sampled())
        .and_then(|_| summed())
        .or_else(|| count(sending, m::UDP_DATAGRAMS));
    let received = count(receiving, m::UDP_DATAGRAMS)?;
    // The receiver notices a lost datagram only when a later one arrives. The remaining losses show only at the end,
    // together with those of datagrams sent after its last sample.
    let before = Window { from: 0, to: window.from };
    let earlier = sum(receiving, set, m::UDP_LOST, before).unwrap_or(0.0);
    let in_all = missing(sending, receiving, set).map_or(0, |(missing, _)| missing) / size.max(1);
    let later = in_all.saturating_sub(earlier.max(0.0) as u64);
    let most = handed.map_or(0, |all| all.saturating_sub(received));
    let reported = count(receiving, m::UDP_LOST)?;
    // A receiver that received nothing does not know that anything was sent, and cannot report it later.
    let all = handed.filter(|_| received == 0 && !receiving.is_sampled());
    let lost = all.unwrap_or(reported.max(later.min(most)));
    // If losses after the window count, drops at the socket after the window count as well.
    let drops = Window { to: if lost > reported { u64::MAX } else { window.to }, ..window };
    let dropped = sum(receiving, set, m::UDP_DROPS, drops);
    Some(Counted {
        sent: handed,
        refused: count(sending, m::UDP_REFUSED),
        received,
        lost,
        at_socket: dropped.map(|drops| (drops.max(0.0) as u64).min(lost)),
        reordered: count(receiving, m::UDP_REORDERED),
        duplicated: count(receiving, m::UDP_DUPLICATED),
    })
}

/// Number of bytes of a whole step that were sent and did not arrive, and number of bytes sent; `None` if a stream was
/// not closed in order.
pub(super) fn missing(
    sending: &EndReadings,
    receiving: &EndReadings,
    set: u32,
) -> Option<(u64, u64)> {
    let handed = total(sending, set, |t| t.sent)?;
    let arrived = total(receiving, set, |t| t.received)?;
    Some((handed.saturating_sub(arrived), handed))
}

/// A sum over the streams of a set; `None` if one of them was not closed in order.
pub(super) fn total(end: &EndReadings, set: u32, of: impl Fn(&Total) -> u64) -> Option<u64> {
    let mut streams = end.totals.iter().filter(|total| total.set == set).peekable();
    streams.peek()?;
    streams.try_fold(0_u64, |sum, total| sum.checked_add(total.complete.then(|| of(total))?))
}

/// The datagram counts of a set at the sending and the receiving end; `None` if the receiving end counted no datagrams.
pub(super) fn datagrams(ends: [&EndReadings; 2], set: u32, window: Window) -> Option<Datagrams> {
    let [sender, receiver] = ends;
    let Count { events, of: all } = lost(receiver, set, window)?;
    let sum = |metric| sum(receiver, set, metric, window);
    let arrived = sum(m::UDP_DATAGRAMS)?;
    let secs = tables(receiver, set).find_map(|t| growth(t, m::UDP_DATAGRAMS, window))?.1;
    // A receiver that received nothing does not know that anything was sent.
    let handed = self::sum(sender, set, m::UDP_DATAGRAMS, window).filter(|_| arrived <= 0.0);
    let all = all.max(handed.unwrap_or(0.0));
    let missing = events.max(all - arrived);
    let of = |count: f64, whole: f64| if whole > 0.0 { count / whole } else { 0.0 };
    Some(Datagrams {
        sent: all / secs,
        per_sec: arrived / secs,
        lost: of(missing, all),
        at_socket: sum(m::UDP_DROPS).map(|drops| of(drops.min(missing), all)),
        damaged: None,
        joined: sum(m::UDP_MESSAGES)
            .filter(|messages| *messages > 0.0)
            .map(|messages| (arrived / messages).max(1.0)),
        reordered: of(sum(m::UDP_REORDERED)?, arrived),
        duplicated: of(sum(m::UDP_DUPLICATED)?, arrived),
    })
}

/// Datagrams of a set that were sent in a window, and the number of them that were lost.
pub(super) fn lost(receiving: &EndReadings, set: u32, window: Window) -> Option<Count> {
    let missing = sum(receiving, set, m::UDP_LOST, window)?.max(0.0);
    let received = sum(receiving, set, m::UDP_DATAGRAMS, window)?;
    Some(Count { events: missing, of: received + missing })
}

/// Whether any datagram of a set arrived, by the receiver's count; `None` if the receiver does not report one.
pub(super) fn received(receiving: &EndReadings, set: u32) -> Option<bool> {
    let last = |table: &Table| table.column(m::UDP_DATAGRAMS)?.last().copied();
    let all: Vec<i64> = tables(receiving, set).map(last).collect::<Option<_>>()?;
    (!all.is_empty()).then(|| all.iter().any(|datagrams| *datagrams > 0))
}

/// Mean over the streams of a set of the jitter reported last; `None` if a stream does not report it.
pub(super) fn jitter(end: &EndReadings, set: u32) -> Option<Nanos> {
    let last = |table: &Table| table.column(m::UDP_JITTER)?.last().copied();
    let all: Vec<i64> = tables(end, set).map(last).collect::<Option<_>>()?;
    let mean = mean(all.iter().map(|jitter| *jitter as f64))?;
    Some(Nanos(mean.max(0.0) as u64))
}

/// Growth of a counter over a window, summed over the streams of a set; `None` if one of them did not count.
pub(super) fn sum(end: &EndReadings, set: u32, metric: m::Metric, window: Window) -> Option<f64> {
    let each: Option<Vec<f64>> = tables(end, set).map(|t| grown(t, metric, window)).collect();
    each.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

fn tables(end: &EndReadings, set: u32) -> impl Iterator<Item = &Table> {
    let prefix = format!("s{set}/");
    end.about(m::UDP_DATAGRAMS.source, move |s| s.starts_with(&prefix))
}

/// Growth of a column over a window; it is negative if the number of missing datagrams falls.
fn grown(table: &Table, metric: m::Metric, window: Window) -> Option<f64> {
    let (from, to) = window.rows(table)?;
    let values = table.column(metric)?;
    Some(values.get(to)?.checked_sub(*values.get(from)?)? as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_record::Column;

    fn table(stream: u32, columns: &[(m::Metric, [i64; 3])]) -> Table {
        let column = |(metric, values): &(m::Metric, [i64; 3])| Column {
            name: metric.name.into(),
            unit: metric.unit,
            kind: metric.kind,
            values: values.to_vec(),
        };
        Table {
            source: "udp".to_owned(),
            subject: format!("s2/{stream}"),
            at: vec![0, 1_000_000_000, 3_000_000_000],
            columns: columns.iter().map(column).collect(),
        }
    }

    fn read(tables: Vec<Table>) -> Option<Datagrams> {
        let end = EndReadings { tables, ..EndReadings::default() };
        let window = Window { from: 1_000_000_000, to: 3_000_000_000 };
        datagrams([&EndReadings::default(), &end], 2, window)
    }

    #[test]
    fn shares_are_of_what_was_sent_or_came_and_the_host_s_part_is_named() {
        let columns = [
            (m::UDP_DATAGRAMS, [0, 100, 500]),
            (m::UDP_LOST, [0, 50, 150]),
            (m::UDP_DROPS, [7, 7, 57]),
            (m::UDP_REORDERED, [0, 0, 40]),
            (m::UDP_DUPLICATED, [0, 3, 43]),
            (m::UDP_MESSAGES, [0, 10, 260]),
        ];
        let reported = read(vec![table(0, &columns), table(1, &columns)]).unwrap();
        assert!((reported.per_sec - 400.0).abs() < 1e-9);
        assert!((reported.lost - 0.2).abs() < 1e-9);
        assert!((reported.sent - 500.0).abs() < 1e-9);
        assert!((reported.at_socket.unwrap() - 0.1).abs() < 1e-9);
        // The datagrams arrived in groups of 400/250.
        assert!((reported.joined.unwrap() - 1.6).abs() < 1e-9);
        assert!((reported.dropped().unwrap() - 0.16).abs() < 1e-9);
        assert!((reported.reordered - 0.1).abs() < 1e-9);
        assert!((reported.duplicated - 0.1).abs() < 1e-9);
        // A kernel that does not report drops at the socket leaves the other counts.
        let fewer: Vec<_> = columns.into_iter().filter(|c| c.0.name != "socket_drops").collect();
        assert_eq!(read(vec![table(0, &fewer)]).unwrap().at_socket, None);
    }

    #[test]
    fn drops_that_came_joined_are_as_many_as_those_that_were_read_and_never_more_than_were_lost() {
        let of = |at_socket, joined| {
            let reported = Datagrams {
                sent: 100.0,
                per_sec: 80.0,
                lost: 0.2,
                at_socket,
                damaged: None,
                joined,
                reordered: 0.0,
                duplicated: 0.0,
            };
            reported.dropped()
        };
        assert_eq!(of(Some(0.01), Some(10.0)), Some(0.1));
        assert_eq!(of(Some(0.01), Some(40.0)), Some(0.2));
        assert_eq!(of(Some(0.01), None), None, "nobody knows how many each was");
        assert_eq!(of(Some(0.0), None), Some(0.0));
        assert_eq!(of(None, Some(10.0)), None);
    }

    #[test]
    fn bad_checksums_are_no_drops_for_want_of_room() {
        let of = |lost, at_socket, damaged: Option<f64>| {
            let reported = Datagrams {
                sent: 1000.0,
                per_sec: 1000.0 * (1.0 - lost),
                lost,
                at_socket,
                damaged: None,
                joined: Some(1.0),
                reordered: 0.0,
                duplicated: 0.0,
            };
            let reported = reported.without(damaged);
            let exact = |share: f64| (share * 1e6).round() as u64;
            (reported.damaged.map(exact), reported.at_socket.map(exact))
        };
        assert_eq!(of(0.08, Some(0.08), Some(80.0)), (Some(80_000), Some(0)));
        assert_eq!(of(0.08, Some(0.08), Some(20.0)), (Some(20_000), Some(60_000)));
        // The two counters were read at different times.
        assert_eq!(of(0.08, Some(0.08), Some(77.0)), (Some(77_000), Some(0)));
        assert_eq!(of(0.08, Some(0.08), Some(75.0)), (Some(75_000), Some(5_000)));
        // Another socket discarded most of these datagrams.
        assert_eq!(of(0.08, Some(0.01), Some(60.0)), (Some(10_000), Some(0)));
        assert_eq!(of(0.08, None, Some(100.0)), (Some(80_000), None));
        assert_eq!(of(0.08, Some(0.08), None), (None, Some(80_000)));
    }

    #[test]
    fn where_nothing_came_all_that_was_sent_is_lost() {
        let end = |columns: &[(m::Metric, [i64; 3])]| EndReadings {
            tables: vec![table(0, columns)],
            ..EndReadings::default()
        };
        let near = end(&[(m::UDP_DATAGRAMS, [0, 100, 500])]);
        let none = [m::UDP_DATAGRAMS, m::UDP_LOST, m::UDP_REORDERED];
        let far = none.map(|metric| (metric, [0; 3]));
        let far = end(&[&far[..], &[(m::UDP_DUPLICATED, [0; 3])]].concat());
        let window = Window { from: 1_000_000_000, to: 3_000_000_000 };
        let reported = datagrams([&near, &far], 2, window).unwrap();
        assert!((reported.lost - 1.0).abs() < 1e-9 && (reported.sent - 200.0).abs() < 1e-9);
    }

    #[test]
    fn numbers_are_told_of_both_ends_and_what_one_did_not_count_is_left_open() {
        let receiver = [
            (m::UDP_DATAGRAMS, [0, 100, 500]),
            (m::UDP_LOST, [0, 50, 150]),
            (m::UDP_DROPS, [7, 7, 207]),
            (m::UDP_REORDERED, [0, 0, 40]),
            (m::UDP_DUPLICATED, [0, 3, 43]),
        ];
        let sender = [(m::UDP_DATAGRAMS, [0, 150, 660]), (m::UDP_REFUSED, [0, 1, 8])];
        let end = |columns: &[_]| EndReadings {
            tables: vec![table(0, columns), table(1, columns)],
            ..EndReadings::default()
        };
        let window = Window { from: 1_000_000_000, to: 3_000_000_000 };
        let read = |sender: &EndReadings, receiver: &EndReadings| {
            counted(sender, receiver, 2, 1000, window)
        };
        let reported = Counted {
            sent: Some(1020),
            refused: Some(14),
            received: 800,
            lost: 200,
            at_socket: Some(200),
            reordered: Some(80),
            duplicated: Some(80),
        };
        assert_eq!(read(&end(&sender), &end(&receiver)), Some(reported));
        let alone = read(&EndReadings::default(), &end(&receiver));
        assert_eq!(alone.map(|c| (c.sent, c.received)), Some((None, 800)));
        assert_eq!(read(&end(&sender), &EndReadings::default()), None);

        // 1000 of 1320 arrived. 100 were missing before the window; the last losses are noticed only at the end.
        let totals = |sent: u64, received: u64, complete| {
            let each = [sent / 2, sent / 2].into_iter().zip(0..);
            let total =
                |(sent, stream)| Total { set: 2, stream, sent, received: received / 2, complete };
            each.map(total).collect::<Vec<_>>()
        };
        let ended = |sent, received, complete| {
            let (mut near, mut far) = (end(&sender), end(&receiver));
            near.totals = totals(sent, 0, true);
            far.totals = totals(0, received, complete);
            read(&near, &far).unwrap().lost
        };
        assert_eq!(ended(1_320_000, 1_000_000, true), 220);
        assert_eq!(ended(1_320_000, 1_000_000, false), 200);
        // No more than the 1020 that were sent in the window can be lost.
        assert_eq!(ended(1_420_000, 1_000_000, true), 220);
        assert_eq!(ended(1_310_000, 1_000_000, true), 210);
        // Datagrams received after the window are late, not lost.
        assert_eq!(ended(1_320_000, 1_100_000, true), 200);
    }

    #[test]
    fn what_a_socket_dropped_after_the_window_counts_where_what_was_lost_then_does() {
        let drops = [
            (m::UDP_DATAGRAMS, [0, 500, 500]),
            (m::UDP_LOST, [0, 0, 0]),
            (m::UDP_DROPS, [0, 0, 30]),
            (m::UDP_REORDERED, [0; 3]),
            (m::UDP_DUPLICATED, [0; 3]),
        ];
        let result_of = |sent: i64| {
            let end = |columns: &[_], sent, received| EndReadings {
                tables: vec![table(0, columns)],
                totals: vec![Total { set: 2, stream: 0, sent, received, complete: true }],
                ..EndReadings::default()
            };
            let near = [(m::UDP_DATAGRAMS, [0, sent, sent])];
            let near = end(&near, sent as u64 * 1000, 0);
            let window = Window { from: 0, to: 1_000_000_000 };
            let reported = counted(&near, &end(&drops, 0, 500_000), 2, 1000, window).unwrap();
            (reported.lost, reported.at_socket)
        };
        assert_eq!(result_of(600), (100, Some(30)));
        assert_eq!(result_of(500), (0, Some(0)));
    }

    #[test]
    fn late_ones_make_good_and_a_sender_alone_tells_nothing() {
        let columns = [
            (m::UDP_DATAGRAMS, [0, 100, 500]),
            (m::UDP_LOST, [0, 50, 10]),
            (m::UDP_REORDERED, [0, 0, 40]),
            (m::UDP_DUPLICATED, [0, 0, 0]),
        ];
        let reported = read(vec![table(0, &columns)]).unwrap();
        assert!(reported.lost.abs() < 1e-9);
        assert_eq!(read(vec![table(0, &columns[..1])]), None);
        assert_eq!(read(Vec::new()), None);
    }
}
