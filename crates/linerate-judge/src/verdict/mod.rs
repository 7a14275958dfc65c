//! The verdict: the limit of the path, its certainty, and advice.

mod after;
mod answers;
mod case;
mod judge;
mod next;

pub use answers::{Entry, entries};
pub use judge::{collapsed, judge, judge_by, notes};
pub use next::{decides, next_trials, unused};

use schemars::JsonSchema;
use serde::Serialize;

use crate::causes::cause;
use crate::model::Model;
use linerate_facts::Gap;
use linerate_facts::advice::Advice;
use linerate_plan::path::{Certainty, Direction, Measure, Place, Side, Slowness, Stage};
use linerate_plan::transport::TransportInfo;
use linerate_units::stats::Interval;

/// The answer to "why is it slow", for all directions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Limits that the verdict names, in the order in which users should read them.
    pub limits: Vec<Limit>,
    /// Events that disturbed the measurement and are no limits.
    pub disturbances: Vec<Disturbance>,
    /// The expected next limit once the present limits are removed, as far as it is known.
    pub next: Vec<Limit>,
    /// The missing readings and trials that prevent an answer, or a part of one.
    pub unknown: Vec<Unknown>,
    /// The result of every cause, for `show --explain`.
    pub answers: Vec<Answered>,
}

/// A limit that the verdict names: a finding with its certainty.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The quantity that is limited: goodput, operations or latency.
    pub metric: Measure,
    /// Id of the cause, such as `receive-window`.
    pub cause: &'static str,
    /// Stage of the path that is the limit.
    pub stage: Stage,
    /// The place of the limit: an end, or the path between the ends.
    pub side: Place,
    /// Direction that is limited.
    pub direction: Direction,
    /// How certain it is that this is the limit.
    pub certainty: Certainty,
    /// Evidence: numbers, in sentences without a full stop.
    pub evidence: Vec<String>,
    /// The trial that proved the limit, if there is one.
    pub trial: Option<Decided>,
    /// Advice that removes the limit.
    pub advice: Vec<Advice>,
}

/// A disturbance: something that took a part of the measurement, and is not the limit of the path.
#[derive(Debug, Clone, PartialEq)]
pub struct Disturbance {
    /// Id of the cause, such as `receive-window`.
    pub cause: &'static str,
    /// The stage of the path that was disturbed.
    pub stage: Stage,
    /// The place of the disturbance: an end, or the path between the ends.
    pub side: Place,
    /// The direction whose measurement was disturbed.
    pub direction: Direction,
    /// The share of the time, or of the port's traffic, that the disturbance took; `None` if unknown.
    pub share: Option<f64>,
    /// Evidence: numbers, in sentences without a full stop.
    pub evidence: Vec<String>,
    /// Advice that removes the disturbance.
    pub advice: Vec<Advice>,
}

impl Disturbance {
    /// Approximate ratio of the goodput without the disturbance to the measured one, as if all payload had been carried
    /// in the remaining time; `None` if it is unknown. After an outage a sender starts slowly again, which costs more.
    pub fn gain(&self) -> Option<f64> {
        let left = 1.0 - self.share?;
        (left > 0.0).then(|| 1.0 / left)
    }
}

/// The measured effect of a trial, and its conclusions.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// Number of the trial in the record.
    pub id: u32,
    /// Id of the trial's kind, a row of the table of trial kinds.
    pub kind: &'static str,
    /// The change, in words that go before "gave": "half the receive window".
    pub words: &'static str,
    /// Goodput after the change over goodput before, with its 95 % interval.
    pub effect: Interval,
    /// Ratio of the share of retransmitted bytes, or of lost datagrams, after the change to that before; `None` if it
    /// did not decide.
    pub loss: Option<Interval>,
    /// The transport of the load.
    pub transport: &'static TransportInfo,
    /// Ratio of the loaded round trip after the change to that before; `None` if it did not decide.
    pub latency: Option<Interval>,
    /// Number of slices that were measured for the effect.
    pub slices: u32,
    /// Ids of the causes that the effect excluded.
    pub excluded: Vec<&'static str>,
}

