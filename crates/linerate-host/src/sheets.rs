//! Tables that grow row by row: one for each set of metrics and subject of a source.

use linerate_facts::Gap;
use linerate_facts::metric::Metric;
use linerate_record::Table;

use super::gap;
use crate::sheet::Sheet;

/// Key by which a source finds the table of a subject.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Numbers that the kernel uses, such as of a CPU, a port or a discipline.
    Number([u32; 3]),
    /// A name, such as that of a counter.
    Name(String),
}

impl From<()> for Key {
    fn from((): ()) -> Self {
        Self::Number([0; 3])
    }
}

impl From<u32> for Key {
    fn from(number: u32) -> Self {
        Self::Number([number, 0, 0])
    }
}

impl From<[u32; 3]> for Key {
    fn from(numbers: [u32; 3]) -> Self {
        Self::Number(numbers)
    }
}

impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

/// The tables of one source, by their metrics and the key of their subject. The first row of a table determines its
/// columns. If its subject or a column is missing later, the table ends there, with a gap.
#[derive(Debug)]
pub(super) struct Sheets {
    /// Hint of the gap for a metric that the kernel does not report.
    hint: &'static str,
    all: Vec<Keyed>,
    /// Index of the table that is expected to get the next row: a source appends rows in the same order each time.
    next: usize,
}

#[derive(Debug)]
struct Keyed {
    metrics: &'static [Metric],
    key: Key,
    sheet: Sheet,
    fresh: bool,
}

/// The metrics of a table, all of one source, and the key of its subject.
pub(super) type Of = (&'static [Metric], Key);

impl Keyed {
    fn is(&self, (metrics, key): &Of) -> bool {
        let names = |metrics: &'static [Metric]| metrics.iter().map(|metric| metric.name);
        self.key == *key && names(self.metrics).eq(names(metrics))
    }
}

impl Sheets {
    /// Makes an empty group of tables; `hint` is for metrics that the kernel does not report.
    pub(super) fn new(hint: &'static str) -> Self {
        Self { hint, all: Vec::new(), next: 0 }
    }

    /// Appends a row to the table `of`: a value for each metric, `None` if it could not be read.
    pub(super) fn push(
        &mut self,
        of: Of,
        subject: impl FnOnce() -> String,
        at: u64,
        values: &[Option<u64>],
        gaps: &mut Vec<Gap>,
    ) {
        let expected = self.all.get(self.next).is_some_and(|keyed| keyed.is(&of));
        let known = expected.then_some(self.next);
        let known = known.or_else(|| self.all.iter().position(|keyed| keyed.is(&of)));
        let place = known.unwrap_or_else(|| {
            let (metrics, key) = of;
            self.tell_missing(metrics, values, gaps);
            let source = metrics.first().map_or("", |m| m.source);
            self.all.push(Keyed {
                metrics,
                key,
                sheet: Sheet::new(source, subject()),
                fresh: false,
            });
            self.all.len() - 1
        });
        self.next = place + 1;
        let keyed = &mut self.all[place];
        keyed.fresh = true;
        // Counters stay far below 2^63, but a capture may contain larger values, which must not become negative.
        let value = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        let row = keyed.metrics.iter().zip(values);
        let row = row.map(|(metric, v)| (*metric, v.map(value)));
        gaps.extend(keyed.sheet.push(at, row));
    }

    /// Adds a gap for each metric that has no value in the first row.
    fn tell_missing(&self, metrics: &[Metric], values: &[Option<u64>], gaps: &mut Vec<Gap>) {
        for (metric, _) in metrics.iter().zip(values).filter(|(_, v)| v.is_none()) {
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

    /// Takes the tables made since the last call; later rows start new tables.
    pub(super) fn take(&mut self) -> Vec<Table> {
        self.next = 0;
        let all = std::mem::take(&mut self.all);
        let tables = all.into_iter().filter_map(|mut k| k.sheet.take());
        tables.collect()
    }
}
