//! Several runs together, for people.

use linerate_explain::diff::Judged;
use linerate_judge::figure::{ALL, Figure, GOODPUT, LATENCY, Merge, Spread, Subject};
use linerate_judge::verdict::Entry;
use linerate_plan::path::{Direction, Slowness};

use super::super::{Document, Tone, words};
use super::{Answer, IDLE, Run, answers, directions, disturbances, spread};

/// A summary of one run, shown as soon as it has ended: goodput and limits of each direction, and the command
/// that shows it, where it was kept.
pub fn run(run: &Run<'_>, number: usize, of: usize, shown_by: Option<&str>) -> Document {
    let mut doc = Document::new();
    let mut label = format!("Run {number} of {of}");
    let alone = std::slice::from_ref(run);
    for direction in directions(alone) {
        if let Some(text) = measured(&run.judged, direction) {
            doc.entry(&label, &[(Tone::Plain, &text)], 2);
            label.clear();
        }
    }
    for (disturbance, _) in disturbances(alone) {
        let text = format!("disturbed by {}", words::disturbance(disturbance));
        doc.entry(&label, &[(Tone::Plain, &text)], 2);
        label.clear();
    }
    if !run.judged.model.complete {
        let text = "ended early: not all of it was measured";
        doc.entry(&label, &[(Tone::Warning, text)], 2);
        label.clear();
    }
    if let Some(command) = shown_by {
        doc.command(&label, (Tone::Dim, command), 2);
    }
    doc
}

/// `forward 4.71 Gb/s ±0.4 %, 1 stream: receive-window (proved)`.
fn measured(judged: &Judged<'_>, direction: Direction) -> Option<String> {
    let load = &judged.model.direction(direction)?.base;
    let upheld = judged.verdict.limits.iter();
    let limits: Vec<String> = upheld
        .filter(|limit| limit.direction == direction && limit.metric.slowness() == Slowness::Rate)
        .map(|limit| format!("{} ({})", limit.cause, limit.certainty.name()))
        .collect();
    let limits = if limits.is_empty() { "unknown".to_owned() } else { limits.join(", ") };
    Some(format!("{} {}: {limits}", direction.name(), words::base(load)))
}

/// A summary of all runs.
pub fn summary(runs: &[Run<'_>]) -> Document {
    let mut doc = Document::new();
    for direction in directions(runs) {
        let mut label = direction.name();
        for text in measured_together(runs, direction) {
            doc.entry(label, &[(Tone::Plain, &text)], 2);
            label = "";
        }
    }
    if let Some(spread) = spread(runs, &LATENCY, IDLE) {
        let text = format!("p50 on the idle path {}", told(&LATENCY, spread));
        doc.entry("Round trip", &[(Tone::Plain, &text)], 2);
    }
    doc.gap();
    let of = words::count(runs.len() as u64, "run");
    let mut label = "Limited by";
    for answer in answers(runs) {
        answered(&mut doc, label, &answer, &of);
        label = "";
    }
    let mut label = "Disturbed by";
    for (disturbance, runs) in disturbances(runs) {
        let what = words::disturbance(disturbance);
        let text = format!(" in {runs} of {of}: {}", words::explains(disturbance));
        doc.entry(label, &[(Tone::Strong, &what), (Tone::Plain, &text)], 2);
        label = "";
    }
    doc
}

fn answered(doc: &mut Document, label: &str, answer: &Answer<'_>, of: &str) {
    let runs = answer.runs;
    match answer.told {
        Entry::Limit(limit) => {
            let (place, metric) = (words::place(limit), words::metric(limit));
            let name = format!("{place}: {}, {metric}", limit.cause);
            let text = format!(" in {runs} of {of}, proved in {}", answer.proved);
            doc.entry(label, &[(Tone::Strong, &name), (Tone::Plain, &text)], 2);
        }
        Entry::Unknown(direction) => {
            let text = format!(", {}, in {runs} of {of}", direction.name());
            doc.entry(label, &[(Tone::Warning, "unknown"), (Tone::Plain, &text)], 2);
        }
    }
}

/// Rates and losses of the runs; if there are several figures, each has its name.
fn measured_together(runs: &[Run<'_>], direction: Direction) -> Vec<String> {
    let is_shown = |figure: &&&Figure| !figure.percentiles && !figure.ends;
    let figures = ALL.iter().filter(is_shown);
    let all: Vec<(&Figure, Spread)> = figures
        .filter_map(|figure| Some((*figure, spread(runs, figure, Subject::load(direction))?)))
        .collect();
    let text = |(figure, spread): &(&Figure, Spread)| {
        let name = if *figure == &GOODPUT { String::new() } else { format!("{} ", figure.label) };
        format!("{name}{}", told(figure, *spread))
    };
    all.iter().map(text).collect()
}

/// `4.71 Gb/s, the median of 5 runs, 4.68 Gb/s to 4.75 Gb/s`.
fn told(figure: &Figure, spread: Spread) -> String {
    let runs = words::count(spread.runs as u64, "run");
    let merged = match spread.merge {
        Merge::Median => format!("the median of {runs}"),
        Merge::Pooled => format!("{runs} together"),
    };
    let [low, middle, high] =
        [spread.low, spread.middle, spread.high].map(|value| figure.unit.words(value));
    format!("{middle}, {merged}, {low} to {high}")
}

#[cfg(test)]
mod tests {
    use super::super::super::document::width_of;
    use super::super::super::{Style, sample};
    use super::super::tests::sample_runs;
    use super::*;

    fn view(width: usize, color: bool) -> String {
        rendered(|document| document.text(Style { width, color }))
    }

    fn rendered(render: impl Fn(&Document) -> String) -> String {
        let results =
            [sample::limited(), sample::healthy(), sample::limited(), sample::interrupted()];
        let runs = sample_runs(&results);
        let each = runs.iter().zip(1..);
        let one = |(r, number): (&Run<'_>, usize)| {
            let command = r.saved.map(|name| format!("linerate show {name}"));
            render(&run(r, number, 5, command.as_deref()))
        };
        let mut text: String = each.map(one).collect();
        text.push('\n');
        text + &render(&summary(&runs))
    }

    #[test]
    fn golden_of_markdown() {
        insta::assert_snapshot!("repeat_markdown", rendered(Document::markdown));
    }

    #[test]
    fn golden_at_80_columns() {
        insta::assert_snapshot!("repeat", view(80, false));
    }

    #[test]
    fn no_line_is_longer_than_the_page() {
        for width in [60, 80, 100] {
            for line in view(width, false).lines() {
                assert!(width_of(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn where_no_run_names_a_limit_they_say_so_together() {
        let results = [sample::unknowing()];
        let text = summary(&sample_runs(&results)).text(Style::PLAIN);
        for direction in ["forward", "reverse"] {
            let unknown = format!("unknown, {direction}, in 1 of 1 run");
            assert!(text.contains(&unknown), "{text}");
        }
    }
}