/// An unknown fact that prevents an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unknown {
    /// The fact that is unknown.
    pub what: String,
    /// Why it is unknown.
    pub why: String,
    /// What would make the fact known, such as a command. Empty if nothing would.
    pub hint: String,
}

/// The command that shows the connections of other programs.
const FLOWS: &str = "linerate flows";

/// The command that made the measurement, to be run once more.
fn rerun(model: &Model) -> String {
    if model.watched {
        return FLOWS.to_owned();
    }
    model.requested.run("")
}

impl Unknown {
    /// The unknown fact of a gap, with a hint that is a whole command. `rerun` is the command that measures once more.
    fn of(gap: &Gap, rerun: &str) -> Self {
        let mut unknown =
            Self { what: gap.what.clone(), why: gap.why.clone(), hint: String::new() };
        let command = match unknown.side() {
            Some(Side::Far) if rerun != FLOWS => "linerate serve",
            _ => rerun,
        };
        unknown.hint = gap.hint.replace("linerate ...", command);
        unknown
    }

    /// The end that the unknown fact is about, if the text names one: `far PCIe payload size`.
    pub fn side(&self) -> Option<Side> {
        match [Side::Near, Side::Far].map(|side| side.is_named_in(&self.what)) {
            [true, false] => Some(Side::Near),
            [false, true] => Some(Side::Far),
            _ => None,
        }
    }
}

/// The result of judging one cause for one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Id of the cause, such as `receive-window`.
    pub cause: &'static str,
    /// The direction that was judged.
    pub direction: Direction,
    /// The outcome: `finding`, `clear`, `unknown` or `excluded`.
    pub outcome: &'static str,
    /// The reasons for the outcome, with numbers.
    pub why: Vec<String>,
}

/// The remaining causes of low goodput if none could be supported, those with evidence first. Causes that only explain
/// another cause, or only disturb, are left out.
pub fn suspects(verdict: &Verdict) -> Vec<&Answered> {
    let names_a_limit = |answered: &&Answered| {
        let unread = answered.outcome == "unknown";
        cause(answered.cause)
            .filter(|cause| cause.slows == Slowness::Rate)
            .filter(|cause| !(cause.only_disturbs || unread && cause.may_be_unread))
            .is_some_and(|cause| cause.explains.is_empty())
    };
    let of = |outcome| {
        let all = verdict.answers.iter().filter(names_a_limit);
        all.filter(move |answered| answered.outcome == outcome)
    };
    of("finding").chain(of("unknown")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_whole_command_for_the_host_that_lacks_the_reading() {
        let run = "linerate run brook --time 9s";
        let hint = |rerun: &str, what: &str, hint: &str| {
            let gap = Gap {
                what: what.to_owned(),
                why: "it was not read".to_owned(),
                hint: hint.to_owned(),
            };
            Unknown::of(&gap, rerun).hint
        };
        let typed = "sudo linerate ...";
        assert_eq!(hint(run, "near route", typed), "sudo linerate run brook --time 9s");
        assert_eq!(hint(run, "route of far", typed), "sudo linerate serve");
        assert_eq!(hint(run, "route", typed), "sudo linerate run brook --time 9s");
        assert_eq!(hint(run, "far port", "ethtool eth0"), "ethtool eth0");
        assert_eq!(hint(FLOWS, "far route", typed), "sudo linerate flows");
    }

    #[test]
    fn the_host_is_known_where_one_is_named() {
        let side = |what: &str| {
            let unknown =
                Unknown { what: what.to_owned(), why: String::new(), hint: String::new() };
            unknown.side()
        };
        assert_eq!(side("far PCIe payload size"), Some(Side::Far));
        assert_eq!(side("the memory of near"), Some(Side::Near));
        for none in ["what limits forward", "from near to far", "nearly", ""] {
            assert_eq!(side(none), None, "{none}");
        }
    }
}
