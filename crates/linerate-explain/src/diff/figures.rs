//! The figures of two records, and whether they differ.

use super::basis::unlike;
use super::{Judged, PlanChange};
use linerate_judge::figure::{Entry, Evidence, Figure, Subject, Summary, Value};
use linerate_units::stats::{EQUAL, Interval, is_equal};

/// The outcome of comparing two values of a figure. Intervals are for the ratio of the second value to the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The two values differ: the whole interval of their ratio is more than 3 % away from one.
    Differ(Interval),
    /// The two values are the same to within 3 %.
    Same(Interval),
    /// The interval of the ratio is too wide to tell whether the values differ.
    Unclear(Interval),
    /// The ratio of two values, at least one of which has no interval: it is unknown whether they differ by more than
    /// chance.
    Bare(f64),
    /// There is no ratio of the values; the text says why.
    Nothing(&'static str),
    /// The second record was made with another load, so the values are not compared.
    OtherPlan,
}

/// A figure in both records.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureChange {
    /// The figure that is compared.
    pub figure: &'static Figure,
    /// What the figure was measured on: the idle path, or one direction.
    pub of: Subject,
    /// The value in the first record; `None` if it was not measured.
    pub before: Option<Value>,
    /// The value in the second record; `None` if it was not measured.
    pub after: Option<Value>,
    /// The outcome of the comparison.
    pub outcome: Outcome,
}

/// Compares all figures of two records.
pub(super) fn changes(
    before: &Judged<'_>,
    after: &Judged<'_>,
    plan: &[PlanChange],
) -> Vec<FigureChange> {
    let mut all = compared(&before.summary, &after.summary);
    if before.is_import() || after.is_import() {
        for change in &mut all {
            let unlike = unlike(&before.basis, &after.basis, change.of);
            if let Some(why) = unlike.filter(|_| change.before.is_some() && change.after.is_some())
            {
                change.outcome = Outcome::Nothing(why);
            }
        }
        return all;
    }
    let other_idle = plan.iter().any(|p| p.idle);
    let other_load = plan.iter().any(|p| p.load);
    for change in &mut all {
        let other = match change.of.direction {
            None => other_idle,
            Some(_) => other_load,
        };
        if other && change.before.is_some() && change.after.is_some() {
            change.outcome = Outcome::OtherPlan;
        }
    }
    all
}

fn compared(before: &Summary, after: &Summary) -> Vec<FigureChange> {
    let known = |entry: &Entry| entry.value.is_ok();
    let only_after = |entry: &&Entry| before.value(entry.figure, entry.of).is_none();
    let of_both = before.entries.iter().filter(|entry| known(entry));
    let of_after = after.entries.iter().filter(|entry| known(entry));
    let all = of_both.chain(of_after.filter(only_after)).cloned();
    let change = |entry: Entry| {
        let (figure, of) = (entry.figure, entry.of);
        let [before, after] = [before, after].map(|s| s.value(figure, of).cloned());
        let outcome = outcome(before.as_ref(), after.as_ref());
        FigureChange { figure, of, before, after, outcome }
    };
    Summary::sorted(all).entries.into_iter().map(change).collect()
}

/// The outcome of comparing one figure in two records.
pub(super) fn outcome(before: Option<&Value>, after: Option<&Value>) -> Outcome {
    match (before, after) {
        (None, _) => Outcome::Nothing("not known before"),
        (_, None) => Outcome::Nothing("not known after"),
        (Some(a), Some(b)) if a.is_no_event() && b.is_no_event() => {
            Outcome::Nothing("none in either")
        }
        (Some(a), Some(b)) => b.over(a).map_or_else(|| bare(a, b), of_ratio),
    }
}

/// The outcome for two values whose ratio has no interval.
fn bare(a: &Value, b: &Value) -> Outcome {
    let ratio = b.mid / a.mid;
    let is_bare = a.evidence == Evidence::None || b.evidence == Evidence::None;
    if is_bare && a.mid > 0.0 && b.mid > 0.0 && ratio.is_finite() {
        Outcome::Bare(ratio)
    } else {
        Outcome::Nothing("no interval")
    }
}

