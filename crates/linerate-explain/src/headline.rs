//! The one answer to "why is it slow" that results have.

use super::rule::{Answer, Next, Remark, Run, Stands};
use super::{Explained, side_name};
use linerate_judge::causes::cause;
use linerate_judge::verdict::{Limit, suspects};
use linerate_plan::path::{Certainty, Direction, Place, Side};

/// The cause of a rate that was asked for: what else is found says more.
const ASKED: &str = "pacing";

/// Most causes that may be it.
const CANDIDATES: usize = 3;

/// How the question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// Two figures cannot both hold: one of them is not of this path.
    Contradiction,
    /// One cause limits it.
    Limit,
    /// What limits it is unknown.
    Unknown,
    /// It is as fast as it can be.
    Healthy,
}

impl Answered {
    /// The word used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contradiction => "contradiction",
            Self::Limit => "limit",
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
        }
    }
}

/// The answer to read first.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// How the question is answered.
    pub stands: Answered,
    /// The rule whose remark it is; `None` if the judge, or nobody, answered.
    pub rule: Option<&'static str>,
    /// Id of the cause that limits; `None` without one.
    pub cause: Option<&'static str>,
    /// How certain the cause is; `None` without one.
    pub certainty: Option<Certainty>,
    /// The direction; `None` if it is about none, or both.
    pub direction: Option<Direction>,
    /// The host at which the limit is; `None` if it is at none, or unknown.
    pub side: Option<Side>,
    /// The answer in a sentence without a full stop.
    pub what: String,
    /// Numbers, in sentences without a full stop.
    pub evidence: Vec<String>,
    /// The run that shows it; `None` if no single one does.
    pub run: Option<Run>,
    /// Ids of causes of which one may be it, at most three.
    pub candidates: Vec<&'static str>,
    /// Ids of causes that the figures rule out.
    pub ruled_out: Vec<&'static str>,
    /// The step that tells more; `None` if none would.
    pub next: Option<Next>,
}

impl Headline {
    /// The answer that results have; `None` if there are only facts. A fault stands before a full link, and a full link
    /// before a busy processor in its direction.
    pub(super) fn of(explained: &Explained<'_>) -> Option<Self> {
        let has_results = explained.material.has_results();
        let remarks = || {
            let all = explained.remarks.iter();
            all.filter_map(|remark| Some((remark, remark.answer.as_ref()?)))
        };
        let first = |stands: Stands, some: fn(usize) -> bool| {
            remarks().find(|(remark, answer)| remark.stands == stands && some(answer.causes.len()))
        };
        let is_full = |direction| {
            let is = |(remark, answer): (&Remark, &Answer)| {
                remark.stands == Stands::Good && answer.direction == Some(direction)
            };
            remarks().any(is)
        };
        let judged = |is_asked: bool| {
            let mut limits = explained.verdict.limits.iter();
            limits.find(|limit| !is_full(limit.direction) && (limit.cause == ASKED) == is_asked)
        };
        first(Stands::Contradiction, |_| true)
            .or_else(|| first(Stands::Finding, |n| n == 1))
            .map(Self::told)
            .or_else(|| judged(false).map(Self::judged))
            .or_else(|| first(Stands::Finding, |n| n != 1).map(Self::told))
            .or_else(|| judged(true).map(Self::judged))
            .or_else(|| first(Stands::Good, |_| true).map(Self::told))
            .or_else(|| has_results.then(|| Self::unknown(explained)))
    }

    fn told((remark, answer): (&Remark, &Answer)) -> Self {
        let stands = match (remark.stands, answer.causes.len()) {
            (Stands::Contradiction, _) => Answered::Contradiction,
            (Stands::Good, _) => Answered::Healthy,
            (_, 1) => Answered::Limit,
            _ => Answered::Unknown,
        };
        let cause = answer.causes.first().copied();
        let cause = cause.filter(|_| stands == Answered::Limit);
        let candidates = answer.causes.iter().copied().take(CANDIDATES);
        Self {
            stands,
            rule: Some(remark.id),
            cause,
            certainty: cause.map(|_| Certainty::Supported),
            direction: answer.direction,
            side: answer.side,
            what: remark.what.clone(),
            evidence: remark.evidence.clone(),
            run: answer.run.clone(),
            candidates: candidates.filter(|_| stands == Answered::Unknown).collect(),
            ruled_out: answer.ruled_out.clone(),
            next: remark.next.first().cloned(),
        }
    }

    fn judged(limit: &Limit) -> Self {
        let side = match limit.side {
            Place::Near => Some(Side::Near),
            Place::Far => Some(Side::Far),
            Place::Path => None,
        };
        let known = cause(limit.cause);
        let name = known.map_or(limit.cause, |cause| cause.name);
        let is_full = known.is_some_and(|cause| cause.full_speed);
        let host = side.map_or(String::new(), |side| format!("{}: ", side_name(side)));
        let step = limit.advice.first();
        Self {
            stands: if is_full { Answered::Healthy } else { Answered::Limit },
            rule: None,
            cause: Some(limit.cause),
            certainty: Some(limit.certainty),
            direction: Some(limit.direction),
            side,
            what: match limit.evidence.first() {
                Some(first) => format!("{host}{name}: {first}"),
                None => format!("{host}{name}"),
            },
            evidence: limit.evidence.clone(),
            run: None,
            candidates: Vec::new(),
            ruled_out: Vec::new(),
            next: step.map(|advice| Next {
                what: advice.what.clone(),
                command: advice.steps.first().map_or(String::new(), |s| s.command.clone()),
            }),
        }
    }

    fn unknown(explained: &Explained<'_>) -> Self {
        let found = suspects(&explained.verdict);
        let maybe: Vec<_> = found.iter().map(|suspect| suspect.cause).collect();
        // A long list says nothing.
        let few = Some(maybe).filter(|maybe| maybe.len() <= CANDIDATES);
        Self {
            stands: Answered::Unknown,
            rule: None,
            cause: None,
            certainty: None,
            direction: None,
            side: None,
            what: "what limits it is not known from these figures".to_owned(),
            evidence: Vec::new(),
            run: None,
            candidates: few.unwrap_or_default(),
            ruled_out: Vec::new(),
            next: Some(Next {
                what: "measure the path itself, with `linerate serve` on the other host".to_owned(),
                command: "linerate run HOST".to_owned(),
            }),
        }
    }
}
