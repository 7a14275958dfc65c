//! Readings that tests of the model are made from.

use super::readings::Window;
use crate::metric::Metric;
use crate::record::{Column, Table};

/// The whole second.
pub(super) const WHOLE: Window = Window {
    from: 0,
    to: 1_000_000_000,
};

/// The readings of a subject before and after a second.
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
