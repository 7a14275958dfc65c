//! The result of `linerate guide ib` as a page of text: a line for each check, and what to do if it did not pass.

use linerate_fabric::guide::Guide;
use linerate_facts::finding::{Finding, Stands};

use super::super::finding::{DETAILS, remedy};
use super::super::{Document, Tone};

/// The page with all checks.
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

/// The headline: `mlx4_0 port 2: 3 of 8 checks are ok; wrong: Manager`.
pub(super) fn summary(guide: &Guide) -> String {
    let titles = |stands: Stands| {
        let found = guide.checks.iter().filter(|check| check.stands == stands);
        found.map(|check| check.subject.as_str()).collect::<Vec<_>>().join(", ")
    };
    let ok = guide.checks.iter().filter(|check| check.stands == Stands::Good).count();
    let all = guide.checks.len();
    let subject = guide.port.as_deref().unwrap_or("InfiniBand");
    let (wrong, unknown) = (titles(Stands::Found), titles(Stands::Unknown));
    let rest = [("wrong", wrong), ("unknown", unknown)];
    let rest = rest.iter().filter(|(_, titles)| !titles.is_empty());
    let parts: Vec<String> = std::iter::once(format!("{ok} of {all} checks are ok"))
        .chain(rest.map(|(word, titles)| format!("{word}: {titles}")))
        .collect();
    format!("{subject}: {}", parts.join("; "))
}

fn line(doc: &mut Document, check: &Finding) {
    let (tone, word, fix) = match check.stands {
        Stands::Good => (Tone::Good, "ok", "faster: "),
        Stands::Unknown => (Tone::Warning, "unknown", "to know: "),
        Stands::NotJudged => (Tone::Dim, "waits for the checks above", ""),
        _ => (Tone::Warning, "wrong", "to do: "),
    };
    let mut what = String::new();
    for text in [&check.what, &check.why].into_iter().filter(|text| !text.is_empty()) {
        what.push_str(": ");
        what.push_str(text);
    }
    doc.entry(&check.subject, &[(tone, word), (Tone::Plain, &what)], 2);
    remedy(doc, DETAILS, fix, check, None);
}
