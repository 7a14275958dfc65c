//! The model: rates, shares and intervals derived from a record. Always recomputed, never saved.
//!
//! A share is a part of time or of bytes, from 0 to 1. What could not be read is `None`; nothing
//! is filled in.

mod arrivals;
mod asked;
mod behind;
mod by_size;
mod ceilings;
mod cpus;
mod crowd;
mod datagrams;
mod deadlock;
mod delayed;
mod derive;
mod driver;
mod elsewhere;
mod ends;
mod fell;
mod flow;
mod foreign;
mod fragments;
mod grouped;
mod handover;
mod hardware;
mod held;
mod interruptions;
mod load;
mod local;
mod look;
mod losses;
mod memory;
mod netstat;
mod off_node;
mod on_purpose;
mod once;
mod packets;
mod probe;
mod processor;
mod queues;
mod readings;
mod reported;
mod rings;
mod room;
mod shaping;
mod shares;
mod silence;
mod socket_memory;
mod spread;
mod stages;
mod sweep;
mod tcp;
#[cfg(test)]
#[path = "tests/testing.rs"]
mod testing;
mod trials;
mod vanished;
mod verbs;
mod workers;

pub use arrivals::Arrival;
pub use asked::Asked;
pub(crate) use behind::a_read;
pub use by_size::{SizeTrips, by_size, is_by_size, shortest_trip};
pub(crate) use ceilings::{least_of, rdma_packet};
pub use crowd::{Crowd, crowd};
pub use datagrams::{Counted, Datagrams};
pub use deadlock::Deadlock;
pub use delayed::{delayed, may_be_delayed};
use derive::contended;
pub use derive::{
    Deriver, derive, latency_of, round_trip_rate, round_trips, same_machine, trial, undisturbed,
};
pub use driver::{Allowance, Paused};
pub(crate) use elsewhere::{elsewhere, idle};
pub use ends::is_alone;
pub use fell::Fell;
pub use flow::{flow, name_of};
pub use hardware::hardware;
pub(crate) use interruptions::TIMEOUT;
pub use interruptions::stalled;
pub use load::load;
pub use local::{Local, LocalEvent};
pub use look::looks;
pub use memory::{MemoryLoad, ModuleCeiling, memory_load};
pub use netstat::Netstat;
pub(crate) use off_node::{Nodes, OffNode, follows, nodes};
pub use once::{Once, moved_by, once};
pub use packets::Packets;
pub use processor::{Cpu, Thread};
pub use queues::Queue;
pub use reported::{Told, reported};
pub use shaping::Shaping;
pub use shares::TcpShares;
pub use socket_memory::SocketMemory;
pub use spread::{Part, base_round_trips, idle_round_trips, parts};
pub use stages::{PathStage, stages};
pub use sweep::{Cost, Fall, Knee, Setting, Sweep, SweepPlan, sweep};
pub use trials::effect;
pub(crate) use trials::stayed;
pub use vanished::{Vanished, vanished};
pub use verbs::{Verbs, VerbsCount};

use linerate_ceiling::Bounds;
use linerate_facts::Gap;
use linerate_facts::rdma::RdmaEnd;
use linerate_plan::Knobs;
use linerate_plan::factor::Factor;
use linerate_plan::path::{ByRole, Direction, Side};
use linerate_plan::transport::{Feature, TransportInfo};
use linerate_record::{Host, SetEnd, TrialPlan};
use linerate_units::stats::Interval;
use linerate_units::{Bytes, Nanos, Rate};

/// The content of a record, in the units that causes and views need.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a run")]
pub struct Model {
    /// The hosts, near first.
    pub hosts: Vec<Host>,
    /// Whether both ends share one machine (same boot id), and so its CPUs.
    pub same_machine: bool,
    /// Round trips on the idle path.
    pub idle: Option<Latency>,
    /// The directions that were measured, forward first.
    pub directions: Vec<DirectionModel>,
    /// Goodput of each direction while both were loaded.
    pub both: Vec<(Direction, Estimate)>,
    /// Trials with at least one slice.
    pub trials: Vec<TrialModel>,
    /// The readings that failed at either end, each listed once.
    pub gaps: Vec<(Side, Gap)>,
    /// Whether the run was cut short.
    pub complete: bool,
    /// Whether other programs made the load, and linerate only looked on.
    pub watched: bool,
    /// Whether another program made the load and reported it: its options are no options of linerate.
    pub reported: bool,
    /// Whether there is no far end: this host alone moved the bytes, to a disk or within its memory.
    pub alone: bool,
    /// How the run was asked for.
    pub asked: Asked,
}

