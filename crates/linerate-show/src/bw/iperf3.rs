//! The result of a test with an iperf3 server: it is made from a usual record in which the far end reports sums only.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_facts::metric::{TCP_BYTES_ACKED, TCP_BYTES_RECEIVED};
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::{self, Feature};
use linerate_record::flow::{Flow, Owner, Seen};
use linerate_record::{EndReadings, Record, Set, Step, Table};
use linerate_units::Nanos;

use super::super::flows::Look;
use super::own::untold;
use super::{FarEnd, Probe};

/// Largest number of connections that are judged: those that carried most.
const MOST_CONNECTIONS: usize = 16;

/// The connections of a test, as this end sees them.
#[derive(Debug)]
pub struct Connections {
    /// The two socket addresses of each stream, this end's first.
    pub ends: Vec<[SocketAddr; 2]>,
    /// The process that owns the connections: this program.
    pub owner: Owner,
}

impl Probe {
    /// Makes the result of a record with one iperf3 test. `target` is the server as typed, `address` its address
    /// and port.
    pub fn iperf3(target: &str, address: &str, record: &Record, connections: &Connections) -> Self {
        let mut probe = Self::of(FarEnd::Iperf3, target, address, record, None);
        let Some(step) = record.steps.first() else {
            return probe;
        };
        for result in &mut probe.results {
            if result.direction == Direction::Reverse {
                // An iperf3 server does not report how it hands payload to its kernel.
                result.handed = None;
            }
        }
        let transport = transport::of(&probe.engine);
        let results = probe.results.iter().filter(|result| result.goodput.is_some());
        let lacking: Vec<_> =
            results.flat_map(|result| untold(result, transport, &[Side::Near])).collect();
        probe.gaps.extend(lacking);
        let reported = step.ends.get(1).map_or(&[][..], |far| &far.gaps);
        probe.gaps.extend(reported.iter().cloned());
        if transport.has(Feature::Connections) {
            probe.look = look(record, step, connections, probe.lasted);
        }
        probe
    }
}

/// Judges the connections as `linerate flows` does: from the readings of this end alone.
fn look(record: &Record, step: &Step, connections: &Connections, lasted: Nanos) -> Option<Look> {
    let near = step.ends.first()?;
    let mut flows: Vec<(i64, Flow)> = (0..connections.ends.len())
        .filter_map(|stream| flow(record, step, near, connections, stream))
        .collect();
    // A connection that carried nothing is left out: its sending end is unknown.
    flows.retain(|(carried, _)| *carried > 0);
    flows.sort_by_key(|(carried, _)| std::cmp::Reverse(*carried));
    let seen = Seen {
        connections: connections.ends.len(),
        flows: flows.into_iter().take(MOST_CONNECTIONS).map(|(_, flow)| flow).collect(),
        gaps: Vec::new(),
    };
    Some(Look::judge(seen, step.trouble.is_none(), lasted, Duration::ZERO))
}

/// One connection, with the payload bytes that it carried.
fn flow(
    record: &Record,
    step: &Step,
    near: &EndReadings,
    connections: &Connections,
    stream: usize,
) -> Option<(i64, Flow)> {
    let set = loaded(record, step)?;
    let [local, remote] = *connections.ends.get(stream)?;
    let about = |source: &str| {
        let subject = format!("s{}/{stream}", set.plan.id);
        let mut tables = near.tables.iter();
        let table = tables.find(|t| t.source == source && t.subject == subject)?;
        Some(counted(table, step.plan.washout))
    };
    let tcp = about("tcp")?;
    let carried = [TCP_BYTES_ACKED, TCP_BYTES_RECEIVED].map(|metric| {
        let values = tcp.column(metric).unwrap_or_default();
        let span = values.first().zip(values.last());
        span.map_or(0, |(first, last)| last.saturating_sub(*first))
    });
    let prefix = format!("s{}/", set.plan.id);
    let of_set = |t: &&Table| t.source == "thread" && t.subject.starts_with(&prefix);
    let threads: Vec<&Table> = near.tables.iter().filter(of_set).collect();
    // Several streams may share a thread: then each of them gets that thread's table.
    let thread = threads.get(stream % threads.len().max(1)).copied();
    let host = near.tables.iter().filter(|t| is_of_the_host(&t.source));
    let tables = [Some(tcp), about("socket"), thread.cloned()];
    let flow = Flow {
        local,
        remote,
        congestion: set.ends.first()?.congestion.clone(),
        owners: vec![connections.owner.clone()],
        ended: false,
        facts: record.hosts.first()?.facts.clone(),
        readings: EndReadings {
            tables: tables.into_iter().flatten().chain(host.cloned()).collect(),
            ..EndReadings::default()
        },
    };
    Some((carried[0].max(carried[1]), flow))
}

/// The set of streams that carries the load of a step.
fn loaded<'a>(record: &'a Record, step: &Step) -> Option<&'a Set> {
    let is_load = |set: &&Set| {
        step.plan.sets.contains(&set.plan.id) && set.plan.pattern.direction().is_some()
    };
    record.sets.iter().find(is_load)
}

/// The rows of a connection's table after the washout, which does not count.
fn counted(table: &Table, washout: Nanos) -> Table {
    let from = table.at.partition_point(|at| *at < washout.0);
    let mut counted = Table { subject: Flow::SUBJECT.to_owned(), ..table.clone() };
    counted.at.drain(..from);
    for column in &mut counted.columns {
        column.values.drain(..from.min(column.values.len()));
    }
    counted
}

/// Whether the readings of a source are about the host, not about this program's own streams.
fn is_of_the_host(source: &str) -> bool {
    const OWN: [&str; 7] = ["worker", "thread", "process", "tcp", "socket", "udp", "zerocopy"];
    !OWN.contains(&source)
}
