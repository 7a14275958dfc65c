//! The record of a run: only options and readings, no conclusions.
//!
//! This crate has the record and its file format ([`frame`]), the messages between two peers ([`wire`], [`iperf3`]),
//! and results as other programs reported them ([`reported`]). No rate, share or verdict is stored: they are derived
//! again each time.
//!
//! A record holds the readings of both ends. Each [`Step`] is appended when it ends, so that a crash loses at most
//! one step.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cbor;
pub mod flow;
pub mod iperf3;
pub mod reported;
pub mod wire;

pub mod frame;
mod growing;
mod imported;
mod pack;
mod stored;

pub use growing::Growing;
pub use imported::{Blob, Import, Imported, Kept};

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use linerate_facts::metric::{self, Kind, Metric, Unit};
use linerate_facts::rdma::RdmaEnd;
use linerate_facts::{Gap, HostFacts};
use linerate_plan::factor::{Factor, kind};
use linerate_plan::path::{Direction, Side};
use linerate_plan::study::Part;
use linerate_plan::{Knobs, Plan, SetPlan, StepPlan};
use linerate_units::Nanos;
use linerate_units::stats::Histogram;

/// Version of the record's format; it is raised when the meaning of a record changes.
pub const FORMAT: u32 = 1;

/// All parts of a record, as read from its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The start of the run, with its plan.
    pub start: Start,
    /// Facts of the hosts, near first; one or more.
    pub hosts: Vec<Host>,
    /// Sets of connections, with the settings in force.
    pub sets: Vec<Set>,
    /// Planned trials; the slices of a trial are steps.
    pub trials: Vec<TrialPlan>,
    /// Steps in the order in which they were run.
    pub steps: Vec<Step>,
    /// Outputs of other programs that were imported; `None` for a run of linerate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// The end of the run; `None` after a crash.
    pub end: Option<End>,
}

/// The first frame of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// [`FORMAT`] of the program that wrote the record.
    pub format: u32,
    /// Version of the linerate that wrote the record.
    pub linerate: String,
    /// Start of the run in seconds since 1970: only a label.
    pub wall_secs: u64,
    /// The plan that the run followed.
    pub plan: Plan,
    /// The command that made the record.
    #[serde(default, skip_serializing_if = "Made::is_run")]
    pub made: Made,
    /// The user's own note about the run; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The study that the record is part of; `None` if it belongs to none, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Part>,
}

impl Start {
    /// The kind of the record, from its plan and command.
    pub fn kind(&self) -> RecordKind {
        // In records of sweeps of older versions `made` does not say which command made them.
        let is_sweep = self.plan.sweep && self.plan.directions.is_empty();
        match self.made {
            _ if is_sweep => RecordKind::Sweep,
            Made::Run => RecordKind::Run,
            Made::Bw => RecordKind::Bw,
            Made::Lat => RecordKind::Lat,
            Made::Import => RecordKind::Import,
        }
    }
}

/// The command that made a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Made {
    /// `linerate run`; in records of older versions, any command.
    #[default]
    Run,
    /// `linerate bw`.
    Bw,
    /// `linerate lat`.
    Lat,
    /// `linerate import`.
    Import,
}

impl Made {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

/// The kind of a record, by what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// A run: loads, round trips and trials.
    Run,
    /// One measurement of throughput.
    Bw,
    /// One measurement of round trips.
    Lat,
    /// Round trips at several message sizes.
    Sweep,
    /// Outputs of other programs.
    Import,
}

impl RecordKind {
    /// The word for the kind, in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Bw => "bw",
            Self::Lat => "lat",
            Self::Sweep => "sweep",
            Self::Import => "import",
        }
    }
}

/// One host and its facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Which end of the path the host is.
    pub side: Side,
    /// The known facts of the host.
    pub facts: HostFacts,
}

/// A set of connections, with the settings in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// The plan of the set.
    pub plan: SetPlan,
    /// The settings in force at each end, near first.
    pub ends: Vec<SetEnd>,
}

/// The settings of a set that are in force at one end, and the requests that the end could not fulfil.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetEnd {
    /// `SO_SNDBUF` just after connecting, as the kernel reports it (doubled).
    pub send_buffer: Option<u64>,
    /// `SO_RCVBUF` just after connecting, as the kernel reports it (doubled).
    pub recv_buffer: Option<u64>,
    /// Name of the congestion control in force.
    pub congestion: String,
    /// Maximum segment size in force, in bytes.
    pub mss: Option<u32>,
    /// The CPU that each thread is pinned to, by stream; empty if threads are not pinned.
    pub cpus: Vec<u32>,
    /// Size of a write in bytes, chosen by the end where the plan left it open.
    pub write_size: u64,
    /// Size of a read in bytes, chosen by the end where the plan left it open.
    pub read_size: u64,
    /// Datagrams that a paced sender sends at once; zero if the sender has no pace.
    pub burst: u64,
    /// The port of an RDMA device that carries the payload, with the sizes in force. `None` for other transports, and
    /// in records of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma: Option<Box<RdmaEnd>>,
    /// How operations on a file reach the kernel: `io_uring`, `io_uring, polled`, `io_uring, by kernel workers`, `threads`,
    /// `calls`; empty for other transports.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub way: String,
    /// The requested settings that the end could not apply.
    pub gaps: Vec<Gap>,
}

