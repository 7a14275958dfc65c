//! The verdict for people, in text.

mod path;
mod placement;
mod trials;
mod verdict;

use linerate_core::causes::Cause;
use linerate_core::model::{Ceiling, DirectionModel, Model};
use linerate_core::path::Direction;
use linerate_core::record::{End, Record};
use linerate_core::verdict::{Answered, Verdict};

use super::page::{Ink, LABEL, Page, Span, Style, width_of};
use super::words;

/// The verdict with all that it rests on. `saved` is the name of the record and the command that shows it, if it was
/// kept.
pub fn verdict(
    record: &Record,
    model: &Model,
    judged: &Verdict,
    saved: Option<(&str, &str)>,
    style: Style,
) -> String {
    let mut page = Page::new(style);
    hosts(&mut page, model);
    notes(&mut page, record, model);
    page.gap();
    table(&mut page, model);
    page.gap();
    verdict::limits(&mut page, model, judged);
    page.gap();
    verdict::disturbances(&mut page, judged);
    page.gap();
    verdict::next(&mut page, judged);
    verdict::advice(&mut page, judged);
    verdict::unknown(&mut page, judged);
    if let Some((name, shown_by)) = saved {
        let shown_by = format!("   ({shown_by})");
        page.entry("Saved", &[(Ink::Plain, name), (Ink::Dim, &shown_by)], 0);
    }
    page.finish()
}

/// The stages of the path with their ceilings, why threads ran where they did, what every trial showed,
/// and what every cause answered, with its numbers.
pub fn explain(model: &Model, verdict: &Verdict, style: Style) -> String {
    let mut page = Page::new(style);
    path::stages(&mut page, model);
    placement::threads(&mut page, model);
    trials::tried(&mut page, model);
    for direction in Direction::ALL {
        let answers: Vec<&Answered> = verdict
            .answers
            .iter()
            .filter(|a| a.direction == direction)
            .collect();
        if answers.is_empty() {
            continue;
        }
        page.gap();
        let title = format!("Every cause, {}", direction.name());
        page.line(&[(Ink::Bold, &title)], 0);
        let column = answers.iter().map(|a| width_of(a.cause)).max().unwrap_or(0);
        for answer in answers {
            answered(&mut page, answer, column);
        }
    }
    page.finish()
}

/// All causes, a line each.
pub fn causes(causes: &[&dyn Cause], style: Style) -> String {
    let mut page = Page::new(style);
    let column = causes.iter().map(|c| width_of(c.id())).max().unwrap_or(0);
    for cause in causes {
        let head = format!("{:column$}  {:6}", cause.id(), cause.info().stage.name());
        page.columns(
            Ink::Bold,
            &head,
            &words::summary(cause.info().page),
            column + 10,
        );
    }
    page.gap();
    page.line(&[(Ink::Dim, "linerate causes ID explains one of them.")], 0);
    page.finish()
}

/// The page of a cause, wrapped: headings, paragraphs and lists are all the Markdown that it has.
pub fn cause(source: &str, style: Style) -> String {
    let mut page = Page::new(style);
    for block in source.trim().split("\n\n") {
        page.gap();
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
            let spans = match item.strip_prefix("# ") {
                Some(title) => vec![(Ink::Bold, title)],
                None => emphasis(item),
            };
            page.line(&spans, if item.starts_with("- ") { 2 } else { 0 });
        }
    }
    page.finish()
}

/// `**bold**` and `*bold*` as bold; stars within backquotes are meant.
fn emphasis(text: &str) -> Vec<Span<'_>> {
    let (mut spans, mut ink, mut code, mut from) = (Vec::new(), Ink::Plain, false, 0);
    for (at, found) in text.match_indices(['*', '`']) {
        if found == "`" {
            code = !code;
        } else if !code {
            spans.push((ink, &text[from..at]));
            // The second star of two changes nothing more.
            if !text[..at].ends_with('*') {
                ink = if ink == Ink::Plain {
                    Ink::Bold
                } else {
                    Ink::Plain
                };
            }
            from = at + 1;
        }
    }
    spans.push((ink, &text[from..]));
    spans
}

fn answered(page: &mut Page, answer: &Answered, column: usize) {
    let ink = match answer.outcome {
        "finding" => Ink::Warn,
        "unknown" => Ink::Bold,
        _ => Ink::Dim,
    };
    let pad = if page.is_narrow() { 0 } else { column };
    let head = format!("  {:pad$}  {:8}", answer.cause, answer.outcome);
    let indent = if page.is_narrow() { 4 } else { column + 14 };
    // Words wrap; the head is set as it stands.
    page.columns(ink, &head, &answer.why.join("; "), indent);
}

fn hosts(page: &mut Page, model: &Model) {
    let column = |text: fn(&linerate_core::record::Host) -> String| {
        let width = model.hosts.iter().map(|h| width_of(&text(h))).max();
        width.map_or(0, |w| w + 3)
    };
    let widths = [
        6,
        column(|h| h.facts.name.clone()),
        column(|h| words::processors(&h.facts)),
        0,
    ];
    let stages = linerate_core::model::stages(model);
    for host in &model.hosts {
        let port = host.facts.port.as_ref().map(words::port);
        let cells = [
            (Ink::Bold, host.side.name()),
            (Ink::Bold, host.facts.name.as_str()),
            (Ink::Plain, &words::processors(&host.facts)),
            (Ink::Plain, &port.unwrap_or_default()),
        ];
        let needed = widths[0] + widths[1] + widths[2] + width_of(cells[3].1);
        if needed <= page.width() {
            page.row(&cells, &widths);
        } else {
            let known = cells[1..]
                .iter()
                .map(|c| c.1)
                .filter(|text| !text.is_empty());
            let text = known.collect::<Vec<_>>().join(", ");
            page.entry(cells[0].1, &[(Ink::Plain, &text)], 2);
        }
        path::below(page, &stages, host);
    }
}

