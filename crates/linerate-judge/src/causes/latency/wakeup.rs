//! The answering program wakes too late: its thread waits for a CPU although a packet has arrived.

use crate::causes::latency::raised::raised;
use crate::causes::prelude::*;
use linerate_plan::path::Slowness;

/// Share of the round trip below which waiting for a CPU does not explain the increase under load, which is at
/// least half of the round trip.
const LITTLE: f64 = 0.1;

/// Minimum share of the round trip at which waiting for a CPU explains most of the increase under load,
/// whatever else adds to it.
const MOST: f64 = 0.5;

/// Factor by which the mean share of waiting may exceed that in the median round trip: a few waits are long.
const UNEVEN: f64 = 1.5;

pub(crate) static CAUSE: Cause = Cause {
    id: "latency-wakeup",
    name: "the program wakes up late",
    stage: Stage::Cpu,
    slows: Slowness::Latency,
    decided_by: &[],
    page: include_str!("../pages/latency-wakeup.md"),
    check: late,
    predict_latency,
    advice,
    ..Cause::BASE
};

fn predict_latency(model: &Model, trial: &TrialPlan) -> Option<Range> {
    // At half the pace, at most the time that packets waited for a CPU disappears; less work may also let CPUs sleep.
    let share = total(&waited(model, trial.direction).ok()?);
    (trial.factor()? == Factor::Paced)
        .then(|| Range { low: (1.0 - share * UNEVEN).max(0.0), high: f64::MAX })
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let waits = waited(model, direction).ok();
    let late = waits.map(|waits| worst(&waits).0);
    let first = late.map(|side| Advice::new(format!(
        "on {}, let the program that must answer fast run before others (chrt --fifo), or give it CPUs of its \
         own (taskset)",
        side.name()
    )));
    first.into_iter().collect()
}

/// The finding of late wake-ups in a direction; else why there are none, or which reading is missing.
fn late(model: &Model, direction: Direction) -> Result<Finding, NoFinding> {
    let raised = raised(model, direction)?;
    let waits = waited(model, direction)?;
    let (share, (side, most)) = (total(&waits), worst(&waits));
    let reported = format!(
        "the threads that timed it waited for a CPU {} of that time, {} at the {} end",
        percent(share),
        percent(most),
        side.name()
    );
    if share < LITTLE {
        return Err(clear(reported));
    }
    Ok(Finding::at(side, share, vec![raised.words(), reported]).enough(share >= MOST))
}

/// The share of round-trip time in which the thread that times round trips waited for a CPU, for each end.
fn waited(model: &Model, direction: Direction) -> Result<[(Side, f64); 2], NoFinding> {
    let load = base(model, direction)?;
    let of = |side: Side, share: Option<f64>| {
        let share = share.ok_or_else(|| lacks(model, "thread", side))?;
        Ok((side, share))
    };
    Ok([
        of(direction.sender(), load.probe_waited.sender)?,
        of(direction.receiver(), load.probe_waited.receiver)?,
    ])
}

fn total(waits: &[(Side, f64); 2]) -> f64 {
    (waits[0].1 + waits[1].1).min(1.0)
}

fn worst(waits: &[(Side, f64); 2]) -> (Side, f64) {
    if waits[1].1 > waits[0].1 { waits[1] } else { waits[0] }
}