impl Model {
    /// The host at one end.
    pub fn host(&self, side: Side) -> Option<&Host> {
        self.hosts.iter().find(|host| host.side == side)
    }

    /// The ends that a load has, the one that sends in front; the near one alone if there is no far end.
    pub fn ends(&self, direction: Direction) -> impl Iterator<Item = Side> + use<> {
        let alone = self.alone;
        let both = [direction.sender(), direction.receiver()].into_iter();
        both.filter(move |side| !alone || *side == Side::Near)
    }

    /// The model of a direction, when it was measured.
    pub fn direction(&self, direction: Direction) -> Option<&DirectionModel> {
        self.directions.iter().find(|d| d.direction == direction)
    }

    /// The trial of a factor in a direction: the last one, which had longer slices, where the first did not decide.
    pub fn tried(&self, direction: Direction, factor: Factor) -> Option<&TrialModel> {
        let of = |t: &&TrialModel| t.plan.direction == direction && t.plan.factor() == Some(factor);
        let mut all = self.trials.iter().rev().filter(of);
        let last = all.next();
        last.filter(|t| t.effect.is_some()).or_else(|| all.next()).or(last)
    }

    /// The direction that carries less than half of the other one: a user reads it first.
    pub fn slower(&self) -> Option<Direction> {
        far_slower(|direction| Some(self.direction(direction)?.base.rate().mean))
    }

    /// The direction that surely carries less than the other one: the intervals of their rates are apart, and a gain of
    /// the difference would count. Without intervals it carries less than half.
    pub fn lesser(&self) -> Option<Direction> {
        let [forward, reverse] =
            Direction::ALL.map(|direction| Some(self.direction(direction)?.base.rate()));
        let apart = |less: &Estimate, more: &Estimate| {
            let ends = less.interval.zip(more.interval);
            more.mean > less.mean * APART && ends.is_some_and(|(less, more)| less.high < more.low)
        };
        let (forward, reverse) = forward.zip(reverse)?;
        if apart(forward, reverse) {
            return Some(Direction::Forward);
        }
        let lesser = apart(reverse, forward).then_some(Direction::Reverse);
        lesser.or_else(|| self.slower())
    }
}

/// Least ratio of two rates at which a difference counts, however well both are known.
const APART: f64 = 1.05;

/// The direction whose rate is less than half of the other one's.
pub fn far_slower(rate: impl Fn(Direction) -> Option<f64>) -> Option<Direction> {
    let [forward, reverse] = Direction::ALL.map(rate);
    let (forward, reverse) = forward.zip(reverse)?;
    if forward * 2.0 < reverse {
        Some(Direction::Forward)
    } else {
        (reverse * 2.0 < forward).then_some(Direction::Reverse)
    }
}

/// The highest goodput that a resource allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    /// The goodput that the resource allows.
    pub rate: Rate,
    /// The possible capacities, because an input was not read or is only known to be in a range; the same value
    /// twice if everything is known.
    pub least: Rate,
    /// The stage that has the ceiling.
    pub stage: linerate_plan::path::Stage,
    /// The place of the resource.
    pub side: linerate_plan::path::Place,
    /// Name of the resource: `far port eth0`.
    pub name: String,
    /// The formula with numbers in.
    pub formula: String,
}

impl Ceiling {
    /// `9.41 Gb/s`, or `26 to 28.8 Gb/s`.
    pub fn words(&self) -> String {
        let ends = Bounds::new(self.least.0 as f64, self.rate.0 as f64);
        ends.words(|rate| Rate(rate as u64).to_string())
    }

    /// The share of the ceiling that a load reached.
    pub fn reached(&self, load: &Load) -> f64 {
        load.goodput.at_most() / (self.rate.0 as f64).max(1.0)
    }
}

/// The model of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionModel {
    /// The direction.
    pub direction: Direction,
    /// The load that the verdict explains: the plan's streams with the plan's knobs.
    pub base: Load,
    /// Loads with other numbers of streams, ascending.
    pub sweep: Vec<Load>,
    /// The ceilings that are known, the lowest first.
    pub ceilings: Vec<Ceiling>,
    /// The two rates of a direction that fell for good while it was loaded; `base` and `sweep` are then of the second.
    pub fell: Option<Fell>,
}

impl DirectionModel {
    /// The lowest ceiling.
    pub fn ceiling(&self) -> Option<&Ceiling> {
        self.ceilings.first()
    }

    /// The lowest ceiling of a stage.
    pub fn ceiling_of(&self, stage: linerate_plan::path::Stage) -> Option<&Ceiling> {
        self.ceilings.iter().find(|c| c.stage == stage)
    }

