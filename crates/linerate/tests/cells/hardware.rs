//! Plants hardware that no lab has: changes facts and raw readings in the record of a real run, never derived values.

use linerate_facts::HostFacts;
use linerate_facts::metric::{self as m, Kind, Metric, Unit};
use linerate_facts::nic::{Duplex, Nic, Offloads};
use linerate_facts::route::Route;
use linerate_plan::Purpose;
use linerate_plan::path::Side;
use linerate_record::{Column, EndReadings, Record, Table};
use linerate_units::{Rate, Transfers};

use super::slot::card_in;

/// PCI address of the card that is planted in each host.
const SLOT: &str = "0000:01:00.0";

const fn at(side: Side) -> usize {
    match side {
        Side::Near => 0,
        Side::Far => 1,
    }
}

pub(super) fn facts(record: &mut Record, side: Side) -> &mut HostFacts {
    &mut record.hosts[at(side)].facts
}

pub(super) fn route(record: &mut Record, side: Side) -> &mut Route {
    facts(record, side).route.as_mut().unwrap()
}

/// The port through which the route from this side leaves.
pub(super) fn port(record: &mut Record, side: Side) -> &mut Nic {
    &mut route(record, side).ports[0]
}

/// The readings of one end, for each step.
pub(super) fn ends(record: &mut Record, side: Side) -> impl Iterator<Item = &mut EndReadings> {
    record.steps.iter_mut().map(move |step| &mut step.ends[at(side)])
}

/// The tables of a source at one end, from all steps.
pub(super) fn tables<'a>(
    record: &'a mut Record,
    side: Side,
    source: &'static str,
) -> impl Iterator<Item = &'a mut Table> {
    let all = ends(record, side).flat_map(|end| &mut end.tables);
    all.filter(move |table| table.source == source)
}

pub(super) fn column(table: &mut Table, metric: Metric) -> &mut Vec<i64> {
    let found = table.columns.iter_mut().find(|c| c.name == metric.name);
    &mut found.unwrap().values
}

/// Sets all round trips to this many microseconds: `idle` on the idle path, `beside` under load.
pub(super) fn round_trips(record: &mut Record, idle: u64, beside: u64) {
    for step in &mut record.steps {
        let micros = match step.plan.purpose {
            Purpose::IdleLatency => idle,
            _ => beside,
        };
        for timed in step.ends.iter_mut().flat_map(|end| &mut end.latencies) {
            timed.counts = vec![(micros * 1000, 500)];
        }
    }
}

/// A share of the growth of a counter, row by row.
pub(super) fn share_of(counter: &[i64], share: f64) -> Vec<i64> {
    let grown = counter.iter().map(|now| now - counter[0]);
    grown.map(|grown| (grown as f64 * share) as i64).collect()
}

/// Sets the counters of retransmitted bytes and segments to a share of the bytes sent.
pub(super) fn retransmit(table: &mut Table, share: f64) {
    // Connections that measure latency have no such counter.
    if table.column(m::TCP_BYTES_RETRANS).is_none() {
        return;
    }
    let sent = column(table, m::TCP_BYTES_SENT).clone();
    let segment = column(table, m::TCP_SND_MSS)[0].max(1) as f64;
    *column(table, m::TCP_BYTES_RETRANS) = share_of(&sent, share);
    *column(table, m::TCP_RETRANS) = share_of(&sent, share / segment);
}

/// Makes the run `times` as long, with the same bytes: shares of time stay the same.
pub(super) fn slower(record: &mut Record, times: f64) {
    let longer = |time: u64| (time as f64 * times) as u64;
    let is_clock = |column: &&mut Column| {
        let of_time = [Unit::Nanos, Unit::Micros, Unit::Ticks].contains(&column.unit);
        of_time && column.kind == Kind::Counter
    };
    for step in &mut record.steps {
        let plan = &mut step.plan;
        for time in [&mut plan.washout, &mut plan.measure, &mut plan.tick] {
            time.0 = longer(time.0);
        }
        for table in step.ends.iter_mut().flat_map(|end| &mut end.tables) {
            table.at.iter_mut().for_each(|at| *at = longer(*at));
            for clock in table.columns.iter_mut().filter(is_clock) {
                let values = clock.values.iter_mut();
                values.for_each(|value| *value = (*value as f64 * times) as i64);
            }
        }
    }
}

