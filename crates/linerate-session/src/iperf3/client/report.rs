//! Converts a server's report of a test to readings of the far
//! end. The report has only sums, so each table has two rows.

use linerate_facts::Gap;
use linerate_facts::metric::{
    Metric, PROCESS_CPU, TCP_RETRANS, UDP_DATAGRAMS, UDP_JITTER, UDP_LOST, WORKER_BYTES,
};
use linerate_plan::path::Direction;
use linerate_record::iperf3::{Results, StreamResult};
use linerate_record::{Column, EndReadings, Table, Total};

/// Smallest plausible ratio of the seconds that a server reports to those that this end measured, and also of the
/// inverse ratio. The server's clock starts and stops one trip of the path later.
const SECONDS_SHARE: f64 = 0.5;

/// Payload of each stream, in bytes, that a server may send without counting
/// it: a thread that ends within a block does not count that block.
//= iperf3, src/iperf.h: MAX_BLOCKSIZE
const BLOCK: u64 = 1 << 20;

/// A server's report, and this end's data about the same test.
pub(crate) struct Report<'a> {
    pub(crate) results: &'a Results,
    pub(crate) set: u32,
    pub(crate) direction: Direction,
    pub(crate) streams: u32,
    /// Payload of a datagram in bytes; `None` for TCP.
    pub(crate) datagram: Option<u16>,
    /// Seconds at the start of the test that are omitted: the server does not count them.
    pub(crate) omit: f64,
    /// Seconds in which payload flowed, by this end's clock, including the omitted part.
    pub(crate) lasted: f64,
    /// Payload of each stream, as sent or received by this end.
    pub(crate) near: &'a [Total],
}

/// Begin and end of a part of a step, in nanoseconds since the step began.
type Span = [u64; 2];

