//! The comparison of two records as a page of text.

use std::collections::BTreeMap;

use linerate_explain::diff::{Diff, Fate, FigureChange, Judged, LimitChange, Outcome, RowChange};
use linerate_judge::figure::{GOODPUT, Unit, Value};
use linerate_judge::model::Estimate;
use linerate_plan::path::Side;
use linerate_units::stats::Interval;
use linerate_units::{Bytes, digits, stamp};

use super::super::document::{Entry, Item, LABEL, Table};
use super::super::names::Names;
use super::super::{Document, Tone, words};
use super::Compared;

/// Widths of the columns in characters: label, value before, value after, change.
const WIDTHS: [usize; 4] = [LABEL, 18, 18, 28];

/// Percentiles that the page shows, as the page of `show` does; the others are in the JSON document.
const SHOWN: [f64; 2] = [50.0, 99.0];

/// A page of the differences, the most important first: plans, then figures, limits and hosts.
pub fn page(compared: &Compared<'_>) -> Document {
    let Compared { before, after, diff } = compared;
    let names = Names::of_hosts(&after.model);
    let mut doc = Document::new();
    answer(&mut doc, diff, &names);
    doc.gap();
    plans(&mut doc, diff);
    for note in &diff.notes {
        let note = format!(" {note}");
        doc.line(&[(Tone::Warning, "Note:"), (Tone::Plain, &note)], 2);
    }
    doc.gap();
    limits(&mut doc, compared, &names);
    doc.gap();
    disturbances(&mut doc, diff, &names);
    doc.gap();
    facts(&mut doc, diff, &names);
    doc.gap();
    figures(&mut doc, diff, &names);
    rows(&mut doc, diff);
    doc.gap();
    record(&mut doc, "before", before);
    record(&mut doc, "after", after);
    legend(&mut doc, diff);
    doc
}

/// Writes a line for each direction with the change of its goodput.
fn answer(doc: &mut Document, diff: &Diff, names: &Names) {
    for change in diff.figures.iter().filter(|f| f.figure.id == GOODPUT.id) {
        let Some(direction) = change.of.direction else {
            continue;
        };
        let rate = |v: &Option<Value>| {
            v.as_ref().map_or("?".to_owned(), |v| change.figure.unit.words(v.mid))
        };
        let way = names.way(direction);
        let rates = format!("{} -> {}", rate(&change.before), rate(&change.after));
        let what = format!("{}{}", outcome(change.outcome), because(change));
        let head = [(way.as_str(), 0.into()), (rates.as_str(), 0.into())];
        let item = Item::new(&[(tone(change.outcome), &what)]).indent(0, 2);
        doc.item(item.head(Tone::Strong, &head));
    }
}

fn record(doc: &mut Document, label: &str, judged: &Judged<'_>) {
    let start = &judged.record.start;
    let of = match (&start.plan.peer, &judged.record.imported) {
        (_, Some(imported)) => {
            let names = imported.files.iter().map(|file| file.name.as_str());
            format!("import of {}", names.collect::<Vec<_>>().join(", "))
        }
        (Some(peer), None) => format!("to {peer}"),
        (None, None) => "this machine against itself".to_owned(),
    };
    let note = match start.note.as_str() {
        "" => String::new(),
        note => format!(" | {note}"),
    };
    let text = format!("{}, {of}{note}", stamp(start.wall_secs));
    doc.entry(label, &[(Tone::Plain, &text)], 0);
}

fn plans(doc: &mut Document, diff: &Diff) {
    if diff.plan.is_empty() {
        return;
    }
    let load = diff.plan.iter().any(|p| p.load);
    let title = if load {
        "DIFFERENT PLANS: the two runs did not put the same load on the path."
    } else {
        "Different plans, with the same load:"
    };
    let tone = if load { Tone::Warning } else { Tone::Strong };
    doc.line(&[(tone, title)], 0);
    for plan in &diff.plan {
        let change = &plan.change;
        let text = format!("{}: {} -> {}", change.what, change.before, change.after);
        doc.entry("", &[(Tone::Plain, &text)], 2);
    }
    if load {
        let idle = if diff.plan.iter().any(|p| p.idle) {
            ""
        } else {
            " Round trips on the idle path are comparable."
        };
        let text = format!(
            " the figures under that load: rates, round trips, retransmitted segments, lost \
             datagrams, CPU time. Limits apply to the load of each run.{idle}"
        );
        doc.line(&[(Tone::Warning, "Not comparable:"), (Tone::Plain, &text)], 2);
    }
}

