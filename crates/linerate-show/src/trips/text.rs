//! Round trips by message size, for people.

use linerate_units::stats::{Histogram, middle, moments, percentile, samples};
use linerate_units::{Bytes, Nanos};

use super::super::bw::text::unknown;
use super::super::document::{Entry, Item, Table};
use super::super::words::{self, count};
use super::super::{Document, Tone, fitted};
use super::{Probe, number};

/// Columns of the size, of each time, and of the number of samples.
pub(crate) const WIDTHS: [usize; 9] = [9, 9, 9, 9, 9, 9, 9, 9, 0];
pub(crate) const HEADS: [&str; 9] =
    ["size", "least", "typical", "mean", "std dev", "p99", "p99.9", "most", "samples"];

/// Least number of columns of a page for the table.
pub(crate) const WIDE: usize = 80;

/// The page of a sweep.
pub fn page(probe: &Probe) -> Document {
    let mut doc = Document::new();
    if !probe.broken.is_empty() {
        let why = format!("{}; the results until then follow", probe.broken);
        doc.line(&[(Tone::Warning, "Ended early: "), (Tone::Plain, &why)], 0);
        doc.gap();
    }
    doc.heading(&title(probe));
    sizes(&mut doc, probe);
    lost(&mut doc, probe);
    lacking(&mut doc, probe);
    doc.gap();
    shown(&mut doc, probe);
    doc.gap();
    doc.line(&[(Tone::Dim, &head(probe))], 0);
    unknown(&mut doc, &probe.gaps);
    doc
}

fn title(probe: &Probe) -> String {
    if probe.engine == "connect" {
        "Whole round trips of a connection and a message, by size".to_owned()
    } else {
        "Whole round trips, there and back, by size of the message and of its answer".to_owned()
    }
}

/// Cells of a row: its name, seven times and the number of samples.
pub(crate) fn times(name: String, times: Option<&Histogram>) -> [String; 9] {
    let none = String::new;
    let time =
        |nanos: Option<f64>| nanos.map_or_else(none, |n| Nanos(n.round() as u64).to_string());
    let whole = |nanos: Option<u64>| time(nanos.map(|n| n as f64));
    let exact = times.and_then(|times| times.exact);
    let found = times.and_then(moments);
    let number = times.map_or(0, samples);
    let share = |q| whole(times.and_then(|times| percentile(times, q)));
    [
        name,
        whole(exact.map(|exact| exact.least)),
        whole(times.and_then(middle)),
        time(found.map(|found| found.mean)),
        time(found.filter(|_| number > 1).map(|found| found.deviation)),
        share(0.99),
        share(0.999),
        whole(exact.map(|exact| exact.most)),
        number.to_string(),
    ]
}

fn sizes(doc: &mut Document, probe: &Probe) {
    let heads = HEADS.map(|head| (Tone::Dim, head));
    let mut table = Table::new(&WIDTHS).head(&heads).least(WIDE);
    for row in probe.rows.iter().filter(|row| row.times.is_some()) {
        let size = row.size.to_string();
        let cells = times(size.clone(), row.times.as_ref());
        let body = narrow(&cells, number(row));
        let entry = Entry::new(&size, &[(Tone::Plain, &body)], 2);
        let tone = |at: usize| match at {
            0 => Tone::Strong,
            2 => Tone::Good,
            _ => Tone::Plain,
        };
        let spans: Vec<_> =
            cells.iter().enumerate().map(|(at, cell)| (tone(at), cell.as_str())).collect();
        table.row_or(&spans, entry);
    }
    doc.table(table);
}

