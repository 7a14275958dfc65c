//! The lines of `--stream-json`. Their published schema is made from [`Line`].

use linerate_facts::Level;
use linerate_plan::path::{Direction, Measure, Place, Side};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{CauseId, Goodput, HostOut, LatencyOut, described_elsewhere};
use super::super::{bw, json, lat, study};
use crate::head::Format;

/// A JSON object on each line, in the order of events. Keys contain the units. Unknown values are null. The results
/// of a step or a trial are computed from the readings so far; the result on the last line uses all readings. A run
/// that measured nothing ends without a result.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[schemars(title = "A line of --stream-json: of linerate run, bw or lat")]
pub(crate) enum Line<'a> {
    /// The first line: the plan of the measurement.
    Started {
        /// Version of the format of these lines.
        format: Format<1>,
        /// Version of the linerate that measures.
        linerate: &'a str,
        /// Start of the run: wall-clock time in seconds since 1970.
        started_unix_s: u64,
        /// The far end as it was typed. Null if a machine is measured against itself.
        peer: Option<&'a str>,
        /// Engine that moves payload.
        engine: &'a str,
        /// Directions to measure.
        directions: &'a [Direction],
        /// Planned time of the whole run.
        budget_ns: u64,
    },
    /// The facts of a host were read.
    Host(HostOut<'a>),
    /// A step begins.
    Step {
        /// Number of the step, from 0.
        index: u32,
        /// What the step measures, in words.
        words: &'a str,
        /// Time that is left of the budget.
        left_ns: u64,
    },
    /// The rate so far, about ten times a second while a step runs.
    Tick {
        /// Direction of the load. Null on the idle path, and if both directions are loaded.
        direction: Option<Direction>,
        /// Payload rate since the last tick, at the receiver if the near end receives. Null while there is no load.
        rate_bps: Option<u64>,
        /// Time that is left of the budget.
        left_ns: u64,
    },
    /// Round trips of a step that has ended.
    Latency {
        /// Direction of the load. Null on the idle path.
        direction: Option<Direction>,
        #[serde(flatten)]
        latency: LatencyOut,
    },
    /// Goodput of a step that has ended.
    Goodput {
        direction: Direction,
        /// Number of connections.
        streams: u32,
        /// Whether the other direction was loaded at the same time.
        both: bool,
        #[serde(flatten)]
        goodput: Goodput,
    },
    /// A step did not end as planned.
    Trouble {
        /// Number of the step.
        index: u32,
        side: Side,
        /// What happened, in words.
        what: &'a str,
    },
    /// A trial begins.
    Trial {
        /// Number of the trial in the record.
        id: u32,
        /// Kind of the trial.
        kind: &'a str,
        direction: Direction,
        /// What the trial changes, in words.
        words: &'a str,
    },
    /// A trial has ended. Effects are ratios: the figure after the change divided by the figure before.
    TrialEnded {
        /// Number of the trial in the record.
        id: u32,
        /// Kind of the trial.
        kind: &'a str,
        direction: Direction,
        /// Number of slices that were measured.
        slices: u32,
        /// Goodput after the change divided by goodput before. Null if unknown.
        #[schemars(range(min = 0))]
        effect: Option<f64>,
        /// 95 % interval of `effect`.
        #[schemars(inner(range(min = 0)))]
        effect_ci: Option<[f64; 2]>,
        /// Share of segments retransmitted or datagrams lost after the change, divided by the share before. Null if
        /// unknown.
        #[schemars(range(min = 0))]
        loss: Option<f64>,
        /// 95 % interval of `loss`.
        #[schemars(inner(range(min = 0)))]
        loss_ci: Option<[f64; 2]>,
        /// Median round trip after the change, divided by that before. Null if unknown.
        #[schemars(range(min = 0))]
        latency: Option<f64>,
        /// 95 % interval of `latency`.
        #[schemars(inner(range(min = 0)))]
        latency_ci: Option<[f64; 2]>,
    },
    /// A trial or a ceiling proved the limit of a direction. The run continues, to answer what is still open.
    Proved {
        metric: Measure,
        #[schemars(with = "CauseId")]
        cause: &'a str,
        side: Place,
        direction: Direction,
        /// Number of the trial in the record. Null if a ceiling proved the limit.
        trial: Option<u32>,
        /// Time since the run began.
        after_ns: u64,
    },
    /// Something that the user should know now.
    Notice {
        level: LevelOut,
        side: Side,
        what: &'a str,
        why: &'a str,
        /// The command that helps. Empty if there is none.
        hint: &'a str,
    },
    /// The measurement has ended.
    Ended {
        how: How,
        /// Why the measurement failed. Null if it did not.
        why: Option<&'a str>,
    },
    /// The last line of `run`, if anything was measured.
    Verdict {
        /// The document of `linerate run --json`, which run.schema.json describes.
        #[schemars(schema_with = "described_elsewhere")]
        result: Box<json::Output<'a>>,
    },
    /// The last line of `bw`, if anything was measured.
    Bw {
        /// The document of `linerate bw --json`, which bw.schema.json describes.
        #[schemars(schema_with = "described_elsewhere")]
        result: Box<bw::Output<'a>>,
    },
    /// The last line of `lat`, if anything was measured.
    Lat {
        /// The document of `linerate lat --json`, which lat.schema.json describes.
        #[schemars(schema_with = "described_elsewhere")]
        result: Box<lat::Output<'a>>,
    },
    /// The last line of `bw --sweep` and `lat --sweep`, if anything was measured.
    Study {
        /// The document that study.schema.json describes.
        #[schemars(schema_with = "described_elsewhere")]
        result: Box<study::Output<'a>>,
    },
}

/// How serious a notice is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Level")]
pub(crate) enum LevelOut {
    /// The measurement cannot continue.
    Error,
    /// A part of the result is missing; the hint is a command that helps.
    Hint,
    /// Information only.
    Note,
}

impl From<Level> for LevelOut {
    fn from(level: Level) -> Self {
        match level {
            Level::Fatal => Self::Error,
            Level::Hint => Self::Hint,
            Level::Info => Self::Note,
        }
    }
}

/// How the measurement ended.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum How {
    /// The measurement ended as planned.
    Complete,
    /// The user ended it.
    Interrupted,
    /// The measurement could not continue.
    Failed,
}
