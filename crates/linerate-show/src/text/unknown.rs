//! Shows what is unknown: which limit was not found, which readings are missing, and which command would show them.

use linerate_judge::model::Model;
use linerate_judge::verdict::{self, Entry, Verdict, entries};
use linerate_plan::path::{Direction, Side};
use linerate_record::Record;
use linerate_units::Nanos;

use super::super::advice::advise;
use super::super::names::Names;
use super::super::{Document, Tone};
use super::sound;
use super::verdict::rate_after;

/// The directions whose limit was not found.
pub(super) fn open(model: &Model, verdict: &Verdict) -> Vec<Direction> {
    let all = entries(model, verdict).into_iter();
    let unknown = all.filter_map(|entry| match entry {
        Entry::Unknown(direction) => Some(direction),
        Entry::Limit(_) => None,
    });
    unknown.collect()
}

/// Writes what an unknown limit means, what to do next, and what can be gained until then.
pub(super) fn not_found(
    doc: &mut Document,
    model: &Model,
    verdict: &Verdict,
    open: &[Direction],
    names: &Names,
) {
    let next = if verdict.unknown.iter().any(|u| is_command(&u.hint)) {
        "The commands below read or measure what is missing."
    } else {
        "Measure again while the hosts and the path are quiet; `linerate show --explain` shows what each cause answered."
    };
    let fitting = match sound::candidates(verdict, open).as_slice() {
        [] => "no cause that linerate knows fits the readings".to_owned(),
        [one] => format!("one cause fits the readings, and nothing proved it: {one}"),
        several => format!(
            "{} causes fit the readings, and no experiment told them apart: {}",
            several.len(),
            several.join("; ")
        ),
    };
    let text = format!("[unknown]: the rate was measured. {}. {next}", capital(&fitting));
    doc.line(&[(Tone::Plain, &text)], 0);
    for found in open.iter().filter_map(|of| model.direction(*of)) {
        if let Some(advice) = sound::more_streams(model, found) {
            doc.gap();
            let gain = rate_after(found, &advice);
            advise(doc, "Until then", &advice, &gain, names);
        }
    }
}

/// The text with its first letter in upper case.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// Writes the unknown facts. If the verdict does not depend on them, several facts are only counted.
pub(super) fn unknown(
    doc: &mut Document,
    record: &Record,
    verdict: &Verdict,
    names: &Names,
    shows_all: bool,
) {
    let n = verdict.unknown.len();
    if !shows_all && n > 1 {
        let text = format!("{n} readings; `linerate show --explain` lists them");
        doc.entry("Not read", &[(Tone::Plain, &text)], 2);
        return;
    }
    for (i, unknown) in verdict.unknown.iter().enumerate() {
        let label = if i == 0 { "Unknown" } else { "" };
        let text = format!("{}: {}", unknown.what, unknown.why);
        doc.entry(label, &[(Tone::Plain, &text)], 2);
        to_know(doc, record, unknown, names);
    }
}

/// Writes the command that would make a fact known, on which host to run it, and how long it takes.
fn to_know(doc: &mut Document, record: &Record, unknown: &verdict::Unknown, names: &Names) {
    let hint = unknown.hint.as_str();
    if !is_command(hint) {
        if !hint.is_empty() {
            doc.detail(&[(Tone::Dim, "to know it: "), (Tone::Strong, hint)], 2);
        }
        return;
    }
    // `linerate run` is typed on the near host, as this run was.
    let runs = hint.contains("linerate run");
    let side = if runs { Some(Side::Near) } else { unknown.side() };
    let host = side.map_or("the host in question", |side| names.of(side));
    let text = format!("to know it, on {host} ({}):", cost(hint, took(record)));
    doc.detail(&[(Tone::Dim, &text)], 2);
    doc.detail_command((Tone::Strong, hint), 0);
}

/// How long a run took, rounded up to seconds; `None` if its record has no step.
fn took(record: &Record) -> Option<Nanos> {
    let ended = record.steps.iter().map(|step| step.ended().0);
    Some(Nanos::from_secs(ended.max()?.div_ceil(1_000_000_000)))
}

/// How long a command takes, in words.
fn cost(hint: &str, run: Option<Nanos>) -> String {
    let time = run.map_or(String::new(), |run| format!(", which took {run}"));
    if hint.contains("linerate serve") {
        format!("in place of the one there; then repeat this run{time}")
    } else if hint.contains("--thorough") {
        format!("takes longer than this run{time}")
    } else if hint.contains("linerate run") {
        format!("takes as long as this run{time}")
    } else {
        "takes a moment".to_owned()
    }
}

/// Whether a hint is nothing but a command.
fn is_command(hint: &str) -> bool {
    const PROGRAMS: [&str; 9] =
        ["cat", "cpupower", "ethtool", "ip", "linerate", "lsusb", "mount", "sudo", "tc"];
    let first = hint.split(' ').next().unwrap_or_default();
    let is_prose = ["; the ", ", on "].iter().any(|words| hint.contains(words));
    PROGRAMS.contains(&first) && !is_prose
}

#[cfg(test)]
mod tests {
    use super::super::super::{Style, sample};
    use super::*;

    fn shown(what: &str, hint: &str) -> String {
        let (record, ..) = sample::healthy();
        let mut verdict = Verdict::default();
        verdict.unknown.push(verdict::Unknown {
            what: what.to_owned(),
            why: "it was not read".to_owned(),
            hint: hint.to_owned(),
        });
        let names = Names::called(["ripple", "brook"]);
        let mut doc = Document::new();
        unknown(&mut doc, &record, &verdict, &names, true);
        let page = doc.text(Style::PLAIN);
        let lines: Vec<&str> = page.lines().skip(1).map(str::trim).collect();
        lines.join("\n")
    }

    #[test]
    fn a_command_names_its_host_and_what_it_costs() {
        for (what, hint, want) in [
            ("duplex of the far port", "ethtool eth0", "to know it, on brook (takes a moment):"),
            ("near thread times", "ethtool eth0", "to know it, on ripple (takes a moment):"),
            (
                "what limits it",
                "ethtool eth0",
                "to know it, on the host in question (takes a moment):",
            ),
        ] {
            assert_eq!(shown(what, hint), format!("{want}\n{hint}"));
        }
        let second = shown("far slot", "sudo linerate serve");
        assert!(second.starts_with("to know it, on brook (in place of"), "{second}");
        let longer = shown("what limits forward", "linerate run brook --thorough");
        assert!(longer.starts_with("to know it, on ripple (takes longer"), "{longer}");
    }

    #[test]
    fn the_time_of_a_run_is_that_of_the_last_one() {
        let known = Some(Nanos::from_secs(33));
        for (hint, want) in [
            ("linerate run brook --thorough", "takes longer than this run, which took 33 s"),
            ("sudo linerate run brook", "takes as long as this run, which took 33 s"),
            (
                "sudo linerate serve",
                "in place of the one there; then repeat this run, which took 33 s",
            ),
            ("ethtool eth0", "takes a moment"),
        ] {
            assert_eq!(cost(hint, known), want);
        }
        assert_eq!(cost("linerate run", None), "takes as long as this run");
    }

    #[test]
    fn prose_is_no_command() {
        for hint in ["measure without it", "lsusb -t; the same adapter in a faster socket", ""] {
            assert!(!is_command(hint), "{hint}");
        }
        assert_eq!(shown("far port", "Linux 4.19 or later"), "to know it: Linux 4.19 or later");
        assert_eq!(shown("far port", ""), "");
    }
}
