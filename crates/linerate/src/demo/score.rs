//! Compares the named cause with the planted fault.

use linerate_judge::causes::cause;
use linerate_judge::verdict::{Decided, Disturbance, Entry, Limit};
use linerate_lab::{Cell, HEALTHY};
use linerate_plan::path::{Certainty, Direction, Measure, Place, Slowness};
use serde::{Deserialize, Serialize};

use super::Truth;

/// How the named cause compares with the planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The expected cause was named, at the right place.
    Right,
    /// A cause was named that the cell lists beforehand as true too.
    Acceptable,
    /// No cause was named.
    Unknown,
    /// Another cause was named, or the right one at the wrong place.
    Wrong,
}

/// An effect of the host machine on any lab, whatever is planted: the kernel counts stolen time, and no cell can cause
/// or prevent it. A verdict with this cause is true, but is no answer about the planted fault.
const HOST_CAUSE: &str = "cpu-steal";

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

/// The score of a verdict about a cell.
#[derive(Debug, Clone)]
pub(crate) struct Scored {
    /// How the verdict compares with the planted fault.
    pub(crate) outcome: Outcome,
    /// Whether the named limit was proved.
    pub(crate) proved: bool,
    /// The ids of the expected causes.
    pub(crate) expected: Vec<&'static str>,
    /// The cause that was named first; `None` if the limit is unknown.
    pub(crate) named: Option<Named>,
}

/// Scores a verdict about its cell. `reported` holds its answers in the order in which they are read.
pub(crate) fn score(
    cell: &Cell,
    truth: Option<&Truth>,
    reported: &[Entry<'_>],
    disturbances: &[Disturbance],
) -> Scored {
    // Other disturbances, such as a busy machine, occur in any cell and are no answer about the planted fault.
    let beside = |d: &&Disturbance| cause(d.cause).is_some_and(|cause| cause.only_disturbs);
    let beside: Vec<&Disturbance> = disturbances.iter().filter(beside).collect();
    if cell.is_event() {
        return of_event(cell, &beside);
    }
    let scored = of_fault(cell, truth, reported);
    match beside.first() {
        None => scored,
        // The verdict names a disturbance that was not planted.
        Some(alarm) => Scored { outcome: Outcome::Wrong, named: Some((*alarm).into()), ..scored },
    }
}

/// Scores an event: the verdict must list it as a disturbance; its limits are not scored.
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

/// Scores a fault. If the fault does not reduce goodput, the path counts as healthy.
fn of_fault(cell: &Cell, truth: Option<&Truth>, reported: &[Entry<'_>]) -> Scored {
    let bites = truth.is_some_and(Truth::bites);
    let expected = if bites { vec![cell.expected] } else { HEALTHY.to_vec() };
    let reported = of_goodput(reported, cell.direction.filter(|_| bites));
    let headline_is_unknown = matches!(reported.first(), Some(Entry::Unknown(_)));
    let limits = reported.iter().filter_map(|reported| match reported {
        Entry::Limit(limit) => Some(*limit),
        Entry::Unknown(_) => None,
    });
    let mut judged: Vec<&Limit> = limits.collect();
    let first = judged.first().copied();
    judged.retain(|l| l.cause != HOST_CAUSE);
    let named = judged.first().copied().or(first);
    let named = named.filter(|_| !headline_is_unknown);
    // Each further cause must be right or acceptable too; otherwise it is a false alarm.
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

/// The answers about rates, not those about latency, of one direction or of both.
fn of_goodput<'a>(reported: &[Entry<'a>], direction: Option<Direction>) -> Vec<Entry<'a>> {
    let is_of = |reported: &&Entry<'a>| {
        let (of, metric) = match reported {
            Entry::Limit(limit) => (limit.direction, limit.metric),
            Entry::Unknown(of) => (*of, Measure::Goodput),
        };
        metric.slowness() == Slowness::Rate && direction.is_none_or(|d| of == d)
    };
    reported.iter().filter(is_of).copied().collect()
}

/// Whether the limit is at the place of the planted fault. On a healthy path: whether it is at the end that its cause
/// belongs to.
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
        let reported: Vec<Entry<'_>> = limits.iter().map(Entry::Limit).collect();
        scored(kind, truth, &reported, &[])
    }

    fn scored(
        kind: &str,
        truth: Option<Truth>,
        reported: &[Entry<'_>],
        disturbances: &[Disturbance],
    ) -> Outcome {
        let cell = CellKind::named(kind).unwrap().cell(1);
        score(&cell, truth.as_ref(), reported, disturbances).outcome
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
                // CPU time that other programs took is no answer.
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
            let reported = [Entry::Unknown(Direction::Forward), Entry::Limit(&fast)];
            scored("healthy", None, &reported, &[])
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