impl Report<'_> {
    /// Returns the report as readings, with a gap for each value that the report lacks.
    pub(crate) fn readings(&self) -> EndReadings {
        let mut end =
            EndReadings { congestion: self.results.congestion.clone(), ..EndReadings::default() };
        end.gaps.extend(nothing_else());
        if let Some(why) = self.doubt() {
            end.gaps.push(gap("goodput", &format!("the server's figures are impossible: {why}")));
            return end;
        }
        let span = self.span();
        if self.is_forward() && self.results.seconds().is_none() {
            let why = "the server does not report its measuring time (iperf3 before 3.2): goodput is \
                       over this end's clock";
            end.gaps.push(gap("time of the far end", why));
        } else if self.omit > 0.0 && self.counts_all() {
            let why = format!(
                "the server also counted the first {} s: its figures are for the whole test",
                self.omit
            );
            end.gaps.push(gap("time of the far end", &why));
        }
        let mut streams: Vec<&StreamResult> = self.results.streams.iter().collect();
        streams.sort_by_key(|stream| stream.id);
        for (number, stream) in (0..).zip(&streams) {
            end.totals.push(self.total(number, stream));
            let way = if self.is_forward() { "rx" } else { "tx" };
            let subject = format!("s{}/{way}{number}", self.set);
            end.tables.push(sums(&subject, span, &[(WORKER_BYTES, stream.bytes)]));
        }
        self.retransmits(&streams, span, &mut end);
        self.datagrams(&streams, span, &mut end);
        if let Some(cpu) = self.results.cpu {
            // The CPU time is for the whole test, including the omitted part.
            let nanos = cpu.total / 100.0 * span[1] as f64;
            end.tables.push(sums("", [0, span[1]], &[(PROCESS_CPU, nanos as u64)]));
        }
        end
    }

    fn is_forward(&self) -> bool {
        self.direction == Direction::Forward
    }

    /// Returns the length of the counted part of the test in seconds, by this end's clock.
    fn counted(&self) -> f64 {
        let counted = self.lasted - self.omit;
        // If a test ended before its omitted part was over, nothing is omitted.
        if counted > 0.0 { counted } else { self.lasted }
    }

    /// Returns whether the server also counts the part that should
    /// be omitted. The duration that the server reports shows this.
    fn counts_all(&self) -> bool {
        let reported = self.results.seconds().unwrap_or(self.counted());
        (reported - self.lasted).abs() < (reported - self.counted()).abs()
            || self.lasted <= self.omit
    }

    /// Returns the interval that the server counted, in nanoseconds since the start of the step on the server's clock.
    fn span(&self) -> Span {
        let from = if self.counts_all() { 0.0 } else { self.omit };
        let seconds = self.results.seconds().unwrap_or(self.lasted - from);
        [from, from + seconds].map(|at| (at * 1e9) as u64)
    }

    /// Returns why the server's results cannot be right; `None` if they are plausible.
    fn doubt(&self) -> Option<String> {
        let results = self.results;
        if !results.are_of(self.streams as usize) {
            let (reported, own) = (results.streams.len(), self.streams);
            return Some(format!("it reports {reported} streams, not the {own} of the test"));
        }
        let sent = self.near.iter().fold(0, |sum: u64, t| sum.saturating_add(t.sent));
        if self.is_forward() && results.bytes() > sent {
            let reported = results.bytes();
            return Some(format!("it reports {reported} received bytes, but {sent} were sent"));
        }
        if let Some(why) = self.too_little() {
            return Some(why);
        }
        let seconds = results.seconds()?;
        let time = if self.counts_all() { self.lasted } else { self.counted() };
        let like = SECONDS_SHARE..1.0 / SECONDS_SHARE;
        (!like.contains(&(seconds / time)))
            .then(|| format!("it reports {seconds:.3} s of measuring in a test of {time:.3} s"))
    }

    /// Returns why a server cannot have sent as little as it reports; `None` if it can. For datagrams, which may arrive
    /// twice, this is not known. Nor is it if the start is omitted, because payload from buffers then arrives later.
    fn too_little(&self) -> Option<String> {
        let leaves_out = self.omit > 0.0 && !self.counts_all();
        if self.is_forward() || self.datagram.is_some() || leaves_out {
            return None;
        }
        let arrived = self.near.iter();
        let arrived = arrived.fold(0, |sum: u64, t| sum.saturating_add(t.received));
        let reported = self.results.bytes();
        let least = arrived.saturating_sub(BLOCK.saturating_mul(u64::from(self.streams)));
        (reported < least)
            .then(|| format!("it reports {reported} sent bytes, but {arrived} arrived"))
    }

    /// Returns the measured payload of a stream. It is not marked as complete,
    /// because it does not cover the whole step and no end mark was received.
    fn total(&self, stream: u32, reported: &StreamResult) -> Total {
        let (sent, received) =
            if self.is_forward() { (0, reported.bytes) } else { (reported.bytes, 0) };
        Total { set: self.set, stream, sent, received, complete: false }
    }

    fn retransmits(&self, streams: &[&StreamResult], span: Span, end: &mut EndReadings) {
        if self.is_forward() || self.datagram.is_some() {
            return;
        }
        let reported: Option<Vec<u64>> = streams.iter().map(|stream| stream.retransmits).collect();
        let Some(reported) = reported else {
            let why = "the server does not report its retransmissions";
            return end.gaps.push(gap("retransmits of the far end", why));
        };
        for (number, segments) in reported.into_iter().enumerate() {
            let subject = format!("s{}/{number}", self.set);
            end.tables.push(sums(&subject, span, &[(TCP_RETRANS, segments)]));
        }
    }

    fn datagrams(&self, streams: &[&StreamResult], span: Span, end: &mut EndReadings) {
        let Some(size) = self.datagram else {
            return;
        };
        let each: Option<Vec<_>> = match self.direction {
            Direction::Forward => streams.iter().map(|one| self.arrived(one, size)).collect(),
            Direction::Reverse => streams.iter().map(|one| sent(one, size)).collect(),
        };
        let Some(each) = each else {
            if self.is_forward() {
                let why =
                    "the server reports no number of received datagrams, or an impossible one";
                end.gaps.push(gap("loss of datagrams", why));
            }
            return;
        };
        for (number, row) in each.into_iter().enumerate() {
            let subject = format!("s{}/{number}", self.set);
            end.tables.push(sums(&subject, span, &row));
        }
        if self.is_forward() {
            let why =
                "an iperf3 server does not report which datagrams arrived out of order or twice";
            end.gaps.push(gap("order of datagrams", why));
        }
    }

    /// Returns the datagram counters of a receiving server's stream. Returns `None` if they are implausible: more
    /// datagrams than this end sent, or more lost ones than counted ones.
    fn arrived(&self, stream: &StreamResult, size: u16) -> Option<Vec<(Metric, u64)>> {
        let reported = stream.datagrams;
        let (seen, lost) = (reported.packets?.saturating_sub(reported.omitted), reported.errors?);
        let mut near = self.near.iter();
        let number = (0..self.streams as usize)
            .position(|at| linerate_record::iperf3::stream_id(at) == stream.id)?;
        let sent = near.find(|t| t.stream as usize == number)?.sent / u64::from(size.max(1));
        let mut row = vec![(UDP_DATAGRAMS, seen.checked_sub(lost)?), (UDP_LOST, lost)];
        row.extend(reported.jitter.map(|s| (UDP_JITTER, (s * 1e9) as u64)));
        (seen <= sent).then_some(row)
    }
}

