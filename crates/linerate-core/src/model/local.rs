//! What hosts lost or held back themselves: drops on their own ground, shapers of their own ports.

use super::interruptions::ports;
use super::readings::{Window, gauge, growth, mean, per_second};
use super::tcp::payload_sent;
use super::{Load, TcpShares};
use crate::metric as m;
use crate::plan::Side;
use crate::record::{EndReadings, Step, Table};
use crate::units::Rate;

/// Something that a host lost or held back itself, as one of its counters tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Local {
    /// Whose counter.
    pub side: Side,
    /// What it counts.
    pub what: LocalEvent,
    /// What it belongs to: a port, `PORT KIND HANDLE` of a queueing discipline, a CPU.
    pub subject: String,
    /// How often it happened.
    pub count: f64,
    /// How often in a second.
    pub per_sec: f64,
}

/// What a counter of a host counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalEvent {
    /// Packets that a queueing discipline dropped.
    Queue,
    /// Packets that a queueing discipline let wait because of a limit.
    Held,
    /// Packets for which the backlog of a CPU had no room.
    Backlog,
    /// Packets that a port dropped on arrival.
    Arrival,
    /// Packets that a port dropped on the way out.
    Departure,
    /// Packets for which the receive ring of a port had no room.
    Ring,
    /// Collisions.
    Collision,
}

const COUNTERS: [(m::Metric, LocalEvent); 7] = [
    (m::QDISC_DROPS, LocalEvent::Queue),
    (m::QDISC_OVERLIMITS, LocalEvent::Held),
    (m::SOFTNET_DROPPED, LocalEvent::Backlog),
    (m::PORT_RX_DROPPED, LocalEvent::Arrival),
    (m::PORT_TX_DROPPED, LocalEvent::Departure),
    (m::PORT_RX_MISSED, LocalEvent::Ring),
    (m::PORT_COLLISIONS, LocalEvent::Collision),
];

impl LocalEvent {
    const fn words(self) -> &'static str {
        match self {
            Self::Queue => "dropped by the queue of",
            Self::Held => "held back by the shaper of",
            Self::Backlog => "dropped by the backlog of CPU",
            Self::Arrival => "dropped on arrival by",
            Self::Departure => "dropped on the way out by",
            Self::Ring => "missed by the ring of",
            Self::Collision => "collided at",
        }
    }
}

impl Local {
    /// `900 packets dropped by the queue of near eth0 pfifo 1:`.
    pub fn words(&self) -> String {
        format!(
            "{:.0} packets {} {} {}",
            self.count,
            self.what.words(),
            self.side.name(),
            self.subject
        )
    }
}

/// Everything that the hosts counted beyond what they count `idle`.
pub(super) fn local(idle: Option<&Step>, step: &Step, window: Window) -> Vec<Local> {
    let of = |(metric, what): &(m::Metric, LocalEvent)| {
        let (metric, what) = (*metric, *what);
        let grown = move |(side, table): (Side, &Table)| {
            let (count, secs) = growth(table, metric, window)?;
            let strays = idle.filter(|_| what == LocalEvent::Arrival);
            let strays = strays.and_then(|idle| at_rest(idle, side, table, metric));
            let count = count - strays.unwrap_or(0.0) * secs;
            (count > 0.0).then(|| Local {
                side,
                what,
                subject: table.subject.clone(),
                count,
                per_sec: count / secs,
            })
        };
        ports(step, metric.source)
            .filter_map(grown)
            .collect::<Vec<_>>()
    };
    COUNTERS.iter().flat_map(of).collect()
}

/// So many events more than were counted may be usual in as long: of none, three in 95 of 100 cases.
//= Hanley, Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249(13), 1983
const UNSEEN: f64 = 3.0;

/// What a port drops in a second at the most that has nothing to do with the load: frames of protocols that the host
/// does not speak, spanning tree say, come all the time.
fn at_rest(idle: &Step, side: Side, table: &Table, metric: m::Metric) -> Option<f64> {
    let mut same = ports(idle, metric.source)
        .filter(|(s, t)| *s == side && t.subject == table.subject)
        .map(|(_, table)| table);
    let (count, secs) = growth(same.next()?, metric, Window::of(idle))?;
    Some((count + UNSEEN) / secs)
}

