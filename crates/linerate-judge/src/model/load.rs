//! Computes the figures of one direction in one step under load.

use super::arrivals::arrivals;
use super::behind::{behind, caught_up};
use super::cpus::{cpus, throttled};
use super::crowd::takes_in;
use super::datagrams::{datagrams, lost};
use super::disk::disk_load;
use super::driver::{allowances, packet_bytes, paused};
use super::ends::{end, index, receiving, sending, stream_set};
use super::fragments::fragments;
use super::goodput::{estimate, goodput_ticks, operations_rate, slice_goodput, ticks};
use super::handover::copied;
use super::interruptions::interruptions;
use super::local::local;
use super::losses::{loses_repeatedly, loses_throughout};
use super::netstat::netstat;
use super::packets::{Sender, takes};
use super::probe::waited;
use super::queues::queues;
use super::readings::{Window, gauge, growth, mean, per_second};
use super::room::Writer;
use super::shaping::shapers;
use super::silence::heard;
use super::socket_memory::socket_memory;
use super::tcp::{duplicated, segments_received, tcp};
use super::verbs::verbs;
use super::workers::at_work;
use super::{Cpu, Estimate, Load, TcpShares, Thread};
use linerate_facts::metric as m;
use linerate_facts::nic::Nic;
use linerate_plan::path::{ByRole, Direction, Measure, Side};
use linerate_plan::transport::{self, Feature, TransportInfo};
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan};
use linerate_record::{EndReadings, Record, Set, Step};
use linerate_units::stats::{Interval, SHORTEST, is_steady, ramp_end, steady_state};
use linerate_units::{Bytes, Nanos};

/// The sets of a step whose round trips were timed.
fn beside(record: &Record, step: &Step) -> Vec<u32> {
    let sets = record.sets.iter().map(|set| &set.plan);
    let timed = |set: &&SetPlan| {
        matches!(set.pattern, Pattern::PingPong { .. }) && step.plan.sets.contains(&set.id)
    };
    sets.filter(timed).map(|set| set.id).collect()
}

/// The part of a step that figures are computed over.
#[derive(Debug, Clone, Copy)]
pub(super) enum Over {
    /// The part that a verdict is about: the steady part, or all of the counted time if no part is steady.
    Steady,
    /// The part for a single measurement: all of the counted time except a ramp at its start.
    AllButRamp,
}

/// A part of the counted time of a step.
pub(super) struct Part {
    /// The start and the goodput of each tick, over all of the counted time.
    ticks: Vec<(u64, f64)>,
    /// Index of the tick with which the part begins; `None` if no part is steady: then the part is all of the time.
    begin: Option<usize>,
    /// The time window of the part.
    pub(super) window: Window,
}

impl Part {
    /// Duration of the ramp that is left out at the start of the counted time.
    pub(super) fn ramp(&self) -> Nanos {
        // The first row is read when the counted time begins, or a little later.
        let from = self.ticks.first().map_or(0, |(from, _)| *from);
        let ramp = self.begin.map(|_| self.window.from.saturating_sub(from));
        Nanos(ramp.unwrap_or(0))
    }
}

impl Over {
    /// The part of a step's time over which the figures of a set are computed.
    pub(super) fn part(self, step: &Step, receiving: &EndReadings, set: u32) -> Part {
        let whole = Window::of(step);
        let ticks = goodput_ticks(receiving, set, whole);
        let begin = self.begin(receiving, set, whole, &ticks);
        let window = whole.starting(start_of(&ticks, begin));
        Part { ticks, begin, window }
    }

    /// The window of time for figures of an end. An end that reports only sums reports them for all the time that it
    /// counted.
    pub(super) fn of(self, end: &EndReadings, window: Window) -> Window {
        match self {
            Self::AllButRamp if !end.is_sampled() => Window::WHOLE,
            Self::AllButRamp | Self::Steady => window,
        }
    }

    /// Mean goodput of a set over the part, in bits per second.
    pub(super) fn goodput(self, receiving: &EndReadings, set: u32, window: Window) -> Option<f64> {
        slice_goodput(receiving, set, self.of(receiving, window))
    }

    /// Index of the tick with which the part begins; `None` if no part of the series is steady.
    fn begin(
        self,
        receiving: &EndReadings,
        set: u32,
        whole: Window,
        ticks: &[(u64, f64)],
    ) -> Option<usize> {
        let rates = rates(ticks);
        match self {
            Self::Steady => steady_state(&rates),
            // Datagrams have no ramp: datagrams that are lost at the start count as lost.
            Self::AllButRamp if lost(receiving, set, whole).is_some() => {
                is_steady(&rates).then_some(0)
            }
            Self::AllButRamp => {
                let washout = Window { from: 0, to: whole.from };
                let before = slice_goodput(receiving, set, washout);
                ramp_end(&rates, before.unwrap_or(0.0))
            }
        }
    }
}