/// The outcome for two values whose ratio has an interval.
fn of_ratio(ratio: Interval) -> Outcome {
    if EQUAL.excludes(ratio) {
        Outcome::Differ(ratio)
    } else if is_equal(ratio) {
        Outcome::Same(ratio)
    } else {
        Outcome::Unclear(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_judge::figure::{CPU, GOODPUT, LATENCY, RETRANSMITS};
    use linerate_plan::path::{Direction, Side};
    use linerate_units::stats::Count;

    fn of(low: f64, high: f64) -> Interval {
        Interval { low, mid: f64::midpoint(low, high), high }
    }

    #[test]
    fn a_difference_lies_outside_3_percent_and_equality_within() {
        assert!(matches!(of_ratio(of(1.031, 1.2)), Outcome::Differ(_)));
        assert!(matches!(of_ratio(of(1.029, 1.2)), Outcome::Unclear(_)));
        assert!(matches!(of_ratio(of(0.8, 0.969)), Outcome::Differ(_)));
        assert!(matches!(of_ratio(of(0.8, 0.971)), Outcome::Unclear(_)));
        assert!(matches!(of_ratio(of(0.971, 1.029)), Outcome::Same(_)));
        assert!(matches!(of_ratio(of(0.969, 1.029)), Outcome::Unclear(_)));
    }

    fn summary(values: &[(&'static Figure, Subject, Value)]) -> Summary {
        Summary::sorted(values.iter().map(|(figure, of, value)| Entry {
            figure,
            of: *of,
            value: Ok(value.clone()),
        }))
    }

    #[test]
    fn a_figure_of_one_record_has_no_ratio() {
        let forward = Subject::load(Direction::Forward);
        let some = |of| summary(&[(&CPU, forward, Value::within(of))]);
        let none = Summary::default();
        let outcomes = |a: &Summary, b: &Summary| {
            let all = compared(a, b).into_iter();
            all.map(|change| change.outcome).collect::<Vec<_>>()
        };
        assert_eq!(outcomes(&none, &none), []);
        let one = some(of(1.0, 2.0));
        let unknown = |which| [Outcome::Nothing(which)];
        assert_eq!(outcomes(&none, &one), unknown("not known before"));
        assert_eq!(outcomes(&one, &none), unknown("not known after"));
        assert!(matches!(outcomes(&one, &one)[..], [Outcome::Unclear(_)]));
        let zero = some(of(0.0, 2.0));
        assert_eq!(outcomes(&zero, &one), unknown("no interval"));
        let bare = |mid| summary(&[(&CPU, forward, Value::bare(mid))]);
        assert_eq!(outcomes(&bare(2.0), &bare(3.0)), [Outcome::Bare(1.5)]);
        assert_eq!(outcomes(&one, &bare(3.0)), [Outcome::Bare(2.0)]);
        assert_eq!(outcomes(&bare(0.0), &bare(3.0)), unknown("no interval"));
    }

    #[test]
    fn rare_events_are_compared_by_their_share() {
        let counted = |events: f64| {
            let part = Count { events, of: 1e4 };
            Value::share(vec![part; 12]).unwrap()
        };
        let outcome = |a, b| outcome(Some(&counted(a)), Some(&counted(b)));
        assert!(matches!(outcome(50.0, 5.0), Outcome::Differ(r) if r.high < 0.2));
        assert!(matches!(outcome(3.0, 4.0), Outcome::Unclear(_)));
        assert_eq!(outcome(0.0, 0.0), Outcome::Nothing("none in either"));
    }

    #[test]
    fn figures_stand_in_one_order_whichever_record_has_them() {
        let value = Value { mid: 1.0, evidence: Evidence::None };
        let forward = Subject::load(Direction::Forward);
        let near = Subject { side: Some(Side::Near), ..forward };
        let idle = Subject { percentile: Some(50.0), ..Subject::default() };
        let a = summary(&[(&CPU, near, value.clone()), (&GOODPUT, forward, value.clone())]);
        let b = summary(&[(&RETRANSMITS, forward, value.clone()), (&LATENCY, idle, value)]);
        let figures = |a, b| {
            let all = compared(a, b).into_iter();
            all.map(|change| change.figure.id).collect::<Vec<_>>()
        };
        let order = ["latency", "goodput", "retransmits", "cpu"];
        assert_eq!(figures(&a, &b), order);
        assert_eq!(figures(&b, &a), order);
    }
}
