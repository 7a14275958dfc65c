//! Layers of a path, for people: one column for each.

use linerate_plan::path::{Direction, Side};
use linerate_units::{Nanos, Rate};

use super::super::bw::text::unknown;
use super::super::document::Table;
use super::super::{Document, Tone};
use super::{Layer, Layers};

/// Columns of the name of a figure, and of each layer.
const NAME: usize = 26;
const EACH: usize = 13;
/// The percentiles that are shown.
const PERCENTILES: [(f64, &str); 2] = [(50.0, "median"), (99.0, "p99")];
/// The cell of a figure that is not known.
const NONE: &str = "unknown";

/// What the layers are, in the order of columns.
const MEANINGS: [(&str, &str); 4] = [
    ("verbs", "linerate's own threads, by requests to the RDMA device"),
    ("sockets", "linerate's own threads, by the kernel's TCP"),
    ("program", "an ordinary program with a socket and poll, at each end"),
    ("preload", "the same program, unchanged, started with librspreload"),
];

/// A figure of each layer.
struct Row {
    name: String,
    cells: Vec<Option<String>>,
}

/// The page.
pub fn page(layers: &Layers) -> Document {
    let mut doc = Document::new();
    doc.heading(&format!("One path to {}, by layer", layers.target));
    table(&mut doc, layers);
    doc.gap();
    for (name, meaning) in MEANINGS {
        if layers.layers.iter().any(|layer| layer.name == name) {
            doc.entry(name, &[(Tone::Dim, meaning)], 2);
        }
    }
    doc.gap();
    for note in notes(layers) {
        doc.line(&[(Tone::Dim, note)], 0);
    }
    for layer in &layers.layers {
        unknown(&mut doc, &layer.gaps);
    }
    doc
}

fn table(doc: &mut Document, layers: &Layers) {
    let mut widths = vec![EACH; layers.layers.len() + 1];
    if let Some(first) = widths.first_mut() {
        *first = NAME;
    }
    let names = layers.layers.iter().map(|layer| (Tone::Strong, layer.name));
    let heads: Vec<_> = [(Tone::Dim, "")].into_iter().chain(names).collect();
    let mut narrow = Document::new();
    let mut table = Table::new(&widths).head(&heads);
    for row in rows(layers) {
        let cells = row.cells.iter().map(|cell| match cell {
            Some(cell) => (Tone::Plain, cell.as_str()),
            None => (Tone::Warning, NONE),
        });
        let cells: Vec<_> = [(Tone::Plain, row.name.as_str())].into_iter().chain(cells).collect();
        table.row(&cells);
        narrow.line(&[(Tone::Plain, &in_line(&row, layers))], 2);
    }
    let least = NAME + EACH * layers.layers.len();
    doc.table(table.least(least).narrow(narrow));
}

/// A row on a page that is too narrow for the table.
fn in_line(row: &Row, layers: &Layers) -> String {
    let each = layers.layers.iter().zip(&row.cells);
    let each = each.map(|(layer, cell)| {
        let cell = cell.as_deref().unwrap_or(NONE);
        format!("{} {cell}", layer.name)
    });
    let all = each.collect::<Vec<_>>().join(", ");
    format!("{}: {all}", row.name)
}

/// The figures: round trips by size, then the loads of each direction.
fn rows(layers: &Layers) -> Vec<Row> {
    let row = |name: String, cell: &dyn Fn(&Layer) -> Option<String>| Row {
        name,
        cells: layers.layers.iter().map(cell).collect(),
    };
    let mut rows = Vec::new();
    for size in &layers.sizes {
        for (percent, name) in PERCENTILES {
            let cell = |layer: &Layer| {
                let nanos = layer.trips(*size)?.percentile(percent);
                Some(nanos.map_or_else(
                    || "too few".to_owned(),
                    |nanos| Nanos(nanos.round() as u64).to_string(),
                ))
            };
            rows.push(row(format!("{size} round trip, {name}"), &cell));
        }
    }
    for direction in &layers.directions {
        let (way, direction) = (direction.name(), *direction);
        let goodput = |layer: &Layer| {
            let rate = layer.load(direction)?.goodput()?;
            Some(Rate(rate as u64).to_string())
        };
        rows.push(row(format!("{way}, goodput"), &goodput));
        let has_share = |layer: &Layer| layer.load(direction).is_some_and(|l| l.share.is_some());
        if layers.layers.iter().any(has_share) {
            let share =
                |layer: &Layer| Some(format!("{:.0} %", layer.load(direction)?.share? * 100.0));
            rows.push(row(format!("{way}, of ceiling"), &share));
        }
        for (side, place) in [(Side::Near, "here"), (Side::Far, "there")] {
            let cell = |layer: &Layer| cpu(layer, direction, side);
            rows.push(row(format!("{way}, CPU {place}"), &cell));
        }
    }
    rows
}

/// `0.083 ns/B`, `12.4 ns/B`.
fn cpu(layer: &Layer, direction: Direction, side: Side) -> Option<String> {
    let nanos = layer.load(direction)?.cpu(side)?;
    let digits = match nanos {
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    Some(format!("{nanos:.digits$} ns/B"))
}

/// What to know of the figures.
fn notes(layers: &Layers) -> Vec<&'static str> {
    let all = &layers.layers;
    let measured = |layer: &&Layer| !layer.trips.is_empty() || !layer.loads.is_empty();
    let rows = [
        (
            true,
            "Whole round trips. Goodput of one connection or queue pair. CPU time of the threads that move the payload, \
             without what the kernel does in interrupts and threads of its own.",
        ),
        (
            all.iter().filter(measured).any(Layer::polls),
            "Threads of verbs poll: they use a whole CPU at any load. With --events they sleep.",
        ),
        (
            layers.same_machine == Some(true),
            "Both ends run on one machine, and share its CPUs: the figures are no comparison of paths.",
        ),
    ];
    let told = rows.into_iter().filter(|(is_so, _)| *is_so);
    told.map(|(_, note)| note).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::Style;
    use super::super::super::document::width_of;
    use super::super::sample;
    use super::*;

    #[test]
    fn golden_at_80_columns() {
        insta::assert_snapshot!("layers", page(&sample::all()).text(Style::PLAIN));
    }

    #[test]
    fn golden_of_markdown_without_the_library() {
        insta::assert_snapshot!("layers_markdown", page(&sample::without_preload()).markdown());
    }

    #[test]
    fn no_line_is_longer_than_the_page() {
        for width in [50, 60, 80] {
            let color = false;
            let text = page(&sample::without_preload()).text(Style { width, color });
            for line in text.lines() {
                assert!(width_of(line) <= width, "{width}: {line}");
            }
        }
    }
}
