//! Splits a line of a table into cells.

/// The character or blanks between the cells of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Comma,
    Semicolon,
    Tab,
    /// Two blanks or more; or one, if the line has nowhere two in a row.
    Blanks,
}

impl Separator {
    /// The separator in the header of a table.
    pub(super) fn of(header: &str) -> Option<Self> {
        let has = |c: char| header.contains(c);
        match () {
            () if has(';') => Some(Self::Semicolon),
            () if has('\t') => Some(Self::Tab),
            () if has(',') => Some(Self::Comma),
            () if has(' ') => Some(Self::Blanks),
            () => None,
        }
    }

    const fn char(self) -> char {
        match self {
            Self::Comma => ',',
            Self::Semicolon => ';',
            Self::Tab => '\t',
            Self::Blanks => ' ',
        }
    }
}

/// Largest number of cells that are read from a line.
const MOST: usize = 100;

/// The cells of a line, without the quotes and blanks around each.
pub(super) fn split(line: &str, separator: Separator) -> Vec<&str> {
    let line = line.trim_end_matches(['\r', '\n']);
    if separator == Separator::Blanks {
        let line = line.trim();
        let blanks = if line.contains("  ") { "  " } else { " " };
        let cells = line.split(blanks).map(str::trim);
        return cells.filter(|cell| !cell.is_empty()).take(MOST).collect();
    }
    let mut is_quoted = false;
    let cells = line.split(|c: char| {
        is_quoted ^= c == '"';
        c == separator.char() && !is_quoted
    });
    cells.map(|cell| cell.trim().trim_matches('"').trim()).take(MOST).collect()
}

/// The number in a cell, and whether it had a decimal comma. A comma is accepted only where semicolons separate the
/// cells.
pub(super) fn value(cell: &str, separator: Separator) -> Option<(f64, bool)> {
    let has_comma = cell.contains(',');
    if has_comma && (separator != Separator::Semicolon || cell.contains('.')) {
        return None;
    }
    let number = crate::reading::number(&cell.replacen(',', ".", 1))?;
    Some((number, has_comma))
}
