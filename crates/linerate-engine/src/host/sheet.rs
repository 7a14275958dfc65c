//! Tables under construction: one for each subject of a source.

use linerate_core::facts::Gap;
use linerate_core::metric::Metric;
use linerate_core::record::{Column, Table};

use super::gap;

/// The tables of one source by the key of their subject. The first row of a table decides which
/// columns it has; a table whose subject or column is missing later ends there, with a gap.
#[derive(Debug)]
pub(super) struct Sheets<K> {
    metrics: &'static [Metric],
    /// What helps where a kernel does not tell one of them.
    hint: &'static str,
    all: Vec<Sheet<K>>,
    /// Where the next row is expected: rows come in the same order each time.
    next: usize,
}

#[derive(Debug)]
struct Sheet<K> {
    key: K,
    table: Table,
    /// For each column of the table, its place among the source's metrics.
    places: Vec<usize>,
    fresh: bool,
    ended: bool,
}

impl<K: PartialEq> Sheets<K> {
    /// No tables yet; all `metrics` belong to one source, and `hint` helps where a kernel does not
    /// tell one of them.
    pub(super) fn new(metrics: &'static [Metric], hint: &'static str) -> Self {
        Self {
            metrics,
            hint,
            all: Vec::new(),
            next: 0,
        }
    }

    /// Appends a row about `key`: a value for each metric, `None` where it could not be read.
    pub(super) fn push(
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
            self.all
                .push(Sheet::new(key, subject(), self.metrics, values));
            self.all.len() - 1
        });
        self.next = place + 1;
        self.all[place].push(at, values, gaps);
    }

    /// A gap for each metric without a value.
    fn tell_missing(&self, values: &[Option<u64>], gaps: &mut Vec<Gap>) {
        for (metric, _) in self.metrics.iter().zip(values).filter(|(_, v)| v.is_none()) {
            let what = format!("{}.{}", metric.source, metric.name);
            gaps.push(gap(&what, "this kernel does not tell it", self.hint));
        }
    }

    /// Ends the tables that got no row since the last call.
    pub(super) fn sweep(&mut self, gaps: &mut Vec<Gap>) {
        self.next = 0;
        for sheet in &mut self.all {
            if !std::mem::take(&mut sheet.fresh) && !sheet.ended {
                sheet.end("is gone", gaps);
            }
        }
    }

    /// The tables made since the last call; the next rows start new ones.
    pub(super) fn take(&mut self) -> Vec<Table> {
        self.next = 0;
        let sheets = std::mem::take(&mut self.all);
        let tables = sheets.into_iter().map(|s| s.table);
        tables.filter(|t| !t.columns.is_empty()).collect()
    }
}

impl<K> Sheet<K> {
    fn new(key: K, subject: String, metrics: &[Metric], values: &[Option<u64>]) -> Self {
        let rows = metrics.iter().zip(values).enumerate();
        let (places, columns) = rows
            .filter(|(_, (_, value))| value.is_some())
            .map(|(place, (metric, _))| (place, column(metric)))
            .unzip();
        let source = metrics.first().map_or("", |m| m.source).to_owned();
        let table = Table {
            source,
            subject,
            at: Vec::new(),
            columns,
        };
        Self {
            key,
            table,
            places,
            fresh: false,
            ended: false,
        }
    }

    fn push(&mut self, at: u64, values: &[Option<u64>], gaps: &mut Vec<Gap>) {
        if self.ended {
            return;
        }
        self.fresh = true;
        let readable = |&place: &usize| values.get(place).is_some_and(Option::is_some);
        if !self.places.iter().all(readable) {
            self.end("can no longer be read", gaps);
            return;
        }
        self.table.at.push(at);
        for (column, &place) in self.table.columns.iter_mut().zip(&self.places) {
            // Counters stay far below 2^63; a capture that says otherwise must not turn negative.
            let value = values[place].unwrap_or_default();
            column.values.push(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }

    fn end(&mut self, how: &str, gaps: &mut Vec<Gap>) {
        self.ended = true;
        let why = format!("{} {how}: its table ends early", self.table.subject);
        gaps.push(gap(&self.table.source, &why, ""));
    }
}

fn column(metric: &Metric) -> Column {
    Column {
        name: metric.name.to_owned(),
        unit: metric.unit,
        kind: metric.kind,
        values: Vec::new(),
    }
}
