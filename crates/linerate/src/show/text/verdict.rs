//! What the verdict says: the limits with their proof, what comes next, what to do, what is not known.

use std::fmt::Write as _;

use linerate_core::causes::{Advice, CAUSES};
use linerate_core::model::Model;
use linerate_core::path::{Direction, Measure};
use linerate_core::verdict::{Answered, Certainty, Decided, Entry, Limit, Verdict, entries};

use super::super::{Document, Tone, words};

pub(super) fn limits(doc: &mut Document, model: &Model, verdict: &Verdict) {
    let mut label = "Limited by";
    let mut explained: Vec<&str> = Vec::new();
    let mut was_limit = true;
    for told in entries(model, verdict) {
        // A blank line before each limit; unknown directions that follow each other are one block.
        if was_limit || matches!(told, Entry::Limit(_)) {
            doc.gap();
        }
        was_limit = matches!(told, Entry::Limit(_));
        match told {
            Entry::Limit(limit) => {
                limit_title(doc, label, limit);
                limit_body(doc, limit, explained.contains(&limit.cause));
                if let Some(trial) = &limit.trial {
                    let of = |answer: &&Answered| answer.direction == limit.direction;
                    tried(doc, trial, verdict.answers.iter().filter(of));
                }
                explained.push(limit.cause);
            }
            Entry::Unknown(direction) => {
                let text = format!(", {}: no cause could be supported", direction.name());
                doc.entry(
                    label,
                    &[(Tone::Warning, "unknown"), (Tone::Plain, &text)],
                    2,
                );
            }
        }
        label = "";
    }
}

/// What disturbed the measurement, and how much of the goodput that can explain.
pub(super) fn disturbances(doc: &mut Document, verdict: &Verdict) {
    let mut label = "Disturbed by";
    for disturbance in &verdict.disturbances {
        let what = words::disturbance(disturbance);
        let most = format!(": {}", words::explains(disturbance));
        doc.entry(label, &[(Tone::Strong, &what), (Tone::Plain, &most)], 2);
        for evidence in &disturbance.evidence {
            doc.evidence(evidence);
        }
        label = "";
    }
}

fn limit_title(doc: &mut Document, label: &str, limit: &Limit) {
    let tone = match limit.certainty {
        Certainty::Proved => Tone::Good,
        Certainty::Supported => Tone::Warning,
    };
    let place = format!("{}: ", words::place(limit));
    let metric = format!(", {} ", words::metric(limit));
    let certainty = format!("({})", limit.certainty.name());
    let body = [
        (Tone::Plain, place.as_str()),
        (Tone::Strong, limit.cause),
        (Tone::Plain, &metric),
        (tone, &certainty),
    ];
    doc.entry(label, &body, 2);
}

/// `told`: what the cause means was said before.
fn limit_body(doc: &mut Document, limit: &Limit, told: bool) {
    let cause = CAUSES.iter().find(|c| c.id() == limit.cause && !told);
    if let Some(summary) = cause.map(|c| words::summary(c.info().page)) {
        doc.detail(&[(Tone::Plain, &summary)], 0);
    }
    for evidence in &limit.evidence {
        doc.evidence(evidence);
    }
}

/// The trial that decided.
fn tried<'a>(doc: &mut Document, trial: &Decided, answers: impl Iterator<Item = &'a Answered>) {
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
    doc.detail(&[(Tone::Strong, "tried "), (Tone::Plain, &text)], 2);
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

pub(super) fn next(doc: &mut Document, verdict: &Verdict) {
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
        doc.entry(label, &[(Tone::Plain, &text)], 2);
    }
}

pub(super) fn advice(doc: &mut Document, model: &Model, verdict: &Verdict) {
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
        let mut body = vec![(Tone::Strong, advice.action.as_str())];
        if several {
            body.push((Tone::Dim, &way));
        }
        doc.entry(label, &body, 2);
        if let Some(gain) = advice.gain {
            let judged = model.direction(*direction).map(|d| d.base.measure());
            let what = judged.unwrap_or(Measure::Goodput).name();
            let text = format!("expect {} {what} x{gain:.2}", direction.name());
            doc.detail(&[(Tone::Plain, &text)], 2);
        }
        if !advice.undo.is_empty() {
            doc.detail(&[(Tone::Dim, "undo: "), (Tone::Dim, &advice.undo)], 2);
        }
        label = "";
    }
}

pub(super) fn unknown(doc: &mut Document, verdict: &Verdict) {
    for (i, unknown) in verdict.unknown.iter().enumerate() {
        let label = if i == 0 { "Unknown" } else { "" };
        let mut text = format!("{}: {}", unknown.what, unknown.why);
        if !unknown.hint.is_empty() {
            let _ = write!(text, " (hint: {})", unknown.hint);
        }
        doc.entry(label, &[(Tone::Plain, &text)], 2);
    }
}
