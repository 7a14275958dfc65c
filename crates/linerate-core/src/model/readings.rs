//! Questions to the readings of one end: differences of counters and means of gauges over the part
//! of a step that counts.

use crate::metric::Metric;
use crate::record::{EndReadings, Step, Table};

/// The part of a step that counts, in nanoseconds since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Start.
    pub(super) from: u64,
    /// End.
    pub(super) to: u64,
}

impl Window {
    /// From the end of the wash-out to the end of the step.
    pub(super) fn of(step: &Step) -> Self {
        let from = step.plan.washout.0;
        Self {
            from,
            to: from.saturating_add(step.plan.measure.0),
        }
    }

    /// From a moment within the step to its end.
    pub(super) fn starting(self, from: u64) -> Self {
        Self {
            from: from.max(self.from),
            to: self.to,
        }
    }

    /// Whether a moment lies within.
    pub(super) fn holds(self, at: u64) -> bool {
        (self.from..=self.to).contains(&at)
    }

    /// Indices of the rows nearest to both ends; `None` when they are not two rows.
    pub(super) fn rows(self, table: &Table) -> Option<(usize, usize)> {
        let nearest = |t: u64| (0..table.at.len()).min_by_key(|&i| (table.at[i].abs_diff(t), i));
        let (a, b) = (nearest(self.from)?, nearest(self.to)?);
        (a < b && table.at[a] < table.at[b]).then_some((a, b))
    }
}

impl EndReadings {
    /// Tables of a source whose subject satisfies `is`.
    pub(super) fn about<'a>(
        &'a self,
        source: &'a str,
        is: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Table> {
        self.tables
            .iter()
            .filter(move |t| t.source == source && is(&t.subject))
    }

    /// What a source says of one subject.
    pub(super) fn of(&self, source: &str, subject: &str) -> Option<&Table> {
        let mut tables = self.tables.iter();
        tables.find(|t| t.source == source && t.subject == subject)
    }
}

/// Growth of a counter over the window, with the time between the two rows in seconds. A counter
/// that falls is not one: `None`.
pub(super) fn growth(table: &Table, metric: Metric, window: Window) -> Option<(f64, f64)> {
    let values = table.column(metric)?;
    let (a, b) = window.rows(table)?;
    let grown = values.get(b)?.checked_sub(*values.get(a)?)?;
    let secs = (table.at[b] - table.at[a]) as f64 / 1e9;
    (grown >= 0).then_some((grown as f64, secs))
}

/// Growth per second.
pub(super) fn per_second(table: &Table, metric: Metric, window: Window) -> Option<f64> {
    growth(table, metric, window).map(|(grown, secs)| grown / secs)
}

/// Values of a gauge within the window.
pub(super) fn gauge(table: &Table, metric: Metric, window: Window) -> Vec<f64> {
    let Some(values) = table.column(metric) else {
        return Vec::new();
    };
    table
        .at
        .iter()
        .zip(values)
        .filter(|(at, _)| window.holds(**at))
        .map(|(_, v)| *v as f64)
        .collect()
}

/// Mean of what is there; `None` of nothing.
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0_u32);
    for v in values {
        sum += v;
        n += 1;
    }
    (n > 0).then(|| sum / f64::from(n))
}