    /// The load with the fewest streams within 5 % of the best: more streams gain nothing.
    pub fn knee(&self) -> &Load {
        let loads = || std::iter::once(&self.base).chain(&self.sweep);
        let best = loads().map(|l| l.rate().mean).fold(0.0, f64::max);
        loads()
            .filter(|l| l.rate().mean >= best * 0.95)
            .min_by_key(|l| l.streams)
            .unwrap_or(&self.base)
    }
}

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Mean: bits per second of goodput, a number per second of operations.
    pub mean: f64,
    /// 95 % interval; `None` when there are too few samples to say.
    pub interval: Option<Interval>,
    /// Number of samples.
    pub samples: usize,
}

/// Largest ratio of an interval's upper end to its mean at which a ceiling at that end counts as reached. A
/// wider interval means that the goodput varies, and a full resource gives a steady one.
const BEYOND_MEAN: f64 = 1.01;

impl Estimate {
    /// The highest value that counts as reached: the upper end of its interval, at most a hundredth above the
    /// mean.
    pub fn at_most(&self) -> f64 {
        let high = self.interval.map_or(self.mean, |interval| interval.high);
        high.min(self.mean * BEYOND_MEAN)
    }
}

/// Percentiles of round-trip times that are derived, where the samples support them.
pub const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Round-trip times.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// Percentile (of [`PERCENTILES`]) and its value, only where the samples support it.
    pub percentiles: Vec<(f64, Nanos)>,
    /// Number of round trips.
    pub samples: u64,
    /// The shortest round trip.
    pub least: Nanos,
}

impl Latency {
    /// The value of a percentile, if the samples support it.
    pub fn percentile(&self, p: f64) -> Option<Nanos> {
        self.percentiles.iter().find(|(q, _)| (q - p).abs() < 1e-9).map(|(_, v)| *v)
    }
}

/// One direction of one step under load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Load {
    /// The transport of the load.
    pub transport: &'static TransportInfo,
    /// Streams: connections, or sources of datagrams.
    pub streams: u32,
    /// The settings of its connections.
    pub knobs: Knobs,
    /// The settings in force at each end.
    pub made: ByRole<SetEnd>,
    /// Goodput at the receiver over the steady part.
    pub goodput: Estimate,
    /// Operations, or messages, in a second over the steady part; `None` of sockets, which have neither.
    pub operations: Option<Estimate>,
    /// Goodput at the receiver with the ramp.
    pub goodput_with_ramp: f64,
    /// Goodput of each tick at the receiver, bits per second.
    pub ticks: Vec<f64>,
    /// Whether a steady part was found.
    pub steady: bool,
    /// The counts of its connections at the sender; empty for other transports.
    pub tcp: TcpShares,
    /// Sizes of the packets that it sends; `None` if unknown, as for other transports.
    pub packets: Option<Packets>,
    /// Payload of the largest segment that both ends of each connection said they take; `None` if one was not read.
    pub takes: Option<Bytes>,
    /// Segments in a second that the receivers sent back: acknowledgements, since they carry no payload. `None` if they
    /// were not counted.
    pub acknowledgements: Option<f64>,
    /// Whether both of its programs send and neither reads; only of connections of other programs.
    pub deadlock: Option<Deadlock>,
    /// The counts of its datagrams; `None` if they were not counted, and for other transports.
    pub datagrams: Option<Datagrams>,
    /// The sending threads.
    pub senders: Vec<Thread>,
    /// The receiving threads.
    pub receivers: Vec<Thread>,
    /// Share of the sends without a copy that the kernel copied anyway; `None` if it reported none.
    pub copied: Option<f64>,
    /// Payload that waits for the receiving application, mean bytes over streams and time.
    pub unread: Option<f64>,
    /// Payload that arrived and was never read in time, over the payload that the program read: by how much the
    /// arrivals are faster than the reader. 0 if the reader keeps up, or if unread payload fills the window.
    pub behind: Option<f64>,
    /// Share of the samples of the receive queues that held no more than one read: the program had read
    /// everything. `None` without samples.
    pub caught_up: Option<f64>,
    /// Memory of a receiving socket's buffer (`sk_rcvbuf`), mean over streams and time.
    pub recv_memory: Option<Bytes>,
    /// CPUs of the sender's and of the receiver's host.
    pub cpus: ByRole<Vec<Cpu>>,
    /// How the CPU quota of the sender and of the receiver stopped them; `None` if nothing was
    /// counted.
    pub throttled: ByRole<Option<Throttled>>,
    /// Bytes per second that CPUs of the sender's and of the receiver's host moved to and from memory.
    pub memory: ByRole<Option<f64>>,
    /// Round trips under load.
    pub latency: Option<Latency>,
    /// Share of the time of round trips under load that their threads waited for a CPU, on the sender's and
    /// the receiver's host. `None` if nothing was timed, or this was not read.
    pub probe_waited: ByRole<Option<f64>>,
    /// Other sessions loaded a host at the same time.
    pub contended: bool,
    /// Other traffic on the ports that the load crossed; `None` if unknown.
    pub foreign: Option<Foreign>,
    /// Packets that the hosts lost or delayed themselves: drops and shaping at their own ports.
    pub local: Vec<Local>,
    /// Shapers of the sender's own ports that its packets passed; `None` if no queueing discipline
    /// was read.
    pub shapers: Option<Vec<Shaping>>,
    /// Queues of the sender's own ports that its packets passed; `None` if no queueing discipline was
    /// read.
    pub queues: Option<Vec<Queue>>,
    /// Mean bytes of a packet, as the sender's port sent it and as the receiver's port received it.
    pub packet_bytes: ByRole<Option<f64>>,
    /// Pauses at the port of the sender and of the receiver; `None` if nothing counts them.
    pub paused: ByRole<Option<Paused>>,
    /// What the RDMA ports of the sender and of the receiver counted; `None` of a port that is unknown, as for other
    /// transports.
    pub verbs: ByRole<Option<Verbs>>,
    /// Allowances of a cloud that were counted, exceeded or not.
    pub allowances: Vec<Allowance>,
    /// Fragments in a second: those that the sender's host made, and those that the receiver's host received;
    /// `None` if they were not counted.
    pub fragments: ByRole<Option<f64>>,
    /// The limits of the memory for TCP at the sender and at the receiver; `None` if they were not read.
    pub socket_memory: ByRole<Option<Vec<SocketMemory>>>,
    /// What each port in the network of the receiver's address received; empty if there is one only.
    pub arrivals: Vec<Arrival>,
    /// Packets that the kernel of the sender's and of the receiver's host discarded, of all programs.
    pub netstat: ByRole<Netstat>,
    /// Bytes of the largest packets that were sent last; `None` if the sender was not read.
    pub in_use: Option<Bytes>,
    /// Collisions for each packet that the port of the sender and of the receiver sent; `None` if
    /// they were not counted.
    pub collided: ByRole<Option<f64>>,
    /// Whether segments were retransmitted throughout, or in several episodes: not because streams had overrun a queue
    /// once.
    pub keeps_losing: bool,
    /// The interruptions of the load, in words.
    pub interruptions: Vec<String>,
}

