//! What binds next, once the limits that were found are lifted.

use super::case::{Case, Party};
use super::{Certainty, Limit, Measure, Place, Stage};
use crate::causes::{Answer, FULL, Finding, HOST_SHAPING, PCIE_SLOT, WIRE_FULL};
use crate::model::{Ceiling, DirectionModel, Load, Model};
use crate::plan::Direction;

/// Goodput of a lifted limit over the goodput before, from which something else may be seen to bind.
const LIFTED: f64 = 1.1;

/// Share of the time, or of the slowness, that the next limit must explain.
const MOST: f64 = 0.5;

/// What would bind next in a direction, where something was found to bind: what held the load in which
/// the first limit was lifted, else the lowest ceiling that was not reached.
pub(super) fn next(model: &Model, dir: &DirectionModel, found: &[Limit]) -> Option<Limit> {
    if found.is_empty() {
        return None;
    }
    behind(model, dir, found).or_else(|| ceiling(dir, found))
}

/// A load that went beyond the limits that were found, and how much.
struct Beyond<'a> {
    load: &'a Load,
    change: String,
    gain: f64,
    /// Whether it differs in more than what was lifted: more streams share CPUs that one had alone.
    crowded: bool,
}

/// The load in which a trial lifted what was found, or the one with the streams that carried most.
fn beyond<'a>(model: &'a Model, dir: &'a DirectionModel, found: &[Limit]) -> Option<Beyond<'a>> {
    let trials = found.iter().filter_map(|limit| limit.trial.as_ref());
    let lifted = trials.filter_map(|decided| {
        let trial = model.trials.iter().find(|t| t.plan.id == decided.id)?;
        Some(Beyond {
            load: trial.changed.as_ref()?,
            change: decided.words.to_owned(),
            gain: decided.effect.mid,
            crowded: false,
        })
    });
    let knee = dir.knee();
    let streams = Beyond {
        load: knee,
        change: format!("{} streams", knee.streams),
        gain: knee.goodput.mean / dir.base.goodput.mean,
        crowded: true,
    };
    lifted.chain([streams]).find(|beyond| beyond.gain >= LIFTED)
}

/// What held the load that went beyond. Where it is what was found already, more of the same binds and
/// nothing else is told.
fn behind(model: &Model, dir: &DirectionModel, found: &[Limit]) -> Option<Limit> {
    let beyond = beyond(model, dir, found)?;
    let lifted = Model {
        directions: vec![DirectionModel {
            base: beyond.load.clone(),
            sweep: Vec::new(),
            ..dir.clone()
        }],
        trials: Vec::new(),
        ..model.clone()
    };
    let case = Case::of(&lifted, dir.direction, Measure::Goodput);
    let (party, finding) = foremost(&case)?;
    if beyond.crowded && !finding.enough {
        return None;
    }
    let known = found.iter().any(|limit| limit.cause == party.cause.id());
    (!known).then(|| Limit {
        metric: Measure::Goodput,
        cause: party.cause.id(),
        stage: party.cause.stage(),
        side: finding.side,
        direction: dir.direction,
        certainty: Certainty::Supported,
        evidence: evidence(&beyond, finding),
        trial: None,
        advice: party.cause.advice(&lifted, dir.direction),
    })
}

/// The cause in play that explains most of a load.
fn foremost<'a>(case: &'a Case<'_>) -> Option<(&'a Party, &'a Finding)> {
    let standing = case.parties.iter().filter(|p| p.stands());
    standing
        .filter_map(|p| match &p.answer {
            Answer::Finding(f) if f.share >= MOST => Some((p, f)),
            _ => None,
        })
        // Of equals the one that is judged first.
        .reduce(|a, b| if b.1.share > a.1.share { b } else { a })
}

fn evidence(beyond: &Beyond<'_>, finding: &Finding) -> Vec<String> {
    let first = finding.evidence.first().map_or("", String::as_str);
    vec![format!(
        "{} gave x{:.2}, and then {first}",
        beyond.change, beyond.gain
    )]
}

/// The lowest ceiling that was not reached: no mending of what is below goes beyond it.
fn ceiling(dir: &DirectionModel, found: &[Limit]) -> Option<Limit> {
    // A slot may be named inside of its interval, a shaper just below its ceiling.
    let named = |c: &Ceiling| found.iter().any(|l| l.cause == cause_of(c));
    let above = |c: &&Ceiling| c.reached(&dir.base) < FULL && !named(c);
    let ceiling = dir.ceilings.iter().find(above)?;
    Some(limit_of(ceiling, dir.direction))
}

fn limit_of(ceiling: &Ceiling, direction: Direction) -> Limit {
    Limit {
        metric: Measure::Goodput,
        cause: cause_of(ceiling),
        stage: ceiling.stage,
        side: match ceiling.stage {
            Stage::Net => Place::Path,
            _ => ceiling.side,
        },
        direction,
        certainty: Certainty::Supported,
        evidence: vec![format!(
            "{} carries {} = {}",
            ceiling.name,
            ceiling.formula,
            ceiling.words()
        )],
        trial: None,
        advice: Vec::new(),
    }
}

/// The cause that holds where a ceiling is reached.
fn cause_of(ceiling: &Ceiling) -> &'static str {
    match ceiling.stage {
        Stage::Pcie => PCIE_SLOT,
        Stage::Port => HOST_SHAPING,
        _ => WIRE_FULL,
    }
}
