//! Finds which limits changed from one record to another: in both records, in only one, or unknown.

use schemars::JsonSchema;
use serde::Serialize;

use super::Judged;
use linerate_judge::causes;
use linerate_judge::verdict::{Answered, Limit};
use linerate_plan::path::{Certainty, Direction};

/// What happened to a limit or a disturbance between two records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// The limit is in both records.
    Still,
    /// The limit is in the second record only; in the first record its cause was cleared or excluded.
    New,
    /// The limit is in the first record only; in the second record its cause was cleared or excluded.
    Gone,
    /// The limit is in one record; the other record does not show whether it was there too.
    Unclear,
}

impl Fate {
    /// The word for this change in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Still => "still",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Unclear => "unclear",
        }
    }
}

/// A limit in one or both of two records.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitChange {
    /// Whether the limit stayed, is new or is gone.
    pub fate: Fate,
    /// The limit, as the second record has it if that confirms it; else as the first one has it.
    pub limit: Limit,
    /// How certain the limit was in the first record; `None` if it was not a limit there.
    pub before: Option<Certainty>,
    /// How certain the limit was in the second record; `None` if it was not a limit there.
    pub after: Option<Certainty>,
    /// What the record that does not confirm the limit says about its cause; empty if both records confirm it.
    pub why: String,
}

/// All limits of both records: first the limits of the first record, then those that only the second has.
pub(super) fn changes(before: &Judged<'_>, after: &Judged<'_>) -> Vec<LimitChange> {
    let of_first = before.verdict.limits.iter().map(|limit| match upheld(after, limit) {
        Some(now) => LimitChange {
            fate: Fate::Still,
            limit: now.clone(),
            before: Some(limit.certainty),
            after: Some(now.certainty),
            why: String::new(),
        },
        None => alone(limit, after, Fate::Gone),
    });
    let later = after.verdict.limits.iter();
    let later = later.filter(|limit| upheld(before, limit).is_none());
    of_first.chain(later.map(|limit| alone(limit, before, Fate::New))).collect()
}

/// Finds the limit in another record with the metric, cause and direction of `limit`.
fn upheld<'a>(judged: &'a Judged<'_>, limit: &Limit) -> Option<&'a Limit> {
    let is_it =
        |other: &&Limit| other.metric == limit.metric && of(limit, other.cause, other.direction);
    judged.verdict.limits.iter().find(is_it)
}

/// Whether an answer about `cause` in `direction` belongs to this limit. A cause that is reported for one direction
/// only may be reported for the other one if the records measured different directions.
fn of(limit: &Limit, cause: &str, direction: Direction) -> bool {
    let reported_once = causes::cause(limit.cause).is_some_and(|cause| cause.is_once);
    limit.cause == cause && (limit.direction == direction || reported_once)
}

/// The change of a limit that the `other` record does not confirm: `fate` if that record cleared or excluded the cause.
fn alone(limit: &Limit, other: &Judged<'_>, fate: Fate) -> LimitChange {
    let is_it = |a: &&Answered| of(limit, a.cause, a.direction);
    // Answers are in the order of directions: for a cause that is reported once, the first answer counts.
    let answer = other.verdict.answers.iter().find(is_it);
    let sure = answer.is_some_and(|a| ["clear", "excluded"].contains(&a.outcome));
    let why = match answer {
        None if !other.measured(limit.direction) => {
            format!("{} was not measured", limit.direction.name())
        }
        None => "not asked".to_owned(),
        Some(answer) if answer.outcome == "excluded" => excluded(&answer.why),
        Some(answer) => format!("{}: {}", outcome(answer.outcome), answer.why.join("; ")),
    };
    let certainty = Some(limit.certainty);
    let is_new = fate == Fate::New;
    LimitChange {
        fate: if sure { fate } else { Fate::Unclear },
        limit: limit.clone(),
        before: certainty.filter(|_| !is_new),
        after: certainty.filter(|_| is_new),
        why,
    }
}

/// Why a cause was excluded. The trial that excluded it goes first, because the evidence alone reads as if the cause
/// had been found.
fn excluded(why: &[String]) -> String {
    let (trials, evidence): (Vec<&str>, Vec<&str>) =
        why.iter().map(String::as_str).partition(|text| text.ends_with("excluded it"));
    match (trials.as_slice(), evidence.as_slice()) {
        ([], evidence) => format!("excluded: {}", evidence.join("; ")),
        (trials, []) => trials.join("; "),
        (trials, evidence) => format!("{}, although {}", trials.join("; "), evidence.join("; ")),
    }
}

/// The word for an outcome. A "finding" that is no limit has evidence, but another cause explains it or limits first.
fn outcome(outcome: &'static str) -> &'static str {
    match outcome {
        "finding" => "not upheld, with evidence",
        other => other,
    }
}
