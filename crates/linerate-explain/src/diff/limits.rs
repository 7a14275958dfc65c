//! Changes of limits: those that both records have, those that only one has, and those that remain unknown.

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
    Stayed,
    /// It is in the second record only; in the first its cause was cleared or excluded.
    Came,
    /// It is in the first record only; in the second its cause was cleared or excluded.
    Went,
    /// The limit is in one record, and the other one does not show whether it was there.
    Untold,
}

impl Fate {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stayed => "stayed",
            Self::Came => "came",
            Self::Went => "went",
            Self::Untold => "untold",
        }
    }
}

/// A limit in two records.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitChange {
    /// The change of the limit.
    pub fate: Fate,
    /// The limit: from the second record if it is confirmed there.
    pub limit: Limit,
    /// How certain the limit was in the first record; `None` if it was not a limit there.
    pub before: Option<Certainty>,
    /// How certain the limit was in the second record; `None` if it was not a limit there.
    pub after: Option<Certainty>,
    /// The answer of the record that does not confirm the limit; empty if both do.
    pub why: String,
}

/// All limits of both records: first the limits of the first record, then those that only the second has.
pub(super) fn changes(before: &Judged<'_>, after: &Judged<'_>) -> Vec<LimitChange> {
    let of_first = before.verdict.limits.iter().map(|limit| match upheld(after, limit) {
        Some(now) => LimitChange {
            fate: Fate::Stayed,
            limit: now.clone(),
            before: Some(limit.certainty),
            after: Some(now.certainty),
            why: String::new(),
        },
        None => alone(limit, after, Fate::Went),
    });
    let later = after.verdict.limits.iter();
    let later = later.filter(|limit| upheld(before, limit).is_none());
    of_first.chain(later.map(|limit| alone(limit, before, Fate::Came))).collect()
}

/// Finds the same limit in another record.
fn upheld<'a>(judged: &'a Judged<'_>, limit: &Limit) -> Option<&'a Limit> {
    let is_it =
        |other: &&Limit| other.metric == limit.metric && of(limit, other.cause, other.direction);
    judged.verdict.limits.iter().find(is_it)
}

/// Whether an answer for a cause and a direction belongs to this limit. A cause that is reported for one
/// direction only may be reported for the other one if the records measured different directions.
fn of(limit: &Limit, cause: &str, direction: Direction) -> bool {
    let told_once = causes::cause(limit.cause).is_some_and(|cause| cause.is_once);
    limit.cause == cause && (limit.direction == direction || told_once)
}

/// A limit that the `other` record does not confirm. It gets `fate` if the other record is sure.
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
    let came = fate == Fate::Came;
    LimitChange {
        fate: if sure { fate } else { Fate::Untold },
        limit: limit.clone(),
        before: certainty.filter(|_| !came),
        after: certainty.filter(|_| came),
        why,
    }
}

/// Why a cause was excluded: what excluded it first, since the evidence alone reads as if it had been found.
fn excluded(why: &[String]) -> String {
    let (trials, evidence): (Vec<&str>, Vec<&str>) =
        why.iter().map(String::as_str).partition(|text| text.ends_with("excluded it"));
    match (trials.as_slice(), evidence.as_slice()) {
        ([], evidence) => format!("excluded: {}", evidence.join("; ")),
        (trials, []) => trials.join("; "),
        (trials, evidence) => format!("{}, although {}", trials.join("; "), evidence.join("; ")),
    }
}

/// A finding that is no limit has evidence, but another cause explains it or limits first.
fn outcome(outcome: &'static str) -> &'static str {
    match outcome {
        "finding" => "not upheld, with evidence",
        other => other,
    }
}