/// Returns the number of datagrams that a sending server counted; `None` if it is less than the number that arrived
/// here. The server stops counting after this end, so it must have sent at least as many.
fn sent(stream: &StreamResult, size: u16) -> Option<Vec<(Metric, u64)>> {
    let reported = stream.datagrams;
    let packets = reported.packets?.saturating_sub(reported.omitted);
    let arrived = stream.bytes / u64::from(size.max(1));
    (packets >= arrived).then(|| vec![(UDP_DATAGRAMS, packets)])
}

/// Returns readings of the far end for a report that did not arrive: only gaps.
pub(crate) fn missing(direction: Direction) -> EndReadings {
    let mut end = EndReadings::default();
    if direction == Direction::Forward {
        end.gaps.push(gap("goodput", "the server did not report the received payload"));
    }
    end.gaps.extend(nothing_else());
    end
}

/// Returns the gap for everything that iperf3 never reports.
fn nothing_else() -> [Gap; 1] {
    [Gap {
        what: "sockets, CPUs and ports of the far end".to_owned(),
        why: "iperf3 does not report them".to_owned(),
        hint: "run `linerate serve` there, and leave out iperf3://".to_owned(),
    }]
}

fn gap(what: &str, why: &str) -> Gap {
    Gap { what: what.to_owned(), why: why.to_owned(), hint: String::new() }
}

/// Makes a table of two rows from sums over a span. Counters begin at zero; gauges have their last value in both rows.
fn sums(subject: &str, span: Span, row: &[(Metric, u64)]) -> Table {
    let column = |(metric, value): &(Metric, u64)| {
        let value = i64::try_from(*value).unwrap_or(i64::MAX);
        let first = match metric.name {
            name if name == UDP_JITTER.name => value,
            _ => 0,
        };
        Column {
            name: metric.name.into(),
            unit: metric.unit,
            kind: metric.kind,
            values: vec![first, value],
        }
    };
    let source = row.first().map_or("", |(metric, _)| metric.source);
    Table {
        source: source.to_owned(),
        subject: subject.to_owned(),
        at: span.to_vec(),
        columns: row.iter().map(column).collect(),
    }
}

#[cfg(test)]
mod tests {
    use linerate_record::iperf3::{Cpu, Datagrams, stream_id};

    use super::*;

    /// Results of one stream. The test has this many seconds, of which one is omitted.
    fn result_of(seconds: Option<f64>, bytes: u64) -> Results {
        Results {
            cpu: Some(Cpu { total: 50.0, user: 20.0, system: 30.0 }),
            congestion: None,
            streams: vec![StreamResult {
                id: stream_id(0),
                bytes,
                seconds,
                ..StreamResult::default()
            }],
        }
    }

    fn near(stream: u32, sent: u64) -> Total {
        Total { set: 3, stream, sent, received: 0, complete: true }
    }

    fn report<'a>(results: &'a Results, lasted: f64, near: &'a [Total]) -> Report<'a> {
        Report {
            results,
            set: 3,
            direction: Direction::Forward,
            streams: near.len() as u32,
            datagram: None,
            omit: 1.0,
            lasted,
            near,
        }
    }

    #[test]
    fn the_seconds_of_a_server_show_whether_it_has_left_out_what_was_to_be_omitted() {
        let span = |seconds, lasted| {
            let (results, near) = (result_of(seconds, 10), [near(0, 10)]);
            report(&results, lasted, &near).span().map(|at| at / 1_000_000)
        };
        assert_eq!(span(Some(2.0), 3.0), [1000, 3000]);
        assert_eq!(span(Some(2.49), 3.0), [1000, 3490]);
        assert_eq!(span(Some(2.51), 3.0), [0, 2510]);
        assert_eq!(span(Some(3.0), 3.0), [0, 3000]);
        assert_eq!(span(None, 3.0), [1000, 3000]);
        // The test was stopped within the omitted part.
        assert_eq!(span(Some(0.5), 0.5), [0, 500]);
    }

