//! Documents as text: wrapped to a width, aligned under labels, in colour if requested.

use std::mem;

use super::inline::clean;
use super::table::Row;
use super::{Block, Columns, Entry, Item, LABEL, NARROW, Rank, Spans, Table, Tone};

/// How text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Characters of a line; fewer than 20 count as 20.
    pub width: usize,
    /// Whether bold and colour may be used.
    pub color: bool,
}

impl Style {
    /// The style for a pipe or a file: 80 columns, plain.
    pub const PLAIN: Self = Self { width: 80, color: false };
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Good => "\x1b[1;32m",
            Self::Warning => "\x1b[1;33m",
        }
    }
}

/// The mark before evidence.
const BULLET: &str = "- ";

pub(super) fn render(blocks: &[Block], style: Style) -> String {
    let width = style.width.max(20);
    let mut page = Page { style: Style { width, ..style }, text: String::new() };
    page.blocks(blocks);
    page.text
}

/// A page of text that is written line by line.
struct Page {
    style: Style,
    text: String,
}

impl Page {
    fn is_narrow(&self) -> bool {
        self.style.width < NARROW
    }

    fn columns(&self, columns: Columns) -> usize {
        if self.is_narrow() || self.is_short_of(columns.wide) {
            columns.narrow
        } else {
            columns.wide
        }
    }

    /// Whether less than a third of the line remains after `column`, such as after a name of 63 characters.
    fn is_short_of(&self, column: usize) -> bool {
        column + self.style.width / 3 > self.style.width
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Gap => self.gap(),
                Block::Heading(_, text) => self.wrap(&[(Tone::Strong, text.clone())], 0, 0),
                Block::Line { body, hang } => self.wrap(body, 0, *hang),
                Block::Entry(entry) => self.entry(entry),
                Block::Command(entry) => self.command(entry),
                Block::Item(item) => self.item(item),
                Block::Table(table) => self.table(table),
            }
        }
    }

    /// Writes an empty line, unless the page ends in one or is empty.
    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Writes a label and its text. The text is wrapped to the right of the label; on a narrow page it goes below.
    fn entry(&mut self, entry: &Entry) {
        let Entry { label, body, .. } = entry;
        let indent = if self.is_narrow() {
            if !label.is_empty() {
                self.paint(Tone::Strong, label);
                self.text.push('\n');
            }
            self.text.push_str("  ");
            2
        } else {
            self.paint(Tone::Strong, label);
            let pad = LABEL.saturating_sub(width_of(label)).max(1);
            self.space(pad);
            LABEL
        };
        if entry.rank == Rank::Evidence {
            let mut marked = vec![(Tone::Dim, BULLET.to_owned())];
            marked.extend_from_slice(body);
            self.wrap(&marked, indent, indent + entry.hang);
        } else {
            self.wrap(body, indent, indent + entry.hang);
        }
    }

    /// Writes a command alone on a line, unwrapped and without a margin, so that it can be copied.
    fn command(&mut self, entry: &Entry) {
        if !entry.label.is_empty() {
            self.paint(Tone::Strong, &entry.label);
            self.text.push('\n');
        }
        self.put(&entry.body);
        self.text.push('\n');
    }

    /// Writes an unwrapped heading and wrapped text to its right; or the text below a heading that leaves too
    /// little space.
    fn item(&mut self, item: &Item) {
        let hang = self.columns(item.hang);
        let mut head = " ".repeat(self.columns(item.margin));
        if item.head.is_empty() {
            self.text.push_str(&head);
            return self.wrap(&item.body, width_of(&head), hang);
        }
        for (i, (cell, least)) in item.head.iter().enumerate() {
            if i > 0 {
                head.push_str("  ");
            }
            head.push_str(cell);
            let pad = self.columns(*least).saturating_sub(width_of(cell));
            head.extend(std::iter::repeat_n(' ', pad));
        }
        let column = width_of(&head) + 2;
        let body: usize = item.body.iter().map(|(_, text)| width_of(text)).sum();
        if self.is_short_of(column) && column + body > self.style.width {
            self.paint(item.tone, head.trim_end());
            self.text.push('\n');
            self.space(hang);
            return self.wrap(&item.body, hang, hang);
        }
        self.paint(item.tone, &head);
        self.text.push_str("  ");
        self.wrap(&item.body, column, hang);
    }

    fn table(&mut self, table: &Table) {
        let is_narrow = self.style.width < table.least;
        if is_narrow {
            self.blocks(&table.narrow);
        } else if !table.head.is_empty() {
            self.row(&table.head, &table.widths);
        }
        for row in &table.rows {
            match &row.entry {
                Some(entry) if is_narrow || !self.fits(row, &table.widths) => self.entry(entry),
                _ if is_narrow => {}
                _ => self.row(&row.cells, &table.widths),
            }
            self.blocks(&row.below);
        }
    }

    /// Whether each cell is shorter than its column, and the last cell fits into its own.
    fn fits(&self, row: &Row, widths: &[usize]) -> bool {
        let mut at = 0;
        row.cells.iter().zip(widths).enumerate().all(|(i, (cell, width))| {
            let taken = width_of(&cell.1);
            let (from, is_last) = (at, i + 1 == row.cells.len());
            at += width;
            match width {
                0 => from + taken <= self.style.width,
                width if is_last => taken <= *width,
                width => taken < *width,
            }
        })
    }

    /// Writes the words of `body`. `column` characters of this line are used; further lines begin at `indent`.
    fn wrap(&mut self, body: &[(Tone, String)], column: usize, indent: usize) {
        let (mut at, mut space) = (column, false);
        // The line so far, as runs of equal tone.
        let mut line: Spans = Vec::new();
        for (tone, text) in body {
            let mut words = words(text).into_iter().peekable();
            while let Some(word) = words.next() {
                let width = width_of(&word);
                if width > 0 {
                    if !line.is_empty() && at + usize::from(space) + width > self.style.width {
                        self.put(&mem::take(&mut line));
                        self.text.push('\n');
                        self.space(indent);
                        (at, space) = (indent, false);
                    }
                    let gap = if mem::take(&mut space) { " " } else { "" };
                    match line.last_mut() {
                        Some((last, run)) if last == tone => {
                            run.push_str(gap);
                            run.push_str(&word);
                        }
                        Some((_, run)) => {
                            run.push_str(gap);
                            line.push((*tone, word));
                        }
                        None => line.push((*tone, word)),
                    }
                    at += gap.len() + width;
                }
                space |= words.peek().is_some() && !line.is_empty();
            }
        }
        self.put(&line);
        self.text.push('\n');
    }

    fn put(&mut self, line: &[(Tone, String)]) {
        for (tone, run) in line {
            self.paint(*tone, run);
        }
    }

    /// Writes cells in columns of `widths` characters; the last cell is not padded.
    fn row(&mut self, cells: &[(Tone, String)], widths: &[usize]) {
        for (i, ((tone, cell), width)) in cells.iter().zip(widths).enumerate() {
            self.paint(*tone, cell);
            if i + 1 < cells.len() {
                let pad = width.saturating_sub(width_of(cell)).max(1);
                self.space(pad);
            }
        }
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        self.text.push('\n');
    }

    fn space(&mut self, columns: usize) {
        self.text.extend(std::iter::repeat_n(' ', columns));
    }

    fn paint(&mut self, tone: Tone, text: &str) {
        let clean = text.chars().map(clean);
        if self.style.color && tone != Tone::Plain && !text.is_empty() {
            self.text.push_str(tone.code());
            self.text.extend(clean);
            self.text.push_str("\x1b[0m");
        } else {
            self.text.extend(clean);
        }
    }
}

