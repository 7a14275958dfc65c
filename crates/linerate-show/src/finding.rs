//! Shows the details of a finding: why it matters, what shows it, and what helps. The page itself writes the first
//! line.

use linerate_facts::advice::Step;
use linerate_facts::finding::Finding;

use super::advice::{do_step, do_steps};
use super::{Document, Tone};

/// Labels of the parts of a finding. With an empty label, a part becomes a detail of the line above.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labels {
    pub why: &'static str,
    pub proof: &'static str,
    pub fix: &'static str,
    /// The word between two steps. Empty if the words of the steps need no joint.
    pub then: &'static str,
}

/// Labels for a finding that has lines of its own.
pub(super) const LABELS: Labels = Labels { why: "Why", proof: "Proof", fix: "Fix", then: THEN };
/// Labels for a finding whose parts are all details of one line.
pub(super) const DETAILS: Labels = Labels { why: "", proof: "", fix: "", then: THEN };
/// Labels for a remark: as `DETAILS`, but its steps have no order.
pub(super) const REMARK: Labels = Labels { then: "", ..DETAILS };

const THEN: &str = "then";

/// Writes all parts of a finding. `host` is the host of the steps if the finding names none.
pub(super) fn parts(doc: &mut Document, found: &Finding, labels: Labels, host: Option<&str>) {
    if !found.why.is_empty() {
        put(doc, labels.why, &found.why);
    }
    let mut label = labels.proof;
    for text in &found.proof {
        if labels.proof.is_empty() {
            doc.evidence(text);
        } else {
            doc.entry(label, &[(Tone::Plain, text)], 2);
            label = "";
        }
    }
    remedy(doc, labels, "", found, host);
}

/// Writes the remedy, in a sentence that begins with `word`, and how to undo it.
pub(super) fn remedy(
    doc: &mut Document,
    labels: Labels,
    word: &str,
    found: &Finding,
    host: Option<&str>,
) {
    let fix = &found.fix;
    if fix.is_empty() {
        return;
    }
    let own = Some(found.host.as_str()).filter(|own| !own.is_empty());
    let host = own.or(host);
    let at =
        own.filter(|_| fix.steps.is_empty()).map_or(String::new(), |own| format!("on {own}: "));
    // The command follows directly below, unless the step has words of its own.
    let is_next = |step: &Step| host.is_none() && is_bare(step);
    let end =
        if labels.fix.is_empty() && fix.steps.first().is_some_and(is_next) { ":" } else { "" };
    put(doc, labels.fix, &format!("{word}{at}{}{end}", fix.what));
    do_steps(doc, &fix.steps, labels.then, |_| host);
    for step in &fix.undo {
        do_step(doc, "undo", host, step);
    }
}

/// Whether a step is a command without words.
fn is_bare(step: &Step) -> bool {
    step.about.is_empty() && !step.command.is_empty()
}

fn put(doc: &mut Document, label: &str, text: &str) {
    match label {
        "" => doc.detail(&[(Tone::Plain, text)], 2),
        label => doc.entry(label, &[(Tone::Plain, text)], 2),
    }
}