/// The figures of a step for one direction; `None` if the step did not load it or nothing was counted.
pub fn load(record: &Record, step: &Step, direction: Direction) -> Option<Load> {
    load_over(Over::Steady, record, step, direction)
}

/// The figures of a part of a step for one direction; `None` if the step did not load it or nothing was counted.
pub(super) fn load_over(
    over: Over,
    record: &Record,
    step: &Step,
    direction: Direction,
) -> Option<Load> {
    let set = stream_set(record, step, direction)?;
    let sending = sending(record, step, direction)?;
    let receiving = receiving(record, step, direction)?;
    let Part { ticks, begin, window } = over.part(step, receiving, set.plan.id);
    let rates = rates(&ticks);
    let made = |side: Side| set.ends.get(index(side)).cloned().unwrap_or_default();
    let goodput = over.goodput(receiving, set.plan.id, window)?;
    let steady = estimate(goodput, &rates[begin.unwrap_or(0).min(rates.len())..]);
    let heard = heard(step, &ticks, &beside(record, step));
    let tcp = connections(record, set.plan.id, direction, [sending, receiving], window);
    let sender = sender(record, sending, set.plan.id);
    let packets = sender.packets(&made(direction.sender()), window);
    let ends = [direction.sender(), direction.receiver()];
    let shared = super::derive::same_machine(record);
    let cpus = ByRole::from(ends.map(|side| cpus(step, side, shared, window)));
    let receivers = receivers(receiving, &set.plan, &cpus.receiver, window);
    let load = Load {
        disk: disk_load(record, step, direction, window),
        knobs: set.plan.knobs.clone(),
        made: ends.map(made).into(),
        operations: operations(record, receiving, set, &steady, window),
        goodput_with_ramp: over.goodput(receiving, set.plan.id, Window::of(step))?,
        steady: begin.is_some(),
        senders: senders(sending, set.plan.id, &cpus.sender, window),
        copied: copied(sending, set.plan.id, window),
        unread: socket_mean(receiving, set.plan.id, m::SOCKET_UNREAD, window),
        behind: behind(receiving, set.plan.id, window, goodput, &receivers),
        caught_up: caught_up(receiving, set.plan.id, window, &receivers),
        receivers,
        recv_memory: recv_memory(receiving, set, direction, window),
        cpus,
        throttled: ends.map(|side| throttled(end(step, side)?, window)).into(),
        memory: [sending, receiving].map(|end| memory(end, window)).into(),
        latency: super::latency_of(record, step),
        probe_waited: ends.map(|side| waited(record, step, side)).into(),
        foreign: super::foreign::foreign(step, set.plan.id, direction),
        local: local(&record.hosts, idle(record), step, window),
        shapers: shapers(sending, set.plan.id, window),
        queues: queues(sending, set.plan.id, window, quiet(record, ends[0])),
        packet_bytes: packet_bytes(step, direction, window),
        paused: paused(&record.hosts, step, direction, window),
        verbs: verbs(set, step, idle(record), direction, window),
        allowances: allowances(&record.hosts, step, direction, window),
        fragments: fragments(step, direction, window),
        in_use: sender.last_packet(packets),
        collided: ends.map(|side| collided(step, side, window)).into(),
        keeps_losing: loses_throughout(step)
            || loses_repeatedly(sending, set.plan.id, window, tcp.rtt),
        interruptions: interruptions(step, set.plan.id, &heard, &tcp, set.plan.knobs.streams),
        tcp,
        packets,
        acknowledgements: segments_received(sending, set.plan.id, window),
        takes: takes([sending, receiving], set.plan.id, window),
        datagrams: datagrams([sending, receiving], set.plan.id, window),
        ticks: rates,
        ..Load::bare(sender.transport, set.plan.knobs.streams, steady)
    };
    Some(with_kernels(load, (record, step), direction, window))
}

/// Adds to a load what the kernels of both hosts counted for all programs.
fn with_kernels(
    load: Load,
    (record, step): (&Record, &Step),
    direction: Direction,
    window: Window,
) -> Load {
    let ends = [direction.sender(), direction.receiver()];
    let idle = idle(record);
    let netstat = ByRole::from(ends.map(|side| {
        let route = record.hosts.get(index(side));
        let route = route.and_then(|host| host.facts.route.as_ref());
        let tunnelled = route.is_some_and(|route| route.ports.iter().any(Nic::is_over_udp));
        netstat((step, idle), side, (load.transport, tunnelled), window)
    }));
    let damaged = netstat.receiver.damaged;
    Load {
        contended: super::contended(step),
        netstat,
        socket_memory: ends.map(|side| socket_memory(step, side, window)).into(),
        arrivals: arrivals(step, direction.receiver(), window),
        datagrams: load.datagrams.map(|reported| reported.without(damaged)),
        ..load
    }
}

