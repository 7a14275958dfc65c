//! Lists the requested settings that an end of a run refused.

use linerate_facts::Gap;
use linerate_plan::Purpose;
use linerate_plan::path::Side;
use linerate_record::{Record, Set, Step};

/// Both ends, in the order of a record.
const SIDES: [Side; 2] = [Side::Near, Side::Far];

/// Settings of the user that an end refused for the base loads of a run. Gaps about the number of streams and about
/// sockets that were not read are no refused settings.
pub(crate) fn of_base(record: &Record) -> Vec<Gap> {
    let is_base = |step: &&Step| matches!(step.plan.purpose, Purpose::Base { .. });
    let ids: Vec<u32> = record
        .steps
        .iter()
        .filter(is_base)
        .flat_map(|step| step.plan.sets.iter().copied())
        .collect();
    let mut gaps = refused_by(record.sets.iter().filter(|set| ids.contains(&set.plan.id)));
    gaps.retain(|gap| !gap.what.ends_with("set.streams") && !gap.what.ends_with("set.sockets"));
    gaps
}

/// Gaps for settings that were refused when the connections of these sets were made, each once.
fn refused_by<'a>(sets: impl Iterator<Item = &'a Set>) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    for (end, side) in sets.flat_map(|set| set.ends.iter().zip(SIDES)) {
        for found in end.gaps.iter().map(|found| at(side, found)) {
            if !gaps.contains(&found) {
                gaps.push(found);
            }
        }
    }
    gaps
}

/// The gap with the side of its end in front.
fn at(side: Side, found: &Gap) -> Gap {
    let what = format!("{} {}", side.name(), found.what);
    Gap { what, why: found.why.clone(), hint: found.hint.clone() }
}

/// Gaps for settings that were refused, for the connections of all sets: when they were made, or later in a step.
pub(crate) fn of_all(record: &Record) -> Vec<Gap> {
    let mut gaps = refused_by(record.sets.iter());
    for (end, side) in record.steps.iter().flat_map(|step| step.ends.iter().zip(SIDES)) {
        let of_sets = end.gaps.iter().filter(|found| found.what.starts_with("set."));
        for found in of_sets.map(|found| at(side, found)) {
            // All streams have the same gap: only that of the first one is kept.
            if !gaps.iter().any(|known| known.what == found.what) {
                gaps.push(found);
            }
        }
    }
    gaps
}
