//! Rows of a disk as text: each row of a disk benchmark, read and written.

use linerate_judge::figure::{Entry, Figure, GOODPUT, LATENCY, OPERATIONS};
use linerate_judge::study::{Point, TYPICAL};
use linerate_plan::study::Axis;
use linerate_units::{Nanos, digits};

use super::super::document::{LABEL, Table};
use super::super::{Document, Tone};
use super::Study;

/// Names of the two axes of a study of rows: the row, and whether it is read or written.
pub const ROW: &str = "row";
pub const ACCESS: &str = "access";

/// Bits of goodput for each MB/s, of 10^6 bytes.
const BITS_OF_MB: f64 = 8e6;

/// The page: a line for each row and access, and how to read them.
pub(super) fn page(study: &Study<'_>, axes: [&Axis; 2]) -> Document {
    let mut doc = Document::new();
    let target = study.target.unwrap_or_default();
    doc.heading(&format!("{target}, by row (MB = 10^6 bytes)"));
    let head = ["", "", "MB/s", "", "operations/s", "p50", "p99"];
    let mut table = Table::new(&[LABEL, 7, 9, 9, 14, 10, 0]);
    table = table.head(&head.map(|cell| (Tone::Strong, cell)));
    let points = study.points();
    for row in &axes[0].values {
        let mut name = row.label.as_str();
        for access in &axes[1].values {
            let at = [&row.label, &access.label];
            let point = points.iter().find(|point| point.values.iter().eq(at));
            let cells = point.map_or_else(Default::default, cells);
            let cells = [&[name.to_owned(), access.label.clone()][..], &cells].concat();
            let cells: Vec<_> = cells.iter().map(|cell| (Tone::Plain, cell.as_str())).collect();
            table.row(&cells);
            name = "";
        }
    }
    doc.table(table);
    doc.gap();
    for note in [
        "Means over the measuring time, with half of the 95 % interval. Times are those of single operations, from their \
         start to their end.",
        "A folder is measured by a file of linerate's own, past the page cache. It has no name, and is gone.",
    ] {
        doc.line(&[(Tone::Dim, note)], 0);
    }
    doc
}

/// The figures of a point: MB/s, half of their interval, operations in a second, and two percentiles of their times.
fn cells(point: &Point) -> [String; 5] {
    let find = |figure: &Figure, percentile: Option<f64>| {
        let mut entries = point.summary.entries.iter();
        let entry = |e: &&Entry| *e.figure == *figure && e.of.percentile == percentile;
        entries.find(entry).and_then(|entry| entry.value.as_ref().ok())
    };
    let goodput = find(&GOODPUT, None);
    let rate = goodput.map(|value| digits(value.mid / BITS_OF_MB));
    let half = goodput.and_then(|value| {
        let interval = value.interval()?;
        Some(format!("±{:.1} %", (interval.high - interval.low) / 2.0 / value.mid * 100.0))
    });
    let operations = find(&OPERATIONS, None).map(|value| digits(value.mid));
    let time = |percent| {
        let value = find(&LATENCY, Some(percent))?;
        Some(Nanos(value.mid as u64).to_string())
    };
    [rate, half, operations, time(TYPICAL), time(99.0)].map(Option::unwrap_or_default)
}