/// A planned trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// Number of the trial in this run.
    pub id: u32,
    /// Name of the trial's kind, from the table of trial kinds.
    pub kind: String,
    /// The direction that the trial loads.
    pub direction: Direction,
    /// Setting A: the setting of the run, unchanged.
    pub before: Knobs,
    /// Setting B: one factor is changed.
    pub after: Knobs,
    /// Largest number of blocks, of four slices each, that were planned: the interval depends on it.
    pub max_blocks: u32,
}

impl TrialPlan {
    /// The factor that this trial changes; `None` for a kind that this version does not know.
    pub fn factor(&self) -> Option<Factor> {
        kind(&self.kind).map(|k| k.factor)
    }

    /// Number of streams of setting B over that of setting A.
    pub fn stream_ratio(&self) -> f64 {
        f64::from(self.after.streams) / f64::from(self.before.streams.max(1))
    }
}

/// A step of a run, and all that was read during it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The plan of the step.
    pub plan: StepPlan,
    /// Start of the step on the near clock, as time since the start of the run.
    pub began: Nanos,
    /// Readings of each end, near first.
    pub ends: Vec<EndReadings>,
    /// Far clock minus near clock at the start of the step, with its bound; `None` if it was not measured.
    pub clock: Option<ClockPair>,
    /// Time from the start of the step until both ends had ended it and their readings were received; zero if
    /// unknown, as in records of older versions.
    #[serde(default, skip_serializing_if = "Nanos::is_zero")]
    pub took: Nanos,
    /// The failure that ended the step; `None` if it ended as planned.
    pub trouble: Option<Trouble>,
}

impl Step {
    /// Planned end of the step on the near clock, as time since the start of the run.
    pub fn ended(&self) -> Nanos {
        let took = self.plan.washout.0.saturating_add(self.plan.measure.0);
        Nanos(self.began.0.saturating_add(took))
    }
}

/// Offset between the clocks of the far and the near end, with its largest error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPair {
    /// Far clock minus near clock, in nanoseconds.
    pub offset_ns: i64,
    /// Largest error of the offset, in nanoseconds.
    pub bound_ns: u64,
}

/// A failure in a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// The end that reported the trouble.
    pub side: Side,
    /// The failure, as a lowercase sentence fragment.
    pub what: String,
}

/// The readings that one end took during a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndReadings {
    /// Tables of readings. Times are nanoseconds since this end's start of the step, on its own clock. The first row
    /// is read just before the load starts, so that counters have a base.
    pub tables: Vec<Table>,
    /// Round-trip times, at the end that measured them.
    pub latencies: Vec<Histogram>,
    /// Time from one send to the next, at an end that sends datagrams at a pace.
    pub send_gaps: Vec<Histogram>,
    /// Payload that this end sent and received on each stream of each set in this step, exact to the byte.
    pub totals: Vec<Total>,
    /// Other sessions that loaded this host during the step.
    pub other_sessions: u32,
    /// Congestion control, if this end reports it only with its readings; `None` if [`SetEnd::congestion`] has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The readings that failed.
    pub gaps: Vec<Gap>,
}

impl EndReadings {
    /// Tables of a source whose subject satisfies `is`.
    pub fn about<'a>(
        &'a self,
        source: &'a str,
        is: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Table> {
        self.tables.iter().filter(move |t| t.source == source && is(&t.subject))
    }

    /// The table of one source about one subject.
    pub fn of(&self, source: &str, subject: &str) -> Option<&Table> {
        let mut tables = self.tables.iter();
        tables.find(|t| t.source == source && t.subject == subject)
    }
}

impl EndReadings {
    /// Whether a table was read while the step ran. The tables of an end that reports only sums at its end have at
    /// most two rows.
    pub fn is_sampled(&self) -> bool {
        self.tables.iter().any(|table| table.at.len() > 2)
    }
}

/// Exact payload of one stream in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Number of the set.
    pub set: u32,
    /// Number of the stream in its set.
    pub stream: u32,
    /// Payload sent by this end.
    pub sent: u64,
    /// Payload received by this end.
    pub received: u64,
    /// False if the end mark in the stream was not received.
    pub complete: bool,
}

/// Readings of one source about one subject: columns that share the times of their rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Source, as in [`linerate_facts::metric`].
    pub source: String,
    /// The subject of the table: `s3/tx0` (set 3, sending thread of stream 0), `s3/0` (socket of stream 0), the
    /// number of a CPU, the name of a port.
    pub subject: String,
    /// Time of each row, in nanoseconds since this end's start of the step.
    pub at: Vec<u64>,
    /// One column for each metric; each column is as long as `at`.
    pub columns: Vec<Column>,
}

/// The values of one metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name, as in [`linerate_facts::metric`].
    #[serde(deserialize_with = "metric::name")]
    pub name: Cow<'static, str>,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether the metric is a counter or a gauge.
    pub kind: Kind,
    /// The values, one for each row.
    pub values: Vec<i64>,
}

impl Table {
    /// The column of `metric`, if this table has it.
    pub fn column(&self, metric: Metric) -> Option<&[i64]> {
        (self.source == metric.source)
            .then(|| self.columns.iter().find(|c| c.name == metric.name))
            .flatten()
            .map(|c| c.values.as_slice())
    }

    /// The first column whose length is not that of the times.
    pub(crate) fn ragged(&self) -> Option<&Column> {
        let rows = self.at.len();
        self.columns.iter().find(|c| c.values.len() != rows)
    }

    /// Source and subject of the table, for errors.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.source, self.subject)
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum End {
    /// All that was planned was measured.
    Complete,
    /// Stopped by the user; the measurements until then are valid.
    Interrupted,
    /// The run could not continue.
    Failed {
        /// Why it could not, as a lowercase sentence fragment.
        why: String,
    },
}
