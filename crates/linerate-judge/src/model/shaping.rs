//! Traffic shapers of the sender's own ports: the rate that they allow, and whether packets wait in them because of it.

use super::readings::{Window, gauge, growth, mean, per_second};
use super::tcp::payload_sent;
use super::{Load, Packets};
use linerate_ceiling::part::Shared;
use linerate_ceiling::{Bounds, Cost};
use linerate_facts::metric as m;
use linerate_record::{EndReadings, Table};
use linerate_units::Rate;

/// A queueing discipline or class with its own rate, which the sender's packets passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Shaping {
    /// Port, kind and handle of the queueing discipline: `PORT KIND HANDLE`.
    pub subject: String,
    /// Highest total rate of all streams, counted in frames; `None` if there is no such limit.
    pub rate: Option<Rate>,
    /// Highest rate of each stream; `None` if there is no such limit.
    pub flow_rate: Option<Rate>,
    /// Bytes that the shaper counts for each packet in addition to the packet itself.
    pub frame: f64,
    /// Share of samples in which packets waited in the shaper because of its limit; `None` if they may have
    /// waited anyway.
    pub waiting: Option<f64>,
    /// Packets per second that the shaper's limit delayed.
    pub held: Option<f64>,
}

/// Kinds of queueing disciplines that count how often their limit delayed a packet.
//= Linux, net/sched/sch_tbf.c, sch_htb.c and sch_cake.c: `overlimits`, of a class of htb since 5.0
const COUNTING: [&str; 3] = ["tbf", "htb", "cake"];

impl Shaping {
    /// Whether the shaper counts how often its limit delayed a packet. Without this counter, `held` is
    /// meaningless.
    pub fn counts_held(&self) -> bool {
        let kind = self.subject.split(' ').nth(1);
        kind.is_some_and(|kind| COUNTING.contains(&kind))
    }

    /// The highest goodput that the shaper allows, with the formula: its rate, less the bytes that it counts for each
    /// full packet in addition to the payload.
    pub fn ceiling(&self, packets: Packets, streams: u32) -> Option<(Rate, String)> {
        let shared = self.shared(packets, streams)?;
        Some((Rate((shared.capacity.high() * 8.0) as u64), shared.formula))
    }

    /// The shaper as a part of the path that all streams share; its capacity counts payload only.
    pub(super) fn shared(&self, packets: Packets, streams: u32) -> Option<Shared> {
        let payload = packets.payload.0 as f64;
        let counted = packets.packet?.0 as f64 + self.frame;
        let (rate, times) = match (self.rate, self.flow_rate) {
            (Some(rate), _) => (rate, 1),
            (None, Some(rate)) => (rate, streams),
            (None, None) => return None,
        };
        let goodput = rate.0 as f64 * f64::from(times) * payload / counted.max(1.0);
        let times = if times > 1 { format!("{times} x ") } else { String::new() };
        Some(Shared {
            capacity: Bounds::exact(goodput / 8.0),
            cost: Cost::bytes(Bounds::exact(1.0)),
            formula: format!("{times}{rate} x {payload}/{counted}"),
        })
    }
}

impl Load {
    /// The shaper that allows the least goodput, with that goodput and its formula.
    pub fn shaped(&self) -> Option<(&Shaping, Rate, String)> {
        let all = self.shapers.iter().flatten().filter_map(|shaper| {
            let (rate, formula) = shaper.ceiling(self.packets?, self.streams)?;
            Some((shaper, rate, formula))
        });
        all.min_by_key(|(_, rate, _)| *rate)
    }
}

/// Ratio of a queue to the data that the shaper's set delay holds at the rate of the traffic. A longer queue is due to
/// the shaper's rate; a smaller excess may be uneven traffic.
const DELAYED: f64 = 1.2;

/// Minimum number of packets in a queueing discipline at which some of them wait: the discipline may still keep the
/// packet being sent.
const SEVERAL: f64 = 2.0;

/// Minimum share of the load's bytes that a queueing discipline must have sent, to count as passed by all of them.
const PASSED: f64 = 0.9;

