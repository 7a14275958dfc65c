//! Whether what was named is what was planted.

use linerate_core::plan::Direction;
use linerate_core::verdict::{Certainty, Limit, Measure, Place, Verdict};
use linerate_lab::{Cell, HEALTHY};

use super::Truth;

/// How a verdict stands to the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The one expected cause, on the right side.
    Right,
    /// No cause was named.
    Unknown,
    /// Another cause, or the right one on the wrong side.
    Wrong,
}

/// A verdict held against its cell.
#[derive(Debug, Clone)]
pub(crate) struct Scored {
    /// How it stands.
    pub(crate) outcome: Outcome,
    /// Whether what was named was proved.
    pub(crate) proved: bool,
    /// What was expected: cause ids.
    pub(crate) expected: Vec<&'static str>,
    /// The limit that was named first.
    pub(crate) named: Option<Limit>,
}

/// Holds a verdict against its cell. A fault that does not bite leaves a healthy path.
pub(crate) fn score(cell: &Cell, truth: Option<&Truth>, verdict: &Verdict) -> Scored {
    let bites = truth.is_some_and(Truth::bites);
    let expected = if bites || cell.is_event() {
        vec![cell.expected]
    } else {
        HEALTHY.to_vec()
    };
    let mut judged: Vec<&Limit> = goodput(verdict, cell.direction.filter(|_| bites)).collect();
    let named = judged.first().copied().cloned();
    if cell.is_event() {
        // What makes a measurement invalid comes first; what is said of the rest is not scored.
        judged.truncate(1);
    }
    // Whatever is named beside the right one is a false alarm.
    let right = |l: &&Limit| expected.contains(&l.cause) && right_side(l);
    let outcome = match judged.as_slice() {
        [] => Outcome::Unknown,
        all if all.iter().all(right) => Outcome::Right,
        _ => Outcome::Wrong,
    };
    let proved = named
        .as_ref()
        .is_some_and(|l| l.certainty == Certainty::Proved);
    Scored {
        outcome,
        proved,
        expected,
        named,
    }
}

/// The limits of goodput, of one direction or of all.
fn goodput(verdict: &Verdict, direction: Option<Direction>) -> impl Iterator<Item = &Limit> {
    verdict
        .limits
        .iter()
        .filter(move |l| l.metric == Measure::Goodput && direction.is_none_or(|d| l.direction == d))
}

/// The side that a cause about one end must name.
fn right_side(limit: &Limit) -> bool {
    let role = limit.cause;
    let side = if role.starts_with("receive") {
        Place::from(limit.direction.receiver())
    } else if role.starts_with("send") || matches!(role, "congestion-control" | "pacing") {
        Place::from(limit.direction.sender())
    } else {
        Place::Path
    };
    limit.side == side
}
