//! Two records compared, in text.

use linerate_core::diff::{Diff, Fate, FigureChange, Judged, LimitChange, Outcome};
use linerate_core::figure::{Unit, Value};
use linerate_core::model::Estimate;
use linerate_core::path::{Direction, Side};
use linerate_core::stats::Interval;
use linerate_core::units::digits;
use linerate_engine::store::stamp;

use super::super::page::{Ink, LABEL, Page, Style, width_of};
use super::super::words;
use super::Compared;

/// Width of the columns of values.
const VALUE: usize = 19;

/// Width of the last column.
const RATIO: usize = 26;

/// Percentiles that are shown, as by `show`; the others are in the JSON document.
const SHOWN: [f64; 2] = [50.0, 99.0];

/// What is different, loudest first: plans, then figures, limits and hosts.
pub fn text(compared: &Compared<'_>, style: Style) -> String {
    let Compared {
        before,
        after,
        diff,
    } = compared;
    let mut page = Page::new(style);
    record(&mut page, "before", before);
    record(&mut page, "after", after);
    page.gap();
    plans(&mut page, diff);
    for note in &diff.notes {
        let note = format!(" {note}");
        page.line(&[(Ink::Warn, "Note:"), (Ink::Plain, &note)], 2);
    }
    page.gap();
    figures(&mut page, diff);
    page.gap();
    limits(&mut page, diff);
    page.gap();
    disturbances(&mut page, diff);
    page.gap();
    facts(&mut page, diff);
    page.gap();
    legend(&mut page, diff);
    page.finish()
}

fn record(page: &mut Page, label: &str, judged: &Judged<'_>) {
    let start = &judged.record.start;
    let peer = start.plan.peer.as_deref();
    let peer = peer.map_or("this machine against itself".to_owned(), |p| {
        format!("to {p}")
    });
    let text = format!("{}, {peer}", stamp(start.wall_secs));
    page.entry(label, &[(Ink::Plain, &text)], 0);
}

fn plans(page: &mut Page, diff: &Diff) {
    if diff.plan.is_empty() {
        return;
    }
    let load = diff.plan.iter().any(|p| p.load);
    let title = if load {
        "DIFFERENT PLANS: the two runs did not put the same load on the path."
    } else {
        "Different plans, with the same load:"
    };
    page.line(&[(if load { Ink::Warn } else { Ink::Bold }, title)], 0);
    for plan in &diff.plan {
        let change = &plan.change;
        let text = format!("{}: {} -> {}", change.what, change.before, change.after);
        page.entry("", &[(Ink::Plain, &text)], 2);
    }
    if load {
        let idle = if diff.plan.iter().any(|p| p.idle) {
            ""
        } else {
            " Round trips on the idle path are comparable."
        };
        let text = format!(
            " what was measured under that load: goodput, round trips beside it, segments \
             sent again, CPU time; and limits answer for the load that was asked for.{idle}"
        );
        page.line(&[(Ink::Warn, "Not comparable:"), (Ink::Plain, &text)], 2);
    }
}

fn figures(page: &mut Page, diff: &Diff) {
    let mut of = None;
    for change in diff.figures.iter().filter(|f| is_shown(f)) {
        let direction = change.of.direction;
        if of != Some(direction) {
            of = Some(direction);
            heading(page, direction);
        }
        row(page, change);
    }
}

fn is_shown(change: &FigureChange) -> bool {
    change.of.percentile.is_none_or(|p| SHOWN.contains(&p))
}

fn heading(page: &mut Page, direction: Option<Direction>) {
    page.gap();
    let of = direction.map_or("idle path", Direction::name);
    if !is_wide(page) {
        return page.line(&[(Ink::Bold, of)], 0);
    }
    let cells = [of, "before", "after", "after / before"];
    let widths = [LABEL, VALUE, VALUE, 0];
    page.row(&cells.map(|cell| (Ink::Bold, cell)), &widths);
}

/// Whether values stand in columns, with their ratio behind them.
fn is_wide(page: &Page) -> bool {
    page.width() >= LABEL + 2 * VALUE + RATIO
}

fn row(page: &mut Page, change: &FigureChange) {
    let cell = |v: &Option<Value>| match v {
        Some(v) => value(change.figure.unit, v),
        None => "-".to_owned(),
    };
    let cells = [
        cell(&change.before),
        cell(&change.after),
        outcome(change.outcome),
    ];
    let label = label(change);
    let ink = match change.outcome {
        Outcome::Differ(_) => Ink::Bold,
        Outcome::OtherPlan => Ink::Warn,
        _ => Ink::Plain,
    };
    let most = [VALUE - 1, VALUE - 1, RATIO];
    let fits = cells.iter().zip(most).all(|(c, most)| width_of(c) <= most);
    if !is_wide(page) || !fits {
        let text = format!("{}, then {}: ", cells[0], cells[1]);
        page.entry(&label, &[(Ink::Plain, &text), (ink, &cells[2])], 2);
        return;
    }
    let row = [
        (Ink::Plain, label.as_str()),
        (Ink::Plain, &cells[0]),
        (Ink::Plain, &cells[1]),
        (ink, &cells[2]),
    ];
    page.row(&row, &[LABEL, VALUE, VALUE, 0]);
}

