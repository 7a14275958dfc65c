//! Reads tables and lists of PowerShell.

use crate::facts::lines::Reading;
use crate::format::{Found, Section};
use crate::reading::{Line, MOST, head};

/// A row of a table or an entry of a list: its line, and its cells by the names of their columns.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) line: u64,
    cells: Vec<(String, String)>,
    /// The text of the row's first line.
    pub(super) text: &'a str,
}

impl Row<'_> {
    /// The cell of a column; `None` if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let cell = self.cells.iter().find(|(column, _)| column == name);
        cell.map(|(_, text)| text.as_str()).filter(|text| !text.is_empty())
    }

    /// The cell with the name, if it is complete: PowerShell truncates long names and ends them with dots.
    pub(super) fn name(&self) -> Option<&str> {
        let name = self.get("Name")?;
        (!is_cut(name)).then_some(name)
    }
}

fn is_cut(text: &str) -> bool {
    // A truncated name may have a digit after the dots, which makes it differ from others.
    let text = text.trim_end_matches(|c: char| c.is_ascii_digit());
    text.ends_with("...") || text.ends_with('\u{2026}')
}

/// Whether a text begins with the heading of a table that has these columns in this order, perhaps with others
/// between them, or with a list that begins with the first of them and has the last one near its start.
pub(super) fn begins(text: &str, columns: &[&str]) -> bool {
    let mut lines = head(text).lines();
    let first = lines.next().unwrap_or_default();
    let mut words = first.split_whitespace();
    let is_head = columns.iter().all(|column| words.any(|word| word == *column));
    if is_head && first.starts_with(columns[0]) {
        return lines.next().is_some_and(|line| line.starts_with("----"));
    }
    let is_list =
        |line: &str, key: &str| line.split_once(" :").is_some_and(|(k, _)| k.trim() == key);
    let last = columns[columns.len() - 1];
    is_list(first, columns[0]) && head(text).lines().any(|line| is_list(line, last))
}

/// Reads the rows of a table or a list. It is an error if the columns of a table overlap.
pub(super) fn read<'a>(
    section: &Section<'a>,
    tool: &str,
    mut take: impl FnMut(&mut Reading<'a>, &Row<'a>),
) -> Result<Found, String> {
    let mut reading = Reading::of(section);
    let lines = std::mem::take(&mut reading.lines);
    let is_table = lines.get(1).is_some_and(|line| line.text.starts_with("----"));
    let rows = if is_table { table(&lines) } else { Some(list(&lines)) };
    for row in &rows.ok_or("the columns of the table ran together")? {
        take(&mut reading, row);
    }
    reading.found(tool)
}

fn list<'a>(lines: &[Line<'a>]) -> Vec<Row<'a>> {
    let mut all: Vec<Row<'a>> = Vec::new();
    for line in lines {
        let Some((key, value)) = line.text.split_once(" :") else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "Name" && all.len() < MOST {
            all.push(Row { line: line.number, cells: Vec::new(), text: line.text });
        }
        if let Some(row) = all.last_mut().filter(|row| row.cells.len() < 256) {
            row.cells.push((key.to_owned(), value.to_owned()));
        }
    }
    all
}

/// A column: its name, and the places of the first and last dash below it.
struct Column {
    name: String,
    start: usize,
    end: usize,
}

fn table<'a>(lines: &[Line<'a>]) -> Option<Vec<Row<'a>>> {
    let (head, dashes) = (lines.first()?, lines.get(1)?);
    let names: Vec<&str> = head.text.split_whitespace().collect();
    let spans = words(dashes.text);
    if names.len() != spans.len() {
        return None;
    }
    let columns: Vec<Column> = names
        .iter()
        .zip(&spans)
        .map(|(name, (start, word))| Column {
            name: (*name).to_owned(),
            start: *start,
            end: start + word.len(),
        })
        .collect();
    // In a valid table, each name is as long as the dashes below it.
    let is_even = columns.iter().all(|column| column.end - column.start == column.name.len());
    let rows = lines.iter().skip(2).take(MOST);
    is_even.then(|| rows.map(|line| row(&columns, line)).collect())
}

fn row<'a>(columns: &[Column], line: &Line<'a>) -> Row<'a> {
    let mut cells: Vec<(String, String)> =
        columns.iter().map(|c| (c.name.clone(), String::new())).collect();
    let mut last: Option<(usize, usize)> = None;
    for (start, word) in words(line.text) {
        let end = start + width(word);
        let below = columns.iter().position(|column| start < column.end && end > column.start);
        // A word that is below no column belongs to the cell before it, if one blank is between them.
        let continued = last.filter(|(_, ended)| start == ended + 1).map(|(at, _)| at);
        let next = columns.iter().position(|column| column.start >= end);
        let Some(at) = below.or(continued).or(next).or(columns.len().checked_sub(1)) else {
            break;
        };
        let text = &mut cells[at].1;
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
        last = Some((at, end));
    }
    Row { line: line.number, cells, text: line.text }
}

/// Width of a text on the screen, in character cells: characters of East Asian scripts need two.
fn width(text: &str) -> usize {
    text.chars()
        .map(|c| if c >= '\u{1100}' && c != '\u{2026}' && c < '\u{ffff}' { 2 } else { 1 })
        .sum()
}

/// The words of a line, with the places on the screen where they start.
fn words(line: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let mut at = 0;
    for part in line.split(' ') {
        if !part.is_empty() {
            all.push((at, part));
        }
        at += width(part) + 1;
    }
    all
}
