//! Compares the named cause with the planted fault.

use linerate_judge::causes::cause;
use linerate_judge::verdict::{Decided, Disturbance, Entry, Limit};
use linerate_lab::{Cell, HEALTHY};
use linerate_plan::path::{Certainty, Direction, Measure, Place, Slowness};
use serde::{Deserialize, Serialize};

use super::Truth;

/// How a verdict compares with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The one expected cause, on the right side.
    Right,
    /// A cause that was stated beforehand to be true as well.
    Acceptable,
    /// No cause was named.
    Unknown,
    /// Another cause was named, or the right one on the wrong side.
    Wrong,
}

/// The effect of the host machine on a lab, whatever is planted. The kernel counts stolen time, and no cell can
/// cause or prevent it. A verdict that names it is true, but is no answer about the planted fault.
const NOT_OURS: &str = "cpu-steal";

/// The first cause that a verdict names.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// Id of the cause.
    pub(crate) cause: &'static str,
    /// The place of the limit.
    pub(crate) side: Place,
    /// The direction of the limit.
    pub(crate) direction: Direction,
    /// The certainty of the cause; `None` for a disturbance.
    pub(crate) certainty: Option<Certainty>,
    /// The trial that decided.
    pub(crate) trial: Option<Decided>,
}

impl From<&Limit> for Named {
    fn from(limit: &Limit) -> Self {
        Self {
            cause: limit.cause,
            side: limit.side,
            direction: limit.direction,
            certainty: Some(limit.certainty),
            trial: limit.trial.clone(),
        }
    }
}

impl From<&Disturbance> for Named {
    fn from(disturbance: &Disturbance) -> Self {
        Self {
            cause: disturbance.cause,
            side: disturbance.side,
            direction: disturbance.direction,
            certainty: None,
            trial: None,
        }
    }
}

/// A verdict held against its cell.
#[derive(Debug, Clone)]
pub(crate) struct Scored {
    /// The certainty of the limit.
    pub(crate) outcome: Outcome,
    /// Whether the named limit was proved.
    pub(crate) proved: bool,
    /// The ids of the expected causes.
    pub(crate) expected: Vec<&'static str>,
    /// The limit that was named first; `None` if the limit is unknown.
    pub(crate) named: Option<Named>,
}

/// Holds a verdict against its cell: its answers in the order in which they are read, and what disturbed the run.
pub(crate) fn score(
    cell: &Cell,
    truth: Option<&Truth>,
    told: &[Entry<'_>],
    disturbances: &[Disturbance],
) -> Scored {
    // A busy machine takes CPU time in any cell, so this is no answer about the planted fault.
    let beside = |d: &&Disturbance| cause(d.cause).is_some_and(|cause| cause.only_disturbs);
    let beside: Vec<&Disturbance> = disturbances.iter().filter(beside).collect();
    if cell.is_event() {
        return of_event(cell, &beside);
    }
    let scored = of_fault(cell, truth, told);
    match beside.first() {
        None => scored,
        // A disturbance was named whose fault was not planted.
        Some(alarm) => Scored { outcome: Outcome::Wrong, named: Some((*alarm).into()), ..scored },
    }
}

/// An event must be listed as a disturbance; the limits are not scored.
fn of_event(cell: &Cell, disturbances: &[&Disturbance]) -> Scored {
    let is_it = |d: &&&Disturbance| {
        d.cause == cell.expected && cell.place.is_none_or(|place| place == d.side)
    };
    let right = disturbances.iter().find(is_it);
    let named = right.or(disturbances.first());
    let outcome = match (right, named) {
        (Some(_), _) => Outcome::Right,
        (None, Some(_)) => Outcome::Wrong,
        (None, None) => Outcome::Unknown,
    };
    Scored {
        outcome,
        proved: false,
        expected: vec![cell.expected],
        named: named.map(|d| (*d).into()),
    }
}

/// A fault that does not bite leaves a healthy path.
fn of_fault(cell: &Cell, truth: Option<&Truth>, told: &[Entry<'_>]) -> Scored {
    let bites = truth.is_some_and(Truth::bites);
    let expected = if bites { vec![cell.expected] } else { HEALTHY.to_vec() };
    let told = of_goodput(told, cell.direction.filter(|_| bites));
    let headline_is_unknown = matches!(told.first(), Some(Entry::Unknown(_)));
    let limits = told.iter().filter_map(|told| match told {
        Entry::Limit(limit) => Some(*limit),
        Entry::Unknown(_) => None,
    });
    let mut judged: Vec<&Limit> = limits.collect();
    let first = judged.first().copied();
    judged.retain(|l| l.cause != NOT_OURS);
    let named = judged.first().copied().or(first);
    let named = named.filter(|_| !headline_is_unknown);
    // If a second cause is named that is not true, it is a false alarm.
    let right = |l: &&Limit| expected.contains(&l.cause) && right_place(cell, bites, l);
    let neighbour = |l: &&Limit| cell.neighbours.contains(&l.cause);
    let outcome = match judged.as_slice() {
        [] if named.is_some() && !bites => Outcome::Acceptable,
        [] => Outcome::Unknown,
        [first, rest @ ..] if rest.iter().all(|l| right(l) || neighbour(l)) => match first {
            first if !right(first) && !neighbour(first) => Outcome::Wrong,
            _ if headline_is_unknown => Outcome::Unknown,
            first if right(first) => Outcome::Right,
            _ => Outcome::Acceptable,
        },
        _ => Outcome::Wrong,
    };
    Scored {
        outcome,
        proved: named.is_some_and(|l| l.certainty == Certainty::Proved),
        expected,
        named: named.map(Named::from),
    }
}

/// The answers about the rate, of one direction or of all.
fn of_goodput<'a>(told: &[Entry<'a>], direction: Option<Direction>) -> Vec<Entry<'a>> {
    let is_of = |told: &&Entry<'a>| {
        let (of, metric) = match told {
            Entry::Limit(limit) => (limit.direction, limit.metric),
            Entry::Unknown(of) => (*of, Measure::Goodput),
        };
        metric.slowness() == Slowness::Rate && direction.is_none_or(|d| of == d)
    };
    told.iter().filter(is_of).copied().collect()
}