/// A queueing discipline or class with a rate of its own, which the sender's packets passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Shaping {
    /// `PORT KIND HANDLE`, as of the discipline.
    pub subject: String,
    /// The most that passes in all, counted in frames.
    pub rate: Option<Rate>,
    /// The most that each stream gets.
    pub flow_rate: Option<Rate>,
    /// Bytes that it counts for each packet besides the packet itself.
    pub frame: f64,
    /// Share of samples in which packets waited in it.
    pub waiting: Option<f64>,
    /// Packets that a limit held back, each second.
    pub held: Option<f64>,
}

impl Shaping {
    /// The most goodput that it leaves, and how that comes about: its rate, less what it counts besides
    /// the payload of a full packet.
    pub fn ceiling(&self, tcp: &TcpShares, streams: u32) -> Option<(Rate, String)> {
        let (payload, packet) = (tcp.mss?.0 as f64, tcp.packet?.0 as f64);
        let counted = packet + self.frame;
        let (rate, times) = match (self.rate, self.flow_rate) {
            (Some(rate), _) => (rate, 1),
            (None, Some(rate)) => (rate, streams),
            (None, None) => return None,
        };
        let goodput = rate.0 as f64 * f64::from(times) * payload / counted.max(1.0);
        let times = if times > 1 {
            format!("{times} x ")
        } else {
            String::new()
        };
        Some((
            Rate(goodput as u64),
            format!("{times}{rate} x {payload}/{counted}"),
        ))
    }
}

impl Load {
    /// The shaper that leaves the least, with that goodput and its formula.
    pub fn shaped(&self) -> Option<(&Shaping, Rate, String)> {
        let all = self.shapers.iter().flatten().filter_map(|shaper| {
            let (rate, formula) = shaper.ceiling(&self.tcp, self.streams)?;
            Some((shaper, rate, formula))
        });
        all.min_by_key(|(_, rate, _)| *rate)
    }
}

/// Share of our bytes that a discipline must have sent for all of them to pass it.
const PASSED: f64 = 0.9;

/// The shapers of the sender's own ports that the streams of `set` passed: those that sent about as
/// much as the streams did. Which class packets take is decided by filters, and told by its counter.
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
    // Flows are spread over disciplines that are alike: the queues of one port.
    let moved = |shaper: &Shaping| {
        let alike = all.iter().filter(|(other, _)| {
            let same = other.flow_rate.is_some() && other.flow_rate == shaper.flow_rate;
            other.subject == shaper.subject || (shaper.rate.is_none() && same)
        });
        alike.map(|(_, bytes)| bytes).sum::<f64>()
    };
    let passed = all
        .iter()
        .filter(|(s, _)| ours > 0.0 && moved(s) >= ours * PASSED);
    Some(passed.map(|(shaper, _)| shaper.clone()).collect())
}

