//! Notes about an output, and the quotations in them.

use linerate_record::reported::Note;

/// Largest number of notes about one output: otherwise each line that is not understood would have a note.
pub(crate) const MOST_NOTES: usize = 50;
/// Largest number of characters of a line that a note quotes.
const QUOTED: usize = 60;

/// The start of a line, as a note quotes it.
pub(crate) fn quoted(line: &str) -> String {
    let line = line.trim();
    let mut short: String = line.chars().take(QUOTED).filter(|c| !c.is_control()).collect();
    if line.chars().nth(QUOTED).is_some() {
        short.push_str("...");
    }
    short
}

/// Largest number of rows of a table that are kept.
pub(crate) const MOST_ROWS: usize = 100_000;

/// Notes of one output. Their number is bounded.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<Note>);

impl Notes {
    /// Adds a note about a line.
    pub(crate) fn at(&mut self, line: u64, what: impl Into<String>) {
        self.push(Some(line), what);
    }

    /// Adds a note about the whole output, unless the same note exists.
    pub(crate) fn whole(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.0.iter().any(|note| note.what == what) {
            self.push(None, what);
        }
    }

    /// Adds a row to `rows` or, if there are too many rows, a note.
    pub(crate) fn keep<T>(&mut self, rows: &mut Vec<T>, row: T) {
        if rows.len() < MOST_ROWS {
            rows.push(row);
        } else {
            self.whole(format!("rows after the first {MOST_ROWS} are left out"));
        }
    }

    /// Adds a note about a line that is not understood.
    pub(crate) fn strange(&mut self, line: u64, text: &str) {
        self.at(line, format!("not understood: `{}`", quoted(text)));
    }

    /// Adds a note about a line, or about the whole output, unless there are too many notes.
    pub(crate) fn push(&mut self, line: Option<u64>, what: impl Into<String>) {
        if self.0.len() < MOST_NOTES {
            self.0.push(Note { line, what: what.into() });
        }
    }

    /// Moves the notes of `more` to the end of these notes; those that are too many are dropped.
    pub(crate) fn append(&mut self, more: &mut Self) {
        let room = MOST_NOTES.saturating_sub(self.0.len());
        self.0.extend(more.0.drain(..).take(room));
    }

    /// Inserts a note about a line before all other notes.
    pub(crate) fn first(&mut self, line: u64, what: impl Into<String>) {
        self.0.truncate(MOST_NOTES - 1);
        self.0.insert(0, Note { line: Some(line), what: what.into() });
    }

    /// The text of the last note.
    pub(crate) fn last(&self) -> Option<String> {
        self.0.last().map(|note| note.what.clone())
    }
}
