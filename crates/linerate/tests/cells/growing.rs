//! Compares a record that grows, from which figures are derived after each step, with the whole record derived at once.

use linerate_judge::model::{Deriver, derive, trial};
use linerate_plan::Purpose;
use linerate_record::{Record, Step};

use super::kept::{names, record};

/// Records that together have trials of all kept kinds, and one without trials.
const SOME: [&str; 4] =
    ["planted-window-clamp", "planted-loss", "interrupted-over", "planted-udp-path-rate"];

/// The record as it was before its first step.
fn begun(record: &Record) -> Record {
    Record {
        sets: Vec::new(),
        trials: Vec::new(),
        steps: Vec::new(),
        imported: None,
        end: None,
        ..record.clone()
    }
}

/// Adds a step to `grown`, and before it the sets and the trial that it uses.
fn add(grown: &mut Record, record: &Record, step: &Step) {
    let used = |id: u32| step.plan.sets.contains(&id);
    for set in record.sets.iter().filter(|set| used(set.plan.id)) {
        if grown.sets.iter().all(|known| known.plan.id != set.plan.id) {
            grown.sets.push(set.clone());
        }
    }
    let of = match step.plan.purpose {
        Purpose::Warm { trial } | Purpose::Slice { trial, .. } => Some(trial),
        _ => None,
    };
    for plan in record.trials.iter().filter(|plan| Some(plan.id) == of) {
        if grown.trials.iter().all(|known| known.id != plan.id) {
            grown.trials.push(plan.clone());
        }
    }
    grown.steps.push(step.clone());
}

/// Adds the steps of a record one by one, and compares what is derived after each.
fn grows(name: &str) {
    let record = record(name);
    let (mut grown, mut deriver) = (begun(&record), Deriver::default());
    for step in &record.steps {
        add(&mut grown, &record, step);
        let at = format!("{name}, step {}", step.plan.index);
        for plan in &grown.trials {
            let id = plan.id;
            let afresh = Deriver::default().slices(&grown, id);
            assert_eq!(deriver.slices(&grown, id), afresh, "{at}");
            assert!(deriver.trial(&grown, id) == trial(&grown, id), "{at}");
        }
        let model = derive(&grown);
        for direction in record.start.plan.directions.iter().copied() {
            let one = deriver.direction(&grown, direction);
            assert!(one.as_ref() == model.direction(direction), "{at}");
        }
        assert!(deriver.derive(&grown) == model, "{at}");
    }
    grown.end.clone_from(&record.end);
    assert!(deriver.derive(&grown) == derive(&grown), "{name}");
    assert_eq!(grown.steps, record.steps);
}

#[test]
fn a_record_that_grows_is_derived_as_it_is_at_once() {
    for name in SOME {
        grows(name);
    }
}

mod long {
    #[test]
    fn every_kept_record_that_grows_is_derived_as_it_is_at_once() {
        super::names().for_each(super::grows);
    }
}

#[test]
fn a_deriver_that_is_shown_another_record_starts_again() {
    let whole = record("planted-window-clamp");
    let fewer = Record { steps: whole.steps[..2].to_vec(), ..whole.clone() };
    let mut busy = whole.clone();
    let first = &mut busy.steps[0].plan.purpose;
    assert!(matches!(first, Purpose::IdleLatency));
    *first = Purpose::Both;
    let mut alone = whole.clone();
    alone.hosts.truncate(1);
    let mut deriver = Deriver::default();
    for other in [fewer, busy, alone] {
        assert!(derive(&other) != derive(&whole));
        for shown in [&whole, &other] {
            assert!(deriver.derive(shown) == derive(shown));
        }
    }
}
