//! Tables of any program, recognised by the names of their columns: CSV (commas, semicolons, tabs) and aligned
//! columns. A row has a size, a number of streams or an operation, and times or rates.
//!
//! A unit is never guessed: a column whose name does not say its unit is refused, unless other columns prove it.

mod cells;
mod field;
mod name;
mod results;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use field::{Field, Stat};

use cells::{Separator, split};
use name::{Column, Key, Kind};
use table::Table;

use linerate_record::reported::{Measured, Outcome};

use crate::format::{Format, Found, Section, Start};
use crate::reading::{Line, Notes, quoted};

/// The entry in the table of formats.
pub(crate) static COLUMNS: Format = Format {
    id: "columns",
    label: "a table with named columns (CSV)",
    versions: "columns of a size, a number of streams or an operation, and of times or rates with their units in their names",
    evidence: "published: ping-pong tables of Gigabit Ethernet adapters: words, count, seconds, MB/s of both \
        directions; published: averages and deviations by size from sockperf, and iperf3's rate by streams",
    unknown: "The program and the protocol; what a time is (a round trip or its half), if no column says so.",
    starts,
    read,
    ..Format::RESULTS
};

/// Longest header of a table, in bytes.
const MOST_HEADER: usize = 4096;
/// Largest number of columns of a table.
const MOST_COLUMNS: usize = 64;

fn starts(Start { line: names, next: first, .. }: Start<'_>) -> bool {
    // This runs for each line of every input, so the cheapest tests come first.
    if names.len() > MOST_HEADER || !begins(names) || !first.contains(|c: char| c.is_ascii_digit())
    {
        return false;
    }
    let Some(separator) = Separator::of(names.trim()) else {
        return false;
    };
    let cells = split(first, separator);
    let has_number = cells.iter().any(|cell| cell.starts_with(|c: char| c.is_ascii_digit()));
    if !has_number || cells.len() != split(names, separator).len() {
        return false;
    }
    let Some((_, columns)) = header(names) else {
        return false;
    };
    let key = columns.iter().position(Column::is_key);
    let fits = |at: usize| cells.get(at).is_some_and(|cell| columns[at].accepts(cell));
    cells.len() == columns.len() && key.is_some_and(fits)
}

/// Whether a line begins as a header does: with a letter or a quote.
fn begins(line: &str) -> bool {
    let first = line.trim_start().chars().next();
    first.is_some_and(|c| c.is_alphabetic() || c == '"')
}

/// Reads a header: separator and columns; `None` if it names no key or no figure.
fn header(line: &str) -> Option<(Separator, Vec<Column>)> {
    let line = line.trim();
    if line.len() > MOST_HEADER || !begins(line) {
        return None;
    }
    let separator = Separator::of(line)?;
    let names = split(line, separator);
    if !(2..=MOST_COLUMNS).contains(&names.len()) {
        return None;
    }
    let columns: Vec<Column> = names.iter().map(|name| Column::named(name)).collect();
    let keys = columns.iter().filter(|column| column.is_key()).count();
    let figures = columns.iter().filter(|column| column.is_figure()).count();
    // Blanks also separate the words of prose, so all names of such columns must be known.
    let known = separator != Separator::Blanks || columns.iter().all(|column| !column.is_unknown());
    (keys > 0 && figures > 0 && known).then_some((separator, columns))
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let (separator, columns) = header(section.first()).ok_or("it has no header")?;
    let mut notes = Notes::default();
    for column in columns.iter().filter(|column| column.is_unknown()) {
        notes.at(section.line, format!("the column `{}` is passed over", column.name));
    }
    let alike = alike(&columns);
    let mut results = Vec::new();
    for own in &alike {
        let mut one = columns.clone();
        for other in alike.iter().filter(|other| *other != own) {
            one[*other].kind = Kind::Unknown;
        }
        let mut of_one = Notes::default();
        let found = table(section, (separator, &one), &mut of_one)?;
        results.extend(found.into_iter().map(|outcome| called(outcome, &columns[*own].name)));
        if results.len() < 2 {
            notes.0.append(&mut of_one.0);
        }
    }
    if alike.is_empty() {
        results = table(section, (separator, &columns), &mut notes)?;
    }
    Ok(Found { results, notes, used: Some(section.text.len()), ..Found::default() })
}

/// Largest number of columns of times that each become a table of their own.
const MOST_ALIKE: usize = 8;

/// Columns of the same statistic of times, in the same unit, of different operations: each becomes a table of its
/// own. Empty if there is no second one.
fn alike(columns: &[Column]) -> Vec<usize> {
    let times = columns.iter().enumerate().filter_map(|(at, column)| match column.kind {
        Kind::Time(stat, unit) => Some((at, stat, unit)),
        _ => None,
    });
    let times: Vec<(usize, Stat, Option<f64>)> = times.collect();
    let of = |wanted: Stat| {
        let mut own = times.iter().filter(|(_, stat, _)| *stat == wanted);
        let first = own.clone().next().map(|(_, _, unit)| *unit);
        let is_one = own.all(|(_, _, unit)| Some(*unit) == first);
        let own = times.iter().filter(|(_, stat, _)| is_one && *stat == wanted);
        own.map(|(at, ..)| *at).take(MOST_ALIKE).collect::<Vec<usize>>()
    };
    let mut all = [Stat::Plain, Stat::Mean, Stat::Typical, Stat::Total].map(of).into_iter();
    all.find(|found| found.len() > 1).unwrap_or_default()
}

/// Adds the name of the column of times to the operation of its table.
fn called(mut outcome: Outcome, column: &str) -> Outcome {
    if let Measured::Sizes(sizes) = &mut outcome.measured {
        let words = [sizes.operation.as_str(), column];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        sizes.operation = quoted(&words.join(", "));
    }
    outcome
}

/// The results in the rows, read with these columns.
fn table(
    section: &Section<'_>,
    (separator, columns): (Separator, &[Column]),
    notes: &mut Notes,
) -> Result<Vec<Outcome>, String> {
    let mut table = Table::new(columns)?;
    for Line { number, text: line, .. } in section.lines().skip(1) {
        let is_comment = line.trim_start().starts_with('#') || line.trim().is_empty();
        let cells = split(line, separator);
        let fits = cells.len() == columns.len();
        if !is_comment && (!fits || !table.row(number, &cells, separator, notes)) {
            notes.strange(number, line);
        }
    }
    table.results(section.line, notes)
}

/// Keys that can distinguish the rows of a table, in order of preference.
const KEYS: [Key; 4] = [Key::Operation, Key::Streams, Key::Size(1.0), Key::UnclearSize];
