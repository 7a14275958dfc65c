//! The verdict of a run as pages of text.

mod path;
mod placement;
mod sound;
mod trials;
mod unknown;
mod verdict;

use linerate_judge::causes::Cause;
use linerate_judge::model::{Ceiling, DirectionModel, Load, Model};
use linerate_judge::verdict::{Answered, Verdict, collapsed};
use linerate_plan::path::{Direction, Measure, Side, Stage};
use linerate_plan::transport::Feature;
use linerate_record::{End, Host, Record};
use linerate_units::Nanos;

use super::document::{Columns, Entry, Item, LABEL, NARROW, Span, Table, width_of};
use super::names::Names;
use super::refused;
use super::{Document, Tone, words};

/// The page of a verdict with all its evidence. `saved` is the name of the record and the command that shows the
/// record, if it was saved.
pub fn verdict(
    record: &Record,
    model: &Model,
    judged: &Verdict,
    saved: Option<(&str, &str)>,
) -> Document {
    let names = Names::of_hosts(model);
    let mut doc = Document::new();
    incomplete(&mut doc, record);
    verdict::answer(&mut doc, model, judged, &names);
    if !model.alone {
        for line in names.explained() {
            doc.line(&[(Tone::Dim, &line)], 2);
        }
    }
    together(&mut doc, record, model);
    not_set(&mut doc, record);
    let open = unknown::open(model, judged);
    let is_open = !open.is_empty();
    if is_open {
        unknown::not_found(&mut doc, model, judged, &open, &names);
        doc.gap();
        unknown::unknown(&mut doc, record, judged, &names, true);
    }
    verdict::limits(&mut doc, model, judged, &names);
    doc.gap();
    unused(&mut doc, record, model, judged);
    verdict::disturbances(&mut doc, judged, &names);
    doc.gap();
    verdict::next(&mut doc, judged, &names);
    doc.gap();
    table(&mut doc, model, &names);
    ceilings(&mut doc, model);
    for remark in collapsed(model) {
        doc.line(&[(Tone::Plain, &remark)], 0);
    }
    doc.gap();
    hosts(&mut doc, model, &names);
    doc.gap();
    if !is_open {
        unknown::unknown(&mut doc, record, judged, &names, false);
    }
    verdict::signs(&mut doc, judged);
    if let Some((name, shown_by)) = saved {
        let shown_by = format!("   ({shown_by})");
        doc.entry("Saved", &[(Tone::Plain, name), (Tone::Dim, &shown_by)], 0);
    }
    doc
}

/// Writes how much of its time a run did not use, and why, if something is not proved.
fn unused(doc: &mut Document, record: &Record, model: &Model, judged: &Verdict) {
    let Some((left, why)) = linerate_judge::verdict::unused(record, model, judged) else {
        return;
    };
    let whole = |time: Nanos| Nanos::from_secs(time.0 / 1_000_000_000);
    let (left, all) = (whole(left), whole(record.start.plan.time));
    let text = format!("{left} of {all} unused: {why}");
    doc.entry("Time", &[(Tone::Plain, &text)], 2);
}

/// Writes the limits of a model, with their reasons and remedies; for figures that other programs reported.
pub(super) fn judged(doc: &mut Document, model: &Model, judged: &Verdict, names: &Names) {
    verdict::answer(doc, model, judged, names);
    verdict::limits(doc, model, judged, names);
}

/// The page of `--explain`: the stages of the path with their ceilings, the placement of threads, the effect of
/// each trial, and for each cause whether it applies, with numbers.
pub fn explain(record: &Record, model: &Model, verdict: &Verdict) -> Document {
    let mut doc = Document::new();
    let names = Names::of_hosts(model);
    unknown::unknown(&mut doc, record, verdict, &names, true);
    doc.gap();
    path::stages(&mut doc, model);
    placement::threads(&mut doc, model);
    trials::tried(&mut doc, model);
    for direction in Direction::ALL {
        let answers: Vec<&Answered> =
            verdict.answers.iter().filter(|a| a.direction == direction).collect();
        if answers.is_empty() {
            continue;
        }
        doc.gap();
        let title = format!("Every cause, {}", direction.name());
        doc.heading(&title);
        let column = answers.iter().map(|a| width_of(a.cause)).max().unwrap_or(0);
        for answer in answers {
            answered(&mut doc, answer, column);
        }
    }
    doc
}

