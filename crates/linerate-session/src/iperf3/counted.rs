//! This side's results of a test, which are sent to the other side.
//! They are computed from the readings of this side's streams.

use linerate_facts::metric::{
    Metric, TCP_RETRANS, UDP_DATAGRAMS, UDP_JITTER, UDP_LOST, WORKER_BYTES,
};
use linerate_record::iperf3::{Datagrams, StreamResult};
use linerate_record::{EndReadings, Table, Total};
use linerate_units::Nanos;

use linerate_plan::application::Role;

/// The streams of a test in one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub(crate) set: u32,
    pub(crate) role: Role,
    /// Payload of a datagram in bytes; `None` for TCP.
    pub(crate) datagram: Option<u16>,
    /// Length of the omitted part at the start of the step.
    pub(crate) omit: Nanos,
}

impl Streams {
    /// Returns the results of the streams in their order. The streams get iperf3's numbers for streams, counted from
    /// index `first`. All results have the duration `seconds`.
    pub(crate) fn results(
        &self,
        end: &EndReadings,
        first: usize,
        seconds: f64,
    ) -> Vec<StreamResult> {
        let mut totals: Vec<&Total> = end.totals.iter().filter(|t| t.set == self.set).collect();
        totals.sort_by_key(|total| total.stream);
        let stream = |total: &Total| StreamResult {
            id: linerate_record::iperf3::stream_id(first + total.stream as usize),
            bytes: self.counted(end, total),
            retransmits: self.retransmits(end, total.stream),
            seconds: Some(seconds),
            datagrams: self.datagrams(end, total),
        };
        totals.into_iter().map(stream).collect()
    }

    /// Returns the measured payload of a stream, without the omitted part. A thread that moves several streams knows
    /// only their total in the omitted part, so a share of this total is subtracted from each stream.
    fn counted(&self, end: &EndReadings, total: &Total) -> u64 {
        let lanes: Vec<&Table> = self.lanes(end).collect();
        let moved = total.sent.max(total.received);
        let Some(lane) = lanes.get(total.stream as usize % lanes.len().max(1)) else {
            return moved;
        };
        let Some(omitted) = self.omitted(lane, WORKER_BYTES) else {
            // The stream ended before the measured part.
            return 0;
        };
        let with = |t: &&Total| {
            t.set == self.set
                && t.stream as usize % lanes.len() == total.stream as usize % lanes.len()
        };
        let all: u64 = end.totals.iter().filter(with).map(|t| t.sent.max(t.received)).sum();
        let share = u128::from(omitted) * u128::from(moved) / u128::from(all.max(1));
        moved.saturating_sub(share as u64)
    }

    /// Returns the segments that a sender has retransmitted; `None`
    /// for a receiver, or if the kernel does not report the number.
    fn retransmits(&self, end: &EndReadings, stream: u32) -> Option<u64> {
        let table = self.about(end, "tcp", stream).filter(|_| self.role == Role::Sender)?;
        let omitted = self.omitted(table, TCP_RETRANS)?;
        grown(table, TCP_RETRANS).map(|all| all.saturating_sub(omitted))
    }

    fn datagrams(&self, end: &EndReadings, total: &Total) -> Datagrams {
        let table = self.about(end, UDP_DATAGRAMS.source, total.stream);
        let (Some(size), Some(table)) = (self.datagram, table) else {
            return Datagrams { packets: Some(0), omitted: 0, errors: Some(0), jitter: Some(0.0) };
        };
        let omitted = |metric| self.omitted(table, metric).unwrap_or(0);
        if self.role == Role::Sender {
            return Datagrams {
                packets: Some(total.sent / u64::from(size.max(1))),
                omitted: omitted(UDP_DATAGRAMS),
                errors: Some(0),
                jitter: Some(0.0),
            };
        }
        let last = |metric| grown(table, metric).unwrap_or(0);
        Datagrams {
            packets: Some(last(UDP_DATAGRAMS) + last(UDP_LOST)),
            omitted: omitted(UDP_DATAGRAMS) + omitted(UDP_LOST),
            // A datagram that was missing at the end of the omitted part may have arrived since.
            errors: Some(last(UDP_LOST).saturating_sub(omitted(UDP_LOST))),
            jitter: Some(last(UDP_JITTER) as f64 / 1e9),
        }
    }

