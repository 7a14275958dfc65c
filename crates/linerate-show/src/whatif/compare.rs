//! Compares several described paths in one table, as text, CSV and JSON.

use linerate_ceiling::{Bounds, Solution};
use linerate_explain::Best;
use linerate_explain::case::{Answer, Case, PriceTag};
use linerate_plan::path::Direction;
use linerate_units::{Nanos, Rate};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::document::{Entry, Item, Span, Table};
use super::super::json::{integer, text};
use super::super::{Document, Tone, shortened};
use super::json::{integers, numbers};
use super::price::in_currency;
use super::text::rates;
use crate::head::Head;

/// One path of the comparison.
pub struct Row {
    name: String,
    title: String,
    /// Goodput and limit from near to far; from far to near if nothing is known of the other direction.
    solved: Option<Solution>,
    /// The highest rate among the published results.
    best: Option<Best>,
    /// Lower bound of the one-way latency of a small message, in seconds; `None` if no part of it is described.
    floor: Option<f64>,
    price: Option<PriceTag>,
    watts: Option<f64>,
}

impl Row {
    pub fn new(name: &str, case: &Case, answer: &Answer, best: Option<Best>) -> Self {
        let mut ways = Direction::ALL.into_iter();
        Self {
            name: name.to_owned(),
            title: case.title.clone(),
            solved: ways.find_map(|way| answer.way(way)).cloned(),
            best,
            floor: (!answer.floor.is_empty()).then(|| answer.floor_seconds()),
            price: case.price.clone(),
            watts: case.watts,
        }
    }

    fn ceiling(&self) -> Option<Bounds> {
        Some(self.solved.as_ref()?.goodput)
    }

    /// Price of one Gb/s at these rates.
    fn price_at(&self, bits: Bounds) -> Option<Bounds> {
        let amount = self.price.as_ref()?.amount;
        let each = |bits: f64| amount / (bits / 1e9).max(1e-9);
        Some(Bounds::new(each(bits.low()), each(bits.high())))
    }

    fn price_at_ceiling(&self) -> Option<Bounds> {
        self.price_at(self.ceiling()?)
    }

    fn price_at_best(&self) -> Option<Bounds> {
        self.price_at(Bounds::exact(self.best.as_ref()?.rate))
    }

    fn money(&self, amount: Option<Bounds>) -> String {
        let words =
            |(amount, price): (Bounds, &PriceTag)| in_currency(amount, &price.currency, &price.per);
        amount.zip(self.price.as_ref()).map_or(String::new(), words)
    }

    fn limit(&self) -> String {
        let solved = self.solved.as_ref();
        solved.map_or(String::new(), |solved| solved.binding.join(" or "))
    }

    fn next(&self) -> String {
        let next = self.solved.as_ref().and_then(|solved| solved.next.as_ref());
        next.map_or(String::new(), |next| {
            format!("{}, {}", next.binding.join(" or "), rates(next.goodput))
        })
    }
}

