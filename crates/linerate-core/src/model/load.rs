//! One direction of one step under load.

use super::behind::behind;
use super::cpus::{cpus, taken, throttled};
use super::crowd::takes_in;
use super::datagrams::datagrams;
use super::driver::{allowances, packet_bytes, paused};
use super::handover::copied;
use super::held::Held;
use super::interruptions::{TIMEOUT, interruptions};
use super::local::{local, shapers};
use super::losses::{loses_again, loses_throughout};
use super::probe::waited;
use super::queues::queues;
use super::readings::{Window, gauge, growth, mean, per_second};
use super::{Cpu, Estimate, Load, TcpShares, Thread};
use crate::metric as m;
use crate::plan::{Direction, Pattern, SetPlan, Side};
use crate::record::{EndReadings, Record, Set, SetEnd, Step, Table};
use crate::stats::{Count, Interval, SHORTEST, mean_ci, steady_state};
use crate::units::{Bytes, Nanos, Rate};

/// The readings of one side.
pub(super) fn end(step: &Step, side: Side) -> Option<&EndReadings> {
    step.ends.get(index(side))
}

/// Where a side's data stand in lists of both ends.
pub(super) const fn index(side: Side) -> usize {
    match side {
        Side::Near => 0,
        Side::Far => 1,
    }
}

/// The stream set of a step that flows in `direction`.
pub(super) fn stream_set<'a>(
    record: &'a Record,
    step: &Step,
    direction: Direction,
) -> Option<&'a Set> {
    record.sets.iter().find(|s| {
        step.plan.sets.contains(&s.plan.id)
            && matches!(s.plan.pattern, Pattern::Stream { direction: d } if d == direction)
    })
}

/// What a step says about one direction; `None` when it did not load it or nothing was counted.
pub fn load(record: &Record, step: &Step, direction: Direction) -> Option<Load> {
    let set = stream_set(record, step, direction)?;
    let sending = end(step, direction.sender())?;
    let receiving = end(step, direction.receiver())?;
    let whole = Window::of(step);
    let ticks = ticks(receiving, set.plan.id, whole);
    let rates: Vec<f64> = ticks.iter().map(|(_, r)| *r).collect();
    let ramp_end = steady_state(&rates);
    let steady = &rates[ramp_end.unwrap_or(0).min(rates.len())..];
    let window = whole.starting(start_of(&ticks, ramp_end));
    let made = |side: Side| set.ends.get(index(side)).cloned().unwrap_or_default();
    let goodput = slice_goodput(receiving, set.plan.id, window)?;
    let datagrams = datagrams([sending, receiving], set.plan.id, window);
    let receiver = record.hosts.get(index(direction.receiver()));
    let told = receiver.and_then(|host| host.facts.tells_duplicates);
    let mut tcp = tcp(sending, set.plan.id, window, told == Some(true));
    if datagrams.is_some() {
        (tcp.mss, tcp.path_mtu) = packet(&made(direction.sender()));
    }
    let shared = super::derive::same_machine(record);
    let ends = [direction.sender(), direction.receiver()];
    let cpus = ends.map(|side| cpus(step, side, shared, window));
    let receivers = receivers(receiving, &set.plan, &cpus[1], window);
    Some(Load {
        streams: set.plan.knobs.streams,
        knobs: set.plan.knobs.clone(),
        made: [made(direction.sender()), made(direction.receiver())] as [SetEnd; 2],
        goodput: estimate(goodput, steady),
        goodput_with_ramp: slice_goodput(receiving, set.plan.id, whole)?,
        steady: ramp_end.is_some(),
        senders: at_work(sending, &format!("s{}/tx", set.plan.id), &cpus[0], window),
        copied: copied(sending, set.plan.id, window),
        unread: socket_mean(receiving, set.plan.id, m::SOCKET_UNREAD, window),
        behind: behind(receiving, set.plan.id, window, goodput, &receivers),
        receivers,
        recv_memory: socket_mean(receiving, set.plan.id, m::SOCKET_RCVBUF, window)
            .map(|v| Bytes(v.max(0.0) as u64))
            // That of datagrams stays as it was made.
            .or(made(direction.receiver()).recv_buffer.map(Bytes)),
        cpus,
        throttled: ends.map(|side| throttled(end(step, side)?, window)),
        memory: [memory(sending, window), memory(receiving, window)],
        latency: super::latency_of(record, step),
        probe_waited: ends.map(|side| waited(record, step, side)),
        contended: super::contended(step),
        foreign: super::foreign::foreign(step, set.plan.id, direction),
        local: local(step, window),
        shapers: shapers(sending, set.plan.id, window),
        queues: queues(sending, set.plan.id, window),
        packet_bytes: packet_bytes(step, direction, window),
        paused: paused(step, direction, window),
        allowances: allowances(step, direction, window),
        collided: ends.map(|side| collided(step, side, window)),
        keeps_losing: loses_throughout(step) || loses_again(sending, set.plan.id, window, tcp.rtt),
        interruptions: interruptions(step, set.plan.id, &ticks, tcp.rtt),
        tcp,
        datagrams,
        ticks: rates,
    })
}