impl Load {
    /// Whether its transport has a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.transport.has(feature)
    }

    /// The port of an RDMA device that the load uses at an end; `None` for other transports, and in records of older
    /// versions.
    pub fn rdma(&self, direction: Direction, side: Side) -> Option<&RdmaEnd> {
        self.made.at(direction, side).rdma.as_deref()
    }
}

/// The effect of a CPU quota on an end: among the program's control groups, the one that was stopped longest.
#[derive(Debug, Clone, PartialEq)]
pub struct Throttled {
    /// Path of the control group.
    pub group: String,
    /// Share of the quota's periods in which it was used up.
    pub periods: f64,
    /// Share of time in which the group was stopped, at most 1. Groups count it on each CPU.
    pub time: f64,
}

/// Other traffic in the direction of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Foreign {
    /// The end whose port carried most of that traffic.
    pub side: Side,
    /// Bytes of other programs divided by ours.
    pub share: f64,
}

/// A trial and its measured effect.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialModel {
    /// The setting that was tried.
    pub plan: TrialPlan,
    /// The rate that is judged, after over before; `None` while too few slices were measured.
    pub effect: Option<Interval>,
    /// Number of measured slices.
    pub slices: u32,
    /// Mean goodput of each setting, bits per second.
    pub goodput: [f64; 2],
    /// CPU time of the sending threads for each byte that arrived, in seconds, of each setting; `None` if it
    /// was not read.
    pub cost: [Option<f64>; 2],
    /// Share of the segments that were retransmitted, of each setting; `None` if none were counted.
    pub lost: [Option<f64>; 2],
    /// The load of the trial's last slice with the change; `None` before there is one.
    pub changed: Option<Load>,
    /// Ratio of the share of segments retransmitted with the change to the share without it; `None` while too
    /// little was measured, and if nothing was retransmitted in either setting.
    pub loss: Option<Interval>,
    /// Round trips under load, ratio of after to before. `None` while too few slices were measured, and if no
    /// round trips were timed during them.
    pub latency: Option<Interval>,
}
