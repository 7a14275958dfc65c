//! What was measured in both records, and whether it can be told apart.

use super::{Judged, PlanChange};
use crate::model::{Part, base_round_trips, idle_round_trips, parts};
use crate::path::{Direction, Side};
use crate::record::Histogram;
use crate::stats::{
    Count, EQUAL, Interval, change, is_equal, percentile_ci, ratio_ci, share_change,
};

/// Percentiles of round trips that are compared where the samples support them.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// What a figure is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Goodput in bits per second.
    Goodput,
    /// A percentile of round trips, in nanoseconds: on the idle path where there is no direction.
    RoundTrip(f64),
    /// Segments sent again, as a share of those sent.
    Resent,
    /// CPU time of this side's threads, in nanoseconds for each byte of payload.
    Cpu(Side),
}

/// A value with its 95 % interval, where there is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The value.
    pub mid: f64,
    /// Its interval.
    pub interval: Option<Interval>,
}

/// What two values tell together. Intervals are those of the second value over the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Told {
    /// They differ: all of the interval lies outside 3 % of one.
    Differ(Interval),
    /// They are the same to within 3 %.
    Same(Interval),
    /// No difference that could be told.
    Unsure(Interval),
    /// There is no ratio, and why.
    Nothing(&'static str),
    /// Another load was asked for.
    OtherPlan,
}

/// A figure of both records.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What.
    pub kind: Kind,
    /// Direction of the load; `None` for the idle path.
    pub direction: Option<Direction>,
    /// In the first record; `None` where it was not measured.
    pub before: Option<Value>,
    /// In the second.
    pub after: Option<Value>,
    /// What both tell.
    pub told: Told,
}

/// All figures that one of the records has.
pub(super) fn figures(before: &Judged<'_>, after: &Judged<'_>, plan: &[PlanChange]) -> Vec<Figure> {
    let idle = [before, after].map(|j| idle_round_trips(j.record));
    let mut all = round_trips(&idle, None);
    let other_idle = plan.iter().any(|p| p.idle);
    let of_idle = all.len();
    for direction in Direction::ALL {
        all.extend(goodput(before, after, direction));
        let loaded = [before, after].map(|j| base_round_trips(j.record, direction));
        all.extend(round_trips(&loaded, Some(direction)));
        let parts = [before, after].map(|j| parts(j.record, direction));
        all.extend(resent(&parts, direction));
        all.extend(cpu(&parts, direction));
    }
    let other_load = plan.iter().any(|p| p.load);
    for (i, figure) in all.iter_mut().enumerate() {
        let other = if i < of_idle { other_idle } else { other_load };
        if other && figure.before.is_some() && figure.after.is_some() {
            figure.told = Told::OtherPlan;
        }
    }
    all
}

fn goodput(before: &Judged<'_>, after: &Judged<'_>, direction: Direction) -> Option<Figure> {
    let loads = [before, after].map(|j| j.model.direction(direction).map(|d| &d.base));
    let value = loads.map(|load| {
        load.map(|load| Value {
            mid: load.goodput.mean,
            interval: load.goodput.interval,
        })
    });
    let ratio = match loads {
        // It is open where nothing is known of how well one of them is.
        [Some(a), Some(b)] => Some(b.over(a)).filter(|r| r.high < f64::MAX && r.low > 0.0),
        _ => None,
    };
    figure(Kind::Goodput, Some(direction), value, ratio)
}

fn round_trips(of: &[Option<Histogram>; 2], direction: Option<Direction>) -> Vec<Figure> {
    let each = PERCENTILES.iter().filter_map(|p| {
        let found = of.each_ref().map(|h| percentile_ci(h.as_ref()?, p / 100.0));
        known(Kind::RoundTrip(*p), direction, found)
    });
    each.collect()
}

fn resent(parts: &[Vec<Part>; 2], direction: Direction) -> Option<Figure> {
    let counts: [Option<Vec<Count>>; 2] = parts
        .each_ref()
        .map(|all| all.iter().map(|p| p.resent).collect());
    let [Some(a), Some(b)] = &counts else {
        return None;
    };
    let value = [a, b].map(|counts| {
        let of: f64 = counts.iter().map(|c| c.of).sum();
        let events: f64 = counts.iter().map(|c| c.events).sum();
        (of > 0.0).then(|| Value {
            mid: events / of,
            interval: None,
        })
    });
    let none = |v: &Option<Value>| v.is_some_and(|v| v.mid <= 0.0);
    let mut figure = figure(Kind::Resent, Some(direction), value, share_change(a, b))?;
    if none(&figure.before) && none(&figure.after) {
        figure.told = Told::Nothing("none in either");
    }
    Some(figure)
}