/// `goodput`, `round trip p99`, `near CPU time`.
fn label(change: &FigureChange) -> String {
    let label = change.figure.label;
    match (change.of.percentile, change.of.side) {
        (Some(p), _) => format!("{label} p{p}"),
        (_, Some(side)) => format!("{} {label}", side.name()),
        _ => label.to_owned(),
    }
}

/// A value with half of its interval, where that is symmetric.
fn value(unit: Unit, value: &Value) -> String {
    let words = unit.words(value.mid);
    let interval = value.interval();
    match unit {
        Unit::BitsPerSecond => words::goodput(&Estimate {
            mean: value.mid,
            interval,
            samples: 0,
        }),
        Unit::Nanos | Unit::Share => words,
        Unit::PerSecond | Unit::NanosPerByte => {
            let percent = interval.and_then(Interval::relative);
            percent.map_or(words.clone(), |half| {
                format!("{words} ±{:.1} %", half * 100.0)
            })
        }
    }
}

fn outcome(outcome: Outcome) -> String {
    let ends = |i: Interval| format!("({} to {})", digits(i.low), digits(i.high));
    match outcome {
        Outcome::Differ(i) => format!("x{} {}", digits(i.mid), ends(i)),
        Outcome::Same(i) => format!("same {}", ends(i)),
        Outcome::Unsure(i) => format!("untold {}", ends(i)),
        Outcome::Nothing(why) => why.to_owned(),
        Outcome::OtherPlan => "not comparable".to_owned(),
    }
}

fn limits(page: &mut Page, diff: &Diff) {
    page.line(&[(Ink::Bold, "Limits")], 0);
    if diff.limits.is_empty() {
        page.line(&[(Ink::Plain, "  none was upheld in either record")], 2);
    }
    for change in &diff.limits {
        limit(page, change);
    }
}

fn limit(page: &mut Page, change: &LimitChange) {
    let limit = &change.limit;
    let what = format!(
        "{}: {}, {} ({})",
        words::place(limit),
        limit.cause,
        words::metric(limit),
        certainty(change),
    );
    let ink = if change.fate == Fate::Stayed {
        Ink::Plain
    } else {
        Ink::Bold
    };
    page.entry(change.fate.name(), &[(ink, &what)], 2);
    if !change.why.is_empty() {
        let when = if change.after.is_some() {
            "before"
        } else {
            "after"
        };
        let why = format!("{when}: {}", change.why);
        page.entry("", &[(Ink::Dim, &why)], 2);
    }
}

fn disturbances(page: &mut Page, diff: &Diff) {
    if diff.disturbances.is_empty() {
        return;
    }
    page.line(&[(Ink::Bold, "Disturbances")], 0);
    for change in &diff.disturbances {
        let disturbance = &change.disturbance;
        let what = words::disturbance(disturbance);
        let most = format!(": {}", words::explains(disturbance));
        let body = [(Ink::Bold, what.as_str()), (Ink::Plain, &most)];
        page.entry(change.fate.name(), &body, 2);
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

fn facts(page: &mut Page, diff: &Diff) {
    page.line(&[(Ink::Bold, "Hosts")], 0);
    for side in [Side::Near, Side::Far] {
        let mut label = side.name();
        for (_, change) in diff.facts.iter().filter(|(of, _)| *of == side) {
            let text = format!("{}: {} -> {}", change.what, change.before, change.after);
            page.entry(label, &[(Ink::Plain, &text)], 2);
            label = "";
        }
        if !label.is_empty() {
            page.entry(label, &[(Ink::Dim, "nothing is known to differ")], 0);
        }
    }
}

/// What the words of the table mean, as far as they stand there.
fn legend(page: &mut Page, diff: &Diff) {
    let shown = || diff.figures.iter().filter(|f| is_shown(f));
    let any = |is: fn(&Outcome) -> bool| shown().any(|f| is(&f.outcome));
    let mut text = String::new();
    if any(|t| matches!(t, Outcome::Same(_))) {
        text += "same: within 3 % of each other. ";
    }
    if any(|t| matches!(t, Outcome::Unsure(_))) {
        text += "untold: no difference that could be told; 95 % of the ratio reaches into x0.97 to x1.03. ";
    }
    text += "Intervals hold for these two runs: runs of one path may differ by more.";
    page.line(&[(Ink::Dim, &text)], 0);
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn view(width: usize, color: bool) -> String {
        sample::with(|compared| text(compared, Style { width, color }))
    }

    #[test]
    fn golden_at_80_columns() {
        insta::assert_snapshot!("diff", view(80, false));
    }

    #[test]
    fn golden_of_other_plans() {
        let view = sample::with_other_plans(|compared| text(compared, Style::PLAIN));
        insta::assert_snapshot!("diff_other_plans", view);
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
