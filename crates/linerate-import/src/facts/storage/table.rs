//! Reads tables whose columns are as wide as their values.

/// Largest number of columns of a table.
const MOST: usize = 64;

/// A column: its name, and the byte of the heading at which it begins.
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    pub(super) start: usize,
}

/// The words of a line, and the byte at which each begins.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let at = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
    line.split_whitespace().map(move |word| (at(word), word))
}

/// The columns in the heading of a table.
pub(super) fn columns(head: &str) -> Vec<Column<'_>> {
    let each = words(head).take(MOST);
    each.map(|(start, name)| Column { name, start }).collect()
}

/// The text of each column in a row. If there are as many words as columns, each column gets one. Otherwise (a cell
/// has several words, or is blank) a word belongs to the last column that begins before the word ends.
pub(super) fn cells<'a>(columns: &[Column<'_>], row: &'a str) -> Vec<&'a str> {
    let all: Vec<(usize, &str)> = words(row).take(MOST * 4).collect();
    if all.len() == columns.len() {
        return all.into_iter().map(|(_, word)| word).collect();
    }
    let mut ends: Vec<Option<(usize, usize)>> = vec![None; columns.len()];
    for (start, word) in all {
        let end = start + word.len();
        let at = columns.partition_point(|column| column.start < end);
        if let Some(cell) = at.checked_sub(1).and_then(|at| ends.get_mut(at)) {
            *cell = Some((cell.map_or(start, |(first, _)| first), end));
        }
    }
    let text = |cell: Option<(usize, usize)>| cell.and_then(|(start, end)| row.get(start..end));
    ends.into_iter().map(|cell| text(cell).unwrap_or_default()).collect()
}
