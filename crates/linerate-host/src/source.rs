//! What every source of readings can do.

use linerate_facts::Gap;
use linerate_facts::metric::Metric;
use linerate_record::Table;

use super::Machine;
use super::sheets::{Key, Sheets};

/// A source reads one part of the machine repeatedly.
pub(super) trait Source: Send {
    /// Number of rows per reading: some readings cost the machine much.
    fn every(&self) -> usize {
        1
    }
    /// Hint for a metric that a kernel does not report.
    fn hint(&self) -> &'static str {
        ""
    }
    /// Appends a row to each table of the source. A gap as the result ends the source until its tables are taken; a gap
    /// of the row does not.
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap>;
    /// The tables were taken: the next row begins new ones.
    fn taken(&mut self) {}
}

/// A row of all tables of a source.
pub(super) struct Row<'a> {
    pub(super) machine: &'a dyn Machine,
    /// Number of rows before it since the tables were taken, whether they were due or not.
    pub(super) number: usize,
    /// Time of the row in nanoseconds.
    pub(super) at: u64,
    pub(super) sheets: &'a mut Sheets,
    pub(super) gaps: &'a mut Vec<Gap>,
}

impl Row<'_> {
    /// Appends the values of `metrics` for the subject with this key: `None` for a value that could not be read.
    pub(super) fn push(
        &mut self,
        metrics: &'static [Metric],
        key: impl Into<Key>,
        subject: impl FnOnce() -> String,
        values: &[Option<u64>],
    ) {
        self.sheets.push((metrics, key.into()), subject, self.at, values, self.gaps);
    }

    /// Ends the tables that got no row since the last call.
    pub(super) fn sweep(&mut self) {
        self.sheets.sweep(self.gaps);
    }
}

/// A source with its tables.
pub(super) struct Slot {
    source: Box<dyn Source>,
    sheets: Sheets,
    /// Number of rows that were begun.
    rows: usize,
    ended: bool,
}

impl Slot {
    pub(super) fn new(source: impl Source + 'static) -> Self {
        let sheets = Sheets::new(source.hint());
        Self { source: Box::new(source), sheets, rows: 0, ended: false }
    }

    /// Appends a row, if the source has one now.
    pub(super) fn observe(&mut self, machine: &dyn Machine, at: u64, gaps: &mut Vec<Gap>) {
        let number = self.rows;
        self.rows += 1;
        if self.ended || !number.is_multiple_of(self.source.every()) {
            return;
        }
        let mut row = Row { machine, number, at, sheets: &mut self.sheets, gaps };
        if let Err(gap) = self.source.observe(&mut row) {
            self.ended = true;
            gaps.push(gap);
        }
    }

    /// Takes the tables made since the last call. A source that ended is read again afterwards.
    pub(super) fn take(&mut self) -> Vec<Table> {
        self.ended = false;
        self.rows = 0;
        self.source.taken();
        self.sheets.take()
    }
}
