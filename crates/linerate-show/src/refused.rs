//! What an end of a run refused of the settings that were requested.

use linerate_facts::Gap;
use linerate_plan::Purpose;
use linerate_plan::path::Side;
use linerate_record::{Record, Set, Step};

/// Both ends, as they stand in records.
const SIDES: [Side; 2] = [Side::Near, Side::Far];

/// Settings of the user that an end of a run refused for its base loads. What more streams than CPUs or readings do is no
/// refusal.
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

/// Requests that were refused when the connections of these sets were made.
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

/// A gap of an end.
fn at(side: Side, found: &Gap) -> Gap {
    let what = format!("{} {}", side.name(), found.what);
    Gap { what, why: found.why.clone(), hint: found.hint.clone() }
}

/// Requests that were refused, for the connections of all sets, when they were made or later.
pub(crate) fn of_all(record: &Record) -> Vec<Gap> {
    let mut gaps = refused_by(record.sets.iter());
    for (end, side) in record.steps.iter().flat_map(|step| step.ends.iter().zip(SIDES)) {
        let of_sets = end.gaps.iter().filter(|found| found.what.starts_with("set."));
        for found in of_sets.map(|found| at(side, found)) {
            // A gap of the first stream stands for the same gap of all streams.
            if !gaps.iter().any(|known| known.what == found.what) {
                gaps.push(found);
            }
        }
    }
    gaps
}
