//! What the verdict says: the limits with their proof, what comes next, what to do, what is not known.

use std::fmt::Write as _;

use linerate_core::causes::{Advice, CAUSES};
use linerate_core::model::Model;
use linerate_core::path::Direction;
use linerate_core::verdict::{Answered, Certainty, Decided, Entry, Limit, Verdict, entries};

use super::super::page::{Ink, Page};
use super::super::words;

pub(super) fn limits(page: &mut Page, model: &Model, verdict: &Verdict) {
    let mut label = "Limited by";
    let mut explained: Vec<&str> = Vec::new();
    let mut was_limit = true;
    for told in entries(model, verdict) {
        // A blank line before each limit; unknown directions that follow each other are one block.
        if was_limit || matches!(told, Entry::Limit(_)) {
            page.gap();
        }
        was_limit = matches!(told, Entry::Limit(_));
        match told {
            Entry::Limit(limit) => {
                limit_title(page, label, limit);
                limit_body(page, limit, explained.contains(&limit.cause));
                if let Some(trial) = &limit.trial {
                    let of = |answer: &&Answered| answer.direction == limit.direction;
                    tried(page, trial, verdict.answers.iter().filter(of));
                }
                explained.push(limit.cause);
            }
            Entry::Unknown(direction) => {
                let text = format!(", {}: no cause could be supported", direction.name());
                page.entry(label, &[(Ink::Warn, "unknown"), (Ink::Plain, &text)], 2);
            }
        }
        label = "";
    }
}

/// What disturbed the measurement, and how much of the goodput that can explain.
pub(super) fn disturbances(page: &mut Page, verdict: &Verdict) {
    let mut label = "Disturbed by";
    for disturbance in &verdict.disturbances {
        let what = words::disturbance(disturbance);
        let most = format!(": {}", words::explains(disturbance));
        page.entry(label, &[(Ink::Bold, &what), (Ink::Plain, &most)], 2);
        for evidence in &disturbance.evidence {
            page.entry("", &[(Ink::Dim, "- "), (Ink::Plain, evidence)], 2);
        }
        label = "";
    }
}

fn limit_title(page: &mut Page, label: &str, limit: &Limit) {
    let ink = match limit.certainty {
        Certainty::Proved => Ink::Good,
        Certainty::Supported => Ink::Warn,
    };
    let place = format!("{}: ", words::place(limit));
    let metric = format!(", {} ", words::metric(limit));
    let certainty = format!("({})", limit.certainty.name());
    let body = [
        (Ink::Plain, place.as_str()),
        (Ink::Bold, limit.cause),
        (Ink::Plain, &metric),
        (ink, &certainty),
    ];
    page.entry(label, &body, 2);
}

/// `told`: what the cause means was said before.
fn limit_body(page: &mut Page, limit: &Limit, told: bool) {
    let cause = CAUSES.iter().find(|c| c.id() == limit.cause && !told);
    if let Some(summary) = cause.map(|c| words::summary(c.info().page)) {
        page.entry("", &[(Ink::Plain, &summary)], 0);
    }
    for evidence in &limit.evidence {
        page.entry("", &[(Ink::Dim, "- "), (Ink::Plain, evidence)], 2);
    }
}

/// The trial that decided.
fn tried<'a>(page: &mut Page, trial: &Decided, answers: impl Iterator<Item = &'a Answered>) {
    let slices = words::count(u64::from(trial.slices), "slice");
    // Where what is lost, or waits, decided, goodput only follows what was changed.
    let effect = match (trial.loss, trial.latency) {
        (Some(loss), _) => words::of_share(loss, trial.transport),
        (None, Some(latency)) => format!("{} of the round trip", words::effect(latency)),
        (None, None) => words::effect(trial.effect),
    };
    let mut text = format!("{}: {effect}, {slices}", trial.words);
    if !trial.excluded.is_empty() {
        let _ = write!(text, "; excludes {}", excluded(trial, answers));
    }
    page.entry("", &[(Ink::Bold, "tried "), (Ink::Plain, &text)], 2);
}

/// The causes that a trial excluded: by name those that something spoke for, or all where they are few.
fn excluded<'a>(trial: &Decided, answers: impl Iterator<Item = &'a Answered>) -> String {
    const FEW: usize = 3;
    let all = &trial.excluded;
    if all.len() <= FEW {
        return all.join(", ");
    }
    let spoken_for = answers.filter(|a| a.outcome == "excluded" && all.contains(&a.cause));
    let names: Vec<&str> = spoken_for.map(|a| a.cause).collect();
    let rest = all.len() - names.len();
    match (names.is_empty(), rest) {
        (true, rest) => format!("{rest} causes, none with evidence"),
        (false, 0) => names.join(", "),
        (false, rest) => format!("{}, and {rest} without evidence", names.join(", ")),
    }
}

pub(super) fn next(page: &mut Page, verdict: &Verdict) {
    for (i, limit) in verdict.next.iter().enumerate() {
        let label = if i == 0 { "Next limit" } else { "" };
        let mut text = format!(
            "{}: {}, {}",
            words::place(limit),
            limit.cause,
            words::metric(limit)
        );
        if let Some(evidence) = limit.evidence.first() {
            let _ = write!(text, ": {evidence}");
        }
        page.entry(label, &[(Ink::Plain, &text)], 2);
    }
}

pub(super) fn advice(page: &mut Page, verdict: &Verdict) {
    let limits = verdict.limits.iter();
    let limits = limits.flat_map(|l| l.advice.iter().map(|advice| (l.direction, advice)));
    let mut all: Vec<(Direction, &Advice)> = limits.collect();
    // What disturbs both directions is mended once.
    for disturbance in &verdict.disturbances {
        for advice in &disturbance.advice {
            if !all.iter().any(|(_, known)| known.action == advice.action) {
                all.push((disturbance.direction, advice));
            }
        }
    }
    let several = all.iter().any(|(direction, _)| *direction != all[0].0);
    let mut label = "Do";
    for (direction, advice) in &all {
        let way = format!(" ({})", direction.name());
        let mut body = vec![(Ink::Bold, advice.action.as_str())];
        if several {
            body.push((Ink::Dim, &way));
        }
        page.entry(label, &body, 2);
        if let Some(gain) = advice.gain {
            let text = format!("expect {} goodput x{gain:.2}", direction.name());
            page.entry("", &[(Ink::Plain, &text)], 2);
        }
        if !advice.undo.is_empty() {
            page.entry("", &[(Ink::Dim, "undo: "), (Ink::Dim, &advice.undo)], 2);
        }
        label = "";
    }
}

pub(super) fn unknown(page: &mut Page, verdict: &Verdict) {
    for (i, unknown) in verdict.unknown.iter().enumerate() {
        let label = if i == 0 { "Unknown" } else { "" };
        let mut text = format!("{}: {}", unknown.what, unknown.why);
        if !unknown.hint.is_empty() {
            let _ = write!(text, " (hint: {})", unknown.hint);
        }
        page.entry(label, &[(Ink::Plain, &text)], 2);
    }
}
