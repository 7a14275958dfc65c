//! The plan of a run: what it measures and tries, with every default filled in.
//!
//! This crate owns the words of a path ([`path`]), the ways to move bytes and their options ([`transport`]), what a
//! trial can change ([`factor`], [`change`]), and the points of studies and searches ([`study`], [`search`]). It has no
//! readings: these are in the record.
//!
//! A *set* is a group of warm connections made with the same [`Knobs`]; a *step* loads one or more sets for a time. A
//! trial compares two sets, measured in turn.
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
    /// The kernel sends from the program's memory (`MSG_ZEROCOPY`), and reports when it no longer needs that memory.
    Zerocopy,
    /// The kernel sends pages of a file that is in memory (`sendfile`).
    Sendfile,
    /// Both ends use io_uring: the kernel sends registered pages of the sender, and fills buffers that the receiver
    /// provides.
    #[serde(rename = "io-uring")]
    IoUring,
}

impl Handover {
    /// Name of the handover in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Zerocopy => "zerocopy",
            Self::Sendfile => "sendfile",
            Self::IoUring => "io-uring",
        }
    }

    /// Whether the kernel sends the program's own pages if it can, and reports whether it did.
    pub const fn is_reported(self) -> bool {
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
    /// The kernel drops payload (`MSG_TRUNC`) instead of copying it. This shows the cost of reception without the copy.
    Discard,
}

/// Extra CPU work that linerate does on its own threads, for each byte of payload.
///
/// It is a factor of trials: a thread that is always busy slows down in proportion, a thread with idle time does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtraWork {
    /// Work of each sending thread, picoseconds of CPU time per byte.
    pub sender_ps_per_byte: u64,
    /// Work of each receiving thread, picoseconds of CPU time per byte.
    pub receiver_ps_per_byte: u64,
}

/// The settings of the connections of one set that linerate controls: the factors of trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent factors of connections")]
#[serde(default)]
pub struct Knobs {
    /// Number of connections. Each has a thread at both ends.
    pub streams: u32,
    /// Payload handed to the kernel in one send; zero lets each end choose by the rate that it measures. For datagrams:
    /// payload of each, zero for what fits one packet of the route. For loads of memory: the size of each thread's
    /// array.
    pub write_size: Bytes,
    /// Largest payload that one receive reads from the kernel; zero lets each end choose the size.
    pub read_size: Bytes,
    /// Whether `TCP_NODELAY` is set: small writes are sent at once.
    pub nodelay: bool,
    /// The requested `SO_SNDBUF`; `None` leaves the kernel's autotuning on.
    pub send_buffer: Option<Bytes>,
    /// The requested `SO_RCVBUF`; `None` leaves the kernel's autotuning on.
    pub recv_buffer: Option<Bytes>,
    /// Upper bound of the window that the receiver offers (`TCP_WINDOW_CLAMP`), in bytes; `None` sets no bound.
    pub window_clamp: Option<Bytes>,
    /// Largest payload of a TCP segment (`TCP_MAXSEG`), in bytes; `None` leaves the kernel's.
    pub mss: Option<u32>,
    /// Highest rate of each stream (`SO_MAX_PACING_RATE`). For datagrams the sender's own clock keeps the rate.
    pub pacing: Option<Rate>,
    /// Congestion control at both ends; `None` leaves the one that the system uses.
    pub congestion: Option<String>,
    /// How the sender hands payload to the kernel.
    pub copy: Handover,
    /// How the receiver reads payload.
    pub receive: Receive,
    /// Extra CPU work of the threads for each byte.
    pub extra_work: ExtraWork,
    /// The NUMA node whose CPUs run the sending threads; `None` leaves the choice to that end.
    pub sender_node: Option<u32>,
    /// The NUMA node whose CPUs run the receiving threads; `None` leaves the choice to that end.
    pub receiver_node: Option<u32>,
    /// The CPUs that sending threads are pinned to, one for each stream; if empty, that end chooses. These CPUs take
    /// precedence over [`Knobs::sender_node`].
    pub sender_cpus: Vec<u32>,
    /// The CPUs that receiving threads are pinned to, one for each stream; if empty, that end chooses. These CPUs take
    /// precedence over [`Knobs::receiver_node`].
    pub receiver_cpus: Vec<u32>,
    /// Whether connections are made again, from other source ports, until fewer of them share a receive queue than in
    /// the base load. The run picks the ports; an end only connects from the ports of the plan.
    pub other_ports: bool,
    /// Whether round trips are in open loop: each message is due at its own time and is timed from then, even if
    /// earlier ones are not yet answered. Otherwise one message is in flight at a time.
    pub open_loop: bool,
    /// Whether threads poll for messages or completed operations instead of sleeping until there is one. Polling
    /// threads use a full CPU at any load.
    pub busy_poll: bool,
    /// Whether connections of round trips keep Nagle's algorithm. If not, `TCP_NODELAY` is set on them, whatever
    /// `nodelay` is.
    #[serde(skip_serializing_if = "is_false")]
    pub nagle: bool,
    /// Whether each message of round trips is handed to the kernel in two writes.
    #[serde(skip_serializing_if = "is_false")]
    pub two_writes: bool,
    /// Operations that each stream keeps in flight; zero if the transport's options set this number, or it has none.
    #[serde(skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Options of the transport, as far as they are set.
    #[serde(skip_serializing_if = "Options::is_empty")]
    pub options: Options,
    /// A setting of a host that is changed while the connections of the set are made and used.
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

/// Omits a depth of zero, so that records and messages without a depth stay as in older versions.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// Omits a setting that is false, so that records and messages without the setting stay as in older versions.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(is: &bool) -> bool {
    !*is
}