    /// Returns the worker tables of these streams: one for each thread.
    fn lanes<'a>(&self, end: &'a EndReadings) -> impl Iterator<Item = &'a Table> {
        let way = match self.role {
            Role::Sender => "tx",
            Role::Receiver => "rx",
        };
        let prefix = format!("s{}/{way}", self.set);
        let tables = end.tables.iter();
        tables.filter(move |t| t.source == WORKER_BYTES.source && t.subject.starts_with(&prefix))
    }

    fn about<'a>(&self, end: &'a EndReadings, source: &str, stream: u32) -> Option<&'a Table> {
        let subject = format!("s{}/{stream}", self.set);
        let mut tables = end.tables.iter();
        tables.find(|t| t.source == source && t.subject == subject)
    }

    /// Returns the growth of a counter in the omitted part; `None` if the step ended before the omitted part did.
    fn omitted(&self, table: &Table, metric: Metric) -> Option<u64> {
        let row = table.at.iter().position(|at| *at >= self.omit.0)?;
        since_first(table.column(metric)?, row)
    }
}

/// Returns the growth of a column from its first row to its last.
fn grown(table: &Table, metric: Metric) -> Option<u64> {
    let values = table.column(metric)?;
    since_first(values, values.len().checked_sub(1)?)
}

fn since_first(values: &[i64], row: usize) -> Option<u64> {
    let grown = values.get(row)?.checked_sub(*values.first()?)?;
    Some(u64::try_from(grown).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use linerate_record::Column;

    use super::*;

    fn table(subject: &str, at: &[u64], columns: &[(Metric, &[i64])]) -> Table {
        let column = |(metric, values): &(Metric, &[i64])| Column {
            name: metric.name.into(),
            unit: metric.unit,
            kind: metric.kind,
            values: values.to_vec(),
        };
        Table {
            source: columns[0].0.source.to_owned(),
            subject: subject.to_owned(),
            at: at.iter().map(|second| second * 1_000_000_000).collect(),
            columns: columns.iter().map(column).collect(),
        }
    }

    fn total(stream: u32, sent: u64, received: u64) -> Total {
        Total { set: 2, stream, sent, received, complete: true }
    }

    fn streams(role: Role, datagram: Option<u16>, omit: u64) -> Streams {
        Streams { set: 2, role, datagram, omit: Nanos::from_secs(omit) }
    }

    #[test]
    fn what_is_omitted_does_not_count_and_what_comes_behind_the_last_row_does() {
        let end = EndReadings {
            tables: vec![
                table("s2/tx0", &[0, 1, 3], &[(WORKER_BYTES, &[5, 105, 305])]),
                table("s2/0", &[0, 1, 3], &[(TCP_RETRANS, &[1, 4, 9])]),
            ],
            totals: vec![total(0, 320, 0)],
            ..EndReadings::default()
        };
        let result_of = |omit| {
            let results = streams(Role::Sender, None, omit).results(&end, 1, 2.0);
            (results[0].id, results[0].bytes, results[0].retransmits)
        };
        // The stream is the second one of the test.
        assert_eq!(result_of(0), (3, 320, Some(8)));
        assert_eq!(result_of(1), (3, 220, Some(5)));
        // The stream ended within the omitted part.
        assert_eq!(result_of(4), (3, 0, None));
    }

    #[test]
    fn streams_of_one_thread_have_a_share_each_of_what_is_omitted() {
        let end = EndReadings {
            tables: vec![
                table("s2/rx0", &[0, 1, 2], &[(WORKER_BYTES, &[0, 100, 400])]),
                table("s2/rx1", &[0, 1, 2], &[(WORKER_BYTES, &[0, 50, 100])]),
            ],
            totals: vec![total(0, 0, 300), total(1, 0, 100), total(2, 0, 100)],
            ..EndReadings::default()
        };
        let results = streams(Role::Receiver, None, 1).results(&end, 0, 1.0);
        let bytes: Vec<u64> = results.iter().map(|stream| stream.bytes).collect();
        assert_eq!(bytes, [225, 50, 75]);
        assert!(results.iter().all(|stream| stream.retransmits.is_none()));
    }

    #[test]
    fn a_receiver_of_datagrams_counts_those_that_it_lacks_with_those_that_came() {
        let columns: [(Metric, &[i64]); 3] = [
            (UDP_DATAGRAMS, &[0, 80, 180]),
            (UDP_LOST, &[0, 20, 25]),
            (UDP_JITTER, &[0, 9, 2_000_000]),
        ];
        let end = EndReadings {
            tables: vec![
                table("s2/rx0", &[0, 1, 2], &[(WORKER_BYTES, &[0, 8000, 18_000])]),
                table("s2/0", &[0, 1, 2], &columns),
            ],
            totals: vec![total(0, 0, 18_000)],
            ..EndReadings::default()
        };
        let result_of = |omit| {
            let results = streams(Role::Receiver, Some(100), omit).results(&end, 0, 1.0);
            let reported = results[0].datagrams;
            (results[0].bytes, reported.packets, reported.omitted, reported.errors)
        };
        assert_eq!(result_of(0), (18_000, Some(205), 0, Some(25)));
        assert_eq!(result_of(1), (10_000, Some(205), 100, Some(5)));
    }
}
