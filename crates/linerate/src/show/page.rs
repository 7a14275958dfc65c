//! Lines on a page: wrapped to its width, aligned under labels, in colour where asked for.

use std::mem;

/// How text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns; fewer than 20 are taken as 20.
    pub width: usize,
    /// Whether bold and colour may be used.
    pub color: bool,
}

impl Style {
    /// What suits a pipe or a file: 80 columns, plain.
    pub const PLAIN: Self = Self {
        width: 80,
        color: false,
    };
}

/// How a piece of text is drawn on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Bold,
    Dim,
    Good,
    Warn,
}

impl Ink {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Good => "\x1b[1;32m",
            Self::Warn => "\x1b[1;33m",
        }
    }
}

/// A piece of text with its ink.
pub(crate) type Span<'a> = (Ink, &'a str);

/// Width of the column of labels.
pub(crate) const LABEL: usize = 16;
/// Pages narrower than this put labels on lines of their own.
const NARROW: usize = 48;

/// A page that grows line by line.
pub(crate) struct Page {
    style: Style,
    text: String,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        let width = style.width.max(20);
        Self {
            style: Style { width, ..style },
            text: String::new(),
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    pub(crate) fn is_narrow(&self) -> bool {
        self.style.width < NARROW
    }

    pub(crate) fn width(&self) -> usize {
        self.style.width
    }

    /// An empty line, unless the page ends in one or is empty.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A label and what belongs to it, wrapped beside it. An empty label continues the one above;
    /// `deeper` columns are added to the indent of all lines but the first.
    pub(crate) fn entry(&mut self, label: &str, body: &[Span<'_>], deeper: usize) {
        let indent = if self.is_narrow() {
            if !label.is_empty() {
                self.paint(Ink::Bold, label);
                self.text.push('\n');
            }
            self.text.push_str("  ");
            2
        } else {
            self.paint(Ink::Bold, label);
            let pad = LABEL.saturating_sub(width_of(label)).max(1);
            self.text.push_str(&" ".repeat(pad));
            LABEL
        };
        self.wrap(body, indent, indent + deeper);
    }

    /// Text from the left margin on.
    pub(crate) fn line(&mut self, body: &[Span<'_>], deeper: usize) {
        self.wrap(body, 0, deeper);
    }

    /// A head that is set as it stands, and text beside it that wraps at `indent`.
    pub(crate) fn columns(&mut self, ink: Ink, head: &str, text: &str, indent: usize) {
        self.paint(ink, head);
        self.text.push_str("  ");
        self.wrap(&[(Ink::Plain, text)], width_of(head) + 2, indent);
    }

    /// Words of `body`; `column` are taken on this line, later lines begin at `indent`.
    fn wrap(&mut self, body: &[Span<'_>], column: usize, indent: usize) {
        let (mut at, mut space) = (column, false);
        // What stands on the line so far, runs of one ink together.
        let mut line: Vec<(Ink, String)> = Vec::new();
        for (ink, text) in body {
            let mut words = words(text).into_iter().peekable();
            while let Some(word) = words.next() {
                let width = width_of(&word);
                if width > 0 {
                    if !line.is_empty() && at + usize::from(space) + width > self.style.width {
                        self.put(&mem::take(&mut line));
                        self.text.push('\n');
                        self.text.push_str(&" ".repeat(indent));
                        (at, space) = (indent, false);
                    }
                    let gap = if mem::take(&mut space) { " " } else { "" };
                    match line.last_mut() {
                        Some((last, run)) if last == ink => {
                            run.push_str(gap);
                            run.push_str(&word);
                        }
                        Some((_, run)) => {
                            run.push_str(gap);
                            line.push((*ink, word));
                        }
                        None => line.push((*ink, word)),
                    }
                    at += gap.len() + width;
                }
                space |= words.peek().is_some() && !line.is_empty();
            }
        }
        self.put(&line);
        self.text.push('\n');
    }

    fn put(&mut self, line: &[(Ink, String)]) {
        for (ink, run) in line {
            self.paint(*ink, run);
        }
    }

    /// Cells in columns of `widths`; the last one is not padded.
    pub(crate) fn row(&mut self, cells: &[Span<'_>], widths: &[usize]) {
        for (i, ((ink, cell), width)) in cells.iter().zip(widths).enumerate() {
            self.paint(*ink, cell);
            if i + 1 < cells.len() {
                let pad = width.saturating_sub(width_of(cell)).max(1);
                self.text.push_str(&" ".repeat(pad));
            }
        }
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        self.text.push('\n');
    }

    fn paint(&mut self, ink: Ink, text: &str) {
        // Names come from other hosts and from files: no control character reaches the terminal.
        let clean = text.chars().map(|c| if c.is_control() { '?' } else { c });
        if self.style.color && ink != Ink::Plain && !text.is_empty() {
            self.text.push_str(ink.code());
            self.text.extend(clean);
            self.text.push_str("\x1b[0m");
        } else {
            self.text.extend(clean);
        }
    }
}

/// Pieces that no line may break: a number keeps its unit, and quotes keep what they hold, so that
/// a command can be copied.
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

/// The quote that a word opens and does not close; an apostrophe opens nothing.
fn opened(word: &str) -> Option<char> {
    ['\'', '"'].into_iter().find(|quote| {
        let opens = word.starts_with(*quote) || word.contains(&format!("={quote}"));
        opens && word.matches(*quote).count() == 1
    })
}

const UNITS: &[&str] = &[
    "%", "B", "KiB", "MiB", "GiB", "b/s", "kb/s", "Mb/s", "Gb/s", "ns", "us", "ms", "s", "MHz",
    "GHz", "MT/s", "GT/s",
];

/// Columns that a text takes; all that is written here is one column a character.
pub(crate) fn width_of(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize, color: bool) -> Page {
        Page::new(Style { width, color })
    }

    #[test]
    fn words_wrap_under_their_label_and_keep_to_the_width() {
        let mut p = page(60, false);
        p.entry(
            "Do",
            &[(
                Ink::Plain,
                "one two three four five six seven eight nine ten eleven",
            )],
            2,
        );
        assert_eq!(
            p.finish(),
            "Do              one two three four five six seven eight nine\n                  ten eleven\n"
        );
    }

    #[test]
    fn a_word_longer_than_the_page_stands_and_does_no_harm() {
        let mut p = page(1, false);
        p.entry(
            "Saved",
            &[(Ink::Plain, "a-name-that-is-longer-than-twenty-columns x")],
            0,
        );
        assert_eq!(
            p.finish(),
            "Saved\n  a-name-that-is-longer-than-twenty-columns\n  x\n"
        );
    }

    #[test]
    fn numbers_keep_their_units_and_quotes_their_words() {
        let kept = |text| words(text).len();
        assert_eq!(kept("99.8 % of 9.41 Gb/s, it"), 4);
        assert_eq!(kept("sysctl -w a='1 2 3' b"), 4);
        assert_eq!(kept("the receiver's window"), 3);
        assert_eq!(kept("a's b ' c"), 3);
    }

    #[test]
    fn spans_join_without_a_space_unless_they_bring_one() {
        let mut p = page(80, false);
        p.line(&[(Ink::Bold, "a"), (Ink::Plain, "b "), (Ink::Dim, "c")], 0);
        assert_eq!(p.finish(), "ab c\n");
    }

    #[test]
    fn colour_is_used_only_where_asked_for_and_names_cannot_bring_their_own() {
        let mut p = page(80, false);
        p.line(&[(Ink::Bold, "host\x1b[31m")], 0);
        assert_eq!(p.finish(), "host?[31m\n");
        let mut p = page(80, true);
        p.line(&[(Ink::Bold, "host")], 0);
        assert_eq!(p.finish(), "\x1b[1mhost\x1b[0m\n");
    }
}
