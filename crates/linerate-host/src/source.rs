//! The interface of all sources of readings.

use linerate_facts::Gap;
use linerate_facts::metric::Metric;
use linerate_record::Table;

use super::Machine;
use super::sheets::{Key, Sheets};

/// A source reads one part of the machine repeatedly.
pub(super) trait Source: Send {
    /// Returns the number of rows of the sampler per reading of this source: some readings are costly for the machine.
    fn every(&self) -> usize {
        1
    }
    /// Returns the hint for a metric that the kernel does not report.
    fn hint(&self) -> &'static str {
        ""
    }
    /// Appends a row to each table of the source. If it returns a gap, the source is not read again until its tables
    /// are taken; a gap that is added to the row does not stop the source.
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap>;
    /// Is called when the tables were taken: the next row begins new tables.
    fn taken(&mut self) {}
}

/// A row of all tables of one source, while it is read.
pub(super) struct Row<'a> {
    pub(super) machine: &'a dyn Machine,
    /// Number of the sampler's rows before this one since the tables were taken, including those in which the source
    /// was not read.
    pub(super) number: usize,
    /// Time of the row in nanoseconds.
    pub(super) at: u64,
    pub(super) sheets: &'a mut Sheets,
    pub(super) gaps: &'a mut Vec<Gap>,
}

impl Row<'_> {
    /// Appends the values of `metrics` to the table of the subject with this key. `None` is a value that could not be
    /// read.
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
    /// Number of the sampler's rows since the tables were taken.
    rows: usize,
    ended: bool,
}

impl Slot {
    pub(super) fn new(source: impl Source + 'static) -> Self {
        let sheets = Sheets::new(source.hint());
        Self { source: Box::new(source), sheets, rows: 0, ended: false }
    }

    /// Reads the source for a row of the sampler, if a reading is due.
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

    /// Takes the tables made since the last call. A source that stopped with a gap is read again afterwards.
    pub(super) fn take(&mut self) -> Vec<Table> {
        self.ended = false;
        self.rows = 0;
        self.source.taken();
        self.sheets.take()
    }
}