fn notes(page: &mut Page, record: &Record, model: &Model) {
    if record.start.plan.peer.is_none() {
        let text = "No peer was named: this machine was measured against itself.";
        page.line(&[(Ink::Plain, text)], 0);
    } else if model.same_machine {
        let text = "Both ends run on one machine and share its CPUs.";
        page.line(&[(Ink::Plain, text)], 0);
    }
    let why = match &record.end {
        Some(End::Complete) => return,
        Some(End::Interrupted) => "it was interrupted".to_owned(),
        Some(End::Failed { why }) => why.clone(),
        None => "its record has no end, as after a crash".to_owned(),
    };
    let text = format!(" {why}. What follows rests on what was measured until then.");
    page.line(
        &[
            (Ink::Warn, "This run is not complete:"),
            (Ink::Plain, &text),
        ],
        0,
    );
}

/// A row of the table: a label, and a cell for each direction that was measured.
struct Row {
    label: &'static str,
    cells: Vec<Option<String>>,
    /// The first cell holds for all directions.
    shared: bool,
}

fn table(page: &mut Page, model: &Model) {
    let rows = rows(model);
    if model.directions.is_empty() {
        page.line(&[(Ink::Warn, "No direction was measured.")], 0);
    }
    let column = |i: usize| {
        let cells = rows
            .iter()
            .filter(|r| !r.shared)
            .filter_map(|r| r.cells.get(i)?.as_ref());
        let words = model.directions.get(i).map_or(0, |d| width_of(heading(d)));
        cells.map(|c| width_of(c)).max().unwrap_or(0).max(words)
    };
    let widths = [LABEL, (column(0) + 3).max(30), column(1)];
    if page.is_narrow() || widths.iter().sum::<usize>() > page.width() {
        stacked(page, model, &rows);
    } else {
        side_by_side(page, model, &rows, &widths);
    }
}

fn heading(direction: &DirectionModel) -> &'static str {
    match direction.direction {
        Direction::Forward => "forward (near to far)",
        Direction::Reverse => "reverse (far to near)",
    }
}

fn stacked(page: &mut Page, model: &Model, rows: &[Row]) {
    for row in rows.iter().filter(|r| r.shared) {
        let cell = row.cells[0].as_deref().unwrap_or_default();
        page.entry(row.label, &[(Ink::Plain, cell)], 2);
    }
    for (i, direction) in model.directions.iter().enumerate() {
        page.gap();
        page.line(&[(Ink::Bold, heading(direction))], 0);
        for row in rows.iter().filter(|r| !r.shared) {
            if let Some(cell) = &row.cells[i] {
                page.entry(row.label, &[(Ink::Plain, cell)], 2);
            }
        }
    }
}

fn side_by_side(page: &mut Page, model: &Model, rows: &[Row], widths: &[usize]) {
    if !model.directions.is_empty() {
        let mut head = vec![(Ink::Plain, "")];
        head.extend(model.directions.iter().map(|d| (Ink::Bold, heading(d))));
        page.row(&head, widths);
    }
    for row in rows {
        let ink = if row.label == "goodput" {
            Ink::Bold
        } else {
            Ink::Plain
        };
        let mut cells = vec![(Ink::Bold, row.label)];
        cells.extend(row.cells.iter().map(|c| (ink, c.as_deref().unwrap_or(""))));
        page.row(&cells, widths);
    }
}

fn rows(model: &Model) -> Vec<Row> {
    let row = |label, cell: &dyn Fn(&DirectionModel) -> Option<String>| Row {
        label,
        cells: model.directions.iter().map(cell).collect(),
        shared: false,
    };
    let both = |d: &DirectionModel| {
        let found = model.both.iter().find(|(way, _)| *way == d.direction);
        found.map(|(_, estimate)| words::goodput(estimate))
    };
    let idle = model.idle.as_ref().and_then(words::latency);
    let mut rows = vec![
        row("ceiling", &|d| {
            let known = |c: &Ceiling| format!("{} ({})", c.words(), c.stage.name());
            Some(d.ceiling().map_or_else(|| "unknown".to_owned(), known))
        }),
        row("goodput", &|d| Some(words::base(&d.base))),
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
        row("loaded latency", &|d| {
            d.base.latency.as_ref().and_then(words::latency)
        }),
    ];
    rows.retain(|r| r.cells.iter().any(Option::is_some));
    rows
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn view((record, model, judged): sample::Result, width: usize, color: bool) -> String {
        let style = Style { width, color };
        verdict(
            &record,
            &model,
            &judged,
            Some(("2026-11-21T10-31-07-brook", "linerate show last")),
            style,
        )
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
    fn golden_in_colour() {
        insta::assert_snapshot!("limited_color", view(sample::limited(), 80, true));
    }

    #[test]
    fn golden_at_20_columns() {
        insta::assert_snapshot!("limited_narrow", view(sample::limited(), 20, false));
    }

    #[test]
    fn golden_of_the_explanation() {
        let (_, model, judged) = sample::limited();
        insta::assert_snapshot!("explain", explain(&model, &judged, Style::PLAIN));
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
            let style = Style { width, color: true };
            verdict(&record, &model, &Verdict::default(), None, style);
        }
    }

    #[test]
    fn golden_of_a_page() {
        let source = "# a-cause\n\n**Meaning.** Something is\nslow. See `a * b`.\n\n- *this*: not\n  that\n- other\n";
        let text = cause(source, Style::PLAIN);
        assert_eq!(
            text,
            "a-cause\n\nMeaning. Something is slow. See `a * b`.\n\n- this: not that\n- other\n"
        );
    }
}
