//! Access to the readings of one end: differences of counters, and means of gauges, over the part of a step that
//! counts.

use std::ops::Range;

use linerate_facts::metric::Metric;
use linerate_record::{Step, Table};

/// The part of a step that counts, in nanoseconds since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Start of the window, in nanoseconds since the step began.
    pub(super) from: u64,
    /// End of the window, in nanoseconds since the step began.
    pub(super) to: u64,
}

impl Window {
    /// A window of the whole step.
    pub(super) const WHOLE: Self = Self { from: 0, to: u64::MAX };

    /// The window from the end of the wash-out to the end of the step.
    pub(super) fn of(step: &Step) -> Self {
        let from = step.plan.washout.0;
        Self { from, to: from.saturating_add(step.plan.measure.0) }
    }

    /// The part of the window from a moment within the step on.
    pub(super) fn starting(self, from: u64) -> Self {
        Self { from: from.max(self.from), to: self.to }
    }

    /// Indices of the rows in the window.
    pub(super) fn within(self, table: &Table) -> Range<usize> {
        let from = table.at.partition_point(|at| *at < self.from);
        let to = table.at.partition_point(|at| *at <= self.to);
        // Times of rows ascend in a run, but in a file they may not.
        from.min(to)..to
    }

    /// Indices of the rows nearest to the start and to the end of the window; `None` if there are fewer than two rows.
    /// If the last row is further from the end of the window than from the row before it, the end of the path had
    /// stopped for a moment, which belongs to the window: then the next row is used.
    pub(super) fn rows(self, table: &Table) -> Option<(usize, usize)> {
        let (a, b) = (nearest(&table.at, self.from)?, nearest(&table.at, self.to)?);
        let spacing = b.checked_sub(1);
        let spacing = spacing.map(|i| table.at[b].saturating_sub(table.at[i]));
        let missed = self.to.saturating_sub(table.at[b]);
        let late = spacing
            .is_some_and(|spacing| spacing > 0 && missed > spacing.saturating_add(spacing / 2));
        let b = if late { (b + 1).min(table.at.len() - 1) } else { b };
        (a < b && table.at[a] < table.at[b]).then_some((a, b))
    }
}

/// Index of the time nearest to `to` in an ascending list, the first one of equal times. It is called so often for a
/// long record that it must not scan the whole list.
fn nearest(at: &[u64], to: u64) -> Option<usize> {
    let after = at.partition_point(|t| *t < to);
    let before = after.checked_sub(1);
    let before = before.map(|i| match at[i] {
        // Equal times are rare, but a file may contain many.
        same if i > 0 && at[i - 1] == same => at.partition_point(|t| *t < same),
        _ => i,
    });
    let beside = before.into_iter().chain([after]);
    let beside = beside.filter(|i| *i < at.len());
    beside.min_by_key(|i| at[*i].abs_diff(to))
}

/// Growth of a counter over the window, and the time between the two rows in seconds. `None` for a column that falls:
/// it is no counter.
pub(super) fn growth(table: &Table, metric: Metric, window: Window) -> Option<(f64, f64)> {
    let values = table.column(metric)?;
    let (a, b) = window.rows(table)?;
    let grown = values.get(b)?.checked_sub(*values.get(a)?)?;
    let secs = (table.at[b] - table.at[a]) as f64 / 1e9;
    (grown >= 0).then_some((grown as f64, secs))
}

/// Growth of a counter per second over the window.
pub(super) fn per_second(table: &Table, metric: Metric, window: Window) -> Option<f64> {
    growth(table, metric, window).map(|(grown, secs)| grown / secs)
}

/// Values of a gauge within the window.
pub(super) fn gauge(
    table: &Table,
    metric: Metric,
    window: Window,
) -> impl DoubleEndedIterator<Item = f64> {
    let values = table.column(metric).unwrap_or_default();
    let Range { start, end } = window.within(table);
    let within = values.get(start..end.min(values.len()));
    within.unwrap_or_default().iter().map(|v| *v as f64)
}

/// Mean of the values; `None` if there are none.
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let add = |(sum, n): (f64, u32), value| (sum + value, n + 1);
    let (sum, n) = values.into_iter().fold((0.0, 0), add);
    (n > 0).then(|| sum / f64::from(n))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use linerate_facts::metric::SOCKET_UNREAD;
    use linerate_record::Column;

    fn table(at: Vec<u64>) -> Table {
        let column = Column {
            name: SOCKET_UNREAD.name.into(),
            unit: SOCKET_UNREAD.unit,
            kind: SOCKET_UNREAD.kind,
            values: at.iter().map(|t| *t as i64).collect(),
        };
        Table {
            source: SOCKET_UNREAD.source.to_owned(),
            subject: "s0/0".to_owned(),
            at,
            columns: vec![column],
        }
    }

    #[test]
    fn a_standstill_over_the_end_belongs_to_the_window() {
        let at = |last: u64| vec![0, 10, 20, 30, 40, last];
        let rows = |last| Window { from: 10, to: 60 }.rows(&table(at(last)));
        // The end had stopped: row 5 is used even if it is farther from the end of the window than row 4.
        assert_eq!(rows(90), Some((1, 5)));
        assert_eq!(rows(61), Some((1, 5)));
        // If the window ends only 10 after row 4, the end had not stopped, and row 4 is used.
        let short = Window { from: 10, to: 50 };
        assert_eq!(short.rows(&table(at(70))), Some((1, 4)));
    }

    proptest! {
        #[test]
        fn rows_are_those_that_a_look_at_each_would_find(
            mut at in prop::collection::vec(0u64..40, 0..20), from in 0u64..45, length in 0u64..45,
        ) {
            at.sort_unstable();
            let window = Window { from, to: from + length };
            let nearest = |t: u64| (0..at.len()).min_by_key(|&i| (at[i].abs_diff(t), i));
            let both = nearest(window.from).zip(nearest(window.to));
            // If the end stopped at the end of the window, the next row is used.
            let stood = |b: usize| b > 0 && at[b] > at[b - 1]
                && 2 * window.to.saturating_sub(at[b]) > 3 * (at[b] - at[b - 1]);
            let behind = |b| if stood(b) && b + 1 < at.len() { b + 1 } else { b };
            let both = both.map(|(a, b)| (a, behind(b)));
            let both = both.filter(|(a, b)| at[*a] < at[*b]);
            prop_assert_eq!(window.rows(&table(at.clone())), both);
            let within = at.iter().filter(|t| (window.from..=window.to).contains(t));
            let within: Vec<f64> = within.map(|t| *t as f64).collect();
            let found: Vec<f64> = gauge(&table(at), SOCKET_UNREAD, window).collect();
            prop_assert_eq!(found, within);
        }

        #[test]
        fn times_that_do_not_ascend_are_survived(
            at in prop::collection::vec(any::<u64>(), 0..20), from: u64, to: u64,
        ) {
            let (table, window) = (table(at), Window { from, to });
            prop_assert!(window.rows(&table).is_none_or(|(a, b)| table.at[a] < table.at[b]));
            prop_assert!(gauge(&table, SOCKET_UNREAD, window).count() <= table.at.len());
        }
    }
}
