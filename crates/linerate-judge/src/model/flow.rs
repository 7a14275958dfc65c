//! The model of a connection of another program, so that the causes can explain it as well.
//!
//! This host is `near`. Nothing is read on the far host and no trial is made: readings of the far host are gaps.

use std::net::SocketAddr;

use super::behind::behind;
use super::ceilings::ceilings;
use super::cpus::cpus;
use super::deadlock::deadlock;
use super::driver::{allowances, paused};
use super::fragments::fragments;
use super::goodput::estimate;
use super::local::local;
use super::losses::loses_repeatedly;
use super::packets::{Sender, received};
use super::queues::queues;
use super::readings::{Window, gauge, mean, per_second};
use super::requested::Requested;
use super::room::Writer;
use super::shaping::shapers;
use super::tcp::tcp;
use super::{DirectionModel, Load, Model, Packets, TcpShares, Thread};
use linerate_facts::Gap;
use linerate_facts::metric as m;
use linerate_plan::path::{ByRole, Direction, Side};
use linerate_plan::transport::TCP;
use linerate_plan::{Purpose, StepPlan};
use linerate_record::flow::Flow;
use linerate_record::{EndReadings, Host, SetEnd, Step, Table};
use linerate_units::stats::steady_state;
use linerate_units::{Bytes, Nanos};

/// Minimum data that arrive in a round trip, as a share of the offered window, at which the window is full. Both values
/// are means over a sample, and a sender that waits for a window leaves up to a fifth of it unused.
const FULL_WINDOW: f64 = 0.8;

/// Share of its CPU below which each thread of a process has spare time, whichever of them serves the connection.
const IDLE: f64 = 0.5;

/// The model of a connection, in the direction that carried more; `None` if it was not read twice, or if the kernel
/// does not count its bytes.
pub fn flow(flow: &Flow) -> Option<Model> {
    let table = flow.readings.about("tcp", |_| true).next()?;
    let (first, last) = (*table.at.first()?, *table.at.last()?);
    let window = Window { from: first, to: last };
    let sent = per_second(table, m::TCP_BYTES_ACKED, window)?;
    let received = per_second(table, m::TCP_BYTES_RECEIVED, window)?;
    let direction = if sent >= received { Direction::Forward } else { Direction::Reverse };
    let hosts = vec![Host { side: Side::Near, facts: flow.facts.clone() }];
    let base = load(flow, &hosts, table, direction, window)?;
    let directions = vec![DirectionModel {
        direction,
        ceilings: ceilings(
            &hosts,
            direction,
            base.packets,
            base.shapers.as_deref().unwrap_or_default(),
            base.goodput.mean,
        ),
        base,
        sweep: Vec::new(),
        fell: None,
    }];
    let same_machine = flow.remote.ip().to_canonical() == flow.local.ip().to_canonical();
    let near = flow.readings.gaps.iter().map(|g| (Side::Near, g.clone()));
    let far = FAR.iter().map(|what| (Side::Far, far_gap(what, flow)));
    Some(Model {
        gaps: near.chain(far).collect(),
        hosts,
        same_machine,
        idle: None,
        directions,
        both: Vec::new(),
        trials: Vec::new(),
        complete: !flow.ended,
        watched: true,
        reported: false,
        alone: false,
        requested: Requested::default(),
    })
}

/// Readings of the far end that causes need, by source.
const FAR: [&str; 3] = ["tcp", "socket", "thread"];

fn far_gap(what: &str, flow: &Flow) -> Gap {
    Gap {
        what: format!("{what} of the far end"),
        why: "only the far host can read it".to_owned(),
        hint: format!("on the far host: linerate flows {}", name_of(flow.local)),
    }
}

/// The address of an end as users type it: an IPv4 address mapped into IPv6 is shown as an IPv4 address.
pub fn name_of(end: SocketAddr) -> String {
    SocketAddr::new(end.ip().to_canonical(), end.port()).to_string()
}

