//! What a run measures and tries: the plan, with every default filled in.
//!
//! Owns the words of a path ([`path`]), the ways to move bytes and their options ([`transport`]), what a trial can
//! change ([`factor`], [`change`]), and the points of studies and searches ([`study`], [`search`]). Knows no
//! reading: what was measured is in the record.
//!
//! A *set* is a group of warm connections made with one choice of [`Knobs`]; a *step* uses one or
//! more sets for a time. A trial's two settings are two sets, measured in turn.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod application;
pub mod change;
pub mod factor;
pub mod path;
pub mod search;
pub mod study;
pub mod subject;
pub mod transport;

use crate::path::{Direction, Measure};
use crate::transport::{ACCESS, Options, PatternKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::HostChange;
use linerate_units::{Bytes, Nanos, Rate};

/// How the sender hands payload to the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Handover {
    /// Each send copies the payload into the kernel, as applications do.
    #[default]
    Copy,
    /// The kernel sends from the program's memory (`MSG_ZEROCOPY`), and reports when it no longer needs it.
    Zerocopy,
    /// The kernel sends pages of a file in memory (`sendfile`).
    Sendfile,
    /// Both ends use io_uring: the kernel sends registered pages of the sender, and fills buffers that the receiver
    /// provides.
    #[serde(rename = "io-uring")]
    IoUring,
}

impl Handover {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Zerocopy => "zerocopy",
            Self::Sendfile => "sendfile",
            Self::IoUring => "io-uring",
        }
    }

    /// Whether the kernel is asked to send the program's own pages, and reports whether it did.
    pub const fn is_told(self) -> bool {
        matches!(self, Self::Zerocopy | Self::IoUring)
    }
}

/// How the receiving application reads its payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Receive {
    /// Payload is copied into a user buffer, as applications do.
    #[default]
    Copy,
    /// Dropped in the kernel (`MSG_TRUNC`): what reception costs without the copy.
    Discard,
}

/// Extra CPU work that the tool itself does on its threads, per byte of payload.
///
/// A trial's factor: a thread without slack slows down in proportion, a thread with slack does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtraWork {
    /// Work of each sending thread, picoseconds of CPU time per byte.
    pub sender_ps_per_byte: u64,
    /// Work of each receiving thread, picoseconds of CPU time per byte.
    pub receiver_ps_per_byte: u64,
}

/// The settings of the connections of one set that the tool controls: the factors of trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent factors of connections")]
#[serde(default)]
pub struct Knobs {
    /// Connections, each with a thread at both ends.
    pub streams: u32,
    /// Payload handed to the kernel in one send; zero lets each end choose by the rate it sees. For
    /// datagrams: their size; zero is the size that fits one packet of the route. For loads of memory: the
    /// size of each thread's array.
    pub write_size: Bytes,
    /// Largest payload that one receive reads from the kernel; zero lets each end choose.
    pub read_size: Bytes,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// The requested `SO_SNDBUF`; `None` leaves the kernel's autotuning on.
    pub send_buffer: Option<Bytes>,
    /// The requested `SO_RCVBUF`; `None` leaves the kernel's autotuning on.
    pub recv_buffer: Option<Bytes>,
    /// `TCP_WINDOW_CLAMP` on the receiver: an upper bound of the window it offers.
    pub window_clamp: Option<Bytes>,
    /// `TCP_MAXSEG`.
    pub mss: Option<u32>,
    /// Highest rate of each stream: `SO_MAX_PACING_RATE`; for datagrams, kept by the sender's own clock.
    pub pacing: Option<Rate>,
    /// Congestion control of both ends; `None` leaves the system's.
    pub congestion: Option<String>,
    /// How the sender hands payload over.
    pub copy: Handover,
    /// How the receiver takes payload.
    pub receive: Receive,
    /// Extra CPU work per byte.
    pub extra_work: ExtraWork,
    /// The NUMA node that sending threads are kept on; `None` leaves the choice to that end.
    pub sender_node: Option<u32>,
    /// The NUMA node that receiving threads are kept on; `None` leaves the choice to that end.
    pub receiver_node: Option<u32>,
    /// The CPUs that sending threads are pinned to, one for each stream; empty leaves the choice to that end.
    /// They take precedence over the node.
    pub sender_cpus: Vec<u32>,
    /// The CPUs that receiving threads are pinned to, one for each stream; empty leaves the choice to that
    /// end. They take precedence over the node.
    pub receiver_cpus: Vec<u32>,
    /// Whether connections are dialled again, from other source ports, until fewer of them share a receive
    /// queue than in the base load. The run picks the ports; an end only dials as instructed.
    pub other_ports: bool,
    /// Round trips in open loop: each message has its own due time, from which it is timed, even if earlier
    /// ones are not yet answered. Otherwise one message is in flight at a time.
    pub open_loop: bool,
    /// Threads poll for messages or completed operations instead of sleeping until there is one. They use a
    /// full CPU at any load.
    pub busy_poll: bool,
    /// Connections of round trips keep Nagle's algorithm; otherwise `TCP_NODELAY` is set on them in any case.
    #[serde(skip_serializing_if = "is_false")]
    pub nagle: bool,
    /// Each message of round trips is handed to the kernel in two writes.
    #[serde(skip_serializing_if = "is_false")]
    pub two_writes: bool,
    /// Operations that each stream keeps in flight; zero if its transport has no such number.
    #[serde(skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Options of the transport that are set.
    #[serde(skip_serializing_if = "Options::is_empty")]
    pub options: Options,
    /// A setting of a host that is changed while the connections are made and used.
    pub host: Option<HostChange>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            streams: 1,
            write_size: Bytes(0),
            read_size: Bytes(0),
            nodelay: false,
            send_buffer: None,
            recv_buffer: None,
            window_clamp: None,
            mss: None,
            pacing: None,
            congestion: None,
            copy: Handover::Copy,
            receive: Receive::Copy,
            extra_work: ExtraWork::default(),
            sender_node: None,
            receiver_node: None,
            sender_cpus: Vec::new(),
            receiver_cpus: Vec::new(),
            other_ports: false,
            open_loop: false,
            busy_poll: false,
            nagle: false,
            two_writes: false,
            depth: 0,
            options: Options::default(),
            host: None,
        }
    }
}