/// The threads that receive, with where the packets of their streams are taken in.
fn receivers(end: &EndReadings, plan: &SetPlan, cpus: &[Cpu], window: Window) -> Vec<Thread> {
    let mut receivers = at_work(end, &format!("s{}/rx", plan.id), cpus, window);
    // Of a thread that moves several streams one would not tell where the others are taken in.
    if receivers.len() >= plan.knobs.streams as usize {
        for thread in &mut receivers {
            thread.takes_in = takes_in(end, plan.id, thread.stream, window);
        }
    }
    receivers
}

/// UDP over IPv4, without options; 20 bytes more of IPv6 are 1.3 % of a full packet.
//= RFC 768 and RFC 791, section 3.1
const UDP_HEADERS: u64 = 28;

/// Payload of a datagram, and bytes of its packet; nothing of those that travel in fragments.
fn packet(sender: &SetEnd) -> (Option<Bytes>, Option<Bytes>) {
    let whole = sender.gaps.iter().all(|gap| gap.what != "set.fragments");
    let size = Some(sender.write_size).filter(|size| whole && *size > 0);
    let packet = size.map(|size| Bytes(size.saturating_add(UDP_HEADERS)));
    (size.map(Bytes), packet)
}

/// The steady part of a step; all that counts of it where none is found.
pub(super) fn steady_window(step: &Step, receiving: &EndReadings, set: u32) -> Window {
    let whole = Window::of(step);
    let ticks = ticks(receiving, set, whole);
    let rates: Vec<f64> = ticks.iter().map(|(_, rate)| *rate).collect();
    whole.starting(start_of(&ticks, steady_state(&rates)))
}

/// When the tick began that a ramp ended with.
fn start_of(ticks: &[(u64, f64)], ramp_end: Option<usize>) -> u64 {
    let first = ramp_end.and_then(|at| ticks.get(at));
    first.map_or(0, |(from, _)| *from)
}

/// A mean, with what its steady samples say of it.
pub(super) fn estimate(mean: f64, steady: &[f64]) -> Estimate {
    Estimate {
        mean,
        interval: mean_ci(steady),
        samples: steady.len(),
    }
}

/// `tcpi_options` of a connection whose windows are scaled.
//= include/uapi/linux/tcp.h, TCPI_OPT_WSCALE
const SCALING: u8 = 4;
const SACK: u8 = 2;

/// Share of a congestion window that is in flight on average where it is what holds the sender.
const FULL_CWND: f64 = 0.9;

/// Fewest samples that tell anything of how a goodput scatters.
const LOOK: usize = 4;

/// Share of samples without any payload from which nothing gets through.
const SILENT: f64 = 0.9;

impl Load {
    /// The share of samples in which nothing arrived, where that is nearly all of them.
    pub fn silent(&self) -> Option<f64> {
        let silent = self.ticks.iter().filter(|rate| **rate <= 0.0).count();
        let share = silent as f64 / self.ticks.len().max(1) as f64;
        (share >= SILENT).then_some(share)
    }

    /// How many times as much as `base` it carried. What is known of each widens the interval, as independent
    /// errors do; it is open both ways where nothing is.
    pub fn over(&self, base: &Self) -> Interval {
        let ratio = self.goodput.mean / base.goodput.mean;
        let mid = if ratio.is_finite() { ratio } else { 0.0 };
        let (low, high) = match self.doubt().zip(base.doubt()) {
            Some((own, other)) => {
                let wide = 1.0 + own.hypot(other);
                (mid / wide, mid * wide)
            }
            None => (0.0, f64::MAX),
        };
        Interval { low, mid, high }
    }

