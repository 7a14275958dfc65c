//! The model: rates, shares and intervals derived from a record. Always recomputed, never saved.
//!
//! A share is a part of time or of bytes, from 0 to 1. What could not be read is `None`; nothing
//! is filled in.

mod arrivals;
mod behind;
mod by_size;
mod ceilings;
mod cpus;
mod crowd;
mod datagrams;
mod deadlock;
mod delayed;
mod derive;
mod disk;
mod driver;
mod elsewhere;
mod ends;
mod fell;
mod flow;
mod foreign;
mod fragments;
mod goodput;
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
mod requested;
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
pub use disk::{DiskLoad, Done};
pub(crate) use disk::{allowed, has_layer, largest, leaves, room};
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
pub use once::{Once, moved_by, once, sent_in};
pub use packets::Packets;
pub use processor::{Cpu, Thread};
pub use queues::Queue;
pub use reported::{Reported, reported};
pub use requested::Requested;
pub use shaping::Shaping;
pub use shares::TcpShares;
pub use socket_memory::SocketMemory;
pub use spread::{Part, base_operations, base_round_trips, idle_round_trips, parts};
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

/// All that is derived from a record, in the units that causes and views use.
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
    /// The trials of which at least one slice was measured.
    pub trials: Vec<TrialModel>,
    /// The readings that failed at either end, each listed once.
    pub gaps: Vec<(Side, Gap)>,
    /// Whether the run ended by itself: it was not cut short.
    pub complete: bool,
    /// Whether other programs made the load, and linerate only read their connections.
    pub watched: bool,
    /// Whether another program made the load and reported the results: its options are no options of linerate.
    pub reported: bool,
    /// Whether there is no far end: this host alone moved the bytes, to a disk or within its memory.
    pub alone: bool,
    /// The options with which the run was started, and its command.
    pub requested: Requested,
}

impl Model {
    /// The host at one end.
    pub fn host(&self, side: Side) -> Option<&Host> {
        self.hosts.iter().find(|host| host.side == side)
    }

    /// The ends of a load, the sender first; only the near one if there is no far end.
    pub fn ends(&self, direction: Direction) -> impl Iterator<Item = Side> + use<> {
        let alone = self.alone;
        let both = [direction.sender(), direction.receiver()].into_iter();
        both.filter(move |side| !alone || *side == Side::Near)
    }

    /// The model of a direction; `None` if it was not measured.
    pub fn direction(&self, direction: Direction) -> Option<&DirectionModel> {
        self.directions.iter().find(|d| d.direction == direction)
    }

    /// The trial of a factor in a direction. If it was made twice, the later one, which had longer slices, if it has
    /// an effect.
    pub fn tried(&self, direction: Direction, factor: Factor) -> Option<&TrialModel> {
        let of = |t: &&TrialModel| t.plan.direction == direction && t.plan.factor() == Some(factor);
        let mut all = self.trials.iter().rev().filter(of);
        let last = all.next();
        last.filter(|t| t.effect.is_some()).or_else(|| all.next()).or(last)
    }

    /// The direction that carries less than half as much as the other one; views show it first.
    pub fn slower(&self) -> Option<Direction> {
        far_slower(|direction| Some(self.direction(direction)?.base.rate().mean))
    }

    /// The direction that surely carries less than the other one: the intervals of their rates do not overlap, and
    /// the rates differ by more than `APART`. Without intervals, the one that carries less than half.
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

/// The direction whose rate is less than half the rate of the other direction.
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
    /// The goodput that the resource allows: the upper end, if only a range is known.
    pub rate: Rate,
    /// The lower end of the goodput that the resource allows, if an input was not read or only its range is known;
    /// equal to `rate` if everything is known.
    pub least: Rate,
    /// The stage that has the ceiling.
    pub stage: linerate_plan::path::Stage,
    /// The place of the resource.
    pub side: linerate_plan::path::Place,
    /// Name of the resource: `far port eth0`.
    pub name: String,
    /// The formula of the ceiling, with its numbers.
    pub formula: String,
}

impl Ceiling {
    /// The ceiling in words: `9.41 Gb/s`, or `26 to 28.8 Gb/s` if only a range is known.
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
    /// The direction that is modelled.
    pub direction: Direction,
    /// The load that the verdict explains: as many streams and the same knobs as in the plan.
    pub base: Load,
    /// Loads with other numbers of streams, ascending.
    pub sweep: Vec<Load>,
    /// The ceilings that are known, the lowest first.
    pub ceilings: Vec<Ceiling>,
    /// Both rates of a direction whose rate fell for good while it was loaded. `base` and `sweep` then describe the
    /// second rate.
    pub fell: Option<Fell>,
}

impl DirectionModel {
    /// The lowest ceiling of the direction.
    pub fn ceiling(&self) -> Option<&Ceiling> {
        self.ceilings.first()
    }