/// The list of all causes, one line for each.
pub fn causes(causes: &[&Cause]) -> Document {
    let mut doc = Document::new();
    let column = causes.iter().map(|c| width_of(c.id)).max().unwrap_or(0);
    for cause in causes {
        let head = [(cause.id, column.into()), (cause.stage.name(), 6.into())];
        let item = Item::new(&[(Tone::Plain, &words::summary(cause.page))]);
        doc.item(item.head(Tone::Strong, &head).indent(0, column + 10));
    }
    doc.gap();
    doc.line(&[(Tone::Dim, "linerate causes ID explains one of them.")], 0);
    doc
}

/// The page of one cause, wrapped. Its source is Markdown with headings, paragraphs and lists only.
pub fn cause(source: &str) -> Document {
    let mut doc = Document::new();
    for block in source.trim().split("\n\n") {
        doc.gap();
        let mut items: Vec<String> = Vec::new();
        for line in block.lines().map(str::trim) {
            match items.last_mut() {
                Some(item) if !line.starts_with("- ") => {
                    item.push(' ');
                    item.push_str(line);
                }
                _ => items.push(line.to_owned()),
            }
        }
        for item in &items {
            match item.strip_prefix("# ") {
                Some(title) => doc.title(title),
                None => doc.line(&emphasis(item), if item.starts_with("- ") { 2 } else { 0 }),
            }
        }
    }
    doc
}

/// Text with `**bold**` and `*bold*` in bold; stars within backquotes are kept as they are.
fn emphasis(text: &str) -> Vec<Span<'_>> {
    let (mut spans, mut tone, mut code, mut from) = (Vec::new(), Tone::Plain, false, 0);
    for (at, found) in text.match_indices(['*', '`']) {
        if found == "`" {
            code = !code;
        } else if !code {
            spans.push((tone, &text[from..at]));
            // The second of two stars does not change the tone again.
            if !text[..at].ends_with('*') {
                tone = if tone == Tone::Plain { Tone::Strong } else { Tone::Plain };
            }
            from = at + 1;
        }
    }
    spans.push((tone, &text[from..]));
    spans
}

fn answered(doc: &mut Document, answer: &Answered, column: usize) {
    let tone = match answer.outcome {
        "finding" => Tone::Warning,
        "unknown" => Tone::Strong,
        _ => Tone::Dim,
    };
    let least = Columns { wide: column, narrow: 0 };
    let hang = Columns { wide: column + 14, narrow: 4 };
    let head = [(answer.cause, least), (answer.outcome, 8.into())];
    let item = Item::new(&[(Tone::Plain, &answer.why.join("; "))]);
    doc.item(item.head(tone, &head).indent(2, hang));
}

/// Writes a line about each host: its processors and port; and its name, unless it was shown above.
fn hosts(doc: &mut Document, model: &Model, names: &Names) {
    let column = |text: &dyn Fn(&Host) -> String| {
        let width = model.hosts.iter().map(|h| width_of(&text(h))).max();
        width.filter(|w| *w > 0).map_or(0, |w| w + 3)
    };
    let called = |host: &Host| {
        if names.are_long() { String::new() } else { host.facts.name.clone() }
    };
    let processors = column(&|h| words::processors(&h.facts));
    let widths = [6, column(&called), processors, 0];
    // Names that were shown above have no column here.
    let untold = usize::from(names.are_long());
    let mut table = Table::new(&[&widths[..1], &widths[1 + untold..]].concat());
    let stages = linerate_judge::model::stages(model);
    for host in &model.hosts {
        let port = host.facts.port.as_ref().map(words::port);
        let (name, cpus) = (called(host), words::processors(&host.facts));
        let port = port.unwrap_or_default();
        let reported = [&*name, &*cpus, &*port];
        let known: Vec<&str> = reported.into_iter().filter(|text| !text.is_empty()).collect();
        if known.is_empty() {
            continue;
        }
        let cells = [
            (Tone::Strong, host.side.name()),
            (Tone::Strong, &*name),
            (Tone::Plain, &*cpus),
            (Tone::Plain, &*port),
        ];
        let cells = [&cells[..1], &cells[1 + untold..]].concat();
        let text = known.join(", ");
        table.row_or(&cells, Entry::new(cells[0].1, &[(Tone::Plain, &text)], 2));
        path::below(&mut table, &stages, host);
        path::rdma(&mut table, model, host);
    }
    doc.table(table);
}

