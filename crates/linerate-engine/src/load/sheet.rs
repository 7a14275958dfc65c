//! A table of readings while it grows, row by row.

use linerate_core::facts::Gap;
use linerate_core::metric::Metric;
use linerate_core::record::{Column, Table};

/// Rows of one source about one subject. The first row decides which columns there are; the table
/// ends before the first row that lacks one of them: a table has no holes.
#[derive(Debug)]
pub(crate) struct Sheet {
    source: &'static str,
    subject: String,
    at: Vec<u64>,
    columns: Vec<(Metric, Vec<i64>)>,
    /// What the row lacked that ended the table.
    lacked: Option<&'static str>,
}

impl Sheet {
    pub(crate) fn new(source: &'static str, subject: String) -> Self {
        Self {
            source,
            subject,
            at: Vec::new(),
            columns: Vec::new(),
            lacked: None,
        }
    }

    /// Appends a row; every row must name the same metrics in the same order.
    pub(crate) fn push(&mut self, at: u64, row: impl IntoIterator<Item = (Metric, Option<i64>)>) {
        let rows = self.at.len();
        if self.lacked.is_some() {
            return;
        }
        for (index, (metric, value)) in row.into_iter().enumerate() {
            if index == self.columns.len() {
                self.columns.push((metric, Vec::new()));
            }
            let values = &mut self.columns[index].1;
            match value {
                Some(value) if values.len() == rows => values.push(value),
                None if values.len() == rows && rows > 0 => {
                    self.lacked.get_or_insert(metric.name);
                }
                // A column that the first row did not have stays empty, and is dropped by `take`.
                _ => {}
            }
        }
        if self.lacked.is_some() {
            self.columns.iter_mut().for_each(|(_, v)| v.truncate(rows));
        } else {
            self.at.push(at);
        }
    }

    /// A gap if the table ended before the step did.
    pub(crate) fn ended(&self) -> Option<Gap> {
        let metric = self.lacked?;
        Some(Gap {
            what: self.source.to_owned(),
            why: format!(
                "{} of {} can no longer be read: the table ends early",
                metric, self.subject
            ),
            hint: String::new(),
        })
    }

    /// The table so far, if it has rows and columns; the sheet is empty afterwards.
    pub(crate) fn take(&mut self) -> Option<Table> {
        let at = std::mem::take(&mut self.at);
        self.lacked = None;
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
    fn a_table_ends_before_its_first_hole_and_says_so() {
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
            let gap = sheet.ended();
            let table = sheet.take().unwrap();
            if hole == 0 {
                // What the first row lacks is no column.
                assert_eq!(gap, None);
                assert_eq!(table.column(TCP_RTT), Some([0, 1, 2].as_slice()));
                assert_eq!(table.column(TCP_MIN_RTT), None);
                assert_eq!(table.column(TCP_CWND), Some([9; 3].as_slice()));
            } else {
                let rows = hole as usize;
                assert!(gap.unwrap().why.contains(TCP_MIN_RTT.name));
                assert_eq!(table.at.len(), rows);
                assert_eq!(table.column(TCP_RTT), Some(&[0, 1, 2][..rows]));
                assert_eq!(table.column(TCP_MIN_RTT), Some(&[0, 1, 2][..rows]));
                assert_eq!(table.column(TCP_CWND), Some(&[9; 3][..rows]));
            }
            assert_eq!(sheet.ended(), None);
            assert!(sheet.take().is_none());
        }
    }
}