fn load(
    flow: &Flow,
    hosts: &[Host],
    table: &Table,
    direction: Direction,
    window: Window,
) -> Option<Load> {
    let near = &flow.readings;
    let (counter, sends) = match direction {
        Direction::Forward => (m::TCP_BYTES_ACKED, true),
        Direction::Reverse => (m::TCP_BYTES_RECEIVED, false),
    };
    let ticks = ticks(table, counter);
    let rates: Vec<f64> = ticks.iter().map(|t| t.rate).collect();
    let goodput = per_second(table, counter, window)? * 8.0;
    let step = as_step(near, direction, window);
    let here = cpus(&step, Side::Near, false, window);
    let socket = |metric| {
        let tables = near.about("socket", |_| true);
        mean(tables.flat_map(|t| gauge(t, metric, window)))
    };
    let threads = placed(sends, threads(near, window));
    let (tcp, packets) = counted(flow, (table, &ticks), sends, window);
    let estimate = estimate(goodput, &rates);
    Some(Load {
        made: placed(sends, own_end(flow)),
        goodput_with_ramp: goodput,
        steady: steady_state(&rates).is_some(),
        ticks: rates.clone(),
        tcp,
        deadlock: near
            .about("socket", |_| true)
            .next()
            .and_then(|socket| deadlock(table, socket, window)),
        packets,
        senders: threads.sender,
        unread: socket(m::SOCKET_UNREAD).filter(|_| !sends),
        behind: behind(near, 0, window, goodput, &threads.receiver).filter(|_| !sends),
        receivers: threads.receiver,
        recv_memory: socket(m::SOCKET_RCVBUF).filter(|_| !sends).map(|v| Bytes(v.max(0.0) as u64)),
        cpus: placed(sends, here),
        // Other programs may use a host and its ports: that does not disturb a connection that is only watched.
        contended: false,
        foreign: None,
        local: local(hosts, None, &step, window),
        shapers: shapers(near, 0, window).filter(|_| sends),
        queues: queues(near, 0, window, None).filter(|_| sends),
        // The ports carry packets of other connections too, and the quotas of the connection's owner were not read.
        packet_bytes: ByRole::default(),
        throttled: ByRole::default(),
        paused: paused(hosts, &step, direction, window),
        allowances: allowances(hosts, &step, direction, window),
        fragments: fragments(&step, direction, window),
        in_use: sender(flow).last_packet(packets).filter(|_| sends),
        keeps_losing: sends && loses_repeatedly(near, 0, window, None),
        // Facts that only the far end or a trial would show are gaps. The connection is watched too briefly to show a
        // reader that caught up. The kernel counts all connections, and the control group of the owner was not read.
        ..Load::bare(&TCP, 1, estimate)
    })
}

/// The counts of this end's connection, and the packet sizes that this end knows.
fn counted(
    flow: &Flow,
    (table, ticks): (&Table, &[Tick]),
    sends: bool,
    window: Window,
) -> (TcpShares, Option<Packets>) {
    if sends {
        let packets = sender(flow).packets(&SetEnd::default(), window);
        (sending(flow, window), packets)
    } else {
        (receiving(table, ticks, window), received(table, window))
    }
}

/// This end as the sender.
fn sender(flow: &Flow) -> Sender<'_> {
    Sender {
        transport: &TCP,
        readings: &flow.readings,
        set: 0,
        is_ipv6: flow.remote.ip().to_canonical().is_ipv6(),
    }
}

/// The shares of time of a sender whose threads are unknown: only its sockets were read.
fn sending(flow: &Flow, window: Window) -> TcpShares {
    let tcp_wmem = flow.facts.buffers.tcp_wmem;
    tcp(&flow.readings, 0, window, false, Writer::Any { tcp_wmem })
}

fn own_end(flow: &Flow) -> SetEnd {
    SetEnd { congestion: flow.congestion.clone(), ..SetEnd::default() }
}

/// Facts of this end only, under its role: sender or receiver.
fn placed<T: Default>(sends: bool, own: T) -> ByRole<T> {
    let none = T::default();
    ByRole::from(if sends { [own, none] } else { [none, own] })
}

