//! Round trips with each of several values of an option, for people.

use linerate_units::stats::middle;
use linerate_units::{Bytes, Nanos};

use super::super::document::{Entry, LABEL, Table};
use super::super::like::Timed;
use super::super::{Document, Tone, trips};
use super::{Each, View};

/// Columns of a value of the option in the table by size.
const WIDTH: usize = 12;

/// All measurements beside each other, then the page of each.
pub fn page(each: &Each<'_>) -> Document {
    let mut doc = Document::new();
    let mut done = each.done();
    if done.any(|(_, done)| matches!(done.view, View::Sweep(_))) {
        doc.heading(&format!("Typical whole round trips by size and {}", each.option));
        by_size(&mut doc, each);
    } else {
        doc.heading(&format!("Whole round trips by {}", each.option));
        by_value(&mut doc, each);
    }
    for part in &each.parts {
        if let Err(why) = part.measured {
            let text = format!("{} {}: {why}", each.option, part.value);
            doc.entry("not measured", &[(Tone::Warning, &text)], 2);
        }
    }
    for (value, done) in each.done() {
        doc.gap();
        doc.title(&format!("{} {value}", each.option));
        doc.append(done.view.page(done.record));
    }
    doc
}

/// A row for each value.
fn by_value(doc: &mut Document, each: &Each<'_>) {
    let mut heads = trips::HEADS;
    heads[0] = each.option;
    let heads = heads.map(|head| (Tone::Dim, head));
    let mut table = Table::new(&trips::WIDTHS).head(&heads).least(trips::WIDE);
    for (value, done) in each.done() {
        let timed = done.view.timed();
        let first = timed.first().map(|one| one.times);
        let cells = trips::times(value.to_owned(), first);
        let typical = format!("typical {}", cells[2]);
        let spans = cells.each_ref().map(|cell| (Tone::Plain, cell.as_str()));
        let entry = Entry::new(value, &[(Tone::Plain, &typical)], 2);
        table.row_or(&spans, entry);
    }
    doc.table(table);
}

/// A row for each size, with a column for each value.
fn by_size(doc: &mut Document, each: &Each<'_>) {
    let columns: Vec<(&str, Vec<Timed<'_>>)> =
        each.done().map(|(value, done)| (value, done.view.timed())).collect();
    let mut sizes: Vec<Bytes> =
        columns.iter().flat_map(|(_, timed)| timed.iter().map(|one| one.size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut heads = vec![(Tone::Dim, "size")];
    heads.extend(columns.iter().map(|(value, _)| (Tone::Dim, *value)));
    let mut widths = vec![WIDTH; heads.len()];
    widths[0] = LABEL;
    let mut table = Table::new(&widths).head(&heads).least(widths.iter().sum());
    for size in sizes {
        let name = size.to_string();
        let cell = |timed: &[Timed<'_>]| {
            let one = timed.iter().find(|one| one.size == size);
            let typical = one.and_then(|one| middle(one.times));
            typical.map_or("unknown".to_owned(), |nanos| Nanos(nanos).to_string())
        };
        let cells: Vec<String> = columns.iter().map(|(_, timed)| cell(timed)).collect();
        let told = columns.iter().zip(&cells);
        let told: Vec<String> = told.map(|((value, _), cell)| format!("{value} {cell}")).collect();
        let entry = Entry::new(&name, &[(Tone::Plain, &told.join(", "))], 2);
        let mut spans = vec![(Tone::Strong, name.as_str())];
        spans.extend(cells.iter().map(|cell| (Tone::Good, cell.as_str())));
        table.row_or(&spans, entry);
    }
    doc.table(table);
}

#[cfg(test)]
mod tests {
    use super::super::super::{Style, sample as records};
    use super::super::sample;
    use super::*;

    #[test]
    fn golden_of_operations_beside_each_other() {
        let record = records::healthy().0;
        let views = sample::sweeps();
        let each = sample::each(&views, &record);
        insta::assert_snapshot!("each_sweeps", page(&each).text(Style::PLAIN));
        insta::assert_snapshot!("each_markdown", page(&each).markdown());
        let narrow = Style { width: 40, color: false };
        insta::assert_snapshot!("each_narrow", page(&each).text(narrow));
    }
}