/// Omitted if zero, so that records and messages without a depth do not change.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// Omitted if false, so that records and messages without the setting do not change.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(is: &bool) -> bool {
    !*is
}

impl Knobs {
    /// The judged quantity of a load with these knobs: operations, if a number of them is kept in flight.
    pub const fn measure(&self) -> Measure {
        if self.depth > 0 { Measure::Operations } else { Measure::Goodput }
    }

    /// The maximum rate of all streams together, if it is limited.
    pub fn rate(&self) -> Option<Rate> {
        let each = self.pacing?;
        Some(Rate(each.0.saturating_mul(self.streams.into())))
    }
}

/// The traffic that the connections of a set carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "pattern")]
pub enum Pattern {
    /// Payload in one direction, as fast as possible.
    Stream {
        /// The direction of the payload.
        direction: Direction,
    },
    /// The near end sends `size` bytes, the far end answers with as many; round trips are timed.
    PingPong {
        /// Payload in each direction.
        size: Bytes,
        /// Time from one intended send to the next; zero, or a round trip that takes longer, sends
        /// the next when the answer is in.
        interval: Nanos,
    },
    /// Operations, as fast as possible, that involve no program at the other end. Their size is
    /// [`Knobs::write_size`], and [`Knobs::depth`] of them are in flight.
    Operations {
        /// The kind of access of each operation.
        access: Access,
    },
}

/// The kind of access of an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Operations read.
    Read,
    /// Operations write.
    Write,
    /// It reads and writes as much elsewhere.
    #[default]
    Copy,
}

impl Access {
    /// All kinds of access.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Copy];

    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
        }
    }

    /// The settings of a transport's options.
    pub fn of(options: &Options) -> Self {
        Self::named(options).unwrap_or_default()
    }

    /// The access that an option names.
    fn named(options: &Options) -> Option<Self> {
        let asked = options.word(ACCESS.key);
        Self::ALL.into_iter().find(|access| Some(access.name()) == asked)
    }
}

impl Pattern {
    /// The direction of payload; `None` if it flows in both. Operations count as forward, since the near end
    /// requests them.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            Self::Stream { direction } => Some(direction),
            Self::Operations { .. } => Some(Direction::Forward),
            Self::PingPong { .. } => None,
        }
    }

    /// The pattern without its parameters.
    pub const fn kind(self) -> PatternKind {
        match self {
            Self::Stream { .. } => PatternKind::Stream,
            Self::Operations { .. } => PatternKind::Operations,
            Self::PingPong { .. } => PatternKind::RoundTrips,
        }
    }
}

/// A set of connections to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetPlan {
    /// Number of the set in this run, from 0.
    pub id: u32,
    /// The traffic of a load.
    pub pattern: Pattern,
    /// The settings that the connections are made with.
    pub knobs: Knobs,
}

impl SetPlan {
    /// Makes a set of the transport `engine`. The set keeps those of the transport's options that apply to
    /// the pattern. Of some transports these options say how many operations are in flight, and whether threads poll.
    pub fn of(engine: &str, id: u32, pattern: Pattern, mut knobs: Knobs) -> Self {
        let info = transport::of(engine);
        knobs.options = knobs.options.of(info.options, pattern.kind());
        if knobs.depth == 0 {
            knobs.depth = (info.depth)(&knobs.options);
        }
        if let Some(polls) = info.polls {
            knobs.busy_poll = polls(&knobs.options);
        }
        Self { id, pattern, knobs }
    }
}