/// The readings of the connection, as a step of a run.
fn as_step(near: &EndReadings, direction: Direction, window: Window) -> Step {
    Step {
        plan: StepPlan {
            index: 0,
            purpose: Purpose::Base { direction },
            sets: Vec::new(),
            washout: Nanos(0),
            measure: Nanos(window.to),
            tick: Nanos(0),
        },
        began: Nanos(0),
        ends: vec![near.clone()],
        clock: None,
        took: Nanos(0),
        trouble: None,
    }
}

/// The rate of a connection between two readings.
struct Tick {
    /// Index of the later row.
    row: usize,
    /// Rate in bits per second.
    rate: f64,
}

fn ticks(table: &Table, counter: m::Metric) -> Vec<Tick> {
    let bytes = table.column(counter).unwrap_or_default();
    (1..bytes.len().min(table.at.len()))
        .filter_map(|row| {
            let time = table.at[row].checked_sub(table.at[row - 1])?;
            let grown = bytes[row].checked_sub(bytes[row - 1])?.max(0);
            let rate = grown as f64 * 8e9 / time as f64;
            (time > 0).then_some(Tick { row, rate })
        })
        .collect()
}

/// What limits the sender, as the receiving end sees it: only whether the window that it offers is full. The round trip
/// is the kernel's own estimate (`tcpi_rcv_rtt`); the data in flight are those that arrive within one round trip. Only
/// the sender knows all other limits.
fn receiving(table: &Table, ticks: &[Tick], window: Window) -> TcpShares {
    let of = |metric| mean(gauge(table, metric, window));
    let micros = |us: f64| Nanos((us.max(0.0) * 1e3) as u64);
    let rtt = of(m::TCP_RCV_RTT).filter(|us| *us > 0.0);
    let states: Vec<(f64, bool)> = ticks.iter().filter_map(|t| filled(table, t)).collect();
    let full = states.iter().filter(|(_, full)| *full).count();
    let bytes = |metric| of(metric).map(|v| Bytes(v.max(0.0) as u64));
    TcpShares {
        rwnd_limited: (!states.is_empty()).then(|| full as f64 / states.len() as f64),
        in_flight: mean(states.iter().map(|(flight, _)| *flight)).map(|f| Bytes(f as u64)),
        window: bytes(m::TCP_RCV_WND),
        rtt: rtt.map(micros),
        min_rtt: of(m::TCP_MIN_RTT).map(micros),
        ..TcpShares::default()
    }
}

/// Bytes in flight during a tick, and whether they fill the window; `None` if unknown.
fn filled(table: &Table, tick: &Tick) -> Option<(f64, bool)> {
    let at = |metric, row: usize| Some(*table.column(metric)?.get(row)? as f64);
    let rtt = at(m::TCP_RCV_RTT, tick.row).filter(|us| *us > 0.0)?;
    let offered = [tick.row - 1, tick.row].map(|row| at(m::TCP_RCV_WND, row));
    let offered = f64::midpoint(offered[0]?, offered[1]?);
    // A window of less than two packets counts as closed: the sender waits until sending is worthwhile.
    let closed = offered < 2.0 * at(m::TCP_RCV_MSS, tick.row)?;
    let flight = tick.rate / 8.0 * rtt / 1e6;
    Some((flight, closed || flight >= offered * FULL_WINDOW))
}

/// The threads that may serve the connection: the only one, or the busiest one of several that all have spare time.
/// Otherwise it is unknown which thread serves the connection.
fn threads(near: &EndReadings, window: Window) -> Vec<Thread> {
    let tables: Vec<&Table> = near.about("thread", |_| true).collect();
    let share = |t: &Table, metric| Some((per_second(t, metric, window)? / 1e9).clamp(0.0, 1.0));
    let thread = |t: &&Table| Thread {
        busy: share(t, m::THREAD_RUN),
        waiting: share(t, m::THREAD_WAIT),
        ..Thread::default()
    };
    let all: Vec<Thread> = tables.iter().map(thread).collect();
    let need = |t: &Thread| Some(t.busy? + t.waiting.unwrap_or(0.0));
    let idle = all.iter().all(|t| need(t).is_some_and(|n| n < IDLE));
    if all.len() == 1 || idle {
        return all;
    }
    Vec::new()
}