/// Operations, or messages, per second of a set; `None` for sockets. Each RDMA message is one request of the same
/// size.
fn operations(
    record: &Record,
    receiving: &EndReadings,
    set: &Set,
    goodput: &Estimate,
    window: Window,
) -> Option<Estimate> {
    let id = set.plan.id;
    if transport::of(&record.start.plan.engine).has(Feature::Verbs) {
        return messages(goodput, set.ends.first()?.write_size);
    }
    let mean = operations_rate(record, receiving, id, window)?;
    let ticks = ticks(receiving, id, m::WORKER_OPS, window);
    Some(estimate(mean, &rates(&ticks)))
}

/// RDMA messages per second: each is one request of `size` bytes.
fn messages(goodput: &Estimate, size: u64) -> Option<Estimate> {
    let each = |bits: f64| bits / (size as f64 * 8.0);
    let interval = goodput.interval.map(|interval| Interval {
        low: each(interval.low),
        mid: each(interval.mid),
        high: each(interval.high),
    });
    (size > 0).then(|| Estimate { mean: each(goodput.mean), interval, samples: goodput.samples })
}

/// The least share of the duplicate segments that a receiver reports, if it reports duplicates at all.
const LEAST_REPORTED: f64 = 0.2;

/// The counters of a set's connections at the sender, with what only the receiver's counters show.
fn connections(
    record: &Record,
    set: u32,
    direction: Direction,
    [sending, receiving]: [&EndReadings; 2],
    window: Window,
) -> TcpShares {
    let receiver = record.hosts.get(index(direction.receiver()));
    let reported = receiver.and_then(|host| host.facts.tells_duplicates);
    let mut shares = tcp(sending, set, window, reported == Some(true), Writer::Own);
    let twice = duplicated(sending, receiving, set).zip(shares.repeated);
    let counted = twice.map(|(share, retransmitted)| share * retransmitted);
    // A receiver may report too few duplicates, but not almost none: the difference is then damaged segments
    // that it discarded.
    let result_of =
        |counted: &f64| shares.needless.is_none_or(|reported| reported >= counted * LEAST_REPORTED);
    let counted = counted.filter(result_of);
    let needless = [shares.needless, counted].into_iter().flatten();
    shares.needless = needless.reduce(f64::max);
    shares
}

/// The sending threads of a set.
fn senders(end: &EndReadings, set: u32, cpus: &[Cpu], window: Window) -> Vec<Thread> {
    at_work(end, &format!("s{set}/tx"), cpus, window)
}

/// The receiving threads of a set, with the CPUs that receive the packets of their streams.
fn receivers(end: &EndReadings, plan: &SetPlan, cpus: &[Cpu], window: Window) -> Vec<Thread> {
    let mut receivers = at_work(end, &format!("s{}/rx", plan.id), cpus, window);
    // If one thread reads several streams, the CPU of one stream does not show where the packets of the others are
    // received.
    if receivers.len() >= plan.knobs.streams as usize {
        for thread in &mut receivers {
            thread.takes_in = takes_in(end, plan.id, thread.stream, window);
        }
    }
    receivers
}

/// The step that measured the idle path.
fn idle(record: &Record) -> Option<&Step> {
    super::derive::first(record, |purpose| matches!(purpose, Purpose::IdleLatency))
}

/// The readings of an end while its path was idle.
fn quiet(record: &Record, side: Side) -> Option<(&EndReadings, Window)> {
    let step = idle(record)?;
    Some((end(step, side)?, Window::of(step)))
}

/// The sender of a set: its transport and its readings.
fn sender<'a>(record: &Record, readings: &'a EndReadings, set: u32) -> Sender<'a> {
    Sender {
        transport: transport::of(&record.start.plan.engine),
        readings,
        set,
        is_ipv6: is_ipv6(record),
    }
}

/// Whether the path uses IPv6.
pub(super) fn is_ipv6(record: &Record) -> bool {
    let routes = record.hosts.iter().filter_map(|h| h.facts.route.as_ref());
    routes.filter_map(|route| route.peer).any(|peer| peer.is_ipv6())
}

fn rates(ticks: &[(u64, f64)]) -> Vec<f64> {
    ticks.iter().map(|(_, rate)| *rate).collect()
}

/// The start of the tick at which the ramp ended, in the time of the ticks.
fn start_of(ticks: &[(u64, f64)], ramp_end: Option<usize>) -> u64 {
    let first = ramp_end.and_then(|at| ticks.get(at));
    first.map_or(0, |(from, _)| *from)
}

