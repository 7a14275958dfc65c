//! One direction of one step under load.

use super::arrivals::arrivals;
use super::behind::{behind, caught_up};
use super::cpus::{cpus, throttled};
use super::crowd::takes_in;
use super::datagrams::{datagrams, lost};
use super::derive::undisturbed;
use super::driver::{allowances, packet_bytes, paused};
use super::ends::{end, index, receiving, sending};
use super::fell::Sample;
use super::fragments::fragments;
use super::handover::copied;
use super::interruptions::interruptions;
use super::local::local;
use super::losses::{loses_again, loses_throughout};
use super::netstat::netstat;
use super::packets::{Sender, takes};
use super::probe::waited;
use super::queues::queues;
use super::readings::{Window, gauge, growth, mean, per_second};
use super::room::Writer;
use super::shaping::shapers;
use super::silence::heard;
use super::socket_memory::socket_memory;
use super::tcp::{came_twice, segments_received, tcp};
use super::verbs::verbs;
use super::workers::at_work;
use super::{Cpu, Estimate, Load, TcpShares, Thread};
use linerate_facts::metric as m;
use linerate_facts::nic::Nic;
use linerate_plan::path::{ByRole, Direction, Measure, Side};
use linerate_plan::transport::{self, Feature, TransportInfo};
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan};
use linerate_record::{EndReadings, Record, Set, Step, Table};
use linerate_units::stats::{Interval, SHORTEST, is_steady, mean_ci, ramp_end, steady_state};
use linerate_units::{Bytes, Nanos};

/// The stream set of a step that flows in `direction`.
pub(super) fn stream_set<'a>(
    record: &'a Record,
    step: &Step,
    direction: Direction,
) -> Option<&'a Set> {
    record.sets.iter().find(|s| {
        step.plan.sets.contains(&s.plan.id) && s.plan.pattern.direction() == Some(direction)
    })
}

/// The sets of a step by which round trips were timed.
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
    /// The part that a verdict is about: the steady part, or all of the time that counts if there is none.
    Steady,
    /// The measured part of a single measurement: all of it except a ramp at its start.
    AllButRamp,
}

/// A part of the time of a step.
pub(super) struct Part {
    /// The start and the rate of each tick, over all of the time that counts.
    ticks: Vec<(u64, f64)>,
    /// The tick with which the part begins; `None` if the series is not steady from any on: it is all then.
    begin: Option<usize>,
    /// The time window of the part.
    pub(super) window: Window,
}

impl Part {
    /// The ramp that is left out at the start of the measured time.
    pub(super) fn ramp(&self) -> Nanos {
        // The first row is read when that begins, or a little later.
        let from = self.ticks.first().map_or(0, |(from, _)| *from);
        let ramp = self.begin.map(|_| self.window.from.saturating_sub(from));
        Nanos(ramp.unwrap_or(0))
    }
}

impl Over {
    /// The part of a step's time in which a set counts.
    pub(super) fn part(self, step: &Step, receiving: &EndReadings, set: u32) -> Part {
        let whole = Window::of(step);
        let ticks = goodput_ticks(receiving, set, whole);
        let begin = self.begin(receiving, set, whole, &ticks);
        let window = whole.starting(start_of(&ticks, begin));
        Part { ticks, begin, window }
    }

    /// The time that figures of an end are over: an end that reports sums does so of all the time that it counted.
    pub(super) fn of(self, end: &EndReadings, window: Window) -> Window {
        match self {
            Self::AllButRamp if !end.is_sampled() => Window::WHOLE,
            Self::AllButRamp | Self::Steady => window,
        }
    }

    /// Mean goodput over the part, in bits per second.
    pub(super) fn goodput(self, receiving: &EndReadings, set: u32, window: Window) -> Option<f64> {
        slice_goodput(receiving, set, self.of(receiving, window))
    }