/// Writes whether both ends are on one machine, or whether there is no far end.
fn together(doc: &mut Document, record: &Record, model: &Model) {
    if words::is_disk(&record.start.plan.engine) {
        return;
    }
    if model.alone {
        let text = "There is no far end: this machine alone moved the bytes.";
        doc.line(&[(Tone::Plain, text)], 0);
    } else if words::starts_far_end(&record.start.plan.engine) {
        let text = "Both ends are processes of this machine, which share memory and its CPUs.";
        doc.line(&[(Tone::Plain, text)], 0);
    } else if record.start.plan.peer.is_none() {
        let text = "No peer was named: this machine was measured against itself.";
        doc.line(&[(Tone::Plain, text)], 0);
    } else if model.same_machine {
        let text = "Both ends run on one machine and share its CPUs.";
        doc.line(&[(Tone::Plain, text)], 0);
    }
}

/// Writes the user's settings that an end refused: the run was made without them.
fn not_set(doc: &mut Document, record: &Record) {
    for gap in refused::of_base(record) {
        doc.gap();
        let text = format!("{}: {}", gap.what, gap.why);
        doc.entry("Not set", &[(Tone::Warning, &text)], 2);
        if !gap.hint.is_empty() {
            doc.detail(&[(Tone::Dim, "hint: "), (Tone::Plain, &gap.hint)], 2);
        }
    }
}

/// Writes that the run is not complete, and why; nothing if it is complete.
fn incomplete(doc: &mut Document, record: &Record) {
    let why = match &record.end {
        Some(End::Complete) => return,
        Some(End::Interrupted) => "it was interrupted".to_owned(),
        Some(End::Failed { why }) => why.clone(),
        None => "its record has no end, as after a crash".to_owned(),
    };
    let text = format!(" {why}. What follows is based on the measurements until then.");
    doc.line(&[(Tone::Warning, "This run is not complete:"), (Tone::Plain, &text)], 0);
}

/// A row of the table of figures: a label, and a cell for each direction that was measured.
struct Row {
    label: &'static str,
    cells: Vec<Option<String>>,
    /// Whether the first cell is valid for all directions.
    shared: bool,
}

fn table(doc: &mut Document, model: &Model, names: &Names) {
    let rows = rows(model);
    if model.directions.is_empty() {
        doc.line(&[(Tone::Warning, "No direction was measured.")], 0);
    }
    let column = |i: usize| {
        let cells = rows.iter().filter(|r| !r.shared).filter_map(|r| r.cells.get(i)?.as_ref());
        let words = model.directions.get(i).map_or(0, |d| width_of(&heading(d, names)));
        cells.map(|c| width_of(c)).max().unwrap_or(0).max(words)
    };
    let widths = [LABEL, (column(0) + 3).max(30), column(1)];
    let least = NARROW.max(widths.iter().sum());
    let table = side_by_side(model, &rows, &widths, names);
    doc.table(table.least(least).narrow(stacked(model, &rows, names)));
}

/// Writes the formula of each ceiling of the table.
fn ceilings(doc: &mut Document, model: &Model) {
    let mut shown = Vec::new();
    for ceiling in model.directions.iter().filter_map(DirectionModel::ceiling) {
        let headers = match ceiling.stage {
            Stage::Net | Stage::Port | Stage::Pcie => " after headers",
            _ => "",
        };
        let Ceiling { name, formula, .. } = ceiling;
        let text = format!(
            "Ceiling ({}): payload that {name} can carry{headers}, {formula}.",
            ceiling.stage.name()
        );
        if !formula.is_empty() && !shown.contains(&text) {
            doc.line(&[(Tone::Dim, &text)], 2);
            shown.push(text);
        }
    }
}

fn heading(direction: &DirectionModel, names: &Names) -> String {
    names.way(direction.direction)
}

fn stacked(model: &Model, rows: &[Row], names: &Names) -> Document {
    let mut doc = Document::new();
    for row in rows.iter().filter(|r| r.shared) {
        let cell = row.cells[0].as_deref().unwrap_or_default();
        doc.entry(row.label, &[(Tone::Plain, cell)], 2);
    }
    for (i, direction) in model.directions.iter().enumerate() {
        doc.gap();
        doc.heading(&heading(direction, names));
        for row in rows.iter().filter(|r| !r.shared) {
            if let Some(cell) = &row.cells[i] {
                doc.entry(row.label, &[(Tone::Plain, cell)], 2);
            }
        }
    }
    doc
}

