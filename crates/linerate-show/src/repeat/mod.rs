//! Several runs of one plan together: the results that repeat and those that differ.

pub mod json;
mod text;

use std::cmp::Reverse;

use linerate_explain::diff::Judged;
use linerate_judge::figure::{Figure, GOODPUT, Spread, Subject, Summary};
use linerate_judge::model::far_slower;
use linerate_judge::verdict::{Disturbance, Entry, Limit, entries};
use linerate_plan::path::{Certainty, Direction, Slowness};

pub use json::json;
pub use text::{run, summary};

/// One of several runs.
#[derive(Debug)]
pub struct Run<'a> {
    /// The result of the run.
    pub judged: Judged<'a>,
    /// Name under which the record was kept.
    pub saved: Option<&'a str>,
}

/// A figure over the runs that have it.
fn spread(runs: &[Run<'_>], figure: &'static Figure, of: Subject) -> Option<Spread> {
    let values = runs.iter().filter_map(|run| run.judged.summary.value(figure, of));
    Spread::of(figure, &values.collect::<Vec<_>>())
}

/// Every figure that a run has, over the runs that have it.
fn spreads(runs: &[Run<'_>]) -> Vec<(&'static Figure, Subject, Spread)> {
    let entries = runs.iter().flat_map(|run| &run.judged.summary.entries);
    let mut all: Vec<(&'static Figure, Subject, Spread)> = Vec::new();
    for entry in Summary::sorted(entries.cloned()).entries {
        let (figure, of) = (entry.figure, entry.of);
        let is_known = all.iter().any(|(f, o, _)| *f == figure && *o == of);
        let spread = spread(runs, figure, of).filter(|_| !is_known);
        all.extend(spread.map(|spread| (figure, of, spread)));
    }
    all
}

/// Goodput of a direction.
fn goodput(runs: &[Run<'_>], direction: Direction) -> Option<Spread> {
    spread(runs, &GOODPUT, Subject::load(direction))
}

/// The median round trip of the idle path.
const IDLE: Subject = Subject { direction: None, side: None, percentile: Some(50.0) };

/// An answer to the question what limits the path, and the number of runs that gave it.
#[derive(Debug, Clone, Copy)]
struct Answer<'a> {
    told: Entry<'a>,
    runs: usize,
    proved: usize,
}

/// The direction that carries less than half of the other one, by the medians of all runs.
fn slower(runs: &[Run<'_>]) -> Option<Direction> {
    far_slower(|direction| Some(goodput(runs, direction)?.middle))
}

/// The directions that any run measured, in the order in which they are read.
fn directions(runs: &[Run<'_>]) -> Vec<Direction> {
    let slow = slower(runs);
    let measured = |d: &Direction| goodput(runs, *d).is_some();
    let mut all: Vec<Direction> = Direction::ALL.into_iter().filter(measured).collect();
    all.sort_by_key(|direction| Some(*direction) != slow);
    all
}

/// The answers of all runs, in the order of one run's answers: the rate before latency, a much slower direction
/// before the other one. Answers of more runs are before those of fewer, then those with more proofs.
fn answers<'a>(runs: &'a [Run<'_>]) -> Vec<Answer<'a>> {
    let mut all: Vec<Answer<'a>> = Vec::new();
    let each = runs.iter();
    for told in each.flat_map(|run| entries(&run.judged.model, &run.judged.verdict)) {
        let is_proof = |l: &Limit| l.certainty == Certainty::Proved;
        let proved = usize::from(limit_of(told).is_some_and(is_proof));
        match all.iter_mut().find(|known| same(known.told, told)) {
            Some(known) => {
                known.runs += 1;
                known.proved += proved;
            }
            None => all.push(Answer { told, runs: 1, proved }),
        }
    }
    let slow = slower(runs);
    let rank = |answer: &Answer<'_>| {
        let (direction, slowness) = match answer.told {
            Entry::Limit(limit) => (limit.direction, limit.metric.slowness()),
            Entry::Unknown(direction) => (direction, Slowness::Rate),
        };
        let is_latency = slowness == Slowness::Latency;
        (is_latency, Some(direction) != slow, Reverse(answer.runs), Reverse(answer.proved))
    };
    // Stable: among equals, the one that a run named first comes first.
    all.sort_by_key(rank);
    all
}

fn limit_of(told: Entry<'_>) -> Option<&Limit> {
    match told {
        Entry::Limit(limit) => Some(limit),
        Entry::Unknown(_) => None,
    }
}

fn same(a: Entry<'_>, b: Entry<'_>) -> bool {
    let key = |l: &Limit| (l.cause, l.metric, l.direction, l.side);
    match (a, b) {
        (Entry::Limit(a), Entry::Limit(b)) => key(a) == key(b),
        (Entry::Unknown(a), Entry::Unknown(b)) => a == b,
        _ => false,
    }
}

/// The disturbances of any run, and in how many; each with the most that it explains in one of them.
fn disturbances<'a>(runs: &'a [Run<'_>]) -> Vec<(&'a Disturbance, usize)> {
    let key = |d: &Disturbance| (d.cause, d.side, d.direction);
    let mut all: Vec<(&Disturbance, usize)> = Vec::new();
    for one in runs.iter().flat_map(|run| &run.judged.verdict.disturbances) {
        match all.iter_mut().find(|(known, _)| key(known) == key(one)) {
            Some((most, runs)) => {
                *runs += 1;
                if one.share > most.share {
                    *most = one;
                }
            }
            None => all.push((one, 1)),
        }
    }
    all.sort_by_key(|(_, runs)| Reverse(*runs));
    all
}

#[cfg(test)]
mod tests {
    use linerate_explain::diff::Basis;

    use super::super::sample;
    use super::*;

    #[test]
    fn a_limit_is_counted_once_a_run_and_the_commonest_comes_first() {
        let results = [sample::healthy(), sample::limited(), sample::limited()];
        let runs = sample_runs(&results);
        let answers = answers(&runs);
        let counted = answers.iter().map(|a| {
            let cause = limit_of(a.told).map_or("unknown", |l| l.cause);
            (cause, a.runs, a.proved)
        });
        // A cause of two directions is two limits.
        let expected = [("wire-full", 3, 3), ("receive-window", 2, 2), ("wire-full", 1, 1)];
        assert_eq!(counted.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_direction_below_half_of_the_other_is_answered_first_also_by_unknown() {
        use Direction::{Forward, Reverse};
        let first = |share: f64| {
            let (record, mut model, mut verdict) = sample::healthy();
            model.directions[1].base.goodput.mean *= share;
            // Reverse is unknown in two runs of three.
            let proved = verdict.clone();
            verdict.limits.truncate(1);
            let unknown = (record.clone(), model.clone(), verdict);
            let results = [unknown.clone(), (record, model, proved), unknown];
            let runs = sample_runs(&results);
            let answers = answers(&runs);
            let named = |a: &Answer<'_>| (limit_of(a.told).map(|l| (l.cause, l.direction)), a.runs);
            let all: Vec<_> = answers.iter().map(named).collect();
            (directions(&runs), all)
        };
        let path = |direction, runs| (Some(("wire-full", direction)), runs);
        let slow = vec![(None, 2), path(Reverse, 1), path(Forward, 3)];
        assert_eq!(first(0.49), (vec![Reverse, Forward], slow));
        let alike = vec![path(Forward, 3), (None, 2), path(Reverse, 1)];
        assert_eq!(first(0.51), (vec![Forward, Reverse], alike));
    }

    /// Runs of results that were made by hand.
    pub(super) fn sample_runs(results: &[sample::Result]) -> Vec<Run<'_>> {
        let mut runs = Vec::new();
        for (record, model, verdict) in results {
            runs.push(Run {
                judged: Judged {
                    record,
                    summary: Summary::of(record, model),
                    model: model.clone(),
                    verdict: verdict.clone(),
                    headline: linerate_explain::Headline::of_run(model, verdict),
                    basis: Basis::default(),
                },
                saved: Some("2026-11-22T10-31-07-brook"),
            });
        }
        runs
    }
}
