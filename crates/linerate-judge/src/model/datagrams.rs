//! Counts of the datagrams of a load: sent, received, lost.

use super::readings::{Window, growth, mean};
use linerate_facts::metric as m;
use linerate_record::{EndReadings, Table, Total};
use linerate_units::Nanos;
use linerate_units::stats::Count;

/// Least part of the drops at a socket that counts as something else than bad checksums: both counters are not read at
/// the same times.
const APART: f64 = 0.05;

/// Datagrams of a load, all streams, over the time that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Datagrams {
    /// Datagrams sent per second.
    pub sent: f64,
    /// Datagrams received for the first time, in a second.
    pub per_sec: f64,
    /// Share of the sent datagrams that were not received.
    pub lost: f64,
    /// The part of the loss that was dropped at the receiver's socket because its buffer was full, as a lower
    /// bound: coalesced datagrams (UDP_GRO) are dropped as one. `None` if it was not read. If bad checksums were
    /// not counted, it holds those as well.
    pub at_socket: Option<f64>,
    /// The part of the loss that the receiver's host discarded because of a bad checksum; `None` if it was not
    /// counted.
    pub damaged: Option<f64>,
    /// Mean number of datagrams in a message: those that the kernel joined. `None` if it was not counted, or
    /// nothing was read.
    pub joined: Option<f64>,
    /// Share of received datagrams that arrived after one that was sent later.
    pub reordered: f64,
    /// Datagrams received again, over datagrams received.
    pub duplicated: f64,
}

impl Datagrams {
    /// Share of the sent datagrams that was dropped at the socket, as an estimate. It assumes that dropped
    /// datagrams were coalesced by the kernel in the same way as the read ones. `None` if a counter is missing.
    pub fn dropped(&self) -> Option<f64> {
        let least = self.at_socket?;
        let joined = self.joined.filter(|_| least > 0.0);
        let likely = joined.map(|joined| (least * joined).min(self.lost));
        likely.or((least <= 0.0).then_some(0.0))
    }

    /// Takes the datagrams with a bad checksum, of which so many came in a second, out of the drops at the socket:
    /// the kernel counts them there too. Other sockets may have discarded some as well, so they are at most as many
    /// as this one dropped.
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

/// Numbers of datagrams over a load, with the counts of the sender, each end over its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Datagrams that the sender's kernel accepted; `None` if it was not read.
    pub sent: Option<u64>,
    /// Datagrams that a full queue of the sending host refused at first (ENOBUFS); they were sent later.
    pub refused: Option<u64>,
    /// Datagrams received for the first time.
    pub came: u64,
    /// Datagrams sent and not received.
    pub lost: u64,
    /// The part of the lost datagrams that was dropped at the receiver's socket, as a lower bound; `None` if
    /// it was not read.
    pub at_socket: Option<u64>,
    /// Datagrams received after one that was sent later; `None` if the receiver does not count them.
    pub reordered: Option<u64>,
    /// Datagrams received again; `None` if the receiver does not count them.
    pub duplicated: Option<u64>,
}