/// CPU time for each byte at both ends, the sender's first.
fn cpu(parts: &[Vec<Part>; 2], direction: Direction) -> impl Iterator<Item = Figure> {
    let sides = [direction.sender(), direction.receiver()];
    let each = sides
        .into_iter()
        .enumerate()
        .filter_map(move |(end, side)| {
            let cost = parts.each_ref().map(|all| {
                let nanos: Option<Vec<f64>> = all.iter().map(|p| Some(p.cpu[end]? * 1e9)).collect();
                let bytes: Vec<f64> = all.iter().map(|p| p.bytes[end]).collect();
                ratio_ci(&nanos?, &bytes)
            });
            known(Kind::Cpu(side), Some(direction), cost)
        });
    each.collect::<Vec<Figure>>().into_iter()
}

/// A figure whose values are intervals.
fn known(
    kind: Kind,
    direction: Option<Direction>,
    values: [Option<Interval>; 2],
) -> Option<Figure> {
    let ratio = match values {
        [Some(a), Some(b)] => change(a, b),
        _ => None,
    };
    let value = values.map(|found| {
        found.map(|interval| Value {
            mid: interval.mid,
            interval: Some(interval),
        })
    });
    figure(kind, direction, value, ratio)
}

/// A figure; `None` where neither record has it.
fn figure(
    kind: Kind,
    direction: Option<Direction>,
    [before, after]: [Option<Value>; 2],
    ratio: Option<Interval>,
) -> Option<Figure> {
    let told = match (before, after) {
        (None, None) => return None,
        (None, _) => Told::Nothing("not known before"),
        (_, None) => Told::Nothing("not known after"),
        _ => ratio.map_or(Told::Nothing("no interval"), told),
    };
    Some(Figure {
        kind,
        direction,
        before,
        after,
        told,
    })
}

/// What a ratio tells.
fn told(ratio: Interval) -> Told {
    if EQUAL.excludes(ratio) {
        Told::Differ(ratio)
    } else if is_equal(ratio) {
        Told::Same(ratio)
    } else {
        Told::Unsure(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(low: f64, high: f64) -> Interval {
        Interval {
            low,
            mid: f64::midpoint(low, high),
            high,
        }
    }

    #[test]
    fn a_difference_lies_outside_3_percent_and_equality_within() {
        assert!(matches!(told(of(1.031, 1.2)), Told::Differ(_)));
        assert!(matches!(told(of(1.029, 1.2)), Told::Unsure(_)));
        assert!(matches!(told(of(0.8, 0.969)), Told::Differ(_)));
        assert!(matches!(told(of(0.8, 0.971)), Told::Unsure(_)));
        assert!(matches!(told(of(0.971, 1.029)), Told::Same(_)));
        assert!(matches!(told(of(0.969, 1.029)), Told::Unsure(_)));
    }

    #[test]
    fn what_one_record_lacks_has_no_ratio_and_what_both_lack_no_figure() {
        let some = Some(of(1.0, 2.0));
        let told = |values| known(Kind::Goodput, None, values).map(|f| f.told);
        assert_eq!(told([None, None]), None);
        assert_eq!(told([None, some]), Some(Told::Nothing("not known before")));
        assert_eq!(told([some, None]), Some(Told::Nothing("not known after")));
        assert!(matches!(told([some, some]), Some(Told::Unsure(_))));
        let nothing = Some(of(0.0, 2.0));
        assert_eq!(told([nothing, some]), Some(Told::Nothing("no interval")));
    }

    fn parts(events: f64) -> Vec<Part> {
        let part = Part {
            resent: Some(Count { events, of: 1e4 }),
            cpu: [Some(0.01), None],
            bytes: [1e8, 1e8],
        };
        vec![part; 12]
    }

    #[test]
    fn segments_sent_again_are_compared_by_their_share() {
        let told = |a, b| resent(&[parts(a), parts(b)], Direction::Forward).map(|f| f.told);
        assert!(matches!(told(50.0, 5.0), Some(Told::Differ(r)) if r.high < 0.2));
        assert!(matches!(told(3.0, 4.0), Some(Told::Unsure(_))));
        assert_eq!(told(0.0, 0.0), Some(Told::Nothing("none in either")));
        assert_eq!(resent(&[vec![], vec![]], Direction::Forward), None);
        let gone = resent(&[parts(9.0), vec![]], Direction::Forward).map(|f| f.told);
        assert_eq!(gone, Some(Told::Nothing("not known after")));
    }

    #[test]
    fn cpu_time_is_that_of_the_threads_for_each_byte() {
        let figures: Vec<Figure> = cpu(&[parts(0.0), parts(0.0)], Direction::Reverse).collect();
        let [figure] = figures.as_slice() else {
            panic!("the receiver's was not read: {figures:?}");
        };
        assert_eq!(figure.kind, Kind::Cpu(Side::Far));
        assert!(
            (figure.before.unwrap().mid - 0.1).abs() < 1e-9,
            "{figure:?}"
        );
        assert!(matches!(figure.told, Told::Same(_)));
    }
}