    /// By what share its goodput may be another: the interval of its mean; of one short look three standard
    /// errors, as a few samples tell them; of a longer load that wanders too slowly for an interval, all
    /// that its samples span.
    fn doubt(&self) -> Option<f64> {
        let known = self.goodput.interval.and_then(Interval::relative);
        known.or_else(|| {
            let n = self.ticks.len() as f64;
            let mean = self.ticks.iter().sum::<f64>() / n;
            let squares: f64 = self.ticks.iter().map(|t| (t - mean).powi(2)).sum();
            let wide = if self.ticks.len() < SHORTEST {
                3.0 * (squares / (n - 1.0) / n).sqrt()
            } else {
                let most = self.ticks.iter().copied().fold(0.0, f64::max);
                most - self.ticks.iter().copied().fold(f64::MAX, f64::min)
            };
            (self.ticks.len() >= LOOK && mean > 0.0).then(|| wide / mean)
        })
    }
}

/// Goodput of a set over a window at the receiving end, bits per second, all streams.
pub(super) fn slice_goodput(receiving: &EndReadings, set: u32, window: Window) -> Option<f64> {
    let prefix = format!("s{set}/rx");
    let rates: Vec<f64> = receiving
        .about("worker", |s| s.starts_with(&prefix))
        .filter_map(|t| per_second(t, m::WORKER_BYTES, window))
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() * 8.0)
}

/// Bytes of payload that a set sent over a window, what it sent again included; `None` where a counter is
/// missing.
pub(super) fn payload_sent(sending: &EndReadings, set: u32, window: Window) -> Option<f64> {
    let grown = |t: &Table, metric| growth(t, metric, window).map(|(grown, _)| grown);
    let prefix = format!("s{set}/");
    let mut sockets = sending.about("tcp", |s| s.starts_with(&prefix)).peekable();
    if sockets.peek().is_some() {
        let read: Option<f64> = sockets.map(|t| grown(t, m::TCP_BYTES_SENT)).sum();
        return read.map(|bytes| bytes * stands_for(sending, set));
    }
    // Nothing is sent again of datagrams.
    let prefix = format!("s{set}/tx");
    let workers = sending.about("worker", |s| s.starts_with(&prefix));
    workers.map(|t| grown(t, m::WORKER_BYTES)).sum()
}

/// Segments that a set sent over a window and those of them that it sent again, all streams; `None`
/// where a counter is missing.
pub(super) fn sent(sending: &EndReadings, set: u32, window: Window) -> Option<Count> {
    let prefix = format!("s{set}/");
    let count = |table: &Table| {
        let grown = |metric| growth(table, metric, window).map(|(grown, _)| grown);
        let mss = mean(gauge(table, m::TCP_SND_MSS, window))?.max(1.0);
        Some(Count {
            events: grown(m::TCP_RETRANS)?,
            of: grown(m::TCP_BYTES_SENT)? / mss,
        })
    };
    let streams = sending.about("tcp", |s| s.starts_with(&prefix)).map(count);
    let streams: Vec<Count> = streams.collect::<Option<_>>()?;
    let each = stands_for(sending, set);
    (!streams.is_empty()).then(|| Count {
        events: streams.iter().map(|c| c.events).sum::<f64>() * each,
        of: streams.iter().map(|c| c.of).sum::<f64>() * each,
    })
}

/// Streams of a set for each one whose connection was read: of very many, some stand for all.
fn stands_for(end: &EndReadings, set: u32) -> f64 {
    let prefix = format!("s{set}/");
    let read = end.about("tcp", |s| s.starts_with(&prefix)).count();
    let all = end.totals.iter().filter(|total| total.set == set).count();
    (all as f64 / read.max(1) as f64).max(1.0)
}

/// Start time and rate (bits per second) of each tick at the receiver, all streams.
fn ticks(receiving: &EndReadings, set: u32, window: Window) -> Vec<(u64, f64)> {
    let prefix = format!("s{set}/rx");
    let mut sum: Vec<(u64, f64)> = Vec::new();
    for table in receiving.about("worker", |s| s.starts_with(&prefix)) {
        for (i, tick) in table_ticks(table, window).into_iter().enumerate() {
            match sum.get_mut(i) {
                Some(slot) => slot.1 += tick.1,
                None => sum.push(tick),
            }
        }
    }
    sum
}