    /// The tick with which it begins; `None` if the series is not steady from any on.
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

/// The result of a step for one direction; `None` when it did not load it or nothing was counted.
pub fn load(record: &Record, step: &Step, direction: Direction) -> Option<Load> {
    load_over(Over::Steady, record, step, direction)
}

/// The result of a part of a step for one direction; `None` when the step did not load it or nothing was
/// counted.
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
        keeps_losing: loses_throughout(step) || loses_again(sending, set.plan.id, window, tcp.rtt),
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

/// Adds what the kernels of both ends counted for all their programs.
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
        datagrams: load.datagrams.map(|told| told.without(damaged)),
        ..load
    }
}

/// Operations, or messages, of a set in a second; `None` of sockets. Each message of RDMA is a request of the same size.
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

/// Messages of RDMA in a second: each is one request of `size` bytes.
fn messages(goodput: &Estimate, size: u64) -> Option<Estimate> {
    let each = |bits: f64| bits / (size as f64 * 8.0);
    let interval = goodput.interval.map(|interval| Interval {
        low: each(interval.low),
        mid: each(interval.mid),
        high: each(interval.high),
    });
    (size > 0).then(|| Estimate { mean: each(goodput.mean), interval, samples: goodput.samples })
}

/// The least share of duplicate segments that a receiver reports.
const TOLD: f64 = 0.2;

/// The sender's counters of the connections of a set, completed by the receiver's counters.
fn connections(
    record: &Record,
    set: u32,
    direction: Direction,
    [sending, receiving]: [&EndReadings; 2],
    window: Window,
) -> TcpShares {
    let receiver = record.hosts.get(index(direction.receiver()));
    let told = receiver.and_then(|host| host.facts.tells_duplicates);
    let mut shares = tcp(sending, set, window, told == Some(true), Writer::Own);
    let twice = came_twice(sending, receiving, set).zip(shares.repeated);
    let counted = twice.map(|(share, again)| share * again);
    // A receiver may report too few duplicates, but not almost none: the difference is then damaged segments
    // that it discarded.
    let told = |counted: &f64| shares.needless.is_none_or(|told| told >= counted * TOLD);
    let counted = counted.filter(told);
    let needless = [shares.needless, counted].into_iter().flatten();
    shares.needless = needless.reduce(f64::max);
    shares
}

/// The threads that send.
fn senders(end: &EndReadings, set: u32, cpus: &[Cpu], window: Window) -> Vec<Thread> {
    at_work(end, &format!("s{set}/tx"), cpus, window)
}

/// The threads that receive, with the CPUs that receive the packets of their streams.
fn receivers(end: &EndReadings, plan: &SetPlan, cpus: &[Cpu], window: Window) -> Vec<Thread> {
    let mut receivers = at_work(end, &format!("s{}/rx", plan.id), cpus, window);
    // If a thread moves several streams, the CPU of one stream does not show where the others are received.
    if receivers.len() >= plan.knobs.streams as usize {
        for thread in &mut receivers {
            thread.takes_in = takes_in(end, plan.id, thread.stream, window);
        }
    }
    receivers
}

/// The step with an idle path.
fn idle(record: &Record) -> Option<&Step> {
    super::derive::first(record, |purpose| matches!(purpose, Purpose::IdleLatency))
}

/// The readings of an end while its path was idle.
fn quiet(record: &Record, side: Side) -> Option<(&EndReadings, Window)> {
    let step = idle(record)?;
    Some((end(step, side)?, Window::of(step)))
}

/// The sending end of a set.
fn sender<'a>(record: &Record, readings: &'a EndReadings, set: u32) -> Sender<'a> {
    Sender {
        transport: transport::of(&record.start.plan.engine),
        readings,
        set,
        is_ipv6: is_ipv6(record),
    }
}

/// Whether the path is one of IPv6.
pub(super) fn is_ipv6(record: &Record) -> bool {
    let routes = record.hosts.iter().filter_map(|h| h.facts.route.as_ref());
    routes.filter_map(|route| route.peer).any(|peer| peer.is_ipv6())
}

