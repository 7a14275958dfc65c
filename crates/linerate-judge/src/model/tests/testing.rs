//! Readings for tests of the model.

use super::TrialModel;
use super::readings::Window;
use linerate_facts::metric::Metric;
use linerate_plan::Knobs;
use linerate_plan::path::Direction;
use linerate_record::{Column, Table, TrialPlan};
use linerate_units::stats::Interval;

/// A window of the whole second that the readings cover.
pub(super) const WHOLE: Window = Window { from: 0, to: 1_000_000_000 };

/// A trial whose change had an effect.
pub(super) fn trial() -> TrialModel {
    let plan = TrialPlan {
        id: 0,
        kind: "more-streams".to_owned(),
        direction: Direction::Forward,
        before: Knobs::default(),
        after: Knobs::default(),
        max_blocks: 1,
    };
    let effect = Interval { mid: 2.0, low: 1.9, high: 2.1 };
    TrialModel {
        plan,
        effect: Some(effect),
        slices: 4,
        goodput: [0.0; 2],
        cost: [None; 2],
        lost: [None; 2],
        changed: None,
        loss: None,
        latency: None,
    }
}

/// A table with the readings of a subject before and after one second.
pub(super) fn table(subject: &str, columns: &[(Metric, [i64; 2])]) -> Table {
    let column = |(metric, values): &(Metric, [i64; 2])| Column {
        name: metric.name.into(),
        unit: metric.unit,
        kind: metric.kind,
        values: values.to_vec(),
    };
    Table {
        source: columns[0].0.source.to_owned(),
        subject: subject.to_owned(),
        at: vec![0, 1_000_000_000],
        columns: columns.iter().map(column).collect(),
    }
}
