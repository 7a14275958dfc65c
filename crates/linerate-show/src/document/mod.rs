//! Documents: the content of a view, as typed blocks. A view builds one; a renderer lays it out. A document
//! knows neither width nor colour nor markup. Hints for the layout of text are the exception: other renderers
//! ignore them.

mod inline;
mod markdown;
mod table;
mod text;

pub use inline::{clean, cleaned, one_line, shortened};
pub use table::Table;
pub use text::Style;
pub(crate) use text::width_of;

/// The meaning of a piece of text; a renderer decides how that looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// Names, and what to look at first.
    Strong,
    /// Details that a reader may skip.
    Dim,
    /// A state that is as it should be, or a certain result.
    Good,
    /// A problem, or not known.
    Warning,
}

/// A piece of text with its meaning, as views write it.
pub type Span<'a> = (Tone, &'a str);

/// Spans that a document keeps.
type Spans = Vec<(Tone, String)>;

fn kept(spans: &[Span<'_>]) -> Spans {
    let owned = |&(tone, text): &Span<'_>| (tone, text.to_owned());
    spans.iter().map(owned).collect()
}

/// Width of the column of labels.
pub(crate) const LABEL: usize = 16;
/// Text pages narrower than this put labels on their own lines.
pub const NARROW: usize = 48;

/// A number of columns of text, on most pages and on narrow ones.
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
    /// The number of further items on all pages.
    #[must_use]
    pub fn plus(self, more: usize) -> Self {
        Self { wide: self.wide + more, narrow: self.narrow + more }
    }
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    /// Space before what follows; never two in a row, and none at the start.
    Gap,
    Heading(Heading, String),
    /// A paragraph; later lines are indented by `hang`.
    Line {
        body: Spans,
        hang: usize,
    },
    Entry(Entry),
    /// An entry that is a command to copy.
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
    /// The label's text; without a label, one more value of the label above.
    Value,
    /// A detail of the value above.
    Detail,
    /// A detail that supports the value above.
    Evidence,
}

/// A label with its values and details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    label: String,
    rank: Rank,
    body: Spans,
    /// Columns by which later lines are indented further.
    hang: usize,
}

impl Entry {
    pub fn new(label: &str, body: &[Span<'_>], hang: usize) -> Self {
        Self { label: label.to_owned(), rank: Rank::Value, body: kept(body), hang }
    }
}

/// An item of a list: a head, if it has one, and text to its right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    body: Spans,
    /// The subject of the item, in one or more cells with the least number of columns of each.
    head: Vec<(String, Columns)>,
    tone: Tone,
    /// Items and entries above it with a lower number contain it.
    depth: usize,
    /// Columns before the item.
    margin: Columns,
    /// Columns before later lines.
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

/// Blocks, in order.
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

    /// The same without commands, and without the details that lead to them.
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

    /// Space before what follows.
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

    /// Adds a label and its value. Without a label the value is one more of the label above.
    pub fn entry(&mut self, label: &str, body: &[Span<'_>], hang: usize) {
        self.blocks.push(Block::Entry(Entry::new(label, body, hang)));
    }

    /// Adds a detail of the value above.
    pub fn detail(&mut self, body: &[Span<'_>], hang: usize) {
        let rank = Rank::Detail;
        let entry = Entry::new("", body, hang);
        self.blocks.push(Block::Entry(Entry { rank, ..entry }));
    }

    /// Adds evidence for the value above.
    pub fn evidence(&mut self, text: &str) {
        let rank = Rank::Evidence;
        let entry = Entry::new("", &[(Tone::Plain, text)], 2);
        self.blocks.push(Block::Entry(Entry { rank, ..entry }));
    }

    /// A command to copy, as a value of a label.
    pub fn command(&mut self, label: &str, command: Span<'_>, hang: usize) {
        let entry = Entry::new(label, &[command], hang);
        self.blocks.push(Block::Command(entry));
    }

    /// A command to copy, which belongs to the value above.
    pub(crate) fn detail_command(&mut self, command: Span<'_>, hang: usize) {
        let rank = Rank::Detail;
        let entry = Entry::new("", &[command], hang);
        self.blocks.push(Block::Command(Entry { rank, ..entry }));
    }

    /// An entry that belongs to no label.
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

    /// Renders text for a terminal or a file.
    pub fn text(&self, style: Style) -> String {
        text::render(&self.blocks, style)
    }

    /// Renders GitHub-flavoured Markdown.
    pub fn markdown(&self) -> String {
        markdown::render(&self.blocks)
    }
}

#[cfg(test)]
mod tests;
