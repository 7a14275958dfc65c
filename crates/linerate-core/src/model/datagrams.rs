//! What became of the datagrams of a load.

use super::readings::{Window, growth};
use crate::metric as m;
use crate::record::{EndReadings, Table};

/// Datagrams of a load, all streams, over the time that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Datagrams {
    /// Those that came for the first time, in a second.
    pub per_sec: f64,
    /// Share of those that were sent and did not come.
    pub lost: f64,
    /// The part of it that reached the receiving host and was dropped at the socket, for want of room, at
    /// least: datagrams that came joined (UDP_GRO) are dropped as one. `None` where that was not read.
    pub at_socket: Option<f64>,
    /// Share of those that came which came after one that was sent later.
    pub reordered: f64,
    /// Datagrams that came again, over those that came.
    pub duplicated: f64,
}

/// The same in numbers, with what the sender counted, each end over its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Those that the sender's kernel took; `None` where that was not read.
    pub sent: Option<u64>,
    /// Those that it did not take at once, for want of room in a queue of its host (ENOBUFS): they were
    /// sent later.
    pub refused: Option<u64>,
    /// Those that came for the first time.
    pub came: u64,
    /// Those that were sent and did not come.
    pub lost: u64,
    /// The part of it that was dropped at the receiver's socket, at least; `None` where that was not read.
    pub at_socket: Option<u64>,
    /// Those that came after one that was sent later.
    pub reordered: u64,
    /// Those that came again.
    pub duplicated: u64,
}

/// What both ends counted of a set; `None` where the receiver counted no datagrams.
pub(super) fn counted(
    sending: &EndReadings,
    receiving: &EndReadings,
    set: u32,
    window: Window,
) -> Option<Counted> {
    let (sender, receiver) = (tables(sending, set), tables(receiving, set));
    let came = count(&receiver, m::UDP_DATAGRAMS, window)?;
    let lost = count(&receiver, m::UDP_LOST, window)?;
    let at_socket = count(&receiver, m::UDP_DROPS, window);
    Some(Counted {
        sent: count(&sender, m::UDP_DATAGRAMS, window),
        refused: count(&sender, m::UDP_REFUSED, window),
        came,
        lost,
        at_socket: at_socket.map(|drops| drops.min(lost)),
        reordered: count(&receiver, m::UDP_REORDERED, window)?,
        duplicated: count(&receiver, m::UDP_DUPLICATED, window)?,
    })
}

fn tables(end: &EndReadings, set: u32) -> Vec<&Table> {
    let prefix = format!("s{set}/");
    end.about(m::UDP_DATAGRAMS.source, move |s| s.starts_with(&prefix))
        .collect()
}

/// By how much a column of all streams grew: a column of what is missing may shrink in one of them.
fn count(tables: &[&Table], metric: m::Metric, window: Window) -> Option<u64> {
    let each = tables.iter().map(|table| grown(table, metric, window));
    let sum: f64 = each.sum::<Option<f64>>()?;
    (!tables.is_empty()).then_some(sum.max(0.0) as u64)
}

/// What the receiving end counted of a set; `None` where it counted no datagrams.
pub(super) fn datagrams(receiving: &EndReadings, set: u32, window: Window) -> Option<Datagrams> {
    let tables = tables(receiving, set);
    let sum = |metric| -> Option<f64> { tables.iter().map(|t| grown(t, metric, window)).sum() };
    let came = sum(m::UDP_DATAGRAMS).filter(|_| !tables.is_empty())?;
    let secs = growth(tables.first()?, m::UDP_DATAGRAMS, window)?.1;
    let missing = sum(m::UDP_LOST)?.max(0.0);
    let of = |count: f64, whole: f64| if whole > 0.0 { count / whole } else { 0.0 };
    let all = came + missing;
    Some(Datagrams {
        per_sec: came / secs,
        lost: of(missing, all),
        at_socket: sum(m::UDP_DROPS).map(|drops| of(drops.min(missing), all)),
        reordered: of(sum(m::UDP_REORDERED)?, came),
        duplicated: of(sum(m::UDP_DUPLICATED)?, came),
    })
}

/// By how much a column grew; what is missing may also become less.
fn grown(table: &Table, metric: m::Metric, window: Window) -> Option<f64> {
    let (from, to) = window.rows(table)?;
    let values = table.column(metric)?;
    Some(values.get(to)?.checked_sub(*values.get(from)?)? as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Column;

    fn table(stream: u32, columns: &[(m::Metric, [i64; 3])]) -> Table {
        let column = |(metric, values): &(m::Metric, [i64; 3])| Column {
            name: metric.name.to_owned(),
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
        let end = EndReadings {
            tables,
            ..EndReadings::default()
        };
        let window = Window {
            from: 1_000_000_000,
            to: 3_000_000_000,
        };
        datagrams(&end, 2, window)
    }

    #[test]
    fn shares_are_of_what_was_sent_or_came_and_the_host_s_part_is_named() {
        let columns = [
            (m::UDP_DATAGRAMS, [0, 100, 500]),
            (m::UDP_LOST, [0, 50, 150]),
            (m::UDP_DROPS, [7, 7, 57]),
            (m::UDP_REORDERED, [0, 0, 40]),
            (m::UDP_DUPLICATED, [0, 3, 43]),
        ];
        let told = read(vec![table(0, &columns), table(1, &columns)]).unwrap();
        assert!((told.per_sec - 400.0).abs() < 1e-9);
        assert!((told.lost - 0.2).abs() < 1e-9);
        assert!((told.at_socket.unwrap() - 0.1).abs() < 1e-9);
        assert!((told.reordered - 0.1).abs() < 1e-9);
        assert!((told.duplicated - 0.1).abs() < 1e-9);
        // A kernel that does not tell of its drops leaves the rest.
        let fewer: Vec<_> = columns
            .into_iter()
            .filter(|c| c.0.name != "socket_drops")
            .collect();
        assert_eq!(read(vec![table(0, &fewer)]).unwrap().at_socket, None);
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
        let sender = [
            (m::UDP_DATAGRAMS, [0, 150, 660]),
            (m::UDP_REFUSED, [0, 1, 8]),
        ];
        let end = |columns: &[_]| EndReadings {
            tables: vec![table(0, columns), table(1, columns)],
            ..EndReadings::default()
        };
        let window = Window {
            from: 1_000_000_000,
            to: 3_000_000_000,
        };
        let read =
            |sender: &EndReadings, receiver: &EndReadings| counted(sender, receiver, 2, window);
        let told = Counted {
            sent: Some(1020),
            refused: Some(14),
            came: 800,
            lost: 200,
            at_socket: Some(200),
            reordered: 80,
            duplicated: 80,
        };
        assert_eq!(read(&end(&sender), &end(&receiver)), Some(told));
        let alone = read(&EndReadings::default(), &end(&receiver));
        assert_eq!(alone.map(|c| (c.sent, c.came)), Some((None, 800)));
        assert_eq!(read(&end(&sender), &EndReadings::default()), None);
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
