//! The one answer to "why is it slow" that a set of results gives.

use super::rule::{Answer, Next, Remark, Run};
use super::{Explained, side_name};
use linerate_facts::finding::{Finding, Stands};
use linerate_judge::causes::cause;
use linerate_judge::model::{Model, derive};
use linerate_judge::verdict::{Entry, Limit, Verdict, entries, judge, suspects};
use linerate_plan::path::{Certainty, Direction, Place, Side};
use linerate_record::Record;
use schemars::JsonSchema;
use serde::Serialize;

/// The cause for a rate that the user set on purpose. Other causes that are found are reported first.
const ASKED: &str = "pacing";

/// Most causes that are listed as possible when the limit is unknown.
const CANDIDATES: usize = 3;

/// The kind of answer to "why is it slow".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answered {
    /// Two figures cannot both be true: one of them does not belong to this path.
    Contradiction,
    /// One cause limits the path.
    Limit,
    /// It is unknown what limits the path.
    Unknown,
    /// The path is as fast as its hardware allows.
    Healthy,
}

/// The answer to read first. Unknown values are null.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Headline {
    /// The kind of answer.
    pub stands: Answered,
    /// Id of the rule that gave the answer, or of the host oddity that the rule repeats. Null if the judge gave the
    /// answer, or no rule did.
    pub rule: Option<&'static str>,
    /// Id of the cause that limits the path. Null if no cause is named.
    pub cause: Option<&'static str>,
    /// The host at which the limit is. Null if it is at no host, or unknown.
    pub side: Option<Side>,
    /// The direction that the answer is about. Null if it is about no direction, or about both.
    pub direction: Option<Direction>,
    /// How certain the cause is. Null if no cause is named.
    pub certainty: Option<Certainty>,
    /// The answer in a sentence without a full stop.
    pub what: String,
    /// The numbers that show it, in sentences without a full stop.
    pub evidence: Vec<String>,
    /// The run that shows the answer. Null if no single run does.
    pub run: Option<Run>,
    /// Ids of the causes, at most three, one of which may be the limit.
    pub candidates: Vec<&'static str>,
    /// Ids of causes that the figures rule out.
    pub ruled_out: Vec<&'static str>,
    /// The next step that would narrow the answer down. Null if no step would.
    pub next: Option<Next>,
}

/// The reason why a finding matters, then the readings that prove it.
fn evidence(finding: &Finding) -> Vec<String> {
    let why = Some(finding.why.clone()).filter(|why| !why.is_empty());
    why.into_iter().chain(finding.proof.iter().cloned()).collect()
}

impl Headline {
    /// The answer to read first; `None` if there are no results, only facts. Within a direction, a fault goes before a
    /// full link, and a full link before a busy processor.
    pub(super) fn of(explained: &Explained<'_>) -> Option<Self> {
        let has_results = explained.material.has_results();
        let remarks = || {
            let all = explained.remarks.iter();
            all.filter_map(|remark| Some((remark, remark.answer.as_ref()?)))
        };
        let first = |stands: Stands, some: fn(usize) -> bool| {
            remarks().find(|(remark, answer)| {
                remark.finding.stands == stands && some(answer.causes.len())
            })
        };
        let is_full = |direction| {
            let is = |(remark, answer): (&Remark, &Answer)| {
                remark.finding.stands == Stands::Good && answer.direction == Some(direction)
            };
            remarks().any(is)
        };
        let judged = |is_requested: bool| {
            let mut limits = explained.verdict.limits.iter();
            limits.find(|limit| !is_full(limit.direction) && (limit.cause == ASKED) == is_requested)
        };
        first(Stands::Contradiction, |_| true)
            .or_else(|| first(Stands::Found, |n| n == 1))
            .map(Self::of_remark)
            .or_else(|| judged(false).map(|limit| Self::judged(limit, side_name)))
            .or_else(|| first(Stands::Found, |n| n != 1).map(Self::of_remark))
            .or_else(|| judged(true).map(|limit| Self::judged(limit, side_name)))
            .or_else(|| first(Stands::Good, |_| true).map(Self::of_remark))
            .or_else(|| has_results.then(|| Self::unknown(explained)))
    }

