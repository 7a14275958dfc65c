//! The table of points of a study.

use linerate_judge::figure::{DELAYED, Entry, Figure, LEAST, Subject, Unit};
use linerate_judge::study::{Point, TYPICAL};
use linerate_plan::path::Side;
use linerate_plan::study::Axis;
use linerate_units::Nanos;
use linerate_units::stats::Interval;

use super::super::document::{Document, Table, Tone, width_of};
use super::super::words::plus_minus;

/// A column: a figure, and the direction, end or percentile that it is about.
type Column = (&'static Figure, Subject);

/// The text of a cell whose figure is unknown.
const UNKNOWN: &str = "unknown";

/// A heading row, and rows of cells with a label.
#[derive(Debug, Default)]
pub(super) struct Grid {
    head: Vec<String>,
    rows: Vec<(String, Vec<(Tone, String)>)>,
}

impl Grid {
    /// Makes a row for each point that has figures, and a column for each figure.
    pub(super) fn of_points(name: &str, points: &[Point]) -> Self {
        let mut columns = columns(points);
        // Text below the table says which round trips wait.
        columns.retain(|(figure, _)| **figure != DELAYED);
        let is_timed = columns.iter().any(|(figure, _)| **figure == LEAST);
        let heads = columns.iter().map(head);
        let samples = is_timed.then(|| "samples".to_owned());
        let measured = points.iter().filter(|point| point.lacks.is_none());
        let row = |point: &Point| {
            let cells = columns.iter().map(|column| match entry(point, column) {
                Some(entry) if is_main(column) => (Tone::Good, in_cell(entry, true)),
                Some(entry) => (Tone::Plain, in_cell(entry, true)),
                None if is_timed || column.1.side.is_none() => (Tone::Plain, String::new()),
                None => (Tone::Plain, UNKNOWN.to_owned()),
            });
            let samples = samples.iter().map(|_| (Tone::Plain, point.samples.to_string()));
            (point.values.last().cloned().unwrap_or_default(), cells.chain(samples).collect())
        };
        let rows = measured.map(row).collect();
        Self {
            head: [name.to_owned()].into_iter().chain(heads).chain(samples.clone()).collect(),
            rows,
        }
    }

    /// Makes a row for each figure at each value of the second axis, and a column for each value of the first axis.
    /// If `shown` is a single figure, rows do not name it.
    pub(super) fn of_pairs(axes: [&Axis; 2], points: &[Point], shown: &[&Figure]) -> Self {
        let mut grid = Self::default();
        grid.head.push(axes[1].name.clone());
        grid.head.extend(axes[0].values.iter().map(|value| value.label.clone()));
        for second in &axes[1].values {
            let here = |point: &&Point| point.values.get(1) == Some(&second.label);
            let here: Vec<&Point> = points.iter().filter(here).collect();
            let mut columns = columns(here.iter().copied());
            columns.retain(|column| shown.contains(&column.0) && is_short(column));
            if let [figure] = shown {
                columns.retain(|column| column.0 == *figure && is_main(column));
            }
            for column in columns {
                let name = if shown.len() > 1 {
                    format!("{}, {}", second.label, head(&column))
                } else {
                    second.label.clone()
                };
                let cell = |first: &str| {
                    let point = here.iter().find(|point| point.values[0] == first);
                    match point.map(|point| entry(point, &column)) {
                        Some(Some(entry)) => (Tone::Plain, in_cell(entry, false)),
                        Some(None) => (Tone::Warning, UNKNOWN.to_owned()),
                        None => (Tone::Plain, String::new()),
                    }
                };
                let cells = axes[0].values.iter().map(|value| cell(&value.label));
                grid.rows.push((name, cells.collect()));
            }
        }
        grid
    }

    /// Writes the table; on a page that is too narrow, a line for each table row instead.
    pub(super) fn write(&self, doc: &mut Document) {
        if self.rows.is_empty() {
            return;
        }
        let width = |at: usize, head: &String| {
            let cells = self.rows.iter().map(|(name, cells)| match at {
                0 => name.as_str(),
                at => cells.get(at - 1).map_or("", |(_, cell)| cell.as_str()),
            });
            cells.chain([head.as_str()]).map(width_of).max().unwrap_or(0) + 2
        };
        let mut widths: Vec<usize> =
            self.head.iter().enumerate().map(|(at, head)| width(at, head)).collect();
        // The last column needs no space after it.
        let least = widths.iter().sum::<usize>().saturating_sub(2);
        if let Some(last) = widths.last_mut() {
            *last = 0;
        }
        let heads: Vec<_> = self.head.iter().map(|head| (Tone::Dim, head.as_str())).collect();
        let mut table = Table::new(&widths).head(&heads).least(least);
        let mut narrow = Document::new();
        for (name, cells) in &self.rows {
            let spans = cells.iter().map(|(tone, cell)| (*tone, cell.as_str()));
            table
                .row(&[(Tone::Strong, name.as_str())].into_iter().chain(spans).collect::<Vec<_>>());
            let known = self.head[1..].iter().zip(cells).filter(|(_, (_, cell))| !cell.is_empty());
            let known: Vec<String> =
                known.map(|(head, (_, cell))| format!("{head} {cell}")).collect();
            let text = format!(": {}", known.join(", "));
            narrow.line(&[(Tone::Strong, name), (Tone::Plain, &text)], 2);
        }
        doc.table(table.narrow(narrow));
    }
}

/// All figures that the points have, in the order in which they occur.
fn columns<'a>(points: impl IntoIterator<Item = &'a Point>) -> Vec<Column> {
    let mut all: Vec<Column> = Vec::new();
    for entry in points.into_iter().flat_map(|point| &point.summary.entries) {
        let column = (entry.figure, entry.of);
        if !all.contains(&column) {
            all.push(column);
        }
    }
    all
}

