//! Several runs of one plan together: what stays the same from one to the next, and what does not.

mod json;
mod text;

use linerate_core::diff::Judged;
use linerate_core::plan::Direction;
use linerate_core::stats::median;
use linerate_core::verdict::{Certainty, Limit};

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

/// A limit, and in how many runs it was upheld.
#[derive(Debug, Clone, Copy)]
struct Upheld<'a> {
    limit: &'a Limit,
    runs: usize,
    proved: usize,
}

/// Limits that any run upheld, those of most runs first.
fn limits<'a>(runs: &'a [Run<'_>]) -> Vec<Upheld<'a>> {
    let mut all: Vec<Upheld<'a>> = Vec::new();
    for limit in runs.iter().flat_map(|run| &run.judged.verdict.limits) {
        let proved = usize::from(limit.certainty == Certainty::Proved);
        match all.iter_mut().find(|known| same(known.limit, limit)) {
            Some(known) => {
                known.runs += 1;
                known.proved += proved;
            }
            None => all.push(Upheld {
                limit,
                runs: 1,
                proved,
            }),
        }
    }
    // Stable: of those that are as frequent, the one that a run named first.
    all.sort_by_key(|upheld| std::cmp::Reverse(upheld.runs));
    all
}

fn same(a: &Limit, b: &Limit) -> bool {
    (a.cause, a.metric, a.direction, a.side) == (b.cause, b.metric, b.direction, b.side)
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
        let limits = limits(&runs);
        let counted: Vec<_> = limits
            .iter()
            .map(|u| (u.limit.cause, u.runs, u.proved))
            .collect();
        // A cause of two directions is two limits.
        let expected = [
            ("path-rate", 3, 3),
            ("receive-window", 2, 2),
            ("path-rate", 1, 1),
        ];
        assert_eq!(counted, expected);
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
