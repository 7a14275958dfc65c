//! Simulations, only for tests and studies of linerate: a path in virtual time, and an InfiniBand network in memory
//! ([`fabric`]).
//!
//! The path is a [`Link`] whose true limits are known. Payload is a fluid that moves in ticks of 10 ms or less. In each
//! tick every connection gets the lowest rate that its windows, its pacing, the CPUs of both ends and the path permit.
//! CPUs and the path are shared fairly, and a queue grows on a path that is full. The same path and seed give exactly
//! the same record. The simulation uses no threads, sockets or real clock.
#![forbid(unsafe_code)]

#[path = "../../linerate-fabric/src/tests/fake/mod.rs"]
pub mod fabric;

mod ends;
mod flow;
pub mod noise;
mod path;
mod ping;
mod read;
pub mod sample;
mod share;
mod solve;

use std::collections::BTreeMap;

use linerate_plan::path::{Direction, Side};
use linerate_plan::{Pattern, SetPlan, StepPlan};
use linerate_record::{ClockPair, Host, Set, Step, Trouble};
use linerate_units::{Bytes, Nanos, Rate};

use linerate_session::link::{Ended, Link, LinkError, Live, StepControl};

use ends::totals;
use flow::{SimStream, Work};
use noise::{Noise, Random, UNIT_NS};
pub use path::{Congestion, Cost, SimDirection, SimHost, SimPath, Span};
use ping::Ping;
use read::{Tables, View};
use solve::{DirectionState, Solver, index};

/// Longest tick of the simulation, in nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Most streams of a set.
const MAX_STREAMS: u32 = 256;

/// Most samples of a step: an hour at ten per second.
const MAX_SAMPLES: u64 = 36_000;

/// Time that the messages between the two ends take before and after a step.
const TALK: Nanos = Nanos::from_millis(5);

/// Time for which both ends wait after a step for missing payload.
const STALL: Nanos = Nanos::from_secs(3);

/// Shortest time between two calls of `watch`, in nanoseconds.
const WATCH_NS: u64 = 100_000_000;

/// A set of connections that were made together.
#[derive(Debug)]
struct SimSet {
    flows: Vec<SimStream>,
    ping: Option<Ping>,
}

/// A simulated path with its two ends.
#[derive(Debug)]
pub struct Sim {
    path: SimPath,
    now: Nanos,
    sets: BTreeMap<u32, SimSet>,
    /// Sets that were released. Their CPU times and payload stay in the hosts' counters.
    released: Vec<SimSet>,
    noise: [Noise; 2],
    factor: [f64; 2],
    /// Time at which the next value of the noise begins, in nanoseconds.
    noise_at: u64,
    random: Random,
    solver: Solver,
}

impl Sim {
    /// Makes a simulation of `path`. Equal paths and seeds give equal runs.
    pub fn new(path: SimPath, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let noise = Direction::ALL.map(|d| {
            let (class, size) = path.direction(d).noise;
            Noise::new(class, size, random.bits())
        });
        Self {
            path,
            now: Nanos(0),
            sets: BTreeMap::new(),
            released: Vec::new(),
            noise,
            factor: [1.0; 2],
            noise_at: 0,
            random,
            solver: Solver::default(),
        }
    }

    /// Returns the number of CPUs of all hosts together.
    fn all_cpus(&self) -> usize {
        if self.path.shared_host { self.cpus(Side::Near).end } else { self.cpus(Side::Far).end }
    }

    /// Returns the CPUs of one end's host, as indices into the CPUs of all hosts.
    fn cpus(&self, side: Side) -> std::ops::Range<usize> {
        let near = self.path.near.cpus.max(1) as usize;
        match side {
            Side::Far if !self.path.shared_host => near..near + self.path.far.cpus.max(1) as usize,
            _ => 0..near,
        }
    }

