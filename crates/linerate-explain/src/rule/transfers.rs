//! The transfers of the input, which most rules look at.

use super::super::Explained;
use linerate_plan::path::Direction;
use linerate_record::reported::{Measured, Outcome, Source, Transfer};

/// A transfer, with the source and the result that it was read from.
pub(super) type Of<'a> = (&'a Source, &'a Outcome, &'a Transfer);

/// Most runs that are compared with each other: the number of pairs grows with its square.
pub(super) const MOST_RUNS: usize = 1_000;

/// All transfers with their place in the input, at most `MOST_RUNS`.
pub(super) fn transfers<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = Of<'a>> {
    let runs = explained.material.runs();
    let all = runs.filter_map(|(source, result)| match &result.measured {
        Measured::Transfer(one) => Some((source, result, &**one)),
        _ => None,
    });
    all.take(MOST_RUNS)
}

/// A direction in words: `client to server`.
pub(super) const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "client to server",
        Direction::Reverse => "server to client",
    }
}
