//! The lines of a stream. Their published schema is made from [`Line`].

use linerate_facts::Level;
use linerate_plan::path::{Direction, Measure, Place, Side};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{CauseId, Goodput, HostOut, LatencyOut, described_elsewhere};
use super::super::{bw, json, lat, study};
use crate::head::Format;

/// A JSON object on each line, in the order of events. Keys contain the units. Unknown values are null. The
/// results of a step or a trial are derived from the readings until then; the result on the last line has all
/// readings. A run that measured nothing ends without a result.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[schemars(title = "A line of --stream-json: of linerate run, bw or lat")]
pub(crate) enum Line<'a> {
    /// The first line.
    Started {
        /// Version of these lines.
        format: Format<1>,
        /// Version of linerate.
        linerate: &'a str,
        /// Wall-clock time in seconds since 1970.
        started_unix_s: u64,
        /// The far end as it was typed. Null for a machine against itself.
        peer: Option<&'a str>,
        /// Engine that moves payload.
        engine: &'a str,
        /// Directions to measure.
        directions: &'a [Direction],
        /// Time of the whole run.
        budget_ns: u64,
    },
    /// The facts of a host were read.
    Host(HostOut<'a>),
    /// A step begins.
    Step {
        /// Number of the step, from 0.
        index: u32,
        /// What is measured.
        words: &'a str,
        /// Time that is left of the budget.
        left_ns: u64,
    },
    /// A step goes on, about ten times a second.
    Tick {
        /// Direction of the load. Null on the idle path, and if both directions are loaded.
        direction: Option<Direction>,
        /// Payload rate of the last tick, at the receiver if that end is here. Null while there is no load.
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
        /// Connections.
        streams: u32,
        /// Whether the other direction was loaded too.
        both: bool,
        #[serde(flatten)]
        goodput: Goodput,
    },
    /// A step did not end as planned.
    Trouble {
        /// Number of the step.
        index: u32,
        side: Side,
        /// What happened.
        what: &'a str,
    },
    /// A trial begins.
    Trial {
        /// Number of the trial in the record.
        id: u32,
        /// Kind of trial.
        kind: &'a str,
        direction: Direction,
        /// What is tried.
        words: &'a str,
    },
    /// A trial is over. Effects are ratios: after the change over before.
    TrialEnded {
        /// Number of the trial in the record.
        id: u32,
        /// Kind of trial.
        kind: &'a str,
        direction: Direction,
        /// Slices that were measured.
        slices: u32,
        /// Goodput after the change over goodput before. Null if unknown.
        #[schemars(range(min = 0))]
        effect: Option<f64>,
        /// 95 % interval of the effect.
        #[schemars(inner(range(min = 0)))]
        effect_ci: Option<[f64; 2]>,
        /// Share of segments retransmitted or datagrams lost after the change over the share before. Null if unknown.
        #[schemars(range(min = 0))]
        loss: Option<f64>,
        /// 95 % interval of the loss.
        #[schemars(inner(range(min = 0)))]
        loss_ci: Option<[f64; 2]>,
        /// Median round trip after the change over the one before. Null if unknown.
        #[schemars(range(min = 0))]
        latency: Option<f64>,
        /// 95 % interval of the latency.
        #[schemars(inner(range(min = 0)))]
        latency_ci: Option<[f64; 2]>,
    },
    /// A trial proved the limit of a direction. The run goes on with the other questions.
    Proved {
        metric: Measure,
        #[schemars(with = "CauseId")]
        cause: &'a str,
        side: Place,
        direction: Direction,
        /// Number of the trial in the record. Null if a ceiling proved it.
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
    /// The measurement is over.
    Ended {
        how: How,
        /// Why it failed. Null if it did not.
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

/// How grave a notice is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Level")]
pub(crate) enum LevelOut {
    /// The measurement cannot go on.
    Error,
    /// A part is missing; the hint says what helps.
    Hint,
    /// For information.
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