fn rates(ticks: &[(u64, f64)]) -> Vec<f64> {
    ticks.iter().map(|(_, rate)| *rate).collect()
}

/// The start of the tick at which the ramp ended.
fn start_of(ticks: &[(u64, f64)], ramp_end: Option<usize>) -> u64 {
    let first = ramp_end.and_then(|at| ticks.get(at));
    first.map_or(0, |(from, _)| *from)
}

/// A mean, with the interval that its steady samples give.
pub(super) fn estimate(mean: f64, steady: &[f64]) -> Estimate {
    Estimate { mean, interval: mean_ci(steady), samples: steady.len() }
}

/// Fewest samples that show how a goodput varies.
const LOOK: usize = 4;

/// Minimum share of samples without any payload at which nothing gets through.
const SILENT: f64 = 0.9;

impl Load {
    /// A load of which nothing was measured but its rate, in bits per second.
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

    /// The share of silent samples, if nearly all samples are silent.
    pub fn silent(&self) -> Option<f64> {
        let silent = self.ticks.iter().filter(|rate| **rate <= 0.0).count();
        let share = silent as f64 / self.ticks.len().max(1) as f64;
        (share >= SILENT).then_some(share)
    }

    /// Whether payload arrived in any sample.
    pub fn arrived(&self) -> bool {
        self.ticks.iter().any(|rate| *rate > 0.0)
    }

    /// The judged properties of a load other than its round trips.
    pub fn measure(&self) -> Measure {
        match self.operations {
            Some(_) => self.knobs.measure(),
            None => Measure::Goodput,
        }
    }

    /// The rate that is judged: of operations, or of bits.
    pub fn rate(&self) -> &Estimate {
        let operations = self.operations.as_ref();
        let judged = operations.filter(|_| self.knobs.measure() == Measure::Operations);
        judged.unwrap_or(&self.goodput)
    }

    /// The ratio of its goodput to that of `base`. The uncertainties of both widen the interval like
    /// independent errors; if nothing is known of one, the interval is open at both ends.
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

    /// Share by which the true rate may differ from the measured one: the interval of its mean; for one short
    /// sample, three standard errors, as a few samples estimate them; for a longer load that varies too slowly
    /// for an interval, the range of all its samples.
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
            (self.ticks.len() >= LOOK && mean > 0.0).then(|| wide / mean)
        })
    }
}

/// The tables of the receiving threads; of the threads that start operations where nothing receives, as with a disk.
fn receivers_of(end: &EndReadings, set: u32) -> Vec<&Table> {
    let of = |role: &str| {
        let prefix = format!("s{set}/{role}");
        let tables = end.about("worker", move |subject| subject.starts_with(&prefix));
        tables.collect::<Vec<_>>()
    };
    let receive = of("rx");
    if receive.is_empty() { of("tx") } else { receive }
}

/// Goodput of a set over a window at the receiving end, bits per second, all streams.
pub(super) fn slice_goodput(receiving: &EndReadings, set: u32, window: Window) -> Option<f64> {
    slice_rate(receiving, set, m::WORKER_BYTES, window).map(|bytes| bytes * 8.0)
}

/// The rate of a counter of a set's threads, over a window at the receiving end, all streams together.
fn slice_rate(receiving: &EndReadings, set: u32, metric: m::Metric, window: Window) -> Option<f64> {
    let rates: Vec<f64> = receivers_of(receiving, set)
        .into_iter()
        .filter_map(|t| per_second(t, metric, window))
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>())
}

/// The rate of a set that is judged, over a window at the receiving end: operations or bits in a second, all
/// streams.
pub(super) fn judged_rate(
    record: &Record,
    receiving: &EndReadings,
    set: &Set,
    window: Window,
) -> Option<f64> {
    let is_judged = set.plan.knobs.measure() == Measure::Operations;
    let counted = operations_rate(record, receiving, set.plan.id, window).filter(|_| is_judged);
    counted.or_else(|| slice_goodput(receiving, set.plan.id, window))
}