/// A column: its heading, and the function that makes the cell of a path; an empty cell is unknown.
type Column = (&'static str, fn(&Row) -> String);

const COLUMNS: [Column; 9] = [
    ("path", |row| row.name.clone()),
    ("ceiling", |row| row.ceiling().map_or(String::new(), rates)),
    ("limit", Row::limit),
    ("best", |row| {
        let best = row.best.as_ref();
        best.map_or(String::new(), |best| Rate(best.rate as u64).to_string())
    }),
    ("floor one way", |row| {
        let floor = row.floor;
        floor.map_or(String::new(), |secs| Nanos((secs * 1e9) as u64).to_string())
    }),
    ("each Gb/s at the ceiling", |row| row.money(row.price_at_ceiling())),
    ("each Gb/s at the best", |row| row.money(row.price_at_best())),
    ("watts", |row| row.watts.map_or(String::new(), |watts| watts.to_string())),
    ("next limit", Row::next),
];

/// Headings of the columns of a text page, which is too narrow for all. The other values are listed below each path.
const NARROW: [&str; 6] = ["path", "ceiling", "limit", "best", "floor one way", "watts"];

/// The page: the table, with a title for each path.
pub fn page(rows: &[Row]) -> Document {
    let mut doc = Document::new();
    let all: Vec<&Column> = COLUMNS.iter().collect();
    let few: Vec<&Column> = COLUMNS.iter().filter(|column| is_narrow(column)).collect();
    let mut narrow = Document::new();
    narrow.table(table(&few, rows, |table, row, cells| {
        table.row_or(cells, entry(row, &few));
        let below = named(row, |column| !is_narrow(column));
        if !below.is_empty() {
            table.below(Item::new(&[(Tone::Dim, &below)]).depth(1).indent(2, 4));
        }
    }));
    let wide = table(&all, rows, |table, _, cells| table.row(cells));
    doc.table(wide.least(width(&all, rows)).narrow(narrow));
    doc.gap();
    for row in rows {
        doc.entry(&row.name, &[(Tone::Dim, &row.title)], 2);
    }
    doc
}

fn is_narrow(column: &Column) -> bool {
    NARROW.contains(&column.0)
}

/// The entry that replaces a table row on a very narrow page.
fn entry(row: &Row, columns: &[&Column]) -> Entry {
    let is_one = |column: &Column| columns.iter().skip(1).any(|one| one.0 == column.0);
    Entry::new(&row.name, &[(Tone::Plain, &named(row, is_one))], 2)
}

/// The known cells of a row, each with its heading, for the columns that `is_one` selects.
fn named(row: &Row, is_one: impl Fn(&Column) -> bool) -> String {
    let cells = COLUMNS.iter().filter(|column| is_one(column)).map(|column| {
        let cell = (column.1)(row);
        (!cell.is_empty()).then(|| format!("{}: {cell}", column.0))
    });
    cells.flatten().collect::<Vec<_>>().join("; ")
}

fn widths(columns: &[&Column], rows: &[Row]) -> Vec<usize> {
    let width = |column: &&Column| {
        let cells = rows.iter().map(|row| (column.1)(row).chars().count());
        cells.chain([column.0.len()]).max().unwrap_or(0) + 2
    };
    columns.iter().map(width).collect()
}

fn width(columns: &[&Column], rows: &[Row]) -> usize {
    widths(columns, rows).iter().sum()
}

/// A table of these columns. `add` is called once for each row, with the cells that it appends to the table.
fn table(
    columns: &[&Column],
    rows: &[Row],
    mut add: impl FnMut(&mut Table, &Row, &[Span<'_>]),
) -> Table {
    let head: Vec<Span<'_>> = columns.iter().map(|column| (Tone::Dim, column.0)).collect();
    let mut table = Table::new(&widths(columns, rows)).head(&head);
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|column| (column.1)(row)).collect();
        let cells: Vec<Span<'_>> = cells.iter().map(|cell| (Tone::Plain, cell.as_str())).collect();
        add(&mut table, row, &cells);
    }
    table
}

/// One JSON document. Keys contain the units. Unknown values are null. Rates are bits per second of payload.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate whatif --compare")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// The paths, in the order in which they were typed.
    paths: Vec<PathOut<'a>>,
}

/// One path.
#[derive(Serialize, JsonSchema)]
struct PathOut<'a> {
    /// Name of the case, as typed.
    name: &'a str,
    /// Title of the case.
    title: &'a str,
    /// Lower and upper end of the goodput that the path's hardware allows. Null if no part has a ceiling.
    ceiling_bps: Option<[u64; 2]>,
    /// Names of the ceilings that limit the path.
    limit: &'a [String],
    /// The highest published rate. Null if there are no results.
    best_bps: Option<u64>,
    /// The program output that reports this rate. Null if there are no results.
    best_of: Option<&'a str>,
    /// Lower bound of the one-way latency, for 64 bytes. Null if no part of it is described.
    latency_floor_ns: Option<u64>,
    /// Price of one Gb/s at the ceiling: lower and upper end. Null if unknown.
    #[schemars(inner(range(min = 0)))]
    price_at_ceiling: Option<[f64; 2]>,
    /// Price of one Gb/s at the highest published rate. Null if unknown.
    #[schemars(range(min = 0))]
    price_at_best: Option<f64>,
    /// Currency of the prices. Null if unknown.
    currency: Option<&'a str>,
    /// The period that the price is for, such as `hour`. Null if the hardware is bought, or if its price is unknown.
    per: Option<&'a str>,
    /// Power in watts of the parts that the path needs. Null if unknown.
    #[schemars(range(min = 0))]
    watts: Option<f64>,
    /// Lower and upper end of the goodput once the limit is removed. Null if no other ceiling is known.
    next_bps: Option<[u64; 2]>,
    /// Names of the ceilings that limit the path once `limit` is removed.
    next_limit: &'a [String],
}

