//! Chooses the trial that runs next, and says whether a trial has decided.

use super::Verdict;
use super::case::{Case, Party};
use crate::causes::{CAUSES, Effects, Expected, Fit, shown};
use crate::model::{Model, TrialModel};
use crate::trial::propose;
use linerate_plan::factor::{TRIALS, TrialKind, kind};
use linerate_plan::path::{Certainty, Direction, Slowness};
use linerate_record::{End, Record, Step, TrialPlan};
use linerate_units::Nanos;
use linerate_units::stats::Interval;

/// The most informative trial for each of `directions`, numbered `id`, the best first: if time is short, the later ones
/// may not be made. A direction is left out if its cause is proved and the reason for it is known or cannot be tried,
/// or if no trial could separate the remaining causes.
pub fn next_trials(
    model: &Model,
    directions: &[Direction],
    slowness: Slowness,
    id: u32,
) -> Vec<TrialPlan> {
    let of = |direction| most_telling(&Case::of(model, direction, slowness, CAUSES), direction, id);
    let mut reported: Vec<(f64, TrialPlan)> = directions.iter().filter_map(|d| of(*d)).collect();
    // The sort is stable: among equals, the direction that the user named first stays first.
    reported.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    reported.into_iter().map(|(_, plan)| plan).collect()
}

/// Minimum share of a run's time that must be unused before a view explains why.
const LEFT: f64 = 0.1;

/// The time that a run with trials left unused, and the reason, if a direction has no proof; `None` if the run used its
/// time, was cut short, or has proofs.
pub fn unused(record: &Record, model: &Model, verdict: &Verdict) -> Option<(Nanos, String)> {
    let plan = &record.start.plan;
    let took = |step: &Step| step.began.0.saturating_add(step.took.0);
    let ended = record.steps.iter().map(|step| step.ended().0.max(took(step))).max()?;
    let left = Nanos(plan.time.0.saturating_sub(ended));
    let is_proved = |direction: &Direction| {
        let mut limits = verdict.limits.iter();
        limits.any(|l| l.direction == *direction && l.certainty == Certainty::Proved)
    };
    let open = plan.directions.iter().copied().filter(|d| !is_proved(d));
    let open: Vec<Direction> = open.collect();
    let matters = left.0 as f64 >= plan.time.0 as f64 * LEFT;
    if !plan.trials || record.end != Some(End::Complete) || open.is_empty() || !matters {
        return None;
    }
    let number = record.trials.len() as u32;
    let mut next =
        Slowness::ALL.into_iter().flat_map(|slowness| next_trials(model, &open, slowness, number));
    let next = next.find_map(|plan| kind(&plan.kind));
    let why = next.map_or_else(
        || "no trial is left that would tell more".to_owned(),
        |kind| format!("the next trial may take longer: {}", kind.words),
    );
    Some((left, why))
}

/// The most informative trial for a case, with its expected information.
pub(super) fn most_telling(
    case: &Case<'_>,
    direction: Direction,
    id: u32,
) -> Option<(f64, TrialPlan)> {
    let parties = case.parties.iter();
    let proved: Vec<&Party> = parties.filter(|p| case.proof(p).is_some()).collect();
    if !proved.is_empty() {
        return of_reason(case, &proved, direction, id);
    }
    let suspects: Vec<(&Party, f64)> = case
        .parties
        .iter()
        .filter(|p| p.stands())
        .filter_map(|p| match &p.answer {
            Ok(f) => Some((p, f.share + if f.enough { 1.0 } else { 0.0 })),
            _ => None,
        })
        .collect();
    if suspects.is_empty() {
        return None;
    }
    let best = |plans: Vec<TrialPlan>| {
        let mut best: Option<(f64, TrialPlan)> = None;
        for plan in plans {
            let score = expected(case, &suspects, &plan);
            // Among equals, the earlier row of the table of trials is used.
            if score > best.as_ref().map_or(0.0, |(s, _)| *s) {
                best = Some((score, plan));
            }
        }
        best
    };
    best(untried(case.model, direction, id)).or_else(|| best(undecided(case.model, direction, id)))
}

/// The trial of a reason for a proved cause, if counters support that reason: the trial shows what its remedy gains.
fn of_reason(
    case: &Case<'_>,
    proved: &[&Party],
    direction: Direction,
    id: u32,
) -> Option<(f64, TrialPlan)> {
    let explains = |party: &&Party| {
        let of = party.cause.explains;
        proved.iter().any(|proved| of.contains(&proved.cause.id))
    };
    let is_found = |party: &&Party| matches!(&party.answer, Ok(found) if found.enough);
    let reasons = case.parties.iter().filter(|party| party.stands());
    let mut open =
        reasons.filter(is_found).filter(explains).filter(|party| case.proof(party).is_none());
    let plans = untried(case.model, direction, id);
    let about = |party: &Party| {
        let mut about = plans.iter();
        about.find(|plan| party.cause.is_about(case.model, plan))
    };
    open.find_map(about).map(|plan| (1.0, plan.clone()))
}