/// The purpose of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Purpose {
    /// Ping-pong on an otherwise idle path.
    IdleLatency,
    /// A direction with the plan's streams and default knobs: what the verdict explains.
    Base {
        /// The direction that is loaded.
        direction: Direction,
    },
    /// A load other than the base load: more streams, to find the knee; another rate, to find the highest one
    /// without loss.
    Sweep {
        /// The direction that is loaded.
        direction: Direction,
    },
    /// Both directions at the same time.
    Both,
    /// Warms a trial's connections up; it is not counted.
    Warm {
        /// Number of the trial in this run, from 0.
        trial: u32,
    },
    /// A slice of a trial.
    Slice {
        /// Number of the trial in this run, from 0.
        trial: u32,
        /// Which of the trial's two settings: false is A (unchanged), true is B (changed).
        changed: bool,
    },
}

/// A step: sets in use at the same time, for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Number of the step in this run, from 0.
    pub index: u32,
    /// The purpose of the step.
    pub purpose: Purpose,
    /// The sets that carry load, by id.
    pub sets: Vec<u32>,
    /// Wash-out: time at the start that does not count (queues and windows settle).
    pub washout: Nanos,
    /// Time that counts, after the wash-out.
    pub measure: Nanos,
    /// Time from one sample to the next.
    pub tick: Nanos,
}

impl StepPlan {
    /// The time that counts of a step that ended in order this long after it began: whole ticks, so that the last sample is
    /// no sliver of one.
    pub fn measured(&self, elapsed: Nanos) -> Nanos {
        let counted = elapsed.0.saturating_sub(self.washout.0);
        let ticks = counted.checked_div(self.tick.0).unwrap_or(0);
        Nanos(ticks.saturating_mul(self.tick.0).min(self.measure.0))
    }
}

/// The plan of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The transport's name, as in [`crate::transport::TRANSPORTS`]; `sim` for the simulated path.
    pub engine: String,
    /// The far end in the form that the user typed: a host, or the path of a file or a disk of this one; `None` if this
    /// machine is measured against itself.
    pub peer: Option<String>,
    /// Options by which the far end is reached, as the user would type them: `--open`. Records of older versions have
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reach: Vec<String>,
    /// Knobs of the base steps.
    pub knobs: Knobs,
    /// Directions to be judged.
    pub directions: Vec<Direction>,
    /// Budget of the whole run.
    pub time: Nanos,
    /// Whether more streams are measured too, to find the knee.
    pub sweep: bool,
    /// Whether trials may be run.
    pub trials: bool,
}

impl Plan {
    /// The pattern of a load of one direction: a payload stream if the transport can, else operations.
    pub fn load(&self, direction: Direction) -> Pattern {
        let info = transport::of(&self.engine);
        if info.carries(PatternKind::Operations) && !info.carries(PatternKind::Stream) {
            let access = Access::named(&self.knobs.options).unwrap_or(info.access);
            return Pattern::Operations { access };
        }
        Pattern::Stream { direction }
    }
}

#[cfg(test)]
mod tests {
    use ciborium::Value;

    use super::*;
    use crate::transport::{Kind, Setting};

    #[test]
    fn ways_are_called_the_same_in_records_and_on_the_screen() {
        for way in [Handover::Copy, Handover::Zerocopy, Handover::Sendfile, Handover::IoUring] {
            let written = Value::serialized(&way).unwrap();
            assert_eq!(written, Value::Text(way.name().to_owned()));
        }
    }

    #[test]
    fn threads_of_rdma_loads_poll_unless_they_wait_for_events() {
        let pattern = Pattern::PingPong { size: Bytes(64), interval: Nanos(0) };
        let polls = |engine: &str, events: bool| {
            let mut knobs = Knobs::default();
            let key = transport::rdma::EVENTS.key;
            knobs.options.set(key, Setting::Switch(events));
            SetPlan::of(engine, 0, pattern, knobs).knobs.busy_poll
        };
        assert!(polls("rdma", false));
        assert!(!polls("rdma", true));
        assert!(!polls("tcp", false));
    }

    #[test]
    fn the_words_of_accesses_are_those_of_the_option() {
        let Kind::Word(words) = ACCESS.kind else { panic!("{:?}", ACCESS.kind) };
        assert_eq!(words, Access::ALL.map(Access::name));
        for access in Access::ALL {
            let mut options = Options::default();
            options.set(ACCESS.key, Setting::Word(access.name().to_owned()));
            assert_eq!(Access::of(&options), access);
        }
        assert_eq!(Access::of(&Options::default()), Access::Copy);
    }

    #[test]
    fn a_load_is_a_stream_where_the_transport_has_one() {
        let load = |engine: &str| {
            let plan = Plan {
                engine: engine.to_owned(),
                peer: None,
                reach: Vec::new(),
                knobs: Knobs::default(),
                directions: Vec::new(),
                time: Nanos(0),
                sweep: false,
                trials: false,
            };
            plan.load(Direction::Reverse).kind()
        };
        for engine in ["tcp", "udp", "shm", "null", "sim"] {
            assert_eq!(load(engine), PatternKind::Stream, "{engine}");
        }
        assert_eq!(load("memory"), PatternKind::Operations);
    }
}
