//! Tables under construction: one for each subject of a source.

use linerate_facts::Gap;
use linerate_facts::metric::Metric;
use linerate_record::Table;

use super::gap;
use crate::sheet::Sheet;

/// The tables of one source, by the key of their subject. The first row of a table determines its columns; a table
/// whose subject or column is missing later ends there, with a gap.
#[derive(Debug)]
pub(super) struct Sheets<K> {
    metrics: &'static [Metric],
    /// Hint for a metric that a kernel does not report.
    hint: &'static str,
    all: Vec<Keyed<K>>,
    /// Index at which the next row is expected: rows come in the same order each time.
    next: usize,
}

#[derive(Debug)]
struct Keyed<K> {
    key: K,
    sheet: Sheet,
    fresh: bool,
}

impl<K: PartialEq> Sheets<K> {
    /// Makes an empty group of tables. All `metrics` belong to one source; `hint` is for metrics that a kernel does
    /// not report.
    pub(crate) fn new(metrics: &'static [Metric], hint: &'static str) -> Self {
        Self { metrics, hint, all: Vec::new(), next: 0 }
    }

    /// Appends a row about `key`: a value for each metric, `None` if it could not be read.
    pub(crate) fn push(
        &mut self,
        key: K,
        subject: impl FnOnce() -> String,
        at: u64,
        values: &[Option<u64>],
        gaps: &mut Vec<Gap>,
    ) {
        let expected = self.all.get(self.next).is_some_and(|s| s.key == key);
        let known = expected.then_some(self.next);
        let known = known.or_else(|| self.all.iter().position(|s| s.key == key));
        let place = known.unwrap_or_else(|| {
            self.tell_missing(values, gaps);
            let source = self.metrics.first().map_or("", |m| m.source);
            self.all.push(Keyed { key, sheet: Sheet::new(source, subject()), fresh: false });
            self.all.len() - 1
        });
        self.next = place + 1;
        let keyed = &mut self.all[place];
        keyed.fresh = true;
        // Counters stay far below 2^63; a capture with larger ones must not become negative.
        let value = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        let row = self.metrics.iter().zip(values);
        let row = row.map(|(metric, v)| (*metric, v.map(value)));
        gaps.extend(keyed.sheet.push(at, row));
    }

    /// Makes a gap for each metric without a value.
    fn tell_missing(&self, values: &[Option<u64>], gaps: &mut Vec<Gap>) {
        for (metric, _) in self.metrics.iter().zip(values).filter(|(_, v)| v.is_none()) {
            let what = format!("{}.{}", metric.source, metric.name);
            gaps.push(gap(&what, "this kernel does not report it", self.hint));
        }
    }

    /// Ends the tables that got no row since the last call.
    pub(super) fn sweep(&mut self, gaps: &mut Vec<Gap>) {
        self.next = 0;
        for keyed in &mut self.all {
            if !std::mem::take(&mut keyed.fresh) {
                gaps.extend(keyed.sheet.end("is gone"));
            }
        }
    }

    /// Takes the tables made since the last call; the next rows start new ones.
    pub(crate) fn take(&mut self) -> Vec<Table> {
        self.next = 0;
        let all = std::mem::take(&mut self.all);
        let tables = all.into_iter().filter_map(|mut k| k.sheet.take());
        tables.collect()
    }
}