/// The comparison as one JSON document, with a line feed at its end.
pub fn document(rows: &[Row]) -> serde_json::Result<String> {
    text(&Output { head: Head::new(None), paths: rows.iter().map(path).collect() })
}

fn path(row: &Row) -> PathOut<'_> {
    let next = row.solved.as_ref().and_then(|solved| solved.next.as_ref());
    let tag = row.price.as_ref();
    PathOut {
        name: &row.name,
        title: &row.title,
        ceiling_bps: row.ceiling().map(integers),
        limit: row.solved.as_ref().map_or(&[], |solved| &solved.binding),
        best_bps: row.best.as_ref().map(|best| integer(best.rate)),
        best_of: row.best.as_ref().map(|best| best.file.as_str()),
        latency_floor_ns: row.floor.map(|secs| integer(secs * 1e9)),
        price_at_ceiling: row.price_at_ceiling().map(numbers),
        price_at_best: row.price_at_best().map(Bounds::low),
        currency: tag.map(|tag| tag.currency.as_str()),
        per: tag.map(|tag| tag.per.as_str()).filter(|per| !per.is_empty()),
        watts: row.watts,
        next_bps: next.map(|next| integers(next.goodput)),
        next_limit: next.map_or(&[], |next| &next.binding),
    }
}

const HEAD: &str = "path,title,ceiling_low_bps,ceiling_high_bps,limit,best_bps,best_of,latency_floor_ns,\
    price_per_gbps_at_ceiling_low,price_per_gbps_at_ceiling_high,price_per_gbps_at_best,currency,per,watts,\
    next_low_bps,next_high_bps,next_limit\n";

/// The table as comma-separated values, with full numbers. Unknown values are empty cells.
//= RFC 4180
pub fn csv(rows: &[Row]) -> String {
    let mut all = HEAD.to_owned();
    for one in rows.iter().map(path) {
        let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let low = |ends: Option<[u64; 2]>| whole(ends.map(|[low, _]| low));
        let high = |ends: Option<[u64; 2]>| whole(ends.map(|[_, high]| high));
        let cells = [
            one.name.to_owned(),
            one.title.to_owned(),
            low(one.ceiling_bps),
            high(one.ceiling_bps),
            one.limit.join(" or "),
            whole(one.best_bps),
            one.best_of.unwrap_or_default().to_owned(),
            whole(one.latency_floor_ns),
            number(one.price_at_ceiling.map(|[low, _]| low)),
            number(one.price_at_ceiling.map(|[_, high]| high)),
            number(one.price_at_best),
            one.currency.unwrap_or_default().to_owned(),
            one.per.unwrap_or_default().to_owned(),
            number(one.watts),
            low(one.next_bps),
            high(one.next_bps),
            one.next_limit.join(" or "),
        ];
        all.push_str(&cells.map(|cell| quoted(&cell)).join(","));
        all.push('\n');
    }
    all
}

/// Largest number of characters of a cell.
const CELL: usize = 1000;

/// A cell, in quotes if it has a comma or a quote. It is cleaned and shortened, since names come from files.
fn quoted(cell: &str) -> String {
    let cell = shortened(cell, CELL);
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_cell_is_one_line_and_obeys_no_terminal(cell in "(.|\n)*") {
            let quoted = quoted(&cell);
            proptest::prop_assert!(!quoted.chars().any(char::is_control));
            let unseen = quoted.contains(['\u{200b}', '\u{ad}', '\u{202e}']);
            proptest::prop_assert!(!unseen);
            let bare = !quoted.contains([',', '"']);
            let between = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            let closed = between.is_some_and(|inner| !inner.replace("\"\"", "").contains('"'));
            proptest::prop_assert!(bare || closed, "{}", quoted);
        }
    }

    #[test]
    fn a_long_cell_is_cut() {
        assert_eq!(quoted(&"x".repeat(5000)).len(), CELL + 3);
        assert_eq!(quoted("a\u{1b}[31m\n\u{200b}b"), "a?[31m??b");
    }
}
