//! Shows advice on how to remove a cause, with commands to copy.

use linerate_facts::advice::{Advice, Joined, Step};

use super::names::Names;
use super::{Document, Tone};

/// Writes an advice under a label. `gain` says in words what the advice would gain.
pub(super) fn advise(doc: &mut Document, label: &str, advice: &Advice, gain: &str, names: &Names) {
    let mut what = advice.what.clone();
    if !gain.is_empty() {
        what.push_str(": ");
    }
    doc.entry(label, &[(Tone::Plain, &what), (Tone::Strong, gain)], 2);
    let host = |step: &Step| step.host.map(|side| names.of(side));
    do_steps(doc, &advice.steps, "then", host);
    for step in &advice.undo {
        do_step(doc, "undo", host(step), step);
    }
    let needs = advice.needs();
    if !needs.is_empty() {
        let text = format!("Needs {}.", needs.join(", "));
        doc.detail(&[(Tone::Dim, &text)], 2);
    }
    if advice.is_lost_at_boot() {
        doc.detail(&[(Tone::Dim, "The new settings last until the next boot.")], 0);
    } else if advice.only_looks() {
        doc.detail(&[(Tone::Dim, "This changes no setting: nothing to undo.")], 0);
    }
}

/// The word that joins an advice to the advice above it.
pub(super) const fn joint(advice: &Advice) -> &'static str {
    match advice.joined {
        Joined::Or => "or",
        Joined::And => "and",
        Joined::Until => "until then",
    }
}

/// Writes the steps of an advice, in order; `next_verb` stands before each step but the first.
pub(super) fn do_steps<'a>(
    doc: &mut Document,
    steps: &[Step],
    next_verb: &str,
    host: impl Fn(&Step) -> Option<&'a str>,
) {
    for (i, step) in steps.iter().enumerate() {
        let verb = if i > 0 { next_verb } else { "" };
        do_step(doc, verb, host(step), step);
    }
}

/// Writes a step: a line such as `undo on brook, in the same directory:`, and the step's command below it.
pub(super) fn do_step(doc: &mut Document, verb: &str, host: Option<&str>, step: &Step) {
    let host = host.map(|name| format!("on {name}"));
    let first: Vec<&str> = [verb, host.as_deref().unwrap_or_default()].into();
    let first: Vec<&str> = first.into_iter().filter(|text| !text.is_empty()).collect();
    let parts = [first.join(" "), step.about.clone()];
    let parts: Vec<String> = parts.into_iter().filter(|text| !text.is_empty()).collect();
    let end = if step.command.is_empty() { "" } else { ":" };
    if !parts.is_empty() {
        doc.detail(&[(Tone::Dim, &format!("{}{end}", parts.join(", ")))], 2);
    }
    if !step.command.is_empty() {
        doc.detail_command((Tone::Strong, &step.command), 0);
    }
}
