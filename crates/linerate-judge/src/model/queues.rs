//! Times for which packets waited in the queues of the sender's own port.

use super::readings::{Window, gauge, growth, mean, per_second};
use super::tcp::payload_sent;
use linerate_facts::metric as m;
use linerate_record::{EndReadings, Table};
use linerate_units::Nanos;

/// A queueing discipline or class of the sender's port that the load's packets passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Port, kind and handle of the queueing discipline: `PORT KIND HANDLE`.
    pub subject: String,
    /// Mean time for which a byte waited in the queue, less the queue's delay on the idle path.
    pub wait: Nanos,
}

/// Minimum share of the load's bytes that a queueing discipline must have sent, to count as passed by all of them.
const PASSED: f64 = 0.9;

/// The queues that the streams of `set` passed; `None` if no queue was read, as for a port without queues. `idle` holds
/// the readings of the idle path, if there are any.
pub(super) fn queues(
    sending: &EndReadings,
    set: u32,
    window: Window,
    idle: Option<(&EndReadings, Window)>,
) -> Option<Vec<Queue>> {
    sending.about("qdisc", |_| true).next()?;
    let grown = |t: &Table, metric| growth(t, metric, window).map(|(grown, _)| grown);
    let ours = payload_sent(sending, set, window).unwrap_or(0.0);
    let passed = |t: &&Table| {
        let carried = grown(t, m::QDISC_BYTES);
        ours > 0.0 && carried.is_some_and(|bytes| bytes >= ours * PASSED)
    };
    let queue = |table: &Table| {
        let always = delay(sending, table, window).or_else(|| {
            let (idle, window) = idle?;
            wait(idle.of("qdisc", &table.subject)?, window)
        });
        Some(Queue {
            subject: table.subject.clone(),
            wait: Nanos((wait(table, window)? - always.unwrap_or(0.0)).max(0.0) as u64),
        })
    };
    let all = sending.about("qdisc", |_| true).filter(passed);
    Some(all.filter_map(queue).collect())
}

/// Mean time for which a byte waited in a queueing discipline, in nanoseconds.
//= Little, "A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961
fn wait(table: &Table, window: Window) -> Option<f64> {
    let backlog = mean(gauge(table, m::QDISC_BACKLOG, window))?;
    let rate = per_second(table, m::QDISC_BYTES, window).filter(|rate| *rate > 0.0)?;
    Some(backlog / rate * 1e9)
}

/// The delay of all packets that is set in a queueing discipline, in nanoseconds; `None` if it is not reported.
fn delay(end: &EndReadings, queue: &Table, window: Window) -> Option<f64> {
    let set = end.of("shaper", &queue.subject)?;
    mean(gauge(set, m::SHAPER_DELAY, window))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;

    fn discipline(subject: &str, sent: i64, backlog: i64) -> Table {
        let sent = (m::QDISC_BYTES, [3, 3 + sent]);
        table(subject, &[sent, (m::QDISC_BACKLOG, [backlog, backlog])])
    }

    fn found(disciplines: &[Table]) -> Option<Vec<Queue>> {
        let ours = table("s3/0", &[(m::TCP_BYTES_SENT, [7, 1_000_007])]);
        let end = EndReadings {
            tables: disciplines.iter().cloned().chain([ours]).collect(),
            ..EndReadings::default()
        };
        queues(&end, 3, WHOLE, None)
    }

    /// The wait for 50 kB at 1 MB/s in netem, less the wait on the idle path and the delay that is set in netem.
    fn beyond(idle: Option<i64>, delay: Option<i64>) -> Nanos {
        let netem = |backlog| discipline("eth0 netem 1:", 1_000_000, backlog);
        let set = |ms: i64| table("eth0 netem 1:", &[(m::SHAPER_DELAY, [ms * 1_000_000; 2])]);
        let ours = table("s3/0", &[(m::TCP_BYTES_SENT, [7, 1_000_007])]);
        let tables = [netem(50_000), ours].into_iter().chain(delay.map(set));
        let end = |tables| EndReadings { tables, ..EndReadings::default() };
        let idle = idle.map(|backlog| end(vec![netem(backlog)]));
        let idle = idle.as_ref().map(|end| (end, WHOLE));
        queues(&end(tables.collect()), 3, WHOLE, idle).unwrap()[0].wait
    }

    #[test]
    fn what_a_discipline_always_delays_is_no_queue() {
        assert_eq!(beyond(None, None), Nanos::from_millis(50));
        assert_eq!(beyond(None, Some(20)), Nanos::from_millis(30));
        assert_eq!(beyond(Some(15_000), None), Nanos::from_millis(35));
        assert_eq!(beyond(Some(15_000), Some(20)), Nanos::from_millis(30), "it says so");
        assert_eq!(beyond(None, Some(60)), Nanos(0));
    }

    #[test]
    fn a_byte_waits_for_what_stands_before_it() {
        let queue = Queue { subject: "eth0 tbf 1:".into(), wait: Nanos::from_millis(50) };
        let reported = found(&[discipline("eth0 tbf 1:", 1_000_000, 50_000)]);
        assert_eq!(reported, Some(vec![queue]));
        assert_eq!(found(&[]), None, "nothing was read");
    }

    #[test]
    fn a_queue_that_ours_did_not_pass_is_none_of_ours() {
        let of = |sent| found(&[discipline("eth0 htb 1:10", sent, 50_000)]);
        assert_eq!(of(899_000).map(|q| q.len()), Some(0));
        assert_eq!(of(901_000).map(|q| q.len()), Some(1));
    }
}
