//! Loads whose payload never arrives although small messages do: full packets may be too large for the path.

use super::datagrams;
use super::ends::{end, stream_set};
use super::load::is_ipv6;
use super::readings::{Window, growth};
use super::tcp::retransmits;
use linerate_facts::metric as m;
use linerate_plan::SetPlan;
use linerate_plan::path::Direction;
use linerate_plan::transport::{self, Feature};
use linerate_record::{EndReadings, Record, Step, Total};
use linerate_units::Bytes;

/// Size in bytes of packets that every path carries.
//= RFC 791, section 3.1: every internet module must be able to receive a datagram of 576 octets
const ALWAYS: u64 = 576;
/// Largest payload of a stream, in bytes, that may be acknowledged although full packets are lost: the content of small
/// packets, such as the mark that opens the stream.
const FEW: f64 = 512.0;
/// Bytes of a full packet, for a port whose MTU was not read.
//= RFC 894: 1500 bytes
const USUAL: u64 = 1500;
/// Bytes of the headers of a datagram.
//= RFC 791 and RFC 8200, section 3; RFC 768
const HEADERS_V4: u64 = 20 + 8;
const HEADERS_V6: u64 = 40 + 8;

/// Packets that do not arrive, as far as their size is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vanished {
    /// The largest packet that the payload was sent in, as far as the ports are known.
    pub packet: Bytes,
    /// Payload of an echo request that makes a packet of that size.
    pub echo: Bytes,
}

/// The packets of a step's load that vanished. `None` if something arrived, nothing was sent, or the counters are
/// unknown. Small messages do arrive: the streams were connected, and both ends agreed on the step.
pub fn vanished(record: &Record, step: &Step, direction: Direction) -> Option<Vanished> {
    let set = stream_set(record, step, direction)?;
    let headers = if is_ipv6(record) { HEADERS_V6 } else { HEADERS_V4 };
    let datagrams = transport::of(&record.start.plan.engine).has(Feature::Datagrams);
    let packet = if datagrams {
        let made = set.ends.get(usize::from(direction == Direction::Reverse))?;
        made.write_size.saturating_add(headers)
    } else {
        full_packet(record)
    };
    let ends = (end(step, direction.sender())?, end(step, direction.receiver()));
    let nothing =
        if datagrams { no_datagram(set.plan.id, ends) } else { no_segment(&set.plan, ends) };
    (nothing && packet > ALWAYS)
        .then_some(Vanished { packet: Bytes(packet), echo: Bytes(packet.saturating_sub(headers)) })
}

/// A sum over the streams of a set; `None` if the end reports no streams.
fn total(end: &EndReadings, set: u32, of: fn(&Total) -> u64) -> Option<u64> {
    let totals = end.totals.iter().filter(|t| t.set == set);
    totals.map(of).reduce(u64::saturating_add)
}

/// Whether datagrams were sent, and none arrived.
fn no_datagram(set: u32, (sending, receiving): (&EndReadings, Option<&EndReadings>)) -> bool {
    let Some(receiving) = receiving else {
        return false;
    };
    total(sending, set, |t| t.sent).is_some_and(|all| all > 0)
        && total(receiving, set, |t| t.received) == Some(0)
        && datagrams::received(receiving, set) != Some(true)
}

/// Whether segments were retransmitted, and none arrived.
fn no_segment(plan: &SetPlan, (sending, receiving): (&EndReadings, Option<&EndReadings>)) -> bool {
    let arrived = receiving.and_then(|end| total(end, plan.id, |t| t.received));
    let few = |acked: f64| acked < FEW * f64::from(plan.knobs.streams);
    let unacked = acked(sending, plan.id).map(few);
    // A path that is merely slow causes no retransmissions. An end that reports only sums may have filled its send
    // buffer before it began to count.
    let retransmitted = retransmits(sending, plan.id, WHOLE);
    retransmitted.is_some_and(|retransmitted| retransmitted > 0.0)
        && unacked.unwrap_or(arrived == Some(0))
        && arrived.unwrap_or(0) == 0
        && total(sending, plan.id, |t| t.sent).is_some()
}

/// A window of the whole step.
const WHOLE: Window = Window { from: 0, to: u64::MAX };