/// Messages that were never answered, by size.
fn lost(doc: &mut Document, probe: &Probe) {
    let lossy = probe.rows.iter().filter_map(|row| Some((row, probe.lost(row)?)));
    let told = lossy.filter(|(_, lost)| *lost > 0).map(|(row, lost)| {
        let all = number(row).saturating_add(lost);
        format!("{} ({lost} of {all}) of {}", words::share(lost, all), row.size)
    });
    let told: Vec<String> = told.collect();
    if !told.is_empty() {
        let text = format!("{}: never answered, and no samples", told.join(", "));
        doc.entry("lost", &[(Tone::Warning, &text)], 2);
    }
}

/// The sizes that were not timed, and why.
fn lacking(doc: &mut Document, probe: &Probe) {
    for (why, sizes) in probe.lacking() {
        let sizes: Vec<String> = sizes.iter().map(Bytes::to_string).collect();
        let text = format!("{}: {why}", sizes.join(", "));
        doc.entry("not measured", &[(Tone::Warning, &text)], 2);
    }
}

/// The wait of messages that are sent in two writes.
fn delays(doc: &mut Document, probe: &Probe) {
    let delayed: Vec<_> = probe.rows.iter().filter(|row| row.delayed.is_some()).collect();
    let most = delayed.iter().filter_map(|row| row.delayed).max();
    let (Some(first), Some(last), Some(most)) = (delayed.first(), delayed.last(), most) else {
        return;
    };
    let sizes = if delayed.len() == 1 {
        first.size.to_string()
    } else {
        format!("{} to {}", first.size, last.size)
    };
    let text = format!("{sizes}: {}", words::delayed(most));
    doc.item(Item::new(&[(Tone::Warning, &text)]).indent(0, 4));
}

/// A row in words, for narrow pages: `typical 51.5 us, least 48 us, ..., 1200 samples`.
fn narrow(cells: &[String; 9], samples: u64) -> String {
    let order = [2, 1, 3, 4, 5, 6, 7];
    let known = order.into_iter().filter(|at| !cells[*at].is_empty());
    let told = known.map(|at| format!("{} {}", HEADS[at], cells[at]));
    let number = std::iter::once(count(samples, "sample"));
    told.chain(number).collect::<Vec<_>>().join(", ")
}

/// What the times show: a rate, a timer, and the links that agree.
fn shown(doc: &mut Document, probe: &Probe) {
    doc.heading("What times by size show");
    delays(doc, probe);
    if let Some(timer) = probe.timer() {
        fitted::ticks(doc, "whole round trips", &timer, probe.agreement());
    }
    let what = "each way if both are alike, by halves of typical round trips";
    fitted::rate(doc, what, probe.fit().as_ref(), probe.agreement());
}

fn head(probe: &Probe) -> String {
    let starts = words::starts_far_end(&probe.engine);
    let far = match &probe.target {
        Some(target) => format!("linerate at {target}"),
        None => "two processes of this host".to_owned(),
    };
    let how = words::how_sent(&probe.knobs);
    let shared = if probe.same_machine && !starts { ", both ends on this machine" } else { "" };
    let sizes = count(probe.rows.len() as u64, "size");
    format!(
        "{far}, {}, closed loop{how}, idle path, {sizes} in turn in {}{shared}",
        words::engine(&probe.engine, &probe.options),
        probe.time
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::Style;
    use super::super::sample;
    use super::*;

    #[test]
    fn golden_of_round_trips_by_size() {
        let page = |probe: &Probe| page(probe).text(Style::PLAIN);
        insta::assert_snapshot!("trips_whole", page(&sample::whole()));
        insta::assert_snapshot!("trips_slow", page(&sample::slow()));
        insta::assert_snapshot!("trips_broken", page(&sample::broken()));
        insta::assert_snapshot!("trips_lossy", page(&sample::lossy()));
        insta::assert_snapshot!("trips_delayed", page(&sample::delayed()));
        let narrow = Style { width: 60, color: false };
        insta::assert_snapshot!("trips_narrow", super::page(&sample::slow()).text(narrow));
        insta::assert_snapshot!("trips_markdown", super::page(&sample::whole()).markdown());
    }
}