    /// The lowest ceiling of a stage.
    pub fn ceiling_of(&self, stage: linerate_plan::path::Stage) -> Option<&Ceiling> {
        self.ceilings.iter().find(|c| c.stage == stage)
    }

    /// The load with the fewest streams whose rate is within 5 % of the best: more streams gain nothing.
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
    /// Mean value: of goodput in bits per second, of operations as a number per second.
    pub mean: f64,
    /// 95 % interval; `None` when there are too few samples.
    pub interval: Option<Interval>,
    /// Number of samples of which this is the mean.
    pub samples: usize,
}

/// Largest ratio of an interval's upper end to its mean, at which goodput up to that end counts. A wider interval
/// means that the goodput varies, and a full resource gives a steady one.
const BEYOND_MEAN: f64 = 1.01;

impl Estimate {
    /// The value that is compared with a ceiling: the upper end of the interval, at most a hundredth above the mean.
    pub fn at_most(&self) -> f64 {
        let high = self.interval.map_or(self.mean, |interval| interval.high);
        high.min(self.mean * BEYOND_MEAN)
    }
}

/// Percentiles of round-trip times to derive; those with too few samples are left out.
pub const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// The distribution of round-trip times.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// Each percentile (of [`PERCENTILES`]) and its value; without those for which there are too few samples.
    pub percentiles: Vec<(f64, Nanos)>,
    /// Number of round trips.
    pub samples: u64,
    /// The shortest round trip.
    pub least: Nanos,
}

impl Latency {
    /// The value of a percentile; `None` if there are too few samples for it.
    pub fn percentile(&self, p: f64) -> Option<Nanos> {
        self.percentiles.iter().find(|(q, _)| (q - p).abs() < 1e-9).map(|(_, v)| *v)
    }
}

/// The figures of one direction in one step under load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Load {
    /// The transport of the load.
    pub transport: &'static TransportInfo,
    /// Number of streams: connections, or sources of datagrams.
    pub streams: u32,
    /// What the disks below the file did; `None` if no disk is known, or one was not read.
    pub disk: Option<DiskLoad>,
    /// The settings of the load's connections.
    pub knobs: Knobs,
    /// The settings in force at the sender and at the receiver.
    pub made: ByRole<SetEnd>,
    /// Goodput at the receiver over the steady part of the step.
    pub goodput: Estimate,
    /// Operations, or messages, per second over the steady part; `None` for sockets, which count neither.
    pub operations: Option<Estimate>,
    /// Goodput at the receiver, in bits per second, with the ramp at the start included.
    pub goodput_with_ramp: f64,
    /// Goodput at the receiver in each tick, in bits per second.
    pub ticks: Vec<f64>,
    /// Whether the load has a part in which its rate is steady.
    pub steady: bool,
    /// What the sender's kernel counted for the TCP connections of the load; empty for other transports.
    pub tcp: TcpShares,
    /// Sizes of the packets that the load sends; `None` if they are unknown.
    pub packets: Option<Packets>,
    /// Payload of the largest segment that both ends of each connection accept, as announced; `None` if one end was
    /// not read.
    pub takes: Option<Bytes>,
    /// Segments per second that the receivers sent back: acknowledgements, since they carry no payload. `None` if
    /// they were not counted.
    pub acknowledgements: Option<f64>,
    /// A deadlock of the two programs: both send and neither reads. Only for connections of other programs.
    pub deadlock: Option<Deadlock>,
    /// What was counted of the load's datagrams; `None` if nothing was, and for other transports.
    pub datagrams: Option<Datagrams>,
    /// The sending threads.
    pub senders: Vec<Thread>,
    /// The receiving threads.
    pub receivers: Vec<Thread>,
    /// Share of zero-copy sends that the kernel copied anyway; `None` if the kernel reported none.
    pub copied: Option<f64>,
    /// Payload that waits for the receiving application, in bytes: mean over streams and time.
    pub unread: Option<f64>,
    /// Payload that arrived and was not read in time, over the payload that the program read: by how much arrivals
    /// are faster than the reader. 0 if the reader keeps up, or if unread payload fills the window.
    pub behind: Option<f64>,
    /// Share of the samples in which a receive queue held no more than one read: the program had read everything.
    /// `None` without samples.
    pub caught_up: Option<f64>,
    /// Memory of a receiving socket's buffer (`sk_rcvbuf`), in bytes: mean over streams and time.
    pub recv_memory: Option<Bytes>,
    /// Use of the CPUs of the sender's and of the receiver's host.
    pub cpus: ByRole<Vec<Cpu>>,
    /// Time for which a CPU quota stopped the sender and the receiver; `None` if no quota was counted.
    pub throttled: ByRole<Option<Throttled>>,
    /// Bytes per second that CPUs of the sender's and of the receiver's host moved to and from memory.
    pub memory: ByRole<Option<f64>>,
    /// Round trips that were timed under load.
    pub latency: Option<Latency>,
    /// Share of the round-trip time under load for which the timing threads waited for a CPU, on the sender's and the
    /// receiver's host. `None` if no round trip was timed, or if the wait was not read.
    pub probe_waited: ByRole<Option<f64>>,
    /// Whether other sessions of linerate loaded one of the hosts at the same time.
    pub contended: bool,
    /// Other traffic on the ports that the load crossed; `None` if unknown.
    pub foreign: Option<Foreign>,
    /// Packets that the hosts lost or delayed themselves: drops and shaping at their own ports.
    pub local: Vec<Local>,
    /// Traffic shapers of the sender's own ports that the load's packets passed; `None` if no queueing discipline was
    /// read.
    pub shapers: Option<Vec<Shaping>>,
    /// Queues of the sender's own ports that the load's packets passed; `None` if no queueing discipline was read.
    pub queues: Option<Vec<Queue>>,
    /// Mean bytes of a packet at the sender's port, as sent, and at the receiver's port, as received.
    pub packet_bytes: ByRole<Option<f64>>,
    /// Pause frames at the port of the sender and of the receiver; `None` if the port does not count them.
    pub paused: ByRole<Option<Paused>>,
    /// Counts of the RDMA ports of the sender and of the receiver; `None` for an unknown port, and for other
    /// transports.
    pub verbs: ByRole<Option<Verbs>>,
    /// Counters of traffic that exceeded an allowance of a cloud, also those that stayed at 0.
    pub allowances: Vec<Allowance>,
    /// Fragments per second that the sender's host made, and that the receiver's host received; `None` if they were
    /// not counted.
    pub fragments: ByRole<Option<f64>>,
    /// The limits of the kernel's memory for TCP at the sender and at the receiver; `None` if they were not read.
    pub socket_memory: ByRole<Option<Vec<SocketMemory>>>,
    /// What was received by each port that has an address in the receiver's network; empty if there is only one such
    /// port.
    pub arrivals: Vec<Arrival>,
    /// Packets of all programs that the kernel of the sender's and of the receiver's host discarded.
    pub netstat: ByRole<Netstat>,
    /// Bytes of the largest packets that were sent at the end of the load; `None` if the sender was not read.
    pub in_use: Option<Bytes>,
    /// Ethernet collisions for each packet that the port of the sender and of the receiver sent; `None` if they were
    /// not counted.
    pub collided: ByRole<Option<f64>>,
    /// Whether segments were retransmitted throughout the load, or in several episodes. False if streams only overran
    /// a queue once.
    pub keeps_losing: bool,
    /// The interruptions of the load, in words.
    pub interruptions: Vec<String>,
}

