//! A table of readings while it grows, row by row.

use linerate_facts::Gap;
use linerate_facts::metric::Metric;
use linerate_record::{Column, Growing, Table};

/// Rows of one source about one subject. The first row determines the columns. Each row has a value in every column:
/// the table ends before the first row that lacks a value.
#[derive(Debug)]
pub struct Sheet {
    source: &'static str,
    subject: String,
    at: Growing,
    columns: Vec<(Metric, Growing)>,
    ended: bool,
}

impl Sheet {
    pub fn new(source: &'static str, subject: String) -> Self {
        Self { source, subject, at: Growing::default(), columns: Vec::new(), ended: false }
    }

    /// Appends a row, which must have the same metrics in the same order each time. If the row lacks a value, the table
    /// ends before it, and a gap is returned once.
    pub fn push(
        &mut self,
        at: u64,
        row: impl IntoIterator<Item = (Metric, Option<i64>)>,
    ) -> Option<Gap> {
        if self.ended {
            return None;
        }
        let rows = self.at.len();
        let mut lacked = None;
        for (index, (metric, value)) in row.into_iter().enumerate() {
            if index == self.columns.len() {
                self.columns.push((metric, Growing::default()));
            }
            let values = &mut self.columns[index].1;
            match value {
                Some(value) if values.len() == rows => values.push(value),
                None if values.len() == rows && rows > 0 => {
                    lacked.get_or_insert(metric.name);
                }
                // A column that was absent in the first row stays empty, and is dropped by `take`.
                _ => {}
            }
        }
        let Some(metric) = lacked else {
            self.at.push(at as i64);
            return None;
        };
        let begun = self.columns.iter_mut().filter(|(_, v)| v.len() > rows);
        begun.for_each(|(_, values)| values.retract());
        self.end(&format!("no longer reports {metric}"))
    }

    /// Ends the table. Returns a gap with the reason, unless the table had ended before.
    pub(crate) fn end(&mut self, why: &str) -> Option<Gap> {
        let was_ended = std::mem::replace(&mut self.ended, true);
        (!was_ended).then(|| Gap {
            what: self.source.to_owned(),
            why: format!("{} {why}: its table ends early", self.subject),
            hint: String::new(),
        })
    }

    /// Returns the rows so far as a table, or `None` if there are no rows or columns. The sheet is empty afterwards.
    pub fn take(&mut self) -> Option<Table> {
        let at = std::mem::take(&mut self.at).into_values();
        self.ended = false;
        let columns: Vec<Column> = std::mem::take(&mut self.columns)
            .into_iter()
            .filter(|(_, values)| values.len() == at.len())
            .map(|(metric, values)| Column {
                name: metric.name.into(),
                unit: metric.unit,
                kind: metric.kind,
                values: values.into_values(),
            })
            .collect();
        (!at.is_empty() && !columns.is_empty()).then(|| Table {
            source: self.source.to_owned(),
            subject: self.subject.clone(),
            at: at.into_iter().map(|at| at as u64).collect(),
            columns,
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::metric::{TCP_CWND, TCP_MIN_RTT, TCP_RTT};

    use super::*;

    #[test]
    fn a_table_ends_before_its_first_hole_and_says_so() {
        for hole in 0..3 {
            let mut sheet = Sheet::new("tcp", "s0/0".to_owned());
            let mut gaps = Vec::new();
            for row in 0..4 {
                let known = (row != hole).then_some(row);
                gaps.extend(sheet.push(
                    row as u64,
                    [(TCP_RTT, Some(row)), (TCP_MIN_RTT, known), (TCP_CWND, Some(9))],
                ));
            }
            let table = sheet.take().unwrap();
            if hole == 0 {
                // A value that is missing in the first row makes no column.
                assert_eq!(gaps, []);
                assert_eq!(table.column(TCP_RTT), Some([0, 1, 2, 3].as_slice()));
                assert_eq!(table.column(TCP_MIN_RTT), None);
                assert_eq!(table.column(TCP_CWND), Some([9; 4].as_slice()));
            } else {
                let rows = hole as usize;
                assert_eq!(gaps.len(), 1, "{gaps:?}");
                assert!(gaps[0].why.contains(TCP_MIN_RTT.name));
                assert_eq!(table.at.len(), rows);
                assert_eq!(table.column(TCP_RTT), Some(&[0, 1, 2][..rows]));
                assert_eq!(table.column(TCP_MIN_RTT), Some(&[0, 1, 2][..rows]));
                assert_eq!(table.column(TCP_CWND), Some(&[9; 3][..rows]));
            }
            assert!(sheet.take().is_none());
        }
    }
}
