//! Finds which disturbances changed from one record to another.

use super::{Fate, Judged};
use linerate_judge::verdict::Disturbance;

/// A disturbance in one or both of two records.
#[derive(Debug, Clone, PartialEq)]
pub struct DisturbanceChange {
    /// Whether the disturbance stayed, is new or is gone.
    pub fate: Fate,
    /// The disturbance, as the second record has it; else as the first one has it.
    pub disturbance: Disturbance,
}

/// All disturbances of both records: first the disturbances of the first record, then those that only the
/// second has.
pub(super) fn changes(before: &Judged<'_>, after: &Judged<'_>) -> Vec<DisturbanceChange> {
    let first = before.verdict.disturbances.iter();
    let first = first.map(|one| match same(after, one) {
        Some(now) => change(Fate::Still, now),
        None => change(alone(one, after, Fate::Gone), one),
    });
    let later = after.verdict.disturbances.iter();
    let later = later.filter(|one| same(before, one).is_none());
    let later = later.map(|one| change(alone(one, before, Fate::New), one));
    first.chain(later).collect()
}

fn change(fate: Fate, disturbance: &Disturbance) -> DisturbanceChange {
    DisturbanceChange { fate, disturbance: disturbance.clone() }
}

fn same<'a>(judged: &'a Judged<'_>, one: &Disturbance) -> Option<&'a Disturbance> {
    let key = |d: &Disturbance| (d.cause, d.side, d.direction);
    let mut all = judged.verdict.disturbances.iter();
    all.find(|other| key(other) == key(one))
}

/// The change of a disturbance that the `other` record does not have: `fate` if that record could show the disturbance
/// and does not name it as a limit.
fn alone(one: &Disturbance, other: &Judged<'_>, fate: Fate) -> Fate {
    let about = |cause: &str, direction| cause == one.cause && direction == one.direction;
    let mut limits = other.verdict.limits.iter();
    if limits.any(|l| about(l.cause, l.direction)) {
        return Fate::Still;
    }
    let mut answers = other.verdict.answers.iter();
    let heard = answers.find(|a| about(a.cause, a.direction));
    match heard {
        Some(answer) if answer.outcome != "unknown" => fate,
        _ => Fate::Unclear,
    }
}
