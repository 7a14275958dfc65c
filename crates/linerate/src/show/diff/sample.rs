//! Comparisons made by hand, for the tests of views.

use linerate_core::diff::{
    Change, Diff, DisturbanceChange, Fate, Figure, Judged, Kind, LimitChange, PlanChange, Told,
    Value,
};
use linerate_core::path::{Direction, Side};
use linerate_core::stats::Interval;
use linerate_core::verdict::Certainty;

use super::super::sample;
use super::Compared;

fn interval(low: f64, mid: f64, high: f64) -> Interval {
    Interval { low, mid, high }
}

fn figure(kind: Kind, forward: bool, values: [f64; 2], told: Told) -> Figure {
    let value = |mid: f64| {
        Some(Value {
            mid,
            interval: (kind != Kind::Resent).then(|| interval(mid * 0.99, mid, mid * 1.01)),
        })
    };
    Figure {
        kind,
        direction: forward.then_some(Direction::Forward),
        before: value(values[0]),
        after: value(values[1]),
        told,
    }
}

fn change(what: &str, before: &str, after: &str) -> Change {
    Change {
        what: what.into(),
        before: before.into(),
        after: after.into(),
    }
}

/// A window that was widened: goodput doubled, and the path binds instead.
fn widened() -> Diff {
    let rmem = ["4096 131072 524288", "4096 131072 16777216"];
    Diff {
        notes: vec!["the far host is another one: brook before, delta after".into()],
        plan: Vec::new(),
        facts: vec![
            (Side::Far, change("kernel", "6.12.0", "6.13.1")),
            (Side::Far, change("net.ipv4.tcp_rmem", rmem[0], rmem[1])),
        ],
        figures: figures(),
        limits: limits(),
        disturbances: disturbances(),
    }
}

fn figures() -> Vec<Figure> {
    let unsure = interval(0.93, 1.01, 1.1);
    let mut missing = figure(
        Kind::Cpu(Side::Far),
        true,
        [0.2, 0.2],
        Told::Nothing("not known after"),
    );
    missing.after = None;
    vec![
        figure(
            Kind::RoundTrip(50.0),
            false,
            [41e3, 41.1e3],
            Told::Same(interval(0.99, 1.0, 1.01)),
        ),
        figure(
            Kind::RoundTrip(90.0),
            false,
            [51e3, 52e3],
            Told::Unsure(unsure),
        ),
        figure(
            Kind::RoundTrip(99.0),
            false,
            [58e3, 60e3],
            Told::Unsure(unsure),
        ),
        figure(
            Kind::Goodput,
            true,
            [4.71e9, 9.39e9],
            Told::Differ(interval(1.98, 1.994, 2.01)),
        ),
        figure(
            Kind::Resent,
            true,
            [0.051, 0.00006],
            Told::Differ(interval(0.0004, 0.0012, 0.0031)),
        ),
        figure(
            Kind::Cpu(Side::Near),
            true,
            [0.213, 0.198],
            Told::Unsure(unsure),
        ),
        missing,
    ]
}

/// The first run was disturbed, and both took place beside another session.
fn disturbances() -> Vec<DisturbanceChange> {
    let all = sample::disturbed().2.disturbances.into_iter();
    all.zip([Fate::Went, Fate::Stayed])
        .map(|(disturbance, fate)| DisturbanceChange { fate, disturbance })
        .collect()
}

fn limits() -> Vec<LimitChange> {
    let limit = |result: &sample::Result| result.2.limits[0].clone();
    vec![
        LimitChange {
            fate: Fate::Went,
            limit: limit(&sample::limited()),
            before: Some(Certainty::Proved),
            after: None,
            why: "clear: limited by the window for 0 % of the time".into(),
        },
        LimitChange {
            fate: Fate::Came,
            limit: limit(&sample::healthy()),
            before: None,
            after: Some(Certainty::Supported),
            why: "excluded: twice the streams gave x1.99, not x1.00".into(),
        },
    ]
}

fn judged((record, model, verdict): &sample::Result) -> Judged<'_> {
    Judged {
        record,
        model: model.clone(),
        verdict: verdict.clone(),
    }
}

fn shown<T>(diff: &Diff, view: impl FnOnce(&Compared<'_>) -> T) -> T {
    let (first, second) = (sample::limited(), sample::healthy());
    view(&Compared {
        before: &judged(&first),
        after: &judged(&second),
        diff,
    })
}

/// A comparison of what can be compared.
pub(super) fn with<T>(view: impl FnOnce(&Compared<'_>) -> T) -> T {
    shown(&widened(), view)
}

/// The same where the second run was asked for four streams.
pub(super) fn with_other_plans<T>(view: impl FnOnce(&Compared<'_>) -> T) -> T {
    let mut diff = widened();
    diff.notes.clear();
    diff.facts.clear();
    diff.plan = vec![
        PlanChange {
            change: change("streams", "1", "4"),
            load: true,
            idle: false,
        },
        PlanChange {
            change: change("time", "60 s", "20 s"),
            load: false,
            idle: false,
        },
    ];
    for figure in diff.figures.iter_mut().filter(|f| f.direction.is_some()) {
        figure.told = Told::OtherPlan;
    }
    shown(&diff, view)
}