    /// The answer for a record that linerate measured, judged anew; `None` if no direction was measured.
    pub fn of_record(record: &Record) -> Option<Self> {
        let model = derive(record);
        Self::of_run(&model, &judge(&model))
    }

    /// An answer in words alone, without a cause.
    pub fn said(stands: Answered, what: String) -> Self {
        Self { stands, what, ..Self::NONE }
    }

    /// The answer that names a fault as the limit: replies of the network or checks prove it.
    pub fn found(finding: &Finding) -> Self {
        Self {
            cause: Some(finding.id),
            certainty: Some(finding.certainty),
            evidence: evidence(finding),
            next: Next::of(&finding.fix, &finding.host),
            ..Self::said(Answered::Limit, format!("{}: {}", finding.subject, finding.what))
        }
    }

    /// The finding that may limit a path, the most harmful first. No measurement proves it, so the answer is "unknown".
    /// `None` if no finding does harm now.
    pub fn suspected(findings: &[Finding]) -> Option<Self> {
        let mut harmful = findings.iter().filter(|finding| finding.is_now());
        let worst = Self::found(harmful.clone().next()?);
        let mut candidates = Vec::new();
        while let Some(finding) = harmful.next().filter(|_| candidates.len() < CANDIDATES) {
            if !candidates.contains(&finding.id) {
                candidates.push(finding.id);
            }
        }
        let stands = Answered::Unknown;
        Some(Self { stands, cause: None, certainty: None, candidates, ..worst })
    }

    /// Turns "healthy" into "unknown" if not all was measured: the part that was not measured may be at fault.
    #[must_use]
    pub fn of_part(self, is_whole: bool) -> Self {
        if is_whole || self.stands != Answered::Healthy {
            return self;
        }
        let what = format!("not all was measured; of what was: {}", self.what);
        Self { stands: Answered::Unknown, cause: None, certainty: None, what, ..self }
    }

    /// The answer of a run; `None` if no direction was measured.
    pub fn of_run(model: &Model, verdict: &Verdict) -> Option<Self> {
        Self::of_entries(entries(model, verdict))
    }

    /// The first of several answers of the judge. It is "healthy" only if all of them are.
    pub fn of_entries<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Option<Self> {
        let mut all = entries.into_iter().map(Self::of_entry);
        let first = all.next()?;
        let is_well =
            first.stands == Answered::Healthy && all.all(|one| one.stands == first.stands);
        let stands = match first.stands {
            Answered::Healthy if !is_well => Answered::Limit,
            stands => stands,
        };
        Some(Self { stands, ..first })
    }

    fn of_entry(entry: Entry<'_>) -> Self {
        match entry {
            Entry::Limit(limit) => Self::judged(limit, Side::name),
            Entry::Unknown(direction) => Self {
                stands: Answered::Unknown,
                direction: Some(direction),
                what: format!("what limits it {} was not found", direction.name()),
                ..Self::NONE
            },
        }
    }

    /// An answer that says only "unknown".
    const NONE: Self = Self {
        stands: Answered::Unknown,
        rule: None,
        cause: None,
        side: None,
        direction: None,
        certainty: None,
        what: String::new(),
        evidence: Vec::new(),
        run: None,
        candidates: Vec::new(),
        ruled_out: Vec::new(),
        next: None,
    };

    fn of_remark((remark, answer): (&Remark, &Answer)) -> Self {
        let stands = match (remark.finding.stands, answer.causes.len()) {
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
            rule: Some(remark.finding.id),
            cause,
            certainty: cause.map(|_| Certainty::Supported),
            direction: answer.direction,
            side: answer.side,
            what: remark.finding.what.clone(),
            evidence: evidence(&remark.finding),
            run: answer.run.clone(),
            candidates: candidates.filter(|_| stands == Answered::Unknown).collect(),
            ruled_out: answer.ruled_out.clone(),
            next: Next::of(&remark.finding.fix, &remark.finding.host),
        }
    }

