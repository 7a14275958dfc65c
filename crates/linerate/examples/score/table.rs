//! Tables of outcomes in Markdown: for each cell, as a confusion matrix, and over all.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_lab::HEALTHY;
use linerate_units::stats::median;

use crate::kept::{Kept, Row};
use linerate::demo::{Outcome, Report};

/// The counts of the outcomes of some runs.
#[derive(Debug, Default)]
struct Tally<'a> {
    runs: usize,
    failed: usize,
    reports: Vec<&'a Report>,
}

impl<'a> Tally<'a> {
    fn of(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut tally = Self::default();
        for row in rows {
            tally.add(row);
        }
        tally
    }

    fn add(&mut self, row: &'a Row) {
        self.runs += 1;
        match &row.what {
            Kept::Report(report) => self.reports.push(report),
            Kept::Failed(_) => self.failed += 1,
        }
    }

    fn with(&self, outcome: Outcome) -> usize {
        self.reports.iter().filter(|t| t.outcome == outcome).count()
    }

    fn proved(&self) -> usize {
        self.reports.iter().filter(|t| is_proved(t)).count()
    }

    fn biting(&self) -> usize {
        self.reports.iter().filter(|t| bites(t)).count()
    }

    /// Seconds until a trial proved the right cause, for each such run, in ascending order.
    fn seconds(&self) -> Vec<f64> {
        let proved = self.reports.iter().filter(|t| is_proved(t));
        let mut all: Vec<f64> = proved.filter_map(|t| t.proved_after).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn cells(&self) -> String {
        let seconds = median(&self.seconds()).map_or(String::new(), |s| format!("{s:.0}"));
        format!(
            "{} | {} | {} | {} | {} | {} | {} | {} | {seconds}",
            self.runs,
            self.with(Outcome::Right),
            self.with(Outcome::Acceptable),
            self.with(Outcome::Unknown),
            self.with(Outcome::Wrong),
            self.failed,
            self.biting(),
            self.proved(),
        )
    }

    /// The causes that were named wrongly, each with its seed.
    fn otherwise(&self) -> String {
        let wrong = self.reports.iter().filter(|t| t.outcome == Outcome::Wrong);
        let named = wrong.map(|t| format!("{} ({})", named(t), t.seed));
        named.collect::<Vec<_>>().join(", ")
    }
}

/// Whether the verdict was right and proved.
fn is_proved(report: &Report) -> bool {
    report.outcome == Outcome::Right && report.certainty.as_deref() == Some("proved")
}

/// Whether the measured truth shows that the planted fault limits the path.
fn bites(report: &Report) -> bool {
    report.truth.as_ref().is_some_and(|truth| truth.bites)
}

fn named(report: &Report) -> &str {
    report.named.as_deref().unwrap_or("nothing")
}

/// The whole page, with `heading` as its first line.
pub(crate) fn table(heading: &str, rows: &[Row]) -> String {
    let mut text = format!("{heading}\n\n");
    cells(&mut text, rows);
    let _ = writeln!(text, "\n{}\n", in_all(&Tally::of(rows)));
    confusion(&mut text, rows);
    failures(&mut text, rows);
    text
}

fn cells(text: &mut String, rows: &[Row]) {
    text.push_str(
        "| cell | congestion | runs | right | acceptable | unknown | wrong | failed | bites | proved \
         | s | named otherwise (seed) |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut groups: BTreeMap<(&str, &str), Tally<'_>> = BTreeMap::new();
    for row in rows {
        groups.entry(group(&row.key)).or_default().add(row);
    }
    for ((cell, congestion), tally) in &groups {
        let (cells, otherwise) = (tally.cells(), tally.otherwise());
        let _ = writeln!(text, "| {cell} | {congestion} | {cells} | {otherwise} |");
    }
    let _ = writeln!(text, "| all | | {} | |", Tally::of(rows).cells());
}

/// Cell and congestion control in a key such as `path-rate-bbr-7`.
fn group(key: &str) -> (&str, &str) {
    let mut parts = key.rsplitn(3, '-').skip(1);
    let congestion = parts.next().unwrap_or_default();
    (parts.next().unwrap_or(key), congestion)
}

fn in_all(tally: &Tally<'_>) -> String {
    let share = |n: usize, of: usize| match of {
        0 => "none of none".to_owned(),
        _ => format!("{n} of {of} ({:.1} %)", n as f64 * 100.0 / of as f64),
    };
    let all = tally.reports.len();
    let healthy: Vec<&&Report> = tally.reports.iter().filter(|t| is_healthy(t)).collect();
    let alarms = healthy.iter().filter(|t| t.outcome == Outcome::Wrong);
    let biting: Vec<&&Report> = tally.reports.iter().filter(|t| bites(t)).collect();
    let proved = biting.iter().filter(|t| is_proved(t)).count();
    let times = tally.seconds();
    let seconds = median(&times).map_or(String::new(), |s| {
        format!(" Median time to a trial's proof of what was true: {s:.1} s, over {}.", times.len())
    });
    format!(
        "Right: {}; acceptable: {}; wrong: {}; unknown: {}. False alarms on healthy paths: {}. \
         Faults that bite (10 % or more): {} proved.{seconds}",
        share(tally.with(Outcome::Right), all),
        tally.with(Outcome::Acceptable),
        share(tally.with(Outcome::Wrong), all),
        share(tally.with(Outcome::Unknown), all),
        share(alarms.count(), healthy.len()),
        share(proved, biting.len()),
    )
}

/// Whether no fault that limits the path was planted, so that the limit of a healthy path was expected.
fn is_healthy(report: &Report) -> bool {
    report.expected == HEALTHY
}

/// Adds the table of expected causes against the causes that were named first.
fn confusion(text: &mut String, rows: &[Row]) {
    let mut counts: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for row in rows {
        if let Kept::Report(report) = &row.what {
            let truth = if is_healthy(report) {
                "(healthy)".to_owned()
            } else {
                report.expected.join(" or ")
            };
            *counts.entry((truth, named(report))).or_default() += 1;
        }
    }
    text.push_str("| what was true | named first | runs |\n|---|---|---|\n");
    for ((truth, named), runs) in counts {
        let _ = writeln!(text, "| {truth} | {named} | {runs} |");
    }
}

fn failures(text: &mut String, rows: &[Row]) {
    for row in rows {
        if let Kept::Failed(why) = &row.what {
            let first = why.lines().next().unwrap_or_default();
            let _ = writeln!(text, "\n`{}` failed: {first}", row.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(fault: &str, named: Option<&str>, outcome: &str, bites: bool) -> Report {
        serde_json::from_value(serde_json::json!({
            "fault": fault, "seed": 7, "congestion": "bbr",
            "planted": if fault == "healthy" { vec![] } else { vec!["delay:20ms"] },
            "company": null,
            "truth": (fault != "healthy").then(|| serde_json::json!({
                "direction": "forward", "by": "iperf3", "with_bps": 1, "without_bps": 2, "bites": bites,
            })),
            "expected": if bites { vec![fault] } else { HEALTHY.to_vec() }, "neighbours": [], "named": named, "side": null, "direction": null,
            "certainty": named.map(|_| "proved"), "effect": null, "outcome": outcome,
            "limits": [], "steps": 9, "proved_after": 21.5, "seconds": 31.5,
        }))
        .unwrap()
    }

    fn row(key: &str, what: Kept) -> Row {
        Row { key: key.to_owned(), what }
    }

    #[test]
    fn wrong_and_failed_ones_are_told_with_their_seed() {
        let rows = [
            row(
                "path-loss-bbr-7",
                Kept::Report(Box::new(report("path-loss", Some("path-loss"), "right", true))),
            ),
            row(
                "path-loss-bbr-8",
                Kept::Report(Box::new(report("path-loss", Some("path-rate"), "wrong", true))),
            ),
            row(
                "healthy-cubic-7",
                Kept::Report(Box::new(report("healthy", Some("path-rate"), "wrong", false))),
            ),
            row(
                "udp-healthy-cubic-7",
                Kept::Report(Box::new(report(
                    "udp-healthy",
                    Some("sender-core"),
                    "acceptable",
                    false,
                ))),
            ),
            row("path-loss-cubic-7", Kept::Failed("no lab\nat all".to_owned())),
        ];
        let text = table("# A score", &rows);
        for line in [
            "| path-loss | bbr | 2 | 1 | 0 | 0 | 1 | 0 | 2 | 1 | 22 | path-rate (7) |",
            "| path-loss | cubic | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |  |  |",
            "| (healthy) | path-rate | 1 |",
            "| path-loss | path-rate | 1 |",
            "`path-loss-cubic-7` failed: no lab",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(text.contains("Right: 1 of 4 (25.0 %)"), "{text}");
        assert!(text.contains("healthy paths: 1 of 2"), "{text}");
        assert!(text.contains("21.5 s, over 1."), "{text}");
    }
}