/// The shapers of the sender's own ports that the streams of `set` passed: those that sent about as much as the streams
/// did. Filters choose the class of a packet, and the counter of the class shows the choice.
pub(super) fn shapers(sending: &EndReadings, set: u32, window: Window) -> Option<Vec<Shaping>> {
    sending.about("qdisc", |_| true).next()?;
    let grown = |t: &Table, metric| growth(t, metric, window).map(|(grown, _)| grown);
    let ours = payload_sent(sending, set, window).unwrap_or(0.0);
    let all: Vec<(Shaping, f64)> = sending
        .about("shaper", |_| true)
        .filter_map(|set| {
            let queue = sending.about("qdisc", |s| s == set.subject).next()?;
            Some((shaping(set, queue, window)?, grown(queue, m::QDISC_BYTES)?))
        })
        .collect();
    // A port may have several queues with equal limits, over which flows are spread.
    let moved = |shaper: &Shaping| {
        let alike = all.iter().filter(|(other, _)| {
            let same = other.flow_rate.is_some() && other.flow_rate == shaper.flow_rate;
            other.subject == shaper.subject || (shaper.rate.is_none() && same)
        });
        alike.map(|(_, bytes)| bytes).sum::<f64>()
    };
    let passed = all.iter().filter(|(s, _)| ours > 0.0 && moved(s) >= ours * PASSED);
    Some(passed.map(|(shaper, _)| shaper.clone()).collect())
}

/// A shaper: its settings, and the counters of its queueing discipline; `None` if it sets no rate.
fn shaping(set: &Table, queue: &Table, window: Window) -> Option<Shaping> {
    let value = |metric| mean(gauge(set, metric, window));
    let rate = |metric| value(metric).filter(|v| *v > 0.0).map(|v| Rate(v as u64));
    let (rate, flow_rate) = (rate(m::SHAPER_RATE), rate(m::SHAPER_FLOW_RATE));
    rate.or(flow_rate)?;
    let shaping = Shaping {
        subject: set.subject.clone(),
        rate,
        flow_rate,
        frame: value(m::SHAPER_FRAME).unwrap_or(0.0),
        waiting: None,
        held: per_second(queue, m::QDISC_OVERLIMITS, window),
    };
    let waiting = if shaping.counts_held() || rate.is_none() {
        let backlog = gauge(queue, m::QDISC_BACKLOG, window);
        mean(backlog.map(|bytes| f64::from(u8::from(bytes > 0.0))))
    } else {
        waiting_for_it(set, queue, window)
    };
    Some(Shaping { waiting, ..shaping })
}

