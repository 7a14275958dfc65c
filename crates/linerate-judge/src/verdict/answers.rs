//! The order in which users read a verdict. Every view takes its headline from here.

use super::{Limit, Verdict};
use crate::model::Model;
use linerate_plan::path::{Direction, Slowness};

/// One answer to the question what limits the path, for a direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Entry<'a> {
    /// A limit that the verdict names.
    Limit(&'a Limit),
    /// A direction for whose goodput no limit could be named.
    Unknown(Direction),
}

/// All answers, in reading order: those about goodput, then those about latency. A direction that carries less than
/// half of the other one comes first, even if its limit is unknown, because the limit of the faster direction does not
/// explain why this one is slow.
pub fn entries<'a>(model: &Model, verdict: &'a Verdict) -> Vec<Entry<'a>> {
    let unknown = |direction: &Direction| {
        let mut limits = verdict.limits.iter();
        !limits.any(|l| l.direction == *direction && l.metric.slowness() == Slowness::Rate)
    };
    let measured = model.directions.iter().map(|d| d.direction);
    let (first, last): (Vec<Direction>, Vec<Direction>) =
        measured.filter(unknown).partition(|direction| Some(*direction) == model.slower());
    let first = first.into_iter().map(Entry::Unknown);
    let is_rate = |limit: &&Limit| limit.metric.slowness() == Slowness::Rate;
    let (goodput, latency): (Vec<&Limit>, Vec<&Limit>) = verdict.limits.iter().partition(is_rate);
    first
        .chain(goodput.into_iter().map(Entry::Limit))
        .chain(last.into_iter().map(Entry::Unknown))
        .chain(latency.into_iter().map(Entry::Limit))
        .collect()
}