/// Replaces each host's virtual port by a card of this many Mb/s, in a slot that is wide enough.
pub(super) fn cards(record: &mut Record, mbps: u64) {
    for side in [Side::Near, Side::Far] {
        let facts = facts(record, side);
        let port = facts.port.as_mut().unwrap();
        "mlx5_core".clone_into(&mut port.driver);
        port.speed_mbps = Some(mbps);
        port.is_virtual = false;
        let route = facts.route.as_mut().unwrap();
        route.pci = card_in(Transfers(16_000_000_000), 8, 8, Some(256));
        let nic = &mut route.ports[0];
        nic.kind.clear();
        nic.is_virtual = false;
        "mlx5_core".clone_into(&mut nic.driver);
        SLOT.clone_into(&mut nic.device);
        SLOT.clone_into(&mut nic.pci);
        nic.link.speed = Some(Rate(mbps * 1_000_000));
        nic.link.duplex = Some(Duplex::Full);
        nic.offloads = Some(Offloads::default());
    }
}

/// Adds readings of a metric; `value` gets the seconds since the start of each step.
pub(super) fn reads(
    record: &mut Record,
    side: Side,
    (metric, subject): (Metric, &str),
    value: impl Fn(f64) -> f64,
) {
    for end in ends(record, side) {
        let axis = end.tables.iter().find(|t| t.source == "port");
        let at = axis.unwrap().at.clone();
        let values = at.iter().map(|ns| value(*ns as f64 / 1e9) as i64);
        let values = values.collect();
        end.tables.push(table(metric, subject, at, values));
    }
}

pub(super) fn table(metric: Metric, subject: &str, at: Vec<u64>, values: Vec<i64>) -> Table {
    Table {
        source: metric.source.to_owned(),
        subject: subject.to_owned(),
        at,
        columns: vec![Column {
            name: metric.name.into(),
            unit: metric.unit,
            kind: metric.kind,
            values,
        }],
    }
}

/// Moves a share of a CPU's time from one use to another, at both hosts, which are one machine.
pub(super) fn shift(record: &mut Record, cpu: &str, [from, to]: [Metric; 2], share: f64) {
    for side in [Side::Near, Side::Far] {
        for table in tables(record, side, "cpu").filter(|t| t.subject == cpu) {
            let all = |row: usize| table.columns.iter().map(|c| c.values[row]).sum::<i64>();
            let all: Vec<i64> = (0..table.at.len()).map(all).collect();
            let moved = share_of(&all, share);
            let less = column(table, from).iter_mut().zip(&moved);
            less.for_each(|(value, moved)| *value -= moved);
            let more = column(table, to).iter_mut().zip(&moved);
            more.for_each(|(value, moved)| *value += moved);
        }
    }
}

/// Adds a CPU that is idle all the time.
pub(super) fn idle_cpu(record: &mut Record, side: Side, number: u32) {
    facts(record, side).cpus.push(number);
    for end in ends(record, side) {
        let cpu = end.tables.iter().find(|t| t.source == "cpu").unwrap();
        let mut idle = cpu.clone();
        idle.subject = number.to_string();
        for row in 0..idle.at.len() {
            let all: i64 = cpu.columns.iter().map(|c| c.values[row]).sum();
            for column in &mut idle.columns {
                column.values[row] = if column.name == m::CPU_IDLE.name { all } else { 0 };
            }
        }
        end.tables.push(idle);
    }
}