fn figures(doc: &mut Document, diff: &Diff, names: &Names) {
    let shown: Vec<&FigureChange> = diff.figures.iter().filter(|f| is_shown(f)).collect();
    for alike in shown.chunk_by(|a, b| a.of.direction == b.of.direction) {
        let of = alike[0].of.direction;
        let of = of.map_or("idle path".to_owned(), |direction| names.way(direction));
        let cells = [of.as_str(), "before", "after", RATIO];
        let mut narrow = Document::new();
        narrow.heading(&of);
        let mut table = Table::new(&WIDTHS)
            .head(&cells.map(|cell| (Tone::Strong, cell)))
            .least(WIDTHS.iter().sum())
            .narrow(narrow);
        for change in alike {
            row(&mut table, change);
        }
        doc.gap();
        doc.table(table);
    }
}

/// Writes rows of tables: for a table by size one table for each figure, for other tables one table with all figures.
fn rows(doc: &mut Document, diff: &Diff) {
    let first = main_keys(diff);
    let mut shown: Vec<&RowChange> =
        diff.rows.iter().filter(|row| is_row_shown(row, &first)).collect();
    let figure = |row: &RowChange| row.size.map(|_| row.figure.label);
    shown.sort_by(|a, b| (&a.title, figure(a), a.size).cmp(&(&b.title, figure(b), b.size)));
    for alike in shown.chunk_by(|a, b| a.title == b.title && figure(a) == figure(b)) {
        let first = alike[0];
        let of = figure(first).map_or(String::new(), |figure| format!(": {figure}"));
        doc.gap();
        doc.heading(&format!("{}{of}", first.title));
        let mut table = Table::new(&WIDTHS)
            .head(&["", "before", "after", RATIO].map(|cell| (Tone::Strong, cell)))
            .least(WIDTHS.iter().sum())
            .narrow(Document::new());
        for change in alike {
            let label =
                change.size.map_or_else(|| change.figure.label.to_owned(), |size| size.to_string());
            let cells = [&change.before, &change.after].map(|v| value(change.figure.unit, v));
            cells_of(&mut table, &label, cells, change.outcome);
        }
        doc.table(table);
    }
}

/// For each title and size its main figure: the index of the first of [`MAIN_KEYS`] that its rows have.
fn main_keys(diff: &Diff) -> BTreeMap<(&str, Bytes), usize> {
    let mut first = BTreeMap::new();
    for row in &diff.rows {
        let at = MAIN_KEYS.iter().position(|key| *key == row.figure.key);
        if let (Some(size), Some(at)) = (row.size, at) {
            let least = first.entry((row.title.as_str(), size)).or_insert(at);
            *least = at.min(*least);
        }
    }
    first
}

/// Whether the page shows a figure of a row: for a size its main figure and p99 only; the rest is in JSON.
fn is_row_shown(row: &RowChange, first: &BTreeMap<(&str, Bytes), usize>) -> bool {
    row.size.is_none_or(|size| {
        let stands = first.get(&(row.title.as_str(), size)).map(|at| MAIN_KEYS[*at]);
        row.figure.key == P99 || stands == Some(row.figure.key)
    })
}

/// Figures that can be the main figure of a size, the preferred one first.
const MAIN_KEYS: [&str; 4] = ["median_ns", "mean_ns", "least_ns", "goodput_bps"];

/// Key of the 99th percentile of the times of a message size.
const P99: &str = "p99_ns";

/// Heading of the column of changes.
const RATIO: &str = "ratio (95 % interval)";

fn is_shown(change: &FigureChange) -> bool {
    change.of.percentile.is_none_or(|p| SHOWN.contains(&p))
}

fn row(table: &mut Table, change: &FigureChange) {
    let cell = |v: &Option<Value>| match v {
        Some(v) => value(change.figure.unit, v),
        None => "-".to_owned(),
    };
    let cells = [cell(&change.before), cell(&change.after)];
    cells_of(table, &label(change), cells, change.outcome);
}

/// Adds a table row with the values before and after, and the change.
fn cells_of(table: &mut Table, label: &str, [before, after]: [String; 2], change: Outcome) {
    let tone = tone(change);
    let change = outcome(change);
    let text = format!("{before}, then {after}: ");
    let entry = Entry::new(label, &[(Tone::Plain, &text), (tone, &change)], 2);
    let row =
        [(Tone::Plain, label), (Tone::Plain, &before), (Tone::Plain, &after), (tone, &change)];
    table.row_or(&row, entry);
}

fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Differ(_) => Tone::Strong,
        Outcome::OtherPlan => Tone::Warning,
        _ => Tone::Plain,
    }
}

/// Name of a figure: `goodput`, `round trip p99`, `near CPU time`.
fn label(change: &FigureChange) -> String {
    let label = change.figure.label;
    match (change.of.percentile, change.of.side) {
        (Some(p), _) => format!("{label} p{p}"),
        (_, Some(side)) => format!("{} {label}", side.name()),
        _ => label.to_owned(),
    }
}