fn side_by_side(model: &Model, rows: &[Row], widths: &[usize], names: &Names) -> Table {
    let mut table = Table::new(widths);
    if !model.directions.is_empty() {
        let mut head = vec![(Tone::Plain, "")];
        let ways: Vec<String> = model.directions.iter().map(|d| heading(d, names)).collect();
        head.extend(ways.iter().map(|way| (Tone::Strong, way.as_str())));
        table = table.head(&head);
    }
    for row in rows {
        let tone = if row.label == "goodput" { Tone::Strong } else { Tone::Plain };
        let mut cells = vec![(Tone::Strong, row.label)];
        cells.extend(row.cells.iter().map(|c| (tone, c.as_deref().unwrap_or(""))));
        table.row(&cells);
    }
    table
}

/// Operations or messages per second of a load; `None` if the load is judged by another measure.
fn of_kind(load: &Load, measure: Measure) -> Option<String> {
    // Loads of files are of operations, whatever they are judged by.
    let own = if load.has(Feature::Disk) { Measure::Operations } else { load.measure() };
    let counted = load.operations.filter(|_| own == measure);
    counted.map(|rate| words::per_second(&rate))
}

/// A sentence that no ceiling is known, with the reason if it is obvious.
fn no_ceiling(model: &Model) -> String {
    let ports = model.hosts.iter().filter_map(|host| host.facts.port.as_ref());
    let soft = |dir: &DirectionModel| {
        let mut ends = [Side::Near, Side::Far].into_iter();
        ends.any(|side| dir.base.rdma(dir.direction, side).is_some_and(|end| end.software))
    };
    let why = if model.directions.iter().any(soft) {
        " (software makes an RDMA device)"
    } else if ports.into_iter().any(|port| port.is_virtual) {
        " (a port is virtual)"
    } else {
        ""
    };
    format!("unknown{why}")
}

fn rows(model: &Model) -> Vec<Row> {
    let row = |label, cell: &dyn Fn(&DirectionModel) -> Option<String>| Row {
        label,
        cells: model.directions.iter().map(cell).collect(),
        shared: false,
    };
    let both = |d: &DirectionModel| {
        let found = model.both.iter().find(|(way, _)| *way == d.direction);
        found.map(|(_, estimate)| words::bits(estimate))
    };
    let idle = model.idle.as_ref().and_then(words::latency);
    let mut rows = vec![
        row("ceiling", &|d| {
            let known = |c: &Ceiling| format!("{} ({})", c.words(), c.stage.name());
            Some(d.ceiling().map_or_else(|| no_ceiling(model), known))
        }),
        row("operations", &|d| of_kind(&d.base, Measure::Operations)),
        row("messages", &|d| of_kind(&d.base, Measure::Goodput)),
        row("goodput", &|d| Some(words::goodput(&d.base.goodput))),
        row("", &|d| Some(words::streams(&d.base))),
        row("", &|d| words::uneven(&d.base.goodput)),
        row("", &|d| words::copied(d.base.knobs.copy, d.base.copied)),
        row("", &|d| words::lost(&d.base)),
        row("", &|d| (!d.base.steady).then(|| "not steady".to_owned())),
        row("more streams", &words::more_streams),
        row("both at once", &both),
        Row {
            label: "idle latency",
            cells: vec![idle.map(|text| format!("{text} (round trip)"))],
            shared: true,
        },
        row("loaded latency", &|d| d.base.latency.as_ref().and_then(words::latency)),
    ];
    rows.retain(|r| r.cells.iter().any(Option::is_some));
    rows
}

#[cfg(test)]
mod tests {
    use linerate_facts::advice::{Advice, Step};

    use super::super::{Style, sample};
    use super::*;

    fn view((record, model, judged): sample::Result, width: usize, color: bool) -> String {
        let saved = ("2026-11-21T10-31-07-brook", "linerate show last");
        verdict(&record, &model, &judged, Some(saved)).text(Style { width, color })
    }

    #[test]
    fn goldens_at_80_columns() {
        insta::assert_snapshot!("healthy", view(sample::healthy(), 80, false));
        insta::assert_snapshot!("limited", view(sample::limited(), 80, false));
        insta::assert_snapshot!("unknowing", view(sample::unknowing(), 80, false));
        insta::assert_snapshot!("interrupted", view(sample::interrupted(), 80, false));
        insta::assert_snapshot!("disturbed", view(sample::disturbed(), 80, false));
        insta::assert_snapshot!("queued", view(sample::queued(), 80, false));
    }

    #[test]
    fn goldens_of_long_names_at_80_columns() {
        for (name, result) in [
            ("long_proved", sample::limited()),
            ("long_at_its_cpu", sample::at_its_cpu()),
            ("long_unknown", sample::unknowing()),
            ("long_disturbed", sample::disturbed()),
        ] {
            insta::assert_snapshot!(name, view(sample::with_long_names(result), 80, false));
        }
        insta::assert_snapshot!("at_its_cpu", view(sample::at_its_cpu(), 80, false));
    }