/// Size of operations from which on people compare bytes, not operations.
const LARGE: Bytes = Bytes(64 << 10);

impl Knobs {
    /// The quantity that is judged for a load with these knobs: operations per second if `depth` is set and they are
    /// small, else goodput.
    pub const fn measure(&self) -> Measure {
        let counts = self.depth > 0 && self.write_size.0 < LARGE.0;
        if counts { Measure::Operations } else { Measure::Goodput }
    }

    /// The maximum rate of all streams together; `None` if the pace is not limited.
    pub fn rate(&self) -> Option<Rate> {
        let each = self.pacing?;
        Some(Rate(each.0.saturating_mul(self.streams.into())))
    }
}

/// The traffic that the connections of a set carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "pattern")]
pub enum Pattern {
    /// Payload flows in one direction, as fast as possible.
    Stream {
        /// Direction in which the payload flows.
        direction: Direction,
    },
    /// The near end sends `size` bytes, the far end answers with as many, and each round trip is timed.
    PingPong {
        /// Payload of each message, in bytes.
        size: Bytes,
        /// Time from one due send to the next. If it is zero, or shorter than the round trip, the next message goes
        /// when the answer is in.
        interval: Nanos,
    },
    /// Operations as fast as possible, without a program at the other end. Their size is [`Knobs::write_size`], and
    /// [`Knobs::depth`] of them are in flight.
    Operations {
        /// What each operation does.
        access: Access,
    },
}

/// What an operation does: read, write or copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Each operation reads.
    Read,
    /// Each operation writes.
    Write,
    /// Each operation reads in one place and writes as much in another.
    #[default]
    Copy,
}

impl Access {
    /// All kinds of access.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Copy];

    /// Name of the access in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
        }
    }

    /// The access that the transport's options request, or the default.
    pub fn of(options: &Options) -> Self {
        Self::named(options).unwrap_or_default()
    }

    /// The access that the transport's options request; `None` if they request none.
    fn named(options: &Options) -> Option<Self> {
        let requested = options.word(ACCESS.key);
        Self::ALL.into_iter().find(|access| Some(access.name()) == requested)
    }
}

