//! Documents: the content of a result, as typed blocks. Each command builds a document, and a renderer lays it out.
//! A document does not depend on width, colour or markup, except for hints on the layout of text, which other
//! renderers ignore.

mod inline;
mod markdown;
mod table;
mod text;

pub use inline::{clean, cleaned, one_line, shortened};
pub use table::Table;
pub use text::Style;
pub(crate) use text::width_of;

/// The meaning of a piece of text; the renderer decides how to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// Names, and what a reader should look at first.
    Strong,
    /// Details, which a reader may skip.
    Dim,
    /// A state that is as it should be, or a certain result.
    Good,
    /// A problem, or something unknown.
    Warning,
}

/// A piece of text with its meaning, borrowed by the caller.
pub type Span<'a> = (Tone, &'a str);

/// Spans that a document owns.
type Spans = Vec<(Tone, String)>;

fn kept(spans: &[Span<'_>]) -> Spans {
    let owned = |&(tone, text): &Span<'_>| (tone, text.to_owned());
    spans.iter().map(owned).collect()
}

/// Width in characters of the column of labels.
pub(crate) const LABEL: usize = 16;
/// Width in characters below which text pages put labels on their own lines.
pub const NARROW: usize = 48;

/// A number of characters on a line: for most pages, and for pages narrower than [`NARROW`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Columns {
    pub(crate) wide: usize,
    pub(crate) narrow: usize,
}

impl From<usize> for Columns {
    fn from(both: usize) -> Self {
        Self { wide: both, narrow: both }
    }
}

impl Columns {
    /// Adds `more` characters, on wide and on narrow pages.
    #[must_use]
    pub fn plus(self, more: usize) -> Self {
        Self { wide: self.wide + more, narrow: self.narrow + more }
    }
}

/// A block of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    /// Empty line before the next block; never two in a row, and none at the start.
    Gap,
    Heading(Heading, String),
    /// A paragraph; lines after the first are indented by `hang` characters.
    Line {
        body: Spans,
        hang: usize,
    },
    Entry(Entry),
    /// An entry whose text is a command to copy.
    Command(Entry),
    Item(Item),
    Table(Table),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    /// The heading of the whole document.
    Title,
    Part,
}

/// How an entry relates to the one above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// A value of the entry's label; without a label, one more value of the label above.
    Value,
    /// A detail of the value above.
    Detail,
    /// A detail that supports the value above.
    Evidence,
}

/// A label with a value, or one more value or a detail of an entry above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    label: String,
    rank: Rank,
    body: Spans,
    /// Characters by which lines after the first are indented further.
    hang: usize,
}

impl Entry {
    pub fn new(label: &str, body: &[Span<'_>], hang: usize) -> Self {
        Self { label: label.to_owned(), rank: Rank::Value, body: kept(body), hang }
    }
}

/// An item of a list: a heading, if it has one, and text to its right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    body: Spans,
    /// The heading in one or more cells, each with its least width.
    head: Vec<(String, Columns)>,
    tone: Tone,
    /// Nesting depth: items and entries above it with a lower depth contain this item.
    depth: usize,
    /// Characters before the item.
    margin: Columns,
    /// Characters before each line after the first.
    hang: Columns,
}

impl Item {
    pub fn new(body: &[Span<'_>]) -> Self {
        Self {
            body: kept(body),
            head: Vec::new(),
            tone: Tone::Plain,
            depth: 0,
            margin: 0.into(),
            hang: 0.into(),
        }
    }

    #[must_use]
    pub fn head(mut self, tone: Tone, cells: &[(&str, Columns)]) -> Self {
        self.tone = tone;
        let owned = |&(text, least): &(&str, Columns)| (text.to_owned(), least);
        self.head = cells.iter().map(owned).collect();
        self
    }

    #[must_use]
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    #[must_use]
    pub fn indent(mut self, margin: impl Into<Columns>, hang: impl Into<Columns>) -> Self {
        (self.margin, self.hang) = (margin.into(), hang.into());
        self
    }
}

/// The content of a result: its blocks, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    blocks: Vec<Block>,
}

impl Document {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends all blocks of another document.
    pub fn append(&mut self, mut other: Self) {
        self.blocks.append(&mut other.blocks);
    }

    /// Returns the document without commands, and without the details that introduce them.
    #[must_use]
    pub fn without_commands(self) -> Self {
        let leads = |block: &Block| match block {
            Block::Entry(entry) => {
                entry.rank == Rank::Detail
                    && entry.body.last().is_some_and(|(_, text)| text.ends_with(':'))
            }
            _ => false,
        };
        let mut blocks: Vec<Block> = Vec::new();
        for block in self.blocks {
            if !matches!(block, Block::Command(_)) {
                blocks.push(block);
            } else if blocks.last().is_some_and(leads) {
                blocks.pop();
            }
        }
        Self { blocks }
    }

    /// Adds an empty line before the next block.
    pub fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// Adds the title of the whole document.
    pub fn title(&mut self, text: &str) {
        self.blocks.push(Block::Heading(Heading::Title, text.to_owned()));
    }

    /// Adds a heading for the blocks below.
    pub fn heading(&mut self, text: &str) {
        self.blocks.push(Block::Heading(Heading::Part, text.to_owned()));
    }

    /// Adds a paragraph.
    pub fn line(&mut self, body: &[Span<'_>], hang: usize) {
        let body = kept(body);
        self.blocks.push(Block::Line { body, hang });
    }

    /// Adds a label and its value. With an empty label, the value is one more value of the label above.
    pub fn entry(&mut self, label: &str, body: &[Span<'_>], hang: usize) {
        self.blocks.push(Block::Entry(Entry::new(label, body, hang)));
    }

    /// Adds a detail of the value above it.
    pub fn detail(&mut self, body: &[Span<'_>], hang: usize) {
        let rank = Rank::Detail;
        let entry = Entry::new("", body, hang);
        self.blocks.push(Block::Entry(Entry { rank, ..entry }));
    }

    /// Adds evidence for the value above it.
    pub fn evidence(&mut self, text: &str) {
        let rank = Rank::Evidence;
        let entry = Entry::new("", &[(Tone::Plain, text)], 2);
        self.blocks.push(Block::Entry(Entry { rank, ..entry }));
    }

    /// Adds a command to copy, as a value of a label.
    pub fn command(&mut self, label: &str, command: Span<'_>, hang: usize) {
        let entry = Entry::new(label, &[command], hang);
        self.blocks.push(Block::Command(entry));
    }

    /// Adds a command to copy that belongs to the value above it.
    pub(crate) fn detail_command(&mut self, command: Span<'_>, hang: usize) {
        let rank = Rank::Detail;
        let entry = Entry::new("", &[command], hang);
        self.blocks.push(Block::Command(Entry { rank, ..entry }));
    }

    /// Adds text that belongs to no label.
    pub fn remark(&mut self, body: &[Span<'_>]) {
        let margin = Columns { wide: LABEL, narrow: 2 };
        self.item(Item::new(body).indent(margin, margin.plus(2)));
    }

    /// Adds an item of a list.
    pub fn item(&mut self, item: Item) {
        self.blocks.push(Block::Item(item));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Renders the document as text for a terminal or a file.
    pub fn text(&self, style: Style) -> String {
        text::render(&self.blocks, style)
    }

    /// Renders the document as GitHub-flavoured Markdown.
    pub fn markdown(&self) -> String {
        markdown::render(&self.blocks)
    }
}

#[cfg(test)]
mod tests;