/// A value in words, with half of its interval if the interval is symmetric.
fn value(unit: Unit, value: &Value) -> String {
    let words = unit.words(value.mid);
    let interval = value.interval();
    match unit {
        Unit::BitsPerSecond => words::bits(&Estimate { mean: value.mid, interval, samples: 0 }),
        Unit::Nanos | Unit::Share | Unit::BytesPerSecond => words,
        Unit::PerSecond | Unit::NanosPerByte => {
            let percent = interval.and_then(Interval::relative);
            percent.map_or(words.clone(), |half| format!("{words} ±{:.1} %", half * 100.0))
        }
    }
}

/// Largest ratio that is shown as a number: a larger one means that the value before was about zero.
const MOST: f64 = 100.0;

/// Largest quotient of upper and lower end of an interval at which the interval is shown.
const SPREAD: f64 = 10.0;

/// The change in words: the ratio with the ends of its 95 % interval; no number if one of the values is about zero,
/// or if the interval is too wide.
fn outcome(outcome: Outcome) -> String {
    let ends = |i: Interval| format!("({} to {})", digits(i.low), digits(i.high));
    let says_nothing = |i: Interval| i.low <= 0.0 || i.high > i.low * SPREAD;
    match outcome {
        Outcome::Differ(i) if i.mid > MOST => format!("more than x{MOST}"),
        Outcome::Differ(i) if i.mid < 1.0 / MOST => format!("less than x{}", 1.0 / MOST),
        Outcome::Differ(i) if says_nothing(i) && i.mid > 1.0 => "more, x not known".to_owned(),
        Outcome::Differ(i) if says_nothing(i) => "less, x not known".to_owned(),
        Outcome::Unclear(i) if says_nothing(i) => "unclear".to_owned(),
        Outcome::Differ(i) => format!("x{} {}", digits(i.mid), ends(i)),
        Outcome::Same(i) => format!("equal {}", ends(i)),
        Outcome::Unclear(i) => format!("unclear {}", ends(i)),
        Outcome::Bare(ratio) if ratio > MOST => format!("more than x{MOST}"),
        Outcome::Bare(ratio) if ratio < 1.0 / MOST => format!("less than x{}", 1.0 / MOST),
        Outcome::Bare(ratio) => format!("x{}, no interval", digits(ratio)),
        Outcome::Nothing(why) => why.to_owned(),
        Outcome::OtherPlan => "not comparable".to_owned(),
    }
}

/// Why a change is unclear: which value has no interval, else which one varied most. Empty if the change is clear.
fn because(change: &FigureChange) -> String {
    if !matches!(change.outcome, Outcome::Unclear(_)) {
        return String::new();
    }
    let deviation = |value: &Option<Value>| value.as_ref()?.interval()?.relative();
    let [before, after] = [deviation(&change.before), deviation(&change.after)];
    let varied =
        |half: f64, when| format!(": it varied by {} {when}", words::plus_minus(half * 100.0));
    match (before, after) {
        (None, _) => ": too few samples before for an interval".to_owned(),
        (_, None) => ": too few samples after for an interval".to_owned(),
        (Some(before), Some(after)) if before > after => varied(before, "before"),
        (_, Some(after)) => varied(after, "after"),
    }
}

fn limits(doc: &mut Document, compared: &Compared<'_>, names: &Names) {
    let Compared { before, after, diff } = compared;
    doc.heading("Limits");
    if diff.limits.is_empty() {
        let is_judged = [before, after].iter().any(|judged| !judged.verdict.answers.is_empty());
        let none = if is_judged {
            "  none was found in either record"
        } else {
            "  neither record has a load that is judged"
        };
        doc.line(&[(Tone::Plain, none)], 2);
    }
    for change in &diff.limits {
        limit(doc, change, names);
    }
}

fn limit(doc: &mut Document, change: &LimitChange, names: &Names) {
    let limit = &change.limit;
    let what = format!(
        "{} ({}), {} [{}]",
        words::named(limit, names),
        limit.cause,
        names.way(limit.direction),
        certainty(change),
    );
    let tone = if change.fate == Fate::Still { Tone::Plain } else { Tone::Strong };
    doc.entry(change.fate.name(), &[(tone, &what)], 2);
    if !change.why.is_empty() {
        let when = if change.after.is_some() { "before" } else { "after" };
        let why = format!("{when}: {}", change.why);
        doc.detail(&[(Tone::Dim, &why)], 2);
    }
}

fn disturbances(doc: &mut Document, diff: &Diff, names: &Names) {
    if diff.disturbances.is_empty() {
        return;
    }
    doc.heading("Disturbances");
    for change in &diff.disturbances {
        let disturbance = &change.disturbance;
        let what = words::disturbed(disturbance, names);
        doc.entry(change.fate.name(), &[(Tone::Strong, &what)], 2);
        doc.detail(&[(Tone::Plain, &words::explains(disturbance))], 2);
    }
}

