//! The checks for people: one line each, and what to do about those that are not ok.

use linerate_fabric::guide::{Check, Guide, State};
use linerate_facts::advice::Advice;

use super::super::advice::{do_step, do_steps};
use super::super::{Document, Tone};

/// The page of all checks.
pub fn page(guide: &Guide) -> Document {
    let mut doc = Document::new();
    headline(&mut doc, guide);
    doc.gap();
    for check in &guide.checks {
        line(&mut doc, check);
    }
    if !guide.others.is_empty() {
        doc.gap();
        let others = format!("Other InfiniBand ports of this host: {}", guide.others.join(", "));
        doc.line(&[(Tone::Dim, &others)], 2);
    }
    doc
}

fn headline(doc: &mut Document, guide: &Guide) {
    let tone = if guide.is_well() { Tone::Good } else { Tone::Strong };
    doc.line(&[(tone, &summary(guide))], 2);
}

/// `mlx4_0 port 2: 3 of 8 checks are ok; wrong: Manager`.
pub(super) fn summary(guide: &Guide) -> String {
    let titles = |is: fn(&State) -> bool| {
        let found = guide.checks.iter().filter(|check| is(&check.state));
        found.map(|check| check.title).collect::<Vec<_>>().join(", ")
    };
    let ok = guide.checks.iter().filter(|check| matches!(check.state, State::Ok(_))).count();
    let all = guide.checks.len();
    let subject = guide.port.as_deref().unwrap_or("InfiniBand");
    let wrong = titles(|state| matches!(state, State::Wrong(_)));
    let unknown = titles(|state| matches!(state, State::Unknown(_)));
    let rest = [("wrong", wrong), ("unknown", unknown)];
    let rest = rest.iter().filter(|(_, titles)| !titles.is_empty());
    let parts: Vec<String> = std::iter::once(format!("{ok} of {all} checks are ok"))
        .chain(rest.map(|(word, titles)| format!("{word}: {titles}")))
        .collect();
    format!("{subject}: {}", parts.join("; "))
}

fn line(doc: &mut Document, check: &Check) {
    let put = |doc: &mut Document, tone, word: &str| {
        let what = format!(": {}", check.what);
        doc.entry(check.title, &[(tone, word), (Tone::Plain, &what)], 2);
    };
    match &check.state {
        State::Ok(better) => {
            put(doc, Tone::Good, "ok");
            if let Some(better) = better {
                advice(doc, "faster", better);
            }
        }
        State::Wrong(fix) => {
            put(doc, Tone::Warning, "wrong");
            advice(doc, "to do", fix);
        }
        State::Unknown(how) => {
            put(doc, Tone::Warning, "unknown");
            advice(doc, "to know", how);
        }
        State::Waits => doc.entry(check.title, &[(Tone::Dim, "waits for the checks above")], 2),
    }
}

fn advice(doc: &mut Document, word: &str, advice: &Advice) {
    doc.detail(&[(Tone::Plain, &format!("{word}: {}", advice.what))], 2);
    do_steps(doc, &advice.steps, |_| None);
    for step in &advice.undo {
        do_step(doc, "undo", None, step);
    }
}