/// Fewest samples that show how the goodput varies.
const FEWEST_SAMPLES: usize = 4;

/// Minimum share of samples without payload, at which the path counts as silent.
const SILENT: f64 = 0.9;

impl Load {
    /// A load of which only the goodput is known, in bits per second.
    pub fn bare(transport: &'static TransportInfo, streams: u32, goodput: Estimate) -> Self {
        Self {
            transport,
            streams,
            knobs: Knobs { streams, ..Knobs::default() },
            goodput_with_ramp: goodput.mean,
            goodput,
            ..Self::default()
        }
    }

    /// The share of samples without payload, if nearly all samples are without; else `None`.
    pub fn silent(&self) -> Option<f64> {
        let silent = self.ticks.iter().filter(|rate| **rate <= 0.0).count();
        let share = silent as f64 / self.ticks.len().max(1) as f64;
        (share >= SILENT).then_some(share)
    }

    /// Whether any payload arrived.
    pub fn arrived(&self) -> bool {
        self.ticks.iter().any(|rate| *rate > 0.0)
    }

    /// What is judged of the load besides its round trips: operations or goodput.
    pub fn measure(&self) -> Measure {
        match self.operations {
            Some(_) => self.knobs.measure(),
            None => Measure::Goodput,
        }
    }

    /// The rate that is judged: operations per second, or goodput.
    pub fn rate(&self) -> &Estimate {
        let operations = self.operations.as_ref();
        let judged = operations.filter(|_| self.knobs.measure() == Measure::Operations);
        judged.unwrap_or(&self.goodput)
    }

    /// The rate of this load over the rate of `base`. The uncertainties of both are combined as independent errors;
    /// if one is unknown, the interval is open at both ends.
    pub fn over(&self, base: &Self) -> Interval {
        let ratio = self.rate().mean / base.rate().mean;
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

    /// Share by which the true rate may differ from the measured one. It follows from the interval of the mean; for
    /// one short sample, three standard errors; for a longer load that varies too slowly for an interval, the range
    /// of all its samples.
    pub(crate) fn doubt(&self) -> Option<f64> {
        let known = self.rate().interval.and_then(Interval::relative);
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
            (self.ticks.len() >= FEWEST_SAMPLES && mean > 0.0).then(|| wide / mean)
        })
    }
}

/// Mean memory of the receive buffers of a set. Buffers of datagrams keep their size: it is read from the set itself.
fn recv_memory(
    receiving: &EndReadings,
    set: &Set,
    direction: Direction,
    window: Window,
) -> Option<Bytes> {
    let mean = socket_mean(receiving, set.plan.id, m::SOCKET_RCVBUF, window);
    let made = set.ends.get(index(direction.receiver()));
    mean.map(|memory| Bytes(memory.max(0.0) as u64))
        .or(made.and_then(|end| end.recv_buffer).map(Bytes))
}

/// Mean of a gauge of the sockets of a set, over streams and time.
fn socket_mean(end: &EndReadings, set: u32, metric: m::Metric, window: Window) -> Option<f64> {
    let prefix = format!("s{set}/");
    mean(end.about("socket", |s| s.starts_with(&prefix)).flat_map(|t| gauge(t, metric, window)))
}

/// Collisions at a host's port, for each packet that the port sent.
fn collided(step: &Step, side: Side, window: Window) -> Option<f64> {
    let port = end(step, side)?.about("port", |_| true).next()?;
    let (collisions, _) = growth(port, m::PORT_COLLISIONS, window)?;
    let (sent, _) = growth(port, m::PORT_TX_PACKETS, window)?;
    (sent > 0.0).then(|| collisions / sent)
}

/// Bytes per second that the CPUs of a host moved to and from memory, summed over all caches.
fn memory(end: &EndReadings, window: Window) -> Option<f64> {
    let caches = end.about("memory", |_| true);
    let rates = caches.map(|t| per_second(t, m::MEMORY_BYTES, window));
    let rates: Vec<f64> = rates.collect::<Option<_>>()?;
    (!rates.is_empty()).then(|| rates.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_rdma_is_a_request() {
        let goodput = Estimate {
            mean: 512e6,
            interval: Some(Interval { low: 511e6, mid: 512e6, high: 513e6 }),
            samples: 7,
        };
        let found = messages(&goodput, 64).unwrap();
        assert_eq!((found.mean, found.samples), (1e6, 7));
        let interval = found.interval.unwrap();
        assert!(interval.low < 1e6 && interval.high > 1e6, "{interval:?}");
        assert!(messages(&goodput, 0).is_none(), "its size is unknown");
    }
}