fn table_ticks(table: &Table, window: Window) -> Vec<(u64, f64)> {
    let Some(bytes) = table.column(m::WORKER_BYTES) else {
        return Vec::new();
    };
    // Half a tick of tolerance: rows carry the time at which they were really read.
    let slack = 20_000_000;
    let rows: Vec<(u64, i64)> = table
        .at
        .iter()
        .copied()
        .zip(bytes.iter().copied())
        .filter(|(at, _)| {
            (window.from.saturating_sub(slack)..=window.to.saturating_add(slack)).contains(at)
        })
        .collect();
    rows.windows(2)
        .filter(|w| w[1].0 > w[0].0)
        .map(|w| {
            (
                w[0].0,
                w[1].1.saturating_sub(w[0].1) as f64 * 8e9 / (w[1].0 - w[0].0) as f64,
            )
        })
        .collect()
}

/// The sender's TCP counters, averaged over streams. No segment that came twice tells nothing where the
/// receiver may not tell of them (`duplicates_told`).
pub(super) fn tcp(
    sending: &EndReadings,
    set: u32,
    window: Window,
    duplicates_told: bool,
) -> TcpShares {
    let prefix = format!("s{set}/");
    let tables: Vec<&Table> = sending.about("tcp", |s| s.starts_with(&prefix)).collect();
    let sockets: Vec<&Table> = sending
        .about("socket", |s| s.starts_with(&prefix))
        .collect();
    let held = Held::of(&tables, &sockets, window);
    let each = stands_for(sending, set);
    let all = |from: &[&Table], metric| -> Vec<f64> {
        from.iter().flat_map(|t| gauge(t, metric, window)).collect()
    };
    let bytes = |metric| mean(all(&tables, metric)).map(|v| Bytes(v.max(0.0) as u64));
    let mss = bytes(m::TCP_SND_MSS);
    let segments = |metric| Some(Bytes((mean(all(&tables, metric))? * mss?.0 as f64) as u64));
    let micros = |v: f64| Nanos((v.max(0.0) * 1e3) as u64);
    let total = |metric| {
        let grown: Vec<f64> = tables
            .iter()
            .filter_map(|t| growth(t, metric, window))
            .map(|(g, _)| g)
            .collect();
        (!grown.is_empty()).then(|| grown.iter().sum::<f64>() * each)
    };
    let counted = sent(sending, set, window);
    let secs = Nanos(window.to.saturating_sub(window.from)).secs();
    let per_sec = |count: f64| (secs > 0.0).then(|| count / secs);
    let repeated =
        total(m::TCP_BYTES_RETRANS).zip(total(m::TCP_BYTES_SENT).filter(|all| *all > 0.0));
    TcpShares {
        rwnd_limited: held.rwnd_limited,
        sndbuf_limited: held.sndbuf_limited,
        starved: held.starved,
        network: held.network,
        in_flight: segments(m::TCP_UNACKED),
        window: bytes(m::TCP_SND_WND),
        window_scaling: all(&tables, m::TCP_OPTIONS)
            .into_iter()
            .map(|options| options as u8 & SCALING != 0)
            .reduce(|all, scaled| all && scaled),
        cwnd: segments(m::TCP_CWND),
        cwnd_stands: stands(&tables, window),
        not_sent: bytes(m::TCP_NOTSENT),
        rtt: mean(all(&tables, m::TCP_RTT)).map(micros),
        min_rtt: all(&tables, m::TCP_MIN_RTT)
            .into_iter()
            .reduce(f64::min)
            .map(micros),
        retransmitted: repeated.map(|(again, all)| again / all),
        segments: counted.and_then(|count| per_sec(count.of)),
        repeated: counted.and_then(|count| per_sec(count.events)),
        timeouts: total(m::TCP_TOTAL_RTO),
        timer_limited: total(m::TCP_TOTAL_RTO).and_then(per_sec).map(|in_all| {
            let streams = tables.len().max(1) as f64 * each;
            (in_all * TIMEOUT.secs() / streams).min(1.0)
        }),
        reordered: total(m::TCP_REORD_SEEN).and_then(per_sec),
        needless: total(m::TCP_DSACK_DUPS)
            .filter(|_| tells_duplicates(&tables, duplicates_told))
            .and_then(per_sec),
        max_pacing: mean(all(&tables, m::TCP_MAX_PACING_RATE)).map(|v| Rate(v.max(0.0) as u64)),
        send_memory: mean(all(&sockets, m::SOCKET_SNDBUF)).map(|v| Bytes(v.max(0.0) as u64)),
        mss,
        path_mtu: bytes(m::TCP_PMTU),
    }
}

