//! Whether packets are lost all the time, or were lost only once.

use super::readings::Window;
use linerate_facts::metric as m;
use linerate_record::{EndReadings, Step, Table};
use linerate_units::Nanos;

/// Number of equal parts of a step: packets are lost throughout the step if some are retransmitted in every part.
const PARTS: u64 = 4;

/// Minimum number of loss episodes at which packets are lost repeatedly. The overflow of a queue by streams that start
/// is a single episode.
const EPISODES: usize = 3;

/// Number of round trips in which a sender recovers from simultaneous losses, and of samples that such a recovery
/// covers.
const ROUND_TRIPS: u64 = 4;
const SAMPLES: u64 = 2;

/// The counters of lost packets: retransmitted segments, and packets that a queue of the host refused, which the kernel
/// does not count as sent.
const COUNTED: [(&str, m::Metric); 2] = [("tcp", m::TCP_RETRANS), ("qdisc", m::QDISC_DROPS)];

/// Whether packets were lost throughout a step, and not only around one outage.
pub(super) fn loses_throughout(step: &Step) -> bool {
    let part = (step.plan.measure.0 / PARTS).max(1);
    let washout = step.plan.washout.0;
    let tables = step.ends.iter().flat_map(|end| {
        let of = |(source, metric)| end.about(source, |_| true).map(move |table| (table, metric));
        COUNTED.into_iter().flat_map(of)
    });
    let lost = tables.flat_map(|(table, metric)| {
        let counts = table.column(metric).unwrap_or_default();
        let grown = counts.windows(2).zip(table.at.iter().skip(1));
        // Losses while the streams start do not count.
        let grown = grown.filter(move |(pair, at)| pair[1] > pair[0] && **at > washout);
        grown.map(move |(_, at)| (at - washout - 1) / part)
    });
    let mut parts = [false; PARTS as usize];
    for part in lost {
        if let Some(part) = parts.get_mut(part as usize) {
            *part = true;
        }
    }
    parts == [true; PARTS as usize]
}

/// Whether a stream of `set` retransmitted segments in several episodes within a window.
pub(super) fn loses_repeatedly(
    sending: &EndReadings,
    set: u32,
    window: Window,
    rtt: Option<Nanos>,
) -> bool {
    let prefix = format!("s{set}/");
    let mut tables = sending.about("tcp", |s| s.starts_with(&prefix));
    tables.any(|table| episodes(table, window, rtt.unwrap_or_default()) >= EPISODES)
}

/// Number of separate times in a window at which a stream retransmitted segments.
pub(super) fn episodes(table: &Table, window: Window, rtt: Nanos) -> usize {
    let counts = table.column(m::TCP_RETRANS).unwrap_or_default();
    let grown = counts.windows(2).zip(table.at.windows(2));
    let within = |at: u64| (window.from..=window.to).contains(&at);
    let grown = grown.filter(|(count, at)| count[1] > count[0] && within(at[1]));
    let trips = rtt.0.saturating_mul(ROUND_TRIPS);
    let mut last = None;
    let apart = grown.filter(|(_, at)| {
        let between = last.replace(at[1]).map(|last| at[1] - last);
        let samples = (at[1] - at[0]).saturating_mul(SAMPLES);
        between.is_none_or(|between| between > trips.max(samples))
    });
    apart.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_record::Column;

    /// Time between two samples of a step.
    const TICK: Nanos = Nanos::from_millis(100);

    #[test]
    fn what_is_sent_again_at_once_is_one_episode() {
        let at = |counts: &[i64], rtt_ms| {
            let table = Table {
                source: "tcp".to_owned(),
                subject: "s1/0".to_owned(),
                at: (0..counts.len() as u64).map(|n| n * TICK.0).collect(),
                columns: vec![Column {
                    name: m::TCP_RETRANS.name.into(),
                    unit: m::TCP_RETRANS.unit,
                    kind: m::TCP_RETRANS.kind,
                    values: counts.to_vec(),
                }],
            };
            let all = Window { from: 0, to: u64::MAX };
            episodes(&table, all, Nanos::from_millis(rtt_ms))
        };
        let thrice = [0, 1, 1, 1, 2, 2, 2, 3];
        assert_eq!(at(&thrice, 1), 3);
        assert_eq!(at(&thrice, 74), 3, "296 ms are less than 300 ms");
        assert_eq!(at(&thrice, 76), 1, "so long it may take to get over one");
        assert_eq!(at(&[0, 10, 20, 30, 40, 50, 60, 60], 1), 1, "a long one");
        assert_eq!(at(&[0; 8], 1), 0);
    }
}
