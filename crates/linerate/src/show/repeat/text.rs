//! Several runs together, in text.

use linerate_core::diff::Judged;
use linerate_core::plan::Direction;
use linerate_core::units::{Nanos, Rate};
use linerate_core::verdict::{Limit, Measure};

use super::super::page::{Ink, Page, Style};
use super::super::words;
use super::{Run, Spread, goodput, limits, round_trip};

/// One run in short, as soon as it has ended: goodput and limits of each direction, and the command that shows
/// it, where it was kept.
pub fn run(
    run: &Run<'_>,
    number: usize,
    of: usize,
    shown_by: Option<&str>,
    style: Style,
) -> String {
    let mut page = Page::new(style);
    let mut label = format!("Run {number} of {of}");
    for direction in Direction::ALL {
        if let Some(text) = measured(&run.judged, direction) {
            page.entry(&label, &[(Ink::Plain, &text)], 2);
            label.clear();
        }
    }
    if !run.judged.model.complete {
        let text = "ended early: not all of it was measured";
        page.entry(&label, &[(Ink::Warn, text)], 2);
        label.clear();
    }
    if let Some(command) = shown_by {
        page.entry(&label, &[(Ink::Dim, command)], 2);
    }
    page.finish()
}

/// `forward 4.71 Gb/s ±0.4 %, 1 stream: receive-window (proved)`.
fn measured(judged: &Judged<'_>, direction: Direction) -> Option<String> {
    let load = &judged.model.direction(direction)?.base;
    let upheld = judged.verdict.limits.iter();
    let limits: Vec<String> = upheld
        .filter(|limit| limit.direction == direction && limit.metric == Measure::Goodput)
        .map(|limit| format!("{} ({})", limit.cause, limit.certainty.name()))
        .collect();
    let limits = if limits.is_empty() {
        "unknown".to_owned()
    } else {
        limits.join(", ")
    };
    Some(format!(
        "{} {}: {limits}",
        direction.name(),
        words::base(load)
    ))
}

/// What the runs say together.
pub fn summary(runs: &[Run<'_>], style: Style) -> String {
    let mut page = Page::new(style);
    let rate = |value: f64| Rate(value as u64).to_string();
    for direction in Direction::ALL {
        if let Some(spread) = goodput(runs, direction) {
            page.entry(direction.name(), &[(Ink::Plain, &told(spread, rate))], 2);
        }
    }
    if let Some(spread) = round_trip(runs) {
        let time = |value: f64| Nanos(value as u64).to_string();
        let text = format!("p50 on the idle path {}", told(spread, time));
        page.entry("Round trip", &[(Ink::Plain, &text)], 2);
    }
    page.gap();
    let limits = limits(runs);
    if limits.is_empty() {
        page.entry(
            "Limited by",
            &[(Ink::Warn, "unknown"), (Ink::Plain, " in every run")],
            2,
        );
    }
    let mut label = "Limited by";
    for upheld in limits {
        let text = format!(
            " in {} of {}, proved in {}",
            upheld.runs,
            words::count(runs.len() as u64, "run"),
            upheld.proved
        );
        let name = name(upheld.limit);
        page.entry(label, &[(Ink::Bold, &name), (Ink::Plain, &text)], 2);
        label = "";
    }
    page.finish()
}

fn name(limit: &Limit) -> String {
    format!(
        "{}: {}, {}",
        words::place(limit),
        limit.cause,
        words::metric(limit)
    )
}

/// `4.71 Gb/s, the median of 5 runs, 4.68 Gb/s to 4.75 Gb/s`.
fn told(spread: Spread, unit: impl Fn(f64) -> String) -> String {
    let Spread {
        runs,
        low,
        median,
        high,
    } = spread;
    let runs = words::count(runs as u64, "run");
    format!(
        "{}, the median of {runs}, {} to {}",
        unit(median),
        unit(low),
        unit(high)
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::page::width_of;
    use super::super::super::sample;
    use super::super::tests::sample_runs;
    use super::*;

    fn view(width: usize, color: bool) -> String {
        let results = [
            sample::limited(),
            sample::healthy(),
            sample::limited(),
            sample::interrupted(),
        ];
        let style = Style { width, color };
        let runs = sample_runs(&results);
        let each = runs.iter().zip(1..);
        let one = |(r, number): (&Run<'_>, usize)| {
            let command = r.saved.map(|name| format!("linerate show {name}"));
            run(r, number, 5, command.as_deref(), style)
        };
        let mut text: String = each.map(one).collect();
        text.push('\n');
        text + &summary(&runs, style)
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
        let text = summary(&sample_runs(&results), Style::PLAIN);
        assert!(text.contains("unknown in every run"), "{text}");
    }
}