impl Load {
    /// Whether the load's transport has a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.transport.has(feature)
    }

    /// The port of an RDMA device that the load uses at an end; `None` for other transports, and in records of older
    /// versions.
    pub fn rdma(&self, direction: Direction, side: Side) -> Option<&RdmaEnd> {
        self.made.at(direction, side).rdma.as_deref()
    }
}

/// The effect of a CPU quota on an end. Of the program's control groups, the one that was stopped longest is
/// described.
#[derive(Debug, Clone, PartialEq)]
pub struct Throttled {
    /// Path of the control group.
    pub group: String,
    /// Share of the quota's periods in which the group used up its quota.
    pub periods: f64,
    /// Share of time in which the group was stopped, at most 1. The kernel counts this time on each CPU.
    pub time: f64,
}

/// Traffic of other programs in the direction of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Foreign {
    /// The end whose port carried most of the other traffic.
    pub side: Side,
    /// Bytes of other programs over the bytes of the load.
    pub share: f64,
}

/// A trial and its measured effect.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialModel {
    /// The plan of the trial, with the change.
    pub plan: TrialPlan,
    /// Ratio of the judged rate after the change to that before; `None` while too few slices were measured.
    pub effect: Option<Interval>,
    /// Number of measured slices.
    pub slices: u32,
    /// Mean goodput in the setting before and after the change, bits per second.
    pub goodput: [f64; 2],
    /// CPU time of the sending threads for each byte that arrived, in seconds, before and after the change; `None` if
    /// it was not read.
    pub cost: [Option<f64>; 2],
    /// Share of the segments that were retransmitted, before and after the change; `None` if none were counted.
    pub lost: [Option<f64>; 2],
    /// The load of the trial's last slice with the change; `None` before such a slice was measured.
    pub changed: Option<Load>,
    /// Share of segments retransmitted with the change, over the share without it; `None` while too little was
    /// measured, and if nothing was retransmitted in either setting.
    pub loss: Option<Interval>,
    /// Round trip under load after the change, over that before. `None` while too few slices were measured, and if no
    /// round trips were timed during them.
    pub latency: Option<Interval>,
}