/// Payload that the other end has acknowledged; `None` if the kernel does not report it.
fn acked(sending: &EndReadings, set: u32) -> Option<f64> {
    let prefix = format!("s{set}/");
    let sockets = sending.about("tcp", |s| s.starts_with(&prefix));
    let each: Option<Vec<f64>> = sockets
        .map(|socket| growth(socket, m::TCP_BYTES_ACKED, WHOLE).map(|(grown, _)| grown))
        .collect();
    each.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

/// Bytes of the largest packet that the known ports support.
fn full_packet(record: &Record) -> u64 {
    let ports = record.hosts.iter().filter_map(|h| h.facts.port.as_ref());
    let mtu = ports.filter_map(|port| port.mtu).min();
    mtu.map_or(USUAL, u64::from)
}

#[cfg(test)]
mod tests {
    use super::super::testing::table;
    use super::*;
    use linerate_facts::metric::Metric;
    use linerate_plan::{Knobs, Pattern, Plan, Purpose, SetPlan, StepPlan};
    use linerate_record::{FORMAT, Set, SetEnd, Start};
    use linerate_units::Nanos;

    const FORWARD: Direction = Direction::Forward;

    /// A record of a forward load over a transport, whose sender writes `size` bytes at once.
    fn record(engine: &str, size: u64) -> Record {
        let plan = SetPlan {
            id: 0,
            pattern: Pattern::Stream { direction: FORWARD },
            knobs: Knobs::default(),
        };
        let made = SetEnd { write_size: size, ..SetEnd::default() };
        let start = Start {
            format: FORMAT,
            linerate: String::new(),
            wall_secs: 0,
            plan: Plan {
                engine: engine.to_owned(),
                peer: Some("brook".to_owned()),
                reach: Vec::new(),
                knobs: Knobs::default(),
                directions: vec![FORWARD],
                time: Nanos::from_secs(1),
                sweep: false,
                trials: false,
            },
            made: linerate_record::Made::default(),
            note: String::new(),
            study: None,
        };
        Record {
            start,
            hosts: Vec::new(),
            sets: vec![Set { plan, ends: vec![made.clone(), made] }],
            trials: Vec::new(),
            steps: Vec::new(),
            imported: None,
            end: None,
        }
    }

    /// A step with the readings of these two ends.
    fn step(ends: [EndReadings; 2]) -> Step {
        Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::Base { direction: FORWARD },
                sets: vec![0],
                washout: Nanos(0),
                measure: Nanos::from_secs(1),
                tick: Nanos::from_millis(100),
            },
            began: Nanos(0),
            ends: ends.into(),
            clock: None,
            took: Nanos(0),
            trouble: None,
        }
    }

    /// What vanished, given the counters of the sender's kernel and the bytes that each end moved.
    fn of(
        engine: &str,
        size: u64,
        counted: &[(Metric, i64)],
        [put, got]: [Option<u64>; 2],
    ) -> Option<Vanished> {
        let total = |sent, received| Total { set: 0, stream: 0, sent, received, complete: false };
        let columns: Vec<(Metric, [i64; 2])> =
            counted.iter().map(|(metric, grown)| (*metric, [7, 7 + grown])).collect();
        let near = EndReadings {
            tables: (!columns.is_empty()).then(|| table("s0/0", &columns)).into_iter().collect(),
            totals: put.map(|put| total(put, 0)).into_iter().collect(),
            ..EndReadings::default()
        };
        let far = EndReadings {
            totals: got.map(|got| total(0, got)).into_iter().collect(),
            ..EndReadings::default()
        };
        vanished(&record(engine, size), &step([near, far]), FORWARD)
    }

    #[test]
    fn of_connections_nothing_is_acknowledged_and_some_is_sent_again() {
        let tcp = |acked: i64, retransmitted: i64, moved| {
            let counted = [(m::TCP_BYTES_ACKED, acked), (m::TCP_RETRANS, retransmitted)];
            of("tcp", 0, &counted, moved)
        };
        let nothing = [Some(9000), Some(0)];
        let found = tcp(37, 2, nothing).unwrap();
        assert_eq!((found.packet, found.echo), (Bytes(1500), Bytes(1472)));
        // The far end was lost before it could report.
        assert!(tcp(37, 2, [Some(9000), None]).is_some());
        assert!(tcp(511, 1, nothing).is_some());
        assert_eq!(tcp(512, 1, nothing), None, "more than a word");
        assert_eq!(tcp(37, 0, nothing), None, "slow, not lost");
        assert_eq!(tcp(37, 2, [Some(9000), Some(1)]), None, "something came");
        assert_eq!(tcp(0, 0, [Some(0), Some(0)]), None, "nothing was sent");
        assert!(tcp(0, 1, [Some(0), Some(0)]).is_some(), "what was retransmitted was sent");
        assert_eq!(tcp(37, 2, [None, Some(0)]), None, "the sender does not tell");
        assert_eq!(of("tcp", 0, &[], nothing), None, "nobody knows");
        // For a sender that is not sampled, only its retransmissions are known.
        assert!(of("tcp", 0, &[(m::TCP_RETRANS, 2)], nothing).is_some());
        assert_eq!(of("tcp", 0, &[(m::TCP_RETRANS, 2)], [Some(9000), None]), None);
    }

    #[test]
    fn datagrams_that_every_path_takes_are_not_too_large() {
        let udp = |size, received| of("udp", size, &[], [Some(9000), received]);
        assert_eq!(udp(1472, Some(0)).unwrap().echo, Bytes(1472));
        assert_eq!(udp(ALWAYS - HEADERS_V4, Some(0)), None);
        assert!(udp(ALWAYS - HEADERS_V4 + 1, Some(0)).is_some());
        assert_eq!(udp(1472, Some(1472)), None);
        assert_eq!(udp(1472, None), None, "nobody knows");
        assert_eq!(of("udp", 1472, &[], [Some(0), Some(0)]), None, "nothing was sent");
    }
}