/// Whether a limit is named at the place of the planted fault; on a healthy path, at the end that its cause is
/// about.
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
    use linerate_lab::CellKind;
    use linerate_plan::path::Stage;

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
        let told: Vec<Entry<'_>> = limits.iter().map(Entry::Limit).collect();
        scored(kind, truth, &told, &[])
    }

    fn scored(
        kind: &str,
        truth: Option<Truth>,
        told: &[Entry<'_>],
        disturbances: &[Disturbance],
    ) -> Outcome {
        let cell = CellKind::named(kind).unwrap().cell(1);
        score(&cell, truth.as_ref(), told, disturbances).outcome
    }

    fn disturbance(cause: &'static str, direction: Direction) -> Disturbance {
        Disturbance {
            cause,
            stage: Stage::Net,
            side: Place::Path,
            direction,
            share: None,
            evidence: Vec::new(),
            advice: Vec::new(),
        }
    }

    #[test]
    fn an_event_is_to_be_told_of_in_any_direction_and_without_a_ratio() {
        for (kind, other) in [("contended", "interrupted"), ("interrupted", "contended")] {
            for direction in Direction::ALL {
                let core = limit("sender-core", direction.sender().into(), direction);
                let of = |causes: &[&'static str]| {
                    let all = causes.iter().map(|cause| disturbance(cause, direction));
                    let all: Vec<Disturbance> = all.collect();
                    scored(kind, None, &[Entry::Limit(&core)], &all)
                };
                assert_eq!(of(&[kind]), Outcome::Right);
                assert_eq!(of(&[other, kind]), Outcome::Right);
                assert_eq!(of(&[other]), Outcome::Wrong);
                assert_eq!(of(&[]), Outcome::Unknown);
                // What a busy machine takes is no answer.
                assert_eq!(of(&["cpu-contention"]), Outcome::Unknown);
            }
        }
    }

    #[test]
    fn an_event_on_a_healthy_path_is_a_false_alarm_and_what_a_busy_machine_takes_is_none() {
        let core = limit("sender-core", Place::Near, Direction::Forward);
        let of = |cause| {
            let beside = [disturbance(cause, Direction::Forward)];
            scored("healthy", None, &[Entry::Limit(&core)], &beside)
        };
        assert_eq!(of("interrupted"), Outcome::Wrong);
        assert_eq!(of("cpu-contention"), Outcome::Right);
        assert_eq!(of("cpu-steal"), Outcome::Right);
    }

    #[test]
    fn what_limits_the_faster_direction_is_no_answer_where_the_slower_is_unknown() {
        let of = |cause, place: Place| {
            let fast = limit(cause, place, Direction::Reverse);
            let told = [Entry::Unknown(Direction::Forward), Entry::Limit(&fast)];
            scored("healthy", None, &told, &[])
        };
        assert_eq!(of("sender-core", Place::Far), Outcome::Unknown);
        assert_eq!(of("path-loss", Place::Path), Outcome::Wrong);
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
        assert_eq!(outcome(std::slice::from_ref(&neighbour)), Outcome::Acceptable);
        let both = [right, neighbour.clone()];
        assert_eq!(outcome(&both), Outcome::Right);
        let [right, _] = both;
        assert_eq!(outcome(&[neighbour.clone(), right]), Outcome::Acceptable);
        assert_eq!(outcome(&[named("path-loss"), neighbour]), Outcome::Wrong);
    }
}
