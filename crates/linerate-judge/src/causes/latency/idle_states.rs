//! CPUs that sleep between packets take time to wake. Round trips are then longer on the idle path than under
//! load, which keeps the CPUs awake.

use crate::causes::latency::raised::{self, untimed};
use crate::causes::prelude::*;
use crate::model::DirectionModel;
use crate::signs::round_trips::median;
use linerate_facts::advice::Joined;
use linerate_facts::cpu::IdleState;
use linerate_plan::path::Slowness;
use linerate_units::Nanos;

/// Minimum ratio of a round trip on the idle path to one under load, and minimum difference between them. Smaller
/// differences between two medians are usual.
const TIMES: f64 = 1.3;
const ADDED: Nanos = Nanos::from_micros(20);

/// Share of that difference that the CPUs' time to wake must explain.
const MOST: f64 = 0.5;

pub(crate) static CAUSE: Cause = Cause {
    id: "latency-idle-states",
    name: "CPUs sleep deeply between packets",
    stage: Stage::Cpu,
    slows: Slowness::Latency,
    is_once: true,
    decided_by: &[],
    page: include_str!("../pages/latency-idle-states.md"),
    check: rests,
    advice,
    ..Cause::BASE
};

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    let of = |side: Side| {
        deepest(model, side).ok().flatten().filter(|s| s.latency >= ADDED)?;
        let micros = ADDED.0 / 1000;
        let advice = Advice::new(format!(
            "forbid idle states of CPUs that take {micros} us or more to leave; this costs power"
        ));
        let advice = advice.set(side, format!("sudo cpupower idle-set -D {micros}"));
        Some(advice.undo_on(side, undo(model, side)).joined(Joined::And))
    };
    [Side::Near, Side::Far].into_iter().filter_map(of).collect()
}

/// The delay that sleeping CPUs add to round trips on the idle path; else why there is none, or which reading
/// is missing.
fn rests(model: &Model, direction: Direction) -> Result<Finding, NoFinding> {
    let idle = raised::idle(model, direction)?;
    let own = base(model, direction)?.latency.as_ref();
    let beside = |dir: &DirectionModel| median(dir.base.latency.as_ref());
    let loaded = model.directions.iter().filter_map(beside).min();
    let loaded = loaded.ok_or_else(|| untimed(&format!("{} under load", direction.name()), own))?;
    let words = format!(
        "a round trip took {idle} on the idle path, {loaded} under load, which keeps CPUs awake (p50)"
    );
    let added = idle.0.saturating_sub(loaded.0);
    if (idle.0 as f64) < loaded.0 as f64 * TIMES || added < ADDED.0 {
        return Err(clear(words));
    }
    let (near, far) = (deepest(model, Side::Near)?, deepest(model, Side::Far)?);
    let wakes = |state: Option<&IdleState>| state.map_or(0, |state| state.latency.0);
    let all = wakes(near) + wakes(far);
    if (all as f64) < added as f64 * MOST {
        return Err(clear(format!("{words}; CPUs wake in {} in all", Nanos(all))));
    }
    let (side, state) =
        if wakes(near) >= wakes(far) { (Side::Near, near) } else { (Side::Far, far) };
    let deepest = state.map(|state| {
        format!(
            "CPUs of {} may rest in {}, which takes {} to leave",
            side.name(),
            state.name,
            state.latency
        )
    });
    Ok(Finding::at(
        side,
        added as f64 / idle.0 as f64,
        [Some(words), deepest].into_iter().flatten().collect(),
    )
    .enough(true))
}

/// The command that restores the idle states: it enables all but those that were disabled before.
fn undo(model: &Model, side: Side) -> String {
    let states = model.host(side).and_then(|h| h.facts.idle_states.as_ref());
    let off = states.into_iter().flatten().enumerate();
    let off = off.filter(|(_, state)| state.disabled);
    let off: Vec<String> =
        off.map(|(number, _)| format!("; sudo cpupower idle-set -d {number}")).collect();
    format!("sudo cpupower idle-set -E{}", off.concat())
}

/// The enabled idle state of a host's CPUs with the longest wake-up time; `None` if nothing puts CPUs to sleep, as in
/// most virtual machines.
fn deepest(model: &Model, side: Side) -> Result<Option<&IdleState>, NoFinding> {
    let states = model.host(side).and_then(|h| h.facts.idle_states.as_ref());
    let states = states.ok_or_else(|| {
        NoFinding::Unknown(vec![Gap {
            what: format!("idle states of {}", side.name()),
            why: "they were not read".to_owned(),
            hint: "cpupower idle-info".to_owned(),
        }])
    })?;
    let allowed = states.iter().filter(|state| !state.disabled);
    Ok(allowed.filter(|state| state.latency.0 > 0).max_by_key(|state| state.latency))
}