fn entry<'a>(point: &'a Point, column: &Column) -> Option<&'a Entry> {
    let mut entries = point.summary.entries.iter();
    entries.find(|entry| (entry.figure, entry.of) == *column)
}

/// Whether a column is one to look at first: the typical round trip, or goodput.
fn is_main((figure, of): &Column) -> bool {
    of.percentile.map_or(figure.unit == Unit::BitsPerSecond, |percent| percent == TYPICAL)
}

/// Whether a column is shown in a table with many rows: any figure, but of percentiles only the median and p99.
fn is_short((_, of): &Column) -> bool {
    of.percentile.is_none_or(|percent| [TYPICAL, 99.0].contains(&percent))
}

fn head((figure, of): &Column) -> String {
    match (of.percentile, of.side) {
        (Some(percent), _) if percent == TYPICAL => "typical".to_owned(),
        (Some(percent), _) => format!("p{percent}"),
        (None, Some(Side::Near)) => "CPU here".to_owned(),
        (None, Some(Side::Far)) => "CPU there".to_owned(),
        (None, None) => figure.label.to_owned(),
    }
}

/// A figure in words: `9.41 Gb/s ±1.2 %`, `51.5 us`. Times have no interval.
fn in_cell(entry: &Entry, with_interval: bool) -> String {
    let Ok(value) = &entry.value else {
        return "too few".to_owned();
    };
    let words = match entry.figure.unit {
        Unit::Nanos => return Nanos(value.mid.round() as u64).to_string(),
        Unit::NanosPerByte => cost(value.mid),
        unit => unit.words(value.mid),
    };
    let half = value.interval().filter(|_| with_interval).and_then(Interval::relative);
    half.map_or_else(|| words.clone(), |half| format!("{words} {}", plus_minus(half * 100.0)))
}

/// CPU time per byte in words: `0.083 ns/B`, `12.4 ns/B`.
fn cost(nanos: f64) -> String {
    let digits = match nanos {
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    format!("{nanos:.digits$} ns/B")
}
