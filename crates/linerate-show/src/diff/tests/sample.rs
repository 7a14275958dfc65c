//! Invented comparisons for the tests of text and JSON.

use linerate_explain::diff::{
    Basis, Change, Diff, DisturbanceChange, Fate, FigureChange, Judged, LimitChange, Outcome,
    PlanChange, RowChange, RowFigure,
};
use linerate_judge::figure::{
    CPU, Figure, GOODPUT, LATENCY, RETRANSMITS, Subject, Summary, Unit, Value,
};
use linerate_plan::path::{Certainty, Direction, Side};
use linerate_units::Bytes;
use linerate_units::stats::Interval;

use super::super::sample;
use super::Compared;

fn interval(low: f64, mid: f64, high: f64) -> Interval {
    Interval { low, mid, high }
}

fn figure(
    figure: &'static Figure,
    of: Subject,
    values: [f64; 2],
    outcome: Outcome,
) -> FigureChange {
    let value = |mid: f64| {
        Some(if *figure == RETRANSMITS {
            Value::bare(mid)
        } else {
            Value::within(interval(mid * 0.99, mid, mid * 1.01))
        })
    };
    FigureChange { figure, of, before: value(values[0]), after: value(values[1]), outcome }
}

fn change(what: &str, before: &str, after: &str) -> Change {
    Change { what: what.into(), before: before.into(), after: after.into() }
}

/// The receive window was widened between the runs: goodput doubled, and the path is the new limit.
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
        rows: Vec::new(),
        limits: limits(),
        disturbances: disturbances(),
    }
}

/// Rows of a sweep over two sizes, and a row of a disk.
fn rows() -> Vec<RowChange> {
    let row = |title: &str, size: Option<u64>, (key, label, unit), values: [f64; 2], outcome| {
        let figure = RowFigure { key, label, unit };
        RowChange {
            title: title.to_owned(),
            size: size.map(Bytes),
            figure,
            before: Value::bare(values[0]),
            after: Value::bare(values[1]),
            outcome,
        }
    };
    let median = ("median_ns", "median", Unit::Nanos);
    let mean = ("mean_ns", "mean", Unit::Nanos);
    let p99 = ("p99_ns", "p99", Unit::Nanos);
    let trips = "ping-pong, TCP, whole round trips";
    let less = Outcome::Differ(interval(0.88, 0.9, 0.92));
    let disk = "sequential read, 1 MiB, 8 in flight, 1 thread";
    vec![
        row(trips, Some(64), median, [20e3, 18e3], less),
        row(trips, Some(64), mean, [21e3, 19e3], Outcome::Bare(0.905)),
        row(trips, Some(64), p99, [40e3, 40e3], Outcome::Bare(1.0)),
        row(trips, Some(65536), mean, [90e3, 81e3], Outcome::Bare(0.9)),
        row(
            disk,
            None,
            ("bytes_per_sec", "rate", Unit::BytesPerSecond),
            [2201e6, 718e6],
            Outcome::Bare(0.3262),
        ),
        row(
            disk,
            None,
            ("mean_ns", "mean", Unit::Nanos),
            [3800e3, 11700e3],
            Outcome::Nothing("no interval"),
        ),
    ]
}

/// A comparison that has rows of tables only.
pub(super) fn with_rows<T>(view: impl FnOnce(&Compared<'_>) -> T) -> T {
    let mut diff = widened();
    diff.notes = vec!["not compared: message size only before: 8 MiB".into()];
    diff.facts.clear();
    diff.figures.clear();
    diff.limits.clear();
    diff.disturbances.clear();
    diff.rows = rows();
    shown(&diff, view)
}

fn figures() -> Vec<FigureChange> {
    let unsure = Outcome::Unclear(interval(0.93, 1.01, 1.1));
    let idle = |p: f64, values, outcome| {
        let of = Subject { percentile: Some(p), ..Subject::default() };
        figure(&LATENCY, of, values, outcome)
    };
    let forward = Subject::load(Direction::Forward);
    let at = |side| Subject { side: Some(side), ..forward };
    let doubled = Outcome::Differ(interval(1.98, 1.994, 2.01));
    let fewer = Outcome::Differ(interval(0.0004, 0.0012, 0.0031));
    let unknown = Outcome::Nothing("not known after");
    let mut missing = figure(&CPU, at(Side::Far), [0.2, 0.2], unknown);
    missing.after = None;
    vec![
        idle(50.0, [41e3, 41.1e3], Outcome::Same(interval(0.99, 1.0, 1.01))),
        idle(90.0, [51e3, 52e3], unsure),
        idle(99.0, [58e3, 60e3], unsure),
        figure(&GOODPUT, forward, [4.71e9, 9.39e9], doubled),
        figure(&RETRANSMITS, forward, [0.051, 0.00006], fewer),
        figure(&CPU, at(Side::Near), [0.213, 0.198], unsure),
        missing,
    ]
}

/// The first run was disturbed; and during both runs another session measured.
fn disturbances() -> Vec<DisturbanceChange> {
    let all = sample::disturbed().2.disturbances.into_iter();
    all.zip([Fate::Gone, Fate::Still])
        .map(|(disturbance, fate)| DisturbanceChange { fate, disturbance })
        .collect()
}

fn limits() -> Vec<LimitChange> {
    let limit = |result: &sample::Result| result.2.limits[0].clone();
    vec![
        LimitChange {
            fate: Fate::Gone,
            limit: limit(&sample::limited()),
            before: Some(Certainty::Proved),
            after: None,
            why: "clear: limited by the window for 0 % of the time".into(),
        },
        LimitChange {
            fate: Fate::New,
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
        summary: Summary::of(record, model),
        model: model.clone(),
        verdict: verdict.clone(),
        headline: linerate_explain::Headline::of_run(model, verdict),
        basis: Basis::default(),
    }
}

fn shown<T>(diff: &Diff, view: impl FnOnce(&Compared<'_>) -> T) -> T {
    let (first, second) = (sample::limited(), sample::healthy());
    view(&Compared { before: &judged(&first), after: &judged(&second), diff })
}

/// A comparison of two runs with the same load.
pub(super) fn with<T>(view: impl FnOnce(&Compared<'_>) -> T) -> T {
    shown(&widened(), view)
}

/// A comparison in which the second run requested four streams.
pub(super) fn with_other_plans<T>(view: impl FnOnce(&Compared<'_>) -> T) -> T {
    let mut diff = widened();
    diff.notes.clear();
    diff.facts.clear();
    diff.plan = vec![
        PlanChange { change: change("streams", "1", "4"), load: true, idle: false },
        PlanChange { change: change("time", "60 s", "20 s"), load: false, idle: false },
    ];
    let of_load = |change: &&mut FigureChange| change.of.direction.is_some();
    for change in diff.figures.iter_mut().filter(of_load) {
        change.outcome = Outcome::OtherPlan;
    }
    shown(&diff, view)
}
