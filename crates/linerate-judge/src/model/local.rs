//! Packets that the hosts themselves lose or delay, by their own counters.

use super::ends::end;
use super::grouped::{packet_bytes, sees_arrivals};
use super::interruptions::ports;
use super::readings::{Window, growth};
use super::{on_purpose, rings};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_record::{Host, Step, Table};

/// Packets that a host lost or delayed itself, by one of its counters.
#[derive(Debug, Clone, PartialEq)]
pub struct Local {
    /// The end whose host has the counter.
    pub side: Side,
    /// What the counter counts.
    pub what: LocalEvent,
    /// What the counter belongs to: a port, `PORT COUNTER` of its driver, `PORT KIND HANDLE` of a queueing
    /// discipline, or a CPU.
    pub subject: String,
    /// Number of packets counted.
    pub count: f64,
    /// Number of packets counted per second.
    pub per_sec: f64,
    /// Mean bytes of a packet that the counter counts, if known: a group of segments may be one packet.
    pub bytes: Option<f64>,
    /// Share of packets that a queueing discipline is set to drop, if the counter counts these drops.
    pub meant: Option<f64>,
}

/// What a counter of a host counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalEvent {
    /// Packets that a queueing discipline dropped.
    Queue,
    /// Packets that a queueing discipline is set to drop, at any rate.
    Meant,
    /// Packets that a queueing discipline delayed because of its rate limit.
    Held,
    /// Packets for which the backlog of a CPU had no room.
    Backlog,
    /// Packets that a port dropped on arrival.
    Arrival,
    /// Packets that a port dropped while sending.
    Departure,
    /// Packets for which the receive ring of a port had no room.
    Ring,
    /// Collisions of frames on an Ethernet link.
    Collision,
    /// Packets dropped because the table of tracked connections had no free entry.
    Connection,
}

const COUNTERS: [(m::Metric, LocalEvent); 8] = [
    (m::QDISC_DROPS, LocalEvent::Queue),
    (m::QDISC_OVERLIMITS, LocalEvent::Held),
    (m::SOFTNET_DROPPED, LocalEvent::Backlog),
    (m::PORT_RX_DROPPED, LocalEvent::Arrival),
    (m::PORT_TX_DROPPED, LocalEvent::Departure),
    (m::PORT_RX_MISSED, LocalEvent::Ring),
    (m::PORT_COLLISIONS, LocalEvent::Collision),
    (m::CONNTRACK_DROPPED, LocalEvent::Connection),
];

impl LocalEvent {
    const fn words(self) -> &'static str {
        match self {
            Self::Queue => "dropped by the queue of",
            Self::Meant => "lost on purpose by",
            Self::Held => "held back by the shaper of",
            Self::Backlog => "dropped by the backlog of CPU",
            Self::Arrival => "dropped on arrival by",
            Self::Departure => "dropped while sending by",
            Self::Ring => "missed by the ring of",
            Self::Collision => "collided at",
            Self::Connection => "dropped for want of an entry by",
        }
    }
}

impl Local {
    /// The count in words: `900 packets dropped by the queue of near eth0 pfifo 1:`.
    pub fn words(&self) -> String {
        format!(
            "{:.0} packets {} {} {}",
            self.count,
            self.what.words(),
            self.side.name(),
            self.subject
        )
    }

    /// Name of the counter's port; for a counter of a CPU, the number of the CPU.
    pub(crate) fn port(&self) -> &str {
        self.subject.split(' ').next().unwrap_or_default()
    }

    /// Kind of the queueing discipline that the counter belongs to, such as `pfifo`.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.subject.split(' ').nth(1)
    }

    /// Whether the counter belongs to a queueing discipline that filters arriving packets; `clsact` filters departing
    /// ones as well.
    pub(crate) fn sees_arrivals(&self) -> bool {
        sees_arrivals(&self.subject)
    }
}

