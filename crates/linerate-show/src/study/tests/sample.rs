//! Invented studies for tests.

use linerate_facts::Gap;
use linerate_judge::figure::{CEILING, CPU, Entry, GOODPUT, LATENCY, Subject};
use linerate_judge::study::Point;
use linerate_plan::path::{Direction, Side};
use linerate_plan::study::Axis;

use super::runs::tests::judged;
use super::{Found, LAYERS, Made, PART, Part, RUN, Study, sizes};
use crate::sample;

/// Sizes for three operations: the first was measured completely, the second ended early, the third was not begun.
pub(super) fn values(samples: &[sizes::sample::Sample; 2]) -> Study<'_> {
    let ops = ["read", "write", "send"];
    let axis = Axis::of("op", ops.map(str::to_owned));
    let mut parts: Vec<Part<'_>> = Vec::new();
    for (op, sample) in ops.iter().zip(samples) {
        let made =
            Made { record: &sample.record, saved: Some("blue-heron"), found: sample.found() };
        parts.push(Part { values: vec![(*op).to_owned()], made: Ok(made) });
    }
    let why = Gap {
        what: String::new(),
        why: "interrupted before".to_owned(),
        hint: "measure again".to_owned(),
    };
    parts.push(Part { values: vec![ops[2].to_owned()], made: Err(why) });
    Study::new(Some("brook"), &[axis], parts)
}

/// A study of several runs of one plan.
pub(super) fn runs(results: &[sample::Result]) -> Study<'_> {
    let numbers = || (1..=results.len()).map(|number| number.to_string());
    let part = |(number, judged)| {
        let judged: linerate_explain::diff::Judged<'_> = judged;
        let saved = Some("2026-11-22T10-31-07-brook");
        let made = Made { record: judged.record, saved, found: Found::Run(Box::new(judged)) };
        Part { values: vec![number], made: Ok(made) }
    };
    let parts = numbers().zip(judged(results)).map(part).collect();
    Study::new(Some("brook"), &[Axis::of(RUN, numbers())], parts)
}

pub(super) fn layers() -> [Axis; 2] {
    let all =
        |name, values: &[&str]| Axis::of(name, values.iter().map(|value| (*value).to_owned()));
    [
        all(LAYERS, &["verbs", "sockets", "program", "preload"]),
        all(PART, &["64 B", "4 KiB", "forward", "reverse"]),
    ]
}

fn trips(layer: &str, size: &str, nanos: f64) -> Point {
    let entry = |percent: f64, nanos| {
        let of = Subject { percentile: Some(percent), ..Subject::default() };
        Entry::bare(&LATENCY, of, nanos)
    };
    let entries = vec![entry(50.0, nanos), entry(99.0, 1.5 * nanos)];
    Point::new(vec![layer.to_owned(), size.to_owned()], 5000, entries)
}

fn load(layer: &str, direction: Direction, rate: f64, cost: f64) -> Point {
    let of = Subject::load(direction);
    let cpu = |side| Entry::bare(&CPU, Subject { side: Some(side), ..of }, cost);
    let entries = vec![
        Entry::bare(&GOODPUT, of, rate),
        cpu(Side::Near),
        cpu(Side::Far),
        Entry::bare(&CEILING, of, rate / 97.5e9),
    ];
    Point::new(vec![layer.to_owned(), direction.name().to_owned()], 1, entries)
}

/// The points of three layers; the preload, the fourth layer, is not installed.
pub(super) fn of_layers() -> Vec<Point> {
    let layer = |name, nanos, rate| {
        let sizes = [("64 B", 64.0), ("4 KiB", 4096.0)];
        let timed = sizes.map(|(size, more)| trips(name, size, nanos + more));
        let loads = Direction::ALL.map(|way| load(name, way, rate, 8e9 / rate));
        timed.into_iter().chain(loads)
    };
    let verbs = layer("verbs", 3200.0, 97.1e9);
    let sockets = layer("sockets", 21_000.0, 36.4e9);
    verbs.chain(sockets).chain(layer("program", 24_000.0, 31.2e9)).collect()
}
