//! Shows one path measured by several layers as text: a column for each layer.

use linerate_judge::figure::{CEILING, CPU, GOODPUT, LATENCY};
use linerate_judge::model::same_machine;
use linerate_judge::study::Point;
use linerate_plan::study::Axis;
use linerate_record::Record;

use super::super::{Document, Tone};
use super::Study;
use super::grid::Grid;

/// Names of the two axes of a study of layers: the layer, and the part of its measurement.
pub const LAYERS: &str = "layer";
pub const PART: &str = "part";

/// Names of the layers and what each means, in the order of the columns.
const MEANINGS: [(&str, &str); 4] = [
    ("verbs", "linerate's own threads, by requests to the RDMA device"),
    ("sockets", "linerate's own threads, by the kernel's TCP"),
    ("program", "an ordinary program with a socket and poll, at each end"),
    ("preload", "the same program, unchanged, started with librspreload"),
];

/// The page: the table, the meaning of the layers, and notes.
pub(super) fn page(study: &Study<'_>, axes: [&Axis; 2]) -> Document {
    let mut doc = Document::new();
    let target = study.target.unwrap_or_default();
    doc.heading(&format!("One path to {target}, by layer"));
    table(&mut doc, axes, &study.points());
    doc.gap();
    for (name, meaning) in MEANINGS {
        if axes[0].values.iter().any(|value| value.label == name) {
            doc.entry(name, &[(Tone::Dim, meaning)], 2);
        }
    }
    doc.gap();
    for note in notes(study) {
        doc.line(&[(Tone::Dim, note)], 0);
    }
    doc
}

/// Writes a row for each figure, and a column for each layer.
pub(super) fn table(doc: &mut Document, axes: [&Axis; 2], points: &[Point]) {
    Grid::of_pairs(axes, points, &[&LATENCY, &GOODPUT, &CEILING, &CPU]).write(doc);
}

/// Whether the threads of a part poll, so that they are busy at any load.
pub(super) fn polls(record: &Record) -> bool {
    record.sets.iter().any(|set| set.plan.knobs.busy_poll)
}

/// Notes about how to read the figures.
fn notes(study: &Study<'_>) -> Vec<&'static str> {
    let any = |is: fn(&Record) -> bool| study.made().any(|(_, made)| is(made.record));
    let rows = [
        (
            true,
            "Whole round trips. Goodput of one connection or queue pair. CPU time of the threads that move the payload, \
             without what the kernel does in interrupts and threads of its own.",
        ),
        (
            any(polls),
            "Threads of verbs poll: they use a whole CPU at any load. With --events they sleep.",
        ),
        (
            any(same_machine),
            "Both ends run on one machine, and share its CPUs: the figures are no comparison of paths.",
        ),
    ];
    rows.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect()
}