impl Counted {
    /// The share of the sent datagrams that did not arrive; `None` if none were sent.
    pub fn share_lost(&self) -> Option<f64> {
        let all = self.came.saturating_add(self.lost);
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
    // A receiver that reports sums has counted to the end of the step, as its sender's total does.
    let summed = || total(sending, set, |t| t.sent).map(|bytes| bytes / size.max(1));
    let handed = Some(receiving)
        .filter(|end| !end.is_sampled())
        .and_then(|_| summed())
        .or_else(|| count(sending, m::UDP_DATAGRAMS));
    let came = count(receiving, m::UDP_DATAGRAMS)?;
    // The receiver notices a lost datagram only when a later one arrives. It learns of the rest at the end,
    // together with those sent after its last sample.
    let before = Window { from: 0, to: window.from };
    let earlier = sum(receiving, set, m::UDP_LOST, before).unwrap_or(0.0);
    let in_all = missing(sending, receiving, set).map_or(0, |(missing, _)| missing) / size.max(1);
    let later = in_all.saturating_sub(earlier.max(0.0) as u64);
    let most = handed.map_or(0, |all| all.saturating_sub(came));
    let told = count(receiving, m::UDP_LOST)?;
    // A receiver without any arrival does not know that anything was sent, and cannot report it later.
    let all = handed.filter(|_| came == 0 && !receiving.is_sampled());
    let lost = all.unwrap_or(told.max(later.min(most)));
    // Drops at the socket after the window count where losses after the window do.
    let drops = Window { to: if lost > told { u64::MAX } else { window.to }, ..window };
    let dropped = sum(receiving, set, m::UDP_DROPS, drops);
    Some(Counted {
        sent: handed,
        refused: count(sending, m::UDP_REFUSED),
        came,
        lost,
        at_socket: dropped.map(|drops| (drops.max(0.0) as u64).min(lost)),
        reordered: count(receiving, m::UDP_REORDERED),
        duplicated: count(receiving, m::UDP_DUPLICATED),
    })
}

/// The exact number of bytes of a whole step that were sent and did not arrive, and that were sent; `None` if a stream
/// did not end in order.
pub(super) fn missing(
    sending: &EndReadings,
    receiving: &EndReadings,
    set: u32,
) -> Option<(u64, u64)> {
    let handed = total(sending, set, |t| t.sent)?;
    let arrived = total(receiving, set, |t| t.received)?;
    Some((handed.saturating_sub(arrived), handed))
}

/// A sum over the streams of a set; `None` if one of them did not end in order.
pub(super) fn total(end: &EndReadings, set: u32, of: impl Fn(&Total) -> u64) -> Option<u64> {
    let mut streams = end.totals.iter().filter(|total| total.set == set).peekable();
    streams.peek()?;
    streams.try_fold(0_u64, |sum, total| sum.checked_add(total.complete.then(|| of(total))?))
}

/// The counts of a set at the sending and the receiving end; `None` if the receiving end counted no
/// datagrams.
pub(super) fn datagrams(ends: [&EndReadings; 2], set: u32, window: Window) -> Option<Datagrams> {
    let [sender, receiver] = ends;
    let Count { events, of: all } = lost(receiver, set, window)?;
    let sum = |metric| sum(receiver, set, metric, window);
    let came = sum(m::UDP_DATAGRAMS)?;
    let secs = tables(receiver, set).find_map(|t| growth(t, m::UDP_DATAGRAMS, window))?.1;
    // A receiver that nothing reached does not know that anything was sent.
    let handed = self::sum(sender, set, m::UDP_DATAGRAMS, window).filter(|_| came <= 0.0);
    let all = all.max(handed.unwrap_or(0.0));
    let missing = events.max(all - came);
    let of = |count: f64, whole: f64| if whole > 0.0 { count / whole } else { 0.0 };
    Some(Datagrams {
        sent: all / secs,
        per_sec: came / secs,
        lost: of(missing, all),
        at_socket: sum(m::UDP_DROPS).map(|drops| of(drops.min(missing), all)),
        damaged: None,
        joined: sum(m::UDP_MESSAGES)
            .filter(|messages| *messages > 0.0)
            .map(|messages| (came / messages).max(1.0)),
        reordered: of(sum(m::UDP_REORDERED)?, came),
        duplicated: of(sum(m::UDP_DUPLICATED)?, came),
    })
}

/// Datagrams of a set that were sent over a window, and the number of them that did not arrive.
pub(super) fn lost(receiving: &EndReadings, set: u32, window: Window) -> Option<Count> {
    let missing = sum(receiving, set, m::UDP_LOST, window)?.max(0.0);
    let came = sum(receiving, set, m::UDP_DATAGRAMS, window)?;
    Some(Count { events: missing, of: came + missing })
}

/// Whether any datagram of a set arrived, by the receiver's count; `None` if it does not report one.
pub(super) fn came(receiving: &EndReadings, set: u32) -> Option<bool> {
    let last = |table: &Table| table.column(m::UDP_DATAGRAMS)?.last().copied();
    let all: Vec<i64> = tables(receiving, set).map(last).collect::<Option<_>>()?;
    (!all.is_empty()).then(|| all.iter().any(|datagrams| *datagrams > 0))
}

/// The last jitter of the streams of a set, mean; `None` if one of them does not report it.
pub(super) fn jitter(end: &EndReadings, set: u32) -> Option<Nanos> {
    let last = |table: &Table| table.column(m::UDP_JITTER)?.last().copied();
    let all: Vec<i64> = tables(end, set).map(last).collect::<Option<_>>()?;
    let mean = mean(all.iter().map(|jitter| *jitter as f64))?;
    Some(Nanos(mean.max(0.0) as u64))
}

/// The counts of the streams of a set over a window; `None` if one of them did not count.
pub(super) fn sum(end: &EndReadings, set: u32, metric: m::Metric, window: Window) -> Option<f64> {
    let each: Option<Vec<f64>> = tables(end, set).map(|t| grown(t, metric, window)).collect();
    each.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

fn tables(end: &EndReadings, set: u32) -> impl Iterator<Item = &Table> {
    let prefix = format!("s{set}/");
    end.about(m::UDP_DATAGRAMS.source, move |s| s.starts_with(&prefix))
}

/// How much a column grew; the number of missing datagrams may also fall.
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
        let told = read(vec![table(0, &columns), table(1, &columns)]).unwrap();
        assert!((told.per_sec - 400.0).abs() < 1e-9);
        assert!((told.lost - 0.2).abs() < 1e-9);
        assert!((told.sent - 500.0).abs() < 1e-9);
        assert!((told.at_socket.unwrap() - 0.1).abs() < 1e-9);
        // They arrived in groups of 400/250.
        assert!((told.joined.unwrap() - 1.6).abs() < 1e-9);
        assert!((told.dropped().unwrap() - 0.16).abs() < 1e-9);
        assert!((told.reordered - 0.1).abs() < 1e-9);
        assert!((told.duplicated - 0.1).abs() < 1e-9);
        // A kernel that does not tell of its drops leaves the rest.
        let fewer: Vec<_> = columns.into_iter().filter(|c| c.0.name != "socket_drops").collect();
        assert_eq!(read(vec![table(0, &fewer)]).unwrap().at_socket, None);
    }