/// The trials of a kind that were made in `direction`, each with its index.
fn made<'a>(
    model: &'a Model,
    direction: Direction,
    kind: &TrialKind,
) -> impl Iterator<Item = (usize, &'a TrialModel)> {
    let trials = model.trials.iter().enumerate();
    trials.filter(move |(_, t)| t.plan.direction == direction && t.plan.kind == kind.id)
}

/// The trials of `direction` that can be made and were not made yet.
fn untried(model: &Model, direction: Direction, id: u32) -> Vec<TrialPlan> {
    let untried = |kind: &&TrialKind| made(model, direction, kind).next().is_none();
    let plans = TRIALS.iter().filter(untried);
    plans.filter_map(|kind| propose(kind, model, direction, id)).collect()
}

/// The trials of `direction` that were made once and did not decide: they are made again, with longer slices.
fn undecided(model: &Model, direction: Direction, id: u32) -> Vec<TrialPlan> {
    let once = |kind: &&TrialKind| {
        let mut made = made(model, direction, kind);
        let (Some((at, trial)), None) = (made.next(), made.next()) else {
            return false;
        };
        let mut before = model.clone();
        before.trials.remove(at);
        // If the rate fell for good, a trial before the fall has no effect.
        let is_overtaken = model.direction(direction).is_some_and(|dir| dir.fell.is_some());
        (trial.effect.is_some() || is_overtaken) && !decides(&before, trial)
    };
    let plans = TRIALS.iter().filter(once);
    plans.filter_map(|kind| propose(kind, model, direction, id)).collect()
}

/// The expected information of `plan`: the mean of its worth over all suspects, each taken as the cause in turn and
/// weighted by its evidence. The values of different directions can be compared.
fn expected(case: &Case<'_>, suspects: &[(&Party, f64)], plan: &TrialPlan) -> f64 {
    let all: f64 = suspects.iter().map(|(_, weight)| weight).sum();
    let parties = case.parties.iter();
    let predicted: Vec<(&Party, Expected)> = parties
        .filter(|p| !p.cause.only_disturbs)
        .map(|p| (p, Expected::of(p.cause, case.model, plan)))
        .collect();
    let worths = suspects
        .iter()
        .map(|(suspect, weight)| weight * worth(case, suspect, plan, &predicted) as f64);
    worths.sum::<f64>() / all
}

/// The worth of `plan` if the suspect is the cause: twice the number of remaining rivals that the predicted result
/// would exclude, and one more if the plan could prove the suspect. It could if it is about the suspect, and if the
/// suspect predicts a change, or a result that differs from that of another cause, cleared ones included. `predicted`
/// holds the prediction of each cause.
fn worth(
    case: &Case<'_>,
    suspect: &Party,
    plan: &TrialPlan,
    predicted: &[(&Party, Expected)],
) -> usize {
    let own = Expected::of(suspect.cause, case.model, plan);
    let parted: Vec<&Party> = predicted
        .iter()
        .filter(|(p, _)| p.cause.id != suspect.cause.id)
        .filter(|(_, expected)| expected.parted_from(own))
        .map(|(p, _)| *p)
        .collect();
    let about = suspect.cause.is_about(case.model, plan);
    let proves = about && (own.is_change() || !parted.is_empty());
    parted.iter().filter(|p| p.stands()).count() * 2 + usize::from(proves)
}

/// Whether a trial already decides, for goodput and for latency: its effects are inside of the prediction of one
/// remaining cause and do not partly overlap another one, or are well outside of all predictions. `model` is the model
/// from before the trial.
///
/// An effect outside of all predictions must stay outside when its interval is twice as wide: a trial that stopped at
/// the first interval which happens to miss all predictions would err too often (the study in `benches/truth/` shows
/// how often).
pub fn decides(model: &Model, trial: &TrialModel) -> bool {
    if trial.effect.is_none() {
        return false;
    }
    let mut model = model.clone();
    // The trial's goodputs may be known, but not its effects: the effects would already exclude causes.
    model.trials.push(TrialModel { effect: None, loss: None, latency: None, ..trial.clone() });
    let settled = |slowness: &Slowness| settles(&model, trial, *slowness);
    Slowness::ALL.iter().all(settled)
}

/// Whether a trial decides between the remaining causes for one kind of slowness. A trial about which they predict
/// nothing decides, too.
fn settles(model: &Model, trial: &TrialModel, slowness: Slowness) -> bool {
    let expected: Vec<Expected> = Case::of(model, trial.plan.direction, slowness, CAUSES)
        .parties
        .iter()
        .filter(|p| p.stands())
        .map(|p| Expected::of(p.cause, model, &trial.plan))
        .collect();
    let fits = |times: f64| -> Vec<Fit> {
        let wide = |effect: Option<Interval>| effect.map(|e| e.widened(times));
        let effects: Effects<Interval> = shown(trial).map(wide);
        let fits = expected.iter().map(|e| e.fits(effects));
        fits.filter(|f| *f != Fit::Silent).collect()
    };
    let now = fits(1.0);
    (now.contains(&Fit::Inside) && !now.contains(&Fit::Cut))
        || fits(2.0).iter().all(|f| *f == Fit::Outside)
}
