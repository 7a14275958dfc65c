//! Whether what was named is what was planted.

use linerate_core::plan::Direction;
use linerate_core::verdict::{Certainty, Limit, Measure, Place, Verdict};
use linerate_lab::{Cell, HEALTHY};
use serde::{Deserialize, Serialize};

use super::Truth;

/// How a verdict stands to the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// The one expected cause, on the right side.
    Right,
    /// A cause that was stated beforehand to be true as well.
    Acceptable,
    /// No cause was named.
    Unknown,
    /// Another cause, or the right one on the wrong side.
    Wrong,
}

impl Outcome {
    /// The word used in text and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Acceptable => "acceptable",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
        }
    }
}

/// What the machine below does to a lab, whatever is planted in it: the kernel counts it, and no cell can
/// make it or keep it away. It is true where it is told, and no answer to what was planted.
const NOT_OURS: &str = "cpu-steal";

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
    let first = judged.first().copied();
    judged.retain(|l| l.cause != NOT_OURS);
    let named = judged.first().copied().or(first).cloned();
    if cell.is_event() {
        // What makes a measurement invalid comes first; what is said of the rest is not scored.
        judged.truncate(1);
    }
    // What is named beside the first, and is not as true, is a false alarm.
    let binds = bites || cell.is_event();
    let right = |l: &&Limit| expected.contains(&l.cause) && right_place(cell, binds, l);
    let neighbour = |l: &&Limit| cell.neighbours.contains(&l.cause);
    let outcome = match judged.as_slice() {
        [] if named.is_some() && !binds => Outcome::Acceptable,
        [] => Outcome::Unknown,
        [first, rest @ ..] if rest.iter().all(|l| right(l) || neighbour(l)) => match first {
            first if right(first) => Outcome::Right,
            first if neighbour(first) => Outcome::Acceptable,
            _ => Outcome::Wrong,
        },
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

/// Whether a limit is named where what was planted is; on a healthy path, at the end that its
/// cause is about.
fn right_place(cell: &Cell, binds: bool, limit: &Limit) -> bool {
    if binds {
        return cell.place.is_none_or(|place| place == limit.side);
    }
    let end = if limit.cause == "receiver-core" {
        limit.direction.receiver()
    } else {
        limit.direction.sender()
    };
    limit.side == Place::from(end)
}

#[cfg(test)]
mod tests {
    use linerate_core::verdict::Stage;
    use linerate_lab::CellKind;

    use super::*;
    use crate::demo::Loader;
    use crate::demo::truth::Counted;

    fn limit(cause: &'static str, side: Place, direction: Direction) -> Limit {
        Limit {
            metric: Measure::Goodput,
            cause,
            stage: Stage::Net,
            side,
            direction,
            certainty: Certainty::Supported,
            evidence: Vec::new(),
            trial: None,
            advice: Vec::new(),
        }
    }

    fn outcome(kind: &str, truth: Option<Truth>, limits: &[Limit]) -> Outcome {
        let verdict = Verdict {
            limits: limits.to_vec(),
            ..Verdict::default()
        };
        let cell = CellKind::named(kind).unwrap().cell(1);
        score(&cell, truth.as_ref(), &verdict).outcome
    }

    #[test]
    fn an_event_is_to_be_named_first_in_any_direction_and_without_a_ratio() {
        for kind in ["contended", "interrupted"] {
            for direction in Direction::ALL {
                let event = limit(kind, Place::Path, direction);
                let other = limit("sender-core", direction.sender().into(), direction);
                let of = |limits: &[&Limit]| {
                    let limits: Vec<Limit> = limits.iter().copied().cloned().collect();
                    outcome(kind, None, &limits)
                };
                assert_eq!(of(&[&event, &other]), Outcome::Right);
                assert_eq!(of(&[&other, &event]), Outcome::Wrong);
                assert_eq!(of(&[]), Outcome::Unknown);
            }
        }
    }

    #[test]
    fn an_event_on_a_healthy_path_is_a_false_alarm() {
        let event = limit("interrupted", Place::Path, Direction::Forward);
        assert_eq!(outcome("healthy", None, &[event]), Outcome::Wrong);
    }

    #[test]
    fn what_the_machine_below_takes_is_true_as_well_and_hides_nothing() {
        let core = |end: Place| limit("sender-core", end, Direction::Forward);
        let of = |rest: &[Limit]| {
            let steal = limit("cpu-steal", Place::Far, Direction::Reverse);
            outcome("healthy", None, &[&[steal], rest].concat())
        };
        assert_eq!(of(&[]), Outcome::Acceptable);
        assert_eq!(of(&[core(Place::Near)]), Outcome::Right);
        assert_eq!(of(&[core(Place::Far)]), Outcome::Wrong);
        let steal = limit("cpu-steal", Place::Far, Direction::Reverse);
        let event = limit("interrupted", Place::Path, Direction::Forward);
        let of = |limits: &[Limit]| outcome("interrupted", None, limits);
        assert_eq!(of(std::slice::from_ref(&steal)), Outcome::Unknown);
        assert_eq!(of(&[steal, event]), Outcome::Right);
    }

    #[test]
    fn a_pace_is_right_at_the_sender_alone_and_only_where_it_bites() {
        let direction = CellKind::named("pacing").unwrap().cell(1).direction;
        let direction = direction.unwrap();
        let truth = |without| {
            Some(Truth {
                direction,
                loader: Loader::Own,
                counted: Counted::Port,
                with: 1e9,
                without,
            })
        };
        let pace = |side| [limit("pacing", Place::from(side), direction)];
        let sender = pace(direction.sender());
        assert_eq!(outcome("pacing", truth(1.11e9), &sender), Outcome::Right);
        assert_eq!(outcome("pacing", truth(1.09e9), &sender), Outcome::Wrong);
        let receiver = pace(direction.receiver());
        assert_eq!(outcome("pacing", truth(1.11e9), &receiver), Outcome::Wrong);
    }

    #[test]
    fn a_neighbour_is_counted_apart_and_only_where_it_was_stated() {
        let direction = CellKind::named("local-drops").unwrap().cell(1).direction;
        let direction = direction.unwrap();
        let truth = Some(Truth {
            direction,
            loader: Loader::Own,
            counted: Counted::Port,
            with: 1e9,
            without: 2e9,
        });
        let named = |cause| limit(cause, direction.sender().into(), direction);
        let outcome = |limits: &[Limit]| outcome("local-drops", truth, limits);
        let (right, neighbour) = (named("local-drops"), named("host-shaping"));
        assert_eq!(outcome(std::slice::from_ref(&right)), Outcome::Right);
        assert_eq!(
            outcome(std::slice::from_ref(&neighbour)),
            Outcome::Acceptable
        );
        let both = [right, neighbour.clone()];
        assert_eq!(outcome(&both), Outcome::Right);
        let [right, _] = both;
        assert_eq!(outcome(&[neighbour.clone(), right]), Outcome::Acceptable);
        assert_eq!(outcome(&[named("path-loss"), neighbour]), Outcome::Wrong);
    }
}
