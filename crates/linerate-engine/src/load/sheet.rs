//! A table of readings while it grows, row by row.

use linerate_core::metric::Metric;
use linerate_core::record::{Column, Table};

/// Rows of one source about one subject. A column in which any value was unknown is left out in
/// the end: a table has no holes.
#[derive(Debug)]
pub(crate) struct Sheet {
    source: &'static str,
    subject: String,
    at: Vec<u64>,
    columns: Vec<(Metric, Vec<i64>)>,
}

impl Sheet {
    pub(crate) fn new(source: &'static str, subject: String) -> Self {
        Self {
            source,
            subject,
            at: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// Appends a row; every row must name the same metrics in the same order.
    pub(crate) fn push(&mut self, at: u64, row: impl IntoIterator<Item = (Metric, Option<i64>)>) {
        let rows = self.at.len();
        for (index, (metric, value)) in row.into_iter().enumerate() {
            if index == self.columns.len() {
                self.columns.push((metric, Vec::new()));
            }
            let values = &mut self.columns[index].1;
            // A column that once missed a value stays short, and is dropped by `take`.
            if let Some(value) = value
                && values.len() == rows
            {
                values.push(value);
            }
        }
        self.at.push(at);
    }

    /// The table so far, if it has rows and columns; the sheet is empty afterwards.
    pub(crate) fn take(&mut self) -> Option<Table> {
        let at = std::mem::take(&mut self.at);
        let columns: Vec<Column> = std::mem::take(&mut self.columns)
            .into_iter()
            .filter(|(_, values)| values.len() == at.len())
            .map(|(metric, values)| Column {
                name: metric.name.to_owned(),
                unit: metric.unit,
                kind: metric.kind,
                values,
            })
            .collect();
        (!at.is_empty() && !columns.is_empty()).then(|| Table {
            source: self.source.to_owned(),
            subject: self.subject.clone(),
            at,
            columns,
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::metric::{TCP_CWND, TCP_MIN_RTT, TCP_RTT};

    use super::*;

    #[test]
    fn a_column_with_a_hole_is_left_out_wherever_the_hole_is() {
        for hole in 0..3 {
            let mut sheet = Sheet::new("tcp", "s0/0".to_owned());
            for row in 0..3 {
                let known = (row != hole).then_some(row);
                sheet.push(
                    row as u64,
                    [
                        (TCP_RTT, Some(row)),
                        (TCP_MIN_RTT, known),
                        (TCP_CWND, Some(9)),
                    ],
                );
            }
            let table = sheet.take().unwrap();
            assert_eq!(table.column(TCP_RTT), Some([0, 1, 2].as_slice()));
            assert_eq!(table.column(TCP_MIN_RTT), None);
            assert_eq!(table.column(TCP_CWND), Some([9; 3].as_slice()));
            assert!(sheet.take().is_none());
        }
    }
}
