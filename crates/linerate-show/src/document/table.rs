//! Tables, and the entries that replace them on text pages that are too narrow.

use super::{Block, Document, Entry, Item, Span, Spans, kept};

/// A table with an optional heading row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Width of each cell in characters, with the space after it. The last may be 0: the rest of the line.
    pub(super) widths: Vec<usize>,
    pub(super) head: Spans,
    pub(super) rows: Vec<Row>,
    /// On a page with fewer characters, `narrow` and the entries of the rows replace the table.
    pub(super) least: usize,
    pub(super) narrow: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cells: Spans,
    /// The entry that replaces the cells if the row does not fit.
    pub(super) entry: Option<Entry>,
    /// Blocks below the row, with details of it.
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

    /// Sets the least width of a page, in characters, for the table; a narrower page shows the entries of the rows.
    #[must_use]
    pub fn least(mut self, columns: usize) -> Self {
        self.least = columns;
        self
    }

    /// Sets the blocks that a page too narrow for the table shows before the entries of the rows.
    #[must_use]
    pub fn narrow(mut self, instead: Document) -> Self {
        self.narrow = instead.blocks;
        self
    }

    /// Adds a row that is shown even if it does not fit.
    pub fn row(&mut self, cells: &[Span<'_>]) {
        self.push(cells, None);
    }

    /// Adds a row, and the entry that replaces it if it does not fit.
    pub(crate) fn row_or(&mut self, cells: &[Span<'_>], entry: Entry) {
        self.push(cells, Some(entry));
    }

    fn push(&mut self, cells: &[Span<'_>], entry: Option<Entry>) {
        self.rows.push(Row { cells: kept(cells), entry, below: Vec::new() });
    }

    /// Adds an item below the last row.
    pub fn below(&mut self, item: Item) {
        if let Some(row) = self.rows.last_mut() {
            row.below.push(Block::Item(item));
        }
    }
}