fn certainty(change: &LimitChange) -> String {
    match (change.before, change.after) {
        (Some(a), Some(b)) if a == b => a.name().to_owned(),
        (Some(a), Some(b)) => format!("{} before, {} after", a.name(), b.name()),
        (Some(a), None) => format!("{} before", a.name()),
        (None, Some(b)) => format!("{} after", b.name()),
        (None, None) => String::new(),
    }
}

fn facts(doc: &mut Document, diff: &Diff, names: &Names) {
    doc.heading("Hosts");
    for side in [Side::Near, Side::Far] {
        let mut label = names.of(side);
        for (_, change) in diff.facts.iter().filter(|(of, _)| *of == side) {
            let text = format!("{}: {} -> {}", change.what, change.before, change.after);
            doc.entry(label, &[(Tone::Plain, &text)], 2);
            label = "";
        }
        if !label.is_empty() {
            doc.entry(label, &[(Tone::Dim, "no difference is known")], 0);
        }
    }
}

/// Writes what the words in the tables mean.
fn legend(doc: &mut Document, diff: &Diff) {
    let figures = diff.figures.iter().filter(|f| is_shown(f));
    let figures = figures.map(|f| f.outcome);
    let rows = diff.rows.iter().map(|row| row.outcome);
    let shown: Vec<Outcome> = figures.chain(rows).collect();
    let any = |is: fn(&Outcome) -> bool| shown.iter().any(is);
    let mut text = String::new();
    if any(|t| matches!(t, Outcome::Same(_))) {
        text += "equal: within 3 %. ";
    }
    if any(|t| matches!(t, Outcome::Unclear(_))) {
        text += "unclear: a difference cannot be shown; the 95 % interval reaches into x0.97 to x1.03. ";
    }
    if any(|t| matches!(t, Outcome::Bare(_))) {
        text += "no interval: how much the figure varies is not known. ";
    }
    text += "Intervals are of these two runs; runs of one path may differ by more.";
    doc.line(&[(Tone::Dim, &text)], 0);
}

#[cfg(test)]
mod tests {
    use super::super::super::Style;
    use super::super::super::document::width_of;
    use super::super::sample;
    use super::*;

    fn view(width: usize, color: bool) -> String {
        sample::with(|compared| page(compared).text(Style { width, color }))
    }

    #[test]
    fn golden_at_80_columns() {
        insta::assert_snapshot!("diff", view(80, false));
    }

    #[test]
    fn no_ratio_stands_over_about_zero_or_within_an_absurd_interval() {
        let of = |low, mid, high| Interval { low, mid, high };
        let shown = |low, mid, high| outcome(Outcome::Differ(of(low, mid, high)));
        assert_eq!(shown(60.0, 100.0, 140.0), "x100 (60.0 to 140)");
        assert_eq!(shown(60.0, 101.0, 140.0), "more than x100");
        assert_eq!(shown(0.005, 0.0099, 0.02), "less than x0.01");
        assert_eq!(shown(1.7, 15.0, 17.0), "x15.0 (1.70 to 17.0)");
        assert_eq!(shown(1.7, 15.0, 17.1), "more, x not known");
        assert_eq!(shown(0.0, 0.5, 0.9), "less, x not known");
        let unclear = |low, high| outcome(Outcome::Unclear(of(low, 1.0, high)));
        assert_eq!(unclear(0.5, 5.0), "unclear (0.50 to 5.00)");
        assert_eq!(unclear(0.5, 5.1), "unclear");
    }

    #[test]
    fn golden_of_other_plans() {
        let view = sample::with_other_plans(|compared| page(compared).text(Style::PLAIN));
        insta::assert_snapshot!("diff_other_plans", view);
    }

    #[test]
    fn golden_of_rows() {
        let view = sample::with_rows(|compared| page(compared).text(Style::PLAIN));
        insta::assert_snapshot!("diff_rows", view);
        let narrow = Style { width: 60, color: false };
        let view = sample::with_rows(|compared| page(compared).text(narrow));
        insta::assert_snapshot!("diff_rows_narrow", view);
    }

    #[test]
    fn no_line_is_longer_than_the_page_and_colour_changes_nothing_else() {
        for width in [60, 80, 100] {
            for line in view(width, false).lines() {
                assert!(width_of(line) <= width, "{width}: {line}");
            }
        }
        let mut bare = view(80, true);
        for code in ["0", "1", "2", "1;32", "1;33"] {
            bare = bare.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(bare, view(80, false));
        view(0, true);
    }
}