/// Whether the congestion window of every stream stayed exactly as it was, and was full; `None` where too few
/// samples tell.
fn stands(tables: &[&Table], window: Window) -> Option<bool> {
    let stands = |table: &&Table| {
        let cwnd = gauge(table, m::TCP_CWND, window);
        let full = mean(gauge(table, m::TCP_UNACKED, window))? >= cwnd.first()? * FULL_CWND;
        (cwnd.len() >= SHORTEST).then(|| full && cwnd.iter().all(|now| *now == cwnd[0]))
    };
    let all: Vec<bool> = tables.iter().map(stands).collect::<Option<_>>()?;
    (!all.is_empty()).then(|| all.into_iter().all(|stands| stands))
}

/// Whether the receiver says of segments that they came twice: it is known to, if both ends agreed on selective
/// acknowledgements, or it did so before.
//= Linux, tcp_dsack_set()
fn tells_duplicates(tables: &[&Table], known: bool) -> bool {
    let of = |table: &&Table| {
        let values = |metric| table.column(metric).unwrap_or_default();
        let has = |options: &i64| *options as u8 & SACK != 0;
        let agreed = values(m::TCP_OPTIONS).last().is_some_and(has);
        (known && agreed) || values(m::TCP_DSACK_DUPS).iter().any(|twice| *twice > 0)
    };
    tables.iter().all(of)
}

/// The worker threads whose subject begins with `prefix`, and what interrupts on their CPUs took.
fn at_work(end: &EndReadings, prefix: &str, cpus: &[Cpu], window: Window) -> Vec<Thread> {
    let mut all = threads(end, prefix, window);
    for thread in &mut all {
        thread.taken = taken(thread, cpus);
    }
    all
}

/// The worker threads whose subject begins with `prefix`.
pub(super) fn threads(end: &EndReadings, prefix: &str, window: Window) -> Vec<Thread> {
    let stream_of = |subject: &str| subject.strip_prefix(prefix).and_then(|s| s.parse().ok());
    end.about("worker", |s| s.starts_with(prefix))
        .filter_map(|worker| {
            let stream = stream_of(&worker.subject)?;
            let own = end.about("thread", |s| s == worker.subject).next();
            let share = |metric| Some((per_second(own?, metric, window)? / 1e9).clamp(0.0, 1.0));
            let ticks = |metric| own.and_then(|t| growth(t, metric, window)).map(|(g, _)| g);
            let user = match (ticks(m::THREAD_USER), ticks(m::THREAD_SYSTEM)) {
                // Ticks are 10 ms: fewer than ten of them say nothing.
                (Some(u), Some(s)) if u + s >= 10.0 => Some(u / (u + s)),
                _ => None,
            };
            let moved = |metric| growth(worker, metric, window).map(|(g, _)| g);
            let bytes_per_op = match (moved(m::WORKER_BYTES), moved(m::WORKER_OPS)) {
                (Some(bytes), Some(ops)) if ops > 0.0 => Some(bytes / ops),
                _ => None,
            };
            let on = own.and_then(|t| t.column(m::THREAD_CPU));
            let on = on.and_then(|all| Some((u32::try_from(*all.last()?).ok()?, all)));
            Some(Thread {
                stream,
                busy: share(m::THREAD_RUN),
                waiting: share(m::THREAD_WAIT),
                user,
                cpu: on.map(|(cpu, _)| cpu),
                home: on.and_then(|(cpu, all)| {
                    let stayed = all.iter().all(|at| *at == i64::from(cpu));
                    stayed.then_some(cpu)
                }),
                taken: None,
                bytes_per_op,
                takes_in: None,
            })
        })
        .collect()
}

