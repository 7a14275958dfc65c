//! The judge: derives the verdict from a model.

use super::case::{Case, Party, Proof};
use super::{Answered, Decided, Disturbance, Limit, Unknown, Verdict, after, rerun};
use crate::causes::{CAUSES, Cause, Finding, NoFinding, collapses, raised};
use crate::model::{DirectionModel, Model, TrialModel};
use linerate_plan::factor;
use linerate_plan::path::{Certainty, Direction, Measure, Slowness};
use linerate_plan::transport::Feature;
use linerate_units::stats::Interval;

/// Judges a model by all causes. The same model always gives the same verdict.
pub fn judge(model: &Model) -> Verdict {
    judge_by(model, CAUSES)
}

/// Remarks on a model that are not part of its verdict.
pub fn notes(model: &Model) -> Vec<String> {
    let directions = model.directions.iter();
    directions.filter_map(|dir| crate::causes::mended(model, dir.direction)).collect()
}

/// Remarks on directions that carry next to nothing while the other one is loaded.
pub fn collapsed(model: &Model) -> Vec<String> {
    let directions = model.directions.iter();
    directions.filter_map(|dir| collapses(model, dir.direction)).collect()
}

/// Judges a model by the given causes only. Without one of them, the verdict shows what depends on it.
pub fn judge_by(model: &Model, causes: &[&'static Cause]) -> Verdict {
    let of = |dir| (dir, of_direction(model, causes, dir));
    let mut parts: Vec<(&DirectionModel, Verdict)> = model.directions.iter().map(of).collect();
    let mut verdict = Verdict::default();
    // The answers keep the order of the directions; everything else begins with the much slower direction.
    for (_, part) in &mut parts {
        verdict.answers.append(&mut part.answers);
    }
    let slow = model.slower();
    parts.sort_by_key(|(dir, _)| Some(dir.direction) != slow);
    for (_, part) in parts {
        verdict.limits.extend(part.limits);
        verdict.disturbances.extend(part.disturbances);
        verdict.next.extend(part.next);
        verdict.unknown.extend(part.unknown);
    }
    sort(&mut verdict.limits, slow);
    dedup(&mut verdict.unknown);
    verdict
}

/// The verdict on one direction: its limits, disturbances and unknowns, with evidence.
fn of_direction(model: &Model, causes: &[&'static Cause], dir: &DirectionModel) -> Verdict {
    let direction = dir.direction;
    let [case, slow] = Slowness::ALL.map(|slowness| Case::of(model, direction, slowness, causes));
    let heard = [&case, &slow].into_iter().flat_map(|case| &case.parties);
    let limits = upheld(&case, direction);
    let mut verdict = Verdict {
        answers: heard.map(|p| answered(p, direction)).collect(),
        disturbances: disturbances(model, causes, direction, &limits),
        next: after::next(model, causes, dir, &limits).into_iter().collect(),
        ..Verdict::default()
    };
    if limits.is_empty() {
        let is_disk = dir.base.has(Feature::Disk);
        let way = if is_disk { direction.access() } else { direction.name() };
        let what = format!("what limits {way}");
        verdict.unknown.push(nothing_upheld(&case, direction, what));
    }
    verdict.unknown.extend(unanswered(&case));
    let slowed = upheld(&slow, direction);
    if slowed.is_empty() {
        verdict.unknown.extend(unexplained(&slow, direction));
    }
    verdict.limits = limits.into_iter().chain(slowed).collect();
    verdict
}

/// Sorts limits: those of rate before those of latency, then those of the much slower direction, then proved ones, then
/// those with the largest gain. The sort is stable: among equals, forward stays first.
fn sort(limits: &mut [Limit], slow: Option<Direction>) {
    let rank = |limit: &Limit| {
        (
            limit.metric == Measure::Latency,
            Some(limit.direction) != slow,
            limit.certainty != Certainty::Proved,
        )
    };
    limits.sort_by(|a, b| {
        let gain = best_gain(b).total_cmp(&best_gain(a));
        rank(a).cmp(&rank(b)).then(gain)
    });
}

/// Causes that disturbed the measurement of a direction and do not limit it.
fn disturbances(
    model: &Model,
    causes: &[&'static Cause],
    direction: Direction,
    limits: &[Limit],
) -> Vec<Disturbance> {
    let is_limit = |cause: &str, side| limits.iter().any(|l| l.cause == cause && l.side == side);
    let of = |cause: &&'static Cause| {
        let cause = *cause;
        let costs = (cause.costs)(model, direction).into_iter();
        let others = costs.filter(move |cost| !is_limit(cause.id, cost.side));
        others.map(move |cost| Disturbance {
            cause: cause.id,
            stage: cause.stage_at(cost.side),
            side: cost.side,
            direction,
            share: cost.share,
            evidence: cost.evidence,
            advice: cost.advice,
        })
    };
    causes.iter().flat_map(of).collect()
}

fn best_gain(limit: &Limit) -> f64 {
    limit.advice.iter().filter_map(|a| a.gain).fold(1.0, f64::max)
}

fn dedup(all: &mut Vec<Unknown>) {
    let mut seen: Vec<Unknown> = Vec::new();
    all.retain(|u| {
        let new = !seen.contains(u);
        if new {
            seen.push(u.clone());
        }
        new
    });
}

/// The limits of one direction: the proved ones, else the supported ones, else the only cause that is left.
fn upheld(case: &Case<'_>, direction: Direction) -> Vec<Limit> {
    let findings = || {
        case.parties.iter().filter_map(|p| match &p.answer {
            Ok(f) => Some((p, f)),
            _ => None,
        })
    };
    let mut limits: Vec<Limit> = Vec::new();
    let proved: Vec<Limit> = findings()
        .filter_map(|(p, f)| Some(limit(case, direction, p, f, Some(case.proof(p)?))))
        .collect();
    if proved.is_empty() {
        let mut supported: Vec<_> = findings().filter(|(p, f)| p.stands() && f.enough).collect();
        supported.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
        limits.extend(supported.into_iter().map(|(p, f)| limit(case, direction, p, f, None)));
        if limits.is_empty() {
            limits.extend(last(case, direction));
        }
    } else {
        let is_proved = |p: &&Party| proved.iter().any(|limit| limit.cause == p.cause.id);
        let is_beside = |p: &Party| {
            let mut all = case.parties.iter().filter(is_proved);
            !is_proved(&p) && all.any(|proved| case.is_beside(p, proved))
        };
        let beside: Vec<Limit> = findings()
            .filter(|(p, f)| p.stands() && f.enough && is_beside(p))
            .map(|(p, f)| limit(case, direction, p, f, None))
            .collect();
        limits.extend(proved);
        limits.extend(beside);
    }
    limits
}

/// The limit that is named because all other causes are ruled out.
fn last(case: &Case<'_>, direction: Direction) -> Option<Limit> {
    let mut standing = case.parties.iter().filter(|p| p.stands());
    let only = standing.next().filter(|_| standing.next().is_none())?;
    let Ok(finding) = &only.answer else {
        return None;
    };
    let mut limit = limit(case, direction, only, finding, None);
    limit.evidence.push("no other cause is left in play".to_owned());
    (only.cause.is_last)(case.model, direction).then_some(limit)
}

fn limit(
    case: &Case<'_>,
    direction: Direction,
    party: &Party,
    finding: &Finding,
    proof: Option<Proof<'_>>,
) -> Limit {
    Limit {
        metric: case.measure(),
        cause: party.cause.id,
        stage: party.cause.stage_at(finding.side),
        side: finding.side,
        direction,
        certainty: if proof.is_some() { Certainty::Proved } else { Certainty::Supported },
        evidence: finding.evidence.clone(),
        trial: match proof {
            Some(Proof::Trial(trial, effect)) => Some(decided(case, party, trial, effect)),
            Some(Proof::Ceiling) | None => None,
        },
        advice: party.cause.advice(case.model, direction),
    }
}

fn decided(case: &Case<'_>, party: &Party, trial: &TrialModel, effect: Interval) -> Decided {
    let kind = factor::kind(&trial.plan.kind);
    let by_loss = (party.cause.predict_loss)(case.model, &trial.plan).is_some();
    let by_latency = party.cause.slows == Slowness::Latency;
    Decided {
        id: trial.plan.id,
        kind: kind.map_or("", |k| k.id),
        words: kind.map_or("a change", |k| k.change),
        effect,
        loss: trial.loss.filter(|_| by_loss),
        transport: case.transport,
        latency: trial.latency.filter(|_| by_latency),
        slices: trial.slices,
        excluded: case.excluded(trial.plan.id),
    }
}

fn answered(party: &Party, direction: Direction) -> Answered {
    let (outcome, why) = match &party.answer {
        Ok(f) if party.excluded_by.is_empty() => ("finding", f.evidence.clone()),
        Ok(f) => ("excluded", f.evidence.clone()),
        Err(NoFinding::Clear(why)) => ("clear", vec![why.clone()]),
        Err(NoFinding::Unknown(gaps)) => {
            ("unknown", gaps.iter().map(|g| format!("{}: {}", g.what, g.why)).collect())
        }
    };
    let mut why = why;
    why.extend(party.excluded_by.iter().map(|id| format!("trial {id} excluded it")));
    Answered { cause: party.cause.id, direction, outcome, why }
}

/// The gap that says why no cause could be named.
fn nothing_upheld(case: &Case<'_>, direction: Direction, what: String) -> Unknown {
    let standing: Vec<&str> =
        case.parties.iter().filter(|p| p.stands()).map(|p| p.cause.id).collect();
    let why = match &standing[..] {
        [] => unforeseen(case)
            .unwrap_or_else(|| "no cause that linerate knows fits what was measured".to_owned()),
        [one] => format!("it may be {one}, and no trial proved it"),
        several => {
            format!("it may be {}, and no experiment distinguished them", several.join(" or "))
        }
    };
    Unknown { what, why, hint: next_step(case, direction) }
}

/// The command that may find out more: this run again if it was interrupted, else a longer one. Once trials were made,
/// the longer run spends all of its time on this direction, and repeats a trial that did not decide with longer slices.
fn next_step(case: &Case<'_>, direction: Direction) -> String {
    let model = case.model;
    if model.watched || model.reported {
        return String::new();
    }
    let load = model.direction(direction).map(|dir| &dir.base);
    if load.is_some_and(|load| !load.interruptions.is_empty()) {
        return model.requested.run("");
    }
    let alone = format!(" --direction {} --thorough", direction.name());
    let both = case.trials.is_empty() && model.directions.len() > 1;
    model.requested.run(if both { " --thorough" } else { &alone })
}

/// A sentence about a trial that excluded all findings: no cause predicted its result.
fn unforeseen(case: &Case<'_>) -> Option<String> {
    let found = |p: &&Party| p.answer.is_ok() && !p.cause.only_disturbs;
    let found: Vec<&Party> = case.parties.iter().filter(found).collect();
    let by_all = |id| found.iter().all(|p| p.excluded_by.contains(&id));
    let mut trials = case.trials.iter().filter(|_| !found.is_empty());
    let (trial, effect) = trials.find(|(trial, _)| by_all(trial.plan.id))?;
    let change = factor::kind(&trial.plan.kind)?.change;
    Some(format!(
        "{change} gave x{:.2} ({:.2} to {:.2}), which no cause that linerate knows predicts",
        effect.mid, effect.low, effect.high
    ))
}

/// The unknown facts that prevent an answer, if the load makes round trips long and no cause could be named; empty if
/// they stay short, or were not timed at all.
fn unexplained(case: &Case<'_>, direction: Direction) -> Vec<Unknown> {
    let timed = |dir: &DirectionModel| dir.base.latency.is_some();
    match raised(case.model, direction) {
        Ok(_) => {
            let gaps = unanswered(case);
            let what = format!("what makes round trips long {}", direction.name());
            if gaps.is_empty() { vec![nothing_upheld(case, direction, what)] } else { gaps }
        }
        Err(NoFinding::Unknown(_)) if case.model.direction(direction).is_some_and(timed) => {
            unanswered(case)
        }
        Err(_) => Vec::new(),
    }
}

/// The gaps of causes that could not be judged and are still possible.
fn unanswered(case: &Case<'_>) -> Vec<Unknown> {
    case.parties
        .iter()
        .filter(|p| p.stands())
        .filter_map(|p| match &p.answer {
            Err(NoFinding::Unknown(gaps)) => Some((p, gaps)),
            _ => None,
        })
        .flat_map(|(_, gaps)| gaps.iter().map(|gap| Unknown::of(gap, &rerun(case.model))))
        .collect()
}
