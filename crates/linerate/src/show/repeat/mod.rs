//! Several runs of one plan together: what stays the same from one to the next, and what does not.

pub(super) mod json;
mod text;

use std::cmp::Reverse;

use linerate_core::diff::Judged;
use linerate_core::model::far_slower;
use linerate_core::path::{Direction, Measure};
use linerate_core::stats::median;
use linerate_core::verdict::{Certainty, Disturbance, Entry, Limit, entries};

pub use json::{FORMAT, SCHEMA, json};
pub use text::{run, summary};

/// One of several runs.
#[derive(Debug)]
pub struct Run<'a> {
    /// What it showed.
    pub judged: Judged<'a>,
    /// Name under which the record was kept.
    pub saved: Option<&'a str>,
}

/// A figure over several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    /// Runs that have it.
    runs: usize,
    low: f64,
    median: f64,
    high: f64,
}

impl Spread {
    /// `None` where no run has the figure.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        Some(Self {
            runs: values.len(),
            low,
            median: median(&values)?,
            high,
        })
    }
}

/// Goodput of a direction.
fn goodput(runs: &[Run<'_>], direction: Direction) -> Option<Spread> {
    let of = |run: &Run<'_>| Some(run.judged.model.direction(direction)?.base.goodput.mean);
    Spread::of(runs.iter().filter_map(of))
}

/// Median round trip of the idle path, nanoseconds.
fn round_trip(runs: &[Run<'_>]) -> Option<Spread> {
    let of = |run: &Run<'_>| Some(run.judged.model.idle.as_ref()?.percentile(50.0)?.0 as f64);
    Spread::of(runs.iter().filter_map(of))
}

/// An answer to what limits the path, and how many runs gave it.
#[derive(Debug, Clone, Copy)]
struct Answer<'a> {
    told: Entry<'a>,
    runs: usize,
    proved: usize,
}

/// The direction that carries less than half of the other one, by the medians of all runs.
fn slower(runs: &[Run<'_>]) -> Option<Direction> {
    far_slower(|direction| Some(goodput(runs, direction)?.median))
}

/// The directions that any run measured, in the order in which they are read.
fn directions(runs: &[Run<'_>]) -> Vec<Direction> {
    let slow = slower(runs);
    let measured = |d: &Direction| goodput(runs, *d).is_some();
    let mut all: Vec<Direction> = Direction::ALL.into_iter().filter(measured).collect();
    all.sort_by_key(|direction| Some(*direction) != slow);
    all
}

/// All that the runs answered, to be read as the answers of one run: goodput before latency, a direction that is far
/// slower before the other one. What more runs say comes first, then what more of them proved.
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
            None => all.push(Answer {
                told,
                runs: 1,
                proved,
            }),
        }
    }
    let slow = slower(runs);
    let rank = |answer: &Answer<'_>| {
        let (direction, metric) = match answer.told {
            Entry::Limit(limit) => (limit.direction, limit.metric),
            Entry::Unknown(direction) => (direction, Measure::Goodput),
        };
        let is_latency = metric == Measure::Latency;
        (
            is_latency,
            Some(direction) != slow,
            Reverse(answer.runs),
            Reverse(answer.proved),
        )
    };
    // Stable: of equals the one that a run named first.
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

/// What disturbed any run, and how many; each with the most that it explains of one of them.
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
    use super::super::sample;
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[]), None);
        let spread = |low, median, high, runs| Spread {
            runs,
            low,
            median,
            high,
        };
        assert_eq!(of(&[5.0, 1.0, 2.0]), Some(spread(1.0, 2.0, 5.0, 3)));
        assert_eq!(of(&[5.0, 1.0, 2.0, 3.0]), Some(spread(1.0, 2.5, 5.0, 4)));
    }

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
        let expected = [
            ("path-rate", 3, 3),
            ("receive-window", 2, 2),
            ("path-rate", 1, 1),
        ];
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
        let path = |direction, runs| (Some(("path-rate", direction)), runs);
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
                    model: model.clone(),
                    verdict: verdict.clone(),
                },
                saved: Some("2026-11-22T10-31-07-brook"),
            });
        }
        runs
    }
}
