//! Measures the time for deriving and judging while a run measures. The steps of a recorded file are added to a new
//! record one by one. After each step, the program derives what a run derives at that point; with `each`, it derives
//! and judges everything. With `once`, the record grows only one time, for a profiler.
//!
//! `cargo run --release -p linerate-session --example growing FILE [each] [once]`

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use linerate_judge::model::{Deriver, Model, effect, latency_of};
use linerate_judge::verdict::{decides, judge, next_trials};
use linerate_plan::Purpose;
use linerate_plan::path::Slowness;
use linerate_record::{Record, Step};
use linerate_session::store::Store;

/// How many times the record is grown from its first step to its last one.
const TIMES: usize = 21;

/// Number of slices in a block of a trial.
const BLOCK: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let file = args.first().ok_or("usage: growing FILE [each] [once]")?;
    let [each, once] = ["each", "once"].map(|word| args.iter().any(|arg| arg == word));
    let record = Store::new(Path::new(".")).load(file)?.record;
    let mut answers = 0;
    let times = if once { 1 } else { TIMES };
    let took = (0..times).map(|_| grow(&record, each, &mut answers));
    let mut took: Vec<Duration> = took.collect();
    took.sort_unstable();
    let median = took[took.len() / 2];
    println!("{} steps, {answers} answers, {} us", record.steps.len(), median.as_micros());
    Ok(())
}

/// Grows the record step by step; returns the time that deriving and judging took in total.
fn grow(record: &Record, each: bool, answers: &mut usize) -> Duration {
    let mut grown = Record {
        sets: Vec::new(),
        trials: Vec::new(),
        steps: Vec::new(),
        imported: None,
        end: None,
        ..record.clone()
    };
    let mut deriver = Deriver::default();
    let mut before: Option<Model> = None;
    let mut took = Duration::ZERO;
    *answers = 0;
    for (at, step) in record.steps.iter().enumerate() {
        add(&mut grown, record, step);
        let next = record.steps.get(at + 1);
        let began = Instant::now();
        *answers += if each {
            judged(&mut deriver, &grown)
        } else {
            requested(&mut deriver, &grown, next, &mut before)
        };
        took += began.elapsed();
    }
    took
}

/// Adds a step to the growing record, with the sets and the trial that the step uses.
fn add(grown: &mut Record, record: &Record, step: &Step) {
    let is_new = |id: u32| step.plan.sets.contains(&id);
    for set in record.sets.iter().filter(|set| is_new(set.plan.id)) {
        if grown.sets.iter().all(|known| known.plan.id != set.plan.id) {
            grown.sets.push(set.clone());
        }
    }
    let trial = trial_of(step);
    for plan in record.trials.iter().filter(|plan| Some(plan.id) == trial) {
        if grown.trials.iter().all(|known| known.id != plan.id) {
            grown.trials.push(plan.clone());
        }
    }
    grown.steps.push(step.clone());
}

fn trial_of(step: &Step) -> Option<u32> {
    match step.plan.purpose {
        Purpose::Warm { trial } | Purpose::Slice { trial, .. } => Some(trial),
        _ => None,
    }
}

/// Derives and judges the whole record; returns the number of limits.
#[inline(never)]
fn judged(deriver: &mut Deriver, record: &Record) -> usize {
    judge(&black_box(deriver.derive(record))).limits.len()
}

/// Derives what a run needs after the last step of `record`, where
/// `next` is the step that follows. Returns the number of results.
#[inline(never)]
fn requested(
    deriver: &mut Deriver,
    record: &Record,
    next: Option<&Step>,
    before: &mut Option<Model>,
) -> usize {
    let Some(step) = record.steps.last() else {
        return 0;
    };
    let mut answers = match step.plan.purpose {
        Purpose::IdleLatency => usize::from(latency_of(record, step).is_some()),
        Purpose::Base { direction } | Purpose::Sweep { direction } => {
            let measured = deriver.direction(record, direction);
            measured.map_or(0, |measured| 1 + measured.sweep.len())
        }
        Purpose::Slice { trial, .. } => slice(deriver, record, trial, before.as_ref()),
        _ => 0,
    };
    // A trial has ended, or the first trial begins.
    let trial = trial_of(step);
    if trial != next.and_then(trial_of) {
        if trial.is_some() {
            answers += judged(deriver, record);
        }
        let model = deriver.derive(record);
        let directions = &record.start.plan.directions;
        let first = record.trials.len() as u32;
        answers += next_trials(&model, directions, Slowness::Rate, first).len();
        *before = Some(model);
    }
    answers
}

/// Computes the effect of a trial after a slice and, after each block,
/// whether the trial is decided. Returns the number of results.
fn slice(deriver: &mut Deriver, record: &Record, id: u32, before: Option<&Model>) -> usize {
    let Some(plan) = record.trials.iter().find(|plan| plan.id == id) else {
        return 0;
    };
    let slices = effect(plan, &deriver.slices(record, id)).slices();
    if slices == 0 || !slices.is_multiple_of(BLOCK) {
        return slices;
    }
    let so_far = deriver.trial(record, id);
    let decided = so_far.zip(before);
    slices + usize::from(decided.is_some_and(|(so_far, before)| decides(before, &so_far)))
}
