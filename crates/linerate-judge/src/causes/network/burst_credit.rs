//! The path carries a high rate until a credit is used up, and a lower rate from then on.

use crate::causes::network::contended;
use crate::causes::network::shared_rate::{self, of_any};
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::model::Fell;

/// Largest relative difference from their mean, up to which reported intervals have one rate.
const ONE_RATE: f64 = 0.25;

pub(crate) static CAUSE: Cause = Cause {
    id: "burst-credit",
    name: "the rate falls once a credit is used up",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    decided_by: &[Factor::MoreStreams, Factor::Paced, Factor::Crowd],
    page: include_str!("../pages/burst-credit.md"),
    check,
    is_last: shared_rate::is_last,
    predict,
    predict_loss,
    decides: shared_rate::decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(fell) = fell(model, direction) else {
        return Err(clear("the rate did not fall"));
    };
    let report = words(fell);
    if model.reported {
        let steady = |rate: &f64| (rate / load.goodput.mean - 1.0).abs() <= ONE_RATE;
        let most = load.ticks.iter().filter(|rate| steady(rate)).count() * 4;
        return Ok(Finding::at(Place::Path, 1.0, vec![report]).enough(most >= load.ticks.len() * 3));
    }
    let found = of_any(model, direction)?;
    Ok(Finding { evidence: std::iter::once(report).chain(found.evidence).collect(), ..found })
}

/// The prediction of `path-rate`, if the rate fell; else nothing is predicted.
fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    fell(model, trial.direction)?;
    one_rate(model, trial)
}

fn predict_loss(model: &Model, trial: &TrialPlan) -> Option<Range> {
    fell(model, trial.direction)?;
    shared_rate::predict_loss(model, trial)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Some(fell) = fell(model, direction) else {
        return Vec::new();
    };
    vec![Advice::new(format!(
        "count on {}, and ask the operator of the network or the cloud what gives more for about {}: a credit of the \
         machine's size, or a token bucket with a large burst. It fills again while less is sent",
        fell.lasting, fell.bytes
    ))]
}

/// The evidence that the rate of a direction fell for good; `None` if it did not.
pub(crate) fn holds(model: &Model, direction: Direction) -> Option<String> {
    fell(model, direction).map(words)
}

fn fell(model: &Model, direction: Direction) -> Option<&Fell> {
    let dir = model.direction(direction)?;
    // Other traffic that began during the run may be the reason for the fall.
    dir.fell.as_ref().filter(|_| !contended::is_shared(&dir.base))
}

fn words(fell: &Fell) -> String {
    format!(
        "the rate fell: {} until {} had arrived, in {} under load, and {} from then on",
        fell.first, fell.bytes, fell.loaded, fell.lasting
    )
}