    fn judged(limit: &Limit, host: fn(Side) -> &'static str) -> Self {
        let side = match limit.side {
            Place::Near => Some(Side::Near),
            Place::Far => Some(Side::Far),
            Place::Path => None,
        };
        let known = cause(limit.cause);
        let name = known.map_or(limit.cause, |cause| cause.name);
        let is_full = known.is_some_and(|cause| cause.full_speed);
        let host = side.map_or(String::new(), |side| format!("{}: ", host(side)));
        Self {
            stands: if is_full { Answered::Healthy } else { Answered::Limit },
            cause: Some(limit.cause),
            certainty: Some(limit.certainty),
            direction: Some(limit.direction),
            side,
            what: match limit.evidence.first() {
                Some(first) => format!("{host}{name}: {first}"),
                None => format!("{host}{name}"),
            },
            evidence: limit.evidence.clone(),
            next: limit.advice.first().and_then(|advice| Next::of(advice, "")),
            ..Self::NONE
        }
    }

    fn unknown(explained: &Explained<'_>) -> Self {
        let found = suspects(&explained.verdict);
        let maybe: Vec<_> = found.iter().map(|suspect| suspect.cause).collect();
        // More than three candidates do not help the reader: they are left out.
        let few = Some(maybe).filter(|maybe| maybe.len() <= CANDIDATES);
        Self {
            what: "what limits it is not known from these figures".to_owned(),
            candidates: few.unwrap_or_default(),
            next: Some(Next::new(
                "measure the path itself, with `linerate serve` on the other host",
                "linerate run HOST",
            )),
            ..Self::NONE
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::advice::{Advice, Step};
    use linerate_facts::finding::Stands;

    use super::*;

    #[test]
    fn each_candidate_stands_once_and_what_does_no_harm_is_none() {
        let of = |ids: &[&'static str]| -> Vec<Finding> {
            ids.iter().map(|id| Finding::new(id, "eth0", "odd")).collect()
        };
        let found = of(&["a", "a", "b", "c", "d"]);
        assert_eq!(Headline::suspected(&found).unwrap().candidates, ["a", "b", "c"]);
        let mut found = of(&["a", "b"]);
        found[0].stands = Stands::Harmless;
        assert_eq!(Headline::suspected(&found).unwrap().candidates, ["b"]);
        found[1].stands = Stands::Harmless;
        assert_eq!(Headline::suspected(&found), None);
    }

    #[test]
    fn the_next_step_says_where_it_is_done_and_what_its_command_does() {
        let fix = Advice::new("start it again")
            .step(Step::on(None, "pgrep -a opensm").about("see whether it runs"));
        let found = Finding::new("manager-gone", "SRV port 1", "gone").why("why").fix(fix);
        let headline = Headline::found(&found.clone().proof(vec!["shown".to_owned()]).host("SRV"));
        let next = headline.next.unwrap();
        assert_eq!(next.what, "start it again: see whether it runs");
        assert_eq!(
            (next.command.as_deref(), next.host.as_deref()),
            (Some("pgrep -a opensm"), Some("SRV"))
        );
        assert_eq!(headline.evidence, ["why", "shown"]);
        assert_eq!(Headline::found(&found).next.unwrap().host, None);
    }

    #[test]
    fn a_part_of_a_result_is_never_well() {
        let well = Headline::said(Answered::Healthy, "full".to_owned());
        assert_eq!(well.clone().of_part(true), well);
        assert_eq!(well.of_part(false).stands, Answered::Unknown);
        let slow = Headline::said(Answered::Limit, "slow".to_owned());
        assert_eq!(slow.clone().of_part(false), slow);
    }
}
