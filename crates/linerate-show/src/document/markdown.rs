//! Documents as Markdown in GitHub's flavour: headings, lists, tables and fenced commands. The text has no
//! colour, is not wrapped, and is readable as plain text.
//!
//! A label is an item of a list. The value of a label follows on the same line, or in items below it if there
//! are several; details of a value are items below the value.

use super::inline::{block, clean, inline};
use super::table::Row;
use super::{Block, Entry, Heading, Item, Rank, Spans, Table, Tone, width_of};

pub(super) fn render(blocks: &[Block]) -> String {
    let mut page = Page::default();
    page.blocks(blocks);
    page.text
}

/// Kind of the block that was written last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    /// An item of a list; the next item follows without an empty line.
    Item,
    /// A block that needs an empty line after it.
    Other,
}

#[derive(Default)]
struct Page {
    text: String,
    last: Last,
    /// Depth in the list at which the values of the last label are written.
    value: usize,
}

impl Page {
    fn blocks(&mut self, blocks: &[Block]) {
        let mut rest = blocks;
        while let [first, behind @ ..] = rest {
            rest = behind;
            match first {
                Block::Gap => {}
                Block::Heading(Heading::Title, text) => self.heading("#", text),
                Block::Heading(Heading::Part, text) => self.heading("##", text),
                Block::Line { body, .. } => self.apart(&block(body)),
                Block::Entry(entry) => self.entry(entry, behind),
                Block::Command(entry) => rest = self.commands(entry, behind),
                Block::Item(item) => self.item(item),
                Block::Table(table) => self.table(table),
            }
        }
    }

    /// Writes lines that are not part of a list.
    fn apart(&mut self, lines: &str) {
        if self.last != Last::Nothing {
            self.text.push('\n');
        }
        self.text.push_str(lines);
        self.text.push('\n');
        (self.last, self.value) = (Last::Other, 0);
    }

    /// Writes an item of a list. Further lines of the item are indented like its first line.
    fn list(&mut self, depth: usize, lines: &str) {
        if self.last == Last::Other {
            self.text.push('\n');
        }
        let mut lead = format!("{}- ", "  ".repeat(depth));
        for line in lines.split('\n') {
            let line = format!("{lead}{line}");
            self.text.push_str(line.trim_end());
            self.text.push('\n');
            lead = "  ".repeat(depth + 1);
        }
        self.last = Last::Item;
    }

    fn heading(&mut self, marks: &str, text: &str) {
        let mut line = format!("{marks} {}", inline(&[(Tone::Plain, text.to_owned())]));
        // Markdown would drop `#` characters at the end of a heading.
        if text.ends_with('#') {
            line.insert(line.len() - 1, '\\');
        }
        self.apart(line.trim_end());
    }

    fn entry(&mut self, entry: &Entry, behind: &[Block]) {
        let Entry { label, body, .. } = entry;
        if label.is_empty() {
            self.list(self.depth(entry), &block(body));
        } else if has_more(behind) {
            self.label(label);
            self.list(self.depth(entry), &block(body));
        } else {
            self.value = 0;
            self.list(0, &beside(Tone::Strong, label, body));
        }
    }

    /// Writes a label without a value: its values follow as items below it.
    fn label(&mut self, label: &str) {
        self.list(0, &beside(Tone::Strong, label, &Vec::new()));
        self.value = 1;
    }

    fn depth(&self, entry: &Entry) -> usize {
        match entry.rank {
            Rank::Value => self.value,
            Rank::Detail | Rank::Evidence => self.value + 1,
        }
    }

    /// Writes a command and the commands directly after it as one code block. Returns the remaining blocks.
    fn commands<'a>(&mut self, first: &Entry, mut behind: &'a [Block]) -> &'a [Block] {
        if !first.label.is_empty() {
            self.label(&first.label);
        }
        let mut lines = vec![command(first)];
        while let [Block::Command(next), rest @ ..] = behind
            && next.label.is_empty()
            && next.rank == first.rank
        {
            lines.push(command(next));
            behind = rest;
        }
        let text = lines.join("\n");
        let longest = text.split(|c| c != '`').map(str::len).max();
        let fence = "`".repeat(longest.map_or(3, |n| (n + 1).max(3)));
        self.list(self.depth(first), &format!("{fence}sh\n{text}\n{fence}"));
        behind
    }

    fn item(&mut self, item: &Item) {
        let cells = item.head.iter().map(|(cell, _)| cell.trim());
        let head: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
        if item.depth == 0 {
            self.value = 0;
        }
        if head.is_empty() {
            self.list(item.depth, &block(&item.body));
        } else {
            let head = head.join(", ");
            self.list(item.depth, &beside(item.tone, &head, &item.body));
        }
    }

    /// Writes a table. A table without a heading row becomes a list, if all its rows have entries.
    fn table(&mut self, table: &Table) {
        let entries = table.rows.iter().map(|row| row.entry.as_ref());
        let entries: Option<Vec<&Entry>> = entries.collect();
        match entries.filter(|_| table.head.is_empty()) {
            Some(entries) => {
                for (entry, row) in entries.into_iter().zip(&table.rows) {
                    self.entry(entry, &row.below);
                    self.blocks(&row.below);
                }
            }
            None => self.grid(table),
        }
    }

    fn grid(&mut self, table: &Table) {
        let cells = |spans: &Spans| -> Vec<String> {
            let one = |span: &(Tone, String)| inline(std::slice::from_ref(span));
            spans.iter().map(one).collect()
        };
        // Markdown itself emphasizes a heading row.
        let head = table.head.iter().map(|(_, text)| (Tone::Plain, text.clone()));
        let mut lines = vec![cells(&head.collect())];
        lines.extend(table.rows.iter().map(|row| cells(&row.cells)));
        self.apart(&grid(&lines));
        for Row { cells, below, .. } in &table.rows {
            if let (Some((_, label)), false) = (cells.first(), below.is_empty()) {
                self.label(label);
                self.blocks(below);
            }
        }
    }
}

/// Whether further values of the same label follow.
fn has_more(behind: &[Block]) -> bool {
    for block in behind {
        match block {
            Block::Entry(entry) | Block::Command(entry) if entry.rank == Rank::Value => {
                return entry.label.is_empty();
            }
            Block::Item(item) if item.depth == 0 => return false,
            Block::Gap | Block::Entry(_) | Block::Command(_) | Block::Item(_) => {}
            Block::Heading(..) | Block::Line { .. } | Block::Table(_) => return false,
        }
    }
    false
}

/// A label and its text on one line: `**label:** text`.
fn beside(tone: Tone, label: &str, body: &Spans) -> String {
    let label = label.trim_end().trim_end_matches(':');
    let mut spans = vec![(tone, format!("{label}:")), (Tone::Plain, " ".to_owned())];
    spans.extend_from_slice(body);
    block(&spans)
}

/// The text of a command on one line, as users type it.
fn command(entry: &Entry) -> String {
    let text: String = entry.body.iter().map(|(_, text)| text.as_str()).collect();
    text.trim().chars().map(clean).collect()
}

/// Rows of cells as a Markdown table with aligned columns, with a rule below the first row.
fn grid(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let width = |column| {
        let widths = rows.iter().map(|row| width_of(&cell(row, column)));
        widths.max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &[String]| {
        let cells = widths.iter().enumerate();
        let cells = cells.map(|(column, width)| format!("| {:width$} ", cell(row, column)));
        cells.collect::<String>() + "|"
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut lines: Vec<String> = rows.iter().map(|row| line(row)).collect();
    lines.insert(1.min(lines.len()), line(&rule));
    lines.join("\n")
}