impl Pattern {
    /// The direction of payload; `None` if payload flows in both. Operations count as forward, since the near end
    /// requests them.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            Self::Stream { direction } => Some(direction),
            Self::Operations { .. } => Some(Direction::Forward),
            Self::PingPong { .. } => None,
        }
    }

    /// The kind of the pattern, without its parameters.
    pub const fn kind(self) -> PatternKind {
        match self {
            Self::Stream { .. } => PatternKind::Stream,
            Self::Operations { .. } => PatternKind::Operations,
            Self::PingPong { .. } => PatternKind::RoundTrips,
        }
    }
}

/// The plan of a set: connections that are made with the same settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetPlan {
    /// Number of the set in this run, from 0.
    pub id: u32,
    /// The traffic that the connections carry.
    pub pattern: Pattern,
    /// The settings with which the connections are made.
    pub knobs: Knobs,
}

impl SetPlan {
    /// Makes a set for the transport `engine`. Options of the transport that do not apply to the pattern are removed.
    /// Some transports have options for the number of operations in flight and for polling: these options set the
    /// knobs.
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

/// Why a step is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Purpose {
    /// Round trips on an otherwise idle path.
    IdleLatency,
    /// The load that the verdict explains: one direction, with the streams and knobs of the plan.
    Base {
        /// The direction that is loaded.
        direction: Direction,
    },
    /// A load that differs from the base load: more streams, to find the knee, or another rate, to find the highest
    /// rate without loss.
    Sweep {
        /// The direction that is loaded.
        direction: Direction,
    },
    /// Load in both directions at the same time.
    Both,
    /// A step that warms up the connections of a trial. It is not counted.
    Warm {
        /// Number of the trial in this run, from 0.
        trial: u32,
    },
    /// One measured slice of a trial, in one of its two settings.
    Slice {
        /// Number of the trial in this run, from 0.
        trial: u32,
        /// Which setting of the trial was measured: false is A (unchanged), true is B (changed).
        changed: bool,
    },
}

/// A step of a run: sets of connections that carry load at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Number of the step in this run, from 0.
    pub index: u32,
    /// Why the step is run.
    pub purpose: Purpose,
    /// Ids of the sets that carry load.
    pub sets: Vec<u32>,
    /// Wash-out: time at the start that is not counted, while queues and windows settle.
    pub washout: Nanos,
    /// Time that is counted, after the wash-out.
    pub measure: Nanos,
    /// Time from one sample of the readings to the next.
    pub tick: Nanos,
}

impl StepPlan {
    /// The counted time of a step that ended in order `elapsed` after it began. It is a whole number of ticks, so that
    /// the last sample is not a fraction of a tick.
    pub fn measured(&self, elapsed: Nanos) -> Nanos {
        let counted = elapsed.0.saturating_sub(self.washout.0);
        let ticks = counted.checked_div(self.tick.0).unwrap_or(0);
        Nanos(ticks.saturating_mul(self.tick.0).min(self.measure.0))
    }
}

/// The plan of a run, with every default filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The transport's name, as in [`crate::transport::TRANSPORTS`]; `sim` for the simulated path.
    pub engine: String,
    /// The far end as the user typed it: a host, or the path of a file or a disk of this machine; `None` if this
    /// machine is measured against itself.
    pub peer: Option<String>,
    /// Options that open the way to the far end, as the user would type them: `--open`. Records of older versions have
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reach: Vec<String>,
    /// Knobs of the base load.
    pub knobs: Knobs,
    /// Directions that are measured and judged.
    pub directions: Vec<Direction>,
    /// Longest duration of the whole run.
    pub time: Nanos,
    /// Whether loads with more streams are measured too, to find the knee.
    pub sweep: bool,
    /// Whether the run may do trials.
    pub trials: bool,
}

impl Plan {
    /// The pattern of a load in one direction: a stream of payload if the transport has that pattern, else operations.
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