/// Mean of a gauge of the sockets of a set, over streams and time.
fn socket_mean(end: &EndReadings, set: u32, metric: m::Metric, window: Window) -> Option<f64> {
    let prefix = format!("s{set}/");
    mean(
        end.about("socket", |s| s.starts_with(&prefix))
            .flat_map(|t| gauge(t, metric, window)),
    )
}

/// Collisions at a host's port for each packet that it sent.
fn collided(step: &Step, side: Side, window: Window) -> Option<f64> {
    let port = end(step, side)?.about("port", |_| true).next()?;
    let (collisions, _) = growth(port, m::PORT_COLLISIONS, window)?;
    let (sent, _) = growth(port, m::PORT_TX_PACKETS, window)?;
    (sent > 0.0).then(|| collisions / sent)
}

/// What the CPUs of a host moved to and from memory, bytes per second, all caches.
fn memory(end: &EndReadings, window: Window) -> Option<f64> {
    let caches = end.about("memory", |_| true);
    let rates = caches.map(|t| per_second(t, m::MEMORY_BYTES, window));
    let rates: Vec<f64> = rates.collect::<Option<_>>()?;
    (!rates.is_empty()).then(|| rates.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{WHOLE, table};
    use crate::record::{Column, Total};

    #[test]
    fn connections_that_were_read_stand_for_those_that_were_not() {
        let socket = |stream: u32| {
            let of = |metric, grown: i64| (metric, [7, 7 + grown]);
            table(
                &format!("s1/{stream}"),
                &[
                    of(m::TCP_BYTES_SENT, 10_000),
                    of(m::TCP_RETRANS, 2),
                    of(m::TCP_BYTES_RETRANS, 1000),
                    (m::TCP_SND_MSS, [1000, 1000]),
                ],
            )
        };
        let total = |stream| Total {
            set: 1,
            stream,
            sent: 0,
            received: 0,
            complete: true,
        };
        for (streams, times) in [(0, 1.0), (2, 1.0), (6, 3.0)] {
            let end = EndReadings {
                tables: vec![socket(0), socket(3)],
                totals: (0..streams).map(total).collect(),
                ..EndReadings::default()
            };
            assert_eq!(payload_sent(&end, 1, WHOLE), Some(20_000.0 * times));
            let shares = tcp(&end, 1, WHOLE, true);
            assert_eq!(shares.segments, Some(20.0 * times));
            assert_eq!(shares.repeated, Some(4.0 * times));
            assert_eq!(shares.retransmitted, Some(0.1), "a share is as it was");
        }
    }

    #[test]
    fn a_congestion_window_stands_where_no_sample_differs_and_it_is_full() {
        let of = |cwnd: fn(i64) -> i64, in_flight: i64, rows: i64| {
            let column = |metric: m::Metric, values: Vec<i64>| Column {
                name: metric.name.to_owned(),
                unit: metric.unit,
                kind: metric.kind,
                values,
            };
            let table = Table {
                source: m::TCP_CWND.source.to_owned(),
                subject: "s1/0".to_owned(),
                at: (0..rows as u64).collect(),
                columns: vec![
                    column(m::TCP_CWND, (0..rows).map(cwnd).collect()),
                    column(m::TCP_UNACKED, vec![in_flight; rows as usize]),
                ],
            };
            stands(&[&table], WHOLE)
        };
        let enough = SHORTEST as i64;
        assert_eq!(of(|_| 20, 18, enough), Some(true));
        assert_eq!(of(|_| 20, 17, enough), Some(false), "not full");
        assert_eq!(
            of(|row| 20 + row / 9, 20, enough.max(10)),
            Some(false),
            "it grew"
        );
        assert_eq!(of(|_| 20, 20, enough - 1), None);
        assert_eq!(stands(&[], WHOLE), None);
    }

    #[test]
    fn no_segment_that_came_twice_tells_something_only_of_a_receiver_that_tells() {
        let at = |options: u8, twice: [i64; 2], known| {
            let options = [options.into(); 2];
            let table = table(
                "s1/0",
                &[(m::TCP_OPTIONS, options), (m::TCP_DSACK_DUPS, twice)],
            );
            tells_duplicates(&[&table], known)
        };
        assert!(at(7, [0, 0], true));
        assert!(!at(5, [0, 0], true), "no selective acknowledgements");
        assert!(!at(7, [0, 0], false), "nobody read whether it does");
        assert!(at(7, [3, 3], false), "it did before");
    }
}
