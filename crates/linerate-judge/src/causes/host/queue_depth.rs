//! Too few operations are in flight: each waits for an earlier one, and nothing on the path is full.

use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::rerun;
use crate::signs::round_trips::median;
use linerate_facts::Gap;

/// Ratio of the time of an operation under load to that of a single operation. Up to this ratio nothing queues.
const UNQUEUED: f64 = 1.2;

/// Minimum ratio of these times at which operations already queue at another limit.
const QUEUED: f64 = 2.0;

/// Largest gain of more operations in flight, relative to the ratio of their numbers.
const MORE: f64 = 1.1;

pub(crate) static CAUSE: Cause = Cause {
    id: "queue-depth",
    name: "too few operations are in flight",
    needs: &[Feature::Operations],
    stage: Stage::App,
    decided_by: &[Factor::MoreDepth],
    page: include_str!("../pages/queue-depth.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let depth = load.knobs.depth;
    if depth == 0 {
        return Err(clear("it keeps no number of operations in flight"));
    }
    if load.has(Feature::Disk) && direction == Direction::Forward {
        return Err(NoFinding::Unknown(vec![Gap {
            what: "the time of a write alone".to_owned(),
            why: "on the idle disk only reads are timed".to_owned(),
            hint: rerun(model, &format!(" --depth {}", depth.saturating_mul(2))),
        }]));
    }
    let [single, loaded] = [model.idle.as_ref(), load.latency.as_ref()].map(median);
    let Some((single, loaded)) = single.zip(loaded) else {
        return Err(unknown(
            "the time of an operation, alone and under load",
            "one of them was not timed",
        ));
    };
    let ratio = loaded.0 as f64 / single.0.max(1) as f64;
    let words = format!(
        "an operation took {loaded} with {depth} in flight in each stream, and {single} alone"
    );
    if ratio >= QUEUED {
        return Err(clear(format!("{words}: they queue for something else")));
    }
    Ok(Finding::at(Place::Near, (QUEUED - ratio).clamp(0.0, 1.0), vec![words])
        .enough(ratio < UNQUEUED))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreDepth => {
            let times = f64::from(trial.after.depth) / f64::from(trial.before.depth.max(1));
            Some(Range { low: GAIN, high: times * MORE })
        }
        Factor::MoreStreams => Some(per_stream(trial)),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|dir| &dir.base);
    let gain = model.tried(direction, Factor::MoreDepth);
    let twice = load.map_or(0, |load| load.knobs.depth.saturating_mul(2));
    let advice = Advice::new(format!(
        "let the program keep more operations in flight: {twice} in each stream, or more streams"
    ));
    vec![advice.gain(gain.and_then(|trial| trial.effect).map(|effect| effect.mid))]
}