    #[test]
    fn drops_that_came_joined_are_as_many_as_those_that_were_read_and_never_more_than_were_lost() {
        let of = |at_socket, joined| {
            let told = Datagrams {
                sent: 100.0,
                per_sec: 80.0,
                lost: 0.2,
                at_socket,
                damaged: None,
                joined,
                reordered: 0.0,
                duplicated: 0.0,
            };
            told.dropped()
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
            let told = Datagrams {
                sent: 1000.0,
                per_sec: 1000.0 * (1.0 - lost),
                lost,
                at_socket,
                damaged: None,
                joined: Some(1.0),
                reordered: 0.0,
                duplicated: 0.0,
            };
            let told = told.without(damaged);
            let exact = |share: f64| (share * 1e6).round() as u64;
            (told.damaged.map(exact), told.at_socket.map(exact))
        };
        assert_eq!(of(0.08, Some(0.08), Some(80.0)), (Some(80_000), Some(0)));
        assert_eq!(of(0.08, Some(0.08), Some(20.0)), (Some(20_000), Some(60_000)));
        // Read at other times.
        assert_eq!(of(0.08, Some(0.08), Some(77.0)), (Some(77_000), Some(0)));
        assert_eq!(of(0.08, Some(0.08), Some(75.0)), (Some(75_000), Some(5_000)));
        // Another socket discarded most of them.
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
        let told = datagrams([&near, &far], 2, window).unwrap();
        assert!((told.lost - 1.0).abs() < 1e-9 && (told.sent - 200.0).abs() < 1e-9);
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
        let told = Counted {
            sent: Some(1020),
            refused: Some(14),
            came: 800,
            lost: 200,
            at_socket: Some(200),
            reordered: Some(80),
            duplicated: Some(80),
        };
        assert_eq!(read(&end(&sender), &end(&receiver)), Some(told));
        let alone = read(&EndReadings::default(), &end(&receiver));
        assert_eq!(alone.map(|c| (c.sent, c.came)), Some((None, 800)));
        assert_eq!(read(&end(&sender), &EndReadings::default()), None);

        // 1000 of 1320 arrived. 100 were missing before the window; the last ones are noticed at the end only.
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
        // No more than was sent meanwhile: 1020.
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
        let told = |sent: i64| {
            let end = |columns: &[_], sent, received| EndReadings {
                tables: vec![table(0, columns)],
                totals: vec![Total { set: 2, stream: 0, sent, received, complete: true }],
                ..EndReadings::default()
            };
            let near = [(m::UDP_DATAGRAMS, [0, sent, sent])];
            let near = end(&near, sent as u64 * 1000, 0);
            let window = Window { from: 0, to: 1_000_000_000 };
            let told = counted(&near, &end(&drops, 0, 500_000), 2, 1000, window).unwrap();
            (told.lost, told.at_socket)
        };
        assert_eq!(told(600), (100, Some(30)));
        assert_eq!(told(500), (0, Some(0)));
    }

    #[test]
    fn late_ones_make_good_and_a_sender_alone_tells_nothing() {
        let columns = [
            (m::UDP_DATAGRAMS, [0, 100, 500]),
            (m::UDP_LOST, [0, 50, 10]),
            (m::UDP_REORDERED, [0, 0, 40]),
            (m::UDP_DUPLICATED, [0, 0, 0]),
        ];
        let told = read(vec![table(0, &columns)]).unwrap();
        assert!(told.lost.abs() < 1e-9);
        assert_eq!(read(vec![table(0, &columns[..1])]), None);
        assert_eq!(read(Vec::new()), None);
    }
}