    /// Returns the CPU on which thread `number` of one end runs. Threads are placed from the first CPU on or, at the
    /// far end of a shared host, from the last CPU backwards.
    fn place(&self, side: Side, number: usize) -> usize {
        let cpus = self.cpus(side);
        let at = number % cpus.len();
        if self.path.shared_host && side == Side::Far { cpus.end - 1 - at } else { cpus.start + at }
    }

    /// Advances the noise to the current time.
    fn renew_noise(&mut self) {
        while self.noise_at <= self.now.0 {
            self.factor = [0, 1].map(|which| self.noise[which].step());
            self.noise_at += UNIT_NS;
        }
    }

    /// Returns the current state of both directions of the path.
    fn states(&self) -> [DirectionState; 2] {
        Direction::ALL.map(|direction| {
            let limits = self.path.direction(direction);
            let noise = self.factor[index(direction)];
            let down = self.path.down.is_some_and(|span| span.holds(self.now));
            let other = self.path.other_session;
            let taken =
                other.map_or(0.0, |(span, share)| if span.holds(self.now) { share } else { 0.0 });
            let whole = path::payload_rate(limits.rate, f64::from(self.path.mss()));
            let rate = whole * noise * (1.0 - taken);
            DirectionState {
                rate: if down { 0.0 } else { rate },
                depth: limits.buffer.0 as f64 / rate.max(1.0),
                rtt: self.path.rtt.secs().max(1e-6) / noise,
                noise,
                queue: 0.0,
            }
        })
    }

    /// Simulates one tick of all active sets.
    fn tick(&mut self, active: &mut [(u32, SimSet)], dt_ns: u64, counted: bool) {
        self.renew_noise();
        let dt = Nanos(dt_ns).secs();
        let mut states = self.states();
        let mut room = vec![1.0 - self.path.near.steal; self.all_cpus()];
        if !self.path.shared_host {
            let far = self.cpus(Side::Far);
            room[far].fill(1.0 - self.path.far.steal);
        }
        let mut flows: Vec<&mut SimStream> = Vec::new();
        let mut pings: Vec<&mut Ping> = Vec::new();
        for (_, set) in active.iter_mut() {
            flows.extend(set.flows.iter_mut());
            pings.extend(set.ping.iter_mut());
        }
        self.solver.tick(&mut flows, &mut states, &room, dt, &mut self.random);
        wait(&mut flows, &room, dt);
        for flow in &mut flows {
            flow.advance(dt, states[index(flow.direction)].noise);
        }
        let down = states.iter().any(|w| w.rate <= 0.0);
        let trip = self.path.rtt.secs() + states[0].queue + states[1].queue;
        for ping in pings.into_iter().filter(|_| !down) {
            ping.advance(dt, trip, self.path.latency_spread, counted, &mut self.random);
        }
        self.now.0 += dt_ns;
    }

    /// Adds one row to every table of both ends, `at` nanoseconds after the start of the step.
    fn read(&self, active: &[(u32, SimSet)], at: u64, tables: &mut [Tables; 2]) {
        let mut busy = vec![(0.0, 0.0); self.all_cpus()];
        let used: Vec<(u32, &SimSet)> = active.iter().map(|(id, set)| (*id, set)).collect();
        let idle = self.sets.values().chain(&self.released);
        let all: Vec<&SimSet> = used.iter().map(|(_, s)| *s).chain(idle).collect();
        for set in &all {
            set.add_busy(&mut busy);
        }
        for (side, tables) in [Side::Near, Side::Far].into_iter().zip(tables) {
            let view = View {
                side,
                active: &used,
                cpus: self.cpus(side),
                busy: &busy,
                steal: self.path.host(side).steal,
                now: self.now.secs(),
                port: self.port(side, &all),
            };
            view.read(at, tables);
        }
    }