/// The hosts' drops and delays in a step, less those that occur on the `idle` path as well.
pub(super) fn local(
    hosts: &[Host],
    idle: Option<&Step>,
    step: &Step,
    window: Window,
) -> Vec<Local> {
    let of = |(metric, what): &(m::Metric, LocalEvent)| {
        let (metric, what) = (*metric, *what);
        let grown = move |(side, table): (Side, &Table)| {
            let (count, secs) = growth(table, metric, window)?;
            let of_others = matches!(what, LocalEvent::Arrival | LocalEvent::Connection)
                || sees_arrivals(&table.subject);
            let strays = idle.filter(|_| of_others);
            let strays = strays.and_then(|idle| at_rest(idle, side, table, metric));
            let count = count - strays.unwrap_or(0.0) * secs;
            (count > 0.0).then(|| Local {
                side,
                what,
                subject: table.subject.clone(),
                count,
                per_sec: count / secs,
                bytes: end(step, side).and_then(|end| packet_bytes(end, what, table, window)),
                meant: None,
            })
        };
        ports(step, metric.source).filter_map(grown).collect::<Vec<_>>()
    };
    let mut all = COUNTERS.iter().flat_map(of).collect();
    on_purpose::part(&mut all, step, window);
    rings::add(&mut all, hosts, step, window);
    all
}

/// Number of events, above the counted ones, that may be usual in the same time: if none was counted, up to three are
/// expected, at 95 %.
//= Hanley, Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249(13), 1983
const UNSEEN: f64 = 3.0;

/// The most drops per second of a port, or of its filter, that have nothing to do with the load: frames of protocols
/// that the host does not support, such as spanning tree, arrive all the time.
fn at_rest(idle: &Step, side: Side, table: &Table, metric: m::Metric) -> Option<f64> {
    let mut same = ports(idle, metric.source)
        .filter(|(s, t)| *s == side && t.subject == table.subject)
        .map(|(_, table)| table);
    let (count, secs) = growth(same.next()?, metric, Window::of(idle))?;
    Some((count + UNSEEN) / secs)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;
    use linerate_facts::HostFacts;
    use linerate_facts::nic::Nic;
    use linerate_facts::route::Route;
    use linerate_plan::{Purpose, StepPlan};
    use linerate_record::EndReadings;
    use linerate_units::Nanos;

    /// A step of one second whose far end read `tables`.
    pub(in super::super) fn loaded(tables: Vec<Table>) -> Step {
        let far = EndReadings { tables, ..EndReadings::default() };
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
            took: Nanos(0),
            trouble: None,
        }
    }

    /// The far host, whose `eth0` has this driver.
    pub(in super::super) fn host(driver: &str) -> Host {
        let nic = Nic { name: "eth0".to_owned(), driver: driver.to_owned(), ..Nic::default() };
        let route = Route { ports: vec![nic], ..Route::default() };
        Host { side: Side::Far, facts: HostFacts { route: Some(route), ..HostFacts::default() } }
    }

    /// Reported drops on arrival, for a number of drops in one second of the idle path (`None` without one), and of
    /// load.
    fn arrivals(idle: Option<i64>, dropped: i64) -> Option<f64> {
        let step = |dropped: i64| {
            let port = table("eth0", &[(m::PORT_RX_DROPPED, [7, 7 + dropped])]);
            let ring = table("eth0", &[(m::PORT_RX_MISSED, [7, 7 + dropped])]);
            let queue = |subject| table(subject, &[(m::QDISC_DROPS, [7, 7 + dropped])]);
            loaded(vec![port, ring, queue("eth0 pfifo 1:"), queue("eth0 ingress ffff:")])
        };
        let idle = idle.map(step);
        let all = local(&[], idle.as_ref(), &step(dropped), WHOLE);
        let of = |what| all.iter().find(|l| l.what == what).map(|l| l.per_sec);
        assert_eq!(of(LocalEvent::Ring), Some(dropped as f64), "never at rest");
        assert_eq!(of(LocalEvent::Queue), Some(dropped as f64), "nor what leaves");
        let filter = all.iter().find(|l| l.sees_arrivals());
        assert_eq!(filter.map(|l| l.per_sec), of(LocalEvent::Arrival));
        of(LocalEvent::Arrival)
    }

    #[test]
    fn frames_that_a_port_drops_all_the_time_are_not_of_the_load() {
        assert_eq!(arrivals(None, 4), Some(4.0), "it was not read before");
        assert_eq!((arrivals(Some(0), 3), arrivals(Some(0), 4)), (None, Some(1.0)));
        assert_eq!((arrivals(Some(2), 5), arrivals(Some(2), 60)), (None, Some(55.0)));
    }
}
