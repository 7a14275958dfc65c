//! Too few operations are in flight: each waits for an earlier one, and nothing on the path is full.

use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::rerun;
use crate::signs::round_trips::median;
use linerate_plan::transport::file::writes;
use linerate_units::Nanos;

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
    let is_timed = direction == Direction::Reverse || writes(&load.knobs.options);
    if load.has(Feature::Disk) && !is_timed {
        let words =
            format!("{depth} in flight in each thread; on the idle disk only reads are timed");
        return Ok(Finding::at(Place::Near, 0.3, vec![words]));
    }
    if let Some(words) = far_longer_at_disk(model, load) {
        return Err(clear(words));
    }
    let [single, loaded] = [model.idle.as_ref(), load.latency.as_ref()].map(median);
    let Some((single, loaded)) = single.zip(loaded) else {
        return Err(NoFinding::Unknown(vec![Gap {
            what: "the time of an operation, alone and under load".to_owned(),
            why: "too few were timed".to_owned(),
            hint: rerun(model, " --thorough"),
        }]));
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

/// Ratio of the time of a request at the disk under load to that of a single operation, from which on requests queue
/// there, whatever their sizes are.
const FAR_LONGER: f64 = 20.0;

/// The sentence that requests took far longer at the disk than a single operation alone; `None` if they did not.
fn far_longer_at_disk(model: &Model, load: &Load) -> Option<String> {
    let (single, disk) = (median(model.idle.as_ref())?, load.disk?);
    let each = Nanos((disk.in_flight / disk.own.requests.max(1e-3) * 1e9) as u64);
    (each.0 as f64 >= single.0 as f64 * FAR_LONGER)
        .then(|| format!("a request took {each} at the disk, and an operation {single} alone"))
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