/// Share of the samples in which a queueing discipline held more than the packet being sent and those that its set
/// delay explains; `None` if it was not read.
fn waiting_for_it(set: &Table, queue: &Table, window: Window) -> Option<f64> {
    let delay = mean(gauge(set, m::SHAPER_DELAY, window))? / 1e9;
    let delayed = per_second(queue, m::QDISC_BYTES, window)? * delay * DELAYED;
    let all = gauge(queue, m::QDISC_WAITING, window).zip(gauge(queue, m::QDISC_BACKLOG, window));
    let waits = |(packets, bytes)| packets >= SEVERAL && bytes > delayed;
    mean(all.map(|sample| f64::from(u8::from(waits(sample)))))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;
    use linerate_units::Bytes;

    /// The tables of a queueing discipline or class that sent so many bytes, with its configured rates.
    fn queue(subject: &str, sent: i64, rate: i64, flow_rate: i64) -> [Table; 2] {
        [
            table(
                subject,
                &[
                    (m::QDISC_BYTES, [5, 5 + sent]),
                    (m::QDISC_OVERLIMITS, [1, 301]),
                    (m::QDISC_BACKLOG, [0, 9_000]),
                ],
            ),
            table(
                subject,
                &[
                    (m::SHAPER_RATE, [rate, rate]),
                    (m::SHAPER_FLOW_RATE, [flow_rate, flow_rate]),
                    (m::SHAPER_FRAME, [14, 14]),
                ],
            ),
        ]
    }

    /// The shapers that a load of 1 MB passed.
    fn passed(queues: &[[Table; 2]]) -> Vec<Shaping> {
        let ours = table("s3/0", &[(m::TCP_BYTES_SENT, [7, 1_000_007])]);
        let tables = queues.iter().flatten().cloned().chain([ours]);
        let end = EndReadings { tables: tables.collect(), ..EndReadings::default() };
        shapers(&end, 3, WHOLE).unwrap()
    }

    #[test]
    fn a_class_counts_if_it_sent_what_the_streams_did() {
        let both = [
            queue("eth0 htb 1:10", 899_000, 1_000, 0),
            queue("eth0 htb 1:11", 1_060_000, 2_000, 0),
        ];
        let found = passed(&both);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].subject, "eth0 htb 1:11");
        assert_eq!((found[0].rate, found[0].flow_rate), (Some(Rate(2_000)), None));
        assert_eq!((found[0].held, found[0].waiting), (Some(300.0), Some(0.5)));
        assert_eq!(passed(&[queue("eth0 htb 1:10", 901_000, 1_000, 0)]).len(), 1);
        assert_eq!(shapers(&EndReadings::default(), 3, WHOLE), None, "not read");
    }

    #[test]
    fn flows_are_spread_over_queues_with_one_limit() {
        let halves = |a, b| {
            let queues = [queue("eth0 fq 1:", 500_000, 0, a), queue("eth0 fq 2:", 500_000, 0, b)];
            passed(&queues).len()
        };
        assert_eq!(halves(1_000, 1_000), 2);
        assert_eq!(halves(1_000, 2_000), 0, "who got which is not known");
        let total =
            [queue("eth0 tbf 1:", 500_000, 1_000, 0), queue("eth0 tbf 2:", 500_000, 1_000, 0)];
        assert_eq!(passed(&total).len(), 0, "each has its own rate");
    }

    /// The share of two samples in which packets wait because of the rate of a netem of 1 Gb/s that sent 1 MB in a
    /// second. In the second sample it held so many packets and bytes.
    fn waiting(delay: Option<i64>, packets: i64, bytes: i64) -> Option<f64> {
        let subject = "eth0 netem 1:";
        let sent = (m::QDISC_BYTES, [5, 1_000_005]);
        let waits = [(m::QDISC_WAITING, [0, packets]), (m::QDISC_BACKLOG, [0, bytes])];
        let rate = (m::SHAPER_RATE, [1_000_000_000; 2]);
        let delay = delay.map(|ms| (m::SHAPER_DELAY, [ms * 1_000_000; 2]));
        let limits: Vec<_> = [rate].into_iter().chain(delay).collect();
        let queue = table(subject, &[sent, waits[0], waits[1]]);
        shaping(&table(subject, &limits), &queue, WHOLE)?.waiting
    }

    #[test]
    fn what_is_delayed_or_sent_does_not_wait_for_a_rate() {
        assert_eq!(waiting(Some(0), 1, 9_000), Some(0.0), "it is being sent");
        assert_eq!(waiting(Some(0), 2, 9_000), Some(0.5));
        // A delay of a tenth of a second holds 100 kB.
        assert_eq!(waiting(Some(100), 80, 119_000), Some(0.0));
        assert_eq!(waiting(Some(100), 80, 121_000), Some(0.5));
        assert_eq!(waiting(None, 80, 121_000), None, "nobody read its delay");
        let found = passed(&[queue("eth0 netem 1:", 1_000_000, 1_000, 0)]);
        assert_eq!(found[0].waiting, None, "nobody counted packets");
        let result_of =
            |subject: &str| passed(&[queue(subject, 1_000_000, 1_000, 0)])[0].counts_held();
        assert!(
            result_of("eth0 tbf 1:") && result_of("eth0 htb 1:10") && result_of("eth0 cake 1:")
        );
        assert!(
            !result_of("eth0 netem 1:") && !result_of("eth0 hfsc 1:10") && !result_of("eth0 fq 1:")
        );
    }

    #[test]
    fn a_ceiling_is_the_payload_of_full_packets() {
        let full = Packets { payload: Bytes(1448), packet: Some(Bytes(1500)), path_mtu: None };
        let flow = &passed(&[queue("eth0 fq 1:", 1_000_000, 0, 100_000_000)])[0];
        let (rate, formula) = flow.ceiling(full, 2).unwrap();
        assert_eq!(formula, "2 x 100 Mb/s x 1448/1514");
        assert_eq!(rate.0 / 1_000_000, 191);
        let total = &passed(&[queue("eth0 tbf 1:", 1_000_000, 100_000_000, 0)])[0];
        assert_eq!(total.ceiling(full, 2).unwrap().1, "100 Mb/s x 1448/1514");
        let unread = Packets { packet: None, ..full };
        assert_eq!(total.ceiling(unread, 2), None);
    }
}