    /// Makes the connections of a set.
    fn connect(&self, plan: &SetPlan) -> SimSet {
        let cpus = |n| [Side::Near, Side::Far].map(|side| self.place(side, n));
        match plan.pattern {
            Pattern::Stream { direction } => SimSet {
                flows: thread_numbers(plan)
                    .map(|n| {
                        let ends = [direction.sender(), direction.receiver()];
                        let cpus = ends.map(|side| self.place(side, n));
                        SimStream::new(&self.path, direction, &plan.knobs, cpus)
                    })
                    .collect(),
                ping: None,
            },
            Pattern::Operations { .. } => SimSet { flows: Vec::new(), ping: None },
            Pattern::PingPong { size, interval } => SimSet {
                flows: Vec::new(),
                ping: Some(Ping::new(
                    size.0,
                    interval.secs(),
                    self.path.rtt.secs(),
                    cpus(2).map(|cpu| Work { cpu, ..Work::default() }),
                )),
            },
        }
    }

    /// Simulates the ticks of a step; returns whether and how `watch` ended the step.
    fn run(
        &mut self,
        plan: &StepPlan,
        active: &mut [(u32, SimSet)],
        tables: &mut [Tables; 2],
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Ended {
        let parts = plan.tick.0.div_ceil(TICK_NS);
        let samples = (plan.washout.0 + plan.measure.0).div_ceil(plan.tick.0);
        let first = received(active);
        let lost = retransmitted(active);
        let (began, mut seen, mut reported) = (self.now.0, first, 0);
        let mut ended = Ended::default();
        self.read(active, 0, tables);
        for sample in 1..=samples {
            let end = began + sample * plan.tick.0;
            for part in (0..parts).rev() {
                let until = end - part * (plan.tick.0 / parts);
                let counted = until - began > plan.washout.0;
                self.tick(active, until - self.now.0, counted);
            }
            let at = self.now.0 - began;
            self.read(active, at, tables);
            if at - reported >= WATCH_NS {
                let (before, since) = (seen, Nanos(at - reported));
                seen = received(active);
                reported = at;
                let live = Live {
                    rate: Rate::of(Bytes((seen - before).max(0.0) as u64), since),
                    moved: Bytes((seen - first).max(0.0) as u64),
                    setbacks: Some((retransmitted(active) - lost).ceil() as u64),
                    elapsed: Nanos(at),
                };
                if ended.by(watch(live), live) {
                    return ended;
                }
            }
        }
        ended
    }
}

impl SimSet {
    /// Adds the CPU times of this set's threads to the times of each CPU: kernel, user.
    fn add_busy(&self, busy: &mut [(f64, f64)]) {
        for flow in &self.flows {
            for (counts, work) in [(&flow.sent, &flow.tx), (&flow.received, &flow.rx)] {
                busy[work.cpu].0 += counts.kernel;
                busy[work.cpu].1 += counts.user;
            }
        }
        if let Some(ping) = &self.ping {
            for work in ping.work {
                busy[work.cpu].0 += ping.counts.kernel;
            }
        }
    }
}

/// Returns the numbers by which a set's threads are placed on CPUs. Sets in different directions have different first
/// numbers: their threads take turns on the CPUs.
fn thread_numbers(plan: &SetPlan) -> impl Iterator<Item = usize> + use<> {
    let first = match plan.pattern.direction() {
        Some(Direction::Forward) => 0,
        Some(Direction::Reverse) => 1,
        None => 2,
    };
    (0..plan.knobs.streams as usize).map(move |n| first + n)
}

/// Adds waiting times: a thread that shares a full CPU waits while it does not run.
fn wait(flows: &mut [&mut SimStream], room: &[f64], dt: f64) {
    let mut threads = vec![0_u32; room.len()];
    for flow in flows.iter() {
        threads[flow.tx.cpu] += 1;
        threads[flow.rx.cpu] += 1;
    }
    for flow in flows.iter_mut() {
        let (tx, rx) = (flow.tx, flow.rx);
        let rest = |work: &Work, rate: f64| dt * (1.0 - rate * work.per_byte()).clamp(0.0, 1.0);
        match flow.bound {
            flow::Bound::Sender if tx.pause == 0.0 && threads[tx.cpu] > 1 => {
                flow.sent.wait += rest(&tx, flow.rate);
            }
            flow::Bound::Receiver if rx.pause == 0.0 && threads[rx.cpu] > 1 => {
                flow.received.wait += rest(&rx, flow.rate);
            }
            _ => {}
        }
    }
}

/// Returns the payload in bytes that all streams have received or, if there are no streams, that round trips have
/// moved.
fn received(active: &[(u32, SimSet)]) -> f64 {
    let sets = || active.iter().map(|(_, set)| set);
    let flows: Vec<f64> =
        sets().flat_map(|set| &set.flows).map(|flow| flow.received.bytes).collect();
    if flows.is_empty() {
        return sets().filter_map(|set| set.ping.as_ref()).map(|ping| ping.counts.bytes).sum();
    }
    flows.iter().sum()
}

/// Returns the number of segments that all streams have retransmitted.
fn retransmitted(active: &[(u32, SimSet)]) -> f64 {
    let flows = active.iter().flat_map(|(_, set)| &set.flows);
    flows.map(|flow| flow.tcp.retrans).sum()
}

fn refused(what: String) -> LinkError {
    LinkError::Refused { what, hint: String::new() }
}

impl Link for Sim {
    fn now(&self) -> Nanos {
        self.now
    }

    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        let host = |side| Host { side, facts: self.facts(side) };
        Ok([Side::Near, Side::Far].map(host).into())
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        let streams = plan.knobs.streams;
        if !(1..=MAX_STREAMS).contains(&streams) {
            return Err(refused(format!("cannot make a set of {streams} streams")));
        }
        if self.sets.contains_key(&plan.id) {
            return Err(refused(format!("set {} is there already", plan.id)));
        }
        if matches!(plan.pattern, Pattern::Operations { .. }) {
            return Err(refused("a simulated path carries no operations".into()));
        }
        // Making a set takes a handshake between the ends, and then a handshake of the connections.
        self.now.0 += TALK.0 + 3 * self.path.rtt.0;
        self.sets.insert(plan.id, self.connect(plan));
        Ok(Set {
            plan: plan.clone(),
            ends: [Side::Near, Side::Far].map(|side| self.set_end(plan, side)).into(),
        })
    }

    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError> {
        let length = plan.washout.0.saturating_add(plan.measure.0);
        if plan.tick.0 == 0 || length.div_ceil(plan.tick.0) > MAX_SAMPLES {
            return Err(refused(format!("cannot sample {} every {}", Nanos(length), plan.tick)));
        }
        if let Some(id) = plan.sets.iter().find(|id| !self.sets.contains_key(id)) {
            return Err(refused(format!("set {id} was not made")));
        }
        self.now.0 += TALK.0;
        let began = self.now;
        let taken = plan.sets.iter();
        let mut active: Vec<(u32, SimSet)> =
            taken.filter_map(|id| Some((*id, self.sets.remove(id)?))).collect();
        let before = totals(&active, Side::Near, &[]);
        let mut tables = <[Tables; 2]>::default();
        let ended = self.run(plan, &mut active, &mut tables, watch);
        let ends = self.ends(&mut active, tables, &before, began);
        let blocked = active.iter().any(|(_, set)| set.flows.iter().any(|f| f.blocked));
        if blocked {
            // Both ends wait for the missing payload; then all connections of the step are closed.
            self.now.0 += STALL.0;
            self.released.extend(active.into_iter().map(|(_, set)| set));
        } else {
            self.sets.extend(active);
        }
        self.now.0 += TALK.0 + self.path.rtt.0;
        let trouble = |what: &str| Trouble { side: Side::Near, what: what.into() };
        let trouble = if ended.stopped {
            Some(trouble("stopped"))
        } else {
            blocked.then(|| trouble("a stream did not end in order"))
        };
        Ok(Step {
            plan: ended.plan(plan),
            began,
            ends,
            clock: Some(ClockPair { offset_ns: 1_234_567_890, bound_ns: self.path.rtt.0 / 2 }),
            took: Nanos(0),
            trouble,
        })
    }

    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.released.extend(self.sets.remove(&set));
        Ok(())
    }
}
