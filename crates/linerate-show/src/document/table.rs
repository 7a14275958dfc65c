//! Tables, and the entries that replace them on text pages that are too narrow.

use super::{Block, Document, Entry, Item, Span, Spans, kept};

/// A head, and rows of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Columns of text of each cell in a row, with the space behind it. The last may be 0: all that is left.
    pub(super) widths: Vec<usize>,
    pub(super) head: Spans,
    pub(super) rows: Vec<Row>,
    /// A page of text that is narrower shows `narrow`, and the entries of the rows.
    pub(super) least: usize,
    pub(super) narrow: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cells: Spans,
    /// The entry that replaces the cells if they do not fit.
    pub(super) entry: Option<Entry>,
    /// The details of the row, below it.
    pub(super) below: Vec<Block>,
}

impl Table {
    pub fn new(widths: &[usize]) -> Self {
        Self {
            widths: widths.to_vec(),
            head: Vec::new(),
            rows: Vec::new(),
            least: 0,
            narrow: Vec::new(),
        }
    }

    #[must_use]
    pub fn head(mut self, cells: &[Span<'_>]) -> Self {
        self.head = kept(cells);
        self
    }

    /// The least number of columns of a page for a table; a narrower page shows the entries of the rows.
    #[must_use]
    pub fn least(mut self, columns: usize) -> Self {
        self.least = columns;
        self
    }

    /// Sets the text that a page too narrow for the table shows before the entries of the rows.
    #[must_use]
    pub fn narrow(mut self, instead: Document) -> Self {
        self.narrow = instead.blocks;
        self
    }

    /// A row that is set whatever its width.
    pub fn row(&mut self, cells: &[Span<'_>]) {
        self.push(cells, None);
    }

    /// A row, and the entry that replaces it if it does not fit.
    pub(crate) fn row_or(&mut self, cells: &[Span<'_>], entry: Entry) {
        self.push(cells, Some(entry));
    }

    fn push(&mut self, cells: &[Span<'_>], entry: Option<Entry>) {
        self.rows.push(Row { cells: kept(cells), entry, below: Vec::new() });
    }

    /// An item that belongs to the last row.
    pub fn below(&mut self, item: Item) {
        if let Some(row) = self.rows.last_mut() {
            row.below.push(Block::Item(item));
        }
    }
}