/// What a shaper is set to, and what its discipline counted; `None` where it sets no rate.
fn shaping(set: &Table, queue: &Table, window: Window) -> Option<Shaping> {
    let value = |metric| mean(gauge(set, metric, window));
    let rate = |metric| value(metric).filter(|v| *v > 0.0).map(|v| Rate(v as u64));
    let (rate, flow_rate) = (rate(m::SHAPER_RATE), rate(m::SHAPER_FLOW_RATE));
    let backlog = gauge(queue, m::QDISC_BACKLOG, window);
    let waits = backlog.map(|bytes| f64::from(u8::from(bytes > 0.0)));
    rate.or(flow_rate)?;
    Some(Shaping {
        subject: set.subject.clone(),
        rate,
        flow_rate,
        frame: value(m::SHAPER_FRAME).unwrap_or(0.0),
        waiting: mean(waits),
        held: per_second(queue, m::QDISC_OVERLIMITS, window),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;
    use crate::plan::{Purpose, StepPlan};
    use crate::units::{Bytes, Nanos};

    /// A discipline or class that sent so many bytes, and is set to rates.
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

    /// The subjects of the shapers that 1 MB of ours passed.
    fn passed(queues: &[[Table; 2]]) -> Vec<Shaping> {
        let ours = table("s3/0", &[(m::TCP_BYTES_SENT, [7, 1_000_007])]);
        let tables = queues.iter().flatten().cloned().chain([ours]);
        let end = EndReadings {
            tables: tables.collect(),
            ..EndReadings::default()
        };
        shapers(&end, 3, WHOLE).unwrap()
    }

    /// What is told of drops on arrival: in a second of an idle path, if there was one, and of load.
    fn arrivals(idle: Option<i64>, loaded: i64) -> Option<f64> {
        let step = |dropped: i64| {
            let port = table("eth0", &[(m::PORT_RX_DROPPED, [7, 7 + dropped])]);
            let ring = table("eth0", &[(m::PORT_RX_MISSED, [7, 7 + dropped])]);
            let far = EndReadings {
                tables: vec![port, ring],
                ..EndReadings::default()
            };
            Step {
                plan: StepPlan {
                    index: 0,
                    purpose: Purpose::IdleLatency,
                    sets: vec![3],
                    washout: Nanos(0),
                    measure: Nanos::from_secs(1),
                    tick: Nanos::from_secs(1),
                },
                began: Nanos(0),
                ends: vec![EndReadings::default(), far],
                clock: None,
                trouble: None,
            }
        };
        let idle = idle.map(step);
        let all = local(idle.as_ref(), &step(loaded), WHOLE);
        let of = |what| all.iter().find(|l| l.what == what).map(|l| l.per_sec);
        assert_eq!(of(LocalEvent::Ring), Some(loaded as f64), "never at rest");
        of(LocalEvent::Arrival)
    }

    #[test]
    fn frames_that_a_port_drops_all_the_time_are_not_of_the_load() {
        assert_eq!(arrivals(None, 4), Some(4.0), "nobody looked before");
        assert_eq!(
            (arrivals(Some(0), 3), arrivals(Some(0), 4)),
            (None, Some(1.0))
        );
        assert_eq!(
            (arrivals(Some(2), 5), arrivals(Some(2), 60)),
            (None, Some(55.0))
        );
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
        assert_eq!(
            (found[0].rate, found[0].flow_rate),
            (Some(Rate(2_000)), None)
        );
        assert_eq!((found[0].held, found[0].waiting), (Some(300.0), Some(0.5)));
        assert_eq!(
            passed(&[queue("eth0 htb 1:10", 901_000, 1_000, 0)]).len(),
            1
        );
        assert_eq!(shapers(&EndReadings::default(), 3, WHOLE), None, "not read");
    }

    #[test]
    fn flows_are_spread_over_queues_with_one_limit() {
        let halves = |a, b| {
            let queues = [
                queue("eth0 fq 1:", 500_000, 0, a),
                queue("eth0 fq 2:", 500_000, 0, b),
            ];
            passed(&queues).len()
        };
        assert_eq!(halves(1_000, 1_000), 2);
        assert_eq!(halves(1_000, 2_000), 0, "who got which is not known");
        let total = [
            queue("eth0 tbf 1:", 500_000, 1_000, 0),
            queue("eth0 tbf 2:", 500_000, 1_000, 0),
        ];
        assert_eq!(passed(&total).len(), 0, "each has its own rate");
    }

    #[test]
    fn a_ceiling_is_the_payload_of_full_packets() {
        let tcp = TcpShares {
            mss: Some(Bytes(1448)),
            packet: Some(Bytes(1500)),
            ..TcpShares::default()
        };
        let flow = &passed(&[queue("eth0 fq 1:", 1_000_000, 0, 100_000_000)])[0];
        let (rate, formula) = flow.ceiling(&tcp, 2).unwrap();
        assert_eq!(formula, "2 x 100 Mb/s x 1448/1514");
        assert_eq!(rate.0 / 1_000_000, 191);
        let total = &passed(&[queue("eth0 tbf 1:", 1_000_000, 100_000_000, 0)])[0];
        assert_eq!(total.ceiling(&tcp, 2).unwrap().1, "100 Mb/s x 1448/1514");
        assert_eq!(total.ceiling(&TcpShares::default(), 2), None);
    }
}