/// Splits text into pieces that are never wrapped: a number keeps its unit, and a quote stays in one piece, so that
/// commands can be copied.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut quoted = None;
    for piece in text.split(' ') {
        let unit = UNITS.contains(&piece.trim_end_matches([',', ';', '.', ':', ')']));
        match words.last_mut() {
            Some(last)
                if quoted.is_some() || (unit && last.ends_with(|c: char| c.is_ascii_digit())) =>
            {
                last.push(' ');
                last.push_str(piece);
            }
            _ => words.push(piece.to_owned()),
        }
        quoted = match quoted {
            Some(quote) if piece.contains(quote) => None,
            Some(quote) => Some(quote),
            None => opened(piece),
        };
    }
    words
}

/// The quotation mark that a word opens and does not close; `None` for an apostrophe inside a word.
fn opened(word: &str) -> Option<char> {
    ['\'', '"'].into_iter().find(|quote| {
        let opens = word.starts_with(*quote) || word.contains(&format!("={quote}"));
        opens && word.matches(*quote).count() == 1
    })
}

const UNITS: &[&str] = &[
    "%", "B", "KiB", "MiB", "GiB", "b/s", "kb/s", "Mb/s", "Gb/s", "B/s", "kB/s", "MB/s", "GB/s",
    "/s", "k/s", "M/s", "ns", "us", "ms", "s", "ns/B", "kHz", "MHz", "GHz", "MT/s", "GT/s",
];

/// Width of a text in characters. Wide and combining characters count as one, which is not right.
pub(crate) fn width_of(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_units_and_quotes_their_words() {
        let kept = |text| words(text).len();
        assert_eq!(kept("99.8 % of 9.41 Gb/s, it"), 4);
        assert_eq!(kept("sysctl -w a='1 2 3' b"), 4);
        assert_eq!(kept("the receiver's window"), 3);
        assert_eq!(kept("a's b ' c"), 3);
    }
}
