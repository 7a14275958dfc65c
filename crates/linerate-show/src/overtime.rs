//! Why a measurement took longer than requested.

use linerate_plan::Purpose;
use linerate_record::{Record, RecordKind, Step};
use linerate_units::Nanos;

/// Share of the requested time by which a measurement may exceed it before the reason is shown.
const TOLERATED: f64 = 0.2;

/// How long a measurement took and why, if it clearly exceeded the requested time; else `None`.
pub(crate) fn overtime(record: &Record) -> Option<String> {
    let requested = record.start.plan.time;
    // Records of older versions do not contain how long their steps took.
    let last = record.steps.last().filter(|step| step.took.0 > 0)?;
    let took = Nanos(last.began.0.saturating_add(last.took.0));
    if took.secs() <= requested.secs() * (1.0 + TOLERATED) {
        return None;
    }
    let over = took.secs() - requested.secs();
    Some(format!("Took {} instead of {requested}: {}.", rounded(took), why(record, over)))
}

/// What the time beyond the requested one was spent on.
fn why(record: &Record, over: f64) -> String {
    let drained: f64 = record.steps.iter().map(beyond).sum();
    let tried = record.steps.iter().filter(|step| is_tried(step)).count();
    if record.start.kind() == RecordKind::Bw && tried > 0 && drained < over / 2.0 {
        return format!(
            "the time is that of the longest step, and {tried} other rates were tried before and between"
        );
    }
    if drained < over / 2.0 {
        return "the steps that each measurement needs take longer".to_owned();
    }
    format!(
        "{} were spent after {} until all that was sent had arrived, or was given up",
        rounded(Nanos((drained * 1e9) as u64)),
        match record.steps.len() {
            1 => "the load".to_owned(),
            n => format!("{n} steps"),
        }
    )
}

fn is_tried(step: &Step) -> bool {
    matches!(step.plan.purpose, Purpose::Sweep { .. })
}

/// Seconds that a step took beyond its planned time.
fn beyond(step: &Step) -> f64 {
    let planned = step.plan.washout.secs() + step.plan.measure.secs();
    (step.took.secs() - planned).max(0.0)
}

/// A time rounded to tenths of a second.
fn rounded(time: Nanos) -> Nanos {
    Nanos((time.0 + 50_000_000) / 100_000_000 * 100_000_000)
}

#[cfg(test)]
mod tests {
    use linerate_plan::StepPlan;
    use linerate_record::Made;

    use super::*;
    use crate::sample;

    /// The reason for a measurement with `requested` seconds; each step has its planned and its actual time in
    /// milliseconds.
    fn result_of(
        made: Made,
        requested: u64,
        steps: &[(u64, u64)],
        purpose: Purpose,
    ) -> Option<String> {
        let (mut record, ..) = sample::limited();
        record.start.made = made;
        record.start.plan.time = Nanos::from_secs(requested);
        let step = Step {
            plan: StepPlan {
                index: 0,
                purpose,
                sets: Vec::new(),
                washout: Nanos(0),
                measure: Nanos(0),
                tick: Nanos(0),
            },
            began: Nanos(0),
            ends: Vec::new(),
            clock: None,
            took: Nanos(0),
            trouble: None,
        };
        let mut at = 0;
        record.steps = steps
            .iter()
            .map(|(planned, took)| {
                let mut step = step.clone();
                step.plan.measure = Nanos::from_millis(*planned);
                (step.began, step.took) = (Nanos::from_millis(at), Nanos::from_millis(*took));
                at += took;
                step
            })
            .collect();
        overtime(&record)
    }

    const IDLE: Purpose = Purpose::IdleLatency;

    #[test]
    fn a_measurement_says_why_it_took_more_than_a_fifth_longer() {
        let drained = |took| result_of(Made::Run, 5, &[(1_000, 1_000), (3_000, took)], IDLE);
        assert_eq!(drained(4_900), None);
        assert_eq!(
            drained(19_940).unwrap(),
            "Took 20.9 s instead of 5 s: 16.9 s were spent after 2 steps until all that was sent had arrived, or was \
             given up."
        );
        assert_eq!(
            result_of(Made::Run, 5, &[(3_000, 0), (9_000, 0)], IDLE),
            None,
            "an older record"
        );
    }

    #[test]
    fn a_search_and_a_short_run_have_reasons_of_their_own() {
        let purpose = Purpose::Sweep { direction: linerate_plan::path::Direction::Forward };
        let text = result_of(Made::Bw, 3, &[(500, 600); 20], purpose).unwrap();
        assert!(
            text.starts_with(
                "Took 12 s instead of 3 s: the time is that of the longest step, and 20 other rates"
            ),
            "{text}"
        );
        let text = result_of(Made::Run, 1, &[(900, 910), (900, 920)], IDLE).unwrap();
        assert!(text.ends_with("the steps that each measurement needs take longer."), "{text}");
    }
}