    #[test]
    fn no_answer_stands_one_word_a_line_whatever_the_names() {
        for width in [48, 60, 80, 100] {
            for columns in 1..70 {
                let (record, mut model, judged) = sample::limited();
                for host in &mut model.hosts {
                    host.facts.name = format!("{}{}", host.side.name(), "x".repeat(columns));
                }
                let page = verdict(&record, &model, &judged, None);
                let page = page.text(Style { width, color: false });
                let answer = page.lines().take_while(|line| !line.starts_with("near:"));
                assert!(answer.count() <= 14, "{width} {columns}\n{page}");
            }
        }
    }

    #[test]
    fn golden_in_colour() {
        insta::assert_snapshot!("limited_color", view(sample::limited(), 80, true));
    }

    #[test]
    fn golden_at_20_columns() {
        insta::assert_snapshot!("limited_narrow", view(sample::limited(), 20, false));
    }

    #[test]
    fn golden_of_the_explanation() {
        let (record, model, judged) = sample::limited();
        insta::assert_snapshot!("explain", explain(&record, &model, &judged).text(Style::PLAIN));
    }

    #[test]
    fn commands_stand_once_and_a_second_limit_of_a_cause_shows_its_own_figures() {
        let (record, model, mut judged) = sample::limited();
        let mut other = judged.limits[0].clone();
        other.direction = Direction::Reverse;
        other.evidence[0] = "another share".to_owned();
        other.advice[0].gain = Some(1.01);
        judged.limits[1] = other;
        let (width, color) = (200, false);
        let page = verdict(&record, &model, &judged, None).text(Style { width, color });
        let undone = judged.limits[0].advice[0].undo[0].command.as_str();
        assert_eq!(page.matches(undone).count(), 1, "{page}");
        let own = "the same in the other direction\n                - another share\n";
        assert!(page.contains(own), "{page}");
        assert_eq!(page.matches(&judged.limits[0].evidence[1]).count(), 1);
        let gain = "Fix             as above: up to 9.41 Gb/s, the ceiling\n";
        assert!(page.contains(gain), "{page}");
    }

    #[test]
    fn only_advice_that_looks_has_nothing_to_undo() {
        let (record, model, mut judged) = sample::limited();
        let mut page = |advice: Advice| {
            judged.limits[0].advice = vec![advice];
            verdict(&record, &model, &judged, None).text(Style::PLAIN)
        };
        let looks = "This changes no setting: nothing to undo.";
        let lasts = "The new settings last until the next boot.";
        let of = |page: &str| [looks, lasts].map(|text| page.contains(text));
        let advice = || Advice::new("do it");
        assert_eq!(of(&page(advice().on(None, "ip route"))), [true, false]);
        let set = advice().set(None, "sudo a").undo_on(None, "sudo b");
        assert_eq!(of(&page(set)), [false, true]);
        let act = advice().step(Step::act(None, "sudo a"));
        assert_eq!(of(&page(act)), [false, false]);
        assert_eq!(of(&page(advice())), [false, false]);
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let plain = view(sample::limited(), 80, false);
        let mut bare = view(sample::limited(), 80, true);
        for code in ["0", "1", "2", "1;32", "1;33"] {
            bare = bare.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(plain, bare);
    }

    #[test]
    fn no_line_is_longer_than_the_page_at_any_usual_width() {
        for width in [60, 72, 80, 100, 200] {
            for result in [sample::healthy(), sample::limited(), sample::unknowing()] {
                for line in view(result, width, false).lines() {
                    assert!(width_of(line) <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn a_model_without_anything_is_shown_without_panic() {
        let (record, mut model, _) = sample::unknowing();
        model.hosts.clear();
        model.directions.clear();
        for width in 0..100 {
            let page = verdict(&record, &model, &Verdict::default(), None);
            page.text(Style { width, color: true });
        }
    }

    #[test]
    fn golden_of_a_page() {
        let source = "# a-cause\n\n**Meaning.** Something is\nslow. See `a * b`.\n\n- *this*: not\n  that\n- other\n";
        let text = cause(source).text(Style::PLAIN);
        assert_eq!(
            text,
            "a-cause\n\nMeaning. Something is slow. See `a * b`.\n\n- this: not that\n- other\n"
        );
    }
}