/// Operations, or messages, of a set in a second, mean; `None` of sockets, where an operation is as much as was there.
fn operations_rate(
    record: &Record,
    receiving: &EndReadings,
    set: u32,
    window: Window,
) -> Option<f64> {
    let counted = transport::of(&record.start.plan.engine).has(Feature::Operations);
    slice_rate(receiving, set, m::WORKER_OPS, window).filter(|_| counted)
}

/// What arrived in a direction during a step, washout included. `own` says whether the step has the load that the
/// verdict explains.
pub(super) fn samples_of(
    record: &Record,
    at: usize,
    direction: Direction,
    own: impl Fn(&Knobs) -> bool,
) -> Vec<Sample> {
    let step = record.steps.get(at);
    let loaded = step.and_then(|step| {
        let set = stream_set(record, step, direction)?;
        Some((step, set, receiving(record, step, direction)?))
    });
    let Some((step, set, receiving)) = loaded else {
        return Vec::new();
    };
    let from = Window::of(step).from;
    let own = own(&set.plan.knobs) && undisturbed(step);
    goodput_ticks(receiving, set.plan.id, Window::WHOLE)
        .into_iter()
        .map(|(began, rate)| Sample {
            step: at,
            secs: step.plan.tick.secs(),
            rate,
            own: own && began >= from,
        })
        .collect()
}

/// Start time and rate (bits per second) of each tick at the receiver, all streams.
fn goodput_ticks(receiving: &EndReadings, set: u32, window: Window) -> Vec<(u64, f64)> {
    let mut ticks = ticks(receiving, set, m::WORKER_BYTES, window);
    for (_, rate) in &mut ticks {
        *rate *= 8.0;
    }
    ticks
}

/// Start time of each tick at the receiver, and the bytes counted in a second of it, over all streams.
fn ticks(receiving: &EndReadings, set: u32, metric: m::Metric, window: Window) -> Vec<(u64, f64)> {
    let mut sum: Vec<(u64, f64)> = Vec::new();
    for table in receivers_of(receiving, set) {
        for (i, tick) in table_ticks(table, metric, window).into_iter().enumerate() {
            match sum.get_mut(i) {
                Some(slot) => slot.1 += tick.1,
                None => sum.push(tick),
            }
        }
    }
    sum
}

fn table_ticks(table: &Table, metric: m::Metric, window: Window) -> Vec<(u64, f64)> {
    let Some(counted) = table.column(metric) else {
        return Vec::new();
    };
    // Half a tick of tolerance: rows carry the time at which they were really read.
    let slack = 20_000_000;
    let rows: Vec<(u64, i64)> = table
        .at
        .iter()
        .copied()
        .zip(counted.iter().copied())
        .filter(|(at, _)| {
            (window.from.saturating_sub(slack)..=window.to.saturating_add(slack)).contains(at)
        })
        .collect();
    rows.windows(2)
        .filter(|w| w[1].0 > w[0].0)
        .map(|w| (w[0].0, w[1].1.saturating_sub(w[0].1) as f64 * 1e9 / (w[1].0 - w[0].0) as f64))
        .collect()
}

/// Mean memory of the receive buffers of a set; for datagrams, whose buffers keep their size, from the set
/// itself.
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

/// Collisions at a host's port for each packet that it sent.
fn collided(step: &Step, side: Side, window: Window) -> Option<f64> {
    let port = end(step, side)?.about("port", |_| true).next()?;
    let (collisions, _) = growth(port, m::PORT_COLLISIONS, window)?;
    let (sent, _) = growth(port, m::PORT_TX_PACKETS, window)?;
    (sent > 0.0).then(|| collisions / sent)
}

/// Traffic between the CPUs of a host and memory, in bytes per second, over all caches.
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
