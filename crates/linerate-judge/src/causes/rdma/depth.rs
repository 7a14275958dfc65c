//! Too few requests of an RDMA load are in flight: each waits for an earlier one, and nothing on the path is full.

use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::rdma::queues::{Queues, load};
use linerate_plan::transport::rdma;

/// Largest gain of more requests in flight, relative to the ratio of their numbers.
const MORE: f64 = 1.1;

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-depth",
    name: "too few requests are in flight",
    needs: &[Feature::Verbs],
    stage: Stage::App,
    decided_by: &[Factor::MoreDepth],
    page: include_str!("../pages/rdma-depth.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let queues = Queues::of(model, direction)?;
    let depth = queues.depth;
    let words = format!("{}, with {depth} in flight in each queue pair", queues.words(depth));
    if queues.wait(depth) {
        return Err(clear(format!("{words}: requests queue for something else")));
    }
    Ok(Finding::at(queues.place(), queues.share(depth), vec![words]).enough(queues.runs_dry(depth)))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreDepth => {
            let depth = |knobs: &linerate_plan::Knobs| f64::from(rdma::depth(&knobs.options));
            Some(Range {
                low: GAIN,
                high: depth(&trial.after) / depth(&trial.before).max(1.0) * MORE,
            })
        }
        Factor::MoreStreams => Some(per_stream(trial)),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Some(load) = load(model, direction) else {
        return Vec::new();
    };
    let twice = rdma::depth(&load.knobs.options).saturating_mul(2);
    let gain = model.tried(direction, Factor::MoreDepth);
    let advice = Advice::new(format!(
        "let the program post more requests before it waits: {twice} in each queue pair, or larger ones"
    ));
    vec![advice.gain(gain.and_then(|trial| trial.effect).map(|effect| effect.mid))]
}