    #[test]
    fn sums_are_tables_of_two_rows_and_what_is_not_told_is_a_gap() {
        let (results, near) = (result_of(None, 1000), [near(0, 1000)]);
        let end = report(&results, 3.0, &near).readings();
        let bytes = end.tables.iter().find(|t| t.source == "worker").unwrap();
        assert_eq!(bytes.subject, "s3/rx0");
        assert_eq!(bytes.column(WORKER_BYTES), Some(&[0, 1000][..]));
        assert_eq!(bytes.at, [1_000_000_000, 3_000_000_000]);
        // Half of a CPU over all three seconds of the test.
        let cpu = end.tables.iter().find(|t| t.source == "process").unwrap();
        assert_eq!(cpu.column(PROCESS_CPU), Some(&[0, 1_500_000_000][..]));
        assert!(end.totals.iter().all(|t| t.received == 1000 && !t.complete));
        assert!(end.gaps.iter().any(|gap| gap.what == "time of the far end"));
    }

    #[test]
    fn a_report_that_cannot_be_so_is_no_reading() {
        let known = |seconds, bytes, streams: u32| {
            let results = result_of(Some(seconds), bytes);
            let near: Vec<Total> = (0..streams).map(|stream| near(stream, 500)).collect();
            !report(&results, 3.0, &near).readings().tables.is_empty()
        };
        assert!(known(2.0, 500, 1));
        assert!(!known(2.0, 501, 1), "more than was sent");
        assert!(!known(2.0, 500, 2), "of another number of streams");
        assert!(known(1.001, 500, 1) && !known(0.999, 500, 1));
        assert!(known(5.999, 500, 1) && !known(6.0, 500, 1));
    }

    #[test]
    fn that_the_first_second_counts_too_is_a_gap() {
        let times = |seconds, lasted, omit| {
            let (results, near) = (result_of(seconds, 10), [near(0, 10)]);
            let report = Report { omit, ..report(&results, lasted, &near) };
            let gaps = report.readings().gaps.into_iter();
            let mut found = gaps.filter(|gap| gap.what == "time of the far end");
            let why = found.next().map(|gap| gap.why);
            assert!(found.next().is_none());
            why
        };
        assert_eq!(times(Some(1.49), 2.0, 1.0), None);
        let why = times(Some(1.51), 2.0, 1.0).unwrap();
        assert!(why.contains("also counted the first 1 s"), "{why}");
        assert_eq!(times(Some(2.0), 2.0, 0.0), None, "nothing to leave out");
    }

    #[test]
    fn a_server_has_sent_what_arrived_but_for_a_block_of_each_stream() {
        let known = |bytes, seconds, datagram| {
            let results = result_of(Some(seconds), bytes);
            let near = [Total { received: 5 * BLOCK, ..near(0, 0) }];
            let report =
                Report { direction: Direction::Reverse, datagram, ..report(&results, 3.0, &near) };
            !report.readings().tables.is_empty()
        };
        assert!(known(4 * BLOCK, 3.0, None));
        assert!(!known(4 * BLOCK - 1, 3.0, None), "less than arrived");
        assert!(known(4 * BLOCK - 1, 2.0, None), "without the first second");
        assert!(known(4 * BLOCK - 1, 3.0, Some(1000)), "some arrived twice");
    }

    #[test]
    fn what_a_server_cannot_have_seen_of_datagrams_is_not_believed() {
        let known = |packets, errors| {
            let mut results = result_of(Some(2.0), 0);
            results.streams[0].datagrams =
                Datagrams { packets: Some(packets), omitted: 0, errors, jitter: Some(0.001) };
            let near = [near(0, 100 * 1000)];
            let report = Report { datagram: Some(1000), ..report(&results, 3.0, &near) };
            report.readings().tables.iter().any(|t| t.source == "udp")
        };
        assert!(known(100, Some(100)));
        assert!(!known(101, Some(0)), "more than were sent");
        assert!(!known(90, Some(91)), "more lost than there are");
        assert!(!known(90, None), "unknown");
    }
}
